// Transposed convolutions as phases of ordinary ones, against the definition: every input pixel scattered through the filter.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "algorithms/algorithm.h"
#include "families/registry.h"

namespace sparkle {
namespace {

int64_t pick(std::mt19937_64& rng, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(rng() % static_cast<uint64_t>(high - low + 1));
}

int64_t place(const TensorDesc& desc, int rank, int64_t n, int64_t c, const Triple& at) {
  const Dims& strides = desc.layout.strides;
  int64_t p = desc.layout.offset + n * strides[0] + c * strides[1];
  for (int s = 0; s < rank; ++s) p += at[static_cast<size_t>(3 - rank + s)] * strides[2 + s];
  return p;
}

template <class F>
void for_each(const Triple& size, F&& f) {
  Triple at{};
  for (at[0] = 0; at[0] < size[0]; ++at[0])
    for (at[1] = 0; at[1] < size[1]; ++at[1])
      for (at[2] = 0; at[2] < size[2]; ++at[2]) f(at);
}

Problem random_problem(std::mt19937_64& rng) {
  Problem p;
  p.kind = ProblemKind::conv_transpose;
  do {
    p.rank = static_cast<int>(pick(rng, 1, 3));
    p.groups = pick(rng, 1, 3), p.n = pick(rng, 1, 2), p.c = p.groups * pick(rng, 1, 3), p.k = p.groups * pick(rng, 1, 3);
    p.in = p.out = {1, 1, 1}, p.window = {};
    for (auto d = static_cast<size_t>(3 - p.rank); d < 3; ++d) {
      Window& w = p.window;
      p.in[d] = pick(rng, 1, 5), w.filter[d] = pick(rng, 1, 4), w.stride[d] = pick(rng, 1, 4), w.dilation[d] = pick(rng, 1, 3);
      const int64_t reach = w.dilation[d] * (w.filter[d] - 1) + 1;
      w.pad_begin[d] = pick(rng, 0, reach - 1), w.pad_end[d] = pick(rng, 0, reach - 1);
      const int64_t output_padding = pick(rng, 0, std::max(w.stride[d], w.dilation[d]) - 1);
      p.out[d] = (p.in[d] - 1) * w.stride[d] + reach + output_padding - w.pad_begin[d] - w.pad_end[d];
    }
  } while (p.out[0] < 1 || p.out[1] < 1 || p.out[2] < 1);
  p.epilogue.bias = rng() % 2;
  if (rng() % 3 == 0) p.epilogue.activation = Activation::relu;
  p.epilogue.residuals_before = static_cast<int>(pick(rng, 0, 1));
  p.epilogue.residuals_after = static_cast<int>(pick(rng, 0, 1));
  return p;
}

TEST(TransposedConvolution, PhasesAddUpToTheDefinition) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 rng(seed);
    const Problem p = random_problem(rng);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_text(p));
    const ProblemOperands operands = operands_of(p);
    std::vector<std::vector<float>> data;
    std::normal_distribution<float> normal;
    for (const TensorDesc& desc : operands.inputs) {
      data.emplace_back(static_cast<size_t>(desc.elements()));
      for (float& v : data.back()) v = normal(rng);
    }
    // A sentinel on both sides, everything between poisoned.
    constexpr size_t kGuard = 16;
    std::vector<float> out(static_cast<size_t>(operands.output.elements()) + 2 * kGuard, std::nanf(""));
    for (size_t i = 0; i < kGuard; ++i) out[i] = out[out.size() - 1 - i] = 12345;

    const StagePlan plan = algorithm_named("gemm")->stages({p, operands.inputs, operands.output});
    EXPECT_TRUE(plan.temporaries.empty());
    for (const StageUse& use : plan.stages) {
      std::vector<TensorView> inputs, outputs;
      for (size_t i = 0; i < use.inputs.size(); ++i)
        inputs.push_back({reinterpret_cast<std::byte*>(data[static_cast<size_t>(use.inputs[i])].data()), use.stage.inputs[i]});
      outputs.push_back({reinterpret_cast<std::byte*>(out.data() + kGuard), use.stage.outputs[0]});
      info(use.stage.family()).reference(use.stage.params, inputs, outputs);
    }

    std::vector<double> want(static_cast<size_t>(operands.output.elements()), 0), size(want.size(), 0);
    const int64_t cg = p.c / p.groups, kg = p.k / p.groups;
    const Window& w = p.window;
    for (int64_t n = 0; n < p.n; ++n)
      for (int64_t c = 0; c < p.c; ++c)
        for (int64_t k = 0; k < kg; ++k)
          for_each(p.in, [&](const Triple& i) {
            for_each(w.filter, [&](const Triple& t) {
              Triple o;
              for (size_t d = 0; d < 3; ++d) {
                o[d] = i[d] * w.stride[d] + t[d] * w.dilation[d] - w.pad_begin[d];
                if (o[d] < 0 || o[d] >= p.out[d]) return;
              }
              const double product =
                  static_cast<double>(data[0][static_cast<size_t>(place(operands.inputs[0], p.rank, n, c, i))]) *
                  static_cast<double>(data[1][static_cast<size_t>(place(operands.inputs[1], p.rank, c, k, t))]);
              const auto at = static_cast<size_t>(place(operands.output, p.rank, n, c / cg * kg + k, o));
              want[at] += product;
              size[at] += std::abs(product);
            });
          });
    for (int64_t n = 0; n < p.n; ++n)
      for (int64_t k = 0; k < p.k; ++k)
        for_each(p.out, [&](const Triple& o) {
          const auto at = static_cast<size_t>(place(operands.output, p.rank, n, k, o));
          size_t next = 2;
          double v = want[at];
          if (p.epilogue.bias) v += static_cast<double>(data[next++][static_cast<size_t>(k)]);
          if (p.epilogue.residuals_before) v += static_cast<double>(data[next++][at]);
          if (p.epilogue.activation == Activation::relu) v = std::max(v, 0.0);
          if (p.epilogue.residuals_after) v += static_cast<double>(data[next++][at]);
          ASSERT_NEAR(out[kGuard + at], v, 1e-6 * (size[at] + std::abs(v) + 1))
              << "n" << n << " k" << k << " at " << o[0] << "," << o[1] << "," << o[2];
        });
    for (size_t i = 0; i < kGuard; ++i) ASSERT_TRUE(out[i] == 12345 && out[out.size() - 1 - i] == 12345);
  }
}

}  // namespace
}  // namespace sparkle
