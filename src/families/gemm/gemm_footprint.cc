// What a gemm stage will do under a schedule: the loop nest of the schedule and what of its data is still there when it is
// needed again. src/measure/walks/counted_walk_test.cc compares the bytes with a walk through the nest line by line.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"
#include "families/gemm/stored_weights.h"

namespace sparkle {
namespace {

// Widening a vector of weights of 16 bits takes this much of a multiply-add: tiles of six rows lost 1.5 to 3 % of their rate
// where arithmetic bound them (Zen 4, AVX-512, 2026-11).
constexpr double kWidening = 0.15;
// With fewer rows the widening itself is the bound, 37 ps a weight there: as if a weight's two bytes passed between registers
// and L1 and its four widened ones too.
constexpr double kWidenedBytes = 3;

// Dot products of rows add up a vector for each output when they end, a part of a call more than a tile's end for six rows of
// four columns; with 16 registers these are three calls of the kernel's inner part.
constexpr double kDotCalls = 0.6, kDotParts = 0.2;

// Tiles of a matrix unit: sums go through a buffer before they are finished, 64 vectors of some ten instructions for 32 x 32:
// 200 cycles, estimated, as so many calls.
constexpr double kMatrixCalls = 5;

double up(double a, double b) { return std::ceil(a / b); }

}  // namespace

Footprint gemm_footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  if (const auto* tiles = get_if<TileSchedule>(&schedule)) return gemm_tile_footprint(stage, *tiles, device);
  const auto& params = get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const auto instances = static_cast<double>(sizes.instances);
  const auto m = static_cast<double>(sizes.m), n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
  const double nominal = 2 * instances * m * n * k;

  const auto* s = get_if<GemmSchedule>(&schedule);
  if (!s) {  // plain: every product reads both factors from memory that is as near as it happens to be
    Footprint footprint = streaming_footprint(stage, device, nominal);
    footprint.executed_flops = 2 * instances * sizes.k_steps * n;
    if (!footprint.bytes.empty()) footprint.bytes[0] = 4 * footprint.executed_flops;
    footprint.parallel_items = 1;
    return footprint;
  }

  const MathUnit* unit = device.unit(s->unit);
  const bool dots = s->variant == kRowDots, matrix = s->variant == kMatrixI8 || s->variant == kMatrixBf16;
  const double lanes = unit && !dots ? std::max(1, unit->n) : 1;
  const double padded_n = up(n, lanes) * lanes;
  const double panels = std::max(1.0, up(n, lanes * s->nr));
  const double chunks = s->kc > 0 ? std::max(1.0, up(k, static_cast<double>(s->kc))) : 1;

  Footprint footprint;
  footprint.nominal_flops = nominal;
  footprint.executed_flops = 2 * instances * sizes.k_steps * padded_n;
  footprint.function_flops = activation_flops(params.epilogue.activation, instances * m * padded_n, device);

  const auto bytes_of = [&](size_t i) { return static_cast<double>(size_of(stage.inputs[i].dtype)); };
  const DType stored = stored_weights(s->variant);
  if (dots && k > 0) {  // whole vectors along each run
    const double run = static_cast<double>(run_of_k(params, stage.inputs[0])), vector = unit ? std::max(1, unit->n) : 1;
    footprint.executed_flops *= up(run, vector) * vector / run;
  }
  const double a_bytes = bytes_of(0);
  const double b_bytes = matrix && unit         ? static_cast<double>(size_of(unit->input))
                         : stored == DType::f32 ? bytes_of(1)
                                                : static_cast<double>(size_of(stored));
  const double weights = k * padded_n * b_bytes;  // of one instance
  const GemmRows rows = gemm_rows(params, stage, sizes, s->mr, a_bytes);
  const double tiles = rows.tiles;
  const double row_blocks = s->mc > 0 ? std::max(1.0, up(tiles, up(static_cast<double>(s->mc), s->mr))) : 1;
  // Narrow panels serve two tiles with each vector of weights (gemm_tile.cc).
  const int registers = unit ? registers_of(*unit) : 32;
  const bool pairs = stored == DType::f32 && !dots && !matrix && chunks == 1 &&
                     std::ceil(padded_n / lanes / panels) <= (registers >= 32 ? 2 : 1);
  // Of the weights: how often each is read. Bytes of a call's tile.
  const int columns = static_cast<int>(std::clamp(std::ceil(n / panels), 1.0, 4.0));
  const double parts = dots ? up(s->mr, std::max(1, dot_rows(registers, columns))) : 1;  // that a call makes one after another
  const double sweeps = k > 0 ? rows.steps / k * (pairs ? 1 - rows.paired / 2 : parts) : 0;
  const double tile = rows.tile * (pairs && rows.paired > 0.5 ? 2 : 1);
  double other = 0;  // outputs and residuals, once each
  for (const TensorDesc& desc : stage.outputs) other += static_cast<double>(desc.bytes());
  const Epilogue& e = params.epilogue;
  other += (e.residuals_before + e.residuals_after) * other;
  const double partials = 2 * (chunks - 1) * instances * m * padded_n * 4;

  if (matrix) {
    const double step = std::max(1, unit ? unit->k : 1), padded_k = k > 0 ? up(k, step) * step / k : 1;
    footprint.executed_flops = 2 * instances * rows.group_steps * padded_k * padded_n;
    // Functions are computed by vectors, whose rate is another.
    if (const MathUnit* vectors = best_vector_unit(device); unit && vectors && vectors->flops_per_second > 0)
      footprint.function_flops *= std::max(1.0, unit->flops_per_second / vectors->flops_per_second);
  }

