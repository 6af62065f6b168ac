// Schedules of a gemm stage derived from its sizes and the device's caches. Rules measured on two server cores with AVX-512
// (1 MB and 2 MB of L2); see docs/performance.md, "Implicit GEMM on CPUs".
#include <algorithm>

#include "base/round_up.h"
#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/stored_weights.h"
#include "families/loops/grain.h"
#include "families/integers/integers.h"

namespace sparkle {
namespace {

int64_t level_bytes(const Device& device, std::string_view name, int64_t unknown) {
  const MemoryLevel* level = device.level(name);
  return level && level->bytes > 0 ? level->bytes : unknown;
}

// The unit that a variant runs on: the widest whose registers hold the tile and are not too many for it (a 16-register
// tile leaves half of a 32-register unit idle).
const MathUnit* unit_for(const Variant& variant, const Device& device, Reason& why_not) {
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) {
    why_not = Reason::unit_missing;
    return nullptr;
  }
  const int registers = registers_of(*unit);
  if (registers < variant.registers) {
    why_not = Reason::too_few_registers;
    return nullptr;
  }
  if (registers >= 2 * variant.registers && variant.name != kRowDots) {
    why_not = Reason::registers_idle;
    return nullptr;
  }
  return unit;
}

// Sums of its tiles are finished by vectors.
const MathUnit* bf16_tiles(const Device& device, Reason& why_not) {
  const MathUnit* unit = best_vector_unit(device) ? device.unit("amx-bf16") : nullptr;
  if (!unit) why_not = Reason::unit_missing;
  return unit;
}

// Dot products along k: beyond so many columns a register tile always does with less.
constexpr int64_t kMostDotColumns = 24;
// Columns are few, and elements of a row that lie together fill some vectors.
bool is_for_row_dots(const GemmParams& p, const TensorDesc& x, const GemmSizes& sizes, int rows, int64_t lanes) {
  return sizes.n <= kMostDotColumns && sizes.m >= rows && run_of_k(p, x) >= 2 * lanes;
}

// Of whole tiles.
double products_of(const GemmSizes& sizes, const GemmSchedule& s, int64_t lanes) {
  const int64_t rows = (sizes.m + s.mr - 1) / s.mr * s.mr, columns = (sizes.n + lanes - 1) / lanes * lanes;
  return static_cast<double>(sizes.instances * rows) * static_cast<double>(columns * sizes.k);
}

// Rows of a block that passes all panels: fewer would read the weights too often, more bring nothing.
constexpr int64_t kLeastBlock = 48, kMostBlock = 252;

// Some 5 us, and what a core multiplies in a cycle of them, ends of tiles and sums of rows included: two thirds of what the
// unit can (Zen 4; 64, and 32 by AVX2).
constexpr double kTaskCycles = 16384;
double products_per_cycle(const MathUnit& unit) {
  if (unit.name == "amx-int8") return 640;
  if (unit.name == "amx-bf16") return 320;
  if (unit.name == "avx512-vnni") return 48;
  if (unit.name == "avx-vnni") return 40;
  if (unit.name == "avx2-int16") return 20;
  return unit.name == "neon-dot" ? 32 : 16;
}

bool supports_integers(const Stage& stage, Reason& why_not) {
  const DType w = stage.inputs[1].dtype;
  const TensorDesc& y = stage.outputs[0];
  const int channel = get<GemmParams>(stage.params).loader == Loader::window ? 1 : y.shape.size() - 1;
  if (w != DType::u8 && w != DType::i8) {
    why_not = Reason::type_not_served;
  } else if (y.shape[channel] > 1 && y.layout.strides[channel] != 1) {
    why_not = Reason::layout_not_served;
  } else {
    return true;
  }
  return false;
}

// Stages on tiles of a matrix unit. Tiles of rows one after the other, each past all weights, while these stay in half of the
// L2; else blocks of rows that take half of it pass each panel, which is read from beyond once a block.
constexpr int64_t kMostMatrixBlock = 512;
std::vector<Schedule> matrix_schedules(const Stage& stage, const Variant& variant, const MathUnit& unit, const Device& device) {
  const GemmSizes sizes = gemm_sizes(get<GemmParams>(stage.params), stage.inputs, stage.outputs[0]);
  const int64_t lanes = std::max(1, unit.n), bytes = std::max<int64_t>(1, size_of(unit.input));
  const int64_t k = rounded_up(std::max<int64_t>(1, sizes.k), std::max(1, unit.k)) * bytes, n = rounded_up(sizes.n, lanes);
  const int64_t l2 = level_bytes(device, "L2", 256 * 1024);
  GemmSchedule s;
  s.variant = variant.name;
  s.unit = unit.name;
  s.mr = variant.rows;
  s.nr = variant.vectors;
  s.order = k * n <= l2 / 2 ? GemmOrder::rows : GemmOrder::columns;
  if (s.order == GemmOrder::columns)
    s.mc = std::clamp<int64_t>(l2 / 2 / k, variant.rows, kMostMatrixBlock) / variant.rows * variant.rows;
  s.split = 2;
  const auto rows = static_cast<double>(sizes.instances * rounded_up(sizes.m, 16));
  const double products = rows * static_cast<double>(n) * static_cast<double>(k / bytes);
  s.grain = grain_of(stage.outputs[0].elements(), even_tasks(products, kTaskCycles * products_per_cycle(unit), 4, device));
  return {s};
}

// Stages on 8-bit integers: tiles where the device has them, and one variant of dot products, by its widest unit.
std::vector<Schedule> integer_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.unit == UnitKind::matrix) {
    const MathUnit* unit = device.unit("amx-int8");
    if (!unit) return refuse(Reason::unit_missing);
    if (!supports_integers(stage, why_not)) return {};
    return matrix_schedules(stage, variant, *unit, device);
  }
  struct Supported {
    std::string_view variant, unit;
  };
  constexpr Supported kSupported[] = {{"dot6x4", "avx512-vnni"},
                                      {"dot6x2", "avx-vnni"},
                                      {"bytes4x2", "avx2-int16"},
                                      {"dot6x4", "neon-dot"},
                                      {"bytes4x2", "neon"}};
  const auto* first =
      std::find_if(std::begin(kSupported), std::end(kSupported), [&](const Supported& s) { return device.unit(s.unit); });
  if (first == std::end(kSupported)) return refuse(Reason::unit_missing);
  if (first->variant != variant.name) {
    const bool present = std::any_of(std::begin(kSupported), std::end(kSupported),
                                     [&](const Supported& s) { return s.variant == variant.name && device.unit(s.unit); });
    return refuse(present ? Reason::costlier : Reason::unit_missing);
  }
  const MathUnit* unit = device.unit(first->unit);
  if (!supports_integers(stage, why_not)) return {};
  const auto& params = get<GemmParams>(stage.params);
  const TensorDesc& y = stage.outputs[0];
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, y);
  GemmSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  s.mr = variant.rows;
  s.nr = variant.vectors;
  // Rows outside sweep all weights for each tile: right while they stay in half of the L2.
  s.order = sizes.m > variant.rows && sizes.k * sizes.n <= level_bytes(device, "L2", 256 * 1024) / 2 ? GemmOrder::rows
                                                                                                     : GemmOrder::columns;
  s.split = 2;
  // Windows gather channels in vec4s.
  const int64_t taps = params.loader == Loader::window ? params.window.taps() : 1;
  const double k = static_cast<double>(taps * ((sizes.k / taps + 3) / 4 * 4));
  const double products = products_of(sizes, s, std::max(1, unit->n)) / static_cast<double>(std::max<int64_t>(1, sizes.k)) * k;
  s.grain = grain_of(y.elements(), even_tasks(products, kTaskCycles * products_per_cycle(*unit), 4, device));
  return {s};
}

}  // namespace

