#include "backends/cpu/winograd/winograd_geometry.h"

#include <algorithm>

#include "base/round_up.h"
#include "families/winograd/winograd.h"

namespace sparkle::cpu {
namespace {}  // namespace

Result<WinogradGeometry> winograd_geometry(const Stage& stage, const WinogradSchedule& schedule, int64_t lanes) {
  const auto& params = get<WinogradParams>(stage.params);
  WinogradGeometry g;
  g.x = feature_map(stage.inputs[0]), g.w = feature_map(stage.inputs[1]), g.y = feature_map(stage.outputs[0]);
  if ((g.x.c > 1 && g.x.channel_stride != 1) || (g.y.c > 1 && g.y.channel_stride != 1))
    return Error{Reason::layout_not_served, "The CPU's winograd kernels read and write channels that lie next to each other."};
  g.tile = params.tile, g.points = params.tile + 2;
  g.pad_h = params.window.pad_begin[1], g.pad_w = params.window.pad_begin[2];
  g.tiles_h = divided(g.y.h, g.tile), g.tiles_w = divided(g.y.w, g.tile);
  g.tiles = g.y.n * g.tiles_h * g.tiles_w;
  g.strip = std::clamp<int64_t>(schedule.strip, 1, std::max<int64_t>(1, g.tiles));
  g.strips = divided(g.tiles, g.strip);
  g.padded_c = rounded_up(g.x.c, lanes), g.padded_k = rounded_up(g.y.c, lanes);
  const int64_t width = schedule.nr * lanes;
  for (int64_t column = 0; column < g.y.c; column += width) {
    const int64_t columns = std::min(width, g.y.c - column);
    g.panels.push_back({column, columns, static_cast<int>(divided(columns, lanes))});
  }
  g.input_stride = g.strip * g.padded_c + lanes;
  g.product_stride = g.strip * width + lanes;
  g.scratch_floats = g.square() * (g.input_stride + g.product_stride);
  return g;
}

}  // namespace sparkle::cpu
