#include "device/memory_curve.h"

#include <algorithm>
#include <cmath>

namespace sparkle {
namespace {

// Times of one plateau lie within this factor, those of two further apart; four points make a plateau, since three may lie on
// the slope between levels where one is an outlier.
constexpr double kFlat = 1.2;
constexpr size_t kLeastPoints = 4;
// A level holds a working set as long as this share of its reads at most take the next level's time.
constexpr double kMissing = 0.25;

struct Plateau {
  size_t begin = 0, end = 0;
  double seconds = 0;  // a byte
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Without outliers, and never falling: a larger working set is not read faster (pool adjacent violators, on logarithms).
std::vector<double> smoothed(const std::vector<CurvePoint>& curve) {
  struct Pool {
    double sum = 0;
    size_t count = 0;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Pool> pools;
  for (size_t i = 0; i < curve.size(); ++i) {
    const size_t begin = i > 0 ? i - 1 : 0, end = std::min(curve.size(), i + 2);
    std::vector<double> near;
    for (size_t j = begin; j < end; ++j) near.push_back(curve[j].seconds_per_byte);
    // At the ends the smaller of two: what disturbs a measurement makes it longer.
    const double middle = near.size() == 2 ? std::min(near[0], near[1]) : median(near);
    pools.push_back({std::log(middle), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum, pools.back().count += last.count;
    }
  }
  std::vector<double> seconds;
  for (const Pool& pool : pools) seconds.insert(seconds.end(), pool.count, std::exp(pool.mean()));
  return seconds;
}

}  // namespace

std::vector<double> working_sets(double least, double most) {
  std::vector<double> sets;
  for (double bytes = std::exp2(std::floor(std::log2(std::max(least, 1.0)))); bytes <= most; bytes *= 2)
    for (const double set : {bytes, 1.5 * bytes})
      if (set >= least && set <= most) sets.push_back(set);
  return sets;
}

std::vector<CurveLevel> levels_of(std::span<const CurvePoint> measured) {
  std::vector<CurvePoint> curve;
  for (const CurvePoint& p : measured)
    if (p.bytes > 0 && p.seconds_per_byte > 0 && std::isfinite(p.bytes) && std::isfinite(p.seconds_per_byte))
      curve.push_back(p);
  std::sort(curve.begin(), curve.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.bytes < b.bytes; });
  if (curve.empty()) return {};
  const std::vector<double> seconds = smoothed(curve);
  std::vector<Plateau> plateaus;
  for (size_t i = 0; i < seconds.size();) {
    size_t end = i + 1;
    while (end < seconds.size() && seconds[end] <= kFlat * seconds[i]) ++end;
    if (end - i < kLeastPoints && end < seconds.size()) {
      ++i;
      continue;
    }
    // The end of the curve counts as a plateau where it is far from the last one: memory that few working sets reached.
    const auto at = [&](size_t index) { return seconds.begin() + static_cast<ptrdiff_t>(index); };
    const Plateau plateau{i, end, median({at(i), at(end)})};
    if (!plateaus.empty() && plateau.seconds < kFlat * plateaus.back().seconds) plateaus.back().end = end;
    else plateaus.push_back(plateau);
    i = end;
  }
  std::vector<CurveLevel> levels;
  for (size_t p = 0; p < plateaus.size(); ++p) {
    CurveLevel level{0, 1 / plateaus[p].seconds};
    if (p + 1 < plateaus.size()) {
      const double most = plateaus[p].seconds + kMissing * (plateaus[p + 1].seconds - plateaus[p].seconds);
      for (size_t i = plateaus[p].begin; i < plateaus[p + 1].end && seconds[i] <= most; ++i) level.bytes = curve[i].bytes;
    }
    levels.push_back(level);
  }
  return levels;
}

void put_caches(Device& device, std::span<const CurveLevel> levels, std::span<const double> rates_of_one_core) {
  if (device.memory.empty()) return;
  remove_caches(device);
  const int cores = std::max(1, device.cores);
  for (size_t i = 0; i + 1 < levels.size(); ++i) {
    MemoryLevel cache;
    cache.name = "L" + std::to_string(i + 2);
    cache.bytes = static_cast<int64_t>(levels[i].bytes);
    cache.total_bytes_per_second = levels[i].bytes_per_second;
    const double one = i < rates_of_one_core.size() ? rates_of_one_core[i] : 0;
    cache.bytes_per_second = one > 0 ? std::min(one, cache.total_bytes_per_second) : cache.total_bytes_per_second / cores;
    cache.shared_by = cores;
    device.memory.insert(device.memory.end() - 1, cache);
  }
}

void remove_caches(Device& device) {
  if (device.memory.empty()) return;
  const auto cache = [](const MemoryLevel& level) { return !level.filled_by_hand; };
  device.memory.erase(std::remove_if(device.memory.begin(), device.memory.end() - 1, cache), device.memory.end() - 1);
}

}  // namespace sparkle
