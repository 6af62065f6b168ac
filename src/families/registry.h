// The registry: what each family of families.inc offers, by its number. It knows names and rows, no family's parameters.
#pragma once

#include "families/family.h"

namespace sparkle {

const FamilyInfo& info(Family family);

Result<StageParams> params_from_text(Family family, std::string_view text);
Result<Schedule> schedule_from_text(Family family, std::string_view text);

// What the family says of the stage under this schedule, or what is true of one that passes once over its operands.
Blocking blocking_of(const Stage& stage, const Schedule& schedule, const Device& device);

// The family's check as a whole sentence that names the node.
Status check_data(const Stage& stage, std::span<const TensorView> inputs, const std::string& node);

}  // namespace sparkle
