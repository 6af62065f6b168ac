// The variants of the gemm family's kernels, for whoever chooses among them: names of their entries, and what a block takes of
// a core. The grid of each: x = tiles_m * tiles_n, y = splits, z = instances.
#pragma once

#include <cstdint>

#include "backends/cuda/kernels/gemm_halo_record.h"
#include "backends/cuda/ptx/operand.h"

namespace sparkle::cuda {

// How the left operand comes. Chunks: 16 bytes of channels by an asynchronous copy; channels of an instance, strides and
// instances' offsets are multiples of 16 bytes (k pads what w has, never x), and filter sizes along d,h,w sum to at most 31.
// Elements: one at a time, any layout and filter. TMA: the tensor memory accelerator's im2col mode. Halo: pixels and
// their surroundings once for all taps (gemm_halo_record.h).
enum class GemmLoader : uint8_t { chunks, elements, tma, halo };

struct GemmVariant {
  const char* kernel = "";  // "sparkle_gemm_mma_128x128_f16"
  Operand operand = Operand::f16;
  GemmLoader loader = GemmLoader::chunks;
  int architecture = 80;       // the least: 80, or 90 for sm_90a alone
  int m = 0, n = 0, k = 0;     // a block's tile; k in elements
  int warp_m = 0, warp_n = 0;  // a warp's part
  int stages = 0;
  int threads = 0;
  int cluster = 1;          // blocks side by side along x
  int blocks_per_core = 1;  // that its registers are held down for
  int64_t shared_bytes = 0;
};

constexpr int64_t gemm_mma_shared_bytes(int m, int n, int k_bytes, int stages) {
  // Parts of outputs on their way out lie where the stages lay: 16 rows a warp, of a warp's columns and a pad of 16 bytes.
  return int64_t{stages < 2 ? 2 : stages} * (m + n) * k_bytes;
}

// sm_90a. Few filters are the products' rows, and pixels their columns (kSwappedM pixels a block); else the other way round.
// Shared memory holds the stages, a strip of sums on their way out for each of eight warps, what the columns of each of two
// warpgroups are scaled by and what is added, two barriers a stage and a word.
inline constexpr int kWgmmaM = 128, kSwappedM = 512, kWgmmaStripColumns = 32, kSwappedStripPixels = 16;
constexpr int gemm_wgmma_strip_bytes(int m) {
  return m == kSwappedM ? kSwappedStripPixels * (16 * 4 + 16) : 16 * (kWgmmaStripColumns * 4 + 32);
}
constexpr int gemm_wgmma_terms_bytes(int m, int n) { return m == kSwappedM ? 0 : n * 8; }
constexpr int64_t gemm_wgmma_shared_bytes(int m, int n, int stages) {
  return int64_t{stages} * (m + n) * 128 + 8 * gemm_wgmma_strip_bytes(m) + 2 * gemm_wgmma_terms_bytes(m, n) + 16 * stages + 16;
}

// clang-format off
inline constexpr GemmVariant kGemmVariants[] = {
// Strict fp32 on CUDA cores: no warp's part.
#define GEMM_ROW(m, n, name, loader, stages, threads, blocks)                                                              \
  {"sparkle_gemm_fma_" #m "x" #n name, Operand::f32, GemmLoader::loader, 80, m, n, 16, 0, 0, stages, threads, 1, blocks, \
   gemm_mma_shared_bytes(m, n, 64, stages)},
#define GEMM_FMA(m, n, stages, threads, blocks)                \
  GEMM_ROW(m, n, "_f32", chunks, stages, threads, blocks)        \
  GEMM_ROW(m, n, "_elements_f32", elements, 2, threads, blocks)
  GEMM_FMA(128, 128, 3, 256, 1)
  GEMM_FMA(64, 64, 4, 128, 3)
  GEMM_FMA(128, 32, 4, 128, 3)
  GEMM_ROW(128, 128, "_in_turn_f32", chunks, 1, 256, 1)
#undef GEMM_FMA
#undef GEMM_ROW
#define GEMM_ROW(m, n, type, stages, threads, blocks)                                                                             \
  {"sparkle_gemm_fma_widened_" #m "x" #n "_" #type, Operand::type, GemmLoader::chunks, 80, m, n, 32, 0, 0, stages, threads, 1, blocks, \
   gemm_mma_shared_bytes(m, n, 64, stages)},
  GEMM_ROW(128, 128, f16, 3, 256, 1)
  GEMM_ROW(128, 128, bf16, 3, 256, 1)
  GEMM_ROW(64, 64, f16, 4, 128, 3)
  GEMM_ROW(64, 64, bf16, 4, 128, 3)
#undef GEMM_ROW
#define GEMM_ROW(name, type, loader, m, n, k_bytes, warps_m, warps_n, stages, blocks)                                            \
  {"sparkle_gemm_mma_" #m "x" #n name, Operand::type, GemmLoader::loader, 80, m, n, k_bytes / operand_bytes(Operand::type),      \
   m / warps_m, n / warps_n, stages, 32 * warps_m * warps_n, 1, blocks, gemm_mma_shared_bytes(m, n, k_bytes, stages)},
#define GEMM_TILE(m, n, k_bytes, warps_m, warps_n, stages, blocks)              \
  GEMM_ROW("_f16", f16, chunks, m, n, k_bytes, warps_m, warps_n, stages, blocks)   \
  GEMM_ROW("_bf16", bf16, chunks, m, n, k_bytes, warps_m, warps_n, stages, blocks) \
  GEMM_ROW("_tf32", tf32, chunks, m, n, k_bytes, warps_m, warps_n, stages, blocks) \
  GEMM_ROW("_i8", i8, chunks, m, n, k_bytes, warps_m, warps_n, stages, blocks)
#include "backends/cuda/kernels/gemm_variants.inc"
#undef GEMM_TILE
#define GEMM_TILE(m, n, k_bytes, warps_m, warps_n, stages, blocks)                          \
  GEMM_ROW("_elements_f16", f16, elements, m, n, k_bytes, warps_m, warps_n, stages, blocks)   \
  GEMM_ROW("_elements_bf16", bf16, elements, m, n, k_bytes, warps_m, warps_n, stages, blocks) \
  GEMM_ROW("_elements_tf32", tf32, elements, m, n, k_bytes, warps_m, warps_n, stages, blocks) \
  GEMM_ROW("_elements_i8", i8, elements, m, n, k_bytes, warps_m, warps_n, stages, blocks)
#include "backends/cuda/kernels/gemm_element_variants.inc"
#undef GEMM_TILE
  GEMM_ROW("_in_turn_f16", f16, chunks, 128, 128, 64, 2, 2, 1, 2)
  GEMM_ROW("_in_turn_bf16", bf16, chunks, 128, 128, 64, 2, 2, 1, 2)
  GEMM_ROW("_in_turn_tf32", tf32, chunks, 128, 128, 64, 2, 2, 1, 2)
#undef GEMM_ROW
#define GEMM_ROW(name, type, m, n, stages, cluster)                                                                                   \
  {"sparkle_gemm_wgmma_" #m "x" #n "x" #cluster name, Operand::type, GemmLoader::tma, 90, m, n, 128 / operand_bytes(Operand::type), \
   16, m == kSwappedM ? 256 : n, stages, 384, cluster, 1, gemm_wgmma_shared_bytes(m, n, stages)},
#define GEMM_WGMMA(m, n, stages, cluster)       \
  GEMM_ROW("_f16", f16, m, n, stages, cluster)   \
  GEMM_ROW("_bf16", bf16, m, n, stages, cluster) \
  GEMM_ROW("_tf32", tf32, m, n, stages, cluster) \
  GEMM_ROW("_i8", i8, m, n, stages, cluster)     \
  GEMM_ROW("_u8", u8, m, n, stages, cluster)
#include "backends/cuda/kernels/gemm_wgmma_variants.inc"
#undef GEMM_WGMMA
#define GEMM_WGMMA(m, n, stages, cluster)         \
  GEMM_ROW("_e4m3", e4m3, m, n, stages, cluster)   \
  GEMM_ROW("_e5m2", e5m2, m, n, stages, cluster)
#include "backends/cuda/kernels/products/gemm_float8_variants.inc"
#undef GEMM_WGMMA
#undef GEMM_ROW
#define GEMM_ROW(name, type)                                                                                                        \
  {"sparkle_gemm_halo" name, Operand::type, GemmLoader::halo, 90, kHaloM, kHaloN, 128 / operand_bytes(Operand::type), 16, kHaloM / 2, \
   kHaloTaps, 384, 1, 1, halo_shared_bytes()},
  GEMM_ROW("_f16", f16)
  GEMM_ROW("_bf16", bf16)
  GEMM_ROW("_tf32", tf32)
  GEMM_ROW("_i8", i8)
  GEMM_ROW("_u8", u8)
#undef GEMM_ROW
  {"sparkle_gemm_wmma_f16", Operand::f16, GemmLoader::elements, 80, 64, 16, 16, 16, 16, 1, 128, 1, 4, 4 * 2048},
};
// clang-format on

}  // namespace sparkle::cuda
