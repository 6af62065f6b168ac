// Explain: a plan in words. What every step does, how, what it is predicted to cost, what binds, and why the others were passed
// over.
#pragma once

#include <string>

#include "device/device.h"
#include "plan/plan.h"

namespace sparkle {

struct ExplainOptions {
  bool candidates = false;  // list the candidates of every step that this device could take, with cost or reason of rejection
  std::string step;         // only steps of this name (is_step_named)
};

// Steps are picked by their whole name, or where none is called so by a part of it: "pool" is not "pool1" where there is a
// "pool".
bool is_step_named(const Plan& plan, const PlanStep& step, const std::string& name);

// A table for people, closed by totals: predicted time, memory, what fraction is layout changes.
std::string explain(const Plan& plan, const Device& device, const ExplainOptions& options = {});

// What a step computes, in a few words: "64x56x56 -> 64 3x3 +bias +relu", the expression of a program, a block's parts.
std::string what_of(const PlanStep& step);

// What the host does of the plan and why, and what goes over the link for it, as one line.
std::string host_note(const Plan& plan);

// What the memory budget changed and what it is predicted to cost, as one line.
std::string budget_note(const Plan& plan);

// The same as one JSON object: {"model", "device", "calibrated", "arena_bytes", "constant_bytes", "predicted_ms", "steps":
// [...]}.
std::string explain_json(const Plan& plan, const Device& device);

}  // namespace sparkle
