// cuda_images.inc, made by cmake/cuda.cmake, has CUDA_IMAGE(name, file) for each fatbin; the assembler takes the files in.
#include "backends/cuda/images.h"

#include <vector>

#define CUDA_IMAGE(name, file)                                                                                     \
  __asm__(".section .rodata\n.balign 64\nsparkle_cuda_" #name "_begin:\n.incbin \"" file "\"\nsparkle_cuda_" #name \
          "_end:\n.byte 0\n.previous\n");                                                                          \
  extern "C" const std::byte sparkle_cuda_##name##_begin[], sparkle_cuda_##name##_end[];
#include "cuda_images.inc"
#undef CUDA_IMAGE

namespace sparkle::cuda {

std::span<const CodeImage> code_images() {
#define CUDA_IMAGE(name, file) \
  {#name, {sparkle_cuda_##name##_begin, static_cast<size_t>(sparkle_cuda_##name##_end - sparkle_cuda_##name##_begin)}},
  static const std::vector<CodeImage> images = {
#include "cuda_images.inc"
  };
#undef CUDA_IMAGE
  return images;
}

}  // namespace sparkle::cuda
