// Trials: small stages, odd in size and layout and with NaN among their values, by which a variant is compared with its
// family's reference before a driver that has never run it is trusted with it.
#pragma once

#include "backends/backend.h"
#include "families/stage.h"

namespace sparkle::vulkan {

// What of a plan's step decides which kernel runs: sizes do not.
struct Trial {
  Schedule schedule;
  StageParams params;
  std::vector<DType> inputs, outputs;

  Family family() const { return params.family(); }
  // What is banned where it fails: the variant, or the program behind its sums.
  std::string variant() const;
  // One line that from_text reads back.
  std::string to_text() const;
  static Result<Trial> from_text(std::string_view line);
};
Trial trial_of(const Stage& stage, const Schedule& schedule);

// Stages to try; none for a step without a kernel, and for kinds and element types that no kernel supports.
std::vector<Stage> stages_of(const Trial& trial);

// Runs the trial's stages on the device, each twice on operands of its own, with all that it may write wiped before. Errors:
// failed_probe saying what was wrong, or what the driver says.
Status run_trial(Backend& backend, const Trial& trial, std::chrono::nanoseconds timeout);

}  // namespace sparkle::vulkan
