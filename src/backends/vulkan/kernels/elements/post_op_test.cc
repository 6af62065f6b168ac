// Programs behind sums: random ones in every kernel that takes them, on many shapes and kinds of broadcasting, against the
// family's reference; every operation in every shader; and that shapes and parameters build nothing.
#include "backends/vulkan/kernels/elements/post_op.h"

#include "backends/vulkan/kernels/random_stages_testing.h"
#include "backends/vulkan/shaders/glsl_compiler.h"
#include "backends/vulkan/shaders/shader_text.h"
#include "backends/self_tests/self_tests.h"
#include "families/depthwise/depthwise.h"
#include "families/fft/fft.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/registry.h"
#include "families/values/post_ops.h"
#include "families/winograd/winograd.h"

namespace sparkle::vulkan {
namespace {

using cpu::TestRandom;

// 2 to 8 instructions, most on the value before; each operand is read once at least.
PointwiseParams random_program(TestRandom& random, int operands) {
  using enum PointwiseOp;
  constexpr PointwiseOp kOne[] = {affine, sigmoid, tanh, leaky_relu, silu, clip, abs, hard_swish, elu, relu, gelu, softplus};
  constexpr PointwiseOp kTwo[] = {add, sub, mul, max, min, prelu};
  const auto any = [&](std::span<const PointwiseOp> ops) {
    return ops[static_cast<size_t>(random.between(0, static_cast<int64_t>(ops.size()) - 1))];
  };
  PointwiseParams p{1 + operands, {}};
  const int length = static_cast<int>(random.between(std::max(2, operands), 8));
  for (int i = 0, next = 1, last = 0; i < length; ++i, last = p.inputs + i - 1) {
    PointwiseInstruction step;
    step.x = last;
    const bool two = next <= operands || random.chance(40);
    step.op = two ? any(kTwo) : any(kOne);
    if (two) step.y = next <= operands ? next++ : static_cast<int>(random.between(0, p.inputs + i - 1));
    if (random.chance(15)) step.op = fma, step.y = p.inputs > 1 ? 1 : 0, step.z = 0;
    if (step.op == fma) next = std::max(next, 2);
    step.a = step.op == clip ? -0.75 : 0.4, step.b = 0.9;
    p.program.push_back(step);
  }
  return p;
}

struct Kernel {
  Family family;
  const char* variant;
  bool dense;
  int64_t step;  // channels come in multiples
  int tile;      // of winograd
  int operands;  // of the post-op
};

class PostOpCase {
 public:
  PostOpCase(const Kernel& kernel, uint64_t seed) : kernel_(kernel), s(seed) {
    if (kernel.dense) product();
    else convolution();
  }

 private:
  const Kernel& kernel_;

 public:
  RandomStage s;
  int64_t length = 1;  // of a sum

 private:
  void finish(const Dims& y, const Dims& order) {
    Epilogue& e = *epilogue_of(s.stage.params);
    const int channel = kernel_.dense ? y.size() - 1 : 1;
    TestRandom kind(std::hash<std::string_view>{}(kernel_.variant) + static_cast<uint64_t>(kernel_.operands));
    e.bias = kind.chance(50), e.residuals_before = kind.chance(30),
    e.activation = kind.chance(40) ? Activation::silu : Activation::none;
    e.post_op = random_program(kind, kernel_.operands);
    if (e.bias) s.input(dense_desc(DType::f32, {y[channel]}));
    const TensorDesc like = dense_in(y, order);
    if (e.residuals_before) s.input(like);
    // Whole, per channel, per pixel, one number, or any axes.
    for (int i = 0; i < kernel_.operands; ++i) {
      TensorDesc d = like;
      const int64_t broadcast = s.random.between(0, 4);
      for (int a = 0; a < y.size(); ++a)
        if ((broadcast == 1 && a != channel) || (broadcast == 2 && a == channel) || broadcast == 3 ||
            (broadcast == 4 && s.random.chance(50)))
          d.layout.strides[a] = 0;
      s.input(d);
    }
    for (PointwiseInstruction& step : e.post_op.program)  // parameters build nothing
      if (step.op == PointwiseOp::affine) step.b = s.random.normal();
  }
  TensorDesc dense_in(const Dims& shape, const Dims& order) {
    TensorDesc d{DType::f32, shape, {}};
    d.layout.order = order, d.layout.strides = Dims::filled(shape.size(), 0);
    int64_t step = 1;
    for (int i = order.size() - 1; i >= 0; --i) {
      d.layout.strides[static_cast<int>(order[i])] = step;
      step = step * shape[static_cast<int>(order[i])] + (kernel_.step == 1 ? s.random.between(0, 2) : 0);
    }
    return d;
  }

