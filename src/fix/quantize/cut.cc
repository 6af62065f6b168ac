#include "fix/quantize/cut.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sparkle::fix {
namespace {

// The divergence of the values within `keep` bins from the first, what is beyond counted in the last of them, from the same in
// 128 steps (Migacz, "8-bit Inference with TensorRT", 2017).
double divergence(const std::vector<float>& bins, int keep) {
  constexpr int kSteps = 128;
  std::vector<double> p(bins.begin(), bins.begin() + keep);
  for (size_t i = static_cast<size_t>(keep); i < bins.size(); ++i) p.back() += static_cast<double>(bins[i]);
  std::vector<double> q(static_cast<size_t>(keep), 0.0);
  for (int s = 0; s < kSteps; ++s) {
    const int begin = keep * s / kSteps, end = keep * (s + 1) / kSteps;
    double sum = 0;
    int filled = 0;
    for (int i = begin; i < end; ++i)
      sum += static_cast<double>(bins[static_cast<size_t>(i)]), filled += bins[static_cast<size_t>(i)] > 0;
    for (int i = begin; i < end; ++i)
      if (bins[static_cast<size_t>(i)] > 0) q[static_cast<size_t>(i)] = sum / filled;
  }
  const double all_p = std::accumulate(p.begin(), p.end(), 0.0), all_q = std::accumulate(q.begin(), q.end(), 0.0);
  if (!(all_p > 0) || !(all_q > 0)) return INFINITY;
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] / all_p * std::log(p[i] / all_p / (std::max(q[i], 1e-9) / all_q));
  return sum;
}

// Counts by magnitude.
std::vector<float> magnitudes(const Range& range) {
  std::vector<float> bins(kBins, 0);
  const float most = range.largest(), width = (range.high - range.low) / kBins;
  for (int i = 0; i < kBins; ++i) {
    const float middle = range.low + (static_cast<float>(i) + 0.5f) * width;
    bins[static_cast<size_t>(std::min(kBins - 1, static_cast<int>(std::abs(middle) / most * kBins)))] +=
        range.bins[static_cast<size_t>(i)];
  }
  return bins;
}

// Where the sum of the squared errors of all values is least. Errors are those behind the function: within the range a step
// makes step^2 / 12 of them on average, times the square of the function's slope.
Range least_error(const Range& range, const Function& behind) {
  const float width = (range.high - range.low) / kBins;
  const auto f = [&](double x) { return behind ? behind(x) : x; };
  std::vector<double> at(kBins), value(kBins), slope(kBins), count(kBins);
  for (int i = 0; i < kBins; ++i) {
    const auto b = static_cast<size_t>(i);
    at[b] = static_cast<double>(range.low) + (i + 0.5) * static_cast<double>(width);
    value[b] = f(at[b]);
    slope[b] = std::abs(f(at[b] + 0.5 * static_cast<double>(width)) - f(at[b] - 0.5 * static_cast<double>(width))) /
               static_cast<double>(width);
    count[b] = static_cast<double>(range.bins[b]);
  }
  // Zero has a step of its own.
  const auto zero = static_cast<size_t>(std::clamp(static_cast<int>(-range.low / width), 0, kBins - 1));
  count[zero] = std::max(0.0, count[zero] - range.zeros);
  const auto square = [](double x) { return x * x; };
  const auto error_of = [&](double low, double high) {
    const double step = square((high - low) / 255) / 12, at_low = f(low), at_high = f(high);
    double sum = 0;
    for (size_t i = 0; i < count.size(); ++i) {
      if (count[i] == 0) continue;
      if (at[i] < low) sum += count[i] * square(value[i] - at_low);
      else if (at[i] > high) sum += count[i] * square(value[i] - at_high);
      else sum += count[i] * step * square(slope[i]);
    }
    return sum;
  };
  Range best;
  best.low = range.low, best.high = range.high;
  double least = error_of(static_cast<double>(range.low), static_cast<double>(range.high));
  // One end after the other: each is best for what the other is.
  constexpr int kSteps = 64;
  for (int round = 0; round < 3; ++round)
    for (const bool low : {true, false}) {
      const float end = low ? range.low : range.high;
      for (int s = 1; s <= kSteps && end != 0; ++s) {
        const float cut = end * static_cast<float>(s) / kSteps;
        const double error = low ? error_of(static_cast<double>(cut), static_cast<double>(best.high))
                                 : error_of(static_cast<double>(best.low), static_cast<double>(cut));
        if (error < least) least = error, (low ? best.low : best.high) = cut;
      }
    }
  return best;
}

