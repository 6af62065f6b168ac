// What the winograd family tells the planner: variants, predicted work and traffic, schedules worth ranking.
#include "families/winograd/winograd.h"

#include <algorithm>
#include <cmath>

#include "base/round_up.h"
#include "families/common.h"
#include "families/values/fused.h"
#include "families/gemm/gemm_family.h"
#include "families/windows/window_samples.h"
#include "families/gemm/gemm_tiles.h"
#include "families/gemm/tile_reuse.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#include "families/winograd/variants.inc"
};
constexpr TypeRow kTypeRows[] = {
    {"", "Conv 3x3 of stride 1", kFloats, kInF32},
};

const WinogradParams& params_of(const Stage& stage) { return get<WinogradParams>(stage.params); }

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

// The product of each point on a GPU.
GemmSizes product_of(const Sizes& sizes) {
  GemmSizes product;
  product.instances = product.weight_matrices = sizes.points;
  product.m = sizes.tiles, product.n = sizes.k, product.k = sizes.c;
  product.k_steps = static_cast<double>(sizes.tiles) * static_cast<double>(sizes.c);
  return product;
}

// Tiles of 6 err too much for what they spare where all points pass through memory; GPUs have no kernel for them.
std::vector<Schedule> tile_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  if (params_of(stage).tile > 4) {
    why_not = Reason::filter_not_served;
    return {};
  }
  if (!stores_reals(variant, device, stage)) {
    why_not = Reason::type_not_served;
    return {};
  }
  const auto tiles = product_tiles(product_of(sizes_of(stage)), variant.name, device);
  if (tiles.empty()) why_not = best_vector_unit(device) ? Reason::too_few_registers : Reason::unit_missing;
  return {tiles.begin(), tiles.end()};
}

// Points of all tiles are written once and read once, before the products and behind them; the products are a gemm's.
Footprint tile_footprint(const Stage& stage, const TileSchedule& s, const Device& device, Footprint f) {
  const WinogradParams& p = params_of(stage);
  const Sizes sizes = sizes_of(stage);
  const auto points = static_cast<double>(sizes.points), tiles = static_cast<double>(sizes.tiles),
             c = static_cast<double>(sizes.c), k = static_cast<double>(sizes.k);
  const auto up = [](double a, int b) { return std::ceil(a / b); };
  const double rows = up(tiles, s.m), columns = up(k, s.n);
  const double products = 2 * points * rows * s.m * columns * s.n * up(c, s.k) * s.k;
  const double in = p.tile == 2 ? 32 : 144, out = p.tile == 2 ? 24 : 120;  // instructions of the transforms
  f.executed_flops = products + 2 * tiles * (in * c + out * k);
  const double partial = s.split > 1 ? 8 * points * tiles * k * s.split : 0;
  const double transformed = 4 * points * tiles * (c + k),
               operands = f.bytes.empty() ? 0 : *std::max_element(f.bytes.begin(), f.bytes.end());
  const double read = 4 * points * rows * columns * (s.m + s.n) * c;
  // A product per point; those that run at once share the cache.
  TileWaves waves;
  waves.tiles_m = rows, waves.tiles_n = columns, waves.at_once = groups_at_once(s, device);
  waves.left = waves.gathered = 4 * tiles * c, waves.right = 4 * c * k;
  const double together = std::clamp(waves.at_once / (rows * columns), 1.0, points);
  f.exposed.assign(f.bytes.size(), 0);
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (device.memory[i].filled_by_hand) {
      f.bytes[i] = products * 2 * (1.0 / s.thread_m + 1.0 / s.thread_n);
      continue;
    }
    const bool inner = i > 0 && !device.memory[i - 1].filled_by_hand;
    const double holds = inner ? static_cast<double>(device.memory[i - 1].bytes) : 0;
    f.exposed[i] = operands + (transformed <= holds ? 0 : 2 * transformed) + (partial / 2 <= holds ? 0 : partial);
    const double past = inner && device.memory[i - 1].shared_by > 1 ? points * bytes_past_cache(waves, holds / together) : read;
    f.bytes[i] = f.exposed[i] + (transformed <= holds ? 0 : std::min(past, read));
  }
  f.parallel_items = std::max(1.0, cores_worth(points * rows * columns * s.split, s, device));
  f.launches = s.split > 1 ? 4 : 3;  // to the points, products, their parts' sums, and back
  f.workspace_bytes = static_cast<int64_t>(transformed + partial / 2);
  return f;
}

// Instructions of a tile's way to the points per channel, and back per filter (winograd_lines-inl.h), each in the place of a
// product.
double instructions_in(int tile) { return tile == 2 ? 32 : tile == 4 ? 144 : 384; }
double instructions_out(int tile) { return tile == 2 ? 24 : tile == 4 ? 120 : 280; }

