// What the winograd family tells the planner: variants, predicted work and traffic, schedules worth ranking.
#include "families/winograd/winograd.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/winograd/variants.inc"
};

const WinogradParams& params_of(const Stage& stage) { return std::get<WinogradParams>(stage.params); }

// What is computed is a convolution, whatever the way.
void reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const auto& p = std::get<WinogradParams>(params);
  GemmParams gemm;
  gemm.window = p.window;
  gemm.epilogue = p.epilogue;
  gemm_reference(gemm, inputs, outputs);
}

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Sizes {
  int64_t points = 0;    // of a tile, both axes
  int64_t tiles = 0;     // of all images
  int64_t c = 0, k = 0;  // channels and filters
};
Sizes sizes_of(const Stage& stage) {
  const WinogradParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const int64_t points = p.tile + 2;
  return {points * points, y.n * divided(y.h, p.tile) * divided(y.w, p.tile), x.c, y.c};
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const auto refuse = [&](Reason reason) {
    why_not = reason;
    return std::vector<Schedule>{};
  };
  if (variant.name == "plain") return loop_schedules(variant, device, why_not);
  if (variant.device != device.kind) return refuse(Reason::backend_lacks_variant);
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  const int registers = unit->registers > 0 ? unit->registers : (unit->name == "avx2" ? 16 : 32);
  if (registers < variant.registers) return refuse(Reason::too_few_registers);
  if (registers >= 2 * variant.registers) return refuse(Reason::registers_idle);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if ((x.c > 1 && x.pitch_c != 1) || (y.c > 1 && y.pitch_c != 1)) return refuse(Reason::layout_not_served);

  const Sizes sizes = sizes_of(stage);
  WinogradSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  s.mr = variant.rows;
  s.nr = variant.vectors;
  s.prefetch = device.vendor == "Intel" ? 2 : 1;
  // Long strips read the weights seldom, short ones stay in the L2: which counts more is a matter of bandwidths.
  std::vector<Schedule> found;
  for (const int64_t row_tiles : {2, 3, 4, 6, 8, 12}) {
    s.strip = variant.rows * row_tiles;
    found.emplace_back(s);
    if (s.strip >= sizes.tiles) break;
  }
  return found;
}

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const WinogradParams& p = params_of(stage);
  const Sizes sizes = sizes_of(stage);
  const FeatureMap y = feature_map(stage.outputs[0]);
  Footprint f = streaming_footprint(stage, device, 0);
  f.nominal_flops =
      2.0 * 9 * static_cast<double>(sizes.c) * static_cast<double>(sizes.k) * static_cast<double>(y.n * y.pixels());
  const auto* s = std::get_if<WinogradSchedule>(&schedule);
  if (!s) {
    f.executed_flops = f.nominal_flops;
    f.parallel_units = 1;
    return f;
  }
  const MathUnit* unit = device.unit(s->unit);
  const int64_t lanes = unit ? std::max(1, unit->n) : 1;
  const auto up = [](int64_t a, int64_t b) { return static_cast<double>(divided(a, b) * b); };
  const double tiles = static_cast<double>(sizes.tiles), points = static_cast<double>(sizes.points);
  const double c = static_cast<double>(sizes.c), k = up(sizes.k, lanes),
               panels = std::ceil(k / static_cast<double>(lanes * s->nr));
  // Instructions of the transforms per channel and filter of a tile (winograd_lines-inl.h), each in the place of a product.
  const double in = p.tile == 2 ? 32 : p.tile == 4 ? 144 : 384, out = p.tile == 2 ? 24 : p.tile == 4 ? 120 : 280;
  f.executed_flops = 2 * tiles * (points * c * k + in * up(sizes.c, lanes) + out * k);

  const double strips = std::ceil(tiles / static_cast<double>(s->strip)), strip = tiles / strips;
  const double weights = points * c * k * 4, panel = c * static_cast<double>(lanes * s->nr) * 4;
  const double inputs = points * tiles * c * 4, products = points * tiles * k * 4;  // transformed
  const double row_tiles = std::ceil(strip / s->mr), scratch = (inputs + products / panels) / strips;
  // All operands but the weights, whose packed form counts.
  double moved = static_cast<double>(stage.outputs[0].bytes() + stage.inputs[0].bytes());
  for (size_t i = 2; i < stage.inputs.size(); ++i) moved += static_cast<double>(stage.inputs[i].bytes());
  f.bytes = bytes_per_level(device, moved, moved);
  f.exposed.assign(f.bytes.size(), 0);
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    const double operands = f.bytes[i];
    if (i == 0) {  // each way through a square of its own between the two passes
      f.exposed[i] = 4 * inputs + 3 * products;
      f.bytes[i] = strips * row_tiles * weights + panels * inputs + f.exposed[i];
      continue;
    }
    const double inner = static_cast<double>(device.memory[i - 1].bytes);
    // A panel of one point serves all tiles of the strip; all panels come again with the next strip, unless they stay.
    double hidden = weights + scratch > inner ? strips * weights : 0;
    if (panel > inner) hidden = strips * row_tiles * weights;
    // What of the scratch does not fit is written, read by every panel and read again.
    const double beyond = scratch > 0 ? std::max(0.0, 1 - 0.8 * inner / scratch) : 0;
    hidden += beyond * inputs * panels;
    // Lines are fetched before they are written and then carried away: three ways for each byte of inputs, two of products.
    f.exposed[i] = (i == 1 ? beyond * (3 * inputs + 2 * products) : beyond * (inputs + products)) + operands;
    // Fetching ahead covers about half of what comes from beyond the L2.
    if (i > 1) f.exposed[i] += hidden / 2, hidden /= 2;
    f.bytes[i] = std::min(hidden + f.exposed[i], f.bytes[i - 1]);
    f.exposed[i] = std::min(f.exposed[i], f.bytes[i]);
    if (i < f.resident.size()) f.resident[i] = scratch;
  }
  f.parallel_units = std::max(1.0, strips * panels);
  f.calls = strips * row_tiles * panels * points;
  f.depth = s->prefetch ? 2 : 1;
  f.workspace_bytes = static_cast<int64_t>(scratch) * std::max(1, device.cores);
  return f;
}

}  // namespace

const FamilyInfo& winograd_info() {
  static const FamilyInfo family = {"winograd", kVariants, reference, footprint, schedules};
  return family;
}

}  // namespace sparkle
