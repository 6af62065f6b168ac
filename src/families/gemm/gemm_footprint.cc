// What a gemm stage will do under a schedule: walks the loop nest of the schedule and counts.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_shape.h"

namespace sparkle {
namespace {

double up(double a, double b) { return std::ceil(a / b); }

}  // namespace

Footprint gemm_footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& params = std::get<GemmParams>(stage.params);
  const GemmSizes sizes = gemm_sizes(params, stage.inputs, stage.outputs[0]);
  const auto instances = static_cast<double>(sizes.instances);
  const auto m = static_cast<double>(sizes.m), n = static_cast<double>(sizes.n), k = static_cast<double>(sizes.k);
  const double nominal = 2 * instances * m * n * k;

  const auto* s = std::get_if<GemmSchedule>(&schedule);
  if (!s) {  // plain: every product reads both factors from memory that is as near as it happens to be
    Footprint footprint = streaming_footprint(stage, device, nominal);
    footprint.executed_flops = 2 * instances * sizes.k_steps * n;
    if (!footprint.bytes.empty()) footprint.bytes[0] = 4 * footprint.executed_flops;
    footprint.parallel_units = 1;
    return footprint;
  }

  const MathUnit* unit = device.unit(s->unit);
  const double lanes = unit ? std::max(1, unit->n) : 1;
  const double padded_n = up(n, lanes) * lanes;
  const double panels = std::max(1.0, up(n, lanes * s->nr)), tiles = std::max(1.0, up(m, s->mr));
  const double chunks = s->kc > 0 ? std::max(1.0, up(k, static_cast<double>(s->kc))) : 1;
  const double row_blocks = s->mc > 0 ? std::max(1.0, up(m, static_cast<double>(s->mc))) : 1;
  // Real length of the sums: taps in the padding are never computed.
  const double steps = m > 0 ? sizes.k_steps / m : 0;

  Footprint footprint;
  footprint.nominal_flops = nominal;
  footprint.executed_flops = 2 * instances * sizes.k_steps * padded_n;

  const auto bytes_of = [&](size_t i) { return static_cast<double>(size_of(stage.inputs[i].dtype)); };
  const double a_bytes = bytes_of(0), b_bytes = bytes_of(1);
  const double weights = k * padded_n * b_bytes;  // of one instance
  const double input = static_cast<double>(stage.inputs[0].bytes()) / (params.loader == Loader::window ? instances : 1);
  double other = 0;  // outputs and residuals, once each
  for (const TensorDesc& desc : stage.outputs) other += static_cast<double>(desc.bytes());
  const Epilogue& e = params.epilogue;
  other += (e.residuals_before + e.residuals_after) * other;
  const double partials = 2 * (chunks - 1) * instances * m * padded_n * 4;

  const bool by_rows = s->order == GemmOrder::rows;
  // Panel and tile data that the two inner loops sweep again and again.
  const double panel = weights / panels / chunks, tile = s->mr * steps * a_bytes;
  for (size_t i = 0; i < device.memory.size(); ++i) {
    // What does not fit the next inner level comes from this one.
    const double inner = i == 0 ? 0 : static_cast<double>(device.memory[i - 1].bytes);
    double weight_reads = 1, input_reads = 1;
    if (by_rows) {
      if (weights > inner) weight_reads = tiles;  // all weights for each tile
      if (tile > inner) input_reads = panels;     // the tile again for each panel
    } else {
      if (panel > inner) weight_reads = tiles;  // one chunk of a panel for each tile
      else if (weights > inner) weight_reads = row_blocks;
      if (input > inner) input_reads = panels;  // all rows again for each panel
    }
    double bytes = instances * (weight_reads * weights + input_reads * input) + other + (i == 0 ? partials : 0);
    // Registers: each tile step broadcasts its rows and loads its columns.
    if (i == 0) bytes = instances * (a_bytes * sizes.k_steps * panels + b_bytes * tiles * steps * padded_n) + other + partials;
    // Data that fit the inner level came from out here only in the first run: repeated runs find them there.
    if (i > 0 && inner > 0 && instances * (weights + input) + other <= inner) bytes = 0;
    // Nothing reaches an outer level that an inner one did not ask for.
    if (i > 0) bytes = std::min(bytes, footprint.bytes.back());
    footprint.bytes.push_back(bytes);
    footprint.resident.push_back(i == 0 ? std::min(tile, panel) : by_rows ? weights + tile : 2 * panel + partials);
  }
  // A thread's share is at least a tile by a panel and some 2^20 products.
  const double products = instances * sizes.k_steps * padded_n;
  const double units = instances * (s->split != 1 ? tiles : row_blocks) * (s->split != 0 ? panels : 1);
  footprint.parallel_units = std::max(1.0, std::min(units, products / 1048576));
  // Each run of k that lies together in memory takes a third of a call: filter rows, single taps where channels are a group's.
  const Window& w = params.window;
  const bool together = params.groups == 1 && w.dilation[2] == 1;
  const double runs = params.loader == Loader::dense ? 1 : static_cast<double>(together ? w.filter[0] * w.filter[1] : w.taps());
  footprint.calls = instances * tiles * panels * chunks * (1 + runs / 3);
  footprint.depth = s->prefetch ? 2 : 1;
  return footprint;
}

}  // namespace sparkle
