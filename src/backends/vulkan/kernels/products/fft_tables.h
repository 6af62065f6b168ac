// What the fft family's shaders read beside their operands: a record of sizes (glsl/fft_record.inc), roots of
// unity and places of frequencies; and filters at their frequencies, made on the host in double precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/vulkan/kernels/divisor.h"
#include "base/system/executor.h"
#include "families/fft/fft_tiles.h"
#include "families/stage.h"

namespace sparkle::vulkan {

struct FftRecord {
#include "backends/vulkan/glsl/record_fields.inc"
#include "backends/vulkan/glsl/fft_record.inc"
};

consteval bool fft_record_has_no_gaps() {
  size_t end = 0;
  bool none = true;
#define FIELD(name, bytes) none &= offsetof(FftRecord, name) == end, end += (bytes);
#include "backends/vulkan/glsl/record_places.inc"
#include "backends/vulkan/glsl/fft_record.inc"
#undef FIELD
  return none && end == sizeof(FftRecord);
}
static_assert(fft_record_has_no_gaps());

// A stage of the family cut as a schedule says, in numbers of planes.
struct FftCut {
  FftAxis height, width;
  bool whole = false;
  int64_t groups = 1, depth = 1, filters = 1;  // of a group; where each channel has a filter, all are one group
  int64_t tiles = 1;                           // of all images
  int64_t rows = 1, columns = 1, frequencies = 1;
  int64_t pairs_in() const { return (depth + 1) / 2; }
  int64_t pairs_out() const { return (filters + 1) / 2; }
};
// Errors: filter_not_served, groups_not_served.
Result<FftCut> fft_cut(const Stage& stage, const FftTileSchedule& schedule);

// Sizes, strides and epilogue; what depends on the dispatch is left at zero.
FftRecord fft_record(const Stage& stage, const FftCut& cut);

// Passes of a transform as constants of a pipeline, 1 for those that there are not.
std::vector<uint32_t> fft_passes(int64_t points);
// Roots of both lengths, columns first, as pairs of floats; and places, as the shaders' push constants say.
std::vector<float> fft_roots(const FftCut& cut);
std::vector<int32_t> fft_offsets(const FftCut& cut);

// Where a filter's frequencies go, in floats.
struct FftPacked {
  FftCut cut;
  FeatureMap w;
  int64_t offset = 0;  // of the weights' first element
  int64_t outers = 1;  // groups' channels, those up to a whole step of the product counted
  int64_t pair = 0, frequency = 0, outer = 0;
  int64_t floats = 0;
  DType given = DType::f32;  // of the weights as they are

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const;
};

}  // namespace sparkle::vulkan
