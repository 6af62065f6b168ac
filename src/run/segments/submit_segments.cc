#include "run/segments/submit_segments.h"

#include <chrono>
#include <functional>

#include "run/wipe.h"

namespace sparkle {
namespace {

// A tensor of a plan in the memory of a run.
struct Part {
  Buffer* buffer = nullptr;
  int64_t offset = 0;
};

Part part_of(const PreparedPlan& plan, const RunSlots& slots, int tensor) {
  const PlanTensor& t = plan.plan->tensors[static_cast<size_t>(tensor)];
  const size_t index = static_cast<size_t>(t.index), inputs = plan.plan->inputs.size();
  switch (t.kind) {
    case PlaceKind::host: return {slots.host[0], t.offset};
    case PlaceKind::input: return {slots.device[1 + index], 0};
    case PlaceKind::output: return {slots.device[1 + inputs + index], 0};
    default: return {slots.device[0], t.offset};
  }
}

class SegmentRun {
 public:
  SegmentRun(const PreparedPlan& plan, Backend& backend, const RunSlots& slots, const SubmitOptions& options,
             std::vector<StepTime>* times)
      : plan_(plan), backend_(backend), slots_(slots), options_(options), times_(times), last_(options.after) {}

  Result<Token> run(std::span<const Segment> segments, const std::function<Status(const Segment&)>& before = {}) {
    for (const Segment& segment : segments) {
      const bool is_last = &segment == &segments.back();
      Status done = ok();
      if (before) done = wait_for_device();
      if (before && done.ok()) done = before(segment);
      if (done.ok()) done = one(segment, is_last);
      if (!done.ok()) {
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
    const Part from = part_of(plan_, slots_, step.inputs[0]), to = part_of(plan_, slots_, step.outputs[0]);
    return {from.buffer, from.offset, to.buffer, to.offset, step.stage.outputs[0].bytes()};
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
  if (plan.host) return SegmentRun(plan, backend, slots, options, options.timestamps ? times : nullptr).run(plan.segments);
  return backend.submit(*plan.segments[0].program, slots.device, options);
}

Status run_steps_wiped(const PreparedPlan& plan, Backend& backend, const RunSlots& slots, std::byte wiped_to) {
  SPARKLE_TRY(segments, record(*plan.plan, plan.kernels, backend, plan.host.get(), 1));
  const auto wipe_results = [&](const Segment& segment) -> Status {
    for (size_t i = segment.first; i < segment.first + segment.count; ++i) {
      const PlanStep& step = plan.plan->steps[i];
      for (int tensor : step.outputs) {
        const Part part = part_of(plan, slots, tensor);
        const TensorDesc& desc = plan.plan->tensors[static_cast<size_t>(tensor)].desc;
        SPARKLE_CHECK(wipe_elements(backend, *part.buffer, part.offset, desc, wiped_to));
      }
    }
    return ok();
  };
  SPARKLE_TRY(token, SegmentRun(plan, backend, slots, {}, nullptr).run(segments, wipe_results));
  return backend.wait(token);
}

}  // namespace sparkle
