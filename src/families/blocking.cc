#include "families/blocking.h"

#include <algorithm>

#include "families/common.h"

namespace sparkle {

std::string counted(int64_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

std::string level_of(const BlockingTile& tile, const Device& device) {
  if (!tile.level.empty() || device.memory.empty()) return tile.level;
  for (const MemoryLevel& level : device.memory)
    if (!level.filled_by_hand && level.bytes > 0 && tile.bytes <= static_cast<double>(level.bytes)) return level.name;
  return device.memory.back().name;
}

BlockingTile all_operands(const Stage& stage) {
  double bytes = 0;
  for (const auto* operands : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *operands) {
      double once = static_cast<double>(size_of(desc.dtype));
      for (int i = 0; i < desc.shape.size(); ++i)
        if (desc.layout.strides[i] != 0) once *= static_cast<double>(desc.shape[i]);
      bytes += once;
    }
  return {"all operands", bytes, "", true};
}

std::string lanes_of(const Device& device, std::string_view name, std::string_view what) {
  const MathUnit* unit = device.unit(name);
  if (!unit) return "nothing: one value at a time";
  const std::string n = std::to_string(unit->n), k = std::to_string(unit->k), of = " (" + unit->name + ")";
  if (unit->kind == UnitKind::matrix)
    return std::to_string(unit->m) + " x " + n + " sums by " + k + " products an instruction" + of;
  const std::string products = unit->k > 1 ? ", " + k + " products of a sum in each lane" : "";
  if (device.has_workgroups()) return n + " threads in step, " + std::string(what) + products + of;
  return n + " " + std::string(what) + " a vector" + products + of;
}

std::string nothing_fetched(const Device& device) {
  return device.has_workgroups() ? "no copy: other subgroups of the core compute while one waits"
                                 : "nothing by the program: the core prefetches what is read in order";
}

Blocking streaming_blocking(const Stage& stage, const Schedule& schedule, const Device& device) {
  Blocking b;
  b.tiles.push_back(all_operands(stage));
  b.vectorised = lanes_of(device, unit_of(schedule), device.has_workgroups() ? "an element or more each" : "elements");
  b.in_flight = nothing_fetched(device);
  return b;
}

}  // namespace sparkle
