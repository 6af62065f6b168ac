// The variant "few": windows of stride 1 over planes of a few channels, multiplied in fp16 by Tensor Cores
// (backends/cuda/kernels/gemm_few.cuh). A band of an image's planes lies in shared memory in fp16; two neighbouring columns
// of outputs are a row of the product, maps times these two are its columns, and k goes over channels, filter rows and eight
// columns of the input, of which a filter of up to seven leaves one for the second output. And "wmma", the plain way to do the
// same.
#pragma once

#include <optional>

#include "families/family.h"
#include "families/stage.h"

namespace sparkle {

inline constexpr std::string_view kCudaFew = "few", kCudaWmma = "wmma";
// Steps of k (16 deep: two rows of a filter in one channel) and maps by four that kernels are made for, at most; threads; and
// what a filter may have: columns, and rows in all channels.
inline constexpr int kFewThreads = 128, kFewColumns = 7, kFewRows = 28, kFewMaps = 32;
struct FewKernel {
  int steps, tiles;
  int blocks;  // a core, by its registers
};
inline constexpr FewKernel kFewKernels[] = {{2, 1, 8}, {4, 1, 8},  {8, 1, 6}, {14, 1, 5}, {2, 2, 8}, {4, 2, 6},
                                            {8, 2, 5}, {14, 2, 4}, {2, 4, 6}, {4, 4, 5},  {8, 4, 4}, {14, 4, 3}};
// Those for one channel, by the filter's rows: k is half of these, rounded up.
struct FewRowsKernel {
  int rows, tiles, blocks;
};
inline constexpr FewRowsKernel kFewRowsKernels[] = {{3, 1, 8}, {5, 1, 6}, {7, 1, 6}, {3, 2, 6}, {5, 2, 5},
                                                    {7, 2, 4}, {3, 4, 4}, {5, 4, 3}, {7, 4, 3}};

struct FewTile {
  FewKernel kernel{};
  int64_t groups = 1;           // of maps, each of which reads x
  int64_t rows = 0, bands = 0;  // of outputs in a band, bands of an image
  int64_t in_rows = 0;          // of inputs, padding among them
  int64_t words = 0;            // of two columns in a row
  int64_t plane_bytes = 0;      // of a channel
  int64_t walks = 0,
          walk_rows = 0;   // one channel: warps walk down a band in two stretches of so many rows at once; 0: they do not
  bool by_copies = false;  // x comes by asynchronous copies as it lies, 16 bytes each; else by elements
  int64_t image_bytes = 0, staged_bytes = 0, filter_bytes = 0;
  int64_t shared_bytes() const { return image_bytes + staged_bytes + filter_bytes; }
  int64_t blocks_a_core(int64_t shared_of_core) const;
};
// Whether operands are stored in fp16, or in fp32 and rounded to fp16.
bool multiplies_fp16(const Stage& stage);
// Nothing where the stage is not the variant's, with the reason.
std::optional<FewTile> few_tile(const Stage& stage, Reason& why_not);

std::vector<Schedule> few_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not);
Footprint few_footprint(const Stage& stage, const Device& device);

}  // namespace sparkle
