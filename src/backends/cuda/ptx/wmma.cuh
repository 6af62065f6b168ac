// Products of a warp by fragments of 16 x 16 x 16 (sm_70 and later), whose places in registers are the hardware's own affair: loads
// and stores from shared memory are all that knows them.
#pragma once

#include "backends/cuda/ptx/memory.cuh"

namespace sparkle::cuda {

// Eight registers of fp16: rows of A, `stride` elements apart, at a multiple of 32 bytes.
SPARKLE_DEVICE void load_fragment_a(uint32_t (&r)[8], SharedAddress from, uint32_t stride) {
#ifdef __CUDACC__
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
               : "r"(from), "r"(stride)
               : "memory");
#else
  cuda_model::wmma_load(r, from, stride);
#endif
}
// The same of B's columns.
SPARKLE_DEVICE void load_fragment_b(uint32_t (&r)[8], SharedAddress from, uint32_t stride) {
#ifdef __CUDACC__
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
               : "r"(from), "r"(stride)
               : "memory");
#else
  cuda_model::wmma_load(r, from, stride);
#endif
}
// sums += A * B.
SPARKLE_DEVICE void multiply_fragments(float (&sums)[8], const uint32_t (&a)[8], const uint32_t (&b)[8]) {
#ifdef __CUDACC__
  asm volatile(
      "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3]), "+f"(sums[4]), "+f"(sums[5]), "+f"(sums[6]), "+f"(sums[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
        "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
#else
  cuda_model::wmma(sums, a, b);
#endif
}
// Rows of sums, `stride` floats apart, at a multiple of 32 bytes.
SPARKLE_DEVICE void store_fragment(SharedAddress to, const float (&sums)[8], uint32_t stride) {
#ifdef __CUDACC__
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::"r"(to),
               "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), "f"(sums[3]), "f"(sums[4]), "f"(sums[5]), "f"(sums[6]), "f"(sums[7]),
               "r"(stride)
               : "memory");
#else
  cuda_model::wmma_store(to, sums, stride);
#endif
}

}  // namespace sparkle::cuda
