// What transforms in a GPU's shared memory need there: derived from the schedule alone, so that plans keep within a device's
// limits before any driver sees a shader.
#pragma once

#include "families/fft/fft.h"
#include "families/fft/fft_axis.h"

namespace sparkle {

// Passes of a transform that shaders are written for, and registers enough for passes of 8.
inline constexpr size_t kMostFftPasses = 5;
inline constexpr int kFftGpuRegisters = 32;

// Complex points between a plane's lines and of a plane, gaps counted: lines lie an odd distance apart, and a single one has a
// gap every 16 points, so that neighbouring threads touch different banks.
int64_t fft_line_stride(int64_t rows, int64_t columns);
inline int64_t fft_plane_points(int64_t rows, int64_t columns) { return rows * fft_line_stride(rows, columns); }
inline int64_t fft_shared_bytes(const FftTileSchedule& s) { return 8 * s.pairs * fft_plane_points(s.rows, s.columns); }

// Frequencies of two real planes that are one complex transform: the columns of one sign.
inline int64_t fft_frequencies(const FftTileSchedule& s) { return s.rows * (s.columns / 2 + 1); }

}  // namespace sparkle
