#include "base/system/tracing_executor.h"

#include <algorithm>

namespace sparkle {

TracingExecutor::TracingExecutor(Executor& inner, Clock::time_point start)
    : inner_(inner), start_(start), of_worker_(static_cast<size_t>(inner.width())) {
  for (Own& own : of_worker_) own.spans.reserve(kMostSpans);
}

void TracingExecutor::run(int tasks, Work work, void* context) {
  struct Call {
    TracingExecutor& self;
    Work work;
    void* context;
  } call{*this, work, context};
  inner_.run(
      tasks,
      [](void* traced, int task, int worker) {
        const Call& c = *static_cast<const Call*>(traced);
        const double begin = c.self.now();
        c.work(c.context, task, worker);
        Own& own = c.self.of_worker_[static_cast<size_t>(worker)];
        if (own.spans.size() < kMostSpans) own.spans.push_back({c.self.step_, worker, begin, c.self.now()});
        else ++own.left_out;
      },
      &call);
}

std::vector<TaskSpan> TracingExecutor::spans() const {
  std::vector<TaskSpan> all;
  for (const Own& own : of_worker_) all.insert(all.end(), own.spans.begin(), own.spans.end());
  std::stable_sort(all.begin(), all.end(), [](const TaskSpan& a, const TaskSpan& b) { return a.begin < b.begin; });
  return all;
}

int64_t TracingExecutor::left_out() const {
  int64_t count = 0;
  for (const Own& own : of_worker_) count += own.left_out;
  return count;
}

}  // namespace sparkle
