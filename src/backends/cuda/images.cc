// cuda_images.inc, made by cmake/cuda.cmake, has CUDA_IMAGE(name, file, names' file) for each fatbin; the assembler takes the
// files in.
#include "backends/cuda/images.h"

#include <vector>

#define CUDA_IMAGE(name, file, names)                                                                              \
  __asm__(".section .rodata\n.balign 64\nsparkle_cuda_" #name "_begin:\n.incbin \"" file "\"\nsparkle_cuda_" #name \
          "_end:\n.incbin \"" names "\"\nsparkle_cuda_" #name "_names_end:\n.byte 0\n.previous\n");                \
  extern "C" const char sparkle_cuda_##name##_begin[], sparkle_cuda_##name##_end[], sparkle_cuda_##name##_names_end[];
#include "cuda_images.inc"
#undef CUDA_IMAGE

namespace sparkle::cuda {

std::span<const CodeImage> code_images() {
#define CUDA_IMAGE(name, file, names)                                                \
  {#name,                                                                            \
   std::as_bytes(std::span(sparkle_cuda_##name##_begin, sparkle_cuda_##name##_end)), \
   {sparkle_cuda_##name##_end, static_cast<size_t>(sparkle_cuda_##name##_names_end - sparkle_cuda_##name##_end)}},
  static const std::vector<CodeImage> images = {
#include "cuda_images.inc"
  };
#undef CUDA_IMAGE
  return images;
}

}  // namespace sparkle::cuda
