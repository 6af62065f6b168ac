// Element types: which form of which family computes in which types, as the families' rows say. The planner refuses by this
// table, its error sentence quotes it and docs/element_types.md is printed from it.
//
// f16 and bf16 are storage types: arithmetic on them is done in f32 and rounded to nearest even where a tensor is stored in 16
// bits. GPUs that store them exchange f16, NVIDIA's by CUDA bf16 too, between the families whose rows say so (gpu_16_bits),
// everything else between f32 steps.
// f64 is computed in double, integers in their own type, exactly, wrapping around as two's complement does. The narrow types
// are moved and converted, nothing else.
#pragma once

#include <string>

#include "families/registry.h"

namespace sparkle {

// The row that a stage of these parameters belongs to. A pointwise program belongs to the row of its last instruction.
const TypeRow& type_row(const StageParams& params);

// Whether the family's kernels on this device read and write f16 (bf16) as it is; else it is converted to f32 before them.
bool keeps(Family family, const Device& device, DType type);

// The table as a page of documentation.
std::string type_table();

}  // namespace sparkle
