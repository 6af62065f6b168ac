#include "base/system/seats.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sparkle {
namespace {

TEST(Seats, AWorkerLeavesATakenCpu) {
  std::thread([] {
    const int before = current_cpu();
    if (before < 0) GTEST_SKIP() << "the system does not tell on which CPU a thread runs";
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one CPU";
    Seat seat;
    seat.leave(before);  // nobody sits there yet
    seat.sit_down();
    for (int i = 0; i < 100 && current_cpu() == before; ++i) {
      seat.rest();
      seat.leave(before);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_NE(current_cpu(), before);
  }).join();
}

// CPUs 0 and 4 are threads of one core, and so on.
TEST(Seats, AreOnOtherCoresWhereThereAreSome) {
  const std::vector<int> core_of = {0, 1, 2, 3, 0, 1, 2, 3};
  EXPECT_EQ(cpus_beside(1, {0, 1, 4, 5}, core_of), (std::vector{0, 4}));
  EXPECT_EQ(cpus_beside(1, {0, 1, 4, 5}, {}), (std::vector{0, 4, 5}));
  EXPECT_EQ(cpus_beside(1, {1, 5}, core_of), (std::vector{5}));
  EXPECT_EQ(cpus_beside(1, {1}, core_of), (std::vector{1}));
  EXPECT_EQ(cpus_beside(8, {7, 8, 9}, core_of), (std::vector{7, 9}));
  EXPECT_EQ(cpus_beside(0, {0, 1}, {-1, -1}), (std::vector{1}));
}

// A thread that works, or sleeps, until it is let go.
class Sitter {
 public:
  explicit Sitter(bool works)
      : thread_([this, works] {
          seat.sit_down();
          cpu = current_cpu();
          seated_ = true;
          seated_.notify_one();
          if (!works) done_.wait(false);
          while (!done_) cpu = current_cpu();
        }) {
    seated_.wait(false);
  }
  ~Sitter() {
    done_ = true;
    done_.notify_one();
    thread_.join();
  }
  Seat seat;
  std::atomic<int> cpu{-1};

 private:
  std::atomic<bool> seated_{false}, done_{false};
  std::thread thread_;
};

TEST(Seats, TellWhetherTheirWorkerRuns) {
  Sitter works(true), sleeps(false);
  if (works.seat.ran() < 0) GTEST_SKIP() << "the system does not tell, or there is one CPU";
  for (const int64_t before = works.seat.ran(); works.seat.ran() == before;) std::this_thread::yield();
  for (int64_t before = -1; before != sleeps.seat.ran(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    before = sleeps.seat.ran();
  EXPECT_EQ(Seat().ran(), -1);
}

TEST(Seats, AWorkerComesToAFreeCpu) {
  Sitter sitter(true);
  if (sitter.seat.ran() < 0) GTEST_SKIP() << "the system does not tell, or there is one CPU";
  const int first = sitter.cpu, here = current_cpu();
  // To this CPU and to the one that it began on: one of them is another than it is on. The system may move it again at once.
  for (const int to : {here, first, here}) do {
      sitter.seat.come(to);
      std::this_thread::yield();
    } while (sitter.cpu != to);
  sitter.seat.come(-1);
  Seat().come(here);  // nobody sits there
}

}  // namespace
}  // namespace sparkle