// Into how many ranges the panels are cut, so that all cores end together: three tasks on two cores take as long as four. And
// finer, up to four tasks for each core, while that costs next to nothing: the others take what a core that is late leaves.
// `again`: what transforming a strip's inputs costs, in products of a panel.
int64_t ranges_of(int64_t strips, int64_t panels, double again, int64_t cores) {
  constexpr double kNextToNothing = 1.02;
  if (cores <= 1) return 1;
  panels = std::min(panels, 8 * cores);
  const auto seconds = [&](int64_t ranges) {  // of the busiest core
    return static_cast<double>(divided(strips * ranges, cores)) * (static_cast<double>(divided(panels, ranges)) + again);
  };
  int64_t best = 1;
  for (int64_t ranges = 2; ranges <= panels; ++ranges)
    if (seconds(ranges) < seconds(best)) best = ranges;
  const double most = kNextToNothing * seconds(best);
  for (int64_t ranges = best + 1; ranges <= panels && strips * ranges <= 4 * cores; ++ranges)
    if (seconds(ranges) <= most) best = ranges;
  return best;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  if (variant.for_workgroups()) return tile_schedules(stage, variant, device, why_not);
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  const int registers = registers_of(*unit);
  if (registers < variant.registers) return refuse(Reason::too_few_registers);
  if (registers >= 2 * variant.registers) return refuse(Reason::registers_idle);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if ((x.c > 1 && x.channel_stride != 1) || (y.c > 1 && y.channel_stride != 1)) return refuse(Reason::layout_not_served);

  const Sizes sizes = sizes_of(stage);
  WinogradSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  s.mr = variant.rows;
  s.nr = variant.vectors;
  s.prefetch = device.vendor == "Intel" && variant.registers > 16 ? 2 : 1;
  const int64_t width = std::max(1, unit->n) * s.nr, panels = divided(sizes.k, width);
  // Twice what the arithmetic is, for its loads and stores.
  const double again = 2 * instructions_in(params_of(stage).tile) / static_cast<double>(sizes.points * width);
  // Long strips read the weights seldom, short ones stay in the L2: which counts more is a matter of bandwidths.
  std::vector<Schedule> found;
  for (const int64_t row_tiles : {2, 3, 4, 6, 8, 12}) {
    s.strip = variant.rows * row_tiles;
    // Strips over cores; where there are too few of them also panels.
    const int64_t strips = divided(sizes.tiles, std::clamp<int64_t>(s.strip, 1, std::max<int64_t>(1, sizes.tiles)));
    s.ranges = ranges_of(std::max<int64_t>(1, strips), panels, again, device.cores);
    found.emplace_back(s);
    if (s.strip >= sizes.tiles) break;
  }
  return found;
}

// Bytes of one strip, in its three phases: tiles transformed, panels multiplied, tiles transformed back.
struct Strip {
  double strips = 1, panels = 1, row_tiles = 1;
  double inputs = 0, products = 0;  // transformed, the latter of a panel
  double weights = 0, tile = 0;     // of all panels; what a call of the product reads and writes beside its weights
  double points = 1;
  double x_tile = 0, x_row = 0, x = 0, y = 0;  // inputs of a tile, of a row of tiles, of the strip once; outputs
  double tiles_w = 1, strip = 1;               // tiles of a row; of the strip

  double panel() const { return inputs + weights / panels + products; }
  double touched() const { return inputs + weights + products + x + y; }
};

