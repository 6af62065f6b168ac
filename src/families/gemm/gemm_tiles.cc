// Products on GPUs: tiles of workgroups derived from the sizes of the stage and of the device, and what they move.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"

namespace sparkle {
namespace {

// A workgroup's tile and a thread's part of it. Threads keep part + row + column in registers: 8 x 8 needs some 100 of the 255
// that NVIDIA and AMD give a thread, and reads two words of shared memory for eight products.
struct TileShape {
  int m, n, k, thread_m, thread_n;
  int threads() const { return m / thread_m * (n / thread_n); }
  // Both operands of one step, the left one with four columns more against bank conflicts (gemm_tile.comp).
  int64_t shared_bytes() const { return 4 * (int64_t{k} * (m + 4) + int64_t{k} * n); }
};
constexpr TileShape kShapes[] = {{128, 128, 16, 8, 8}, {128, 64, 16, 8, 4}, {64, 128, 16, 4, 8}, {64, 64, 16, 4, 4},
                                 {64, 64, 16, 8, 8},   {64, 32, 16, 4, 4},  {32, 64, 16, 4, 4},  {32, 32, 32, 4, 4}};
constexpr int kNaiveThreads = 64;

double up(double a, double b) { return std::ceil(a / b); }

}  // namespace

std::vector<Schedule> gemm_tile_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (is_integer_tile(variant.name)) return gemm_integer_tile_schedules(stage, variant, device, why_not);
  const auto refuse = [&](Reason reason) {
    why_not = reason;
    return std::vector<Schedule>{};
  };
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  for (const TensorDesc& d : stage.inputs)
    if (d.dtype != DType::f32) return refuse(Reason::type_not_served);
  if (stage.outputs[0].dtype != DType::f32) return refuse(Reason::type_not_served);
  TileSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  if (variant.name == "naive") {
    s.m = kNaiveThreads, s.n = 1, s.k = 1;
    return {s};
  }
  std::vector<Schedule> found;
  const int64_t shared = device.limits.shared_bytes_per_group, threads = device.limits.max_threads_per_group;
  for (const TileShape& shape : kShapes) {
    if (shared > 0 && shape.shared_bytes() > shared) continue;
    if (threads > 0 && shape.threads() > threads) continue;
    s.m = shape.m, s.n = shape.n, s.k = shape.k, s.thread_m = shape.thread_m, s.thread_n = shape.thread_n;
    s.depth = 2;
    found.push_back(s);
  }
  if (found.empty()) return refuse(Reason::too_few_registers);
  return found;
}

Footprint gemm_tile_footprint(const Stage& stage, const TileSchedule& s, const Device& device) {
  if (is_integer_tile(s.variant)) return gemm_integer_tile_footprint(stage, s, device);
  const auto& params = std::get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const auto instances = static_cast<double>(sizes.instances), m = static_cast<double>(sizes.m),
             n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
  const bool naive = s.variant == "naive";
  Footprint f = streaming_footprint(stage, device, 2 * instances * m * n * k);
  const double once = f.bytes.empty() ? 0 : *std::max_element(f.bytes.begin(), f.bytes.end());
  const double tiles_m = naive ? m : up(m, s.m), tiles_n = naive ? n : up(n, s.n);
  f.executed_flops =
      naive ? 2 * instances * sizes.k_steps * n : 2 * instances * tiles_m * s.m * tiles_n * s.n * up(k, s.k) * s.k;
  // Each tile reads its rows and columns; a thread reads its own from shared memory once per step of k.
  const double step_m = naive ? 1 : s.m, step_n = naive ? 1 : s.n;
  const double read = 4 * instances * tiles_m * tiles_n * (step_m + step_n) * k;
  double written = 0;
  for (const TensorDesc& d : stage.outputs) written += static_cast<double>(d.bytes());
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    const MemoryLevel& level = device.memory[i];
    if (level.filled_by_hand) {
      f.bytes[i] = naive ? 0 : 2 * f.executed_flops * (1.0 / s.thread_m + 1.0 / s.thread_n);
      continue;
    }
    // What the next inner cache holds as a whole is read from here once.
    const bool cached =
        i > 0 && !device.memory[i - 1].filled_by_hand && once <= static_cast<double>(device.memory[i - 1].bytes);
    f.bytes[i] = cached ? once : std::max(once, read + written);
  }
  // Workgroups; the naive one makes an output per thread.
  f.parallel_units = std::max(1.0, naive ? instances * m * n / kNaiveThreads : instances * tiles_m * tiles_n * s.split);
  f.depth = s.depth;
  return f;
}

}  // namespace sparkle
