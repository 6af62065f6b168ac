// The Vulkan depthwise kernels against the family's reference: random shapes, layouts, windows and epilogues.
#include "backends/vulkan/kernels/random_stages_testing.h"
#include "families/depthwise/depthwise.h"

namespace sparkle::vulkan {
namespace {

struct Case {
  Window window;
  Epilogue epilogue;
};

Epilogue epilogue_of(int kind) {
  Epilogue e;
  e.a = 0.25, e.b = 0.75;
  if (kind == 1) e.bias = true, e.activation = Activation::clip;
  if (kind == 2)
    e.alpha = 0.5, e.scale = e.bias = true, e.residuals_before = 1, e.residuals_after = 1, e.activation = Activation::relu;
  if (kind == 3) e.bias = true, e.residuals_before = 2, e.activation = Activation::silu;
  return e;
}

void add_operands(RandomStage& s, const Epilogue& e, const TensorDesc& y, bool vec4) {
  for (int i = 0; i < e.scale + e.bias; ++i) s.input(dense_desc(s.real, {y.shape[1]}));
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) s.input(vec4 ? s.in_vec4(y.shape) : s.any(y.shape, 20));
}

void check_any_window(const std::string& variant, bool vec4, DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, type);
    DepthwiseParams p;
    const int spatial = static_cast<int>(s.random.between(1, 3));
    const int64_t channels = vec4 ? 4 * s.random.between(1, 9) : s.random.between(1, 9);
    const int64_t filters = vec4 ? channels : channels * s.random.between(1, 3);
    Dims x{s.random.between(1, 2), channels}, y{x[0], filters}, w{filters, 1};
    for (int i = 0; i < spatial; ++i) {
      const auto at = static_cast<size_t>(3 - spatial + i);
      p.window.filter[at] = s.random.between(1, spatial == 3 ? 3 : 7);
      p.window.stride[at] = s.random.between(1, 3);
      p.window.dilation[at] = s.random.chance(80) ? s.random.between(1, 3) : 12;
      p.window.pad_begin[at] = s.random.between(-2, 4);
      x.push_back(s.random.between(1, spatial == 3 ? 5 : 14));
      y.push_back(s.random.between(1, 9));
      w.push_back(p.window.filter[at]);
    }
    p.epilogue = epilogue_of(static_cast<int>(seed % 3));
    s.input(vec4 ? s.in_vec4(x) : s.any(x, 10));
    s.input(s.any(w));
    const TensorDesc out = vec4 ? s.in_vec4(y) : s.any(y);
    add_operands(s, p.epilogue, out, vec4);
    s.output(out);
    s.stage.params = p;
    const double tolerance = 4e-7 * (4 + std::sqrt(static_cast<double>(p.window.taps())));
    EXPECT_TRUE(check_stage(*backend, s, variant, tolerance, seed % 3 ? 2 : 0, "seed " + std::to_string(seed)));
  }
}

TEST(VulkanDepthwise, NaiveServesAnyWindowAndLayout) { check_any_window("naive", false, DType::f32, 120); }
TEST(VulkanDepthwise, QuadsServeAnyWindow) { check_any_window("quads", true, DType::f32, 120); }

void check_vectors(DType type, uint64_t seeds) {
  SPARKLE_NEEDS_VULKAN(backend);
  // Few kinds of windows, since each is a pipeline of its own: filter, stride, dilation, epilogue.
  struct Kind {
    int64_t r, s, stride_r, stride_s, dilation;
    int epilogue;
  };
  const Kind kinds[] = {{3, 3, 1, 1, 1, 1}, {3, 3, 2, 2, 1, 2}, {5, 5, 1, 1, 1, 0},
                        {5, 5, 2, 2, 1, 3}, {3, 3, 1, 1, 2, 1}, {1, 4, 1, 2, 3, 0}};
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    RandomStage s(seed, type);
    const Kind& kind = kinds[seed % std::size(kinds)];
    DepthwiseParams p;
    p.window.filter = {1, kind.r, kind.s};
    p.window.stride = {s.random.between(1, 2), kind.stride_r, kind.stride_s};
    p.window.dilation = {1, kind.dilation, kind.dilation};
    p.window.pad_begin = {s.random.between(-1, 1), s.random.between(-2, 4), s.random.between(-2, 4)};
    p.epilogue = epilogue_of(kind.epilogue);
    const bool volume = s.random.chance(20);
    const int64_t channels = 4 * s.random.between(1, 9), batch = s.random.between(1, 3);
    Dims x{batch, channels}, y{batch, channels}, w{channels, 1};
    if (volume) x.push_back(s.random.between(1, 3)), y.push_back(s.random.between(1, 3)), w.push_back(1);
    else p.window.pad_begin[0] = 0, p.window.stride[0] = 1;
    for (const int64_t filter : {kind.r, kind.s}) {
      x.push_back(s.random.between(1, 17));
      y.push_back(s.random.between(1, 13));
      w.push_back(filter);
    }
    s.input(s.in_vec4(x));
    s.input(s.any(w));
    const TensorDesc out = s.in_vec4(y);
    add_operands(s, p.epilogue, out, true);
    s.output(out);
    s.stage.params = p;
    const double tolerance = 4e-7 * (4 + std::sqrt(static_cast<double>(p.window.taps())));
    // The first and the last window with filters as they come, the others packed; tiles of one row and of two in turn.
    const size_t number = seed % std::size(kinds);
    const uint32_t constants = number == 0 || number == 5 ? 0 : 2;
    EXPECT_TRUE(check_stage(*backend, s, "vectors", tolerance, constants, "seed " + std::to_string(seed), number));
  }
}

TEST(VulkanDepthwise, VectorsShareLoadedPixels) { check_vectors(DType::f32, 120); }

TEST(VulkanDepthwise, Fp16AreAddedInFullPrecision) {
  SPARKLE_NEEDS_FP16();
  check_any_window("naive", false, DType::f16, 60);
  check_any_window("quads", true, DType::f16, 60);
  check_vectors(DType::f16, 48);
}

TEST(VulkanDepthwise, EmptyTensorsAreNothingToDo) {
  SPARKLE_NEEDS_VULKAN(backend);
  RandomStage s(1);
  s.input(dense_desc(DType::f32, {0, 4, 5, 5}));
  s.input(dense_desc(DType::f32, {4, 1, 3, 3}));
  s.output(dense_desc(DType::f32, {0, 4, 3, 3}));
  DepthwiseParams p;
  p.window.filter = {1, 3, 3};
  s.stage.params = p;
  EXPECT_TRUE(check_stage(*backend, s, "naive", 1e-6, 0, "empty"));
}

}  // namespace
}  // namespace sparkle::vulkan
