// What a convolution by transforms will do under a schedule: its cycles, and what strips of tiles move between registers and
// caches on their way through rows, lines, products, lines and rows.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/fft/fft_family.h"

namespace sparkle {
namespace {

double number(int64_t v) { return static_cast<double>(v); }

// Lines 2 KB apart came from a Zen 5's L3 at 25 GB/s, lines in a row at 120.
constexpr double kFarPixel = 2048, kFarLines = 3.5;

// Inputs of a tile along an axis that are no padding, on average.
double inside(const FftAxis& axis) {
  constexpr int64_t kEnds = 32;  // tiles between these have no padding
  double sum = 0;
  for (int64_t i = 0; i < axis.tiles; ++i) {
    if (i == kEnds && axis.tiles > 2 * kEnds) {
      sum += number((axis.tiles - 2 * kEnds) * axis.span());
      i = axis.tiles - kEnds;
    }
    const FftAxis::Part part = axis.part(i);
    sum += number(part.end - part.begin);
  }
  return sum / number(std::max<int64_t>(1, axis.tiles));
}

// Floats of a vector lane that a transform moves: each pass reads and writes all points, beside its factors.
double transformed(int64_t points, int registers, double lanes) {
  double floats = 0;
  int64_t block = points;
  for (const int radix : fft_radices(points, registers)) {
    const int64_t step = block / radix;
    floats += 4 * lanes * number(points) + number(points / block * (step - 1) * 2 * (radix - 1));
    block = step;
  }
  return floats;
}

// Sizes of a strip in floats and bytes.
struct Strip {
  double lanes = 1, point = 2;         // floats of a vector, of a complex one
  double rows_in = 1, columns_in = 1;  // of a tile, on average
  double rows_out = 1, columns_out = 1;
  double exist = 1;                  // share of a slot's tiles
  double channels = 1, filters = 1;  // of a slot
  double x_pixel = 0, y_pixel = 0;   // bytes that a slot touches in one turn for a pixel, in lines
  double x_lines = 0, y_lines = 0;   // bytes of all channels of a part for a pixel
};
Strip strip_of(const FftWork& w, const FeatureMap& x, const FeatureMap& y, double groups, double lanes) {
  Strip s;
  s.lanes = lanes, s.point = 2 * lanes;
  s.rows_in = w.tiled ? number(std::min(w.height.in, w.height.span())) : inside(w.height), s.columns_in = inside(w.width);
  s.rows_out = w.tiled ? number(w.height.tile) : number(w.height.out) / number(w.height.tiles);
  s.columns_out = number(w.width.out) / number(w.width.tiles);
  s.exist = number(y.n * w.height.tiles * w.width.tiles) / (w.slots * w.slot_tiles);
  const double depth = number(x.c) / (w.single ? w.parts : groups), filters = number(y.c) / (w.single ? w.parts : groups);
  s.channels = w.tiled ? 1 : depth / w.in_slots, s.filters = w.tiled ? 1 : filters / w.out_slots;
  const auto lines = [](double c, double all) { return std::min(std::ceil(c * 4 / 64) * 64, all * 4); };
  s.x_pixel = lines(s.channels, number(x.c)), s.y_pixel = lines(s.filters, number(y.c));
  s.x_lines = lines(depth, number(x.c)), s.y_lines = lines(filters, number(y.c));
  return s;
}

// Floats that a strip of a part moves into and out of registers.
double moved(const FftWork& w, const Strip& s, double depth, int registers) {
  const double row = number(w.width.points), in_rows = std::ceil(s.rows_in / 2), out_rows = std::ceil(s.rows_out / 2);
  const double of_row = transformed(w.width.points, registers, s.lanes) + 4 * s.point * w.lines;
  const double of_line = transformed(static_cast<int64_t>(w.line), registers, s.lanes);
  double in = 0, out = 0;
  if (w.flat) {
    in = w.line * s.point + s.exist * s.columns_in * (w.tiled ? 2 * s.point : 2 * (s.lanes + s.channels));
    out = s.exist * s.columns_out * (w.tiled ? 2 * s.point : 2 * (s.lanes + s.filters));
  } else {
    in = in_rows * (of_row + (w.tiled ? row * s.point + 2 * s.point * s.columns_in * s.exist
                                      : (row - s.columns_in) * s.point + 2 * s.columns_in * (s.lanes + s.channels)));
    in += w.lines * (w.line - s.rows_in) * s.point;
    out = out_rows * of_row + s.rows_out * s.columns_out * (w.tiled ? s.point * s.exist : s.lanes + s.filters);
  }
  const double points = w.lines * w.line;
  double products = 3 * s.point;
  if (w.tiled) {
    const double groups_of_four = std::floor(w.out_slots / 4), rest = w.out_slots - 4 * groups_of_four;
    products = groups_of_four * (depth * (s.point + 8) + 4 * s.point) + rest * (depth * (s.point + 2) + s.point);
  } else if (!w.single) {
    const double groups_of_four = std::floor(w.strip / 4), rest = w.strip - 4 * groups_of_four;
    products =
        w.out_slots * (groups_of_four * (depth * (s.point + 8) + 4 * s.point) + rest * (depth * (s.point + 2) + s.point));
  }
  return w.strip * (w.in_slots * (in + w.lines * of_line) + w.out_slots * (out + w.lines * of_line)) + points * products;
}

// The share of points that have left a memory of `inner` bytes when they are needed again. They are touched in one order and
// needed in the other: after the rest of the first phase and what of the second comes before.
double left(double first, double second, double shared, double inner) {
  constexpr int kSteps = 8;
  int gone = 0;
  for (int i = 0; i < kSteps; ++i)
    for (int j = 0; j < kSteps; ++j) {
      const double a = (i + 0.5) / kSteps, b = (j + 0.5) / kSteps;
      if ((1 - a) * first + b * (second + a * shared) > inner) ++gone;
    }
  return gone / static_cast<double>(kSteps * kSteps);
}

// Bytes that a strip asks for from beyond a memory of `inner` bytes.
struct Asked {
  double read = 0, written = 0;  // of the planes
  double weights = 0, operands = 0;
};
Asked asked(const FftWork& w, const Strip& s, double inner, int registers) {
  const double line = w.line * s.point * 4, lines = w.lines * line, row = w.flat ? 0 : number(w.width.points) * s.point * 4;
  const double in = w.strip * w.in_slots * lines, out = w.single ? 0 : w.strip * w.out_slots * lines;
  const double tiles = w.slot_tiles * s.exist * w.strip;
  // Inputs and outputs: of a slot's turn, of all channels.
  const double x_slot = tiles / w.strip * s.rows_in * s.columns_in * s.x_pixel,
               y_slot = tiles / w.strip * s.rows_out * s.columns_out * s.y_pixel;
  const double x_all = tiles * s.rows_in * s.columns_in * s.x_lines, y_all = tiles * s.rows_out * s.columns_out * s.y_lines;
  Asked a;
  // Channels of a pixel one by one find its line where a slot's turn stays.
  a.operands = x_slot + lines + row <= inner ? x_all : w.strip * w.in_slots * x_slot;
  a.operands += y_slot + lines + row <= inner ? y_all : w.strip * w.out_slots * y_slot;
  // Of a transform passes over more than stays.
  const auto far = [&](double points) {
    double passes = 0, block = points;
    for (const int radix : fft_radices(static_cast<int64_t>(points), registers)) {
      if (block * s.point * 4 > std::max(inner, 20.0 * 1024)) ++passes;
      block /= radix;
    }
    return std::max(0.0, passes - 1);
  };
  const double strip = in + out + w.weights_strip + x_all + y_all + row;
  a.weights = w.weights_strip;
  if (strip <= inner) {
    if (w.strips > 1) a.weights /= w.strips;
    return a;
  }
  // Rows of points with inputs wait for their line, lines for their products, products for their line back, lines for their
  // rows.
  const double share_in = w.flat ? 1 : s.rows_in / w.line, share_out = w.flat ? 1 : std::min(1.0, s.rows_out / w.line);
  const double line_in = in / w.lines, line_all = line_in + out / w.lines + w.weights_strip / w.lines;
  const bool whole = w.lines == 1;
  const double plane = w.single ? in : out;
  const double read = left(in + x_all + row, w.weights_strip + out, in, inner);
  const double written = left(in + out + w.weights_strip, y_all + row, plane, inner);
  a.read = a.written = 2 * far(w.line) * (in + out);
  if (w.single) {
    a.read += whole && line <= inner ? 0 : (read * share_in + written * share_out) * in;
    a.written += whole && line <= inner ? in : (read * share_in + 1) * in;
    return a;
  }
  const bool stays = line_in <= inner, all_stay = line_all <= inner;
  a.read += (read * share_in + (stays ? 0 : 1)) * in + ((all_stay ? 0 : 1) + written * share_out) * out;
  a.written += (read * share_in + 1) * in + ((all_stay ? 0 : 1) + 1) * out;
  return a;
}

}  // namespace

Footprint fft_footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& p = get<FftParams>(stage.params);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  Footprint f = streaming_footprint(stage, device, 0);
  const double groups = number(std::max<int64_t>(1, p.groups)), depth = number(x.c) / groups;
  f.nominal_flops = 2 * depth * number(y.c) * number(y.n) * number(y.pixels()) * number(p.window.taps());
  f.executed_flops = f.nominal_flops;
  f.function_flops = activation_flops(p.epilogue.activation, static_cast<double>(stage.outputs[0].elements()), device);
  f.parallel_items = 1;
  if (const auto* tiles = get_if<FftTileSchedule>(&schedule)) return fft_tile_footprint(stage, *tiles, device, f);
  const auto* s = get_if<FftSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return f;
  const int64_t lanes = std::max(1, unit->n);
  const int registers = registers_of(*unit);
  const FftWork w = fft_work(stage, *s, lanes, registers);
  const double strips = w.strips * w.parts;
  f.executed_flops = 2 * number(lanes) * strips * (w.passes + kFftProductCycles * w.products);

