// Sizes and tiles of transforms along one axis.
#include "families/fft/fft_axis.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "families/fft/fft.h"

namespace sparkle {
namespace {

// Points that tiles of `tile` outputs need: as many as they read, fewer where what would fall together is padding.
int64_t points_needed(FftAxis axis, int64_t tile) {
  axis.tile = tile, axis.tiles = (axis.out + tile - 1) / tile;
  const int64_t span = axis.span();
  if (axis.tiles > 2) return span;
  int64_t needed = 1;
  for (int64_t i = 0; i < axis.tiles; ++i) {
    const FftAxis::Part part = axis.part(i);
    if (part.begin < part.end) needed = std::max({needed, span - part.begin, part.end});
  }
  return std::max(needed, (tile - 1) * axis.stride + 1);
}

}  // namespace

FftAxis::Part FftAxis::part(int64_t index) const {
  Part p;
  p.outputs = std::min(tile, out - index * tile);
  p.origin = index * tile * stride - pad;
  p.begin = std::clamp<int64_t>(-p.origin, 0, span());
  p.end = std::clamp<int64_t>(in - p.origin, p.begin, span());
  return p;
}

FftAxis fft_axis(const Stage& stage, size_t i) {
  const Window& w = get<FftParams>(stage.params).window;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  FftAxis axis;
  axis.in = i == 1 ? x.h : x.w, axis.out = i == 1 ? y.h : y.w;
  axis.stride = w.stride[i], axis.dilation = w.dilation[i], axis.taps = w.filter[i];
  const int64_t reach = (w.filter[i] - 1) * w.dilation[i] + 1, last = std::max<int64_t>(0, axis.out - 1) * axis.stride;
  axis.first = std::clamp<int64_t>(w.pad_begin[i] - last, 0, reach - 1);
  axis.filter = std::clamp<int64_t>(w.pad_begin[i] + axis.in, axis.first + 1, reach) - axis.first;
  axis.pad = w.pad_begin[i] - axis.first;
  return axis;
}

bool cut(FftAxis& axis, int64_t points) {
  if (axis.out < 1 || points_needed(axis, 1) > points) return false;
  // The largest tile that fits: what is needed grows with the tile but for the step from three tiles to two.
  int64_t low = 1, high = std::min(axis.out, (points - 1) / axis.stride + 1);
  if (points_needed(axis, axis.out) <= points) {
    low = axis.out;
  } else if (const int64_t half = (axis.out + 1) / 2; points_needed(axis, half) <= points) {
    low = half;
  } else {
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (points_needed(axis, middle) <= points) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
  }
  axis.points = points;
  axis.tiles = (axis.out + low - 1) / low;
  axis.tile = (axis.out + axis.tiles - 1) / axis.tiles;
  if (points_needed(axis, axis.tile) > points) axis.tile = low;
  return true;
}

bool is_fft_size(int64_t n) {
  if (n < 1) return false;
  for (const int64_t p : {2, 3, 5})
    while (n % p == 0) n /= p;
  return n == 1;
}

std::vector<int64_t> fft_sizes(int64_t least, int64_t count) {
  static const std::vector<int64_t> all = [] {
    std::vector<int64_t> list;
    for (int64_t n = 4; n <= kMostFftPoints; ++n)
      if (is_fft_size(n)) list.push_back(n);
    return list;
  }();
  const auto from = std::lower_bound(all.begin(), all.end(), least);
  return {from, from + std::min<int64_t>(count, all.end() - from)};
}

std::vector<int> fft_radices(int64_t points, int registers) {
  std::vector<int> radices;
  int twos = 0;
  while (points % 2 == 0) points /= 2, ++twos;
  const bool eight = registers >= 32;
  // 16 as 4 x 4 and 2 as the rest: threes of a power go to 8, and what is left over to 4.
  while (eight && twos >= 3 && twos != 4) radices.push_back(8), twos -= 3;
  while (twos >= 2) radices.push_back(4), twos -= 2;
  if (twos == 1) radices.push_back(2);
  for (const int p : {5, 3})
    while (points % p == 0) radices.push_back(p), points /= p;
  return radices;
}

std::complex<double> fft_root(int64_t j, int64_t points) {
  const double angle = -2 * std::numbers::pi * static_cast<double>(j % points) / static_cast<double>(points);
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace sparkle
