// What a direct convolution will do under a schedule: its products, and what its loops - images, rows of a task, bundles of
// groups, strips of columns, rows, blocks of maps, tiles - move between registers and caches.
#include <algorithm>
#include <cmath>

#include "base/round_up.h"
#include "families/common.h"
#include "families/direct/direct_cut.h"
#include "families/direct/direct_family.h"
#include "families/loops/loop_traffic.h"
#include "families/windows/taps.h"

namespace sparkle {
namespace {

double number(int64_t v) { return static_cast<double>(v); }
double lines(double bytes) { return std::ceil(bytes / 64) * 64; }

// A stage cut as its schedule says.
struct Cut {
  DirectReading reading = DirectReading::in_place;
  DirectRow row;  // of the ring
  bool in_pixels = false, slides = false, planes = false, joins = false;
  double lanes = 1, groups = 1, depth = 1, bundle = 1;
  double column_blocks = 1, row_blocks = 1, columns = 1, rows = 1;  // strips, tasks; outputs of one, along the row and down
  double filter_rows = 1, steps = 0;                // rows of the filter inside of the image; products of all rows of outputs
  double vectors = 1, blocks = 1, tiles = 1;        // of a group's maps; blocks of them; tiles of a block's row in a strip
  double pixel = 0;                                 // bytes of a pixel that a bundle reads
  double row_bytes = 0, ring_bytes = 0, reach = 1;  // of inputs of a strip; rows that the filter reaches over
};

// What tiles load, in bytes, for all steps of all rows: weights and inputs as each kernel takes them.
double loaded(const Stage& stage, const DirectSchedule& s, const Cut& c, bool many, double& tiles) {
  const int64_t taps = get<DirectParams>(stage.params).window.filter[2], w = feature_map(stage.outputs[0]).w;
  const auto vectors = static_cast<int64_t>(c.vectors), most = std::max<int64_t>(1, s.maps), n = divided(vectors, most);
  const auto strips = static_cast<int64_t>(c.column_blocks), lanes = static_cast<int64_t>(c.lanes);
  const int64_t widths[] = {s.columns, w - (strips - 1) * s.columns}, counts[] = {strips - 1, 1};
  double bytes = 0, of_blocks = 0;
  for (const int64_t larger : {0, 1}) {
    const int64_t maps = vectors / n + larger, count = larger ? vectors % n : n - vectors % n;
    if (maps == 0 || count == 0) continue;
    int64_t longest = most_direct_pixels(s.variant, maps, taps, many);
    if (maps == most) longest = std::min<int64_t>(longest, std::max(1, s.pixels));
    for (size_t i = 0; i < 2; ++i) {
      const int64_t along = c.in_pixels ? divided(widths[i], lanes) : widths[i],
                    passes = divided(along, std::max<int64_t>(1, longest));
      const double times = number(count * counts[i]);
      of_blocks += times * number(passes);
      if (c.in_pixels) {
        bytes += times * 4 * number(passes * maps + along * lanes);
      } else if (c.slides) {
        bytes += times * 4 * (number(passes * lanes) + number(along + passes * (taps - 1)) / number(taps));
      } else {
        bytes += times * 4 * number(passes * maps * lanes + along);
      }
    }
  }
  tiles = of_blocks / std::max(1.0, number(n) * c.column_blocks);
  return c.groups * c.steps * bytes;
}

Cut cut_of(const Stage& stage, const DirectSchedule& s, const FeatureMap& x, const FeatureMap& y, int64_t lanes) {
  const auto& p = get<DirectParams>(stage.params);
  const Window& w = p.window;
  const DirectCut cut = direct_cut(stage, s, lanes);
  Cut c;
  c.in_pixels = cut.pixels, c.slides = cut.slides, c.planes = cut.planes, c.joins = cut.joins;
  c.lanes = number(lanes), c.groups = number(p.groups), c.depth = number(cut.depth), c.bundle = number(cut.bundle);
  c.reading = cut.reading, c.row = cut.row;
  c.columns = number(cut.columns), c.column_blocks = std::ceil(number(y.w) / c.columns);
  c.rows = std::min(number(cut.rows), number(y.h)), c.row_blocks = std::ceil(number(y.h) / c.rows);
  const double row_taps = taps_inside({x.h, y.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]});
  c.filter_rows = row_taps / number(y.h);
  c.steps = number(y.n) * c.depth * row_taps * number(w.filter[2]);
  c.vectors = c.in_pixels ? number(cut.maps) : number(divided(cut.maps, lanes));
  c.blocks = std::ceil(c.vectors / std::max(1, s.maps));
  c.reach = number(cut.ring);
  c.pixel = x.channel_stride == 1 ? lines(c.bundle * c.depth * 4) : c.bundle * c.depth * 4;
  if (x.channel_stride == 1 && p.groups == 1) c.pixel = c.depth * 4;
  const double span = (c.columns - 1) * number(w.stride[2]) + number((w.filter[2] - 1) * w.dilation[2] + 1);
  c.row_bytes = std::min(span, number(x.w)) * c.pixel;
  c.ring_bytes = c.reading == DirectReading::in_place ? 0 : c.reach * number(c.row.floats) * 4;
  return c;
}

// Rows of inputs that a task's rows of outputs read.
double rows_read(const Window& w, double rows, double h) {
  const auto stride = number(w.stride[1]), filter = number(w.filter[1]);
  return std::min({h, (rows - 1) * stride + number((w.filter[1] - 1) * w.dilation[1] + 1), rows * filter});
}

// Operands of the nest: packed weights, inputs as tiles read them, outputs, inputs on their way into the ring.
enum : size_t { kWeights, kInputs, kOutputs, kSource, kDirectOperands };
using Nest = LoopNest<kDirectOperands>;

Nest nest_of(const Window& w, const Cut& c, const FeatureMap& x, const FeatureMap& y) {
  const bool in_place = c.reading == DirectReading::in_place;
  const double unit = c.in_pixels ? c.lanes : 1, taps = number(w.filter[2]), stride = number(w.stride[2]);
  const double maps = c.in_pixels ? c.vectors : c.vectors * c.lanes;
  const double weights = c.depth * c.filter_rows * taps * maps * 4,
               all_weights = c.depth * number(w.filter[1]) * taps * maps * 4;
  const double tile = std::min(c.columns, std::ceil(c.columns / c.tiles / unit) * unit);
  // A row of inputs of a strip as the tiles see it, in whole lines; outputs of a block, a bundle, all.
  const double row = in_place ? c.row_bytes : number(c.row.floats) * 4;
  const double inputs = c.filter_rows * row;
  const double tile_inputs = std::min(inputs, inputs * ((tile - 1) * stride + taps) / ((c.columns - 1) * stride + taps));
  const double block_maps = lines(std::min(maps, number(y.c)) / c.blocks * 4),
               bundle_maps = lines(number(y.c) / c.groups * c.bundle * 4);
  const double apart = c.in_pixels ? std::ceil(maps / c.blocks) * std::ceil(tile / c.lanes) * c.lanes * 4 : 0;
  Nest nest({weights / c.blocks, tile_inputs, tile * block_maps, 0}, apart);
  nest.around(c.tiles, {weights / c.blocks, inputs, c.columns * block_maps, 0});
  const double bundle_weights = weights * c.bundle;
  const double fresh = in_place ? 0 : std::min(number(w.stride[1]), number(w.filter[1])) * c.row_bytes;
  nest.around(c.blocks * c.bundle, {bundle_weights, inputs, c.columns * bundle_maps, 0});
  nest.around(1, {bundle_weights, inputs, c.columns * bundle_maps, fresh});
  const double part = rows_read(w, c.rows, number(x.h)) * c.row_bytes;
  const auto from = [&](double bytes) { return in_place ? bytes : c.ring_bytes; };
  const auto source = [&](double bytes) { return in_place ? 0 : bytes; };
  const double bundles = c.groups / c.bundle, all_maps = std::max(1.0, number(y.c)) * 4;
  nest.around(c.rows, {all_weights * c.bundle, from(part), c.rows * c.columns * bundle_maps, source(part)});
  const double wide = part / c.row_bytes * number(x.w) * c.pixel;
  nest.around(c.column_blocks, {all_weights * c.bundle, from(wide), c.rows * number(y.w) * bundle_maps, source(wide)});
  const double deep = part / c.row_bytes * number(x.w) * number(x.c) * 4, of_groups = all_weights * c.groups;
  nest.around(bundles, {of_groups, from(deep), c.rows * number(y.w) * all_maps, source(deep)});
  const double image = number(x.w) * number(x.c) * 4 * rows_read(w, number(y.h), number(x.h));
  nest.around(c.row_blocks, {of_groups, from(image), number(y.pixels()) * all_maps, source(image)});
  nest.around(number(y.n),
              {of_groups, from(image * number(y.n)), number(y.n * y.pixels()) * all_maps, source(image * number(y.n))});
  return nest;
}

}  // namespace

