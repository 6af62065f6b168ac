// The Vulkan gemm kernels against the family's reference: random shapes, layouts, tiles and epilogues.
#include "algorithms/algorithm.h"
#include "backends/vulkan/vulkan_testing.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/registry.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

struct Problem {
  Stage stage;
  std::vector<TestOperand> inputs, outputs;
  int64_t k = 1;
};

class RandomProblems {
 public:
  // What pipelines are made for - filter, stride, epilogue, whole vectors or not - is one of a few kinds, sizes and layouts are
  // all different: software devices take a second for a pipeline, and tensors' sizes are none of its constants.
  explicit RandomProblems(uint64_t seed, DType type = DType::f32) : random_(seed), kind_(77 + seed % kKinds), type_(type) {}
  TestRandom& kind() { return kind_; }
  TestRandom& random() { return random_; }

  TensorDesc desc(const Dims& shape, const Dims& order, int64_t gap) {
    TensorDesc d{type_, shape, {}};
    d.layout.order = order;
    d.layout.strides = Dims::filled(shape.size(), 0);
    int64_t step = 1;
    for (int i = order.size() - 1; i >= 0; --i) {
      d.layout.strides[static_cast<int>(order[i])] = step;
      step = step * shape[static_cast<int>(order[i])] + random_.between(0, gap);
    }
    d.layout.offset = random_.between(0, gap);
    return d;
  }
  void input(Problem& p, const TensorDesc& d) {
    p.inputs.emplace_back(d);
    p.inputs.back().fill([&] { return random_.normal(); });
    p.stage.inputs.push_back(d);
  }
  void output(Problem& p, const TensorDesc& d) {
    p.outputs.emplace_back(d);
    p.stage.outputs.push_back(d);
  }
  Epilogue epilogue(Problem& p, int64_t channels, const Dims& shape, const Dims& order, int64_t gap) {
    Epilogue e;
    e.alpha = random_.chance(20) ? 0.5 : 1;
    e.scale = kind_.chance(30);
    e.bias = kind_.chance(60);
    e.residuals_before = static_cast<int>(kind_.chance(30) ? kind_.between(1, 2) : 0);
    e.residuals_after = kind_.chance(20) && e.residuals_before < 2 ? 1 : 0;
    e.activation = kind_.chance(50) ? Activation::relu : static_cast<Activation>(kind_.between(0, 14));
    e.a = 0.25, e.b = 0.75;
    for (int i = 0; i < e.scale + e.bias; ++i) input(p, dense_desc(type_, {channels}));
    for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) {
      TensorDesc r = desc(shape, order, gap);
      if (random_.chance(30)) r.layout.strides[static_cast<int>(random_.between(0, order.size() - 1))] = 0;
      input(p, r);
    }
    return e;
  }

  Problem window() {
    Problem p;
    GemmParams params;
    const int spatial = static_cast<int>(kind_.between(1, 3));
    // Half of all problems in whole vectors, as most networks are.
    const int64_t step = kind_.chance(50) ? 4 : 1, gap = step == 4 ? 0 : random_.chance(50) ? 3 : 0;
    params.groups = random_.chance(30) ? random_.between(2, 4) : 1;
    const int64_t channels = params.groups * step * random_.between(1, 12),
                  filters = params.groups * step * random_.between(1, 24);
    Dims x{random_.between(1, 3), channels}, y{x[0], filters}, w{filters, channels / params.groups}, order{0};
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<size_t>(3 - spatial + i);
      Window& f = params.window;
      f.filter[at] = kind_.chance(40) ? 1 : kind_.between(1, 5);
      f.stride[at] = kind_.chance(60) ? 1 : kind_.between(1, 3);
      f.dilation[at] = random_.chance(70) ? 1 : random_.between(1, 3);
      f.pad_begin[at] = random_.chance(40) ? 0 : random_.between(-2, 4);
      x.push_back(random_.between(1, spatial == 3 ? 5 : 12));
      y.push_back(random_.between(1, 9));
      w.push_back(f.filter[at]);
      order.push_back(2 + i);
    }
    order.push_back(1);
    p.k = channels / params.groups * params.window.taps();
    input(p, desc(x, order, gap));
    input(p, dense_desc(type_, w));
    output(p, desc(y, order, gap));
    params.epilogue = epilogue(p, filters, y, order, gap);
    p.stage.params = params;
    return p;
  }

  Problem dense() {
    Problem p;
    GemmParams params;
    params.loader = Loader::dense;
    const int batch = static_cast<int>(random_.between(0, 3)), rank = batch + 2;
    const int64_t step = kind_.chance(50) ? 4 : 1, gap = step == 4 ? 0 : random_.chance(50) ? 3 : 0;
    const int64_t m = random_.between(1, 70), n = step * random_.between(1, 30), k = step * random_.between(1, 40);
    Dims a, b, y, row, swapped;
    for (int i = 0; i < batch; ++i) {
      const int64_t size = random_.between(1, 3);
      a.push_back(size), b.push_back(size), y.push_back(size);
    }
    a.push_back(m), a.push_back(k), b.push_back(k), b.push_back(n), y.push_back(m), y.push_back(n);
    for (int i = 0; i < rank; ++i) row.push_back(i);
    swapped = row;
    std::swap(swapped[rank - 1], swapped[rank - 2]);
    TensorDesc left = desc(a, random_.chance(25) ? swapped : row, gap),
               right = desc(b, random_.chance(40) ? swapped : row, gap);
    for (int i = 0; i < batch; ++i) {
      if (random_.chance(30)) left.layout.strides[i] = 0;
      if (random_.chance(30)) right.layout.strides[i] = 0;
    }
    p.k = k;
    input(p, left);
    input(p, right);
    output(p, desc(y, row, gap));
    params.epilogue = epilogue(p, n, y, row, gap);
    p.stage.params = params;
    return p;
  }

 private:
  static constexpr uint64_t kKinds = 5;
  TestRandom random_, kind_;
  DType type_;
};

