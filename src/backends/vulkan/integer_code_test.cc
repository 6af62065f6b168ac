// What drivers make of the integer kernels, where they tell: no spills, no scratch memory, and on AMD's RDNA 3 dot products of
// bytes. Runs on any machine with Mesa's drm-shim (AMDGPU_GPU_ID=navi31), else skips.
#include "backends/vulkan/pipelines.h"
#include "backends/vulkan/vulkan_testing.h"

namespace sparkle::vulkan {
namespace {

// 64 channels of 28 x 28 to 128, 1x1, as most layers of a quantised network.
Stage convolution(DType weights) {
  GemmParams p;
  p.epilogue.scale = p.epilogue.bias = true;
  const Dims x{1, 64, 28, 28}, w{128, 64, 1, 1}, y{1, 128, 28, 28}, list{128}, one{1};
  return {p,
          {{DType::u8, x, channels_last(x)},
           {weights, w, row_major(w)},
           {DType::f32, list, row_major(list)},
           {DType::i32, list, row_major(list)},
           {DType::u8, one, row_major(one)},
           {weights, one, row_major(one)},
           {DType::u8, one, row_major(one)}},
          {{DType::u8, y, channels_last(y)}}};
}
Stage depthwise() {
  Stage stage = convolution(DType::i16);
  const Epilogue e = std::get<GemmParams>(stage.params).epilogue;
  DepthwiseParams p;
  p.window.filter = {1, 3, 3}, p.window.pad_begin = {0, 1, 1};
  p.epilogue = e;
  stage.params = p;
  const Dims x{1, 128, 28, 28}, w{128, 1, 3, 3};
  stage.inputs[0] = {DType::u8, x, channels_last(x)};
  stage.inputs[1] = {DType::i16, w, row_major(w)};
  return stage;
}

TEST(VulkanIntegerCode, FitsTheRegistersAndUsesDotProducts) {
  ContextOptions options;
  options.cache = false;
  options.capture = true;
  std::string why;
  const auto backend = test_backend(options, why);
  if (!backend) GTEST_SKIP() << why;
  if (!backend->context().features().statistics) GTEST_SKIP() << "the driver tells nothing of compiled shaders";
  const Device& device = backend->device();
  for (const Stage& stage : {convolution(DType::i8), depthwise()})
    for (const Variant& variant : info(stage.family()).variants) {
      Reason why_not = Reason::none;
      if (variant.device == DeviceKind::vulkan)
        for (const Schedule& schedule : info(stage.family()).schedules(stage, variant, device, why_not)) {
          const auto kernel = backend->compile(stage, schedule, 2);
          ASSERT_TRUE(kernel.ok()) << kernel.error().message;
        }
    }
  const bool dots = device.unit("dot-i8") != nullptr;
  int seen = 0;
  for (const Pipeline* pipeline : backend->pipelines().all()) {
    const auto report = backend->pipelines().report(*pipeline);
    ASSERT_TRUE(report.ok()) << report.error().message;
    std::printf("%s: %g VGPRs, %g waves, LDS %g\n", pipeline->name.c_str(), report->statistic("VGPRs"),
                report->statistic("Subgroups per SIMD"), report->statistic("LDS size"));
    for (const char* name : {"Spilled VGPRs", "Spilled SGPRs", "Scratch size"})
      EXPECT_LE(report->statistic(name, 0), 0) << pipeline->name << " " << name;
    const bool dot_tile = pipeline->name.rfind("integer_tile_dot", 0) == 0;
    seen += dot_tile;
    if (dot_tile && device.architecture == "rdna3") {
      EXPECT_NE(report->assembly.find("v_dot4_i32_iu8"), std::string::npos) << pipeline->name;
    }
  }
  EXPECT_EQ(seen > 0, dots);
}

}  // namespace
}  // namespace sparkle::vulkan
