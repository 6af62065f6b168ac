// Pointwise programs as CUDA C++: a kernel for one stage, sizes and strides in its text, in which neighbours along the
// innermost axis are loaded and stored 16 bytes at a time where the layouts permit.
#pragma once

#include "backends/cuda/cuda_kernel.h"

namespace sparkle::cuda {

struct PrintedProgram {
  std::string name, text;  // of the kernel: "sparkle_program_" and the hash of all but the name
  int64_t threads = 0;     // that have work
};

// The stage's output is not empty. Errors: layout_not_served where an operand spans more than 31 bits count or there are more
// than 12; type_not_served, naming the type or the operation.
Result<PrintedProgram> pointwise_text(const Stage& stage);
// Its launch on the stage's operands. Errors: those of launch_of_text.
Result<KernelLaunch> launch_of_program(const Stage& stage, const Workshop& shop, PrintedProgram program);

}  // namespace sparkle::cuda
