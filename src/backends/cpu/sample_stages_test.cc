// Every variant of the registry for the CPU, on the sample stages of its family's row: those by which kernels on GPUs are
// tried.
#include <gtest/gtest.h>

#include <set>

#include "backends/cpu/cpu_backend.h"
#include "backends/self_tests/sample_run.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "families/gemm/stored_weights.h"
#include "families/registry.h"

namespace sparkle::cpu {
namespace {

// As it is, and with the operands that repeat nothing dense in one order: what some variants ask for.
std::vector<Stage> laid_out(const Stage& stage) {
  std::vector<Stage> stages(3, stage);
  for (size_t order : {1, 2})
    for (auto* list : {&stages[order].inputs, &stages[order].outputs})
      for (TensorDesc& d : *list) {
        bool repeats = false;
        for (int i = 0; i < d.shape.size(); ++i) repeats |= d.shape[i] > 1 && d.layout.strides[i] == 0;
        if (!repeats) d.layout = order == 1 || d.shape.size() < 3 ? row_major(d.shape) : channels_last(d.shape);
      }
  return stages;
}

// Runs the first and the last of the variant's schedules for each stage; how many ran.
int try_variant(Backend& backend, const FamilyInfo& family, const Variant& variant, std::set<Reason>& refused) {
  int ran = 0;
  for (const SampleForm& form : family.sample_forms()) {
    const Schedule asked = LoopSchedule{std::string(variant.name), "", 0};
    for (const Stage& sample : family.samples({form.params, asked, form.inputs, form.outputs}))
      for (const Stage& stage : laid_out(sample)) {
        Reason why = Reason::none;
        const auto schedules = family.schedules(stage, variant, backend.device(), why);
        if (schedules.empty()) refused.insert(why);
        for (size_t i = 0; i < schedules.size(); i += std::max<size_t>(1, schedules.size() - 1))
          for (const uint32_t constants : {0u, 2u}) {
            if (constants != 0 && stage.inputs.size() < 2) continue;
            const Status right = run_sample(backend, stage, schedules[i], constants, {});
            EXPECT_TRUE(right.ok()) << family.name << " " << to_text(schedules[i]) << " " << to_text(stage.params) << ": "
                                    << (right.ok() ? "" : right.error().message);
            ++ran;
          }
      }
  }
  return ran;
}

TEST(SampleStages, EveryVariantGivesTheReference) {
  const auto backend = make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2));
  // Of units and registers that another machine has; and vectors without a fixed length (SVE) fit no array of registers.
  const std::set<Reason> elsewhere{Reason::unit_missing, Reason::too_few_registers, Reason::registers_idle,
                                   Reason::backend_lacks_variant};
  int variants = 0, run = 0;
  for (int f = 0; f < kFamilies; ++f) {
    const FamilyInfo& family = info(static_cast<Family>(f));
    for (const Variant& v : family.variants) {
      // Weights stored in 16 bits are another algorithm's, with an error of their own: gemm_kernel_test.cc.
      if (v.for_workgroups() || (family.params.family == Family::gemm && stored_weights(v.name) != DType::f32)) continue;
      std::set<Reason> refused;
      const int ran = try_variant(*backend, family, v, refused);
      std::set<Reason> here;
      for (const Reason reason : refused)
        if (!elsewhere.count(reason)) here.insert(reason);
      EXPECT_TRUE(ran > 0 || here.size() < refused.size()) << family.name << "/" << v.name << " ran on no sample";
      variants += ran > 0, run += ran;
    }
  }
  EXPECT_GT(variants, 2 * kFamilies);
  std::printf("%d variants, %d runs\n", variants, run);
}

}  // namespace
}  // namespace sparkle::cpu
