// Stages on 8-bit integers on GPUs: tiles as those of gemm_tiles.cc with four neighbours along k in a word, what they move and
// do.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/integers/integers.h"

namespace sparkle {
namespace {

// A step of k is 16 words, so that neighbouring threads read 64 neighbouring bytes of a pixel; half of that where 8 x 8 sums of
// a thread leave no registers for what is on its way (64 x 64 by 64 threads spilled on RDNA 3).
struct TileShape {
  int m, n, k, thread_m, thread_n;
  int threads() const { return m / thread_m * (n / thread_n); }
};
constexpr TileShape kShapes[] = {{128, 128, 32, 8, 8}, {128, 64, 64, 8, 4}, {64, 128, 64, 4, 8}, {64, 64, 64, 4, 4},
                                 {64, 64, 32, 8, 8},   {64, 32, 64, 4, 4},  {32, 64, 64, 4, 4},  {32, 32, 64, 4, 4}};
constexpr int kNaiveThreads = 64;

// Instructions for a product in terms of a fp32 multiply-add. Without dot products: an integer multiply-add, at half the rate
// where GPUs have fewer units for it, and its share of taking bytes out of words. One output a thread: two loads and the zero
// points besides.
constexpr double kByteProducts = 2.5, kNaiveProducts = 8;

double up(double a, double b) { return std::ceil(a / b); }

}  // namespace

bool is_integer_tile(std::string_view variant) {
  return variant == "bytes_naive" || variant == "bytes_tile" || variant == "dot_tile";
}

// Both operands of one step, the left one padded against bank conflicts, and the sums of rows and columns (integer_tile.comp).
int64_t integer_tile_shared_bytes(const TileSchedule& s) {
  return s.variant == "bytes_naive" ? 0 : 4 * (int64_t{s.k} / 4 * (s.m + s.n) + 32 + s.m + s.n);
}

std::vector<Schedule> gemm_integer_tile_schedules(const Stage& stage, const Variant& variant, const Device& device,
                                                  Reason& why_not) {
  const WhyNot refuse{why_not};
  if (!is_integer(stage.inputs)) return refuse(Reason::type_not_served);
  const MathUnit* unit = variant.unit == UnitKind::dot_product ? device.unit("dot-i8") : best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  TileSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  if (variant.name == "bytes_naive") {
    s.m = kNaiveThreads, s.n = 1, s.k = 1;
    return {s};
  }
  const DType w = stage.inputs[1].dtype;
  if (w != DType::u8 && w != DType::i8) return refuse(Reason::type_not_served);
  std::vector<Schedule> found;
  const int64_t shared = device.limits.shared_bytes_per_group, threads = device.limits.max_threads_per_group;
  for (TileShape shape : kShapes) {
    if (variant.name == "bytes_tile") {
      // Bytes taken out of words take registers: 252 of 256 beside 8 x 8 sums on RDNA 3, 256 beside 8 x 4 on Vega. With half of
      // the words on their way two or three subgroups of 64 fit a SIMD there instead of one or two.
      if (shape.thread_m > 4) continue;
      if (shape.k == 64 && shape.n / 4 * (32 / 4) >= shape.threads()) shape.k = 32;
    }
    if (threads > 0 && shape.threads() > threads) continue;
    s.m = shape.m, s.n = shape.n, s.k = shape.k, s.thread_m = shape.thread_m, s.thread_n = shape.thread_n;
    if (shared > 0 && integer_tile_shared_bytes(s) > shared) continue;
    s.depth = 2;
    found.push_back(s);
  }
  if (found.empty()) return refuse(Reason::too_few_registers);
  return found;
}

Footprint gemm_integer_tile_footprint(const Stage& stage, const TileSchedule& s, const Device& device) {
  const GemmSizes sizes = gemm_sizes(get<GemmParams>(stage.params), stage.inputs, stage.outputs[0]);
  const auto instances = static_cast<double>(sizes.instances), m = static_cast<double>(sizes.m),
             n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
  const bool naive = s.variant == "bytes_naive";
  Footprint f = streaming_footprint(stage, device, 2 * instances * m * n * k);
  const double once = f.bytes.empty() ? 0 : *std::max_element(f.bytes.begin(), f.bytes.end());
  const double tiles_m = naive ? m : up(m, s.m), tiles_n = naive ? n : up(n, s.n);
  // The last step of k ends with the last word that holds products.
  const double padded = instances * tiles_m * s.m * tiles_n * s.n * up(k, 4) * 4;
  f.executed_flops =
      naive ? 2 * instances * sizes.k_steps * n * kNaiveProducts : 2 * padded * (s.variant == "dot_tile" ? 1 : kByteProducts);
  const auto bytes_of = [&](size_t i) { return static_cast<double>(size_of(stage.inputs[i].dtype)); };
  const double read =
      instances * tiles_m * tiles_n * k * (naive ? bytes_of(0) + bytes_of(1) : s.m * bytes_of(0) + s.n * bytes_of(1));
  const auto written = static_cast<double>(stage.outputs[0].bytes());
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    if (level.filled_by_hand) {
      f.bytes[i] = naive ? 0 : padded * (1.0 / s.thread_m + 1.0 / s.thread_n);
      continue;
    }
    // What the next inner cache holds as a whole is read from here once.
    const bool cached =
        i > 0 && !device.memory[i - 1].filled_by_hand && once <= static_cast<double>(device.memory[i - 1].bytes);
    f.bytes[i] = cached ? once : std::max(once, read + written);
  }
  f.parallel_items = std::max(1.0, naive ? instances * m * n / kNaiveThreads : instances * tiles_m * tiles_n);
  return f;
}

}  // namespace sparkle
