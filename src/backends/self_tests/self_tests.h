// Self-tests: small stages, odd in size and layout and with NaN among their values, by which a variant is compared with its
// family's reference before a driver that has never run it is trusted with it.
#pragma once

#include "backends/backend.h"
#include "families/stage.h"

namespace sparkle {

// What of a plan's step decides which kernel runs: sizes do not.
struct SelfTest {
  Schedule schedule;
  StageParams params;
  std::vector<DType> inputs, outputs;

  Family family() const { return params.family(); }
  // What is denied where it fails: the variant, or the program behind its sums.
  std::string variant() const;
  // One line that from_text reads back.
  std::string to_text() const;
  static Result<SelfTest> from_text(std::string_view line);
};
SelfTest self_test_of(const Stage& stage, const Schedule& schedule);

// Stages to try; none for a step without a kernel, and for kinds and element types that no kernel supports.
std::vector<Stage> stages_of(const SelfTest& self_test);

// Runs the self-test's stages on the device, each twice on operands of its own, with all that it may write wiped before.
// Errors: failed_probe saying what was wrong, or what the driver says.
Status run_self_test(Backend& backend, const SelfTest& self_test, std::chrono::nanoseconds timeout);

}  // namespace sparkle
