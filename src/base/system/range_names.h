// Names of what runs, for profilers of NVIDIA (Nsight): NVTX, found at run time. Its functions come from the library that CUDA
// brings along; nothing is looked for unless a tool has announced itself.
#pragma once

namespace sparkle {

struct RangeNames {
  int (*push)(const char* name) = nullptr;  // nvtxRangePushA: from here to pop(), in this thread
  int (*pop)() = nullptr;                   // nvtxRangePop
};

// nullptr where no tool listens: NVTX_INJECTION64_PATH, which Nsight sets for the programs that it starts, is not set, or there
// is no library. Looked up once.
const RangeNames* range_names();

}  // namespace sparkle
