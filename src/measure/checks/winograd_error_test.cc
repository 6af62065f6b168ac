// The error bounds by which the planner admits algorithms, against what kernels really err.
#include <gtest/gtest.h>

#include <random>

#include "base/system/thread_pool.h"
#include "backends/cpu/cpu_backend.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "measure/layer_bench.h"

namespace sparkle {
namespace {

TEST(AlgorithmError, IsWithinTheBoundAndNotFarBelow) {
  Device device = probe_cpu({.threads = 1});
  estimate_rates(device);
  if (!best_vector_unit(device)) GTEST_SKIP() << "no vector unit here";
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  for (const char* name : {"winograd2", "winograd4", "winograd6"})
    for (const int channels : {1, 3, 8, 64, 256})
      for (uint64_t seed : {1, 2, 3}) {
        const std::string c = std::to_string(channels);
        const auto problem = parse_conv("ic" + c + "ih24oc32oh24kh3ph1");
        ASSERT_TRUE(problem.ok());
        LayerBenchOptions options;
        options.plan.algorithm = name;
        options.rounds = 1, options.seconds_per_round = 0, options.seed = seed;
        const auto measured = measure_layer(*backend, *problem, options);
        ASSERT_TRUE(measured.ok()) << measured.error().message;
        ASSERT_EQ(measured->choice.algorithm, name);
        SCOPED_TRACE(std::string(name) + " " + c + " channels, seed " + std::to_string(seed));
        EXPECT_LE(measured->largest_error, measured->choice.error);
        EXPECT_GE(measured->largest_error, measured->choice.error / 10);  // else the bound says nothing
      }
}

// Operands rounded to 16 bits, by the family's definition: no kernel of a CPU does it.
TEST(AlgorithmError, OfOperandsInSixteenBits) {
  for (const int64_t depth : {16, 72, 600})
    for (uint64_t seed : {1, 2, 3}) {
      std::mt19937_64 random(seed);
      std::normal_distribution<float> normal;
      const int64_t rows = 40, columns = 40;
      std::vector<float> a(static_cast<size_t>(rows * depth)), b(static_cast<size_t>(depth * columns));
      for (auto* list : {&a, &b})
        for (float& v : *list) v = normal(random);
      std::vector<double> exact(static_cast<size_t>(rows * columns)), rounded(exact.size());
      const std::vector<TensorView> in = {{reinterpret_cast<std::byte*>(a.data()), dense_desc(DType::f32, {rows, depth})},
                                          {reinterpret_cast<std::byte*>(b.data()), dense_desc(DType::f32, {depth, columns})}};
      GemmParams params;
      params.loader = Loader::dense;
      for (auto* out : {&exact, &rounded}) {
        params.operands = out == &rounded ? OperandType::f16 : OperandType::own;
        const std::vector<TensorView> y = {
            {reinterpret_cast<std::byte*>(out->data()), dense_desc(DType::f64, {rows, columns})}};
        info(Family::gemm).reference(params, in, y);
      }
      double largest = 0, error = 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        largest = std::max(largest, std::abs(exact[i]));
        error = std::max(error, std::abs(exact[i] - rounded[i]));
      }
      const Algorithm* algorithm = algorithm_named("matrix_f16");
      ASSERT_NE(algorithm, nullptr);
      AnchorCall call;
      const double bound = algorithm->error(call);
      SCOPED_TRACE(std::to_string(depth) + " products, seed " + std::to_string(seed) + ": " +
                   std::to_string(error / largest * 1e6) + "e-6");
      EXPECT_LE(error, bound * largest);
      EXPECT_GE(error, bound * largest / 10);
      call.problem.dtype = "f16";
      EXPECT_EQ(algorithm->error(call), 0);
    }
}

}  // namespace
}  // namespace sparkle
