#include "fix/precision/ranges.h"

#include <algorithm>
#include <cmath>
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

// Adds to what is known of each channel, along an axis.
void look_at_channels(Range& range, const HostTensor& t, int axis) {
  if (axis < 0) axis += t.shape.size();
  if (axis < 0 || axis >= t.shape.size() || t.elements() == 0) return;
  const auto channels = static_cast<size_t>(t.shape[axis]);
  int64_t inner = 1;
  for (int a = axis + 1; a < t.shape.size(); ++a) inner *= t.shape[a];
  range.means.resize(channels, 0), range.lows.resize(channels, 0), range.highs.resize(channels, 0);
  const double part = static_cast<double>(channels) / static_cast<double>(t.elements());
  for (int64_t i = 0; i < t.elements(); i += inner) {
    const size_t c = static_cast<size_t>(i / inner) % channels;
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      const float v = t.data<float>()[i + k];
      if (!std::isfinite(v)) continue;
      sum += static_cast<double>(v);
      range.lows[c] = std::min(range.lows[c], v), range.highs[c] = std::max(range.highs[c], v);
    }
    range.means[c] += sum * part;
  }
}

void count(Range& range, const HostTensor& t) {
  range.bins.resize(kBins, 0);
  const float width = range.high - range.low;
  if (!(width > 0)) return;
  for (int64_t i = 0; i < t.elements(); ++i) {
    const float v = t.data<float>()[i];
    if (!std::isfinite(v)) continue;
    if (v == 0) ++range.zeros;
    const auto bin = static_cast<int>((v - range.low) / width * kBins);
    range.bins[static_cast<size_t>(std::clamp(bin, 0, kBins - 1))] += 1;
  }
}

}  // namespace

float Range::largest() const { return std::max(std::abs(low), std::abs(high)); }

Result<Ranges> measure_ranges(const Document& doc, const std::shared_ptr<Backend>& backend, const std::vector<Sample>& samples,
                              const RangeOptions& options) {
  SPARKLE_TRY(runner, Runner::open(doc, backend, results_of(doc)));
  Ranges ranges;
  for (int pass = 0; pass < (options.bins ? 2 : 1); ++pass)
    for (const Sample& sample : samples) {
      SPARKLE_TRY(values, runner.run(sample));
      const auto take = [&](const std::string& name, const HostTensor& t) {
        if (t.dtype != DType::f32) return;
        const auto [at, first] = ranges.emplace(name, Range());
        if (pass != 0) return count(at->second, t);
        widen(at->second, t, first);
        if (const auto axis = options.channels.find(name); axis != options.channels.end())
          look_at_channels(at->second, t, axis->second);
      };
      for (size_t i = 0; i < values.size(); ++i) take(runner.names()[i], values[i]);
      for (size_t i = 0; i < sample.size(); ++i) take(runner.inputs()[i].name, sample[i]);
    }
  for (auto& [name, range] : ranges)
    for (double& mean : range.means) mean /= static_cast<double>(samples.size());
  return ranges;
}

}  // namespace sparkle::fix
