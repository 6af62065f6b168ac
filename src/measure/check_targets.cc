#include "measure/check_targets.h"

#include <algorithm>
#include <filesystem>

#include "device/known/known_devices.h"
#include "measure/step_times.h"
#include "prepare/random_inputs.h"
#include "run/opening/open_model.h"

namespace sparkle {
namespace {

Result<CheckTarget> target_here(const std::string& name, const CheckTargetOptions& o) {
  BackendOptions options;
  options.name = name, options.threads = o.threads;
  options.roofs = o.measure ? Roofs::measured : Roofs::kept_or_estimated;
  options.try_elsewhere = o.try_elsewhere;
  SPARKLE_TRY(open, open_backend(options));
  return CheckTarget{name, open.backend->device(), open.backend};
}

}  // namespace

bool is_here(const std::string& name) {
  const std::vector<BackendRow> rows = backends();
  return std::any_of(rows.begin(), rows.end(), [&](const BackendRow& row) {
    return name == row.name || (row.numbered && name.starts_with(std::string(row.name) + ":"));
  });
}

Result<std::vector<CheckTarget>> check_targets(const std::vector<std::string>& names, const CheckTargetOptions& options) {
  std::vector<CheckTarget> targets;
  for (const std::string& name : names) {
    if (is_here(name)) {
      SPARKLE_TRY(target, target_here(name, options));
      targets.push_back(std::move(target));
      continue;
    }
    if (options.measure)
      return Error{Reason::bad_usage, "Models are measured on devices that are here; '" + name +
                                          "' is none: give cpu, vulkan or vulkan:N as 'sparkle devices' numbers them."};
    SPARKLE_TRY(device, described_device(name));
    targets.push_back(
        {name.ends_with(".json") ? std::filesystem::path(name).stem().string() : name, std::move(device), nullptr});
  }
  return targets;
}

Result<Verdict> check_target(const CheckTarget& target, const ModelToCheck& model, const std::string& path, bool measure) {
  if (!measure) return check_model(model.graph, target.device, model.options);
  SPARKLE_TRY(graph, read_onnx_model(path));
  SPARKLE_TRY(session, Session::open(std::move(graph), target.backend, {}));
  std::vector<Dims> shapes;
  for (const SessionInput& input : session->inputs()) {
    const auto bound = std::find_if(model.graph.inputs.begin(), model.graph.inputs.end(),
                                    [&](TensorId id) { return model.graph.tensor(id).name == input.name; });
    shapes.push_back(bound == model.graph.inputs.end() ? input.shape : model.graph.tensor(*bound).shape);
  }
  SPARKLE_TRY(inputs, unfilled_inputs(session->inputs(), shapes));
  SPARKLE_CHECK(fill_inputs(session->inputs(), inputs, 1));
  SPARKLE_TRY(times, time_steps(*session, inputs));
  Verdict verdict = check_plan(model.graph, *times.plan, target.backend->device(), model.options);
  verdict.model = model.graph.name;
  add_measured(verdict, times.steps, times.whole_seconds);
  return verdict;
}

}  // namespace sparkle