// What a strip asks for from beyond a memory of `inner` bytes: as the product goes along, and between its phases.
struct Asked {
  double weights = 0, again = 0;  // weights; transformed inputs that every panel reads again
  double written = 0, read = 0;   // transformed inputs and products on their way between phases
  double operands = 0;            // x and y
};
Asked asked(const Strip& s, double inner) {
  Asked a;
  const double tile = s.x_tile + s.inputs / s.strip;  // that a tile's way in touches
  const bool columns_stay = tile <= inner;
  const bool rows_stay = s.tiles_w * tile + (s.tiles_w >= s.strip ? s.weights + s.products + s.y : 0) <= inner;
  a.operands = s.y + (rows_stay ? s.x : columns_stay ? s.x_row : s.x_tile * s.strip);
  if (s.touched() <= inner) {
    a.weights = s.weights / s.strips;
    return a;
  }
  const double of_point = s.weights / s.panels / s.points;
  a.weights = s.weights * (of_point + s.tile <= inner ? 1 : s.row_tiles);
  // Points that were written first leave first.
  const double beside = s.panel() - s.inputs;
  const double left = std::clamp(1 - (inner - s.inputs - s.x) / beside, 0.0, 1.0);
  const bool panel_stays = s.panel() + s.y / s.panels <= inner;
  a.read = s.inputs * left;
  if (left > 0 || !panel_stays) a.written = s.inputs;
  if (!panel_stays) {
    a.again = s.inputs * (s.panels - 1);
    a.written += s.panels * s.products;
    a.read += s.panels * s.products * std::clamp(1 - inner / s.panel(), 0.0, 1.0);
  }
  return a;
}

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const WinogradParams& p = params_of(stage);
  const Sizes sizes = sizes_of(stage);
  const FeatureMap y = feature_map(stage.outputs[0]);
  Footprint f = streaming_footprint(stage, device, 0);
  f.nominal_flops =
      2.0 * 9 * static_cast<double>(sizes.c) * static_cast<double>(sizes.k) * static_cast<double>(y.n * y.pixels());
  f.function_flops = activation_flops(p.epilogue.activation, static_cast<double>(stage.outputs[0].elements()), device);
  if (const auto* tiles = get_if<TileSchedule>(&schedule)) return tile_footprint(stage, *tiles, device, f);
  const auto* s = get_if<WinogradSchedule>(&schedule);
  if (!s) {
    f.executed_flops = f.nominal_flops;
    f.parallel_items = 1;
    return f;
  }
  const MathUnit* unit = device.unit(s->unit);
  const int64_t lanes = unit ? std::max(1, unit->n) : 1;
  const auto up = [](int64_t a, int64_t b) { return static_cast<double>(divided(a, b) * b); };
  const double tiles = static_cast<double>(sizes.tiles), points = static_cast<double>(sizes.points);
  const double c = static_cast<double>(sizes.c), k = up(sizes.k, lanes),
               panels = std::ceil(k / static_cast<double>(lanes * s->nr));
  const double in = instructions_in(p.tile), out = instructions_out(p.tile);
  f.executed_flops = 2 * tiles * (points * c * k + in * up(sizes.c, lanes) + out * k);

  const double strips = std::ceil(tiles / static_cast<double>(s->strip)), strip = tiles / strips;
  const double weights = points * c * k * 4;
  const double inputs = points * tiles * up(sizes.c, lanes) * 4, products = points * tiles * k * 4;  // transformed
  const double row_tiles = std::ceil(strip / s->mr), scratch = (inputs + products / panels) / strips;
  // All operands but the weights, whose packed form counts.
  const auto x_bytes = static_cast<double>(stage.inputs[0].bytes()), y_bytes = static_cast<double>(stage.outputs[0].bytes());
  double other = 0;
  for (size_t i = 2; i < stage.inputs.size(); ++i) other += static_cast<double>(stage.inputs[i].bytes());
  const FeatureMap x = feature_map(stage.inputs[0]);
  Strip pass{strips, panels, row_tiles};
  pass.inputs = inputs / strips, pass.products = products / panels / strips;
  pass.weights = weights, pass.points = points;
  pass.tile = s->mr * (c + static_cast<double>(lanes * s->nr)) * 4;
  const double edge = static_cast<double>(p.tile + 2), side = static_cast<double>(p.tile);
  const double tiles_w = static_cast<double>(divided(y.w, p.tile)), tiles_h = static_cast<double>(divided(y.h, p.tile));
  // Rows and columns of tiles read no padding.
  const auto read = [&](double parts, int64_t size, int64_t pad) {
    return parts * edge - static_cast<double>(pad) -
           std::max(0.0, (parts - 1) * side + edge - static_cast<double>(pad) - static_cast<double>(size));
  };
  const double rows_read = read(tiles_h, x.h, p.window.pad_begin[1]), columns_read = read(tiles_w, x.w, p.window.pad_begin[2]);
  pass.x_tile = rows_read * columns_read / tiles_h / tiles_w * c * 4;
  pass.x_row = rows_read * static_cast<double>(y.n * x.w) * c * 4 / strips, pass.x = x_bytes / strips,
  pass.y = (y_bytes + other) / strips;
  pass.tiles_w = tiles_w, pass.strip = strip;
  f.bytes.assign(device.memory.size(), 0);
  f.exposed.assign(f.bytes.size(), 0);
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (i == 0) {  // each way through a square of its own between the two passes
      f.exposed[i] = 4 * inputs + 3 * products;
      f.bytes[i] = strips * row_tiles * weights + panels * points * tiles * c * 4 + f.exposed[i];
      continue;
    }
    const double inner = static_cast<double>(device.memory[i - 1].bytes);
    if (x_bytes + y_bytes + other + weights + scratch <= inner) continue;
    const Asked bytes = asked(pass, inner);
    double hidden = strips * (bytes.weights + bytes.again);
    // The phases between the products wait for x and y, each once, and for what they read; beyond the L2 nothing waits for
    // what is carried away.
    const double operands = x_bytes + y_bytes + other;
    const double once = operands > inner ? std::min(strips * bytes.operands, operands) : 0;
    hidden += strips * bytes.operands - once;
    if (i == 1) {
      f.exposed[i] = once + strips * (bytes.read + bytes.written);
    } else {
      // Fetching ahead covers about half of what comes from beyond the L2.
      f.exposed[i] = once + strips * (bytes.weights + bytes.read) / 2;
      hidden += strips * (bytes.written + (bytes.read - bytes.weights) / 2);
    }
    f.bytes[i] = std::min(hidden + f.exposed[i], f.bytes[i - 1]);
    f.exposed[i] = std::min(f.exposed[i], f.bytes[i]);
  }
  f.parallel_items = std::max(1.0, strips * std::clamp(static_cast<double>(s->ranges), 1.0, panels));
  f.calls = strips * row_tiles * panels * points;
  f.workspace_bytes = static_cast<int64_t>(scratch) * std::max(1, device.cores);
  return f;
}

