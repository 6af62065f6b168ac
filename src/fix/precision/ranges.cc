#include "fix/precision/ranges.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace sparkle::fix {
namespace {

std::vector<std::string> results_of(const Document& doc) {
  std::vector<std::string> names;
  for (const auto& node : doc.graph().node())
    for (const std::string& name : node.output())
      if (!name.empty()) names.push_back(name);
  return names;
}

void widen(Range& range, const HostTensor& t, bool first) {
  if (first) range.low = range.high = 0;  // zero is always among them: padding is
  for (int64_t i = 0; i < t.elements(); ++i) {
    const float v = t.data<float>()[i];
    if (!std::isfinite(v)) continue;
    range.low = std::min(range.low, v);
    range.high = std::max(range.high, v);
  }
}

void count(Range& range, const HostTensor& t) {
  range.bins.resize(kBins, 0);
  const float width = range.high - range.low;
  if (!(width > 0)) return;
  for (int64_t i = 0; i < t.elements(); ++i) {
    const float v = t.data<float>()[i];
    if (!std::isfinite(v)) continue;
    const auto bin = static_cast<int>((v - range.low) / width * kBins);
    range.bins[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))] += 1;
  }
}

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

}  // namespace

float Range::largest() const { return std::max(std::abs(low), std::abs(high)); }

Result<Ranges> measure_ranges(const Document& doc, const std::shared_ptr<Backend>& backend, const std::vector<Sample>& samples,
                              bool with_bins) {
  SPARKLE_TRY(runner, Runner::open(doc, backend, results_of(doc)));
  Ranges ranges;
  for (int pass = 0; pass < (with_bins ? 2 : 1); ++pass)
    for (const Sample& sample : samples) {
      SPARKLE_TRY(values, runner.run(sample));
      const auto take = [&](const std::string& name, const HostTensor& t) {
        if (t.dtype != DType::f32) return;
        const auto [at, first] = ranges.emplace(name, Range());
        if (pass == 0) widen(at->second, t, first);
        else count(at->second, t);
      };
      for (size_t i = 0; i < values.size(); ++i) take(runner.names()[i], values[i]);
      for (size_t i = 0; i < sample.size(); ++i) take(runner.inputs()[i].name, sample[i]);
    }
  return ranges;
}

std::string_view name_of(Cut cut) {
  switch (cut) {
    case Cut::min_max: return "minmax";
    case Cut::percentile: return "percentile";
    case Cut::entropy: return "entropy";
  }
  return "?";
}

bool parse_name(std::string_view text, Cut& cut) {
  for (const Cut c : {Cut::min_max, Cut::percentile, Cut::entropy})
    if (text == name_of(c)) return cut = c, true;
  return false;
}

Range cut_range(const Range& range, Cut cut, double percentile) {
  Range result{range.low, range.high, {}};
  if (cut == Cut::min_max || range.bins.empty() || !(range.high > range.low)) return result;
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

}  // namespace sparkle::fix
