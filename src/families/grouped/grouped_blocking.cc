// How convolutions with groups of a few channels are cut, as their schedules say: a vector of filters by some pixels, a ring of
// rows whose channels are spread over the lanes.
#include <algorithm>

#include "families/common.h"
#include "families/grouped/grouped_family.h"
#include "families/values/fused.h"

namespace sparkle {

Blocking grouped_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto* s = get_if<GroupedSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return plain_blocking(stage, schedule, device);
  const auto& p = get<GroupedParams>(stage.params);
  const Window& w = p.window;
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const int64_t lanes = std::max(1, unit->n), depth = x.c / std::max<int64_t>(1, p.groups);
  const int pixels = grouped_pixels(s->variant, *unit);
  const auto text = [](int64_t n) { return std::to_string(n); };
  const int64_t ring = std::min(x.h, w.span(1, 1)), columns = std::min(x.w, w.span(2, s->columns));
  const bool spread = s->variant != "permute";
  const int64_t pixel = (spread ? depth : 1) * lanes * 4;
  Blocking b;
  b.tiles.push_back({"sums of " + text(pixels) + " pixels x " + text(lanes) + " filters",
                     static_cast<double>(4 * pixels * lanes), std::string(kRegisters)});
  const std::string rows = counted(ring, "row") + " of inputs of " + text(s->columns) + " pixels" +
                           (spread ? ", spread over the lanes of their groups" : "");
  b.tiles.push_back({rows, static_cast<double>(ring * columns * pixel), ""});
  b.tiles.push_back({rows + ", and weights of " + text(lanes) + " filters",
                     static_cast<double>(ring * columns * pixel + w.taps() * depth * lanes * 4), ""});
  const int64_t all = s->rows > 0 ? std::min(s->rows, y.h) : y.h;
  b.tiles.push_back({counted(all, "row") + " of outputs of all groups, and their inputs",
                     static_cast<double>(4 * (all * y.w * y.c + std::min(x.h, w.span(1, all)) * x.w * x.c)), ""});
  b.tiles.push_back(all_operands(stage));
  b.vectorised = lanes_of(device, s->unit, "filters") + ", of " +
                 counted(std::max<int64_t>(1, lanes / std::max<int64_t>(1, depth)), "group");
  b.in_flight = nothing_fetched(device);
  add_fused(b, p.epilogue);
  add_fused(b, w, true);
  return b;
}

}  // namespace sparkle
