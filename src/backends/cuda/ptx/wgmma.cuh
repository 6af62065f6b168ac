// Products of four warps (sm_90a): 64 rows by kN columns by 32 bytes of k, both operands in shared memory by descriptors. The
// lists of registers below are what they are: a sum has a number in the instruction's text.
#pragma once

#include "backends/cuda/ptx/matrix.cuh"

namespace sparkle::cuda {

// Rows of 128 bytes of k side by side, 16-byte chunks exchanged as the engine's swizzle of 128 bytes does (a tile begins at a
// multiple of 1024): bits 0-13 the address in 16 bytes, 32-45 the bytes between groups of eight rows, 62-63 the swizzle.
SPARKLE_DEVICE uint64_t descriptor_of(SharedAddress tile) {
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 16 | ((tile & 0x3ffff) >> 4);
}
SPARKLE_DEVICE void wgmma_fence() {
#ifdef __CUDACC__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  cuda_model::wgmma_fence();
#endif
}
SPARKLE_DEVICE void wgmma_commit() {
#ifdef __CUDACC__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  cuda_model::wgmma_commit();
#endif
}
// All but the last kGroups groups of products are done; none of `sums` is touched before.
template <int kGroups>
SPARKLE_DEVICE void wgmma_wait() {
#ifdef __CUDACC__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#else
  cuda_model::wgmma_wait(kGroups);
#endif
}

// Between products and whatever else reads or writes their sums: the compiler moves neither across.
template <class Sum, int kCount>
SPARKLE_DEVICE void hold(Sum (&sums)[kCount]) {
#ifdef __CUDACC__
  SPARKLE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    if constexpr (sizeof(Sum) == sizeof(float) && Sum(0.5) != Sum(0)) {
      asm volatile("" : "+f"(sums[i])::"memory");
    } else {
      asm volatile("" : "+r"(sums[i])::"memory");
    }
  }
#else
  static_cast<void>(sums);
#endif
}

// Registers of a thread from here on: all warps of a warpgroup give up or take some.
template <int kRegisters>
SPARKLE_DEVICE void give_registers() {
#ifdef __CUDACC__
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
SPARKLE_DEVICE void take_registers() {
#ifdef __CUDACC__
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

#ifdef __CUDACC__
// clang-format off
#define SPARKLE_D8(c, d, i) c(d[(i)]), c(d[(i) + 1]), c(d[(i) + 2]), c(d[(i) + 3]), c(d[(i) + 4]), c(d[(i) + 5]), c(d[(i) + 6]), c(d[(i) + 7])
#define SPARKLE_D16(c, d, i) SPARKLE_D8(c, d, i), SPARKLE_D8(c, d, (i) + 8)
#define SPARKLE_D32(c, d, i) SPARKLE_D16(c, d, i), SPARKLE_D16(c, d, (i) + 16)
#define SPARKLE_D64(c, d, i) SPARKLE_D32(c, d, i), SPARKLE_D32(c, d, (i) + 32)
#define SPARKLE_D128(c, d, i) SPARKLE_D64(c, d, i), SPARKLE_D64(c, d, (i) + 64)
#define SPARKLE_REGISTERS_64 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SPARKLE_WGMMA_64(shape, types, scales, c) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" \
               "wgmma.mma_async.sync.aligned." shape "." types " {" SPARKLE_REGISTERS_64 "}, %32, %33, p" scales ";\n}" \
               : SPARKLE_D32(c, d, 0) : "l"(a), "l"(b), "r"(static_cast<int32_t>(keep)))
#define SPARKLE_REGISTERS_128 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SPARKLE_WGMMA_128(shape, types, scales, c) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" \
               "wgmma.mma_async.sync.aligned." shape "." types " {" SPARKLE_REGISTERS_128 "}, %64, %65, p" scales ";\n}" \
               : SPARKLE_D64(c, d, 0) : "l"(a), "l"(b), "r"(static_cast<int32_t>(keep)))
#define SPARKLE_REGISTERS_256 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SPARKLE_WGMMA_256(shape, types, scales, c) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n" \
               "wgmma.mma_async.sync.aligned." shape "." types " {" SPARKLE_REGISTERS_256 "}, %128, %129, p" scales ";\n}" \
               : SPARKLE_D128(c, d, 0) : "l"(a), "l"(b), "r"(static_cast<int32_t>(keep)))
