// How convolutions by transforms are cut, as their schedules say: lines of a tile, its points, strips that share weights.
#include <algorithm>

#include "families/common.h"
#include "families/fft/fft_family.h"
#include "families/values/fused.h"

namespace sparkle {

Blocking fft_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  if (const auto* tiles = get_if<FftTileSchedule>(&schedule)) return fft_tile_blocking(stage, *tiles, device);
  const auto* s = get_if<FftSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return plain_blocking(stage, schedule, device);
  const auto& p = get<FftParams>(stage.params);
  const int64_t lanes = std::max(1, unit->n);
  const FftWork w = fft_work(stage, *s, lanes, registers_of(*unit));
  const int radix = registers_of(*unit) >= 32 ? 8 : 4;
  const auto text = [](int64_t n) { return std::to_string(n); };
  const double vector = 8.0 * static_cast<double>(lanes), plane = w.lines * w.line * vector;
  const std::string lane = w.tiled ? "tiles" : "channels";
  Blocking b;
  b.tiles.push_back({"a butterfly of at most " + text(radix) + " points of " + text(lanes) + " " + lane, radix * vector,
                     std::string(kRegisters)});
  b.tiles.push_back(
      {"a line of " + text(static_cast<int64_t>(w.line)) + " points of " + text(lanes) + " " + lane, w.line * vector, ""});
  b.tiles.push_back({"tiles of " + text(s->rows) + " x " + text(s->columns) + " points for " + text(w.height.tile) + " x " +
                         text(w.width.tile) + " outputs of " + text(lanes) + " " + lane,
                     plane, ""});
  b.tiles.push_back({"a strip of " + counted(static_cast<int64_t>(w.strip), "tile") + " and its weights",
                     w.points * vector + w.weights_strip, ""});
  b.tiles.push_back(all_operands(stage));
  b.vectorised = lanes_of(device, s->unit, lane);
  b.in_flight = nothing_fetched(device);
  add_fused(b, p.epilogue);
  add_fused(b, p.window, true);
  b.fused.emplace_back("transforms of the strip");
  return b;
}

}  // namespace sparkle
