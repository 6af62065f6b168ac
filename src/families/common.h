// What the families share when they describe themselves to the planner: footprints of streaming stages, the choice of a unit,
// schedules of families without searched tiles.
#pragma once

#include "families/family.h"
#include "families/stage.h"
#include "families/values/activation.h"

// A row of a family's variants.inc as a Variant: constexpr Variant kVariants[] = { #include "families/NAME/variants.inc" };
#define VARIANT(name, device, unit, rows, vectors, registers, note) \
  {name, Backends::device, UnitKind::unit, rows, vectors, registers, note},

namespace sparkle {

// What most families say of element types other than f32.
inline constexpr std::string_view kInF32 = "f16 and bf16 converted to f32 before it, f64 by the variant plain";

// Whether this version has kernels for a math unit of the device.
bool has_kernels(const Device& device, const MathUnit& unit);

// The vector units of the device for fp32 that this build has kernels for, the widest first.
std::vector<const MathUnit*> vector_units(const Device& device);

// The widest vector unit of the device for fp32 that this build has kernels for; nullptr where there is none.
const MathUnit* best_vector_unit(const Device& device);

// Vector registers of the unit, as far as it is known.
int registers_of(const MathUnit& unit);

// How a family passes a variant over: const WhyNot refuse{why_not}; ... return refuse(Reason::layout_not_served);
struct WhyNot {
  Reason& why_not;
  std::vector<Schedule> operator()(Reason reason) const {
    why_not = reason;
    return {};
  }
};

// Whether kernels of the variant store real numbers as `type`: f32, or f16 and bf16 on GPUs that have it.
bool stores_reals(const Variant& variant, const Device& device, DType type);
// The same of the one type that all operands of the stage have.
bool stores_reals(const Variant& variant, const Device& device, const Stage& stage);
// Whether the variant's shaders compute numbers of this type: these, doubles where the GPU does, and all integers.
bool computes_numbers(const Variant& variant, const Device& device, DType type);

// Footprint::function_flops of so many outputs with this activation; 0 on GPUs, which have instructions for exponentials.
double activation_flops(Activation activation, double outputs, const Device& device);

// A stage that reads each operand and writes each output once. `flops` is executed = nominal work.
Footprint streaming_footprint(const Stage& stage, const Device& device, double flops);

// Bytes per memory level for data passing through once: level i counts what moves between it and the next inner level, so a
// working set that fits a level asks nothing of the levels beyond it.
std::vector<double> bytes_per_level(const Device& device, double bytes_moved, double working_set);

// One LoopSchedule of the variant with the unit it runs on, or none and the reason: unit_missing, backend_lacks_variant
// (the variant belongs to another kind of device). The variant "plain" needs no unit and runs on every CPU. On CPUs a task
// makes at least `least` elements of the output, those of kLeastBytes where it is 0, and each core gets at most four.
std::vector<Schedule> loop_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not,
                                     double least = 0);
// For families that count otherwise: schedules on CPUs but "plain" get the grain that cuts `elements` into so many tasks.
void cut_into(std::vector<Schedule>& schedules, const Device& device, int64_t elements, int64_t tasks);

}  // namespace sparkle