std::vector<Schedule> gemm_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (variant.for_workgroups()) return gemm_tile_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) {
    why_not = Reason::backend_lacks_variant;
    return {};
  }
  const OperandType operands = get<GemmParams>(stage.params).operands;
  const bool rounds = variant.name == kMatrixBf16;
  if (operands != OperandType::own && !(rounds && operands == OperandType::bf16)) {  // what matrix units are for
    why_not = Reason::unit_missing;
    return {};
  }
  if (rounds && operands == OperandType::own) {
    why_not = Reason::type_not_served;
    return {};
  }
  const bool for_integers = variant.unit == UnitKind::dot_product || variant.name == kMatrixI8;
  if (for_integers != is_integer(stage.inputs)) {
    why_not = Reason::type_not_served;
    return {};
  }
  if (for_integers) return integer_schedules(stage, variant, device, why_not);
  const MathUnit* unit = rounds ? bf16_tiles(device, why_not) : unit_for(variant, device, why_not);
  if (!unit) return {};
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) {
      why_not = Reason::type_not_served;
      return {};
    }
  const auto& params = get<GemmParams>(stage.params);
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  // Rows are pixels of contiguous channels in and out; the dense loader copies rows of any stride.
  const bool window = params.loader == Loader::window;
  const int channel = window ? 1 : y.shape.size() - 1;
  const bool in_ok = !window || x.shape[1] == 1 || x.layout.strides[1] == 1;
  if (!in_ok || (y.shape[channel] > 1 && y.layout.strides[channel] != 1)) {
    why_not = Reason::layout_not_served;
    return {};
  }

  if (rounds) return matrix_schedules(stage, variant, *unit, device);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, y);
  const bool dots = variant.name == kRowDots;
  if (dots && !is_for_row_dots(params, x, sizes, variant.rows, std::max(1, unit->n))) {
    why_not = Reason::registers_idle;
    return {};
  }
  const int64_t lanes = dots ? 1 : std::max(1, unit->n);
  const int64_t panel = lanes * variant.vectors;
  // Unknown caches are taken as small ones.
  const int64_t l2 = level_bytes(device, "L2", 256 * 1024);
  const int64_t stored = size_of(stored_weights(variant.name));
  const int64_t weight_bytes = sizes.k * ((sizes.n + lanes - 1) / lanes * lanes) * stored;
  const int64_t panels = (sizes.n + panel - 1) / panel;

  GemmSchedule rows;
  rows.variant = variant.name;
  rows.unit = unit->name;
  rows.mr = variant.rows;
  rows.nr = variant.vectors;
  rows.order = GemmOrder::rows;
  // Lines on their way into L1 hold one of its few fill buffers: Xeons lose 3 to 10 points by it, Zen 4 wins 3. The small
  // tiles of 16 registers, short of ports, fetch what comes from beyond the L2 alone (gemm_multiply-inl.h).
  const bool far = x.bytes() + weight_bytes > l2;
  rows.prefetch = (variant.registers <= 16 ? far : device.vendor == "Intel") ? 2 : 1;
  rows.split = sizes.instances * sizes.m >= 8 * variant.rows * device.cores ? 0 : 2;
  // Groups take turns over the same pixels, a few channels of each: over blocks of rows that stay in half of the L2.
  const double row_bytes = static_cast<double>(x.bytes() + y.bytes()) / static_cast<double>(std::max<int64_t>(1, sizes.m));
  if (params.groups > 1 && row_bytes * static_cast<double>(sizes.m) > static_cast<double>(l2))
    rows.mc = std::max<int64_t>(8 * variant.rows, static_cast<int64_t>(static_cast<double>(l2) / 2 / row_bytes));

  rows.grain = grain_of(y.elements(), planned_tasks(products_of(sizes, rows, lanes), kLeastTileProducts, 4, device));

  if (dots) {
    rows.prefetch = 0;
    return {rows};
  }
  GemmSchedule columns = rows;
  columns.order = GemmOrder::columns;
  // Two chunks of a panel (this one and the next, on its way) and the rows' data share the L2: a chunk gets a quarter.
  const int64_t chunk = std::max<int64_t>(64, l2 / 4 / (panel * stored));
  columns.kc = sizes.k > chunk + chunk / 4 ? chunk : 0;
  // Partial sums of a block stay in a corner of the L2: 252 rows of 64 columns are 64 KB.
  if (columns.kc > 0) columns.mc = 252;
  columns.split = panels >= 4 * device.cores ? 1 : 2;
  // With few rows nothing is reused: weights stream past once, one whole panel after the other.
  if (sizes.m <= variant.rows) columns.kc = 0, columns.mc = 0, columns.prefetch = 0, columns.split = 1;

  // Panel after panel over rows that do not stay in the L2 would read them from beyond it each time: blocks of rows that stay
  // in half of it pass all panels.
  if (columns.kc == 0 && panels > 1 && sizes.m > kLeastBlock && weight_bytes <= 2 * l2 &&
      row_bytes * static_cast<double>(sizes.m) > static_cast<double>(l2)) {
    const auto fit = static_cast<int64_t>(static_cast<double>(l2) / 2 / row_bytes);
    columns.mc = std::clamp<int64_t>(fit, kLeastBlock, kMostBlock) / variant.rows * variant.rows;
  }

  // Rows outside sweep all weights for each tile: right while they stay in half of the L2, the worst mistake beyond (40-60 %
  // of the peak was measured there).
  if (sizes.m > variant.rows && weight_bytes <= l2 / 2) return {rows, columns};
  if (sizes.m > variant.rows && weight_bytes <= l2) return {columns, rows};
  return {columns};
}

}  // namespace sparkle
