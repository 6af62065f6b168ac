// How GPUs take samples: a thread makes some channels of one output position, so that its taps are found once for them.
// Neighbouring threads take neighbours along whichever of channels and columns is innermost in memory.
#pragma once

#include <array>
#include <vector>

#include "families/stage.h"

namespace sparkle {

inline constexpr int64_t kSampleChannels = 4;  // of a thread at most
inline constexpr int kSampleSpatial = 3;       // axes at most

struct SampleWalk {
  struct Axis {
    int64_t size = 1, x = 0, grid = 0, y = 0;  // strides in elements
  };
  std::vector<Axis> axes;                                     // of the output, innermost first, none of size 1
  int channel_axis = -1;                                      // among them
  int64_t count = 0;                                          // threads
  int64_t groups = 1;                                         // of channels: those of a thread lie so many apart
  bool fits_31_bits = true;                                   // places, and numbers of up to twice an axis
  std::array<int64_t, kSampleSpatial> elements{}, strides{};  // of x's spatial axes, the innermost last
};

SampleWalk sample_walk(const Stage& stage);

}  // namespace sparkle
