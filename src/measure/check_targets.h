// The devices that `check` is asked about, by name: described ones, and those of this machine, which it can also measure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/opening/open_backend.h"
#include "run/opening/open_model_to_check.h"

namespace sparkle {

struct CheckTarget {
  std::string called;
  Device device;
  std::shared_ptr<Backend> backend;  // of devices that are here
};

struct CheckTargetOptions {
  int threads = 0;       // of CPUs that are here; 0: what affinity and cgroup quota allow
  bool measure = false;  // the model runs on each of them
  std::function<void(const std::string& device, const std::string& lines)> try_elsewhere;  // BackendOptions::try_elsewhere
};

// Whether a name is that of a device of this machine: "cpu", "vulkan", "vulkan:1".
bool is_here(const std::string& name);

// `names`: as "h200", FILE.json, or of this machine "cpu", "vulkan", "vulkan:1". Errors: bad_usage for names that are none, and
// for described devices where `measure` is asked for; those of opening a backend.
Result<std::vector<CheckTarget>> check_targets(const std::vector<std::string>& names, const CheckTargetOptions& options);

// The verdict of one of them. With `measure`, of the plan that ran on seeded random inputs, with what its steps took; `path` is
// then read once more, for its weights. Errors: those of planning and running.
Result<Verdict> check_target(const CheckTarget& target, const ModelToCheck& model, const std::string& path, bool measure);

}  // namespace sparkle
