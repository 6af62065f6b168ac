#include "backends/self_tests/variant_self_tests.h"

#include "families/registry.h"

namespace sparkle {
namespace {

std::vector<Schedule> schedules_for(SelfTest t, const Variant& variant, const Device& device) {
  Reason why = Reason::none;
  t.schedule = LoopSchedule{std::string(variant.name), "fma-f32", 16};  // some samples are a variant's own
  for (const Stage& stage : stages_of(t)) {
    auto found = info(t.family()).schedules(stage, variant, device, why);
    if (!found.empty()) return found;
  }
  // Kernels that serve what a self-test has, but are not worth it there.
  if (why == Reason::costlier && variant.for_workgroups()) return {t.schedule};
  return {};
}

}  // namespace

std::vector<SelfTest> self_test_forms(Family family) {
  std::vector<SelfTest> forms;
  if (const auto sample_forms = info(family).sample_forms)
    for (SampleForm& form : sample_forms())
      forms.push_back({{}, std::move(form.params), std::move(form.inputs), std::move(form.outputs)});
  return forms;
}

std::vector<VariantSelfTests> self_tests_of_variants(const Device& device) {
  std::vector<VariantSelfTests> all;
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    for (const Variant& variant : family.variants) {
      if (!variant.runs_on(device)) continue;
      VariantSelfTests& of = all.emplace_back();
      of.name = std::string(family.name) + "/" + std::string(variant.name);
      for (SelfTest t : self_test_forms(static_cast<Family>(f)))
        for (Schedule& schedule : schedules_for(t, variant, device)) {
          t.schedule = std::move(schedule);
          of.self_tests.push_back(t);
        }
    }
  }
  return all;
}

}  // namespace sparkle
