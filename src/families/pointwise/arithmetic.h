// In which type pointwise programs are computed, and what they do with integers.
#pragma once

#include <span>

#include "families/family.h"
#include "families/pointwise/pointwise.h"

namespace sparkle {

// The type in which a pointwise program over these operands is computed: double where f64 is among them or where 32- or 64-bit
// integers meet floats, f32 for the other floats and for truth values alone, else the operands' own integer type (8 bits for
// those of 4 and 2).
DType pointwise_arithmetic(std::span<const DType> operands, DType result);
DType pointwise_arithmetic(std::span<const TensorDesc> operands, const TensorDesc& result);

// The row of the element types under which an operation falls.
const TypeRow& type_row(PointwiseOp op);

// True where integers have the operation.
bool serves_integers(PointwiseOp op);

// Whether a program gives the same on any device, to the bit: nothing but choices, comparisons and conversions, or integers.
bool is_exact(const Stage& pointwise);

}  // namespace sparkle
