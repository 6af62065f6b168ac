// Formulas of ONNX GridSample. Positions are computed in single precision, as the grid is: nearest sampling depends on which
// way a tie rounds.
#include "families/sample/sample.h"

#include <algorithm>
#include <cmath>

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
float reflected(float x, float low, float high) {
  const float range = high - low;
  if (range <= 0) return low;
  if (x >= low && x <= high) return x;
  const float beyond = x < low ? low - x : x - high;
  const float times = std::trunc(beyond / range), rest = beyond - times * range;
  const bool from_low = (x < low) == (std::fmod(times, 2.0f) == 0);
  return from_low ? low + rest : high - rest;
}

// The element at an integer place that may lie outside, or -1 for a zero.
int64_t element(const SampleParams& p, int64_t at, int64_t size, float low, float high) {
  if (at >= 0 && at < size) return at;
  if (p.padding == SamplePadding::zeros) return -1;
  if (p.padding == SamplePadding::reflection) at = static_cast<int64_t>(reflected(static_cast<float>(at), low, high));
  return std::clamp<int64_t>(at, 0, size - 1);
}

}  // namespace

std::string_view name_of(SampleMode mode) { return kModes[static_cast<size_t>(mode)]; }
bool parse_name(std::string_view text, SampleMode& mode) { return parse_one_of(kModes, text, mode); }
std::string_view name_of(SamplePadding padding) { return kPaddings[static_cast<size_t>(padding)]; }
bool parse_name(std::string_view text, SamplePadding& padding) { return parse_one_of(kPaddings, text, padding); }

SampleTaps sample_taps(const SampleParams& p, float coordinate, int64_t size) {
  const auto length = static_cast<float>(size);
  const float low = p.align_corners ? 0.0f : -0.5f, high = p.align_corners ? length - 1 : length - 0.5f;
  float x = p.align_corners ? (coordinate + 1) / 2 * (length - 1) : ((coordinate + 1) * length - 1) / 2;
  // What is no number, or too far out for an integer, lies outside like any other position.
  constexpr float kFar = 1073741824.0f;
  if (!(std::abs(x) < kFar)) x = x > 0 ? 2 * length + 8 : -length - 8;
  if (p.mode == SampleMode::nearest) x = std::nearbyint(x);
  if (x < low || x > high) {
    if (p.padding == SamplePadding::border) x = std::clamp(x, 0.0f, length - 1);
    if (p.padding == SamplePadding::reflection) x = reflected(x, low, high);
  }
  SampleTaps taps;
  if (p.mode == SampleMode::nearest) {
    taps.count = 1;
    taps.index[0] = element(p, static_cast<int64_t>(x), size, low, high);
    taps.weight[0] = 1;
    return taps;
  }
  const auto below = static_cast<int64_t>(std::floor(x));
  const float t = x - std::floor(x);
  if (p.mode == SampleMode::linear) {
    taps.count = 2;
    taps.weight = {1 - t, t, 0, 0};
  } else {
    // Keys' cubic convolution at distances 1 + t, t, 1 - t and 2 - t.
    constexpr float a = -0.75f;
    const auto near = [](float d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [](float d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    taps.count = 4;
    taps.weight = {far(1 + t), near(t), near(1 - t), far(2 - t)};
  }
  const int64_t first = p.mode == SampleMode::linear ? below : below - 1;
  for (int i = 0; i < taps.count; ++i) taps.index[static_cast<size_t>(i)] = element(p, first + i, size, low, high);
  return taps;
}

}  // namespace sparkle
