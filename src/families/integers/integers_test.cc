// Integer arithmetic of the families' definitions: exact, wrapping, with NumPy's divisions; conversions that saturate or wrap.
#include <gtest/gtest.h>

#include "families/values/convert.h"
#include "families/family.h"
#include "families/gemm/gemm.h"
#include "families/pointwise/integers.h"
#include "families/reduce/reduce.h"
#include "families/stage.h"

namespace sparkle {
namespace {

template <class T>
T eval(PointwiseOp op, T x, T y = 0, T z = 0) {
  return integers::evaluate<T>(op, x, y, z, 0, 0);
}

TEST(Integers, WrapAround) {
  EXPECT_EQ(eval<int8_t>(PointwiseOp::add, 127, 1), -128);
  EXPECT_EQ(eval<uint16_t>(PointwiseOp::mul, 65535, 65535), 1);
  EXPECT_EQ(eval<int64_t>(PointwiseOp::sub, INT64_MIN, 1), INT64_MAX);
  EXPECT_EQ(eval<uint8_t>(PointwiseOp::neg, 1), 255);
  EXPECT_EQ(eval<int32_t>(PointwiseOp::abs, INT32_MIN), INT32_MIN);
  EXPECT_EQ(eval<int16_t>(PointwiseOp::fma, 300, 300, -1), static_cast<int16_t>(300 * 300 - 1));
}

TEST(Integers, Exact64Bits) {
  const int64_t large = (int64_t{1} << 62) + 1;
  EXPECT_EQ(eval<int64_t>(PointwiseOp::max, large, large - 1), large);
  EXPECT_EQ(eval<int64_t>(PointwiseOp::equal, large, large - 1), 0);
  EXPECT_EQ(eval<uint64_t>(PointwiseOp::div, UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(eval<uint64_t>(PointwiseOp::greater, UINT64_MAX, UINT64_MAX - 1), 1u);
  EXPECT_EQ(eval<int64_t>(PointwiseOp::pow, 3, 39), 4052555153018976267);
}

TEST(Integers, DivisionsAndRemainders) {
  EXPECT_EQ(eval<int32_t>(PointwiseOp::div, -7, 2), -3);
  EXPECT_EQ(eval<int32_t>(PointwiseOp::mod, -7, 3), -1);
  EXPECT_EQ(eval<int32_t>(PointwiseOp::floor_mod, -7, 3), 2);
  EXPECT_EQ(eval<int32_t>(PointwiseOp::floor_mod, 7, -3), -2);
  EXPECT_EQ(eval<int32_t>(PointwiseOp::floor_mod, -6, 3), 0);
  EXPECT_EQ(eval<uint8_t>(PointwiseOp::floor_mod, 200, 7), 200 % 7);
  for (const PointwiseOp op : {PointwiseOp::div, PointwiseOp::mod, PointwiseOp::floor_mod}) {
    EXPECT_EQ(eval<int32_t>(op, 5, 0), 0);
    EXPECT_EQ(eval<int64_t>(op, INT64_MIN, -1), op == PointwiseOp::div ? INT64_MIN : 0);
  }
  EXPECT_EQ(eval<int32_t>(PointwiseOp::pow, -1, -3), -1);
  EXPECT_EQ(eval<int32_t>(PointwiseOp::pow, 2, -1), 0);
}

TEST(Convert, FloatsTruncateAndSaturate) {
  EXPECT_EQ(converted<uint8_t>(255.9f), 255);
  EXPECT_EQ(converted<uint8_t>(256.0f), 255);
  EXPECT_EQ(converted<uint8_t>(-0.9f), 0);
  EXPECT_EQ(converted<int8_t>(-128.9), -128);
  EXPECT_EQ(converted<int32_t>(2147483647.0), 2147483647);
  EXPECT_EQ(converted<int32_t>(3e9f), INT32_MAX);
  EXPECT_EQ(converted<int64_t>(9.3e18), INT64_MAX);
  EXPECT_EQ(converted<uint64_t>(18446744073709551615.0), UINT64_MAX);
  EXPECT_EQ(converted<int64_t>(std::nan("")), 0);
  EXPECT_EQ(converted<int8_t>(int32_t{300}), 44);
}

TEST(Integers, ReductionsAreExact) {
  const auto reduce = [](ReduceKind kind, std::vector<int64_t> values) {
    const auto x = HostTensor::of<int64_t>(DType::i64, {static_cast<int64_t>(values.size())}, values);
    const auto y = HostTensor::zeros(DType::i64, {1});
    const TensorView from = x.view(), to = y.view();
    reduce_info().reference(ReduceParams{kind, {0}}, {&from, 1}, {&to, 1});
    return y.data<int64_t>()[0];
  };
  const int64_t large = int64_t{1} << 60;
  EXPECT_EQ(reduce(ReduceKind::sum, {large, 1, large, 1}), 2 * large + 2);
  EXPECT_EQ(reduce(ReduceKind::max, {large, large + 1, -5}), large + 1);
  EXPECT_EQ(reduce(ReduceKind::mean, {-7, 0}), -3);
  EXPECT_EQ(reduce(ReduceKind::product, {3037000500, 3037000500}), static_cast<int64_t>(3037000500ull * 3037000500ull));
  EXPECT_EQ(reduce(ReduceKind::l1, {-3, 4}), 7);
  EXPECT_EQ(reduce(ReduceKind::l2, {-3, 4}), 5);
  EXPECT_EQ(reduce(ReduceKind::sum_square, {-3, 4}), 25);
  EXPECT_EQ(reduce(ReduceKind::min, {}), INT64_MAX);
}

TEST(Integers, MatrixProductsAreExactAndAddTheirBias) {
  const int64_t large = (int64_t{1} << 53) + 1;
  const auto a = HostTensor::of<int64_t>(DType::i64, {2, 2}, {large, 1, 2, 3});
  const auto b = HostTensor::of<int64_t>(DType::i64, {2, 1}, {3, -1});
  const auto bias = HostTensor::of<int64_t>(DType::i64, {1}, {10});
  const auto y = HostTensor::zeros(DType::i64, {2, 1});
  GemmParams params;
  params.loader = Loader::dense;
  params.epilogue.bias = true;
  const TensorView in[] = {a.view(), b.view(), bias.view()}, out = y.view();
  gemm_info().reference(params, std::span<const TensorView>(in), {&out, 1});
  EXPECT_EQ(y.data<int64_t>()[0], 3 * large - 1 + 10);
  EXPECT_EQ(y.data<int64_t>()[1], 13);
}

}  // namespace
}  // namespace sparkle
