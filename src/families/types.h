// Element types: which form of which family computes in which types, said once. The planner refuses by this table, its error
// sentence quotes it and docs/element_types.md is printed from it.
//
// f16 and bf16 are storage types: arithmetic on them is done in f32 and rounded to nearest even where a tensor is stored in 16
// bits. GPUs that store f16 exchange it between the families that keeps_halves() lists, everything else between f32 steps. f64
// is computed in double, integers in their own type, exactly, wrapping around as two's complement does. The narrow types are
// moved and converted, nothing else.
#pragma once

#include <span>
#include <string>

#include "device/device.h"
#include "families/pointwise/pointwise.h"
#include "families/stage.h"
#include "families/type_set.h"

namespace sparkle {

// One form of a family: "window" convolutions, "max" pooling ...
struct TypeRow {
  Family family;
  std::string_view form;       // empty: the whole family
  std::string_view operators;  // what the model calls it
  TypeSet types;
  std::string_view how;  // how types other than f32 are computed
};
std::span<const TypeRow> type_rows();
// The row that a stage of these parameters belongs to. A pointwise program belongs to the row of its last instruction.
const TypeRow& type_row(const StageParams& params);
const TypeRow& type_row(PointwiseOp op);

// Whether the family's kernels on this device read and write f16 as it is; else it is converted to f32 before them.
bool keeps_halves(Family family, const Device& device);

// The table as a page of documentation.
std::string type_table();

}  // namespace sparkle