// A schedule that the planner may offer, or one like it: software devices take a second to compile a large tile of its own for
// each epilogue, so most problems run on small ones.
TileSchedule some_schedule(const std::vector<Schedule>& schedules, TestRandom& random) {
  const auto pick = [&] {
    return get<TileSchedule>(schedules[static_cast<size_t>(random.between(0, static_cast<int64_t>(schedules.size()) - 1))]);
  };
  TileSchedule s = pick();
  for (int i = 0; i < 20 && s.m * s.n > 2048; ++i) s = pick();
  s.subgroup = 0;
  if (s.unroll > 1 && s.variant != "half_sums") s.unroll = random.chance(50) ? 1 : 2;
  return s;
}

void check(const std::string& variant, bool window, int cases, uint64_t seed, DType type = DType::f32) {
  SPARKLE_NEEDS_VULKAN(backend);
  if ((type == DType::f16 || variant == "half_sums") && !backend->context().features().f16)
    GTEST_SKIP() << "SKIP: the device has no 16-bit floats";
  const FamilyInfo& family = info(Family::gemm);
  const auto row =
      std::find_if(family.variants.begin(), family.variants.end(), [&](const Variant& v) { return v.name == variant; });
  ASSERT_NE(row, family.variants.end());
  int tried = 0;
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    RandomProblems problems(seed + static_cast<uint64_t>(i), type);
    Problem p = window ? problems.window() : problems.dense();
    if (variant == "half_sums") {  // whose short sums of small integers are exact
      get<GemmParams>(p.stage.params).operands = OperandType::f16;
      for (size_t operand : {0, 1})
        p.inputs[operand].fill([&] { return static_cast<double>(problems.random().between(-8, 8)); });
    }
    Reason why = Reason::none;
    const auto schedules = family.schedules(p.stage, *row, backend->device(), why);
    if (schedules.empty() && (why == Reason::layout_not_served || why == Reason::filter_not_served))
      continue;  // says so itself
    ASSERT_FALSE(schedules.empty()) << name_of(Family::gemm) << " " << code_of(why);
    ++tried;
    TileSchedule schedule = some_schedule(schedules, problems.kind());
    if (variant == "implicit" && problems.kind().chance(50)) schedule.split = static_cast<int>(problems.random().between(2, 5));
    const uint32_t constants = problems.kind().chance(70) ? 2 : 0;
    auto wanted = reference_outputs(p.stage, p.inputs);
    const Status ran = run_stage(*backend, p.stage, schedule, p.inputs, p.outputs, constants);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    expect_close(p.outputs[0], wanted[0], 4e-7 * (4 + std::sqrt(static_cast<double>(p.k))),
                 "seed " + std::to_string(seed + static_cast<uint64_t>(i)) + " " + to_text(Schedule(schedule)) + " " +
                     to_text(p.stage.params));
  }
  EXPECT_GE(tried, cases / 5);
}

