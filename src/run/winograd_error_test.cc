// The error bounds by which the planner admits algorithms, against what kernels really err.
#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "backends/cpu/cpu_backend.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "run/layer_bench.h"

namespace sparkle {
namespace {

TEST(AlgorithmError, IsWithinTheBoundAndNotFarBelow) {
  Device device = probe_cpu({.threads = 1});
  estimate_rates(device);
  if (!best_vector_unit(device)) GTEST_SKIP() << "no vector unit here";
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  for (const char* name : {"winograd2", "winograd4", "winograd6"})
    for (const int channels : {8, 64, 256})
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

}  // namespace
}  // namespace sparkle
