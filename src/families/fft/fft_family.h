// What the files of the fft family share.
#pragma once

#include "families/family.h"
#include "families/fft/fft.h"
#include "families/fft/fft_axis.h"
#include "families/stage.h"

namespace sparkle {

// A stage cut as a schedule says, in numbers of vectors.
struct FftWork {
  double points = 0;         // of all planes that a strip holds, as complex vectors
  double strips = 1;         // of a part
  double parts = 1;          // groups, or vectors of channels that have a filter each
  double products = 0;       // complex products of vectors in a strip
  double passes = 0;         // cycles of transforms, splits and loading and storing in a strip
  double calls = 0;          // of lines, rows and slots in a strip
  double weights = 0;        // bytes, packed
  double weights_strip = 0;  // bytes of them that a strip reads
  // Slots hold a vector of tiles or of channels; those of a strip go through together.
  FftAxis height, width;
  bool tiled = false, single = false, flat = false;
  double slots = 1, slot_tiles = 1, strip = 1, in_slots = 1, out_slots = 1;
  double lines = 1, line = 1;  // of a slot; points of one
};
FftWork fft_work(const Stage& stage, const FftSchedule& schedule, int64_t lanes, int registers);

// A complex product of vectors: four real ones and a share of what brings its operands.
inline constexpr double kFftProductCycles = 4.2;

Footprint fft_footprint(const Stage& stage, const Schedule& schedule, const Device& device);
Blocking fft_blocking(const Stage& stage, const Schedule& schedule, const Device& device);

// At most `most` sizes of transforms for an axis: for each number of tiles the smallest, those with the least work first.
std::vector<int64_t> fft_sizes_for(const FftAxis& axis, size_t most);

// The same for GPUs. `f`: the nominal work, and bytes per level to be filled in.
std::vector<Schedule> fft_tile_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not);
Blocking fft_tile_blocking(const Stage& stage, const FftTileSchedule& schedule, const Device& device);
Footprint fft_tile_footprint(const Stage& stage, const FftTileSchedule& schedule, const Device& device, Footprint f);

}  // namespace sparkle
