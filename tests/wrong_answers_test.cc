// Small models that once gave wrong answers, on the CPU and the reference, against what NumPy, the ONNX reference and ONNX
// Runtime agree on. Where they disagree, docs/nan_and_infinity.md says what is followed. Read from files' bytes, as defects
// were in readers, rewrites and folding alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/evaluate/values.h"
#include "onnx/test_model.h"
#include "run/session.h"

namespace sparkle {
namespace {

using testing::TestModel;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
using Values = std::vector<double>;

HostTensor floats(const Dims& shape, const Values& values) { return from_doubles(DType::f32, shape, values); }
HostTensor scalar(DType type, double value) { return from_doubles(type, {}, {value}); }
Values counted(int count, double first = 0) {
  Values values;
  for (int i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

// The first output on both backends is `want`: of its type, integers exactly.
void expect(const TestModel& model, const std::vector<HostTensor>& inputs, const HostTensor& want) {
  for (const auto& backend : {cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)), make_reference_backend()}) {
    SCOPED_TRACE(model.model.graph().node(0).op_type() + " on " + backend->device().name);
    auto graph = model.read();
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    auto session = Session::open(std::move(*graph), backend, {});
    ASSERT_TRUE(session.ok()) << session.error().message;
    auto got = (*session)->run(inputs);
    ASSERT_TRUE(got.ok()) << got.error().message;
    const HostTensor& y = (*got)[0];
    ASSERT_EQ(name_of(y.dtype), name_of(want.dtype));
    ASSERT_EQ(y.shape, want.shape);
    const Values a = as_doubles(y), b = as_doubles(want);
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(std::isnan(b[i])     ? std::isnan(a[i])
                  : !is_float(y.dtype) ? a[i] == b[i]
                  : std::isinf(b[i])   ? a[i] == b[i]
                                       : std::abs(a[i] - b[i]) <= 2e-6 * std::max(1.0, std::abs(b[i])))
          << "element " << i << " is " << a[i] << " instead of " << b[i];
  }
}

// x -> QuantizeLinear -> DequantizeLinear 'd', then NODE of it and perhaps of weights 'w', QuantizeLinear to y by 0.5 without a
// zero point. All scales are powers of two: sums are exact.
struct Quantized : TestModel {
  Quantized(int opset, DType first) : TestModel(opset) {
    input("x", {1, 3, 4, 5}).constant("s", scalar(DType::f32, 0.5)).constant("z", scalar(first, first == DType::u8 ? 3 : -3));
    node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  }
  Quantized& weights(const Dims& shape) {
    Values some = w();
    some.resize(static_cast<size_t>(shape.product()));
    constant("wq", from_doubles(DType::i8, shape, some)).constant("sw", scalar(DType::f32, 0.25));
    constant("zw", scalar(DType::i8, 0)).node("DequantizeLinear", {"wq", "sw", "zw"}, {"w"});
    return *this;
  }
  Quantized& to(DType type) {
    output("y", {}, type).node("QuantizeLinear", {"o", "s"}, {"y"});
    return *this;
  }
  static Values w() { return {89, 34, 2, -59, -49, -117, -108, -123, 5, 70, -6, 12}; }
  // From -1.5, the lowest that bytes with this scale and a zero point of 3 hold.
  static Values x() {
    Values values;
    for (int i = 0; i < 60; ++i) values.push_back(-1.5 + 0.5 * (i * 7 % 19));
    return values;
  }
  static double byte(double o, double low, double high) { return std::clamp(std::nearbyint(o / 0.5), low, high); }
};

TEST(WrongAnswers, QuantizedTypesAreThoseOfTheModel) {
  const Values x = Quantized::x(), w = Quantized::w();
  const HostTensor input = floats({1, 3, 4, 5}, x);
  const auto to_int8 = [](TestModel& model) -> TestModel& {
    return model.with("output_dtype", int64_t{onnx_type_of(DType::i8)});
  };
  Values conv, product, sum, unsigned_sum;
  for (size_t k = 0; k < 4; ++k)
    for (size_t i = 0; i < 20; ++i) {
      double o = 0;
      for (size_t c = 0; c < 3; ++c) o += x[c * 20 + i] * w[k * 3 + c] * 0.25;
      conv.push_back(Quantized::byte(o, -128, 127));
    }
  for (size_t row = 0; row < 12; ++row)
    for (size_t column = 0; column < 2; ++column) {
      double o = 0;
      for (size_t i = 0; i < 5; ++i) o += x[row * 5 + i] * w[i * 2 + column] * 0.25;
      product.push_back(Quantized::byte(o, -128, 127));
    }
  for (const double v : x)
    sum.push_back(Quantized::byte(2 * v, -128, 127)), unsigned_sum.push_back(Quantized::byte(2 * v, 0, 255));
  EXPECT_LT(*std::min_element(conv.begin(), conv.end()), 0);
  Quantized convolution(21, DType::u8), matrix(21, DType::u8), addition(21, DType::u8), of_signed(13, DType::i8);
  convolution.weights({4, 3, 1, 1}).node("Conv", {"d", "w"}, {"o"});
  expect(to_int8(convolution.to(DType::i8)), {input}, from_doubles(DType::i8, {1, 4, 4, 5}, conv));
  matrix.weights({5, 2}).node("MatMul", {"d", "w"}, {"o"});
  expect(to_int8(matrix.to(DType::i8)), {input}, from_doubles(DType::i8, {1, 3, 4, 2}, product));
  addition.node("Add", {"d", "d"}, {"o"});
  expect(to_int8(addition.to(DType::i8)), {input}, from_doubles(DType::i8, {1, 3, 4, 5}, sum));
  of_signed.node("Add", {"d", "d"}, {"o"});
  expect(of_signed.to(DType::u8), {input}, from_doubles(DType::u8, {1, 3, 4, 5}, unsigned_sum));
}

TEST(WrongAnswers, FoldedReductionsAreThoseOfTheRun) {
  const auto reduced = [](const std::string& kind, const HostTensor& constant, bool noop, const HostTensor& want) {
    TestModel model(18);
    model.input("x", {1}).output("y").constant("c", constant).node(kind, {"c"}, {"r"});
    if (noop) model.with("noop_with_empty_axes", int64_t{1});
    expect(model.node("Add", {"x", "r"}, {"y"}), {floats({1}, {0})}, want);
  };
  reduced("ReduceL2", floats({2}, {-3, 4}), true, floats({2}, {3, 4}));
  reduced("ReduceL1", floats({}, {-3}), false, floats({1}, {3}));
  reduced("ReduceL2", floats({}, {-3}), false, floats({1}, {3}));
  reduced("ReduceSumSquare", floats({}, {-3}), false, floats({1}, {9}));
  reduced("ReduceLogSum", floats({}, {3}), false, floats({1}, {std::log(3.0)}));
}

// One axis shrinks, where it rounds up, and another grows, where it rounds down.
TEST(WrongAnswers, ResizeBeforeOpset11RoundsByAxis) {
  TestModel model(10);
  model.input("x", {1, 1, 8, 6}).output("y").constant("s", floats({4}, {1, 1, 0.25, 3.7}));
  Values want;
  for (const double row : {0, 4})
    for (int column = 0; column < 22; ++column) want.push_back(row * 6 + std::floor(column / 3.7f));
  expect(model.node("Resize", {"x", "s"}, {"y"}).with("mode", "nearest"), {floats({1, 1, 8, 6}, counted(48))},
         floats({1, 1, 2, 22}, want));
}

TEST(WrongAnswers, ValuesThatAreNotFinite) {
  TestModel pool(18), sign(18), log(18), celu(18);
  pool.input("x", {1, 1, 3}).output("y").node("MaxPool", {"x"}, {"y"}).with("kernel_shape", std::vector<int64_t>{2});
  expect(pool, {floats({1, 1, 3}, {kNan, 1, 0})}, floats({1, 1, 2}, {kNan, 1}));
  sign.input("x", {2}).output("y", {2}).node("Sign", {"x"}, {"y"});
  expect(sign, {floats({2}, {kNan, 2})}, floats({2}, {kNan, 1}));
  log.input("x", {1}).output("y", {1}).node("Log", {"x"}, {"y"});
  expect(log, {floats({1}, {1e-40})}, floats({1}, {-92.1034037}));
  celu.input("x", {7}).output("y").node("Celu", {"x"}, {"y"}).with("alpha", -0.5f);
  expect(celu, {floats({7}, {kNan, kInfinity, -kInfinity, 2, -2, -0.1, 0})},
         floats({7}, {kNan, kInfinity, -kInfinity, 2, -26.79907500, -0.11070138, 0}));
  const HostTensor ten = floats({10}, {kNan, kInfinity, -kInfinity, 2, -2, 0, 1, -1, 0.5, -0.5});
  for (const bool relu : {false, true}) {
    TestModel clip(18);
    clip.input("x", {10}).output("y").constant("l", floats({}, {kNan})).constant("h", floats({}, {1}));
    clip.constant("l2", floats({}, {-0.7})).constant("h2", floats({}, {0.7})).node("Clip", {"x", "l", "h"}, {"r"});
    if (relu) clip.node("Relu", {"r"}, {"y"});
    if (!relu) clip.node("Clip", {"r", "l2", "h2"}, {"y"});
    expect(clip, {ten}, floats({10}, Values(10, kNan)));
  }
}

TEST(WrongAnswers, ARowThatIsMaskedWhollyHasNoSoftmax) {
  TestModel model(17);
  model.input("q", {1, 3, 4, 1}).input("k", {1, 3, 1, 1}).input("m", {1, 3, 1, 1}).input("v", {1, 3, 1, 1}).output("y");
  model.node("MatMul", {"q", "k"}, {"s"})
      .node("Add", {"s", "m"}, {"t"})
      .node("Softmax", {"t"}, {"w"})
      .with("axis", int64_t{-1});
  expect(model.node("MatMul", {"w", "v"}, {"y"}),
         {floats({1, 3, 4, 1}, Values(12, 1)), floats({1, 3, 1, 1}, {1, 1, 1}), floats({1, 3, 1, 1}, {0, -kInfinity, 1}),
          floats({1, 3, 1, 1}, {2, 3, 4})},
         floats({1, 3, 4, 1}, {2, 2, 2, 2, kNan, kNan, kNan, kNan, 4, 4, 4, 4}));
}

// As the ONNX reference: the position is brought to the border, then the cubic is taken there. ONNX Runtime (-0.2907 here)
// takes the cubic where it was asked for, of elements brought to the border.
TEST(WrongAnswers, BicubicSamplesAtABorderAsTheReferenceDoes) {
  TestModel model(16);
  model.input("x", {1, 1, 5, 3}).input("g", {1, 1, 1, 2}).output("y").node("GridSample", {"x", "g"}, {"y"});
  model.with("align_corners", int64_t{1}).with("mode", "bicubic").with("padding_mode", "border");
  expect(model, {floats({1, 1, 5, 3}, counted(15)), floats({1, 1, 1, 2}, {-1.5125, -1.3114})}, floats({1, 1, 1, 1}, {0}));
}

}  // namespace
}  // namespace sparkle
