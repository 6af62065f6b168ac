// For tests: self-tests of every family, by which each of its variants for Vulkan is tried.
#pragma once

#include "backends/self_tests/variant_self_tests.h"
#include "families/registry.h"

namespace sparkle::vulkan {

// What a plan's step of the family may be, with the schedules still to come.
inline std::vector<SelfTest> samples(Family family) { return self_test_forms(family); }

// A schedule of the variant for one of the self-test's stages, as a planner on this device finds it.
inline bool schedule_for(SelfTest& t, const Variant& variant, const Device& device) {
  Reason why = Reason::none;
  t.schedule = LoopSchedule{std::string(variant.name), "fma-f32", 16};  // some samples are a variant's own
  for (const Stage& stage : stages_of(t)) {
    const auto found = info(t.family()).schedules(stage, variant, device, why);
    if (found.empty()) continue;
    t.schedule = found.back();
    return true;
  }
  // Kernels that serve what a self-test has, but are not worth it there.
  return why == Reason::costlier;
}

}  // namespace sparkle::vulkan
