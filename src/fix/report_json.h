// What `fix` did and proved, for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fix/fix.h"

namespace sparkle::fix {

nlohmann::json report_json(const FixReport& report);

}  // namespace sparkle::fix
