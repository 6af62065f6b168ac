// BatchNormalization in its training form normalises by what it finds in the data: by the definition, where the data change and
// where all of it is constant and folded, as weights that are standardised are.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "onnx/test_model.h"
#include "run/session.h"

namespace sparkle {
namespace {

constexpr int64_t kN = 2, kC = 3, kPlaces = 5 * 4;
constexpr double kEpsilon = 1e-3;

HostTensor values_of(const Dims& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.7f, 2);
  HostTensor t = HostTensor::zeros(DType::f32, shape);
  for (int64_t i = 0; i < t.elements(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

TEST(TrainingForm, NormalisesByTheDataItself) {
  const HostTensor x = values_of({kN, kC, 5, 4}, 1), scale = values_of({kC}, 2), bias = values_of({kC}, 3),
                   unused = values_of({kC}, 4);
  for (const bool constant : {false, true}) {
    testing::TestModel model(15);
    if (constant) {
      model.constant("x", x);
    } else {
      model.input("x", {kN, kC, 5, 4});
    }
    model.constant("scale", scale).constant("bias", bias).constant("mean", unused).constant("variance", unused);
    model.node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"})
        .with("training_mode", int64_t{1})
        .with("epsilon", static_cast<float>(kEpsilon));
    model.output("y");
    for (const auto& backend :
         {cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2)), make_reference_backend()}) {
      auto graph = model.read();
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      auto session = Session::open(std::move(*graph), backend, {});
      ASSERT_TRUE(session.ok()) << session.error().message;
      const auto y = (*session)->run(constant ? std::vector<HostTensor>{} : std::vector<HostTensor>{x});
      ASSERT_TRUE(y.ok()) << y.error().message;
      for (int64_t c = 0; c < kC; ++c) {
        const auto each = [&](auto use) {
          for (int64_t n = 0; n < kN; ++n)
            for (int64_t i = 0; i < kPlaces; ++i) use((n * kC + c) * kPlaces + i);
        };
        double mean = 0, variance = 0;
        each([&](int64_t at) { mean += x.data<float>()[at] / static_cast<double>(kN * kPlaces); });
        each([&](int64_t at) { variance += std::pow(x.data<float>()[at] - mean, 2) / static_cast<double>(kN * kPlaces); });
        each([&](int64_t at) {
          const double want =
              (x.data<float>()[at] - mean) / std::sqrt(variance + kEpsilon) * scale.data<float>()[c] + bias.data<float>()[c];
          EXPECT_NEAR((*y)[0].data<float>()[at], want, 2e-5) << c << " " << at << (constant ? " constant" : "");
        });
      }
    }
  }
}

}  // namespace
}  // namespace sparkle
