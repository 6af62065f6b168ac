// Small models that once gave wrong answers, on the CPU and the reference, against what NumPy, the ONNX reference and ONNX
// Runtime agree on (../shared/data/hostile). Where they disagree, docs/nan_and_infinity.md says what is followed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/thread_pool.h"
#include "device/probe_cpu.h"
#include "graph/values.h"
#include "onnx/npy.h"
#include "onnx/reader.h"
#include "run/session.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
const fs::path kFiles = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data/hostile";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

class WrongAnswers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kFiles)) GTEST_SKIP() << "no ../shared/data/hostile beside the source tree";
  }

  static HostTensor file(const std::string& name) {
    auto tensor = read_npy((kFiles / name).string());
    EXPECT_TRUE(tensor.ok()) << (tensor.ok() ? "" : tensor.error().message);
    return tensor.ok() ? *tensor : HostTensor();
  }
  static HostTensor floats(const Dims& shape, const std::vector<double>& values) {
    return from_doubles(DType::f32, shape, values);
  }

  // The first output on both backends is `want`: of its type, integers exactly.
  static void expect(const std::string& model, const std::vector<HostTensor>& inputs, const HostTensor& want) {
    for (const auto& backend :
         {cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)), make_reference_backend()}) {
      SCOPED_TRACE(model + " on " + backend->device().name);
      auto graph = read_onnx((kFiles / model).string());
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      auto session = Session::open(std::move(*graph), backend, {});
      ASSERT_TRUE(session.ok()) << session.error().message;
      auto got = (*session)->run(inputs);
      ASSERT_TRUE(got.ok()) << got.error().message;
      const HostTensor& y = (*got)[0];
      ASSERT_EQ(name_of(y.dtype), name_of(want.dtype));
      ASSERT_EQ(y.shape, want.shape);
      const std::vector<double> a = as_doubles(y), b = as_doubles(want);
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(std::isnan(b[i])     ? std::isnan(a[i])
                    : !is_float(y.dtype) ? a[i] == b[i]
                    : std::isinf(b[i])   ? a[i] == b[i]
                                         : std::abs(a[i] - b[i]) <= 2e-6 * std::max(1.0, std::abs(b[i])))
            << "element " << i << " is " << a[i] << " instead of " << b[i];
    }
  }
};

TEST_F(WrongAnswers, QuantizedTypesAreThoseOfTheModel) {
  for (const std::string name : {"Conv", "MatMul", "Add"})
    expect("qdq_" + name + "_output_dtype_int8.onnx", {file("q_input.npy")}, file("qdq_" + name + "_expected.npy"));
  expect("qdq_add_default_zero_point.onnx", {file("qdq_add_input.npy")}, file("qdq_add_expected.npy"));
}

TEST_F(WrongAnswers, FoldedReductionsAreThoseOfTheRun) {
  const HostTensor x = floats({1}, {0});
  expect("reduce_l2_noop_const.onnx", {x}, floats({2}, {3, 4}));
  expect("ReduceL1_scalar_const.onnx", {x}, floats({1}, {3}));
  expect("ReduceL2_scalar_const.onnx", {x}, floats({1}, {3}));
  expect("ReduceSumSquare_scalar_const.onnx", {x}, floats({1}, {9}));
  expect("ReduceLogSum_scalar_const.onnx", {x}, floats({1}, {std::log(3.0)}));
}

TEST_F(WrongAnswers, ResizeBeforeOpset11RoundsByAxis) {
  expect("resize10_nearest_mixed.onnx", {file("resize10_input.npy")}, file("resize10_expected.npy"));
}

TEST_F(WrongAnswers, ValuesThatAreNotFinite) {
  expect("maxpool_nan.onnx", {file("maxpool_nan_input.npy")}, floats({1, 1, 2}, {kNan, 1}));
  expect("sign_nan.onnx", {file("sign_nan_input.npy")}, floats({2}, {kNan, 1}));
  expect("log_denormal.onnx", {file("log_input.npy")}, floats({1}, {-92.1034037}));
  expect("celu_-0.5.onnx", {floats({7}, {kNan, kInfinity, -kInfinity, 2, -2, -0.1, 0})},
         floats({7}, {kNan, kInfinity, -kInfinity, 2, -26.79907500, -0.11070138, 0}));
  const std::vector<double> ten{kNan, kInfinity, -kInfinity, 2, -2, 0, 1, -1, 0.5, -0.5};
  for (const char* model : {"clip_clip_nan_1.onnx", "clip_relu_nan_1.onnx"})
    expect(model, {floats({10}, ten)}, floats({10}, std::vector<double>(10, kNan)));
}

TEST_F(WrongAnswers, ARowThatIsMaskedWhollyHasNoSoftmax) {
  expect("pat_attn_4.onnx",
         {floats({1, 3, 4, 1}, std::vector<double>(12, 1)), floats({1, 3, 1, 1}, {1, 1, 1}),
          floats({1, 3, 1, 1}, {0, -kInfinity, 1}), floats({1, 3, 1, 1}, {2, 3, 4})},
         floats({1, 3, 4, 1}, {2, 2, 2, 2, kNan, kNan, kNan, kNan, 4, 4, 4, 4}));
}

// As the ONNX reference: the position is brought to the border, then the cubic is taken there. ONNX Runtime (-0.2907 here)
// takes the cubic where it was asked for, of elements brought to the border.
TEST_F(WrongAnswers, BicubicSamplesAtABorderAsTheReferenceDoes) {
  expect("gridsample_bicubic_border.onnx", {file("gs_x.npy"), file("gs_g.npy")}, floats({1, 1, 1, 1}, {0}));
}

}  // namespace
}  // namespace sparkle
