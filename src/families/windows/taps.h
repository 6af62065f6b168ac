// Which taps of a sliding filter fall inside the input, along one axis: what lets a kernel run without bounds checks, and what
// a footprint counts as executed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sparkle {

// One axis of a Window: input coordinate = output * stride + tap * dilation - pad.
struct Axis {
  int64_t in = 1, out = 1, filter = 1, stride = 1, dilation = 1, pad = 0;
};

// Taps [begin,end) that lie inside the input; empty (begin == end) where none does.
struct Taps {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Taps&, const Taps&) = default;
};

inline Taps taps_at(const Axis& axis, int64_t output) {
  const int64_t start = output * axis.stride - axis.pad;  // coordinate of tap 0
  const auto first_reaching = [&](int64_t coordinate) {   // smallest tap with start + tap * dilation >= coordinate
    const int64_t distance = coordinate - start;
    return distance <= 0 ? 0 : (distance + axis.dilation - 1) / axis.dilation;
  };
  const int64_t begin = std::min(first_reaching(0), axis.filter);
  const int64_t end = std::min(first_reaching(axis.in), axis.filter);
  return {begin, std::max(begin, end)};
}

// A range of outputs [begin,end) that use the same taps.
struct TapRange {
  int64_t begin = 0, end = 0;
  Taps taps;
  int64_t size() const { return end - begin; }
  friend bool operator==(const TapRange&, const TapRange&) = default;
};

// In order, covering [0,out).
inline std::vector<TapRange> tap_ranges(const Axis& axis) {
  std::vector<TapRange> ranges;
  for (int64_t o = 0; o < axis.out; ++o) {
    const Taps taps = taps_at(axis, o);
    if (!ranges.empty() && ranges.back().taps == taps) {
      ranges.back().end = o + 1;
    } else {
      ranges.push_back({o, o + 1, taps});
    }
  }
  return ranges;
}

// Taps before the coordinate `limit`, summed over all outputs of the axis: all of them for the first outputs, none for the
// last, and between these a falling row, of which a long one is taken as straight. No walk along the axis: planning an endless
// one takes no longer than planning a short one.
inline double taps_before(const Axis& axis, int64_t limit) {
  constexpr int64_t kLongRow = 4096;
  const auto ceil_div = [](int64_t a, int64_t b) { return a <= 0 ? 0 : 1 + (a - 1) / b; };
  const int64_t room = limit + axis.pad;
  const int64_t full = std::min(ceil_div(room - (axis.filter - 1) * axis.dilation, axis.stride), axis.out);
  const int64_t none = std::clamp(ceil_div(room, axis.stride), full, axis.out);
  const auto taps = [&](int64_t output) { return ceil_div(room - output * axis.stride, axis.dilation); };
  double sum = static_cast<double>(full) * static_cast<double>(axis.filter);
  if (none - full > kLongRow)
    return sum + static_cast<double>(none - full) * static_cast<double>(taps(full) + taps(none - 1)) / 2;
  for (int64_t o = full; o < none; ++o) sum += static_cast<double>(taps(o));
  return sum;
}

// Taps inside the input, summed over all outputs of the axis.
inline double taps_inside(const Axis& axis) { return taps_before(axis, axis.in) - taps_before(axis, 0); }

}  // namespace sparkle
