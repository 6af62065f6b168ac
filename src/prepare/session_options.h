// The one record of options that plans are made by, with what a session adds. Whoever takes options from outside - the command,
// C, C++, Python - fills this one; compiled files hold its PlanSettings.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "plan/plan.h"
#include "plan/choose/tuning_store.h"
#include "backends/backend.h"
#include "prepare/compiled_model.h"
#include "prepare/fallback/fallback.h"

namespace sparkle {

struct SessionOptions : PlanSettings {
  int64_t plan_cache_bytes = int64_t{256} << 20;  // what is kept for shapes seen before
  std::shared_ptr<const TuningStore> tuning;
  Fallback fallback = Fallback::warn;
  // Where a session goes on whose device is lost, full or refused by its driver; empty: nowhere, and the error is the caller's.
  std::function<Result<std::shared_ptr<Backend>>(const Error&)> next_device;
  // Opens the CPU beside a device, for the steps that this has no kernel for; empty, or under `forbid`: these are an error.
  std::function<Result<std::shared_ptr<Backend>>(const std::shared_ptr<Backend>& device)> open_host;
  std::vector<FallbackEvent> events;  // of how its device came about: the session's first

  // As long as these options live.
  PlanOptions plan() const { return {static_cast<const PlanSettings&>(*this), tuning.get()}; }
};

// What a caller asks for against what a file was compiled with. Options at their defaults, given or not, ask for nothing, and
// any memory budget may be given. Errors: bad_usage.
Status check_options(const CompiledModel& model, const SessionOptions& asked);

}  // namespace sparkle
