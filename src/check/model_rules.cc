// Rules on the model as a whole: shapes that are open, launches, memory.
#include <algorithm>

#include "check/rules.h"

namespace sparkle {
namespace {

Finding whole(Reason code, const Verdict& v, std::string rule, std::string fix) {
  Finding f;
  f.code = code;
  f.now_seconds = f.then_seconds = v.seconds;
  f.rule = std::move(rule), f.fix = std::move(fix);
  return f;
}

std::optional<Finding> dynamic_shape(const Verdict& v, const CheckOptions& options) {
  if (options.open.empty()) return std::nullopt;
  std::string inputs;
  for (const OpenInput& in : options.open) inputs += (inputs.empty() ? "'" : ", '") + in.name + "' " + in.shape;
  Finding f = whole(Reason::dynamic_shape, v, inputs + " leaves sizes open; what is said here is for one choice of them",
                    "fix them in the model, or keep a plan for each size that occurs");
  f.in_model = true;
  return f;
}

std::optional<Finding> data_shape(const Graph& graph, const Verdict& v) {
  for (const GraphTensor& t : graph.tensors) {
    if (!t.open) continue;
    return whole(Reason::data_shape, v,
                 "how many rows '" + t.name + "' has the data decides; there is room for " + t.shape.to_string(),
                 "take the largest count that is useful as a constant, as in TopK in front of it");
  }
  return std::nullopt;
}

std::optional<Finding> launch_bound(const Device& device, const Verdict& v) {
  constexpr double kMost = 0.5;
  constexpr size_t kFew = 4;  // a layer and its copies at the model's ends
  if (!device.has_workgroups() || v.rows.size() < kFew) return std::nullopt;
  double launches = 0;
  for (const CheckRow& row : v.rows) launches += row.launches();
  const double seconds = device.launch_seconds * launches;
  if (seconds < kMost * v.seconds) return std::nullopt;
  return whole(Reason::launch_bound, v,
               in_words(static_cast<int64_t>(launches)) + " launches of " + in_time(device.launch_seconds) + " are " +
                   in_percent(seconds / v.seconds) + " of " + in_time(v.seconds),
               "run larger batches; layers this small leave the device waiting");
}

std::optional<Finding> does_not_fit(const Device& device, const Verdict& v) {
  if (device.memory.empty() || device.memory.back().bytes <= 0) return std::nullopt;
  const double need = v.packed_bytes + v.arena_bytes, have = static_cast<double>(device.memory.back().bytes);
  if (need <= have) return std::nullopt;
  return whole(Reason::does_not_fit, v,
               in_bytes(v.packed_bytes) + " of weights and " + in_bytes(v.arena_bytes) + " of tensors, where " + device.name +
                   " has " + in_bytes(have),
               "take smaller batches or a narrower type, or cut the model in two");
}

}  // namespace

std::vector<Finding> model_findings(const Graph& graph, const Device& device, const Verdict& v, const CheckOptions& options) {
  std::vector<Finding> all;
  for (auto& finding : {dynamic_shape(v, options), data_shape(graph, v), launch_bound(device, v), does_not_fit(device, v)})
    if (finding) all.push_back(*finding);
  return all;
}

}  // namespace sparkle
