// Every variant of the registry for CUDA has a self-test, which runs in the functional model and is right; kernels that do
// nothing fail.
#include <set>

#include "backends/cuda/cuda_testing.h"
#include "backends/self_tests/self_tests.h"
#include "families/copy/copy.h"
#include "families/gemm/cuda/cuda_tiles.h"
#include "families/registry.h"

namespace sparkle::cuda {
namespace {

std::vector<SelfTest> samples(Family family) {
  std::vector<SelfTest> self_tests;
  if (const auto forms = info(family).sample_forms)
    for (SampleForm& form : forms())
      self_tests.push_back({{}, std::move(form.params), std::move(form.inputs), std::move(form.outputs)});
  return self_tests;
}

// Each schedule of the variant for one of the self-test's stages, as a planner on this device finds them.
std::vector<Schedule> schedules_for(SelfTest t, const Variant& variant, const Device& device) {
  Reason why = Reason::none;
  t.schedule = LoopSchedule{std::string(variant.name), "fma-f32", 16};  // some samples are a variant's own
  for (const Stage& stage : stages_of(t)) {
    auto found = info(t.family()).schedules(stage, variant, device, why);
    if (!found.empty()) return found;
  }
  return {};
}

TEST(CudaSelfTests, EveryVariantIsRight) {
  const auto backend = test_backend();
  ASSERT_TRUE(backend);
  int variants = 0, run = 0;
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    for (const Variant& v : family.variants) {
      if (!v.runs_on(backend->device())) continue;
      ++variants;
      const std::string name = std::string(family.name) + "/" + std::string(v.name);
      int tried = 0;
      for (SelfTest t : samples(static_cast<Family>(f)))
        for (Schedule& schedule : schedules_for(t, v, backend->device())) {
          t.schedule = std::move(schedule);
          const auto before = backend->counters().submissions;
          const Status ran = run_self_test(*backend, t, std::chrono::minutes(2));
          EXPECT_TRUE(ran.ok()) << t.to_text() << ": " << (ran.ok() ? "" : ran.error().message);
          tried += backend->counters().submissions > before;
        }
      EXPECT_GT(tried, 0) << name << " was not tried";
      run += tried;
    }
  }
  std::printf("%d variants, %d self-tests\n", variants, run);
}

TEST(CudaSelfTests, KernelsThatDoNothingAreFound) {
  const auto backend = test_backend([](const Stage& stage, const Schedule& s, const Workshop& shop, uint32_t constants) {
    auto kernel = make_kernel(stage, s, shop, constants);
    if (kernel.ok()) (*kernel)->launches.clear();
    return kernel;
  });
  ASSERT_TRUE(backend);
  for (const Family family : {Family::copy, Family::pointwise}) {
    SelfTest t = samples(family)[0];
    t.schedule = LoopSchedule{family == Family::copy ? "units" : "interpreted", "fma-f32", 0};
    const Status tried = run_self_test(*backend, t, std::chrono::minutes(1));
    ASSERT_FALSE(tried.ok()) << t.to_text();
    EXPECT_EQ(tried.error().reason, Reason::failed_probe);
  }
}

}  // namespace
}  // namespace sparkle::cuda