  void convolution() {
    Window w;
    const bool winograd = kernel_.family == Family::winograd, fft = kernel_.family == Family::fft,
               depthwise = kernel_.family == Family::depthwise || std::string_view(kernel_.variant) == "whole";
    w.filter = {1, 3, 3};
    w.pad_begin = {0, s.random.between(-1, 2), s.random.between(0, 2)};
    const int64_t groups = kernel_.family == Family::gemm && s.random.chance(30) ? 2 : 1;
    const int64_t channels = groups * kernel_.step * s.random.between(1, 5),
                  filters = depthwise ? channels : groups * kernel_.step * s.random.between(1, 7);
    const Dims x{s.random.between(1, 2), channels, s.random.between(3, 9), s.random.between(3, 9)},
        y{x[0], filters, s.random.between(1, 9), s.random.between(1, 9)}, order{0, 2, 3, 1};
    length = (depthwise ? 1 : channels / groups) * 9;
    s.input(dense_in(x, order));
    s.input(dense_desc(DType::f32, {filters, depthwise ? 1 : channels / groups, 3, 3}));
    s.output(dense_in(y, order));
    if (winograd) {
      WinogradParams p;
      p.tile = kernel_.tile, p.window = w;
      s.stage.params = p;
    } else if (fft) {
      FftParams p;
      p.window = w, p.groups = depthwise ? channels : 1;
      s.stage.params = p;
    } else if (depthwise) {
      DepthwiseParams p;
      p.window = w;
      s.stage.params = p;
    } else {
      GemmParams p;
      p.groups = groups, p.window = w;
      const bool rounded = kernel_.variant == std::string_view("cooperative");
      if (rounded) p.operands = OperandType::f16;
      // Rounding to 16 bits is the driver's choice: these are such numbers.
      for (size_t i = 0; rounded && i < 2; ++i)
        s.inputs[i].fill([&] { return static_cast<double>(s.random.between(-1024, 1024)) / 256; });
      s.stage.params = p;
    }
    finish(y, order);
  }
  void product() {
    const int batch = static_cast<int>(s.random.between(1, 3)), rank = batch + 2;
    Dims a, b, y, order;
    for (int i = 0; i < batch; ++i) {
      const int64_t size = s.random.between(1, 3);
      a.push_back(size), b.push_back(size), y.push_back(size);
    }
    const int64_t m = s.random.between(1, 40), n = kernel_.step * s.random.between(1, 12),
                  k = kernel_.step * s.random.between(1, 20);
    a.push_back(m), a.push_back(k), b.push_back(k), b.push_back(n), y.push_back(m), y.push_back(n);
    for (int i = 0; i < rank; ++i) order.push_back(i);
    TensorDesc right = dense_in(b, order);
    for (int i = 0; i < batch; ++i)
      if (s.random.chance(40)) right.layout.strides[i] = 0;
    length = k;
    s.input(dense_in(a, order));
    s.input(right);
    s.output(dense_in(y, order));
    GemmParams p;
    p.loader = Loader::dense;
    s.stage.params = p;
    finish(y, order);
  }
};

// A small tile: software devices take long for large ones.
Schedule schedule_of(const Kernel& kernel, const Stage& stage, const Device& device, TestRandom& random, Reason& why) {
  const auto schedules = info(kernel.family).schedules(stage, *variant_named(kernel.family, kernel.variant), device, why);
  if (std::string_view(kernel.variant) == "cooperative") {
    TileSchedule s;
    s.variant = kernel.variant, s.unit = kEmulatedUnit;
    s.subgroup = 32, s.pad = kFragmentPad, s.k = 32, s.depth = 2;
    s.m = s.thread_m = 16, s.n = s.thread_n = 32;
    why = Reason::none;
    return s;
  }
  if (schedules.empty()) return {};
  Schedule schedule = schedules.front();
  if (auto* transforms = get_if<FftTileSchedule>(&schedule)) {
    transforms->rows = transforms->columns = 16, transforms->pairs = 1, transforms->threads = 64;
    TileSchedule& tile = transforms->product;
    tile.m = tile.n = 32, tile.k = 16, tile.thread_m = tile.thread_n = 4, tile.subgroup = 0, tile.split = tile.unroll = 1;
    return schedule;
  }
  auto* tile = get_if<TileSchedule>(&schedule);
  if (tile && (tile->variant == "implicit" || tile->variant == "points")) {
    tile->m = tile->n = 32, tile->k = 16, tile->thread_m = tile->thread_n = 4, tile->unroll = 2, tile->subgroup = 0;
    tile->split = tile->variant == "implicit" && kernel.operands == 4 ? static_cast<int>(random.between(2, 3)) : 1;
  }
  return schedule;
}

void check_kernel(VulkanBackend& backend, const Kernel& kernel, int cases) {
  const uint64_t before = backend.counters().pipelines;
  int tried = 0;
  for (int i = 0; i < cases && !::testing::Test::HasFailure(); ++i) {
    PostOpCase test(kernel, 100 + static_cast<uint64_t>(i));
    Reason why = Reason::none;
    const Schedule schedule = schedule_of(kernel, test.s.stage, backend.device(), test.s.random, why);
    if (why != Reason::none) continue;
    ++tried;
    const std::string note = "seed " + std::to_string(100 + i) + " " + to_text(schedule) + " " + to_text(test.s.stage.params);
    // The sums by themselves, then the program: what the reference must give, and what an error of the sums makes of it.
    Stage bare = test.s.stage;
    const PointwiseParams post_op = std::exchange(epilogue_of(bare.params)->post_op, {});
    std::vector<TestOperand> first(test.s.inputs.begin(), test.s.inputs.end() - kernel.operands);
    bare.inputs.resize(first.size());
    auto sums = reference_outputs(bare, first), wanted = reference_outputs(test.s.stage, test.s.inputs);
    const Status ran = run_stage(backend, test.s.stage, schedule, test.s.inputs, test.s.outputs, 2);
    ASSERT_TRUE(ran.ok()) << ran.error().message << " " << note;
    double largest = 1e-30;
    for_each_index(sums[0].desc.shape, [&](const Dims& at) { largest = std::max(largest, std::abs(sums[0].at(at))); });
    const double tolerance = (kernel.family == Family::winograd || kernel.family == Family::fft ? 2e-6 : 4e-7) *
                             (4 + std::sqrt(static_cast<double>(test.length)));
    int wrong = 0;
    TestOperand &got = test.s.outputs[0], gaps(got.desc);
    for_each_index(got.desc.shape, [&](const Dims& at) {
      std::vector<double> values{sums[0].at(at)};
      for (int k = 0; k < kernel.operands; ++k) values.push_back(test.s.inputs[first.size() + static_cast<size_t>(k)].at(at));
      const double b = wanted[0].at(at);
      EXPECT_EQ(b, evaluate(post_op, values)) << note;
      const double slack = post_op_slack(post_op, values, tolerance * largest) + 2e-6 * std::max(1.0, std::abs(b));
      if (!(std::abs(got.at(at) - b) <= slack) && ++wrong <= 3)
        ADD_FAILURE() << note << " at " << at.to_string() << ": " << got.at(at) << " instead of " << b;
      std::memcpy(element_at(gaps.view(), at), element_at(got.view(), at), 4);
    });
    EXPECT_EQ(wrong, 0) << note;
    EXPECT_TRUE(gaps.bytes == got.bytes) << note << ": bytes between the elements have changed";
  }
  EXPECT_GE(tried, cases / 2) << kernel.variant;
  std::printf("%s: %d cases, %d pipelines\n", kernel.variant, tried, static_cast<int>(backend.counters().pipelines - before));
  EXPECT_LE(backend.counters().pipelines - before, kernel.dense ? 8u : 6u)
      << kernel.variant << ": a shape has built a pipeline";
}

TEST(VulkanPostOp, ProductsMatchTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Kernel& kernel :
       {Kernel{Family::gemm, "naive", false, 1, 0, 3}, Kernel{Family::gemm, "naive", true, 1, 0, 2},
        Kernel{Family::gemm, "halo", false, 1, 0, 1}, Kernel{Family::gemm, "fours", false, 4, 0, 4},
        Kernel{Family::gemm, "several", true, 4, 0, 1}, Kernel{Family::gemm, "implicit", false, 4, 0, 2},
        Kernel{Family::gemm, "implicit", true, 4, 0, 4}, Kernel{Family::gemm, "implicit", false, 4, 0, 0}})
    check_kernel(*backend, kernel, 24);
}

// On fragments in shared memory: the text for matrix units.
TEST(VulkanPostOp, FragmentsMatchTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  if (!backend->context().features().f16) GTEST_SKIP() << "SKIP: the device has no 16-bit floats";
  check_kernel(*backend, {Family::gemm, "cooperative", false, 4, 0, 2}, 8);
}

TEST(VulkanPostOp, WinogradMatchesTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Kernel& kernel :
       {Kernel{Family::winograd, "points", false, 1, 2, 3}, Kernel{Family::winograd, "points", false, 4, 4, 1}})
    check_kernel(*backend, kernel, 16);
}