// A strip of tiles goes from input to output within a cache; on GPUs the points of all tiles pass through memory.
Blocking blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  const WinogradParams& p = params_of(stage);
  const Sizes sizes = sizes_of(stage);
  const auto text = [](int64_t n) { return std::to_string(n); };
  Blocking b;
  add_fused(b, p.epilogue);
  add_fused(b, p.window, true);
  const std::string squares = text(p.tile) + " x " + text(p.tile) + " outputs by " + text(sizes.points) + " products";
  if (const auto* tiles = get_if<TileSchedule>(&schedule)) {
    add_tile_blocking(b, *tiles, product_of(sizes), stage, device);
    b.tiles.push_back(
        {"points of all tiles, " + squares, static_cast<double>(4 * sizes.points * sizes.tiles * (sizes.c + sizes.k)), ""});
    b.tiles.push_back(all_operands(stage));
    return b;
  }
  const auto* s = get_if<WinogradSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return plain_blocking(stage, schedule, device);
  const int64_t lanes = std::max(1, unit->n), width = lanes * s->nr, panel = std::min(width, rounded_up(sizes.k, lanes));
  const int64_t strip = std::min(s->strip, std::max<int64_t>(1, sizes.tiles)),
                inputs = 4 * sizes.points * strip * rounded_up(sizes.c, lanes);
  const int64_t weights = 4 * sizes.points * sizes.c * panel, products = 4 * sizes.points * strip * panel;
  b.tiles.push_back({"sums of " + text(s->mr) + " tiles x " + text(width) + " filters at a point",
                     static_cast<double>(4 * s->mr * width), std::string(kRegisters)});
  b.tiles.push_back({"inputs of " + text(s->mr) + " tiles and weights of " + text(panel) + " filters at a point",
                     static_cast<double>(4 * sizes.c * (s->mr + panel)), ""});
  b.tiles.push_back(
      {"points of a strip of " + text(strip) + " tiles (" + squares + ") and weights of " + text(panel) + " filters",
       static_cast<double>(inputs + weights + products), ""});
  if (panel < sizes.k)
    b.tiles.push_back({"a strip and all weights",
                       static_cast<double>(inputs + products) +
                           4.0 * static_cast<double>(sizes.points * sizes.c * rounded_up(sizes.k, lanes)),
                       ""});
  b.tiles.push_back(all_operands(stage));
  b.vectorised = lanes_of(device, s->unit, "filters") + "; channels in the transforms";
  b.in_flight = s->prefetch == 0
                    ? nothing_fetched(device)
                    : "the next weights are fetched towards the L" + text(s->prefetch) + " while these are multiplied";
  b.fused.emplace_back("transforms of the strip");
  return b;
}

std::vector<SampleForm> sample_forms() {
  WinogradParams p;
  p.window = small_window(), p.tile = 4;
  return {{p, {DType::f32, DType::f32}, {DType::f32}}};
}

std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<WinogradParams>(t.params);
  if (!of_one_real(t)) return {};
  return {with_types(window_sample(p, p.window, &p.epilogue, 1, false, 3, 1), t),
          with_types(window_sample(p, p.window, &p.epilogue, 1, false, 8, 0), t)};
}

SampleRules comparison(const Stage&) { return {.spreads_nan = true}; }

}  // namespace

const FamilyInfo& winograd_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<WinogradParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = convolution_reference<WinogradParams>,
      .footprint = footprint,
      .blocking = blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
      .cpu_schedule = &ScheduleType::of<WinogradSchedule>,
      .gpu_schedule = &ScheduleType::of<TileSchedule>,
  };
  return family;
}

}  // namespace sparkle
