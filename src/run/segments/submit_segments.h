// Runs of prepared plans: one submission where the device does all of it; else segment by segment, the host's steps in between.
#pragma once

#include <vector>

#include "prepare/prepared_plan.h"

namespace sparkle {

// What the programs of a plan work on.
struct RunSlots {
  std::vector<Buffer*> device;  // its arena, inputs, outputs, constants: those of the device's programs
  std::vector<Buffer*> host;    // its arena, constants; empty where the host has no steps
};
// `places`: buffers of the plan's inputs, then its outputs.
RunSlots slots_of(const PreparedPlan& plan, const RunArenas& arenas, std::span<Buffer* const> places);

// Hands the whole plan over; complete with the token, which is the device's. Where the host has steps it returns when the last
// of them is done: a download waits for the device's segment before it, the host's steps for the download, and uploads are
// there before the next segment reads them. options.keep_alive is released when all is complete; an error waits for what was
// handed over. `times` (with options.timestamps): of every step, once all is complete - the device is waited for after each
// segment. Errors: of the device; those of the steps themselves.
Result<Token> submit_segments(const PreparedPlan& plan, Backend& backend, const RunSlots& slots, const SubmitOptions& options,
                              std::vector<StepTime>* times = nullptr);

// The same step by step, complete on return: before each step every element that it is to write is wiped, so that none finds
// its result in what an earlier step left in the same bytes. No step reads what it writes. For checks.
Status run_steps_wiped(const PreparedPlan& plan, Backend& backend, const RunSlots& slots, std::byte wiped_to);

}  // namespace sparkle
