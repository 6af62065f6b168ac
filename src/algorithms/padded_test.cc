// Convolutions between columns of zeros give what the same convolutions with padding give, for random windows.
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

Problem random_problem(std::mt19937_64& rng) {
  Problem p;
  p.rank = static_cast<int>(pick(rng, 1, 3));
  p.groups = pick(rng, 1, 3), p.n = pick(rng, 1, 2), p.c = p.groups * pick(rng, 1, 3), p.k = p.groups * pick(rng, 1, 3);
  for (auto d = static_cast<size_t>(3 - p.rank); d < 3; ++d) {
    Window& w = p.window;
    w.filter[d] = pick(rng, 1, 5), w.stride[d] = pick(rng, 1, 3), w.dilation[d] = pick(rng, 1, 3);
    const int64_t reach = w.dilation[d] * (w.filter[d] - 1) + 1;
    w.pad_begin[d] = pick(rng, 0, reach + 1), w.pad_end[d] = pick(rng, 0, reach + 1);
    p.in[d] = pick(rng, 1, 9) + std::max<int64_t>(0, reach - w.pad_begin[d] - w.pad_end[d]);
    p.out[d] = (p.in[d] + w.pad_begin[d] + w.pad_end[d] - reach) / w.stride[d] + 1;
  }
  p.epilogue.bias = rng() % 2;
  if (rng() % 3 == 0) p.epilogue.activation = Activation::relu;
  p.epilogue.residuals_after = static_cast<int>(pick(rng, 0, 1));
  return p;
}

// What the stages write, by the reference loops; buffers are poisoned.
std::vector<float> run(const StagePlan& plan, const ProblemOperands& operands, std::vector<std::vector<float>> data) {
  const auto poisoned = [](const TensorDesc& desc) {
    return std::vector<float>(static_cast<size_t>(desc.elements()), std::nanf(""));
  };
  data.push_back(poisoned(operands.output));
  for (const TensorDesc& desc : plan.temporaries) data.push_back(poisoned(desc));
  for (const StageUse& use : plan.stages) {
    const auto views = [&](const std::vector<int>& which, const std::vector<TensorDesc>& descs) {
      std::vector<TensorView> list;
      for (size_t i = 0; i < which.size(); ++i)
        list.push_back({reinterpret_cast<std::byte*>(data[static_cast<size_t>(which[i])].data()), descs[i]});
      return list;
    };
    auto inputs = views(use.inputs, use.stage.inputs), outputs = views(use.outputs, use.stage.outputs);
    info(use.stage.family()).reference(use.stage.params, inputs, outputs);
  }
  return data[operands.inputs.size()];
}

TEST(PaddedConvolution, ColumnsOfZerosAreItsPadding) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 rng(seed);
    const Problem p = random_problem(rng);
    const ProblemOperands operands = operands_of(p);
    const AnchorCall call{p, operands.inputs, operands.output};
    const Algorithm& padded = *algorithm_named("gemm_padded");
    if (padded.applies(call) != Reason::none) continue;
    ++compared;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_text(p));
    std::vector<std::vector<float>> data;
    std::normal_distribution<float> normal;
    for (const TensorDesc& desc : operands.inputs) {
      data.emplace_back(static_cast<size_t>(desc.elements()));
      for (float& v : data.back()) v = normal(rng);
    }
    const StagePlan plan = padded.stages(call);
    ASSERT_EQ(plan.stages.size(), 2u);
    EXPECT_EQ(plan.stages[1].stage.inputs[0].shape, plan.temporaries[0].shape);
    const auto got = run(plan, operands, data), want = run(algorithm_named("gemm")->stages(call), operands, data);
    for (size_t i = 0; i < want.size(); ++i) ASSERT_EQ(got[i], want[i]) << "output " << i;
  }
  EXPECT_GT(compared, 100);
}

TEST(PaddedConvolution, WidePlanesAndThoseWithoutPaddingAreLeft) {
  const auto reason = [](std::string_view text) {
    const Problem p = *parse_conv(text);
    const ProblemOperands operands = operands_of(p);
    return algorithm_named("gemm_padded")->applies({p, operands.inputs, operands.output});
  };
  EXPECT_EQ(reason("ic8ih7oc8oh4kh3sh2ph1"), Reason::none);
  EXPECT_EQ(reason("ic8ih7oc8oh3kh3sh2ph0"), Reason::filter_not_served);
  EXPECT_EQ(reason("ic8ih56oc8oh56kh3ph1"), Reason::filter_not_served);
}

}  // namespace
}  // namespace sparkle
