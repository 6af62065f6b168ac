// For tests: random problems of the gemm family in f32 - windows and dense, any layout, epilogues of all kinds - and a kernel's
// results held against the reference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "families/gemm/gemm_family.h"

namespace sparkle::cpu::gemm_problems {

inline constexpr uint32_t kPoison = 0x7fc54321;  // a NaN that no computation makes

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

inline Dims nhwc(int rank) {
  Dims order{0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}
inline Dims row(int rank) {
  Dims order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  return order;
}

inline void add_epilogue(Case& c, Problem& p, GemmParams& params, int64_t channels, const Dims& order) {
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

inline Problem window_problem(Case& c) {
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

inline Problem dense_problem(Case& c) {
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

struct AlignedBytes {
  explicit AlignedBytes(int64_t bytes) : memory(static_cast<size_t>(bytes) + 128) {
    std::memset(memory.data(), 0xff, memory.size());  // NaN
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    data = memory.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> memory;
  std::byte* data;
};

// Runs the kernel on the problem, whose stage is complete, and compares with the reference: sums may be off by a share of their
// factors' magnitudes that grows with the root of their length, and by `rounding` of them.
inline void run_and_compare(Problem& p, Case& c, const CpuKernel& kernel, bool constant, double rounding) {
  const auto& params = get<GemmParams>(p.stage.params);
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
  const double eps = 1.2e-7 * (8 + 2 * std::sqrt(length)) + rounding;
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

}  // namespace sparkle::cpu::gemm_problems
