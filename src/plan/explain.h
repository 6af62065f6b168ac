// Explain: a plan in words. What every step does, how, what it is predicted to cost, what binds, and why the others were passed
// over.
#pragma once

#include <string>

#include "device/device.h"
#include "plan/plan.h"

namespace sparkle {

struct ExplainOptions {
  bool candidates = false;  // list every candidate of every step with its cost or the reason of its rejection
  std::string step;         // only steps whose name contains this
};

// A table for people, closed by totals: predicted time, memory, what fraction is layout changes.
std::string explain(const Plan& plan, const Device& device, const ExplainOptions& options = {});

// What a step computes, in a few words: "64x56x56 -> 64 3x3 +bias +relu", the expression of a program, a block's parts.
std::string what_of(const PlanStep& step);

// What the memory budget changed and what it is predicted to cost, as one line.
std::string budget_note(const Plan& plan);

// The same as one JSON object: {"model", "device", "calibrated", "arena_bytes", "constant_bytes", "predicted_ms", "steps":
// [...]}.
std::string explain_json(const Plan& plan, const Device& device);

}  // namespace sparkle
