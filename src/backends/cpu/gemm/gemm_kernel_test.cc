// The CPU's gemm kernels against the family's reference: random shapes, layouts, schedules, units and epilogues.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gemm/gemm_nest.h"
#include "backends/cpu/test_units.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/stored_weights.h"
#include "families/gemm/scalar_unit.h"

namespace sparkle::cpu {
namespace {

constexpr uint32_t kPoison = 0x7fc54321;  // a NaN that no computation makes

class Threads final : public Executor {
 public:
  explicit Threads(int width) : width_(width) {}
  int width() const override { return width_; }
  void run(int tasks, void (*work)(void*, int, int), void* context) override {
    std::vector<std::thread> threads;
    for (int w = 0; w < width_; ++w)
      threads.emplace_back([=, this] {
        for (int task = w; task < tasks; task += width_) work(context, task, w);
      });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int width_;
};

struct Operand {
  TensorDesc desc;
  std::vector<float> memory;
  TensorView view() { return {reinterpret_cast<std::byte*>(memory.data()), desc}; }
};

class Case {
 public:
  explicit Case(uint32_t seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool chance(double p) { return std::bernoulli_distribution(p)(random_); }
  float value() { return std::normal_distribution<float>()(random_); }

  // Strides for `shape` in the order given, innermost with stride 1 and gaps of up to `gap` elements after each axis.
  Operand operand(const Dims& shape, const Dims& order, int64_t gap, bool fill) {
    Operand o;
    o.desc.shape = shape;
    o.desc.layout.order = order;
    o.desc.layout.strides = Dims::filled(shape.size(), 0);
    int64_t step = 1;
    for (int i = order.size() - 1; i >= 0; --i) {
      o.desc.layout.strides[static_cast<int>(order[i])] = step;
      step = step * shape[static_cast<int>(order[i])] + pick(0, gap);
    }
    o.desc.layout.offset = pick(0, gap);
    finish(o, fill);
    return o;
  }
  void finish(Operand& o, bool fill) {
    o.memory.resize(static_cast<size_t>(extent(o.desc.shape, o.desc.layout)) + 8);
    for (float& v : o.memory) {
      if (fill) v = value();
      else std::memcpy(&v, &kPoison, 4);
    }
  }
  std::mt19937 random_;
};

struct Problem {
  Stage stage;
  std::vector<Operand> inputs;
  Operand output;
};

Dims nhwc(int rank) {
  Dims order{0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}
Dims row(int rank) {
  Dims order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  return order;
}

void add_epilogue(Case& c, Problem& p, GemmParams& params, int64_t channels, const Dims& order) {
  Epilogue& e = params.epilogue;
  e.alpha = c.chance(0.2) ? 0.5 : 1;
  e.scale = c.chance(0.3);
  e.bias = c.chance(0.6);
  e.residuals_before = static_cast<int>(c.chance(0.3) ? c.pick(1, 2) : 0);
  e.residuals_after = c.chance(0.2) && e.residuals_before < 2 ? 1 : 0;
  e.activation = c.chance(0.5) ? Activation::relu : static_cast<Activation>(c.pick(0, 14));
  e.a = 0.25, e.b = 0.75;
  for (int i = 0; i < e.scale + e.bias; ++i) p.inputs.push_back(c.operand({channels}, {0}, 2, true));
  for (int i = 0; i < e.residuals_before + e.residuals_after; ++i) {
    Operand r = c.operand(p.output.desc.shape, c.chance(0.8) ? order : row(order.size()), 3, true);
    if (c.chance(0.3)) r.desc.layout.strides[static_cast<int>(c.pick(0, order.size() - 1))] = 0;
    p.inputs.push_back(std::move(r));
  }
}

Problem window_problem(Case& c) {
  Problem p;
  GemmParams params;
  const int spatial = static_cast<int>(c.pick(1, 3)), rank = spatial + 2;
  params.groups = c.chance(0.3) ? c.pick(2, 4) : 1;
  const int64_t channels = params.groups * (c.chance(0.2) ? c.pick(1, 3) : c.pick(1, 40));
  const int64_t filters = params.groups * c.pick(1, params.groups > 1 ? 40 : 150);
  Dims x{c.pick(1, 3), channels}, y{x[0], filters}, w{filters, channels / params.groups};
  for (int i = 0; i < spatial; ++i) {
    const auto at = static_cast<size_t>(3 - spatial + i);
    Window& f = params.window;
    const int64_t input = c.pick(1, spatial == 3 ? 5 : 12);
    f.filter[at] = c.chance(0.4) ? 1 : c.pick(1, 5);
    f.stride[at] = c.chance(0.6) ? 1 : c.pick(1, 3);
    f.dilation[at] = c.chance(0.7) ? 1 : c.pick(1, 3);
    f.pad_begin[at] = c.chance(0.4) ? 0 : c.pick(-2, 4);
    x.push_back(input);
    y.push_back(c.pick(1, 11));  // any size: outputs beyond the input see padding alone
    w.push_back(f.filter[at]);
  }
  p.inputs.push_back(c.operand(x, nhwc(rank), c.chance(0.5) ? 5 : 0, true));
  p.inputs.push_back(c.operand(w, row(rank), 0, true));
  Operand& weights = p.inputs[1];
  if (c.chance(0.3)) {  // a flipped view, as transposed convolutions use it
    const int axis = rank - 1;
    weights.desc.layout.offset = (w[axis] - 1) * weights.desc.layout.strides[axis];
    weights.desc.layout.strides[axis] = -weights.desc.layout.strides[axis];
    weights.memory.resize(static_cast<size_t>(w.product()) + 8);
  }
  p.output = c.operand(y, nhwc(rank), c.chance(0.5) ? 7 : 0, false);
  add_epilogue(c, p, params, filters, nhwc(rank));
  p.stage.params = params;
  return p;
}

Problem dense_problem(Case& c) {
  Problem p;
  GemmParams params;
  params.loader = Loader::dense;
  const int batch = static_cast<int>(c.pick(0, 3)), rank = batch + 2;
  const int64_t m = c.chance(0.3) ? c.pick(1, 5) : c.pick(1, 40), n = c.pick(1, 150), k = c.pick(1, 200);
  Dims a, b, y;
  for (int i = 0; i < batch; ++i) {
    const int64_t size = c.pick(1, 3);
    a.push_back(size), b.push_back(size), y.push_back(size);
  }
  a.push_back(m), a.push_back(k), b.push_back(k), b.push_back(n), y.push_back(m), y.push_back(n);
  const auto transposed = [&](int r) {
    Dims order = row(r);
    std::swap(order[r - 1], order[r - 2]);
    return order;
  };
  p.inputs.push_back(c.operand(a, c.chance(0.3) ? transposed(rank) : row(rank), c.chance(0.5) ? 5 : 0, true));
  p.inputs.push_back(c.operand(b, c.chance(0.4) ? transposed(rank) : row(rank), c.chance(0.5) ? 5 : 0, true));
  for (int operand = 0; operand < 2; ++operand)
    for (int i = 0; i < batch; ++i)
      if (c.chance(0.3)) p.inputs[static_cast<size_t>(operand)].desc.layout.strides[i] = 0;
  p.output = c.operand(y, row(rank), c.chance(0.5) ? 7 : 0, false);
  add_epilogue(c, p, params, n, row(rank));
  p.stage.params = params;
  return p;
}

std::vector<MathUnit> units_here() {
  std::vector<MathUnit> units;
  for (const std::string& name : test_units()) {
    MathUnit unit;
    unit.name = name;
    unit.registers = name == "avx2" ? 16 : 32;
    unit.n = static_cast<int>(tile_kernels_of(name)->lanes);
    units.push_back(unit);
  }
  return units;
}

GemmSchedule random_schedule(Case& c, const MathUnit& unit) {
  GemmSchedule s;
  s.unit = unit.name;
  s.variant = unit.registers >= 32 ? "tile6x4" : "tile6x2";
  s.mr = c.chance(0.7) ? 6 : static_cast<int>(c.pick(1, 6));
  const int widest = unit.registers >= 32 ? 4 : 2;
  s.nr = c.chance(0.7) ? widest : static_cast<int>(c.pick(1, widest));
  s.kc = c.chance(0.5) ? 0 : c.pick(1, 100);
  s.mc = c.chance(0.5) ? 0 : c.pick(1, 60);
  s.order = c.chance(0.5) ? GemmOrder::rows : GemmOrder::columns;
  s.prefetch = static_cast<int>(c.pick(0, 2));
  s.split = static_cast<int>(c.pick(0, 2));
  s.grain = c.chance(0.5) ? 0 : c.pick(1, 2000);
  return s;
}

struct AlignedBytes {
  explicit AlignedBytes(int64_t bytes) : memory(static_cast<size_t>(bytes) + 128) {
    std::memset(memory.data(), 0xff, memory.size());  // NaN
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    data = memory.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> memory;
  std::byte* data;
};

// What rounding to a type does to numbers at most.
double rounding_of(DType type) { return type == DType::f16 ? 0x1p-11 : type == DType::bf16 ? 0x1p-8 : 0; }

// Cuts numbers off, so that the type holds them as they are.
void make_exact(std::vector<float>& values, DType type) {
  for (float& v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bits &= type == DType::f16 ? ~0x1fffu : ~0xffffu;
    if (std::abs(v) < 0x1p-14f) bits = 0;
    std::memcpy(&v, &bits, 4);
  }
}

// `variant`: another one than the plain tiles. `exact`: the type in which it keeps weights holds them.
void check(Problem& p, Case& c, const MathUnit& unit, const std::string& what, bool scalar = false,
           std::string_view variant = {}, bool exact = false) {
  const DType stored = stored_weights(variant);
  if (exact) make_exact(p.inputs[1].memory, stored);
  for (Operand& o : p.inputs) p.stage.inputs.push_back(o.desc);
  p.stage.outputs = {p.output.desc};
  const auto& params = get<GemmParams>(p.stage.params);
  Device device;
  device.units = {unit};
  GemmSchedule schedule = random_schedule(c, unit);
  if (scalar) schedule.unit = kScalarUnit;
  if (!variant.empty()) schedule.variant = variant;
  if (variant == kRowDots) schedule.nr = static_cast<int>(c.pick(1, 4));
  SCOPED_TRACE(what + " " + to_text(params) + " " + to_text(schedule) + " x=" + p.inputs[0].desc.shape.to_string() +
               " w=" + p.inputs[1].desc.shape.to_string() + " y=" + p.output.desc.shape.to_string());
  const bool constant = stored != DType::f32 || c.chance(0.6);
  auto made = make_gemm(p.stage, schedule, device, constant ? 2u : 0u);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const CpuKernel& kernel = **made;
  Threads executor(static_cast<int>(c.pick(1, 2)));

  std::vector<std::byte*> inputs;
  AlignedBytes packed(kernel.packed_bytes(1));
  for (Operand& o : p.inputs) inputs.push_back(reinterpret_cast<std::byte*>(o.view().at_origin<float>()));
  if (constant) {
    ASSERT_GT(kernel.packed_bytes(1), 0);
    ASSERT_FALSE(kernel.packed_key(1).empty());
    kernel.pack(1, reinterpret_cast<std::byte*>(p.inputs[1].memory.data()), packed.data, executor);
    inputs[1] = packed.data;
  } else {
    ASSERT_EQ(kernel.packed_bytes(1), 0);
  }
  AlignedBytes workspace(kernel.workspace_bytes());
  std::byte* output = reinterpret_cast<std::byte*>(p.output.view().at_origin<float>());
  kernel.run({inputs, {&output, 1}, workspace.data, &executor});

  // Reference, and the same with absolute values: what rounding errors scale with.
  Operand expected = p.output, magnitude = p.output;
  std::vector<TensorView> views, absolute_views;
  std::vector<Operand> absolutes = p.inputs;
  for (Operand& o : p.inputs) views.push_back(o.view());
  for (Operand& o : absolutes) {
    for (float& v : o.memory) v = std::abs(v);
    absolute_views.push_back(o.view());
  }
  const TensorView expected_view = expected.view(), magnitude_view = magnitude.view();
  gemm_reference(params, views, {&expected_view, 1});
  GemmParams linear = params;
  linear.epilogue.activation = Activation::none;
  gemm_reference(linear, absolute_views, {&magnitude_view, 1});
  double length = static_cast<double>(p.inputs[1].desc.shape.product());
  const double eps = 1.2e-7 * (8 + 2 * std::sqrt(length)) + (exact ? 0 : rounding_of(stored));
  for (size_t i = 0; i < p.output.memory.size(); ++i) {
    uint32_t bits, reference_bits;
    std::memcpy(&bits, &p.output.memory[i], 4);
    std::memcpy(&reference_bits, &expected.memory[i], 4);
    if (reference_bits == kPoison) {
      ASSERT_EQ(bits, kPoison) << "written outside of the output at element " << i;
      continue;
    }
    const double bound = eps * static_cast<double>(std::abs(magnitude.memory[i])) +
                         1e-6 * std::abs(static_cast<double>(expected.memory[i])) + 1e-7;
    ASSERT_NEAR(p.output.memory[i], expected.memory[i], bound) << "element " << i;
  }
}

TEST(GemmKernel, window_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 0; seed < static_cast<uint32_t>(cases_on(unit.name, 400)); ++seed) {
      Case c(seed);
      Problem p = window_problem(c);
      check(p, c, unit, "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
}

TEST(GemmKernel, dense_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 1000; seed < 1000 + static_cast<uint32_t>(cases_on(unit.name, 400)); ++seed) {
      Case c(seed);
      Problem p = dense_problem(c);
      check(p, c, unit, "seed " + std::to_string(seed));
      if (HasFatalFailure()) return;
    }
}

// Whatever the planner would do with them: sums shorter than a vector too, and cut into chunks.
TEST(GemmKernel, row_dots_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 0; seed < static_cast<uint32_t>(cases_on(unit.name, 200)); ++seed) {
      Case c(seed);
      Problem p = c.chance(0.5) ? window_problem(c) : dense_problem(c);
      check(p, c, unit, "row dots, seed " + std::to_string(seed), false, kRowDots);
      if (HasFatalFailure()) return;
    }
}

TEST(GemmKernel, scalar_like_reference) {
  for (const MathUnit& unit : units_here())
    for (uint32_t seed = 2000; seed < 2000 + static_cast<uint32_t>(cases_on(unit.name, 200)); ++seed) {
      Case c(seed);
      Problem p = c.chance(0.7) ? window_problem(c) : dense_problem(c);
      check(p, c, unit, "seed " + std::to_string(seed), true);
      if (HasFatalFailure()) return;
    }
}

TEST(GemmKernel, stored_weights_like_reference) {
  for (const MathUnit& unit : units_here())
    for (const std::string_view type : {"half", "bfloat"}) {
      const std::string variant = std::string(type) + (unit.registers >= 32 ? "6x4" : "6x2");
      for (uint32_t seed = 3000; seed < 3000 + static_cast<uint32_t>(cases_on(unit.name, 300)); ++seed) {
        Case c(seed);
        Problem p = c.chance(0.6) ? window_problem(c) : dense_problem(c);
        check(p, c, unit, variant + " seed " + std::to_string(seed), false, variant, c.chance(0.5));
        if (HasFatalFailure()) return;
      }
    }
}

TEST(GemmKernel, stored_weights_are_rounded_to_nearest_even) {
  for (const MathUnit& unit : units_here())
    for (const DType type : {DType::f16, DType::bf16}) {
      const TileKernels tiles = tile_kernels_16(unit.name, type);
      const float step = type == DType::f16 ? 0x1p-10f : 0x1p-7f;  // between 1 and the next number
      const std::vector<float> one{1, 1 + step / 2, 1 + step * 0.51f, 1 + step * 1.5f, -1 - step / 2, 0, 65504, -0x1p-14f};
      const std::vector<float> want{1, 1, 1 + step, 1 + 2 * step, -1, 0, type == DType::f16 ? 65504.f : 65536.f, -0x1p-14f};
      std::vector<float> from(static_cast<size_t>(8 * tiles.lanes));
      for (size_t i = 0; i < from.size(); ++i) from[i] = one[i % 8];
      std::vector<uint16_t> to(from.size());
      tiles.narrow(from.data(), to.data(), static_cast<int64_t>(from.size()));
      for (size_t i = 0; i < from.size(); ++i) {
        const float w = want[i % 8];
        uint32_t bits;
        std::memcpy(&bits, &w, 4);
        // Normal numbers of f16 have their exponents 112 lower and 13 bits less of the mantissa.
        const uint32_t size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
        const uint32_t half = sign | (size == 0 ? 0 : (size >> 13) - (112u << 10));
        EXPECT_EQ(to[i], type == DType::f16 ? half : bits >> 16) << unit.name << " " << from[i];
      }
    }
}

TEST(GemmKernel, stored_weights_must_be_constant) {
  const auto units = units_here();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  Device device;
  device.units = units;
  GemmParams params;
  params.loader = Loader::dense;
  const Stage stage{
      params, {dense_desc(DType::f32, {1, 20}), dense_desc(DType::f32, {20, 32})}, {dense_desc(DType::f32, {1, 32})}};
  GemmSchedule schedule;
  schedule.unit = units[0].name;
  schedule.nr = 2;
  schedule.variant = "half6x2";
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::backend_lacks_variant);
  const auto half = make_gemm(stage, schedule, device, 2);
  schedule.variant = "bfloat6x2";
  const auto bfloat = make_gemm(stage, schedule, device, 2);
  schedule.variant = "tile6x2";
  const auto tile = make_gemm(stage, schedule, device, 2);
  ASSERT_TRUE(half.ok() && bfloat.ok() && tile.ok());
  EXPECT_EQ(2 * (*half)->packed_bytes(1), (*tile)->packed_bytes(1));
  EXPECT_NE((*half)->packed_key(1), (*tile)->packed_key(1));
  EXPECT_NE((*half)->packed_key(1), (*bfloat)->packed_key(1));
}

// Random shapes reach these calls too; here it is certain. The kernels only count.
TEST(GemmKernel, narrow_panels_take_two_tiles_a_call) {
  static int single, tall, rows;
  single = tall = rows = 0;
  TileKernels tiles;
  tiles.lanes = 16, tiles.max_vectors = 4, tiles.tall_vectors = 2;
  const auto fill = [&]<size_t... kRows>(std::index_sequence<kRows...>) {
    ((tiles.tile[0][kRows][1] =
          [](const TileCall&) {
            ++(kRows + 1 > kMaxTileRows ? tall : single);
            rows += static_cast<int>(kRows + 1);
          }),
     ...);
  };
  fill(std::make_index_sequence<kMaxCallRows>());
  GemmParams params;
  params.loader = Loader::dense;
  const Stage stage{
      params, {dense_desc(DType::f32, {50, 20}), dense_desc(DType::f32, {20, 32})}, {dense_desc(DType::f32, {50, 32})}};
  const GemmSchedule schedule;
  auto geometry = gemm_geometry(stage, schedule, tiles.lanes);
  ASSERT_TRUE(geometry.ok());
  std::vector<float> floats(50 * 32);
  GemmOperands operands;
  operands.a = operands.bias = floats.data();
  operands.b = floats.data();
  operands.y = floats.data();
  InlineExecutor executor;
  run_gemm(*geometry, schedule, {}, tiles, operands, executor);
  EXPECT_EQ(tall, 4);  // 9 tiles of 5 or 6 rows
  EXPECT_EQ(single, 1);
  EXPECT_EQ(rows, 50);
}

TEST(GemmKernel, errors_name_the_reason) {
  const auto units = units_here();
  if (units.empty()) GTEST_SKIP() << "no vector unit here";
  Device device;
  device.units = units;
  GemmSchedule schedule;
  schedule.unit = units[0].name;
  schedule.nr = 1;
  Stage stage{GemmParams{},
              {dense_desc(DType::f32, {1, 8, 4, 4}), dense_desc(DType::f32, {8, 8, 1, 1})},
              {dense_desc(DType::f32, {1, 8, 4, 4})}};
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::layout_not_served);
  stage.inputs[0].layout = stage.outputs[0].layout = channels_last({1, 8, 4, 4});
  EXPECT_TRUE(make_gemm(stage, schedule, device, 0).ok());
  stage.inputs[0].dtype = DType::f16;
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::type_not_served);
  stage.inputs[0].dtype = DType::f32;
  schedule.mr = 9;
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::backend_lacks_variant);
  schedule.mr = 6;
  schedule.unit = "abacus";
  EXPECT_EQ(make_gemm(stage, schedule, device, 0).error().reason, Reason::backend_lacks_variant);
  EXPECT_EQ(make_gemm(stage, LoopSchedule{}, device, 0).error().reason, Reason::backend_lacks_variant);
}

}  // namespace
}  // namespace sparkle::cpu
