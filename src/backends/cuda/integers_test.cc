// Products of bytes through the backend over the functional model: every schedule that the planner has for random stages, their
// weights packed ahead or laid out as they come, zero points of all operands, padding where it counts as one.
#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/sample_run.h"
#include "backends/self_tests/sample_testing.h"
#include "families/family.h"
#include "families/gemm/gemm.h"
#include "families/windows/samples.h"
#include "families/windows/window_samples.h"

namespace sparkle::cuda {
namespace {

Stage random_stage(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) { return static_cast<int64_t>(drawn_between(low, high, random)); };
  GemmParams p;
  p.groups = pick(0, 3) == 0 ? 2 : 1;
  p.epilogue.scale = pick(0, 3) > 0, p.epilogue.bias = pick(0, 1);
  Window& w = p.window;
  for (const size_t axis : {1, 2}) {
    w.filter[axis] = pick(1, 4), w.stride[axis] = pick(0, 2) == 0 ? 2 : 1, w.dilation[axis] = pick(0, 2) == 0 ? 2 : 1;
    w.pad_begin[axis] = pick(0, 3), w.pad_end[axis] = pick(0, 3);
  }
  const int64_t c = p.groups > 1 ? 128 * p.groups : 16 * pick(1, 12), k = p.groups * pick(1, 70);
  int64_t in[2], out[2];
  for (size_t i = 0; i < 2; ++i) {
    const int64_t span = (w.filter[i + 1] - 1) * w.dilation[i + 1] + 1;
    in[i] = std::max(pick(1, 11), span - w.pad_begin[i + 1] - w.pad_end[i + 1]);
    out[i] = (in[i] + w.pad_begin[i + 1] + w.pad_end[i + 1] - span) / w.stride[i + 1] + 1;
  }
  const int64_t n = pick(1, 3);
  const auto bytes = [&] { return pick(0, 1) ? DType::u8 : DType::i8; };
  const auto pixels = [&](DType type, const Dims& shape) { return TensorDesc{type, shape, channels_last(shape)}; };
  const DType x = bytes(), weights = bytes(), y = p.epilogue.scale ? bytes() : DType::i32;
  Stage stage;
  stage.inputs = {pixels(x, {n, c, 1, in[0], in[1]}), dense_desc(weights, {k, c / p.groups, 1, w.filter[1], w.filter[2]})};
  if (p.epilogue.scale) stage.inputs.push_back(dense_desc(DType::f32, {k}));
  if (p.epilogue.bias) stage.inputs.push_back(dense_desc(DType::i32, {k}));
  stage.inputs.push_back(dense_desc(x, {1}));
  stage.inputs.push_back(dense_desc(weights, {pick(0, 1) ? k : 1}));
  if (p.epilogue.scale) stage.inputs.push_back(dense_desc(y, {1}));
  stage.outputs = {pixels(y, {n, k, 1, out[0], out[1]})};
  stage.params = p;
  return stage;
}

TEST(CudaIntegers, EveryScheduleIsRightOnRandomStages) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const testing::Sample sample = testing::sample();
  std::map<std::string, int> run;
  for (uint32_t seed = 1; seed <= 24; ++seed) {
    if (!sample.takes(seed)) continue;
    std::mt19937 random(seed);
    const Stage stage = random_stage(random);
    for (const Variant& variant : gemm_info().variants) {
      if (!variant.runs_on(backend->device())) continue;
      Reason why = Reason::none;
      for (const Schedule& schedule : gemm_info().schedules(stage, variant, backend->device(), why)) {
        const uint32_t constants = random() % 2 ? ~uint32_t{1} : 0;
        const Status ran = run_sample(*backend, stage, schedule, constants, {});
        EXPECT_TRUE(ran.ok()) << "seed " << seed << " constants " << constants << " " << to_text(schedule) << " "
                              << to_text(stage.params) << " " << stage.inputs[0].shape.to_string() << ": "
                              << (ran.ok() ? "" : ran.error().message);
        ++run[variant_of(schedule)];
      }
    }
  }
  const int least = sample.share == 1 ? 7 : 1;  // a sample is a few stages, which need not take all schedules alike
  for (const char* name : {"mma", "wgmma", "wgmma_pairs", "wgmma_halo"}) EXPECT_GE(run[name], least) << name;
}

}  // namespace
}  // namespace sparkle::cuda
