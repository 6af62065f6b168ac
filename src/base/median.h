// The median of measurements: the middle one, or the mean of the middle two.
#pragma once

#include <algorithm>
#include <vector>

namespace sparkle {

// 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 ? *middle : (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace sparkle