Footprint direct_footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& p = get<DirectParams>(stage.params);
  const Window& w = p.window;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const int64_t depth = x.c / p.groups, maps = y.c / p.groups;  // of a group
  Footprint f = streaming_footprint(stage, device, 0);
  const double row_taps = taps_inside({x.h, y.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]});  // of all rows
  const double groups = number(p.groups), products = number(y.n) * number(depth) * row_taps * number(w.filter[2]);
  f.nominal_flops = 2.0 * number(y.n) * number(y.pixels()) * number(y.c) * number(depth) * number(w.taps());
  f.executed_flops = 2.0 * products * number(y.w) * number(y.c);
  f.function_flops = activation_flops(p.epilogue.activation, static_cast<double>(stage.outputs[0].elements()), device);
  f.parallel_items = 1;
  const auto* s = get_if<DirectSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit || y.n * y.pixels() == 0 || f.bytes.empty()) return f;

  const int64_t lanes = std::max(1, unit->n);
  Cut c = cut_of(stage, *s, x, y, lanes);
  const double tile_bytes = loaded(stage, *s, c, registers_of(*unit) >= 32, c.tiles);
  // A block of maps passes over a row of outputs tile by tile, in vectors of pixels or in pixels.
  const double blocks = groups * std::ceil(number(maps) / (c.in_pixels ? number(s->maps) : number(s->maps * lanes)));
  const double along = c.in_pixels ? number(divided(y.w, lanes)) : number(y.w);  // of a row
  const double tiles = std::ceil(along / s->pixels);
  const double vectors =
      c.in_pixels ? along * number(y.c) : along * groups * number(divided(maps, lanes));  // of sums, of a row
  f.executed_flops = 2 * products * vectors * number(lanes);

  // A step loads a tile's vectors and broadcasts its single numbers, two a cycle. Unaligned vectors of inputs lie in two lines.
  const double vector_bytes = number(lanes) * 4, taps = number(w.filter[2]);
  const double loads = c.in_pixels ? along * 2 * blocks : tiles * groups * number(divided(maps, lanes));
  const double broadcasts = c.in_pixels ? tiles * number(y.c)
                            : c.slides  ? (number(y.w) + tiles * (taps - 1)) / taps * blocks
                                        : number(y.w) * blocks;
  const double l1_rate = device.memory[0].bytes_per_second;
  const double broadcast_bytes = l1_rate > 0 && device.clock_hz > 0 ? 0.5 * l1_rate / device.clock_hz : 0.75 * vector_bytes;
  const double per_step = loads * vector_bytes + broadcasts * broadcast_bytes;
  // Single floats cost the L1 as much as vectors do. Pixels of a group lie far apart: Zen 4 took 6 cycles for each from the L2,
  // 14 from the L3.
  const double bundles = groups / c.bundle, far = p.groups > 1 ? 4 : 1;
  const double row_floats = number(c.row.floats);
  const double laid = c.reading == DirectReading::in_place ? 0
                      : c.reading == DirectReading::vectors
                          ? far * 2 * number(x.n) * number(x.h) * c.column_blocks * bundles * row_floats * 4
                          : number(x.n) * number(x.h) * number(x.w) * number(x.c) * vector_bytes;
  // Sums that wait in the L1 for residuals, factors and functions; the general product does the first two in registers.
  const Epilogue& e = p.epilogue;
  const bool factors = e.scale || e.alpha != 1 || e.residuals_before + e.residuals_after > 0;
  const double raw = factors ? 4 * number(y.n) * number(y.pixels()) * number(y.c) * 4 : 0;
  const double moved = f.bytes[0];
  f.exposed.assign(f.bytes.size(), 0);
  f.exposed[0] = laid + raw;
  f.port_bytes = products * per_step + moved + f.exposed[0];

  // Rows are laid once for each task that reads them.
  const double task_rows =
      rows_read(w, c.rows, number(x.h)) * c.row_blocks -
      (c.row_blocks > 1 ? number(std::max<int64_t>(0, w.pad_begin[1]) + std::max<int64_t>(0, w.pad_end[1])) : 0);
  const double rows = c.reading == DirectReading::in_place ? 0 : number(y.n) * task_rows * c.column_blocks * bundles;
  const double row_inside = c.row_bytes / c.pixel * c.bundle * c.depth;
  const double laid_bytes = rows * 4 * (c.planes ? row_floats + 2 * row_inside : row_floats + row_inside);
  // Maps apart from each other's neighbours, and the last vectors of a row, go through the L1.
  const double outputs = number(stage.outputs[0].bytes());
  const double apart =
      !c.in_pixels || number(y.pixel_stride) == c.vectors / c.blocks ? 0 : 2 * outputs * along * number(lanes) / number(y.w);
  f.bytes[0] = tile_bytes + outputs + laid_bytes + apart + raw;
  const double other = moved - outputs - number(stage.inputs[0].bytes()) - number(stage.inputs[1].bytes());
  const Nest nest = nest_of(w, c, x, y);
  for (size_t i = 1; i < f.bytes.size(); ++i) {
    const double inner = number(device.memory[i - 1].bytes);
    double bytes = 0;
    if (nest.touched() + other > inner) {
      for (const size_t operand : {kWeights, kInputs, kOutputs, kSource}) bytes += nest.asked(operand, inner);
      // Rows of the ring that do not stay are carried away as well.
      if (nest.asked(kInputs, inner) > 2 * c.ring_bytes * c.row_blocks * c.column_blocks * bundles * number(y.n))
        bytes += rows * row_floats * 4;
      bytes += std::max(0.0, other);
    }
    f.bytes[i] = std::min(bytes, f.bytes[i - 1]);
  }
  f.parallel_items = number(y.n) * c.column_blocks * c.row_blocks * bundles;
  // Zen 4, beside the products: some 45 cycles a tile, 15 more for each vector of pixels whose maps are put together, a row of
  // a block about a call.
  f.calls = number(y.n) * number(y.h) * (blocks * (c.column_blocks + 0.9 * tiles) + (c.in_pixels ? 0.08 * vectors : 0));
  if (c.joins) f.calls = number(y.n) * c.row_blocks * blocks * (1 + 0.9 * std::ceil(c.rows * number(y.w) / s->pixels));
  return f;
}

}  // namespace sparkle
