// Formulas of ONNX GridSample. Positions are computed in the type of x, in single precision for 16 bits: nearest sampling
// depends on which way a tie rounds.
#include "families/sample/sample.h"

#include <algorithm>
#include <cmath>

#include "families/sample/sample_taps.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 3> kModes = {"nearest", "linear", "cubic"};
constexpr std::array<std::string_view, 3> kPaddings = {"zeros", "border", "reflection"};

template <class Enum, size_t n>
bool parse_one_of(const std::array<std::string_view, n>& names, std::string_view text, Enum& value) {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return false;
  value = static_cast<Enum>(at - names.begin());
  return true;
}

// Thrown back at the borders until it lies between them.
template <class Real>
Real reflected(Real x, Real low, Real high) {
  const Real range = high - low;
  if (range <= 0) return low;
  if (x >= low && x <= high) return x;
  const Real beyond = x < low ? low - x : x - high;
  const Real times = std::trunc(beyond / range), rest = beyond - times * range;
  const bool from_low = (x < low) == (std::fmod(times, Real{2}) == 0);
  return from_low ? low + rest : high - rest;
}

// The element at an integer place that may lie outside, or -1 for a zero.
template <class Real>
int64_t element(const SampleParams& p, int64_t at, int64_t size, Real low, Real high) {
  if (at >= 0 && at < size) return at;
  if (p.padding == SamplePadding::zeros) return -1;
  if (p.padding == SamplePadding::reflection) at = static_cast<int64_t>(reflected(static_cast<Real>(at), low, high));
  return std::clamp<int64_t>(at, 0, size - 1);
}

}  // namespace

std::string_view name_of(SampleMode mode) { return kModes[static_cast<size_t>(mode)]; }
bool parse_name(std::string_view text, SampleMode& mode) { return parse_one_of(kModes, text, mode); }
std::string_view name_of(SamplePadding padding) { return kPaddings[static_cast<size_t>(padding)]; }
bool parse_name(std::string_view text, SamplePadding& padding) { return parse_one_of(kPaddings, text, padding); }

template <class Real>
SampleTapsIn<Real> sample_taps_in(const SampleParams& p, Real coordinate, int64_t size) {
  const auto length = static_cast<Real>(size);
  const Real low = p.align_corners ? Real{0} : Real{-0.5}, high = p.align_corners ? length - 1 : length - Real{0.5};
  Real x = p.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  // What is no number, or too far out for an integer, lies outside like any other position.
  constexpr Real kFar = 1073741824;
  if (!(std::abs(x) < kFar)) x = x > 0 ? 2 * length + 8 : -length - 8;
  if (p.mode == SampleMode::nearest) x = std::nearbyint(x);
  if (x < low || x > high) {
    if (p.padding == SamplePadding::border) x = std::clamp(x, Real{0}, length - 1);
    if (p.padding == SamplePadding::reflection) x = reflected(x, low, high);
  }
  SampleTapsIn<Real> taps;
  if (p.mode == SampleMode::nearest) {
    taps.count = 1;
    taps.index[0] = element(p, static_cast<int64_t>(x), size, low, high);
    taps.weight[0] = 1;
    return taps;
  }
  const auto below = static_cast<int64_t>(std::floor(x));
  const Real t = x - std::floor(x);
  if (p.mode == SampleMode::linear) {
    taps.count = 2;
    taps.weight = {1 - t, t, 0, 0};
  } else {
    // Keys' cubic convolution at distances 1 + t, t, 1 - t and 2 - t.
    constexpr Real a = -0.75;
    const auto near = [](Real d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](Real d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    taps.count = 4;
    taps.weight = {far(1 + t), near(t), near(1 - t), far(2 - t)};
  }
  const int64_t first = p.mode == SampleMode::linear ? below : below - 1;
  for (int i = 0; i < taps.count; ++i) taps.index[static_cast<size_t>(i)] = element(p, first + i, size, low, high);
  return taps;
}
template SampleTapsIn<float> sample_taps_in(const SampleParams&, float, int64_t);
template SampleTapsIn<double> sample_taps_in(const SampleParams&, double, int64_t);

SampleTaps sample_taps(const SampleParams& params, float coordinate, int64_t size) {
  const auto taps = sample_taps_in(params, coordinate, size);
  return {taps.count, taps.index, taps.weight};
}

}  // namespace sparkle
