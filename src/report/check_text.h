// What `check` found, as text for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "check/check.h"

namespace sparkle {

struct CheckTextOptions {
  bool all = false;  // every layer, not only those with findings; what was measured is shown of every layer
};

// Summary, what matters most, the table of precisions, layers with their findings. `called`: the device as the user named it.
std::string check_text(const Verdict& verdict, const std::string& called, const CheckTextOptions& options = {});

// {"device", "calibrated", "predicted_ms", "fixed_ms", "speedup", "matrix_share" ..., "findings": [...], "layers": [...],
// "precisions": [...]}
nlohmann::json check_json(const Verdict& verdict, const std::string& called);

// What predictions rest on, in a sentence: "predicted by rates measured on it", "bound, not calibrated: ...".
std::string basis_of(const Verdict& verdict);

}  // namespace sparkle
