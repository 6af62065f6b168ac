// One axis of a convolution cut into tiles for cyclic transforms. A tile of `tile` outputs reads span() inputs; in a transform
// of fewer points outputs come out right as long as only padding falls on other inputs' places.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "families/stage.h"

namespace sparkle {

struct FftAxis {
  int64_t in = 1, out = 1, stride = 1, dilation = 1;
  int64_t taps = 1;    // of the filter as it is
  int64_t first = 0;   // taps of the zero-spread filter, dilation counted: those before `first` only ever see padding,
  int64_t filter = 1;  // and so do those from first + filter
  int64_t pad = 0;     // the first output's first tap is at input -pad, `first` counted
  int64_t tile = 1, tiles = 1, points = 1;

  // Inputs of the tile that are no padding: [begin, end) of its points, and the input that point 0 stands for.
  struct Part {
    int64_t origin = 0, begin = 0, end = 0;
    int64_t outputs = 0;
  };
  Part part(int64_t index) const;
  int64_t span() const { return (tile - 1) * stride + filter; }
};

// The axis (1: height, 2: width) of a stage of the fft family, not cut yet.
FftAxis fft_axis(const Stage& stage, size_t axis);

// Cuts the axis for transforms of `points`; false where not even a single output fits.
bool cut(FftAxis& axis, int64_t points);

// Sizes of transforms: products of 2, 3 and 5 from `least` on, at most `count` of them and none above kMostFftPoints.
inline constexpr int64_t kMostFftPoints = 32768;
bool is_fft_size(int64_t points);
std::vector<int64_t> fft_sizes(int64_t least, int64_t count);

// Factors of a transform in the order in which its passes take them, 8 the largest, or 4 with fewer than 32 registers. Empty
// for one point.
std::vector<int> fft_radices(int64_t points, int registers);

// exp(-2 pi i j / points), the factors of transforms.
std::complex<double> fft_root(int64_t j, int64_t points);

}  // namespace sparkle
