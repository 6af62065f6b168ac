// The error bounds of weights stored in 16 bits against what kernels really err.
#include <gtest/gtest.h>

#include "base/system/thread_pool.h"
#include "backends/cpu/cpu_backend.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "measure/layer_bench.h"

namespace sparkle {
namespace {

TEST(StoredError, IsWithinTheBoundAndNotFarBelow) {
  Device device = probe_cpu({.threads = 1});
  estimate_rates(device);
  if (!best_vector_unit(device)) GTEST_SKIP() << "no vector unit here";
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  for (const char* name : {"gemm_f16", "gemm_bf16"})
    for (const char* layer :
         {"ic16ih12oc100oh12kh3ph1", "ic64ih12oc100oh12kh3ph1", "ic2048ih7oc64oh7kh1ph0", "ic4096ih1oc1000oh1kh1ph0"})
      for (uint64_t seed : {1, 2, 3}) {
        const auto problem = parse_conv(layer);
        ASSERT_TRUE(problem.ok());
        LayerBenchOptions options;
        options.plan.algorithm = name;
        options.rounds = 1, options.seconds_per_round = 0, options.seed = seed;
        const auto measured = measure_layer(*backend, *problem, options);
        ASSERT_TRUE(measured.ok()) << measured.error().message;
        ASSERT_EQ(measured->choice.algorithm, name);
        SCOPED_TRACE(std::string(name) + " " + layer + ", seed " + std::to_string(seed));
        EXPECT_LE(measured->largest_error, measured->choice.error);
        EXPECT_GE(measured->largest_error, measured->choice.error / 10);  // else the bound says nothing
      }
}

}  // namespace
}  // namespace sparkle
