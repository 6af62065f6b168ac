// LayerCheck itself: its sums are the reference's on random calls of every kind, and whatever differs from them is found.
#include "measure/checks/layer_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/system/thread_pool.h"
#include "families/common.h"
#include "families/values/element.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_tiles.h"
#include "families/registry.h"

namespace sparkle {
namespace {

AnchorCall call_for(const Problem& problem) {
  const ProblemOperands operands = operands_of(problem);
  return {problem, operands.inputs, operands.output};
}

// What the family's definition makes of the check's operands.
std::vector<float> reference_of(const AnchorCall& call, const std::vector<HostTensor>& values) {
  const Problem& p = call.problem;
  std::vector<float> y(static_cast<size_t>(extent(call.output.shape, call.output.layout)), NAN);
  std::vector<TensorView> inputs;
  for (size_t i = 0; i < values.size(); ++i) inputs.push_back({values[i].bytes.get(), call.inputs[i]});
  const TensorView output{reinterpret_cast<std::byte*>(y.data()), call.output};
  const GemmParams params{p.kind == ProblemKind::matmul ? Loader::dense : Loader::window, p.groups, p.window, p.epilogue};
  info(Family::gemm).reference(params, inputs, {&output, 1});
  return y;
}

std::string random_conv(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int g = pick(0, 2) == 0 ? pick(2, 5) : 1;
  const auto text = [](const char* name, int value) { return name + std::to_string(value); };
  return text("g", g) + text("mb", pick(1, 3)) + text("ic", g * pick(1, 20)) + text("ih", pick(9, 14)) +
         text("iw", pick(9, 14)) + text("oc", g * pick(1, 9)) + text("kh", pick(1, 4)) + text("kw", pick(1, 4)) +
         text("sh", pick(1, 3)) + text("sw", pick(1, 2)) + text("dh", pick(0, 1)) + text("dw", pick(0, 1)) +
         text("ph", pick(0, 2)) + text("pw", pick(0, 2));
}

TEST(LayerCheck, SumsAreTheReferences) {
  ThreadPool pool(2);
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 40; ++i) {
    const std::string text = random_conv(random);
    SCOPED_TRACE(text);
    auto problem = i % 4 == 3 ? parse_gemm(std::to_string(1 + random() % 40) + "x" + std::to_string(1 + random() % 70) + "x" +
                                           std::to_string(1 + random() % 90))
                              : parse_conv(text);
    ASSERT_TRUE(problem.ok()) << problem.error().message;
    problem->epilogue.scale = random() % 3 == 0, problem->epilogue.bias = random() % 2;
    problem->epilogue.residuals_before = static_cast<int>(random() % 2);
    problem->epilogue.residuals_after = static_cast<int>(random() % 2);
    problem->epilogue.activation = random() % 2 ? Activation::relu : Activation::none;
    const AnchorCall call = call_for(*problem);
    const auto check = LayerCheck::make(call, random(), random(), pool);
    ASSERT_TRUE(check.ok());
    std::vector<float> y = reference_of(call, (*check)->inputs());
    Checked checked;
    const Status right = (*check)->accept(y.data(), (*check)->bound_of(0, 5e-5), "The reference", checked);
    EXPECT_TRUE(right.ok()) << right.error().message;
    EXPECT_TRUE(checked.exact && checked.whole());
    // Any element, by the last bit.
    float& one = y[random() % y.size()];
    one = std::nextafter(one, 1e30f);
    EXPECT_FALSE((*check)->accept(y.data(), 0, "The reference", checked).ok());
  }
}

// Too many products to compute all of them again: rows that the seed draws, and all others must at least have been written.
TEST(LayerCheck, LargeOutputsAreComparedByRowsThatTheSeedDraws) {
  ThreadPool pool(2);
  const auto problem = parse_conv("ic8ih20oc4oh20kh3ph1");
  ASSERT_TRUE(problem.ok());
  const AnchorCall call = call_for(*problem);
  const double few = 25 * 8 * 9 * 4;  // of 25 of its 400 pixels
  std::set<std::set<int64_t>> drawn;
  for (const uint64_t seed : {1, 2}) {
    const auto check = LayerCheck::make(call, seed, 7, pool, few);
    ASSERT_TRUE(check.ok());
    const std::vector<float> right = reference_of(call, (*check)->inputs());
    const auto accepted = [&](const std::vector<float>& y) {
      Checked checked;
      return (*check)->accept(y.data(), 0, "It", checked).ok();
    };
    Checked checked;
    ASSERT_TRUE((*check)->accept(right.data(), 0, "It", checked).ok());
    EXPECT_FALSE(checked.whole());
    EXPECT_EQ(checked.of_rows, 400);
    EXPECT_GT(checked.rows, 15);
    EXPECT_LE(checked.rows, 25);
    EXPECT_NE(to_text(checked).find(std::to_string(checked.rows) + " of 400 rows exact"), std::string::npos)
        << to_text(checked);
    EXPECT_NE(to_text(checked).find("seed " + std::to_string(seed)), std::string::npos) << to_text(checked);
    std::set<int64_t> looked_at;
    for (size_t i = 0; i < right.size(); ++i) {
      std::vector<float> y = right;
      y[i] += 1;
      if (!accepted(y)) looked_at.insert(static_cast<int64_t>(i));
      y[i] = NAN;
      EXPECT_FALSE(accepted(y)) << "element " << i << " was not written";
    }
    EXPECT_EQ(looked_at.size(), static_cast<size_t>(checked.rows) * 4);  // each element of a drawn row
    drawn.insert(looked_at);
  }
  EXPECT_EQ(drawn.size(), 2u);
}

TEST(LayerCheck, TransposedSumsAreTheDefinitions) {
  ThreadPool pool(2);
  std::mt19937 random(5);
  for (int i = 0; i < 20; ++i) {
    Problem p;
    p.kind = ProblemKind::conv_transpose;
    p.n = 2, p.groups = 1 + i % 2, p.c = p.groups * 3, p.k = p.groups * 2, p.rank = 2;
    for (size_t d = 1; d < 3; ++d) {
      const auto pick = [&](uint32_t least, uint32_t most) {
        return static_cast<int64_t>(least + random() % (most - least + 1));
      };
      p.in[d] = pick(3, 6), p.window.filter[d] = pick(1, 4), p.window.stride[d] = pick(1, 3), p.window.dilation[d] = pick(1, 2);
      const int64_t reach = (p.window.filter[d] - 1) * p.window.dilation[d] + 1;
      p.window.pad_begin[d] = random() % 2 && reach > 1, p.window.pad_end[d] = 0;
      p.out[d] = (p.in[d] - 1) * p.window.stride[d] + reach - p.window.pad_begin[d];
    }
    SCOPED_TRACE(to_text(p));
    const AnchorCall call = call_for(p);
    const auto check = LayerCheck::make(call, 3, 4, pool);
    ASSERT_TRUE(check.ok());
    const auto value = [&](size_t operand, const Dims& at) {
      const TensorDesc& d = call.inputs[operand];
      int64_t place = d.layout.offset;
      for (int a = 0; a < at.size(); ++a) place += at[a] * d.layout.strides[a];
      return static_cast<double>((*check)->inputs()[operand].data<float>()[place]);
    };
    std::vector<float> y(static_cast<size_t>(call.output.elements()), 0);
    // Each input pixel's products go where the filter takes them.
    const int64_t group_c = p.c / p.groups, group_k = p.k / p.groups;
    for (int64_t n = 0; n < p.n; ++n)
      for (int64_t c = 0; c < p.c; ++c)
        for (int64_t h = 0; h < p.in[1]; ++h)
          for (int64_t v = 0; v < p.in[2]; ++v)
            for (int64_t k = 0; k < group_k; ++k)
              for (int64_t r = 0; r < p.window.filter[1]; ++r)
                for (int64_t s = 0; s < p.window.filter[2]; ++s) {
                  const int64_t to_h = h * p.window.stride[1] - p.window.pad_begin[1] + r * p.window.dilation[1];
                  const int64_t to_w = v * p.window.stride[2] - p.window.pad_begin[2] + s * p.window.dilation[2];
                  if (to_h < 0 || to_h >= p.out[1] || to_w < 0 || to_w >= p.out[2]) continue;
                  const int64_t channel = c / group_c * group_k + k;
                  const Layout& l = call.output.layout;
                  y[static_cast<size_t>(n * l.strides[0] + channel * l.strides[1] + to_h * l.strides[2] +
                                        to_w * l.strides[3])] +=
                      static_cast<float>(value(0, {n, c, h, v}) * value(1, {c, k, r, s}));
                }
    Checked checked;
    const Status right = (*check)->accept(y.data(), 0, "The definition", checked);
    EXPECT_TRUE(right.ok()) << right.error().message;
  }
}

TEST(LayerCheck, BatchesOfProductsShareOperands) {
  ThreadPool pool(1);
  auto problem = parse_gemm("5x7x9");
  ASSERT_TRUE(problem.ok());
  problem->batch = 3;
  const AnchorCall call = call_for(*problem);
  const auto check = LayerCheck::make(call, 1, 2, pool);
  ASSERT_TRUE(check.ok());
  Checked checked;
  EXPECT_TRUE((*check)->accept(reference_of(call, (*check)->inputs()).data(), 0, "The reference", checked).ok());
}

// Kernels that add kShortRun products in f16 must be exact too: no sum of some of these is rounded there, nor lies below f16's
// normal numbers.
TEST(LayerCheck, ShortSumsAreExactInFp16) {
  ThreadPool pool(1);
  const auto exact = [](double value) {
    std::byte half[2];
    store_element(DType::f16, value, half);
    return load_element(DType::f16, half) == value && (value == 0 || std::abs(value) >= 0x1p-14);
  };
  for (const int64_t depth : {1, 9, 72, 576, 4608, 25088, 160000, 1 << 20}) {
    SCOPED_TRACE(std::to_string(depth) + " products");
    const auto problem = parse_gemm("1x2x" + std::to_string(depth));
    ASSERT_TRUE(problem.ok());
    const AnchorCall call = call_for(*problem);
    const auto check = LayerCheck::make(call, 5, 6, pool);
    ASSERT_TRUE(check.ok());
    const float *x = (*check)->inputs()[0].data<float>(), *w = (*check)->inputs()[1].data<float>();
    const Layout &a = call.inputs[0].layout, &b = call.inputs[1].layout;
    const int rank = a.strides.size();
    // The largest that there may be too: all of a run's operands as large as the largest.
    double largest_x = 0, largest_w = 0;
    int64_t rounded = 0;
    for (int64_t k = 0; k < depth; k += kShortRun) {
      double sum = 0;
      for (int64_t i = k; i < std::min<int64_t>(k + kShortRun, depth); ++i) {
        const auto left = static_cast<double>(x[a.offset + i * a.strides[rank - 1]]);
        const auto right = static_cast<double>(w[b.offset + i * b.strides[b.strides.size() - 2]]);
        largest_x = std::max(largest_x, std::abs(left)), largest_w = std::max(largest_w, std::abs(right));
        sum += left * right;
        rounded += !exact(left) + !exact(right) + !exact(left * right) + !exact(sum);
      }
    }
    EXPECT_EQ(rounded, 0);
    for (int i = 1; i <= kShortRun; ++i) EXPECT_TRUE(exact(i * largest_x * largest_w));
  }
}

TEST(LayerCheck, SeedsDiffer) {
  EXPECT_EQ(base_seed(7), 7u);
  EXPECT_NE(base_seed(0), 0u);
  EXPECT_EQ(base_seed(0), base_seed(0));
  EXPECT_NE(seed_of(7, 0), seed_of(7, 1));
  ThreadPool pool(1);
  const auto problem = parse_conv("ic8ih5oc8kh1"), other = parse_conv("ic8ih5oc9kh1");
  ASSERT_TRUE(problem.ok() && other.ok());
  std::set<uint64_t> seeds;
  for (int i = 0; i < 3; ++i)
    for (const uint64_t base : {71, 72}) seeds.insert(next_seed(base, *problem)), seeds.insert(next_seed(base, *other));
  EXPECT_EQ(seeds.size(), 12u);
  const auto first = LayerCheck::make(call_for(*problem), next_seed(0, *problem), 1, pool);
  const auto second = LayerCheck::make(call_for(*problem), next_seed(0, *problem), 1, pool);
  ASSERT_TRUE(first.ok() && second.ok());
  Checked checked;
  // The last answer is not this one's.
  EXPECT_FALSE(
      (*second)->accept(reference_of(call_for(*problem), (*first)->inputs()).data(), 0, "The last answer", checked).ok());
}

TEST(LayerCheck, WhatWasNeverWrittenIsFound) {
  ThreadPool pool(1);
  const auto problem = parse_conv("ic8ih5oc8kh1");
  ASSERT_TRUE(problem.ok());
  const AnchorCall call = call_for(*problem);
  const auto check = LayerCheck::make(call, 1, 1, pool);
  ASSERT_TRUE(check.ok());
  std::vector<float> y = reference_of(call, (*check)->inputs());
  EXPECT_TRUE(all_written(call, y.data(), "It").ok());
  y[y.size() / 2] = NAN;
  Checked checked;
  for (const double bound : {0.0, 0.1})
    EXPECT_NE((*check)->accept(y.data(), bound, "It", checked).error().message.find("nothing was written"), std::string::npos);
  EXPECT_FALSE(all_written(call, y.data(), "It").ok());
}

}  // namespace
}  // namespace sparkle
