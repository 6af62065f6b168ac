// Non-maximum suppression on Vulkan against the family's plain loops, row for row: boxes on a grid so that many overlap by the
// very limit, equal scores, NaN, any layout, more boxes than a workgroup has threads, more classes than are summed at once.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/non_max/non_max.h"
#include "families/non_max/non_max_gpu.h"

namespace sparkle::vulkan {
namespace {

RandomStage boxes_stage(uint64_t seed, int64_t images, int64_t classes, int64_t count) {
  RandomStage s(seed);
  NonMaxParams p;
  p.centers = s.random.chance(50);
  p.most = s.random.chance(10) ? 0 : s.random.chance(30) ? INT64_MAX : s.random.between(1, std::max<int64_t>(1, count));
  p.overlap = static_cast<double>(s.random.between(0, 10)) / 10;
  p.has_threshold = s.random.chance(50);
  p.threshold = static_cast<double>(s.random.between(0, 8)) / 10;
  const TensorDesc boxes = s.turned(s.any({images, count, 4}, 10)), scores = s.turned(s.any({images, classes, count}, 10));
  const int64_t whole = s.random.between(2, 12);  // rarely, boxes of no grid
  s.input(boxes, [&] {
    if (s.random.chance(1)) return std::nan("");
    return whole == 2 ? s.random.normal() : static_cast<double>(s.random.between(0, 4 * whole)) / 4;
  });
  s.input(scores, [&] { return s.random.chance(3) ? std::nan("") : static_cast<double>(s.random.between(-2, 9)) / 10; });
  s.output(s.turned(s.any(DType::i64, {images * classes * std::min(p.most, count) + s.random.between(0, 3), 3})));
  s.stage.params = p;
  return s;
}

void expect_rows_of_reference(VulkanBackend& backend, RandomStage& s, const std::string& what) {
  auto wanted = exact_outputs(s, s.inputs);
  const Status ran = run_stage(backend, s.stage, LoopSchedule{"groups", "fma-f32", 0}, s.inputs, s.outputs, 0);
  ASSERT_TRUE(ran.ok()) << ran.error().message;
  expect_close(s.outputs[0], wanted[0], 0, what + " " + to_text(s.stage.params));
}

TEST(VulkanNonMax, RandomBoxes) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    const auto pick = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(seed * 7919 % 1009) % (most - least + 1);
    };
    RandomStage s = boxes_stage(seed, pick(1, 3), pick(1, 5), pick(1, 70));
    expect_rows_of_reference(*backend, s, "seed " + std::to_string(seed));
  }
}

TEST(VulkanNonMax, MoreBoxesThanAWorkgroupHasBits) {
  SPARKLE_NEEDS_VULKAN(backend);
  RandomStage s = boxes_stage(3, 1, 2, 32 * kNonMaxThreads + 77);
  auto p = get<NonMaxParams>(s.stage.params);
  const int64_t rows = s.stage.outputs[0].shape[0];
  p.most = 20, p.overlap = 0.4;
  s.stage.params = p;
  ASSERT_GE(rows, 2 * p.most);
  expect_rows_of_reference(*backend, s, "many boxes");
}

TEST(VulkanNonMax, MoreClassesThanAreSummedAtOnce) {
  SPARKLE_NEEDS_VULKAN(backend);
  RandomStage s = boxes_stage(5, 3, 311, 9);
  expect_rows_of_reference(*backend, s, "many classes");
}

TEST(VulkanNonMax, NothingAtAll) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Dims& sizes : {Dims{0, 2, 5}, Dims{2, 0, 5}, Dims{2, 2, 0}}) {
    RandomStage s(1);
    s.stage.params = NonMaxParams{};
    s.input({DType::f32, {sizes[0], sizes[2], 4}, row_major({sizes[0], sizes[2], 4})});
    s.input({DType::f32, sizes, row_major(sizes)});
    s.output({DType::i64, {3, 3}, row_major({3, 3})});
    expect_rows_of_reference(*backend, s, sizes.to_string());
  }
}

}  // namespace
}  // namespace sparkle::vulkan
