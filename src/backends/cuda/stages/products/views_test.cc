// Matrices whose rows are turned around or repeated, which tensor maps do not say: other kernels take them, or they are laid
// out anew.
#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/sample_run.h"
#include "families/family.h"
#include "families/gemm/gemm.h"

namespace sparkle::cuda {
namespace {

constexpr int64_t kM = 70, kN = 40, kK = 64;

// Of rows kK apart: forwards (1), backwards (-1) or the same one again (0).
TensorDesc rows(int64_t count, int64_t direction, bool columns = false) {
  TensorDesc d = dense_desc(DType::f16, columns ? Dims{kK, count} : Dims{count, kK});
  const int across = columns ? 1 : 0;
  d.layout.order = columns ? Dims{1, 0} : Dims{0, 1};
  d.layout.strides[across] = direction * kK, d.layout.strides[1 - across] = 1;
  d.layout.offset = direction < 0 ? (count - 1) * kK : 0;
  return d;
}

std::map<std::string, int> run_all(const Stage& stage) {
  std::map<std::string, int> run;
  const auto backend = test_backend();
  EXPECT_TRUE(backend);
  if (!backend) return run;
  for (const Variant& variant : gemm_info().variants) {
    if (!variant.runs_on(backend->device())) continue;
    Reason why = Reason::none;
    for (const Schedule& schedule : gemm_info().schedules(stage, variant, backend->device(), why)) {
      for (const uint32_t constants : {0u, ~1u}) {
        const Status ran = run_sample(*backend, stage, schedule, constants, {});
        EXPECT_TRUE(ran.ok()) << to_text(schedule) << " constants " << constants << ": "
                              << (ran.ok() ? "" : ran.error().message);
      }
      ++run[variant_of(schedule)];
    }
  }
  return run;
}

std::map<std::string, int> run_all(int64_t x, int64_t w) {
  GemmParams p;
  p.loader = Loader::dense;
  Stage stage;
  stage.params = p;
  stage.inputs = {rows(kM, x), rows(kN, w, true)}, stage.outputs = {dense_desc(DType::f16, {kM, kN})};
  return run_all(stage);
}
// 3x3 over pixels whose channels lie side by side; `turned`: columns of pixels one behind the other, not rows.
std::map<std::string, int> run_window(bool turned) {
  GemmParams p;
  p.window.filter = {1, 3, 3}, p.window.pad_begin = p.window.pad_end = {0, 1, 1};
  const Dims shape{2, 64, 9, 7}, filters{24, 64, 3, 3}, out{2, 24, 9, 7};
  Stage stage;
  stage.params = p;
  stage.inputs = {{DType::f16, shape, channels_last(shape)}, dense_desc(DType::f16, filters)};
  if (turned) stage.inputs[0].layout = dense(shape, {0, 3, 2, 1});
  stage.outputs = {{DType::f16, out, channels_last(out)}};
  return run_all(stage);
}

TEST(CudaViews, RowsForwardsGoByTheEngine) {
  auto run = run_all(1, 1);
  EXPECT_GT(run["wgmma"], 0);
  EXPECT_GT(run["mma"], 0);
}

TEST(CudaViews, RowsBackwardsOrRepeatedGoByOtherKernels) {
  for (const int64_t direction : {-1, 0}) {
    auto run = run_all(direction, 1);
    EXPECT_EQ(run["wgmma"] + run["wgmma_pairs"], 0) << direction;
    EXPECT_GT(run["mma"] + run["mma_elements"], 0) << direction;
  }
}

TEST(CudaViews, FiltersBackwardsOrRepeatedAreLaidOutAnew) {
  for (const int64_t direction : {-1, 0}) {
    auto run = run_all(1, direction);
    EXPECT_GT(run["wgmma"], 0) << direction;
  }
}

TEST(CudaViews, WindowsOverMapsOfColumnsGoByOtherKernels) {
  auto straight = run_window(false), turned = run_window(true);
  EXPECT_GT(straight["wgmma"], 0);
  EXPECT_GT(straight["wgmma_halo"], 0);
  EXPECT_EQ(turned["wgmma"] + turned["wgmma_pairs"] + turned["wgmma_halo"], 0);
  EXPECT_GT(turned["mma"], 0);
}

}  // namespace
}  // namespace sparkle::cuda
