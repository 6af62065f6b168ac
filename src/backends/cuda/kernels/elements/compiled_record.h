// What a program that was compiled at run time is launched with: sizes and strides stand in its text.
#pragma once

namespace sparkle::cuda {

inline constexpr int kCompiledInputs = 12, kCompiledThreads = 128;

struct CompiledRecord {
  const void* x[kCompiledInputs] = {};
  void* y = nullptr;
};

}  // namespace sparkle::cuda
