// How products are cut for memory levels, as their schedules say: register tiles under loops over panels of weights on CPUs,
// tiles of workgroups on GPUs.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/gemm_tiles.h"
#include "families/gemm/stored_weights.h"
#include "families/values/fused.h"

namespace sparkle {
namespace {

double up(double a, double b) { return std::ceil(a / b); }
std::string number(double value) { return std::to_string(std::llround(value)); }

// What m and n are called.
struct Words {
  const char *m, *n, *operand;
};
Words words_of(const GemmParams& p) {
  return p.loader == Loader::window ? Words{"pixels", "filters", "inputs"} : Words{"rows", "columns", "rows"};
}
Words words_of(const Stage& stage) {
  const auto* gemm = get_if<GemmParams>(&stage.params);
  return gemm ? words_of(*gemm) : Words{"tiles", "filters", "transformed inputs"};
}

std::string sums(double m, double n, const Words& words) {
  return "sums of " + number(m) + " " + words.m + " x " + number(n) + " " + words.n;
}

// Dot products of rows: the lanes are along k, and every sum has a vector.
void add_dots(Blocking& b, const GemmSizes& sizes, const GemmSchedule& s, const Device& device, const MathUnit& unit,
              const Words& words) {
  const double panels = std::max(1.0, up(static_cast<double>(sizes.n), s.nr));
  const int columns = static_cast<int>(std::clamp(std::ceil(static_cast<double>(sizes.n) / panels), 1.0, 4.0));
  const int rows = std::min(s.mr, std::max(1, dot_rows(registers_of(unit), columns)));
  b.tiles.push_back(
      {sums(rows, columns, words) + ", a vector each", 4.0 * rows * columns * std::max(1, unit.n), std::string(kRegisters)});
  b.vectorised = lanes_of(device, s.unit, "products of a sum");
}

// The nest of gemm_footprint.cc: what a call, a pass over all panels or tiles, and a block of rows touch.
Blocking cpu_blocking(const Stage& stage, const GemmSchedule& s, const Device& device) {
  const auto& p = get<GemmParams>(stage.params);
  const Words words = words_of(p);
  const GemmSizes sizes = gemm_sizes(p, stage.inputs, stage.outputs[0]);
  const MathUnit* unit = device.unit(s.unit);
  const bool dots = s.variant == kRowDots;
  const double lanes = unit && !dots ? std::max(1, unit->n) : 1;
  const auto m = static_cast<double>(sizes.m), n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
  const double padded_n = up(n, lanes) * lanes, width = std::min(padded_n, lanes * s.nr);
  const double panels = std::max(1.0, up(n, lanes * s.nr));
  const double kc = s.kc > 0 ? std::min(k, static_cast<double>(s.kc)) : k;
  const DType stored = stored_weights(s.variant);
  const bool matrix = unit && unit->kind == UnitKind::matrix;
  const double a_bytes = static_cast<double>(size_of(stage.inputs[0].dtype));
  const double b_bytes = static_cast<double>(size_of(matrix                 ? unit->input
                                                     : stored == DType::f32 ? stage.inputs[1].dtype
                                                                            : stored));
  const GemmRows rows = gemm_rows(p, stage, sizes, s.mr, a_bytes);

  Blocking b;
  if (dots && unit) {
    add_dots(b, sizes, s, device, *unit, words);
  } else {
    b.tiles.push_back({sums(s.mr, lanes * s.nr, words), 4 * s.mr * lanes * s.nr, std::string(kRegisters)});
    b.vectorised = lanes_of(device, s.unit, words.n);
    if (stored != DType::f32) b.vectorised += ", widened from " + std::string(name_of(stored)) + " as they are loaded";
  }
  const double share = k > 0 ? kc / k : 1, tile = rows.tile * share, panel = kc * width * b_bytes;
  const std::string of_k = "k = " + number(kc), wide = number(width) + " " + words.n;
  const std::string of_tile = std::string(words.operand) + " of " +
                              counted(s.mr, std::string_view(words.m).substr(0, std::string_view(words.m).size() - 1));
  b.tiles.push_back({of_tile + ", " + of_k, tile, ""});
  b.tiles.push_back({of_tile + " and weights of " + wide + ", " + of_k, tile + panel, ""});
  const double weights = k * padded_n * b_bytes, block = s.mc > 0 ? std::min(m, static_cast<double>(s.mc)) : m;
  const double block_share = m > 0 ? block / m : 1, input = rows.input * block_share;
  const std::string of_block = number(block) + " " + words.m;
  if (s.order == GemmOrder::rows) {
    if (panels > 1) b.tiles.push_back({of_tile + " and all weights", rows.tile + weights, ""});
    if (block < m) b.tiles.push_back({of_block + " and all weights", input + weights + 4 * block * padded_n, ""});
  } else {
    b.tiles.push_back({of_block + " and weights of " + wide + (kc < k ? ", " + of_k : ""),
                       input * (kc < k ? share : 1) + panel + 4 * block * width, ""});
    if (panels > 1 && block < m && kc >= k)
      b.tiles.push_back({of_block + " and all weights", input + weights + 4 * block * padded_n, ""});
  }
  b.tiles.push_back(all_operands(stage));
  b.in_flight = s.prefetch == 0 ? nothing_fetched(device)
                                : "the next tile's lines of inputs, weights and outputs are fetched towards the L" +
                                      std::to_string(s.prefetch) + " while this one is multiplied";
  add_fused(b, p.epilogue);
  if (p.loader == Loader::window) add_fused(b, p.window, true);
  return b;
}

}  // namespace

void add_tile_blocking(Blocking& b, const TileSchedule& s, const GemmSizes& sizes, const Stage& stage, const Device& device) {
  const Words words = words_of(stage);
  const TileNeeds needs = tile_needs(s);
  const Window* window = window_of(stage.params);
  const int64_t shared = is_integer_tile(s.variant)                 ? integer_tile_shared_bytes(s)
                         : s.variant == kNativeType                 ? native_type_shared_bytes(s, stage.outputs[0].dtype)
                         : s.variant == "halo" && window != nullptr ? halo_bytes(*window)
                                                                    : needs.shared_bytes;
  const bool fragments = on_fragments(s), shares = shared > 0;
  const char* holder = of_groups(s) ? " a workgroup" : fragments ? " a subgroup" : " a thread";
  b.tiles.push_back({sums(s.thread_m, s.thread_n, words) + holder, 4.0 * s.thread_m * s.thread_n, std::string(kRegisters)});
  const double tiles_m = up(static_cast<double>(sizes.m), s.m), tiles_n = up(static_cast<double>(sizes.n), s.n);
  if (shares)
    for (const MemoryLevel& level : device.memory)
      if (level.filled_by_hand) {
        b.tiles.push_back({std::string(words.operand) + " of " + std::to_string(s.m) + " " + words.m + " and weights of " +
                               std::to_string(s.n) + " " + words.n + ", k = " + std::to_string(s.k),
                           static_cast<double>(shared), level.name});
        break;
      }
  // Workgroups of a wave go through k in step (tile_reuse.h): what they read at a time meets in the cache of all cores.
  const double at_once =
      std::min(groups_at_once(s, device), tiles_m * tiles_n * static_cast<double>(sizes.instances) * s.split);
  const double element = static_cast<double>(size_of(stage.inputs[0].dtype));
  for (const MemoryLevel& level : device.memory)
    if (!level.filled_by_hand && level.shared_by > 1 && shares) {
      const double columns = std::min(at_once, tiles_n), rows = std::min(std::ceil(at_once / columns), tiles_m);
      const double parts = std::max(1.0, std::ceil(at_once / (rows * columns)));  // of each sum, and instances
      const double bytes = parts * (rows * s.m + columns * s.n) * s.k * element;
      const bool fits = level.bytes <= 0 || bytes <= static_cast<double>(level.bytes);
      b.tiles.push_back({"what " + number(at_once) + " workgroups at once read of k = " + std::to_string(s.k), bytes,
                         fits ? level.name : ""});
      break;
    }
  if (fragments) {
    b.vectorised = lanes_of(device, s.unit, "");
  } else {
    b.vectorised = lanes_of(device, s.unit, counted(int64_t{s.thread_m} * s.thread_n, "sum") + " each");
    if (s.subgroup > 0) b.vectorised += ", subgroups of " + std::to_string(s.subgroup);
  }
  if (is_emulated(s.unit)) b.vectorised += ", emulated";
  const double cores = std::max(1, device.cores);
  b.in_flight = shares && s.depth > 1 ? counted(s.depth, "tile") +
                                            " of k: the next one is loaded into registers while this one "
                                            "is multiplied from shared memory"
                                      : nothing_fetched(device);
  b.in_flight += "; " + counted(std::llround(std::ceil(at_once / cores)), "workgroup") + " of " +
                 std::to_string(needs.threads) + " threads a core";
  if (s.split > 1) b.in_flight += ", each sum split over " + std::to_string(s.split) + " of them";
}

Blocking gemm_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  if (const auto* s = get_if<GemmSchedule>(&schedule)) return cpu_blocking(stage, *s, device);
  const auto* tiles = get_if<TileSchedule>(&schedule);
  if (!tiles) return plain_blocking(stage, schedule, device);
  const auto& p = get<GemmParams>(stage.params);
  Blocking b;
  add_tile_blocking(b, *tiles, gemm_sizes(p, stage.inputs, stage.outputs[0]), stage, device);
  b.tiles.push_back(all_operands(stage));
  add_fused(b, p.epilogue);
  if (p.loader == Loader::window) add_fused(b, p.window, true);
  return b;
}

}  // namespace sparkle
