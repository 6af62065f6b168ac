// What the depthwise family tells the planner: variants, predicted work and traffic, schedules worth ranking.
#include "families/depthwise/depthwise.h"

#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/depthwise/depthwise_family.h"
#include "families/depthwise/depthwise_gpu.h"
#include "families/depthwise/depthwise_reference.h"
#include "families/loops/grain.h"
#include "families/integers/integers.h"
#include "families/loops/loop_traffic.h"
#include "families/windows/taps.h"
#include "families/windows/window_samples.h"

namespace sparkle {
namespace {

// Rows with one column more.
#undef VARIANT
constexpr Variant kVariants[] = {
#define VARIANT(name, device, unit, rows, columns, vectors, registers, note) \
  {name, Backends::device, UnitKind::unit, rows, vectors, registers, note},
#include "families/depthwise/variants.inc"
#undef VARIANT
};
constexpr TypeRow kTypeRows[] = {
    {"", "Conv with a group per channel", kFloats, kInF32},
};

struct Tile {
  std::string_view name;
  int rows, columns;
};
constexpr Tile kTiles[] = {
#define VARIANT(name, device, unit, rows, columns, vectors, registers, note) {name, rows, columns},
#include "families/depthwise/variants.inc"
#undef VARIANT
};

// The share of traffic from beyond the L1 that products do not hide, fitted to seventeen layers of one Zen 4 core: of tiles,
// which also take some 15 cycles for each vector beside their products, and of other variants, whose traffic is counted once.
constexpr double kTileExposed = 0.25, kTileCalls = 0.3, kExposed = 0.4;
// The general variant takes some 60 cycles for each vector of up to eight pixels: it begins anew at each edge.
constexpr double kWindowCalls = 1.1;

const DepthwiseParams& params_of(const Stage& stage) { return get<DepthwiseParams>(stage.params); }

Axis axis_of(const Stage& stage, size_t i) {
  const Window& w = params_of(stage).window;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const Triple in{x.d, x.h, x.w}, out{y.d, y.h, y.w};
  return {in[i], out[i], w.filter[i], w.stride[i], w.dilation[i], w.pad_begin[i]};
}

// The tile variants are compiled for these filters only.
bool tile_serves(const Window& w) {
  const bool size = w.filter == Triple{1, 3, 3} || w.filter == Triple{1, 5, 5} || w.filter == Triple{1, 7, 7};
  return size && w.dilation[1] == 1 && w.dilation[2] == 1 && w.stride[1] == w.stride[2] &&
         (w.stride[2] == 1 || w.stride[2] == 2);
}

// Stages on 8-bit integers: the variant "bytes" alone, on the units that it is written for.
std::vector<Schedule> integer_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name != "bytes") return refuse(Reason::type_not_served);
  const MathUnit* unit = device.unit("avx512-vnni");
  if (!unit) unit = device.unit("avx-vnni");
  if (!unit) unit = device.unit("avx2-int16");
  if (!unit) return refuse(Reason::unit_missing);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (x.c != y.c) return refuse(Reason::groups_not_served);
  if (!channels_innermost(stage.inputs[0]) || !channels_innermost(stage.outputs[0])) return refuse(Reason::layout_not_served);
  DepthwiseSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  // Blocks of channels by taps in vec4s; 4096 of them take AVX2 some 5 us.
  const int64_t block = 4 * std::max(1, unit->n), blocks = (y.c + block - 1) / block,
                vec4 = (params_of(stage).window.taps() + 3) / 4;
  const auto products = static_cast<double>(y.n * y.pixels()) * static_cast<double>(4 * vec4 * blocks * block);
  s.grain = grain_of(stage.outputs[0].elements(), even_tasks(products, 4096.0 * static_cast<double>(block), 4, device));
  return {s};
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const WhyNot refuse{why_not};
  if (variant.name == "plain") return loop_schedules(stage, variant, device, why_not);
  if (!variant.runs_on(device)) return refuse(Reason::backend_lacks_variant);
  if (variant.for_workgroups()) {
    const Tile* tile =
        std::find_if(std::begin(kTiles), std::end(kTiles), [&](const Tile& t) { return t.name == variant.name; });
    return depthwise_gpu_schedules(stage, variant, tile->columns, device, why_not);
  }
  if (is_integer(stage.inputs)) return integer_schedules(stage, variant, device, why_not);
  if (variant.name == "bytes") return refuse(Reason::type_not_served);
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) return refuse(Reason::unit_missing);
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return refuse(Reason::type_not_served);
  if (stage.outputs[0].dtype != DType::f32) return refuse(Reason::type_not_served);

  const DepthwiseParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (x.c == 0 || y.c % x.c != 0) return refuse(Reason::groups_not_served);
  if (!channels_innermost(stage.inputs[0]) || !channels_innermost(stage.outputs[0])) return refuse(Reason::layout_not_served);
  const size_t residual = 2 + static_cast<size_t>(p.epilogue.scale + p.epilogue.bias);
  for (size_t i = residual; i < stage.inputs.size(); ++i)
    if (!channels_innermost(stage.inputs[i])) return refuse(Reason::layout_not_served);

  if (variant.name != "window") {
    if (!tile_serves(p.window)) return refuse(Reason::filter_not_served);
    if (y.c != x.c) return refuse(Reason::groups_not_served);
    // Vectors without a fixed length cannot lie in the arrays of registers that the tiles are written with.
    if (unit->name == "sve") return refuse(Reason::backend_lacks_variant);
  }
  if (unit->registers > 0 && variant.registers > unit->registers) return refuse(Reason::too_few_registers);

  const Tile* tile = std::find_if(std::begin(kTiles), std::end(kTiles), [&](const Tile& t) { return t.name == variant.name; });
  DepthwiseSchedule s;
  s.variant = variant.name;
  s.unit = unit->name;
  s.rows = tile->rows;
  s.columns = static_cast<int>(std::min<int64_t>(tile->columns, std::max<int64_t>(y.w, 1)));
  const int64_t elements = stage.outputs[0].elements();
  s.grain = grain_of(elements, planned_tasks(static_cast<double>(elements), kLeastElements, 8, device));
  return {s};
}

