// What programs that are compiled at run time may include: the kernels' own files of operations, conversions and wrappers, as
// texts in this build, and the little of the standard library that these want.
#pragma once

#include <span>
#include <string>

namespace sparkle::cuda {

struct ProgramHeader {
  const char *name, *text;  // "backends/cuda/ptx/target.cuh", as it stands between the quotation marks
};
std::span<const ProgramHeader> program_headers();
// Of all of them: what compiled texts depend on.
uint64_t program_headers_hash();

}  // namespace sparkle::cuda
