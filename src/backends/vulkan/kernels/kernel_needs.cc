#include "backends/vulkan/kernels/kernel_needs.h"

#include <algorithm>

#include "backends/vulkan/kernels/rows/rows.h"
#include "backends/vulkan/kernels/moves/chunks.h"
#include "families/depthwise/depthwise.h"
#include "families/fft/fft_tiles.h"
#include "families/gemm/gemm.h"
#include "families/non_max/non_max_gpu.h"
#include "families/pool/pool_groups.h"
#include "families/quantize/quantize.h"
#include "families/top_k/top_k_gpu.h"

namespace sparkle::vulkan {
namespace {

// Bytes: a pair of numbers for each thread (glsl/rows.glsl), and with means how many elements each has seen.
constexpr int64_t kRowBytes = 8 * kRowThreads, kCountBytes = 4 * kRowThreads;
// Slices of queries and keys, the weights of 32 by 32 of them, three numbers a query (glsl/attention.comp).
constexpr int64_t kBlockBytes = 4 * (3 * 32 * 33 + 3 * 32);
// A query, products of 64 keys by teams of 8, weights, a number a thread (glsl/attention_split.comp).
constexpr int64_t kSplitBytes = 4 * (128 + 64 * 9 + 128 + 128);
constexpr int64_t kTransposed = 32 * 33;       // chunks; those of less than a word take one
constexpr int64_t kAverageBytes = 4 * 32 * 8;  // glsl/quantize_average.comp
constexpr int64_t kRangeBytes = 8 * 256;       // glsl/quantize_range.comp

// Registers: of a value or four on their way from one place to another, and the addresses.
constexpr int kFew = 48;
// The same with doubles on their way, which take two registers each.
constexpr int kFewDoubles = 64;
// A program's own, beside what it reads and writes.
constexpr int kProgram = 40;
// The driver gives a thread all there are rather than keep values in memory.
constexpr int kMost = 256;

TileNeeds needs_of_bytes(const TileSchedule& s) {
  TileNeeds needs;
  if (s.variant == "bytes_naive") return {s.m, 0, kFew};
  needs.threads = s.m / s.thread_m * (s.n / s.thread_n);
  needs.shared_bytes = 4 * (int64_t{s.k} / 4 * (s.m + s.n) + 32 + s.m + s.n);
  // Sums, parts of a row and a column twice; of each word that is fetched itself, where its row lies (three), its address (two)
  // and what it is once its zero point is off. Bytes taken out of the parts' words are four times as many.
  const int parts = s.thread_m + s.thread_n, fetched = (s.m + s.n) * s.k / 4 / needs.threads;
  needs.registers = s.thread_m * s.thread_n + 2 * parts + 8 * fetched + 8;
  if (s.variant == "bytes_tile") needs.registers = std::min(kMost, needs.registers + 4 * parts);
  return needs;
}

// Two numbers of 32 bits for each of f64 and the 64-bit integers.
TileNeeds needs_of_native_type(const TileSchedule& s, DType type) {
  TileNeeds needs = tile_needs(s);
  needs.shared_bytes = native_type_shared_bytes(s, type);
  const int words = static_cast<int>(size_of(type) / 4), parts = s.thread_m + s.thread_n;
  needs.registers = words * (s.thread_m * s.thread_n + 2 * parts + (s.m + s.n) * s.k / needs.threads) + 2 * kFew;
  return needs;
}

TileNeeds needs_of_tile(const Stage& stage, const TileSchedule& s) {
  const DType type = stage.outputs[0].dtype;
  if (s.variant == kNativeType) return needs_of_native_type(s, type);
  if (s.variant == "bytes_naive" || s.variant == "bytes_tile" || s.variant == "dot_tile") return needs_of_bytes(s);
  TileNeeds needs = tile_needs(s);
  if (s.variant == "halo") needs.shared_bytes = halo_bytes(get<GemmParams>(stage.params).window);
  return needs;
}

// The transform of a thread's points: two words each, as many factors, and what is read ahead.
TileNeeds needs_of_transforms(const FftTileSchedule& s) {
  TileNeeds needs{s.threads, fft_shared_bytes(s), 4 * kFftGpuRegisters};
  if (s.variant != "points") return needs;
  const TileNeeds product = tile_needs(s.product);
  needs.shared_bytes = std::max(needs.shared_bytes, product.shared_bytes);
  needs.registers = std::max(needs.registers, product.registers);
  return needs;
}

// Sums of four channels, a row of pixels - twice where the next is read ahead - and a row of the filter.
TileNeeds needs_of_depthwise(const Stage& stage, const DepthwiseSchedule& s) {
  const bool floats = s.variant == "vectors";
  if (!floats && s.variant != "bytes_row") return {64, 0, kFew};
  const Window& w = get<DepthwiseParams>(stage.params).window;
  const auto span = static_cast<int>((s.columns - 1) * w.stride[2] + (w.filter[2] - 1) * w.dilation[2] + 1);
  return {64, 0, 4 * (s.rows * s.columns + (floats ? 2 : 1) * span + static_cast<int>(w.filter[2])) + (floats ? 32 : kFew)};
}

// Four neighbours of each operand and of the result.
int needs_of_program(const Stage& stage) {
  int words = 0;
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list) words += std::max(1, static_cast<int>(size_of(d.dtype)) / 4);
  return std::min(kMost, 4 * words + kProgram);
}

TileNeeds needs_of_loops(const Stage& stage, const std::string& variant) {
  const int wide = stage.inputs[0].dtype == DType::f64 ? 2 : 1, few = wide == 2 ? kFewDoubles : kFew;
  switch (stage.family()) {
    case Family::reduce:
    case Family::softmax: return {kRowThreads, wide * kRowBytes, few};
    case Family::normalize: return {kRowThreads, wide * (kRowBytes + kCountBytes), few};
    case Family::top_k: {
      const int64_t key = std::max<int64_t>(4, size_of(stage.inputs[0].dtype));
      return {kRowThreads, (4 + key) * (variant == "best" ? kRowThreads : variant == "sort" ? kTopKEntries : 0), kFew};
    }
    case Family::scan: return {kRowThreads, std::max<int64_t>(4, size_of(stage.inputs[0].dtype)) * kRowThreads, kFew};
    case Family::rotary: return {kRowThreads, 0, kFew};
    case Family::attention:
      if (variant == "split") return {128, kSplitBytes, kFew};
      return {128, kBlockBytes, 96};  // 8 of the 32 x 32 sums, rows of both operands ahead
    case Family::copy:
      if (variant != "transpose") return {kChunkThreads, 0, kFew};
      return {256, kTransposed * std::max<int64_t>(4, size_of(stage.inputs[0].dtype)), kFew};
    case Family::pool:
      if (variant != "group") return {64, 0, few};
      return {kPoolGroupThreads, kPoolGroupThreads * (pool_in_vec4(stage) ? 16 : 4), kFew};
    case Family::quantize: {
      const QuantizeKind kind = get<QuantizeParams>(stage.params).kind;
      if (kind == QuantizeKind::average) return {256, kAverageBytes, kFew};
      return kind == QuantizeKind::dynamic ? TileNeeds{256, kRangeBytes, kFew} : TileNeeds{64, 0, kFew};
    }
    case Family::pad:
    case Family::gather:
    case Family::scatter:
    case Family::triangle:
    case Family::resize: return {kChunkThreads, 0, kFew};
    case Family::non_max: return {kNonMaxThreads, 8 * kNonMaxThreads, kFew};
    case Family::pointwise: return {128, 0, needs_of_program(stage)};
    case Family::deform: return {64, 4 * 16 * (17 + 65), 64};  // samples and filters of a slab (glsl/deform.comp)
    case Family::sample: return {64, 0, 64};                   // places and weights along three axes
    default: return {64, 0, kFew};
  }
}

}  // namespace

TileNeeds needs_of(const Stage& stage, const Schedule& schedule) {
  if (const auto* tile = get_if<TileSchedule>(&schedule)) return needs_of_tile(stage, *tile);
  if (const auto* transforms = get_if<FftTileSchedule>(&schedule)) return needs_of_transforms(*transforms);
  if (const auto* rows = get_if<DepthwiseSchedule>(&schedule)) return needs_of_depthwise(stage, *rows);
  return needs_of_loops(stage, variant_of(schedule));
}

}  // namespace sparkle::vulkan