  if (stored != DType::f32) footprint.executed_flops += kWidening * 2 * instances * sweeps * k * padded_n;

  const bool by_rows = s->order == GemmOrder::rows;
  const bool blocked = !by_rows && s->mc > 0 && chunks == 1;  // each block of rows passes all panels
  const double matrix_panel = weights / panels, panel = matrix_panel / chunks;
  const double block_share = blocked ? 1 / row_blocks : 1, block_input = rows.input * block_share;
  const double outputs = m * padded_n * 4, out_tile = outputs / tiles, out_line = outputs / rows.lines;
  // Bytes of the left operand that one pass over all tiles asks an outer level for, where `beside` bytes pass between a tile
  // and the next: once where the rows of a window stay, once per row of outputs where they do not, all of each tile else.
  const auto input_pass = [&](double inner, double beside, double line) {
    if (beside + rows.window + tile + line <= inner) return rows.input;
    const double each_tile = std::max(rows.input, std::min(tiles * rows.tile, sizes.k_steps * a_bytes));
    return beside + tile <= inner ? std::min(each_tile, rows.input * rows.times) : each_tile;
  };
  for (size_t i = 0; i < device.memory.size(); ++i) {
    if (i == 0) {  // registers: each step of a tile broadcasts its rows and loads its columns
      const double loaded = sweeps * weights * (stored == DType::f32 ? 1 : kWidenedBytes);
      footprint.bytes.push_back(instances * (a_bytes * sizes.k_steps * panels + loaded) + other + partials);
      // A broadcast takes a port as long as a vector does.
      if (!dots && !matrix && a_bytes == 4)
        footprint.port_bytes = footprint.bytes[0] + instances * sizes.k_steps * panels * (4 * lanes - a_bytes);
      if (matrix) {  // rows are gathered before they are multiplied, sums stored before they are finished
        const double moved = instances * 2 * (a_bytes * sizes.k_steps + 4 * m * padded_n);
        footprint.bytes.back() += moved;
        footprint.exposed = {moved};
      }
      continue;
    }
    // What does not fit the next inner level comes from this one.
    const double inner = static_cast<double>(device.memory[i - 1].bytes);
    double weight_bytes = weights, input_bytes = 0;
    if (by_rows) {
      // All weights for each tile; the tile again for each panel.
      if (weights + tile + out_tile > inner) weight_bytes = weights * std::max(1.0, sweeps);
      input_bytes = input_pass(inner, weights + out_tile, out_line);
      if (panel + tile > inner)
        input_bytes = panels * std::max(rows.input, std::min(tiles * rows.tile, sizes.k_steps * a_bytes));
    } else {
      // A chunk of a panel for each tile, or a panel for each block of rows; all rows again for each panel.
      if (panel + tile + out_tile / panels > inner) {
        weight_bytes = weights * std::max(1.0, sweeps);
      } else if (blocked ? weights + block_input > inner : chunks > 1 && matrix_panel + rows.input / row_blocks > inner) {
        weight_bytes = weights * row_blocks;
      }
      input_bytes = input_pass(inner, panel + out_tile / panels, out_line / panels);
      if (chunks > 1 && input_bytes > rows.input) input_bytes = std::min(chunks * input_bytes, sizes.k_steps * a_bytes);
      // Both this panel and the next one pass before a row is read again.
      if (block_input + 2 * matrix_panel + outputs / panels * block_share > inner) input_bytes *= panels;
    }
    // Groups side by side in a line fetch it for each of them, unless all of its lines stay.
    const double block =
        by_rows && s->mc > 0 && m > 0 ? std::min(1.0, static_cast<double>(s->mc) / m) : 1;  // they take turns over
    const double lines = (rows.input + other / instances) * rows.line_share * block > inner ? rows.line_share : 1;
    double bytes = (instances * (weight_bytes + input_bytes * lines)) + other * lines;
    if (i == 1 && by_rows) bytes += partials;
    // Data that fit the inner level came from out here only in the first run: repeated runs find them there.
    if (inner > 0 && instances * (weights + rows.input) + other <= inner) bytes = 0;
    // Nothing reaches an outer level that an inner one did not ask for.
    if (i > 1) bytes = std::min(bytes, footprint.bytes.back());
    footprint.bytes.push_back(bytes);
  }
  // A thread's share is at least a tile by a panel and some 2^20 products.
  const double products = instances * sizes.k_steps * padded_n;
  const double units = instances * (s->split != 1 ? tiles : row_blocks) * (s->split != 0 ? panels : 1);
  footprint.parallel_items = std::max(1.0, std::min(units, products / 1048576));
  // Each run of k that lies together in memory takes a third of a call: filter rows, single taps where channels are a group's.
  const Window& w = params.window;
  const bool together = params.groups == 1 && w.dilation[2] == 1;
  const double runs = params.loader == Loader::dense ? 1 : static_cast<double>(together ? w.filter[0] * w.filter[1] : w.taps());
  const double fixed = dots ? kDotCalls + kDotParts * (parts - 1) : matrix ? kMatrixCalls : 1;
  footprint.calls = instances * tiles * panels * chunks * (fixed + runs / 3);
  return footprint;
}

}  // namespace sparkle