TEST(VulkanPostOp, TransformsMatchTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Kernel& kernel : {Kernel{Family::fft, "points", false, 1, 0, 3}, Kernel{Family::fft, "whole", false, 1, 0, 2}})
    check_kernel(*backend, kernel, 16);
}

TEST(VulkanPostOp, DepthwiseMatchesTheReference) {
  SPARKLE_NEEDS_VULKAN(backend);
  for (const Kernel& kernel :
       {Kernel{Family::depthwise, "naive", false, 1, 0, 4}, Kernel{Family::depthwise, "quads", false, 4, 0, 2},
        Kernel{Family::depthwise, "vectors", false, 4, 0, 1}})
    check_kernel(*backend, kernel, 24);
}

// What glslang makes of the texts: names of a program and those of its shader must not meet.
TEST(VulkanPostOp, EveryShaderTakesEveryOperation) {
  PointwiseParams all{5, {}};
  for (int k = 0; k <= static_cast<int>(PointwiseOp::mish); ++k) {
    const auto op = static_cast<PointwiseOp>(k);
    if (op == PointwiseOp::power_of_two) continue;
    const int last = all.program.empty() ? 0 : all.inputs + static_cast<int>(all.program.size()) - 1;
    all.program.push_back({op, last, k % 5, (k + 1) % 5, 0.25, 0.75});
  }
  for (const std::string_view shader :
       {"gemm_naive", "gemm_direct", "gemm_halo", "gemm_tile", "gemm_reduce", "gemm_cooperative", "gemm_cooperative_emulated",
        "winograd_output", "fft_whole", "fft_output", "depthwise_vectors", "depthwise_window_1", "depthwise_window_4"})
    for (const bool batches : {false, true}) {
      if (batches && !shader.starts_with("gemm")) continue;
      const auto post_op = post_op_text(all, batches, true);
      ASSERT_TRUE(post_op.ok()) << post_op.error().message;
      const auto text = shader_text(shader, *post_op);
      ASSERT_TRUE(text.ok()) << text.error().message;
      const auto words = compile_glsl(*text);
      EXPECT_TRUE(words.ok()) << shader << ": " << words.error().message;
    }
  EXPECT_FALSE(shader_text("gemm", "").ok());
  EXPECT_FALSE(post_op_text({1, {{PointwiseOp::power_of_two, 0, 0, 0, 0, 0}}}, false, true).ok());
}