  double operands = number(stage.outputs[0].bytes() + stage.inputs[0].bytes());
  for (size_t i = 2; i < stage.inputs.size(); ++i) operands += number(stage.inputs[i].bytes());
  const double scratch = w.points * 8 * number(lanes);
  f.bytes.assign(device.memory.size(), 0);
  f.exposed.assign(f.bytes.size(), 0);
  const Strip strip = strip_of(w, x, y, groups, number(lanes));
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (i == 0) {
      f.bytes[0] = 4 * strips * moved(w, strip, depth, registers);
      continue;
    }
    const double inner = number(device.memory[i - 1].bytes);
    if (w.weights + operands + scratch <= inner) continue;
    const Asked a = asked(w, strip, inner, registers);
    // Parts of channels in one line find it again where all that passes between them stays.
    const double part = number(y.n) * (number(x.pixels()) * strip.x_pixel + number(y.pixels()) * strip.y_pixel);
    const double shared =
        part + w.weights / w.parts + scratch <= inner ? std::min(a.operands * strips, operands) : a.operands * strips;
    f.bytes[i] = std::min((a.read + a.written + a.weights) * strips + shared, f.bytes[i - 1]);
    // Beyond the L2 nothing waits for what is carried away.
    f.exposed[i] = 0.5 * shared + strips * (i > 1 ? a.read + 0.8 * a.weights : 0.5 * (a.read + a.written + a.weights));
    f.exposed[i] = std::min(f.exposed[i], f.bytes[i]);
    // A line of each of pixels so far apart is one that no prefetcher sees coming.
    if (i > 1 && number(std::max(x.c, y.c)) * 4 >= kFarPixel) f.exposed[i] += kFarLines * shared;
  }
  f.calls = strips * w.calls;
  f.parallel_items = strips;
  f.workspace_bytes = static_cast<int64_t>(scratch) * std::max(1, device.cores);
  return f;
}

}  // namespace sparkle
