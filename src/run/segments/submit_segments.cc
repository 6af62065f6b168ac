#include "run/segments/submit_segments.h"

#include <chrono>

namespace sparkle {
namespace {

class SegmentRun {
 public:
  SegmentRun(const PreparedPlan& plan, Backend& backend, const RunSlots& slots, const SubmitOptions& options,
             std::vector<StepTime>* times)
      : plan_(plan), backend_(backend), slots_(slots), options_(options), times_(times), last_(options.after) {}

  Result<Token> run() {
    for (const Segment& segment : plan_.segments) {
      const bool is_last = &segment == &plan_.segments.back();
      if (Status done = one(segment, is_last); !done.ok()) {
        // What was handed over works on memory that goes now.
        (void)backend_.wait(computed_);
        (void)backend_.wait(last_);
        return done.take_error();
      }
    }
    return last_;
  }

 private:
  Status one(const Segment& segment, bool is_last) {
    switch (segment.side) {
      case RunsOn::device: return on_device(segment, is_last);
      case RunsOn::host: return on_host(segment);
      case RunsOn::link: break;
    }
    return over_link(segment, is_last);
  }

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  // The device's own clock begins anew with each submission; segments stand where the host handed them over.
  Status keep_times(Backend& backend, Token token, double begin) {
    SPARKLE_TRY(own, backend.timestamps(token));
    for (const StepTime& t : own) times_->push_back({begin + t.begin, begin + t.end});
    return ok();
  }

  Status on_device(const Segment& segment, bool is_last) {
    const double begin = now();
    const SubmitOptions options{last_, times_ != nullptr, is_last ? options_.keep_alive : nullptr};
    SPARKLE_TRY(token, backend_.submit(*segment.program, slots_.device, options));
    last_ = computed_ = token;
    if (!times_) return ok();
    SPARKLE_CHECK(backend_.wait(token));
    return keep_times(backend_, token, begin);
  }

  // What the work itself has to say is told to who waits for it, not for a copy behind it.
  Status wait_for_device() {
    if (computed_.value != 0) SPARKLE_CHECK(backend_.wait(std::exchange(computed_, {})));
    return last_.value != 0 ? backend_.wait(last_) : ok();
  }

  Status on_host(const Segment& segment) {
    SPARKLE_CHECK(wait_for_device());
    const double begin = now();
    SPARKLE_TRY(token, plan_.host->submit(*segment.program, slots_.host, {{}, times_ != nullptr, nullptr}));
    SPARKLE_CHECK(plan_.host->wait(token));
    return times_ ? keep_times(*plan_.host, token, begin) : ok();
  }

  CopyRegion region_of(const PlanStep& step) const {
    const auto place = [&](int tensor) {
      const PlanTensor& t = plan_.plan->tensors[static_cast<size_t>(tensor)];
      const size_t index = static_cast<size_t>(t.index), inputs = plan_.plan->inputs.size();
      switch (t.kind) {
        case PlaceKind::host: return std::pair{slots_.host[0], t.offset};
        case PlaceKind::input: return std::pair{slots_.device[1 + index], int64_t{0}};
        case PlaceKind::output: return std::pair{slots_.device[1 + inputs + index], int64_t{0}};
        default: return std::pair{slots_.device[0], t.offset};
      }
    };
    const auto [from, from_offset] = place(step.inputs[0]);
    const auto [to, to_offset] = place(step.outputs[0]);
    return {from, from_offset, to, to_offset, step.stage.outputs[0].bytes()};
  }

  // One after the other where their times are asked for.
  Status over_link(const Segment& segment, bool is_last) {
    std::vector<CopyRegion> regions;
    for (size_t i = 0; i < segment.count; ++i) {
      const double begin = now();
      regions.push_back(region_of(plan_.plan->steps[segment.first + i]));
      if (!times_ && i + 1 < segment.count) continue;
      SPARKLE_TRY(token, backend_.copy(regions, last_));
      last_ = token;
      if (!times_) continue;
      SPARKLE_CHECK(backend_.wait(token));
      times_->push_back({begin, now()});
      regions.clear();
    }
    if (!is_last) return ok();
    if (computed_.value != 0) SPARKLE_CHECK(backend_.wait(std::exchange(computed_, {})));
    if (options_.keep_alive) backend_.keep_until(last_, *options_.keep_alive);
    return ok();
  }

  const PreparedPlan& plan_;
  Backend& backend_;
  const RunSlots& slots_;
  const SubmitOptions& options_;
  std::vector<StepTime>* const times_;
  Token last_;      // everything before is complete with it
  Token computed_;  // a submission whose own errors nobody has asked for
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

RunSlots slots_of(const PreparedPlan& plan, const RunArenas& arenas, std::span<Buffer* const> places) {
  RunSlots slots;
  slots.device.push_back(arenas.device.get());
  slots.device.insert(slots.device.end(), places.begin(), places.end());
  for (const auto& constant : plan.constants) slots.device.push_back(constant.get());
  if (!plan.host) return slots;
  slots.host.push_back(arenas.host.get());
  for (const auto& constant : plan.host_constants) slots.host.push_back(constant.get());
  return slots;
}

Result<Token> submit_segments(const PreparedPlan& plan, Backend& backend, const RunSlots& slots, const SubmitOptions& options,
                              std::vector<StepTime>* times) {
  if (plan.host) return SegmentRun(plan, backend, slots, options, options.timestamps ? times : nullptr).run();
  return backend.submit(*plan.segments[0].program, slots.device, options);
}

}  // namespace sparkle