// A step with its post-op is tried as it is, and what fails is the post-op alone.
TEST(VulkanPostOp, IsTriedBeforeItIsTrusted) {
  ContextOptions options;
  options.cache = false;
  const PointwiseParams post_op{2, {{PointwiseOp::prelu, 0, 1, 0, 0, 0}}};
  for (const bool broken : {false, true}) {
    Faults faults;
    if (broken) faults.nothing = "gemm/" + post_op_name(post_op);
    std::string why;
    const auto backend = test_backend(options, why, faults);
    if (!backend) GTEST_SKIP() << why;
    RandomStage s(3);
    GemmParams p;
    p.loader = Loader::dense, p.epilogue.post_op = post_op;
    s.stage.params = p;
    s.stage.inputs = {dense_desc(DType::f32, {4, 8}), dense_desc(DType::f32, {8, 4}), dense_desc(DType::f32, {4, 4})};
    s.stage.outputs = {dense_desc(DType::f32, {4, 4})};
    const Variant& naive = *variant_named(Family::gemm, "naive");
    Reason reason = Reason::none;
    const Schedule schedule = info(Family::gemm).schedules(s.stage, naive, backend->device(), reason).front();
    const ScheduledStage one{&s.stage, &schedule};
    EXPECT_EQ(post_op_refusal(s.stage, naive, backend->device()), Reason::none);
    const Status tried = backend->try_out({&one, 1});
    EXPECT_EQ(tried.ok(), !broken) << tried.error().message;
    EXPECT_EQ(post_op_refusal(s.stage, naive, backend->device()), broken ? Reason::failed_probe : Reason::none);
    EXPECT_FALSE(backend->device().denies("gemm", "naive"));
  }
}

}  // namespace
}  // namespace sparkle::vulkan
