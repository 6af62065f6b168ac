// What the executor puts down is what ran: each task once, in its worker, in order, under the step that was told.
#include "base/system/tracing_executor.h"

#include <gtest/gtest.h>

#include "base/system/thread_pool.h"

namespace sparkle {
namespace {

TEST(TracingExecutor, PutsDownEachTaskInItsWorker) {
  ThreadPool pool(3);
  TracingExecutor traced(pool, TracingExecutor::Clock::now());
  EXPECT_EQ(traced.width(), 3);
  std::vector<int> worker_of(50, -1);
  for (int step = 0; step < 2; ++step) {
    traced.set_step(step);
    parallel_for(traced, 50, [&](int task, int worker) { worker_of[static_cast<size_t>(task)] = worker; });
  }
  const std::vector<TaskSpan> spans = traced.spans();
  ASSERT_EQ(spans.size(), 100u);
  std::vector<double> ends(3, 0);
  for (size_t i = 0; i < spans.size(); ++i) {
    const TaskSpan& s = spans[i];
    EXPECT_EQ(s.step, i < 50 ? 0 : 1);  // the second step begins when all of the first are done
    EXPECT_LE(s.begin, s.end);
    if (i > 0) {
      EXPECT_LE(spans[i - 1].begin, s.begin);
    }
    double& before = ends[static_cast<size_t>(s.worker)];
    EXPECT_LE(before, s.begin) << "two tasks at once in worker " << s.worker;
    before = s.end;
  }
  std::vector<int> counted(3, 0), wanted(3, 0);
  for (const int worker : worker_of) ++wanted[static_cast<size_t>(worker)];
  for (size_t i = 50; i < 100; ++i) ++counted[static_cast<size_t>(spans[i].worker)];
  EXPECT_EQ(counted, wanted);
}

TEST(TracingExecutor, LeavesOutWhatIsTooMuch) {
  InlineExecutor alone;
  TracingExecutor traced(alone, TracingExecutor::Clock::now());
  int ran = 0;
  parallel_for(traced, static_cast<int>(TracingExecutor::kMostSpans) + 10, [&](int, int) { ++ran; });
  EXPECT_EQ(ran, static_cast<int>(TracingExecutor::kMostSpans) + 10);
  EXPECT_EQ(traced.spans().size(), TracingExecutor::kMostSpans);
  EXPECT_EQ(traced.left_out(), 10);
}

}  // namespace
}  // namespace sparkle