// Both ends, towards zero, as long as the function changes by less than half a step of what it gives or reads.
void move_in(double& low, double& high, const Function& behind) {
  constexpr int kParts = 64;
  const double most = 0.5 * std::min(high - low, std::abs(behind(high) - behind(low))) / 255;
  for (double* end : {&low, &high}) {
    const double from = *end, value = behind(from);
    for (int part = kParts - 1; part > 0; --part) {
      const double at = from * part / kParts;
      if (std::abs(behind(at) - value) > most) break;
      *end = at;
    }
  }
}

}  // namespace

std::string_view name_of(Cut cut) {
  switch (cut) {
    case Cut::min_max: return "minmax";
    case Cut::mse: return "mse";
    case Cut::percentile: return "percentile";
    case Cut::entropy: return "entropy";
  }
  return "?";
}

bool parse_name(std::string_view text, Cut& cut) {
  for (const Cut c : {Cut::min_max, Cut::mse, Cut::percentile, Cut::entropy})
    if (text == name_of(c)) return cut = c, true;
  return false;
}

Range cut_range(const Range& range, Cut cut, double percentile, const Function& behind) {
  Range result;
  result.low = range.low, result.high = range.high;
  if (cut == Cut::min_max || range.bins.empty() || !(range.high > range.low)) return result;
  if (cut == Cut::mse) return least_error(range, behind);
  const std::vector<float> bins = magnitudes(range);
  float bound = range.largest();
  if (cut == Cut::percentile) {
    const double all = std::accumulate(bins.begin(), bins.end(), 0.0);
    double sum = 0;
    for (int i = 0; i < kBins; ++i) {
      sum += static_cast<double>(bins[static_cast<size_t>(i)]);
      if (sum < all * percentile / 100) continue;
      bound = range.largest() * static_cast<float>(i + 1) / kBins;
      break;
    }
  } else {
    double best = INFINITY;
    int keep = kBins;
    for (int k = 128; k <= kBins; k += 16)
      if (const double d = divergence(bins, k); d < best) best = d, keep = k;
    bound = range.largest() * static_cast<float>(keep) / kBins;
  }
  result.low = std::max(range.low, -bound);
  result.high = std::min(range.high, bound);
  return result;
}

ChannelSteps steps_of_channels(const Range& range, Cut cut, const Function& behind) {
  const size_t count = range.lows.size();
  std::vector<double> low(count), high(count);
  for (size_t c = 0; c < count; ++c) {
    low[c] = static_cast<double>(range.lows[c]), high[c] = static_cast<double>(range.highs[c]);
    if (behind && cut != Cut::min_max) move_in(low[c], high[c], behind);
  }
  ChannelSteps best;
  double least = INFINITY;
  for (int zero = 0; zero <= 255; ++zero) {
    std::vector<float> steps(count, 0.0f);
    double loss = 0;
    for (size_t c = 0; c < count; ++c) {
      const double width = (high[c] - low[c]) / 255;
      if (!(width > 0)) continue;
      const double step = std::max(low[c] < 0 ? -low[c] / zero : 0, high[c] > 0 ? high[c] / (255 - zero) : 0);
      steps[c] = static_cast<float>(step);
      loss += step / width * (step / width);
    }
    if (loss < least) least = loss, best = {std::move(steps), static_cast<uint8_t>(zero), 0};
  }
  // Channels of zeros alone, and those that nobody would notice.
  constexpr float kLeastPart = 1.0f / 1024;
  const float least_step = std::max(kLeastPart * best.largest(), 1e-20f);
  for (float& step : best.steps) step = std::max(step, least_step);
  return best;
}

}  // namespace sparkle::fix
