#include "backends/vulkan/shared_memory.h"

#include <algorithm>

#include "families/fft/fft_tiles.h"
#include "families/gemm/gemm_tiles.h"
#include "families/pool/pool_groups.h"

namespace sparkle::vulkan {
namespace {

// A pair of numbers for each of 128 threads (glsl/rows.glsl), and with means how many elements each has seen.
constexpr int64_t kRowThreads = 128, kRowBytes = 8 * kRowThreads, kCountBytes = 4 * kRowThreads;
// Slices of queries and keys, the weights of 32 by 32 of them, three numbers a query (glsl/attention.comp).
constexpr int64_t kBlockBytes = 4 * (3 * 32 * 33 + 3 * 32);
// A query, products of 64 keys by teams of 8, weights, a number a thread (glsl/attention_split.comp).
constexpr int64_t kSplitBytes = 4 * (128 + 64 * 9 + 128 + 128);
constexpr int64_t kTransposed = 32 * 33;       // units; those of less than a word take one
constexpr int64_t kAverageBytes = 4 * 32 * 8;  // glsl/quantize_average.comp
constexpr int64_t kRangeBytes = 8 * 256;       // glsl/quantize_range.comp

int64_t of_tile(const Stage& stage, const TileSchedule& s) {
  if (s.variant == "bytes_naive") return 0;
  if (s.variant == kOwnType) return own_type_shared_bytes(s, stage.outputs[0].dtype);
  if (s.variant == "bytes_tile" || s.variant == "dot_tile") return 4 * (int64_t{s.k} / 4 * (s.m + s.n) + 32 + s.m + s.n);
  if (s.variant != "halo") return tile_needs(s).shared_bytes;
  return halo_bytes(std::get<GemmParams>(stage.params).window);
}

int64_t of_transforms(const FftTileSchedule& s) {
  return std::max(fft_shared_bytes(s), s.variant == "points" ? tile_needs(s.product).shared_bytes : 0);
}

int64_t of_loops(const Stage& stage, const std::string& variant) {
  switch (stage.family()) {
    case Family::reduce:
    case Family::softmax: return (stage.inputs[0].dtype == DType::f64 ? 2 : 1) * kRowBytes;
    case Family::normalize: return kRowBytes + kCountBytes;
    case Family::attention: return variant == "split" ? kSplitBytes : kBlockBytes;
    case Family::copy: return variant == "transpose" ? kTransposed * std::max<int64_t>(4, size_of(stage.inputs[0].dtype)) : 0;
    case Family::pool: return variant == "group" ? kPoolGroupThreads * (pool_in_fours(stage) ? 16 : 4) : 0;
    case Family::quantize: {
      const QuantizeKind kind = std::get<QuantizeParams>(stage.params).kind;
      return kind == QuantizeKind::average ? kAverageBytes : kind == QuantizeKind::dynamic ? kRangeBytes : 0;
    }
    default: return 0;
  }
}

}  // namespace

int64_t shared_bytes_of(const Stage& stage, const Schedule& schedule) {
  if (const auto* tile = std::get_if<TileSchedule>(&schedule)) return of_tile(stage, *tile);
  if (const auto* transforms = std::get_if<FftTileSchedule>(&schedule)) return of_transforms(*transforms);
  return of_loops(stage, variant_of(schedule));
}

}  // namespace sparkle::vulkan
