// The gather family: plain loops, and what it tells the planner.
#include <algorithm>
#include <cstring>

#include "families/common.h"
#include "families/walk.h"

namespace sparkle {
namespace {

constexpr Variant kVariants[] = {
#define VARIANT(name, device, unit, rows, vectors, registers, note) \
  {name, DeviceKind::device, UnitKind::unit, rows, vectors, registers, note},
#include "families/gather/variants.inc"
#undef VARIANT
};

void gather_reference(const StageParams& params, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  const int axis = std::get<GatherParams>(params).axis;
  const TensorView &x = inputs[0], &indices = inputs[1], &y = outputs[0];
  const auto bytes = static_cast<size_t>(size_of(y.desc.dtype));
  const int index_rank = indices.desc.shape.size();
  if (x.desc.shape[axis] == 0) return;
  for_each_index(y.desc.shape, [&](const Dims& at) {
    Dims where, from;
    for (int i = 0; i < index_rank; ++i) where.push_back(at[axis + i]);
    const std::byte* place = element_at(indices, where);
    int64_t index = 0;
    if (indices.desc.dtype == DType::i64) {
      std::memcpy(&index, place, sizeof index);
    } else {
      int32_t narrow;
      std::memcpy(&narrow, place, sizeof narrow);
      index = narrow;
    }
    for (int i = 0; i < axis; ++i) from.push_back(at[i]);
    from.push_back(gather_index(index, x.desc.shape[axis]));
    for (int i = axis + index_rank; i < at.size(); ++i) from.push_back(at[i]);
    std::memcpy(element_at(y, at), element_at(x, from), bytes);
  });
}

// Only the slices that are picked are read: as many bytes as are written, and the indices.
Footprint footprint(const Stage& stage, const Schedule&, const Device& device) {
  Footprint result = streaming_footprint(stage, device, 0);
  const double written = static_cast<double>(stage.outputs[0].bytes()), indices = static_cast<double>(stage.inputs[1].bytes());
  result.bytes = bytes_per_level(device, 2 * written + indices, 2 * written + indices);
  return result;
}

std::vector<Schedule> schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not) {
  const DType type = stage.inputs[1].dtype;
  if (type != DType::i32 && type != DType::i64) {
    why_not = Reason::type_not_served;
    return {};
  }
  return loop_schedules(variant, device, why_not);
}

}  // namespace

const FamilyInfo& gather_info() {
  static const FamilyInfo family = {"gather", kVariants, gather_reference, footprint, schedules};
  return family;
}

}  // namespace sparkle
