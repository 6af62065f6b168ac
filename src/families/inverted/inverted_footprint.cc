// What an inverted block will do under a schedule: the products of its parts and what they move between registers and caches.
#include <algorithm>
#include <cmath>

#include "families/common.h"
#include "families/inverted/inverted.h"
#include "families/inverted/inverted_family.h"

namespace sparkle {
namespace {

double up(double a, double b) { return std::ceil(a / b); }

// Bytes of what a pass of some rows through all parts touches and moves. Panels of wide channels pass through the first two
// parts one after another.
struct Pass {
  double passes = 1, panels = 1, vectors = 1;              // in the whole stage; of wide channels, vectors of all
  double tiles = 0, tile = 0;                              // of the expansion in a panel; inputs and outputs of one
  double x = 0, y = 0;                                     // new inputs; outputs and residuals
  double wide_weights = 0, deep_weights = 0, weights = 0;  // all of each part
  double fresh = 0, reach = 0;                             // wide rows that are made; that the depthwise part reads
  double pairs = 1, pair_reach = 0, pair = 0;  // tiles' rows in a pass; a vector's wide rows that they read and write
  double deep = 0;                             // depthwise rows
  double project_tiles = 0, project_panels = 1, project_tile = 0;  // in a panel of filters; inputs and outputs of one

