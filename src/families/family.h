// What a kernel family implements: FamilyInfo, the row that its folder exports. Footprint: what a Stage will do on a device.
// Families include this and never the registry (families/registry.h), which is made of what they export.
#pragma once

#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "families/stage.h"
#include "families/type_set.h"

namespace sparkle {

// What a Stage will do under a Schedule, in terms that mean the same on every device.
struct Footprint {
  double nominal_flops = 0;     // 2 * products of the direct method, padding taps counted
  double executed_flops = 0;    // what is really executed: padding taps left out, idle lanes counted
  double function_flops = 0;    // of exponentials and the like (values/activation.h), beside executed_flops
  std::vector<double> bytes;    // moved per memory level of the device, innermost first (between it and the next inner one)
  std::vector<double> exposed;  // the part of `bytes` that no arithmetic hides: moved in phases of their own; empty: none
  double port_bytes = 0;        // of the innermost level where single floats count as much as the vectors whose loads they
                                // take; 0: as `bytes` counts them
  double parallel_items = 1;    // independent tasks
  double calls = 0;             // of micro-kernels: each takes some time beside its arithmetic
  double launches = 1;          // that wait for one another: each costs the device's launch_seconds
  int64_t workspace_bytes = 0;  // scratch memory at run time
};

// What stays near at each memory level (families/blocking.h).
struct Blocking;

// Backends that have kernels of a variant, by the kind of device that each serves.
struct Backends {
  uint8_t kinds;
  constexpr bool support(DeviceKind kind) const { return (kinds >> static_cast<int>(kind) & 1) != 0; }
  static const Backends cpu, vulkan, cuda, gpus;
};
inline constexpr Backends Backends::cpu{1 << static_cast<int>(DeviceKind::cpu)};
inline constexpr Backends Backends::vulkan{1 << static_cast<int>(DeviceKind::vulkan)};
inline constexpr Backends Backends::cuda{1 << static_cast<int>(DeviceKind::cuda)};
inline constexpr Backends Backends::gpus{vulkan.kinds | cuda.kinds};

// One row of a family's variants table.
struct Variant {
  std::string_view name;  // "tile6x4"; unique in the family
  Backends backends;      // that implement it
  UnitKind unit;          // the kind of math unit that it needs
  int rows, vectors;      // register tile, or 0
  int registers;          // vector registers needed
  std::string_view note;  // why it exists, one line

  // Whether there is a kernel of it for the device. Whether the device has the unit and the stage suits is the family's to say.
  constexpr bool runs_on(const Device& device) const { return backends.support(device.kind); }
  // Whether programs of its stages are compiled when they come with a model (Device::compiles).
  constexpr bool needs_compiler() const { return name == "compiled"; }
  // Whether it is written for workgroups of threads (Device::has_workgroups) and not for a core's vector registers.
  constexpr bool for_workgroups() const { return !backends.support(DeviceKind::cpu); }
};
// What the note of a variant begins with that no golden plan chooses (tests/golden_plans): what else it is there for.
inline constexpr std::string_view kVariantReasons[] = {
    "fallback: ",           // any layout, any size; and what tests compare with
    "optimisation step: ",  // shows what another brings: bench --ladder and --ablate
    "other layers: ",       // the planner's choice for layers or element types that no network there has
    "other devices: ",      // the same for machines that are not among those
    "less accuracy: ",      // the same where a user allows larger errors than the planner does by itself
};
// One of them, or nothing.
constexpr std::string_view reason_of(const Variant& variant) {
  for (const std::string_view reason : kVariantReasons)
    if (variant.note.starts_with(reason)) return reason;
  return {};
}

// In which element types a family computes, or a form of it: "window" convolutions, "max" pooling ...
struct TypeRow {
  std::string_view form;       // empty: the whole family
  std::string_view operators;  // what the model calls it
  TypeSet types;
  std::string_view how;        // how types other than f32 are computed
  std::string_view gpus = {};  // in which types GPUs compute beside f32 and f16
};

// A kind of stage that the family's kernels are tried with: parameters and element types.
struct SampleForm {
  StageParams params;
  std::vector<DType> inputs, outputs;
};

// What of a stage decides which kernel runs: sizes do not.
struct SampleRequest {
  const StageParams& params;
  const Schedule& schedule;
  const std::vector<DType>&inputs, &outputs;
};

// How results of the family's kernels are compared with the reference's.
struct SampleRules {
  bool in_native_type = false;  // the reference gives them in the type that it reads: elements that move, sums carried in it
  bool in_16_bits = false;      // where that type is f16 each step is rounded to it
  bool exact = false;           // to the bit, but for large integers that become floats
  bool rounds_to_integers = false;  // results that are integers may be off by one where they are not exact
  bool spreads_nan = false;         // a NaN reaches results that it has no part in
  double products = 64;             // in the longest sum
};

// What a family offers to the planner, the backends and the tests.
struct FamilyInfo {
  const ParamsType& params;
  std::span<const Variant> variants;
  std::span<const TypeRow> types;
  // Which of `types` a stage falls under; nullptr: there is one.
  size_t (*type_form)(const StageParams&) = nullptr;
  bool gpu_16_bits = false;  // its kernels for GPUs read and write f16 (CUDA's bf16 too) as it is, with sums in f32
  // Plain loops in double precision over any layout: the oracle. Operands as the family's header lists them.
  void (*reference)(const StageParams&, std::span<const TensorView> inputs, std::span<const TensorView> outputs);
  // Prediction for one schedule on one device.
  Footprint (*footprint)(const Stage&, const Schedule&, const Device&);
  // How the schedule cuts the stage, in words, beside its footprint's bytes; nullptr: it passes once over its operands.
  Blocking (*blocking)(const Stage&, const Schedule&, const Device&) = nullptr;
  // Schedules worth ranking on this device for this variant; empty with a reason if the variant cannot support the stage.
  std::vector<Schedule> (*schedules)(const Stage&, const Variant&, const Device&, Reason& why_not);
  // What the data must keep to beyond shapes and types (indices within their axis), looked at before each run where there is
  // such a rule: bad_input with the part of a sentence that follows the node's name. nullptr: nothing to check.
  Status (*check)(const StageParams&, std::span<const TensorView> inputs) = nullptr;
  // The kinds of stages by which tests try each variant on each backend; nullptr: none yet.
  std::vector<SampleForm> (*sample_forms)() = nullptr;
  // Small stages of a kind, odd in size and layout, by which its kernels are compared with the reference; none for kinds and
  // element types that no kernel supports. Parameters of size may be others than those asked for.
  std::vector<Stage> (*samples)(const SampleRequest&) = nullptr;
  // A value for an operand of a sample; nullptr: any_value of families/windows/samples.h.
  double (*sample_value)(const Stage&, size_t operand, std::mt19937& random) = nullptr;
  // nullptr: by the rules of SampleRules{}.
  SampleRules (*comparison)(const Stage&) = nullptr;
  // Types of its schedules beside LoopSchedule: those of all variants on CPUs but "plain", and those of some on GPUs.
  const ScheduleType* cpu_schedule = &ScheduleType::of<LoopSchedule>;
  const ScheduleType* gpu_schedule = &ScheduleType::of<LoopSchedule>;
  std::string_view name = name_of(params.family);
};

// One definition per family, in the family's folder; families/registry.h lists them.
#define FAMILY(name, params) const FamilyInfo& name##_info();
#include "families/families.inc"
#undef FAMILY

}  // namespace sparkle
