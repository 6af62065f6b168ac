#include "run/pipeline/pipeline_trace.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sparkle {

const char* name_of(PipelineLane lane) {
  constexpr std::array<const char*, kPipelineLanes> names{"hand over", "upload", "compute", "download", "bring back"};
  return names[static_cast<size_t>(lane)];
}

int PipelineTrace::add_device(std::string name) {
  const std::lock_guard lock(mutex_);
  devices_.push_back(std::move(name));
  return static_cast<int>(devices_.size()) - 1;
}

void PipelineTrace::add(const PipelineSpan& span) {
  const std::lock_guard lock(mutex_);
  if (spans_.size() < kMost) spans_.push_back(span);
  else ++left_out_;
}

std::vector<std::string> PipelineTrace::devices() const {
  const std::lock_guard lock(mutex_);
  return devices_;
}

int64_t PipelineTrace::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

std::vector<PipelineSpan> PipelineTrace::spans() const {
  std::vector<PipelineSpan> spans;
  {
    const std::lock_guard lock(mutex_);
    spans = spans_;
  }
  std::stable_sort(spans.begin(), spans.end(), [](const PipelineSpan& a, const PipelineSpan& b) {
    return std::pair(a.end, a.lane) < std::pair(b.end, b.lane);
  });
  std::map<std::pair<int, PipelineLane>, double> lanes;  // when what came before ended: in the lane,
  std::map<std::pair<int, int64_t>, double> items;       // and of the item on its device
  for (PipelineSpan& span : spans) {
    const bool of_device = span.lane != PipelineLane::hand_over && span.lane != PipelineLane::bring_back;
    double& lane = lanes[{span.device, span.lane}];
    span.begin = std::max(span.begin, lane);
    if (of_device) {
      double& item = items[{span.device, span.item}];
      span.begin = std::max(span.begin, item);
      item = span.end;
    }
    span.begin = std::min(span.begin, span.end);
    lane = span.end;
  }
  return spans;
}

PipelineWatch::PipelineWatch(std::shared_ptr<PipelineTrace> trace, std::string device)
    : trace_(std::move(trace)), device_(trace_->add_device(std::move(device))) {
  for (Waiter& waiter : waiters_) waiter.thread = std::thread([this, &waiter] { wait_for(waiter); });
}

PipelineWatch::~PipelineWatch() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  for (Waiter& waiter : waiters_) waiter.thread.join();
}

void PipelineWatch::host(PipelineLane lane, int64_t item, double begin) {
  trace_->add({device_, item, lane, begin, trace_->now()});
}

void PipelineWatch::device(PipelineLane lane, int64_t item, double begin, const std::shared_ptr<Backend>& backend,
                           Token token) {
  const double now = trace_->now();
  if (backend->done(token)) return trace_->add({device_, item, lane, begin, now});
  {
    const std::lock_guard lock(mutex_);
    waiters_[static_cast<size_t>(lane) - 1].queue.push_back({{device_, item, lane, begin, 0}, backend, token});
  }
  changed_.notify_all();
}

void PipelineWatch::wait_for(Waiter& waiter) {
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [&] { return ended_ || !waiter.queue.empty(); });
    if (waiter.queue.empty()) return;
    Waited waited = std::move(waiter.queue.front());
    waiter.queue.pop_front();
    lock.unlock();
    (void)waited.backend->wait(waited.token);  // its error is the item's, which hears of it by itself
    waited.span.end = trace_->now();
    trace_->add(waited.span);
    waited.backend.reset();
    lock.lock();
  }
}

}  // namespace sparkle