  double touched() const { return reach + deep + x + y + wide_weights + deep_weights + weights; }
};

// What a pass asks for from beyond a memory of `inner` bytes; `kept` of it, weights.
double asked(const Pass& p, double inner, double& kept) {
  kept = 0;
  if (p.touched() <= inner) return p.x + p.y;
  // Weights of a panel serve all tiles of the pass where they stay.
  const double panel = p.wide_weights / p.panels, filters = p.weights / p.project_panels;
  kept = panel + p.tile <= inner ? p.wide_weights : p.wide_weights * p.tiles;
  kept += p.deep_weights;
  kept += filters + p.project_tile <= inner ? p.weights : p.weights * p.project_tiles;
  // A panel's way through the first two parts.
  const double part = (p.fresh + p.reach + p.deep) / p.panels + panel + p.x;
  double bytes = kept + p.y + (part <= inner || p.wide_weights == 0 ? p.x : p.x * p.panels);
  // Wide rows are made and carried away; those of passes before come back, and new ones where the panel's do not stay. Each
  // tile's rows come again where not even these stay.
  const double vector = p.reach / p.vectors;
  const bool rows_stay = p.pair_reach + p.pair <= inner;
  const bool fresh_stays = (p.fresh + p.reach) / p.panels + panel <= inner;
  double read = fresh_stays ? p.reach - p.fresh : p.reach;
  if (!rows_stay && vector > inner) read = p.vectors * p.pairs * p.pair_reach;
  bytes += p.fresh + read;
  // Depthwise rows too, once for each panel of filters.
  const double way = p.fresh + p.reach + p.deep + p.wide_weights;
  const double again = p.deep + filters <= inner ? std::clamp(1 - inner / way, 0.0, 1.0) : p.project_panels;
  bytes += p.deep * (1 + again);
  return bytes;
}

}  // namespace

Footprint inverted_footprint(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto& p = get<InvertedParams>(stage.params);
  const InvertedOperands at = inverted_operands(p);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const Window& w = p.window;
  const auto wide = static_cast<double>(stage.inputs[static_cast<size_t>(at.deep_weights)].shape[0]);
  const auto c = static_cast<double>(x.c), k = static_cast<double>(y.c), images = static_cast<double>(y.n);
  const double in_pixels = images * static_cast<double>(x.pixels()), out_pixels = images * static_cast<double>(y.pixels());
  const auto taps = static_cast<double>(w.taps()), filter = static_cast<double>(w.filter[1]);
  const auto stride = static_cast<double>(w.stride[1]);

  Footprint f = streaming_footprint(stage, device, 0);
  f.nominal_flops = 2 * wide * (in_pixels * (p.expand ? c : 0) + out_pixels * (taps + k));
  f.executed_flops = f.nominal_flops;
  f.function_flops = (p.expand ? activation_flops(p.wide.activation, in_pixels * wide, device) : 0) +
                     activation_flops(p.deep.activation, out_pixels * wide, device) +
                     activation_flops(p.project.activation, out_pixels * k, device);
  f.parallel_items = 1;
  const auto* s = get_if<InvertedSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return f;

  const bool pairs = s->variant == "pairs6x4";
  const double lanes = std::max(1, unit->n), height = std::max(1.0, static_cast<double>(y.h));
  const double vectors = up(wide, lanes), padded_k = up(k, lanes) * lanes - (pairs ? lanes / 2 : 0);
  const double tasks = std::clamp(static_cast<double>(s->tasks), 1.0, height);
  const double most_rows = up(height, tasks), rows = std::min(static_cast<double>(s->rows), most_rows);
  // Each task makes the wide rows that it shares with the task above once more.
  const double shared = images * (tasks - 1) * std::max(0.0, filter - stride) * static_cast<double>(x.w);
  const double wide_pixels = in_pixels + shared;
  f.executed_flops = 2 * (wide_pixels * (p.expand ? c : 0) * vectors * lanes + out_pixels * taps * vectors * lanes +
                          out_pixels * wide * padded_k);

  // Register tiles: 6 pixels by a panel of the expansion, 2 rows by 7 columns of the depthwise part (one row where registers
  // are few), 12 or 6 pixels by a panel of the projection.
  const double deep_rows = s->nr > 2 ? 2 : 1, columns = up(static_cast<double>(y.w), 7);
  const double rows_of_k = padded_k / lanes <= s->nr / 2.0 ? 2.0 * s->mr : s->mr;
  const double expand_tiles = p.expand ? up(wide_pixels, s->mr) * up(vectors, s->nr) : 0;
  const double deep_tiles = images * height / deep_rows * columns * vectors;
  const double project_tiles =
      pairs ? up(out_pixels, padded_k < 2 * lanes ? 16 : 8) : up(out_pixels, rows_of_k) * up(padded_k, lanes * s->nr);
  f.calls = expand_tiles + deep_tiles + project_tiles;

  const double wide_bytes = wide_pixels * vectors * lanes * 4, deep_bytes = out_pixels * vectors * lanes * 4;
  const double weights_once = 4 * wide * ((p.expand ? c : 0) + taps + k);  // as they lie in the model
  const double passes = images * tasks * up(most_rows, rows);
  // Of one task: the ring, whose columns reach beyond the image, and the depthwise rows.
  const double slots = (rows - 1) * stride + filter, reach = (static_cast<double>(y.w) - 1) * stride + filter;
  const double ring = slots * reach * vectors * lanes * 4;
  const double scratch = ring + rows * static_cast<double>(y.w) * vectors * lanes * 4;
  // How often a wide row is read by tiles of deep_rows rows.
  const double rereads = ((deep_rows - 1) * stride + filter) / (deep_rows * stride);
  const double operands = f.bytes.empty() ? 0 : f.bytes[0];  // each once
  Pass pass;
  pass.passes = passes, pass.vectors = vectors, pass.panels = up(vectors, s->nr);
  const double of_pass = passes / images / tasks;  // passes of a task
  const double fresh_pixels = wide_pixels / passes;
  pass.tiles = p.expand ? up(fresh_pixels, s->mr) : 1;
  pass.tile = p.expand ? s->mr * (c + lanes * std::min<double>(s->nr, vectors)) * 4 : 0;
  pass.x = (in_pixels + shared) / passes * c * 4;
  pass.y = (operands - in_pixels * c * 4 - weights_once) / passes;
  pass.wide_weights = p.expand ? c * vectors * lanes * 4 : 0, pass.deep_weights = taps * vectors * lanes * 4;
  pass.weights = wide * up(k, lanes) * lanes * 4;
  pass.fresh = wide_bytes / passes, pass.reach = ring;
  const double out_rows = height / tasks / of_pass;
  pass.pairs = up(out_rows, deep_rows), pass.pair_reach = ((deep_rows - 1) * stride + filter) * reach * lanes * 4;
  pass.pair = deep_rows * static_cast<double>(y.w) * std::max(64.0, lanes * 4);
  pass.deep = deep_bytes / passes;
  pass.project_panels = pairs ? 1 : up(padded_k, lanes * s->nr);
  pass.project_tiles = pairs ? up(out_pixels / passes, padded_k < 2 * lanes ? 16 : 8) : up(out_pixels / passes, rows_of_k);
  pass.project_tile = (pairs ? (padded_k < 2 * lanes ? 16 : 8) : rows_of_k) * (wide + std::min(padded_k, lanes * s->nr)) * 4;
  // Sums of a last, partly filled vector wait in the L1.
  if (padded_k != k) pass.project_tile += (pairs ? 16 : rows_of_k) * std::min(padded_k, lanes * s->nr) * 4;
  f.exposed.assign(f.bytes.size(), 0);
  for (size_t i = 0; i < f.bytes.size(); ++i) {
    if (i == 0) {
      // Per step of a sum a tile loads its weights and its pixels; wide and depthwise rows are written once each.
      const double expand = expand_tiles * c * (s->mr + lanes * s->nr) * 4;
      const double project = project_tiles * wide * (rows_of_k + std::min(padded_k, lanes * s->nr)) * 4;
      const double deep = deep_tiles * taps * lanes * 4 + wide_bytes * rereads;
      f.exposed[0] = p.expand ? 0 : 2 * wide_bytes;  // copied into the ring: no arithmetic meanwhile
      f.bytes[0] = expand + deep + project + wide_bytes + deep_bytes + f.exposed[0];
      continue;
    }
    const double inner = static_cast<double>(device.memory[i - 1].bytes);
    double of_weights = 0;
    const double moved = operands + scratch <= inner ? 0 : passes * asked(pass, inner, of_weights);
    f.bytes[i] = std::min(moved, f.bytes[i - 1]);
    // Few pixels per pass give no time to fetch weights ahead from beyond the L2.
    if (i > 1 && moved > 0) f.exposed[i] = std::min(passes * of_weights, f.bytes[i]);
  }
  // A task of one row more than another ends later.
  f.parallel_items = images * height / most_rows;
  const double zeros = reach * lanes + 2 * vectors * lanes + padded_k;
  f.workspace_bytes =
      static_cast<int64_t>(4 * zeros + std::min(images * tasks, std::max(1.0, 1.0 * device.cores)) * (scratch + 256)) + 1024;
  return f;
}

}  // namespace sparkle
