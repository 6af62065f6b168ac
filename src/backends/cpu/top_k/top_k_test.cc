// TopK, ArgMax and ArgMin over random shapes with many equal elements, NaN and zeros of both signs: byte for byte; and the
// order itself on values written down.
#include "backends/cpu/copy/index_testing.h"
#include "families/family.h"
#include "families/top_k/top_k.h"

namespace sparkle::cpu::testing {
namespace {

TEST(TopK, RandomShapes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    Dims shape = random_shape(random, 1, 4, 8);
    const int axis = static_cast<int>(pick(random, 0, shape.size() - 1));
    if (pick(random, 0, 3) == 0) shape[axis] = pick(random, 200, 700);
    if (pick(random, 0, 3) == 0) shape[shape.size() - 1] = pick(random, 60, 140);
    const bool arg = pick(random, 0, 1);
    const TopKParams params{axis, arg ? 1 : pick(random, 0, shape[axis]), pick(random, 0, 1) == 1, pick(random, 0, 1) == 1,
                            pick(random, 0, 1) == 1};
    const DType type = any_number_type(random);
    Memory x(type, shape, row_major(shape));
    fill_coarse(x, random, true);
    Dims result = shape;
    result[axis] = params.k;
    std::vector<TensorDesc> outputs{{DType::i64, result, row_major(result)}};
    if (!arg) outputs.insert(outputs.begin(), {type, result, row_major(result)});
    SCOPED_TRACE(describe(x.desc()) + " " + to_text(params));
    compare_outputs(make_top_k, top_k_info(), params, "heap", {&x}, outputs);
  }
}

std::vector<int64_t> order_of(const std::vector<float>& values, TopKParams params) {
  const auto n = static_cast<int64_t>(values.size());
  const HostTensor x = HostTensor::of(DType::f32, {n}, values);
  HostTensor best = HostTensor::zeros(DType::f32, {params.k}), indices = HostTensor::zeros(DType::i64, {params.k});
  const TensorView outputs[2] = {best.view(), indices.view()}, input = x.view();
  top_k_info().reference(params, {&input, 1}, std::span<const TensorView>(outputs));
  return {indices.data<int64_t>(), indices.data<int64_t>() + params.k};
}

TEST(TopK, Order) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(order_of({1, 3, 2, 3}, {0, 3, true, false, false}), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(order_of({1, 3, 2, 3}, {0, 3, true, true, false}), (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(order_of({1, -3, 2, -3}, {0, 3, false, false, false}), (std::vector<int64_t>{1, 3, 0}));
  // Zeros of either sign are equal; NaN is the largest, and the best of all where ArgMin says so.
  EXPECT_EQ(order_of({0.0f, -0.0f, 1}, {0, 3, false, false, false}), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(order_of({5, nan, 7, nan}, {0, 3, true, false, true}), (std::vector<int64_t>{1, 3, 2}));
  EXPECT_EQ(order_of({5, nan, 7}, {0, 3, false, false, false}), (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(order_of({5, nan, 7}, {0, 1, false, false, true}), (std::vector<int64_t>{1}));
}

// The largest unsigned integer is no NaN.
TEST(TopK, UnsignedLimits) {
  const HostTensor x = HostTensor::of(DType::u64, {3}, std::vector<uint64_t>{~uint64_t{0}, 3, uint64_t{1} << 63});
  HostTensor indices = HostTensor::zeros(DType::i64, {1});
  const TensorView input = x.view(), output = indices.view();
  top_k_info().reference(TopKParams{0, 1, false, false, true}, {&input, 1}, {&output, 1});
  EXPECT_EQ(indices.data<int64_t>()[0], 1);
  top_k_info().reference(TopKParams{0, 1, true, false, true}, {&input, 1}, {&output, 1});
  EXPECT_EQ(indices.data<int64_t>()[0], 0);
}

}  // namespace
}  // namespace sparkle::cpu::testing
