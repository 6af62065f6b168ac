#include "base/system/seats.h"

#include <gtest/gtest.h>

#include <thread>

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

}  // namespace
}  // namespace sparkle