// What the register tiles move per level: images, blocks of channels, columns of tiles, down their rows.
std::vector<double> tile_bytes(const Stage& stage, const DepthwiseSchedule& s, double lanes, const Device& device,
                               double other) {
  const DepthwiseParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const auto number = [](int64_t v) { return static_cast<double>(v); };
  const Axis high = axis_of(stage, 1), wide = axis_of(stage, 2);
  const double filter = number(wide.filter), stride = number(wide.stride), h = number(y.h), w = number(y.w);
  const double rows = std::min<double>(s.rows, h), tiles = std::ceil(w / std::min<double>(7, s.columns)),
               pairs = std::ceil(h / rows);
  // Input rows and columns inside of the image that tiles next to each other read, those that they share once for each.
  const auto read = [&](const Axis& a, double parts) {
    const double last = number((a.out - 1) * a.stride + a.filter - a.pad - a.in);  // beyond the far edge
    return parts * filter + (number(a.out) - parts) * stride - number(std::max<int64_t>(0, a.pad)) - std::max(0.0, last);
  };
  const double read_rows = read(high, pairs), read_columns = read(wide, tiles);
  const double vectors = std::ceil(number(y.c) / lanes) * lanes * 4, images = number(y.n);
  const double weights = filter * taps_inside(high) * tiles;  // vectors of a plane
  const double l1 = device.memory.empty() ? 0 : number(device.memory[0].bytes);
  // Blocks of channels as the kernels cut them, and what is left. The next tile's first vectors find what they share although
  // the last ones have not come yet: a vector's weights and rows that are done do not count.
  const double most = std::max(64.0, std::floor(l1 / 128 / 64) * 64), full = std::floor(number(y.c) / most);
  const double in_columns = read_columns / tiles, out_columns = w / tiles, touched_rows = std::min(number(x.h), read_rows);
  const double touched_columns = std::min(number(x.w), read_columns), taps = number(p.window.taps());
  const double done = (filter + rows * stride * (filter + (out_columns - 1) * stride)) * lanes * 4;
  const double all = number(y.c) * 4, touched = images * (touched_rows * touched_columns + h * w) * all + taps * all + other;
  const auto asked = [&](double channels, double inner) {
    LoopNest<3> nest({taps * channels, read_rows / pairs * in_columns * channels, rows * out_columns * channels}, -done);
    nest.around(pairs, {taps * channels, touched_rows * in_columns * channels, h * out_columns * channels});
    nest.around(tiles, {taps * channels, touched_rows * touched_columns * channels, h * w * channels});
    nest.around(images, {taps * channels, images * touched_rows * touched_columns * channels, images * h * w * channels});
    return nest.asked(0, inner) + nest.asked(1, inner) + nest.asked(2, inner);
  };
  std::vector<double> bytes;
  for (size_t i = 0; i < device.memory.size(); ++i) {
    if (i == 0) {
      bytes.push_back(images * (weights + read_rows * read_columns + h * w) * vectors + other);
      continue;
    }
    const double inner = number(device.memory[i - 1].bytes);
    const double some = number(y.c) - full * most;
    const double blocks = full * asked(most * 4, inner) + (some > 0 ? asked(some * 4, inner) : 0);
    bytes.push_back(touched <= inner ? 0 : std::min(blocks + other, bytes.back()));
  }
  return bytes;
}

