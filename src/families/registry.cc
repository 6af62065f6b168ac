#include "families/registry.h"

#include <algorithm>
#include <array>

#include "families/values/fused.h"

namespace sparkle {

const FamilyInfo& info(Family family) {
  static const std::array<const FamilyInfo*, kFamilies> rows = {
#define FAMILY(name, params) &name##_info(),
#include "families/families.inc"
#undef FAMILY
  };
  return *rows[static_cast<size_t>(family)];
}

Result<StageParams> params_from_text(Family family, std::string_view text) { return info(family).params.parse(text); }

// A family's plain variant has a LoopSchedule whatever the family, and so has a step without a kernel (plan/choose/choose.h).
// On GPUs some variants of a family are loops: the text's fields tell.
Result<Schedule> schedule_from_text(Family family, std::string_view text) {
  const FamilyInfo& row = info(family);
  const auto name = record_detail::find_field(text, "variant");
  const auto variant =
      std::find_if(row.variants.begin(), row.variants.end(), [&](const Variant& v) { return name && v.name == *name; });
  const ScheduleType& loops = ScheduleType::of<LoopSchedule>;
  if (variant != row.variants.end() && variant->for_workgroups())
    return row.gpu_schedule->fields_in(text) > loops.fields_in(text) ? row.gpu_schedule->parse(text) : loops.parse(text);
  if (name && (*name == "plain" || *name == "no_kernel")) return loops.parse(text);
  return row.cpu_schedule->parse(text);
}

Blocking blocking_of(const Stage& stage, const Schedule& schedule, const Device& device) {
  const auto blocking = info(stage.family()).blocking;
  return blocking ? blocking(stage, schedule, device) : plain_blocking(stage, schedule, device);
}

Status check_data(const Stage& stage, std::span<const TensorView> inputs, const std::string& node) {
  const auto check = info(stage.family()).check;
  if (!check) return ok();
  Status status = check(stage.params, inputs);
  if (status.ok()) return status;
  Error error = status.take_error();
  error.message = "Node '" + node + "': " + error.message + ".";
  return error;
}

}  // namespace sparkle
