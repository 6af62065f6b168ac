// What families make their sample stages of (FamilyInfo::samples).
#pragma once

#include <random>

#include "families/family.h"

namespace sparkle {

// A tensor with `gap` elements more than it has between the neighbours along every axis but the innermost.
TensorDesc described(DType type, const Dims& shape, bool channels_innermost, int64_t gap);

// Whether all operands have one real type; whether the first holds bytes, whose sums are integers.
bool of_one_real(const SampleRequest& request);
bool sums_bytes(const SampleRequest& request);

// The same stage on the request's types: integer sums have zero points behind the operands of their epilogue.
Stage with_types(Stage stage, const SampleRequest& t);

// Rows along one axis of three, or all of it.
Stage rows_sample(const StageParams& params, size_t operands, const Dims& result);

// Values of operands: integers take most values of a byte.
double any_value(DType type, std::mt19937& random);
double drawn_between(int64_t least, int64_t most, std::mt19937& random);

}  // namespace sparkle
