// A sample stage of a family (FamilyInfo::samples) on a backend: run twice, each time on operands of its own and with outputs
// and workspace wiped before, all of the outputs compared with the family's reference by the rules of its row.
#pragma once

#include <chrono>

#include "backends/backend.h"

namespace sparkle {

struct SampleRun {
  std::chrono::nanoseconds timeout = std::chrono::minutes(1);
  double more = 0;  // share of the largest result that a variant may be off beside what sums are
};

// `constants` as in Backend::compile. Nothing is run where the variant has nothing to do with such a stage, or with constants.
// Errors: failed_probe saying what was wrong, or what the backend says.
Status run_sample(Backend& backend, const Stage& stage, const Schedule& schedule, uint32_t constants, const SampleRun& how);

}  // namespace sparkle
