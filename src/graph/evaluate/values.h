// Reading and writing the elements of constants of any type.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "families/gemm/stored_weights.h"

namespace sparkle {

// All elements as doubles or integers (floats are truncated, those out of range saturate), and back (rounded, wrapped).
std::vector<double> as_doubles(const HostTensor& tensor);
std::vector<int64_t> as_integers(const HostTensor& tensor);
HostTensor from_doubles(DType type, const Dims& shape, const std::vector<double>& values);
HostTensor from_integers(DType type, const Dims& shape, const std::vector<int64_t>& values);
// One element without axes, as kernels store it: store_element() of families/values/element.h.
HostTensor one_value(DType type, double value);

// What types of 16 bits make of a tensor of f32, f16 or bf16, ranges judged; those of other types have no fit.
WeightFit fit_of(const HostTensor& tensor);

// Element i as a double.
double element(const HostTensor& tensor, int64_t i);
// The value of a constant with one element.
inline double scalar(const HostTensor& tensor) { return element(tensor, 0); }

}  // namespace sparkle
