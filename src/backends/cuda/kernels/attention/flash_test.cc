// Every kernel of attention over blocks of queries on random odd shapes, in the functional model against double precision.
#include <gtest/gtest.h>

#include "backends/cuda/kernels/attention/flash_testing.h"
#include "families/attention/flash_tiles.h"

namespace sparkle::cuda {
namespace {

std::vector<FlashKernel> all_kernels() {
  std::vector<FlashKernel> kernels;
  for (const int size : kFlashSizes) {
    for (const bool wide : {false, true}) {
      if (wide && !has_wide_flash(size)) continue;
      for (const DType type : {DType::f16, DType::bf16}) {
        const int queries = flash_queries(wide);
        kernels.push_back(
            {"sparkle_flash_" + std::to_string(queries) + "x" + std::to_string(size) + "_" + std::string(name_of(type)), type,
             queries, size, 32 * kFlashWarps, true});
      }
    }
  }
  for (const int size : kFlashFmaSizes)
    kernels.push_back(
        {"sparkle_flash_fma_" + std::to_string(size) + "_f32", DType::f32, kFlashFmaQueries, size, kFlashFmaThreads, false});
  return kernels;
}

class FlashKernels : public testing::TestWithParam<FlashKernel> {};

TEST_P(FlashKernels, AreRightOnRandomShapes) {
  const uint32_t seeds = GetParam().type == DType::bf16 ? 4 : 10;  // the same text as for fp16
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937 random(seed * 977 + static_cast<uint32_t>(GetParam().size));
    const AttentionCase c = random_attention(random, GetParam().size);
    EXPECT_EQ(run_in_model(GetParam(), c, seed), "") << "seed " << seed << ": " << c.text();
  }
}

// Scores far beyond what exponentials take, larger from block to block: sums are scaled down again and again.
TEST_P(FlashKernels, AreRightWhereScoresGrow) {
  AttentionCase c;
  c.heads = 1, c.queries = 3, c.keys = 333, c.depth = c.columns = GetParam().size, c.growth = 2;
  c.params.scale = 1;
  EXPECT_EQ(run_in_model(GetParam(), c, 1), "");
}

std::string name_of_kernel(const testing::TestParamInfo<FlashKernel>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Kernels, FlashKernels, testing::ValuesIn(all_kernels()), name_of_kernel);

}  // namespace
}  // namespace sparkle::cuda
