// How depthwise convolutions are cut, as their schedules say: outputs that share loaded pixels, and the rows that tiles below
// one another read again.
#include <algorithm>

#include "families/common.h"
#include "families/depthwise/depthwise.h"
#include "families/depthwise/depthwise_family.h"
#include "families/values/fused.h"

namespace sparkle {

Blocking depthwise_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto* s = get_if<DepthwiseSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return plain_blocking(stage, schedule, device);
  const auto& p = get<DepthwiseParams>(stage.params);
  const Window& w = p.window;
  const FeatureMap x = feature_map(stage.inputs[0]);
  const auto size = static_cast<int64_t>(size_of(stage.inputs[0].dtype));
  // Four channels of a thread where they lie side by side, else a vector of them.
  const bool vec4 = device.has_workgroups() && s->variant != "naive" && s->variant != "bytes_naive";
  const int64_t lanes = device.has_workgroups() ? (vec4 ? 4 : 1) : std::max(1, unit->n);
  const int64_t rows = std::min(x.h, w.span(1, s->rows)), columns = std::min(x.w, w.span(2, s->columns));
  Blocking b;
  b.tiles.push_back({"sums of " + std::to_string(s->rows) + " x " + std::to_string(s->columns) + " pixels x " +
                         counted(lanes, "channel") + (device.has_workgroups() ? " a thread" : ""),
                     static_cast<double>(4 * lanes * s->rows * s->columns), std::string(kRegisters)});
  if (!device.has_workgroups()) {
    const int64_t weights = w.taps() * lanes * size;
    b.tiles.push_back({"weights and the " + std::to_string(rows) + " x " + std::to_string(columns) + " inputs of a tile",
                       static_cast<double>(weights + rows * columns * lanes * size), ""});
    b.tiles.push_back({counted(rows, "row") + " of inputs, which tiles below read again",
                       static_cast<double>(w.taps() * x.c * size + rows * x.w * x.c * size), ""});
  }
  b.tiles.push_back(all_operands(stage));
  b.vectorised =
      device.has_workgroups()
          ? lanes_of(device, s->unit, counted(lanes, "channel") + " of " + counted(s->rows * s->columns, "output") + " each")
          : lanes_of(device, s->unit, "channels");
  b.in_flight = nothing_fetched(device);
  add_fused(b, p.epilogue);
  add_fused(b, w, true);
  return b;
}

}  // namespace sparkle
