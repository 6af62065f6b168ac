// What a launch is given, in words: the fields of its record by their names, for records of products, attention, rows and
// windows.
#pragma once

#include <string>

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

// A line for each field that differs from what the record begins with, as "    stride = 1 2 2"; addresses by what they will be
// of, as "    x = operand 0"; then the tensor maps. Other records: nothing.
std::string record_text(const KernelLaunch& launch);

}  // namespace sparkle::cuda
