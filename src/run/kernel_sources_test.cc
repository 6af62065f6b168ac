// What a GPU would be given, for a described card that compiles programs.
#include "run/opening/kernel_sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "device/device_json.h"
#include "families/attention/attention.h"
#include "families/gemm/gemm.h"
#include "families/loops/tile_schedule.h"
#include "families/pointwise/pointwise.h"
#include "families/registry.h"
#include "plan/choose/choose.h"

namespace sparkle {
namespace {

TEST(KernelSources, HoldProgramsThatCudaCompiles) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  device->compiles = true;
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

// A product's launch in words: the tile, what the record holds, where its addresses come from, the tensor maps.
TEST(KernelSources, HoldWhatACudaKernelIsLaunchedWith) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  Stage stage;
  GemmParams params;
  params.loader = Loader::window, params.window.filter = {1, 3, 3}, params.window.pad_begin = {0, 1, 1};
  params.epilogue.bias = true;
  stage.params = params;
  stage.inputs = {{DType::bf16, {2, 128, 14, 14}, channels_last({2, 128, 14, 14})},
                  dense_desc(DType::bf16, {256, 128, 3, 3}),
                  dense_desc(DType::bf16, {256})};
  stage.outputs = {{DType::bf16, {2, 256, 14, 14}, channels_last({2, 256, 14, 14})}};
  const auto text_by = [&](const char* variant, const char* unit) {
    const FamilyInfo& family = info(Family::gemm);
    const auto row =
        std::find_if(family.variants.begin(), family.variants.end(), [&](const Variant& v) { return v.name == variant; });
    Reason why_not = Reason::none;
    const auto schedules = family.schedules(stage, *row, *device, why_not);
    EXPECT_FALSE(schedules.empty()) << variant << " " << code_of(why_not);
    EXPECT_EQ(unit_of(schedules.at(0)), unit);
    return kernel_sources(stage, schedules.at(0), *device, 1u << 1);
  };
  const auto engine = text_by("wgmma", "wgmma-bf16");
  if (!engine.ok() && engine.error().reason == Reason::no_kernel) GTEST_SKIP() << "SKIP: this build has no CUDA backend";
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  for (const char* part :
       {"  kernel sparkle_gemm_wgmma_128x256x1_bf16: ", " blocks of 384 threads", " bytes of shared memory, a record of ",
        "    compiled for tiles of 128 x 256 sums, 64 of k a step, 4 steps in shared memory, products of 64 x 256 by "
        "wgmma-bf16\n",
        "    x = operand 0\n", "    w = operand 1\n", "    y = operand 3\n", "    m = 392\n", "    n = 256\n",
        "    filter = 1 3 3\n", "    pad = 0 1 1\n", "    channel_steps = 2\n",
        "    map of x: channels, columns, rows, images of 128 x 14 x 14 x 2, im2col from -1 x -1 to -1 x -1 by steps of 1 x 1, "
        "boxes of 64 channels by 128 pixels\n",
        "    map of w: channels, taps, filters of 128 x 9 x 256, boxes of 64 x 1 x 256\n"})
    EXPECT_NE(engine->find(part), std::string::npos) << part << "\n" << *engine;
  // What is as the record begins is not said.
  EXPECT_EQ(engine->find("dilation"), std::string::npos) << *engine;
  const auto halo = text_by("wgmma_halo", "wgmma-bf16"), tiles = text_by("mma", "mma-bf16");
  ASSERT_TRUE(halo.ok() && tiles.ok());
  for (const char* part : {"sparkle_gemm_halo_bf16", "    box_rows = ", "    map of x: ", ", boxes of 64 x "})
    EXPECT_NE(halo->find(part), std::string::npos) << part << "\n" << *halo;
  for (const char* part : {"sparkle_gemm_mma_", "    x_strides = 25088 0 1792 128\n", " by mma-bf16\n"})
    EXPECT_NE(tiles->find(part), std::string::npos) << part << "\n" << *tiles;
  EXPECT_EQ(tiles->find("map of"), std::string::npos) << *tiles;
}

// Outputs and a residual of 16 bits go by the engine wherever their rows are at one distance and end at 16 bytes, which its
// stores do too: between others' channels 100 would take 104.
TEST(KernelSources, HoldMapsOfOutputsWhoseRowsEndAtSixteenBytes) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  const auto text_of = [&](const Dims& y, int64_t stride, bool residual) {
    Stage stage;
    GemmParams params;
    params.loader = Loader::window, params.window.filter = {1, 1, 1};
    params.epilogue.residuals_before = residual;
    stage.params = params;
    const auto between = [&](const Dims& shape, int64_t channels) {
      Dims wide = shape;
      wide[1] = channels;
      return TensorDesc{DType::bf16, shape, channels_last(wide)};
    };
    Dims x = y;
    x[1] = 64;
    stage.inputs = {between(x, 64), dense_desc(DType::bf16, y.size() == 4 ? Dims{y[1], 64, 1, 1} : Dims{y[1], 64, 1})};
    if (residual) stage.inputs.push_back(between(y, y[1]));
    stage.outputs = {between(y, stride)};
    TileSchedule s;
    s.variant = "wgmma", s.unit = "wgmma-bf16", s.m = 128, s.n = 128, s.k = 64, s.thread_m = 64, s.thread_n = 128;
    s.subgroup = 32, s.depth = 6;
    return kernel_sources(stage, s, *device, 1u << 1);
  };
  const auto batch = text_of({2, 256, 14, 14}, 256, true);
  if (!batch.ok() && batch.error().reason == Reason::no_kernel) GTEST_SKIP() << "SKIP: this build has no CUDA backend";
  ASSERT_TRUE(batch.ok()) << batch.error().message;
  for (const char* part : {"    boxes = 1\n", "    map of y: columns, rows of 256 x 392, boxes of 64 x 16\n",
                           "    map of the residual: columns, rows of 256 x 392, boxes of 64 x 128\n"})
    EXPECT_NE(batch->find(part), std::string::npos) << part << "\n" << *batch;
  for (const auto& [shape, stride, taken] :
       {std::tuple(Dims{1, 104, 7, 7}, 128, true), std::tuple(Dims{3, 100, 7, 7}, 128, false),
        std::tuple(Dims{3, 104, 7, 7}, 108, false), std::tuple(Dims{4, 104, 50}, 104, true)}) {
    const auto text = text_of(shape, stride, false);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(text->find("map of y") != std::string::npos, taken) << shape.to_string() << "\n" << *text;
  }
}

// Attention and what slides or sums rows say their records too.
TEST(KernelSources, HoldRecordsOfOtherFamilies) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok()) << device.error().message;
  Stage attention;
  attention.params = AttentionParams{};
  for (int i = 0; i < 3; ++i) attention.inputs.push_back(dense_desc(DType::f16, {2, 100, 64}));
  attention.outputs = {dense_desc(DType::f16, {2, 100, 64})};
  const auto choice = choose(attention, *device, {});
  ASSERT_TRUE(choice.ok());
  const auto text = kernel_sources(attention, choice->schedules[0], *device, 0);
  if (!text.ok() && text.error().reason == Reason::no_kernel) GTEST_SKIP() << "SKIP: this build has no CUDA backend";
  ASSERT_TRUE(text.ok()) << text.error().message;
  for (const char* part : {"kernel sparkle_flash_", "    at = operand 0 operand 1 operand 2 operand 3\n", "    keys = 100\n",
                           "    depth = 64\n", "    in_chunks = 1 1 1 0 0 1 0\n"})
    EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
}

}  // namespace
}  // namespace sparkle
