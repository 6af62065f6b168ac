// Every variant of the registry for CUDA has a self-test, which runs in the functional model and is right; kernels that do
// nothing fail.
#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/variant_self_tests.h"
#include "backends/self_tests/sample_testing.h"

namespace sparkle::cuda {
namespace {

TEST(CudaSelfTests, EveryVariantIsRight) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  const testing::Sample sample = testing::sample();
  int run = 0;
  unsigned number = 0;
  const auto variants = self_tests_of_variants(backend->device());
  for (const VariantSelfTests& variant : variants) {
    int tried = 0;
    for (const SelfTest& t : variant.self_tests) {
      if (tried > 0 && !sample.takes(number++)) continue;  // of each variant one at least
      const auto before = backend->counters().submissions;
      const Status ran = run_self_test(*backend, t, std::chrono::minutes(2));
      EXPECT_TRUE(ran.ok()) << t.to_text() << ": " << (ran.ok() ? "" : ran.error().message);
      tried += backend->counters().submissions > before;
    }
    EXPECT_GT(tried, 0) << variant.name << " was not tried";
    run += tried;
  }
  EXPECT_GT(variants.size(), 25u);
  std::printf("%zu variants, %d self-tests\n", variants.size(), run);
}

TEST(CudaSelfTests, KernelsThatDoNothingAreFound) {
  const auto backend = test_backend([](const Stage& stage, const Schedule& s, const Workshop& shop, uint32_t constants) {
    auto kernel = make_kernel(stage, s, shop, constants);
    if (kernel.ok()) (*kernel)->launches.clear();
    return kernel;
  });
  ASSERT_TRUE(backend);
  for (const Family family : {Family::copy, Family::pointwise}) {
    SelfTest t = self_test_forms(family)[0];
    t.schedule = LoopSchedule{family == Family::copy ? "units" : "interpreted", "fma-f32", 0};
    const Status tried = run_self_test(*backend, t, std::chrono::minutes(1));
    ASSERT_FALSE(tried.ok()) << t.to_text();
    EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  }
}

}  // namespace
}  // namespace sparkle::cuda
