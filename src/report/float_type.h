// Floating-point tensors in another floating-point type: pictures for networks whose inputs are f16, bf16 or f64, and their
// outputs as figures.
#pragma once

#include "base/result.h"
#include "base/tensor.h"

namespace sparkle {

// `tensor` rounded to `type`; the tensor itself where it has that type or holds no floats. Errors: out_of_memory.
Result<HostTensor> in_float_type(const HostTensor& tensor, DType type);

}  // namespace sparkle
