// What measurements are summed up by. The median: the middle one, or the mean of the middle two.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace sparkle {

// 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// In the unit of the values; zeros of nothing. p95: of n values the one that (95 n / 100, rounded down) are not above.
struct Spread {
  double min = 0, median = 0, p95 = 0;
};

inline Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), median(values), values[values.size() * 95 / 100]};
}

// The least of the values that `percent` of them are not above (nearest rank); 0 of nothing. `sorted`: in ascending order.
inline double percentile(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace sparkle
