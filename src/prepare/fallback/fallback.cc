#include "prepare/fallback/fallback.h"

#include <algorithm>
#include <array>

#include "backends/reference/reference_backend.h"
#include "base/log.h"
#include "base/text/format.h"

namespace sparkle {
namespace {

constexpr std::array<std::string_view, 3> kFallbacks = {"forbid", "warn", "allow"};

FallbackEvent plain_step(const PlanStep& step, const std::string& device, const PlanSettings& settings) {
  const bool forced = settings.variant == "plain";
  const std::string why = forced ? ") runs on plain reference loops, as --variant plain demands"
                                 : ") has no fast kernel here and runs on plain reference loops";
  return {"operator",
          device,
          "plain loops",
          forced ? Reason::forced_other : Reason::no_kernel,
          step.cost.seconds,
          step.name,
          "Step '" + step.name + "' (" + step.algorithm + why + "."};
}

// Of the host's steps, with the transfers that stand in front of their run of steps and behind it: each of them is told by the
// first or the last of these.
FallbackEvent step_of_host(const Plan& plan, size_t at) {
  const PlanStep& step = plan.steps[at];
  double link = 0;
  int64_t bytes = 0;
  const auto add = [&](size_t i) { link += plan.steps[i].cost.seconds, bytes += plan.steps[i].stage.outputs[0].bytes(); };
  for (size_t i = at; i > 0 && plan.steps[i - 1].algorithm == "download"; --i) add(i - 1);
  for (size_t i = at + 1; i < plan.steps.size() && plan.steps[i].algorithm == "upload"; ++i) add(i);
  const double seconds = step.cost.seconds + link;
  const bool moved = step.host_reason == Reason::cheaper_on_host;
  const std::string why = moved ? ") lies between steps of the host, where it costs less than on " + plan.device +
                                      " with its transfers, and runs on "
                                : ") has no kernel on " + plan.device + " and runs on ";
  std::string sentence = "Step '" + step.name + "' (" + step.algorithm + why + plan.host +
                         (variant_of(step.schedule) == "plain" ? " by plain reference loops" : "") +
                         format(": predicted %.3f ms", seconds * 1e3);
  if (bytes > 0) sentence += format(", of which %.3f ms bring %lld bytes over", link * 1e3, static_cast<long long>(bytes));
  return {"operator", plan.device, plan.host, step.host_reason, seconds, step.name, sentence + "."};
}

// What the planner put in front of a kernel that does not take floats of 16 bits; conversions of the model's own are nodes.
bool widens(const PlanStep& step) {
  if (!step.nodes.empty() || step.stage.inputs.size() != 1 || step.stage.outputs.size() != 1) return false;
  const DType from = step.stage.inputs[0].dtype;
  return (from == DType::f16 || from == DType::bf16) && step.stage.outputs[0].dtype == DType::f32;
}

}  // namespace

std::string_view name_of(Fallback fallback) { return kFallbacks[static_cast<size_t>(fallback)]; }
bool parse_name(std::string_view text, Fallback& fallback) {
  const auto* const found = std::find(kFallbacks.begin(), kFallbacks.end(), text);
  if (found == kFallbacks.end()) return false;
  fallback = static_cast<Fallback>(found - kFallbacks.begin());
  return true;
}

std::vector<FallbackEvent> fallbacks_of(const Plan& plan, const PlanSettings& settings) {
  std::vector<FallbackEvent> events;
  const bool reference = plan.device == reference_device().name;  // which has plain loops alone
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.runs_on == RunsOn::host) events.push_back(step_of_host(plan, i));
    else if (variant_of(step.schedule) == "plain" && !reference) events.push_back(plain_step(step, plan.device, settings));
    if (!widens(step)) continue;
    const std::string from(name_of(step.stage.inputs[0].dtype));
    events.push_back({"precision", from, "f32", Reason::type_without_unit, step.cost.seconds, step.name,
                      "Step '" + step.name + "' converts " + from + " to f32, because what reads it computes in f32 on " +
                          plan.device + "."});
  }
  return events;
}

Status check_fallback(const std::vector<FallbackEvent>& events, Fallback fallback) {
  if (fallback != Fallback::forbid) return ok();
  for (const FallbackEvent& event : events) {
    if (event.what != "operator") continue;
    std::string sentence = event.message;
    if (!sentence.empty() && sentence.back() == '.') sentence.pop_back();
    return Error{Reason::no_kernel, sentence + ", which --fallback forbids."};
  }
  return ok();
}

bool is_of_the_device(const Error& error) {
  return error.reason == Reason::device_lost || error.reason == Reason::out_of_memory ||
         error.reason == Reason::device_unusable;
}

void EventList::add(FallbackEvent event, Fallback fallback) {
  const bool device = event.what == "device";
  // Conversions are exact, and many; plain loops that were demanded are no surprise: notes.
  const bool asked_for = event.what == "precision" || event.reason == Reason::forced_other;
  const bool warning = device || (fallback != Fallback::allow && !asked_for);
  std::unique_lock lock(mutex_);
  const auto same = [&](const FallbackEvent& other) { return other.layer == event.layer && other.message == event.message; };
  if (!device && std::any_of(events_.begin(), events_.end(), same)) return;
  const std::string message = event.message;
  if (events_.size() < kMost) events_.push_back(std::move(event));
  lock.unlock();
  log(warning ? LogLevel::warning : LogLevel::info, message);
}

size_t EventList::size() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

const FallbackEvent* EventList::at(size_t index) const {
  const std::lock_guard lock(mutex_);
  return index < events_.size() ? &events_[index] : nullptr;
}

std::vector<FallbackEvent> EventList::all() const {
  const std::lock_guard lock(mutex_);
  return {events_.begin(), events_.end()};
}

}  // namespace sparkle
