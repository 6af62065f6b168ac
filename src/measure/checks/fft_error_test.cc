// The error bound by which the planner admits transforms, against what the kernels really err.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "measure/layer_bench.h"

namespace sparkle {
namespace {

TEST(FftError, IsWithinTheBoundAndNotFarBelow) {
  Device device = probe_cpu({.threads = 1});
  estimate_rates(device);
  if (!best_vector_unit(device)) GTEST_SKIP() << "no vector unit here";
  const auto backend = cpu::make_cpu_backend(device, std::make_shared<ThreadPool>(1));
  for (const char* conv :
       {"ic1ih1iw8192oc1oh1ow7169kh1kw1024ph0", "ic8ih1iw2048oc8oh1ow1921kh1kw128ph0", "g16ic16ih56oc16oh56kh31ph15",
        "g32ic32ih14oc32oh14kh31ph15", "ic64ih24oc32oh24kh7ph3", "ic2ih40oc3oh40kh5ph2"})
    for (uint64_t seed : {1, 2, 3}) {
      const auto problem = parse_conv(conv);
      ASSERT_TRUE(problem.ok()) << problem.error().message;
      for (const char* variant : {"channels", "tiles"}) {
        LayerBenchOptions options;
        options.plan.algorithm = "fft", options.plan.variant = variant;
        options.rounds = 1, options.seconds_per_round = 0, options.seed = seed;
        SCOPED_TRACE(std::string(conv) + " " + variant + ", seed " + std::to_string(seed));
        const auto measured = measure_layer(*backend, *problem, options);
        ASSERT_TRUE(measured.ok()) << measured.error().message;
        ASSERT_EQ(measured->choice.algorithm, "fft");
        EXPECT_LE(measured->largest_error, measured->choice.error);
        EXPECT_GE(measured->largest_error, measured->choice.error / 10);  // else the bound says nothing
      }
    }
}

}  // namespace
}  // namespace sparkle
