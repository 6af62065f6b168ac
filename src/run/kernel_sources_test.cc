// What a GPU would be given, for a described card that compiles programs.
#include "run/opening/kernel_sources.h"

#include <gtest/gtest.h>

#include "device/device_json.h"
#include "families/pointwise/pointwise.h"

namespace sparkle {
namespace {

TEST(KernelSources, HoldProgramsThatCudaCompiles) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  device->by_roofs = false, device->compiles = true;
  Stage stage;
  stage.params = PointwiseParams{2, {{PointwiseOp::add, 0, 1, 0, 0, 0}, {PointwiseOp::silu, 2, 0, 0, 0, 0}}};
  for (int i = 0; i < 2; ++i) stage.inputs.push_back(dense_desc(DType::f16, {3, 64}));
  stage.outputs = {dense_desc(DType::f16, {3, 64})};
  const auto text_by = [&](const char* variant) {
    return kernel_sources(stage, LoopSchedule{variant, "fma-f32", 0}, *device, 0);
  };
  const auto compiled = text_by("compiled"), interpreted = text_by("interpreted");
  if (!compiled.ok() && compiled.error().reason == Reason::no_kernel) GTEST_SKIP() << "SKIP: this build has no CUDA backend";
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  for (const char* part :
       {"  kernel sparkle_program_", ": 1 x 1 x 1 blocks of 128 threads", "// silu(add(x0,x1)): f16 f16 to f16",
        "evaluate<Op::silu>(v2", "if (chunk >= 24u) return;", "load_cells(c1, x1);"})
    EXPECT_NE(compiled->find(part), std::string::npos) << part << "\n" << *compiled;
  ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
  EXPECT_NE(interpreted->find("kernel sparkle_pointwise_f32"), std::string::npos) << *interpreted;
  EXPECT_EQ(interpreted->find("SPARKLE_KERNEL"), std::string::npos) << *interpreted;
}

}  // namespace
}  // namespace sparkle