// The shader for matrix units with fragments in shared memory: the same text but for what a fragment is. Operands are numbers
// of 16 bits, as drivers may round others up or down.
void check_fragments(bool window, int cases, uint64_t seed, DType type = DType::f32, const Fragment& fragment = {},
                     int lanes = 32) {
  SPARKLE_NEEDS_VULKAN(backend);
  if (!backend->context().features().f16) GTEST_SKIP() << "SKIP: the device has no 16-bit floats";
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    RandomProblems problems(seed + static_cast<uint64_t>(i), type);
    Problem p = window ? problems.window() : problems.dense();
    get<GemmParams>(p.stage.params).operands = OperandType::f16;
    for (size_t operand : {0, 1})
      p.inputs[operand].fill([&] { return static_cast<double>(problems.random().between(-1024, 1024)) / 256; });
    TileSchedule s;
    s.variant = "cooperative", s.unit = fragment_unit_name(fragment) + "-emulated";
    // Software devices compile a large tile for seconds: only the usual size has tiles of several fragments.
    const bool usual = fragment.m == 16 && fragment.n == 16;
    s.subgroup = lanes, s.pad = kFragmentPad, s.k = usual ? 32 : 16, s.depth = 2;
    s.thread_m = fragment.m, s.thread_n = usual ? 2 * fragment.n : fragment.n;
    s.m = usual && (type == DType::f16 || problems.kind().chance(50)) ? 2 * fragment.m : fragment.m, s.n = s.thread_n;
    s.split = problems.kind().chance(30) ? static_cast<int>(problems.random().between(2, 4)) : 1;
    // Weights as they are and packed, by turns.
    const uint32_t constants = i % 2 ? 2 : 0;
    auto wanted = reference_outputs(p.stage, p.inputs);
    const Status ran = run_stage(*backend, p.stage, s, p.inputs, p.outputs, constants);
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    expect_close(
        p.outputs[0], wanted[0], 4e-7 * (4 + std::sqrt(static_cast<double>(p.k))),
        "seed " + std::to_string(seed + static_cast<uint64_t>(i)) + " " + to_text(Schedule(s)) + " " + to_text(p.stage.params));
  }
}

TEST(VulkanGemm, NaiveWindow) { check("naive", true, 60, 1); }
TEST(VulkanGemm, NaiveDense) { check("naive", false, 40, 1001); }
TEST(VulkanGemm, GroupsWindow) { check("groups", true, 20, 1501); }
TEST(VulkanGemm, HaloWindow) { check("halo", true, 25, 6000); }
TEST(VulkanGemm, Vec4Window) { check("fours", true, 20, 6500); }
TEST(VulkanGemm, SeveralWindow) { check("several", true, 20, 7000); }
TEST(VulkanGemm, SeveralDense) { check("several", false, 10, 7500); }
TEST(VulkanGemm, ImplicitWindow) { check("implicit", true, 40, 2000); }
TEST(VulkanGemm, ImplicitDense) { check("implicit", false, 15, 3001); }

// Rows beyond what a grid has of workgroups along one axis.
TEST(VulkanGemm, ManyTiles) {
  SPARKLE_NEEDS_VULKAN(backend);
  const FamilyInfo& family = info(Family::gemm);
  for (const DType type : {DType::f32, DType::i32})
    for (const Variant& v : family.variants) {
      Problem p;
      RandomProblems problems(1, type);
      GemmParams params;
      params.loader = Loader::dense;
      p.stage.params = params;
      const auto sized = [&](int64_t m) {
        p.stage.inputs = {dense_desc(type, {m, 1}), dense_desc(type, {1, 1})};
        p.stage.outputs = {dense_desc(type, {m, 1})};
      };
      Reason why = Reason::none;
      sized(1 << 20);
      auto schedules = family.schedules(p.stage, v, backend->device(), why);
      const auto rows = [](const Schedule& s) { return get<TileSchedule>(s).m; };
      std::erase_if(schedules, [](const Schedule& s) { return !holds<TileSchedule>(s); });
      if (schedules.empty()) continue;
      const Schedule least = *std::min_element(schedules.begin(), schedules.end(),
                                               [&](const Schedule& a, const Schedule& b) { return rows(a) < rows(b); });
      if (rows(least) > 64) continue;
      SCOPED_TRACE(to_text(least));
      sized(int64_t{65537} * rows(least) - 1);
      std::vector<TestOperand> inputs{TestOperand(p.stage.inputs[0]), TestOperand(p.stage.inputs[1])},
          outputs{TestOperand(p.stage.outputs[0])};
      int next = 0;
      inputs[0].fill([&] { return ++next % 1021; });
      inputs[1].fill([] { return 3; });
      const Status ran = run_stage(*backend, p.stage, least, inputs, outputs, 0);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      int64_t wrong = 0;
      next = 0;
      for_each_index(p.stage.outputs[0].shape, [&](const Dims& at) { wrong += outputs[0].at(at) != 3 * (++next % 1021); });
      EXPECT_EQ(wrong, 0);
    }
}