#define SPARKLE_D96(c, d, i) SPARKLE_D64(c, d, i), SPARKLE_D32(c, d, (i) + 64)
#define SPARKLE_REGISTERS_192 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define SPARKLE_WGMMA_192(shape, types, scales, c) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %98, 0;\n" \
               "wgmma.mma_async.sync.aligned." shape "." types " {" SPARKLE_REGISTERS_192 "}, %96, %97, p" scales ";\n}" \
               : SPARKLE_D96(c, d, 0) : "l"(a), "l"(b), "r"(static_cast<int32_t>(keep)))
#define SPARKLE_D104(c, d, i) SPARKLE_D64(c, d, i), SPARKLE_D32(c, d, (i) + 64), SPARKLE_D8(c, d, (i) + 96)
#define SPARKLE_REGISTERS_208 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103"
#define SPARKLE_WGMMA_208(shape, types, scales, c) \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %106, 0;\n" \
               "wgmma.mma_async.sync.aligned." shape "." types " {" SPARKLE_REGISTERS_208 "}, %104, %105, p" scales ";\n}" \
               : SPARKLE_D104(c, d, 0) : "l"(a), "l"(b), "r"(static_cast<int32_t>(keep)))
// clang-format on
#endif

// d = (keep ? d : 0) + A * B
template <Operand kA, Operand kB, int kN>
SPARKLE_DEVICE void multiply_group(typename SumOf<kA>::Type (&d)[kN / 2], uint64_t a, uint64_t b, bool keep) {
  static_assert(kN == 64 || kN == 128 || kN == 192 || kN == 208 || kN == 256);
  static_assert(kA == kB || (is_integer(kA) && is_integer(kB)));
#ifdef __CUDACC__
#define SPARKLE_WGMMA_OF(n)                                                   \
  if constexpr (kA == Operand::f16) {                                         \
    SPARKLE_WGMMA_##n("m64n" #n "k16", "f32.f16.f16", ", 1, 1, 0, 0", "+f");  \
  } else if constexpr (kA == Operand::bf16) {                                 \
    SPARKLE_WGMMA_##n("m64n" #n "k16", "f32.bf16.bf16", ", 1, 1, 0, 0", "+f"); \
  } else if constexpr (kA == Operand::tf32) {                                 \
    SPARKLE_WGMMA_##n("m64n" #n "k8", "f32.tf32.tf32", ", 1, 1", "+f");       \
  } else if constexpr (kA == Operand::i8 && kB == Operand::i8) {              \
    SPARKLE_WGMMA_##n("m64n" #n "k32", "s32.s8.s8", "", "+r");                \
  } else if constexpr (kA == Operand::u8 && kB == Operand::i8) {              \
    SPARKLE_WGMMA_##n("m64n" #n "k32", "s32.u8.s8", "", "+r");                \
  } else if constexpr (kA == Operand::i8 && kB == Operand::u8) {              \
    SPARKLE_WGMMA_##n("m64n" #n "k32", "s32.s8.u8", "", "+r");                \
  } else if constexpr (kA == Operand::e4m3) {                                 \
    SPARKLE_WGMMA_##n("m64n" #n "k32", "f32.e4m3.e4m3", ", 1, 1", "+f");      \
  } else if constexpr (kA == Operand::e5m2) {                                 \
    SPARKLE_WGMMA_##n("m64n" #n "k32", "f32.e5m2.e5m2", ", 1, 1", "+f");      \
  } else {                                                                    \
    static_assert(kN == 0, "no such instruction is written out here");        \
  }
  if constexpr (kN == 64) {
    SPARKLE_WGMMA_OF(64)
  } else if constexpr (kN == 128) {
    SPARKLE_WGMMA_OF(128)
  } else if constexpr (kN == 192) {
    SPARKLE_WGMMA_OF(192)
  } else if constexpr (kN == 208) {
    SPARKLE_WGMMA_OF(208)
  } else {
    SPARKLE_WGMMA_OF(256)
  }
#undef SPARKLE_WGMMA_OF
#else
  cuda_model::wgmma(product_of(kA), product_of(kB), kN, d, a, b, keep);
#endif
}

}  // namespace sparkle::cuda
