// How direct convolutions are cut, as their schedules say (direct_cut.h): tiles along a row of outputs, a ring of input rows in
// the scratch, rows that tasks do not cut.
#include <algorithm>

#include "families/common.h"
#include "families/direct/direct_cut.h"
#include "families/direct/direct_family.h"
#include "families/values/fused.h"

namespace sparkle {

Blocking direct_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto* s = get_if<DirectSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return plain_blocking(stage, schedule, device);
  const auto& p = get<DirectParams>(stage.params);
  const int64_t lanes = std::max(1, unit->n);
  const DirectCut cut = direct_cut(stage, *s, lanes);
  const int64_t maps = cut.pixels ? s->maps : s->maps * lanes, pixels = cut.pixels ? s->pixels * lanes : s->pixels;
  const auto text = [](int64_t n) { return std::to_string(n); };
  Blocking b;
  b.tiles.push_back({"sums of " + text(pixels) + " pixels x " + text(maps) + " filters", static_cast<double>(4 * pixels * maps),
                     std::string(kRegisters)});
  const int64_t row = cut.in_place() ? std::min(cut.x.w, cut.columns * p.window.stride[2]) * cut.depth * cut.bundle
                                     : cut.row.floats;  // floats of inputs of a strip
  const int64_t weights = cut.depth * p.window.taps() * maps;
  const std::string ring = counted(cut.ring, "row") + " of inputs of " + text(cut.columns) + " pixels" +
                           (cut.in_place() ? " as they lie" : ", laid with their padding");
  b.tiles.push_back({ring, static_cast<double>(4 * cut.ring * row), ""});
  b.tiles.push_back(
      {ring + ", and weights of " + text(maps) + " filters", static_cast<double>(4 * (cut.ring * row + weights)), ""});
  const int64_t rows = std::min(cut.rows, cut.y.h), read = std::min(cut.x.h, (rows - 1) * p.window.stride[1] + cut.ring);
  if (rows < cut.y.h || p.groups > 1)
    b.tiles.push_back({counted(rows, "row") + " of outputs of all groups, and their inputs",
                       static_cast<double>(4 * (rows * cut.y.w * cut.y.c + read * cut.x.w * cut.x.c)), ""});
  b.tiles.push_back(all_operands(stage));
  b.vectorised = lanes_of(device, s->unit, cut.pixels ? "pixels" : "filters");
  b.in_flight = s->prefetch > 0
                    ? "the next row of inputs is fetched towards the L" + text(s->prefetch) + " while this one is multiplied"
                    : nothing_fetched(device);
  add_fused(b, p.epilogue);
  add_fused(b, p.window, true);
  return b;
}

}  // namespace sparkle