Footprint footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const DepthwiseParams& p = params_of(stage);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  double inside = static_cast<double>(y.n);
  for (size_t i = 0; i < 3; ++i) inside *= taps_inside(axis_of(stage, i));
  const double channels = static_cast<double>(y.c);
  Footprint f = streaming_footprint(stage, device, 0);
  f.nominal_flops = 2 * channels * static_cast<double>(y.n * y.pixels()) * static_cast<double>(p.window.taps());

  const MathUnit* unit = device.unit(unit_of(schedule));
  const int64_t lanes = unit && unit->n > 0 ? unit->n : 1;
  const double padded = static_cast<double>((y.c + lanes - 1) / lanes * lanes);
  f.executed_flops = 2 * inside * (unit ? padded : channels);
  f.function_flops = activation_flops(p.epilogue.activation, static_cast<double>(stage.outputs[0].elements()), device);
  const auto* tile = get_if<DepthwiseSchedule>(&schedule);
  if (!tile) {
    f.parallel_items = 1;  // the reference runs in one thread, one element at a time
    return f;
  }
  if (device.has_workgroups()) {
    depthwise_gpu_footprint(stage, *tile, device, inside, f);
    return f;
  }
  // A tile variant shares each loaded pixel between its outputs; the general one loads a pixel per product.
  if (tile->variant == "window") {
    f.executed_flops *= 1.3;
    // Large filters: 60 % of the peak at best, and near the edges half of the skipped taps' time remains (measured,
    // docs/performance.md).
    const double all = static_cast<double>(y.n * y.pixels()) * static_cast<double>(p.window.taps());
    if (p.window.filter[1] > 5 || p.window.filter[2] > 5) f.executed_flops *= 1.5 * std::sqrt(all / std::max(1.0, inside));
  }
  // 8-bit integers, whole blocks of four vectors: 24 instructions interleave, widen and multiply four taps of a block, which a
  // dot product of bytes would do in 4; 16-bit products and their sums alone in 16 of 32.
  if (tile->variant == "bytes") {
    const double block = 4.0 * static_cast<double>(lanes);
    f.executed_flops = 2 * inside * std::ceil(channels / block) * block * (unit && unit->k == 2 ? 2 : 6);
  }

  // Rows of the input are read again by the next rows of the output. Between levels that cannot hold `reach` rows each row
  // passes (reach / advance) times, once where they stay.
  const double rows = std::max(1, tile->rows);
  const double reach = static_cast<double>((p.window.filter[1] - 1) * p.window.dilation[1] + 1) +
                       (rows - 1) * static_cast<double>(p.window.stride[1]);
  const double advance = rows * static_cast<double>(p.window.stride[1]);
  const double row_bytes = static_cast<double>(x.w * x.c * size_of(stage.inputs[0].dtype));
  const double input = static_cast<double>(stage.inputs[0].bytes());
  const bool tiles = tile->variant.starts_with("tile");
  if (tiles) {
    double other = f.bytes.empty() ? 0 : f.bytes[0] - input - static_cast<double>(stage.outputs[0].bytes());
    other -= static_cast<double>(stage.inputs[1].bytes());
    f.bytes = tile_bytes(stage, *tile, static_cast<double>(lanes), device, std::max(0.0, other));
  }
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (f.bytes[i] == 0 || tiles) continue;
    const double inner = i == 0 ? 0 : static_cast<double>(device.memory[i - 1].bytes);
    if (reach * row_bytes > inner) f.bytes[i] += input * std::max(0.0, reach / advance - 1);
  }
  // A few products per load hide no more than half of what comes from beyond the L1 (measured: see docs/performance.md).
  f.exposed.assign(f.bytes.size(), 0);
  for (size_t i = 1; i < f.bytes.size(); ++i) f.exposed[i] = (tiles ? kTileExposed : kExposed) * f.bytes[i];
  if (tile->variant != "bytes")
    f.calls = (tiles ? kTileCalls : kWindowCalls) * static_cast<double>(y.n) * std::ceil(static_cast<double>(y.h) / rows) *
              std::ceil(static_cast<double>(y.w) / tile->columns) * padded / static_cast<double>(lanes);
  const double least = tile->variant == "bytes" ? 8 * kLeastElements : kLeastElements;  // worth a task
  f.parallel_items = std::max(1.0, channels * static_cast<double>(y.n * y.pixels()) / least);
  return f;
}

std::vector<SampleForm> sample_forms() {
  DepthwiseParams p, integers;
  p.window = integers.window = small_window();
  integers.epilogue.scale = true;
  return {{p, {DType::f32, DType::f32}, {DType::f32}}, {integers, kScaledBytes, {DType::i8}}};
}

std::vector<Stage> samples(const SampleRequest& t) {
  const auto& p = get<DepthwiseParams>(t.params);
  if (!of_one_real(t) && !sums_bytes(t)) return {};
  return {with_types(window_sample(p, p.window, &p.epilogue, 1, true, 5, 1), t),
          with_types(window_sample(p, p.window, &p.epilogue, 1, true, 8, 0), t)};
}

SampleRules comparison(const Stage& stage) { return {.products = static_cast<double>(products_of(stage))}; }

}  // namespace

const FamilyInfo& depthwise_info() {
  static const FamilyInfo family = {
      .params = ParamsType::of<DepthwiseParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .gpu_16_bits = true,
      .reference = depthwise_reference,
      .footprint = footprint,
      .blocking = depthwise_blocking,
      .schedules = schedules,
      .sample_forms = sample_forms,
      .samples = samples,
      .comparison = comparison,
      .cpu_schedule = &ScheduleType::of<DepthwiseSchedule>,
      .gpu_schedule = &ScheduleType::of<DepthwiseSchedule>,
  };
  return family;
}

}  // namespace sparkle
