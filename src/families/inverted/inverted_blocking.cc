// How a block of convolutions in one step is cut, as its schedule says: register tiles of its 1x1 parts, and some rows of the
// output that go through all parts with the wide rows that they need in a ring.
#include <algorithm>

#include "base/round_up.h"
#include "families/common.h"
#include "families/inverted/inverted.h"
#include "families/inverted/inverted_family.h"
#include "families/values/fused.h"

namespace sparkle {

Blocking inverted_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto* s = get_if<InvertedSchedule>(&schedule);
  const MathUnit* unit = s ? device.unit(s->unit) : nullptr;
  if (!unit) return plain_blocking(stage, schedule, device);
  const auto& p = get<InvertedParams>(stage.params);
  const InvertedOperands at = inverted_operands(p);
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const Window& w = p.window;
  const int64_t lanes = std::max(1, unit->n), panel = lanes * s->nr;
  const int64_t wide = rounded_up(stage.inputs[static_cast<size_t>(at.deep_weights)].shape[0], lanes);
  const int64_t most = divided(std::max<int64_t>(1, y.h), std::clamp<int64_t>(s->tasks, 1, std::max<int64_t>(1, y.h)));
  const int64_t rows = std::min(s->rows, most);
  // The ring, whose columns reach beyond the image, and the depthwise rows (inverted_footprint.cc).
  const int64_t slots = (rows - 1) * w.stride[1] + w.filter[1], reach = (y.w - 1) * w.stride[1] + w.filter[1];
  const int64_t ring = 4 * slots * reach * wide, deep = 4 * rows * y.w * wide;
  const int64_t weights = 4 * wide * ((p.expand ? x.c : 0) + w.taps() + rounded_up(y.c, lanes));
  const auto text = [](int64_t n) { return std::to_string(n); };
  Blocking b;
  b.tiles.push_back({"sums of " + text(s->mr) + " pixels x " + text(panel) + " channels",
                     static_cast<double>(4 * s->mr * panel), std::string(kRegisters)});
  if (p.expand)
    b.tiles.push_back({"inputs of " + text(s->mr) + " pixels and weights of " + text(std::min(panel, wide)) + " wide channels",
                       static_cast<double>(4 * x.c * (s->mr + std::min(panel, wide))), ""});
  const std::string wide_rows = counted(slots, "row") + " of the wide plane for " + counted(rows, "row") + " of outputs";
  b.tiles.push_back({wide_rows, static_cast<double>(ring + deep), ""});
  b.tiles.push_back({wide_rows + ", and the weights of all parts", static_cast<double>(ring + deep + weights), ""});
  b.tiles.push_back(all_operands(stage));
  b.vectorised = lanes_of(device, s->unit, "channels");
  b.in_flight = nothing_fetched(device);
  b.fused.emplace_back(p.expand ? "1x1, depthwise and 1x1" : "depthwise and 1x1");
  Blocking parts;
  if (p.expand) add_fused(parts, p.wide);
  add_fused(parts, p.deep);
  add_fused(parts, p.project);
  for (std::string& part : parts.fused)
    if (std::find(b.fused.begin(), b.fused.end(), part) == b.fused.end()) b.fused.push_back(std::move(part));
  add_fused(b, w, false);
  return b;
}

}  // namespace sparkle