TEST(VulkanGemm, FragmentsWindow) { check_fragments(true, 10, 4000); }
TEST(VulkanGemm, FragmentsDense) { check_fragments(false, 4, 5001); }
// Sizes that NVIDIA's and Intel's drivers list besides.
TEST(VulkanGemm, FragmentsOfOtherSizes) {
  uint64_t seed = 5100;
  for (const Fragment& f :
       {Fragment{16, 8, 16}, Fragment{16, 8, 8}, Fragment{8, 16, 16}, Fragment{8, 8, 16}, Fragment{8, 32, 16}})
    check_fragments(seed % 2 == 0, 1, seed, DType::f32, f), seed += 101;
}
// As the threads of a whole workgroup multiply: one matrix, as large as the tile.
TEST(VulkanGemm, FragmentsAsLargeAsTheTile) {
  check_fragments(true, 2, 5700, DType::f32, {32, 64, 16}, 64);
  check_fragments(false, 1, 5801, DType::f32, {64, 32, 16}, 128);
}

// Tensors of 16 bits in the same kernels.
TEST(VulkanGemmFp16, Naive) { check("naive", true, 15, 8000, DType::f16); }
TEST(VulkanGemmFp16, NaiveDense) { check("naive", false, 10, 8100, DType::f16); }
TEST(VulkanGemmFp16, Groups) { check("groups", true, 10, 8200, DType::f16); }
TEST(VulkanGemmFp16, Halo) { check("halo", true, 10, 8300, DType::f16); }
TEST(VulkanGemmFp16, Vec4) { check("fours", true, 10, 8400, DType::f16); }
TEST(VulkanGemmFp16, Several) { check("several", true, 10, 8500, DType::f16); }
TEST(VulkanGemmFp16, Implicit) { check("implicit", true, 20, 8600, DType::f16); }
TEST(VulkanGemmFp16, ImplicitDense) { check("implicit", false, 10, 8700, DType::f16); }
TEST(VulkanGemmFp16, Fragments) { check_fragments(true, 10, 8800, DType::f16); }
TEST(VulkanGemmFp16, FragmentsDense) { check_fragments(false, 6, 8900, DType::f16); }

TEST(VulkanGemmShortSums, Window) { check("half_sums", true, 10, 9000); }
TEST(VulkanGemmShortSums, Dense) { check("half_sums", false, 5, 9100); }
TEST(VulkanGemmShortSums, Fp16Window) { check("half_sums", true, 10, 9200, DType::f16); }

// The bound of the algorithm against what the kernel errs, on numbers of no preferred sign.
TEST(VulkanGemmShortSums, ErrWithinTheBound) {
  SPARKLE_NEEDS_VULKAN(backend);
  if (!backend->context().features().f16) GTEST_SKIP() << "SKIP: the device has no 16-bit floats";
  const Algorithm* algorithm = algorithm_named("sums_f16");
  ASSERT_NE(algorithm, nullptr);
  const double bound = algorithm->error(AnchorCall{});
  for (const int64_t k : {9, 27, 144, 576, 2304})
    for (const uint64_t seed : {1, 2, 3}) {
      TestRandom random(seed);
      GemmParams params;
      params.loader = Loader::dense;
      Stage stage;
      stage.inputs = {dense_desc(DType::f32, {128, k}), dense_desc(DType::f32, {k, 96})};
      stage.outputs = {dense_desc(DType::f32, {128, 96})};
      stage.params = params;
      std::vector<TestOperand> inputs, outputs{TestOperand(stage.outputs[0])};
      for (const TensorDesc& d : stage.inputs) inputs.emplace_back(d).fill([&] { return random.normal(); });
      auto wanted = reference_outputs(stage, inputs);
      params.operands = OperandType::f16;
      stage.params = params;
      TileSchedule s;
      s.variant = "half_sums", s.unit = "fma-f16";
      s.m = s.n = 32, s.k = 16, s.thread_m = s.thread_n = 4, s.depth = 2, s.pad = 4, s.unroll = kShortRun;
      const Status ran = run_stage(*backend, stage, s, inputs, outputs, 0);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      double largest = 0, error = 0;
      for_each_index(stage.outputs[0].shape, [&](const Dims& at) {
        largest = std::max(largest, std::abs(wanted[0].at(at)));
        error = std::max(error, std::abs(wanted[0].at(at) - outputs[0].at(at)));
      });
      SCOPED_TRACE(std::to_string(k) + " products, seed " + std::to_string(seed) + ": " + std::to_string(error / largest));
      EXPECT_LE(error, bound * largest);
      EXPECT_GE(error, bound * largest / 10);
    }
}

}  // namespace
}  // namespace sparkle::vulkan
