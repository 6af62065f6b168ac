#include "backends/self_tests/variant_self_tests.h"

#include <algorithm>

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

// The form, and where its reals are f32 the same in 16 bits.
std::vector<SelfTest> in_types(const SelfTest& form) {
  std::vector<SelfTest> forms{form};
  if (form.inputs.empty() || form.inputs[0] != DType::f32) return forms;
  for (const DType type : {DType::f16, DType::bf16}) {
    SelfTest& narrow = forms.emplace_back(form);
    std::replace(narrow.inputs.begin(), narrow.inputs.end(), DType::f32, type);
    std::replace(narrow.outputs.begin(), narrow.outputs.end(), DType::f32, type);
  }
  return forms;
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
      if (!variant.runs_on(device) || (variant.needs_compiler() && !device.compiles)) continue;
      VariantSelfTests& of = all.emplace_back();
      of.name = std::string(family.name) + "/" + std::string(variant.name);
      for (const SelfTest& form : self_test_forms(static_cast<Family>(f)))
        for (const SelfTest& t : in_types(form))
          for (Schedule& schedule : schedules_for(t, variant, device)) {
            of.self_tests.push_back(t);
            of.self_tests.back().schedule = std::move(schedule);
          }
    }
  }
  return all;
}

}  // namespace sparkle
