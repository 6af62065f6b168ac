// From a plan's steps to layers, and to what rules ask of each.
#pragma once

#include <map>
#include <string_view>

#include "check/rules.h"

namespace sparkle {

// Rows without findings: consecutive steps that do the same nodes are one layer.
std::vector<CheckRow> rows_of(const Plan& plan, const Device& device);

using OpsByName = std::map<std::string_view, const Op*>;
OpsByName ops_by_name(const Graph& graph);

Subject subject_of(const Graph& graph, const Plan& plan, const Device& device, const CheckRow& row, const OpsByName& ops,
                   double model_seconds);

}  // namespace sparkle
