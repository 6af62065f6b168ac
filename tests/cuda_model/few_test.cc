// The kernels of the gemm variant "few" on random odd layers, in the functional model against double precision; and every one
// of them is tried.
#include "cuda_model/few_testing.h"

#include <gtest/gtest.h>

#include <set>

#include "cuda_model/model.h"

namespace sparkle::cuda {
namespace {

TEST(FewKernels, AreRightOnRandomLayers) {
  std::set<std::string> tried;
  for (uint32_t seed = 1; seed <= 240; ++seed) {
    std::mt19937 random(seed * 7919);
    const FewLayer layer = random_few_layer(random);
    const std::string kernel = few_kernel_of(layer);
    ASSERT_NE(kernel, "") << layer.text();
    tried.insert(kernel);
    EXPECT_EQ(run_few_in_model(layer, seed, 1 + seed % 3), "") << "seed " << seed << ": " << layer.text() << " by " << kernel;
  }
  for (const cuda_model::Kernel* kernel : cuda_model::all_kernels())
    if (std::string_view(kernel->name).starts_with("sparkle_gemm_few_")) {
      EXPECT_TRUE(tried.contains(kernel->name)) << kernel->name << " was not tried";
    }
}

// Images in bands, the last one shorter, by copies and through registers; more maps than a kernel has.
TEST(FewKernels, AreRightInBands) {
  FewLayer layer;
  layer.n = 2, layer.c = 3, layer.k = 18, layer.h = 72, layer.w = 150, layer.r = layer.s = 3, layer.bias = true;
  layer.p = 70, layer.q = 148;
  EXPECT_EQ(run_few_in_model(layer, 1, 3), "");
  layer.pad_h = layer.pad_w = 1, layer.p = 72, layer.q = 150;
  EXPECT_EQ(run_few_in_model(layer, 2, 2), "");
}

}  // namespace
}  // namespace sparkle::cuda
