// Between floating-point types: rounded once to nearest even, integers left alone.
#include "report/float_type.h"

#include <gtest/gtest.h>

#include "families/values/element.h"

namespace sparkle {
namespace {

std::vector<double> values_of(const HostTensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.elements(); ++i) values.push_back(load_element(t.dtype, t.bytes.get() + i * size_of(t.dtype)));
  return values;
}

TEST(FloatType, RoundsToNearestEven) {
  const HostTensor x = HostTensor::of<float>(DType::f32, {5}, {1.5f, 2049, 2051, 70000, -0.1f});
  const auto half = in_float_type(x, DType::f16);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->dtype, DType::f16);
  EXPECT_EQ(half->shape, x.shape);
  const auto values = values_of(*half);
  EXPECT_EQ(values[0], 1.5);
  EXPECT_EQ(values[1], 2048);
  EXPECT_EQ(values[2], 2052);
  EXPECT_EQ(values[3], std::numeric_limits<double>::infinity());
  EXPECT_NEAR(values[4], -0.1, 5e-5);
  const auto back = in_float_type(*half, DType::f32);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(values_of(*back), values);
}

TEST(FloatType, ManyRowsAndNothingToDo) {
  HostTensor x = HostTensor::zeros(DType::f64, {3, 1025});
  for (int64_t i = 0; i < x.elements(); ++i) x.data<double>()[i] = static_cast<double>(i % 256);
  const auto narrow = in_float_type(x, DType::bf16);
  ASSERT_TRUE(narrow.ok());
  EXPECT_EQ(values_of(*narrow), values_of(x));
  EXPECT_EQ(in_float_type(x, DType::f64)->bytes.get(), x.bytes.get());
  const HostTensor whole = HostTensor::zeros(DType::i64, {3});
  EXPECT_EQ(in_float_type(whole, DType::f32)->dtype, DType::i64);
}

}  // namespace
}  // namespace sparkle
