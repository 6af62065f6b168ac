#include "run/pipeline/pipeline_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
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
  // Items of a device in the order in which they were handed over, each with its stages.
  using Stages = std::array<PipelineSpan*, kPipelineLanes>;
  std::map<int, std::map<int64_t, Stages>> found;
  for (PipelineSpan& span : spans) found[span.device][span.item][static_cast<size_t>(span.lane)] = &span;
  constexpr size_t kFirst = static_cast<size_t>(PipelineLane::upload), kLast = static_cast<size_t>(PipelineLane::download);
  for (auto& [device, numbered] : found) {
    std::vector<Stages> items;
    for (const auto& [number, stages] : numbered)
      if (stages[0]) items.push_back(stages);
    std::sort(items.begin(), items.end(), [](const Stages& a, const Stages& b) { return a[0]->begin < b[0]->begin; });
    // Ends are heard of in any order, but none comes after that of what waited for it.
    std::array<double, kPipelineLanes> lane;
    lane.fill(std::numeric_limits<double>::infinity());
    for (size_t i = items.size(); i-- > 0;) {
      double next = items[i][kLast + 1] ? items[i][kLast + 1]->begin : std::numeric_limits<double>::infinity();
      for (size_t s = kLast; s >= kFirst; --s)
        if (PipelineSpan* const span = items[i][s]) next = lane[s] = span->end = std::min({span->end, next, lane[s]});
    }
    lane.fill(0);
    for (const Stages& stages : items) {
      double before = 0;
      for (size_t s = 0; s < kPipelineLanes; ++s) {
        PipelineSpan* const span = stages[s];
        if (!span) continue;
        const bool of_device = s >= kFirst && s <= kLast;
        span->begin = std::min(std::max({span->begin, lane[s], of_device ? before : 0.0}), span->end);
        lane[s] = span->end;
        if (of_device) before = span->end;
      }
    }
  }
  std::stable_sort(spans.begin(), spans.end(), [](const PipelineSpan& a, const PipelineSpan& b) {
    return std::tuple(a.end, a.begin, a.lane) < std::tuple(b.end, b.begin, b.lane);
  });
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
