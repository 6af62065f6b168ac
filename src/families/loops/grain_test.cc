#include "families/loops/grain.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

Device with_cores(int cores) {
  Device device;
  device.cores = cores;
  return device;
}

TEST(Grain, TasksAreWorthItAndAFewForEachCore) {
  EXPECT_EQ(planned_tasks(1e9, 1, 4, with_cores(1)), 1);
  EXPECT_EQ(planned_tasks(1.9, 1, 4, with_cores(2)), 1);
  EXPECT_EQ(planned_tasks(3.5, 1, 4, with_cores(2)), 3);
  EXPECT_EQ(planned_tasks(1e9, 1, 4, with_cores(2)), 8);
  EXPECT_EQ(planned_tasks(1e9, 1, 8, with_cores(2)), 16);
  EXPECT_EQ(planned_tasks(1e300, 1e-300, 4, with_cores(2)), 8);
  EXPECT_EQ(planned_tasks(0, 1, 4, with_cores(4)), 1);
}

TEST(Grain, EvenTasksAreAsManyForEachCore) {
  EXPECT_EQ(even_tasks(1e9, 1, 4, with_cores(1)), 1);
  EXPECT_EQ(even_tasks(1.9, 1, 4, with_cores(2)), 1);
  EXPECT_EQ(even_tasks(2, 1, 4, with_cores(2)), 2);
  EXPECT_EQ(even_tasks(3.5, 1, 4, with_cores(2)), 2);
  EXPECT_EQ(even_tasks(7.5, 1, 4, with_cores(2)), 6);
  EXPECT_EQ(even_tasks(1e9, 1, 4, with_cores(2)), 8);
  EXPECT_EQ(even_tasks(5, 1, 4, with_cores(16)), 5);
  EXPECT_EQ(even_tasks(40, 1, 4, with_cores(16)), 32);
}

// Whatever is worth cutting is cut into the tasks that were planned.
TEST(Grain, SaysSoManyTasks) {
  for (const int64_t elements : {8192, 10001, 123457, 1 << 20})
    for (int64_t tasks = 1; tasks <= 64; ++tasks)
      EXPECT_EQ(tasks_of(grain_of(elements, tasks), elements, elements, 3), tasks) << elements;
  EXPECT_EQ(grain_of(0, 4), 1);
  EXPECT_EQ(grain_of(3, 64), 1);
}

TEST(Grain, TasksAreNotMoreThanThereAreItems) {
  EXPECT_EQ(tasks_of(1, 1000, 7, 2), 7);
  EXPECT_EQ(tasks_of(1000, 1000, 7, 2), 1);
  EXPECT_EQ(tasks_of(1, 0, 0, 2), 1);
}

// Schedules that no family made: four tasks for each worker.
TEST(Grain, WithoutOneTheWorkersCount) {
  EXPECT_EQ(tasks_of(0, 1000, 1000, 1), 1);
  EXPECT_EQ(tasks_of(0, 1000, 1000, 3), 12);
  EXPECT_EQ(tasks_of(0, 1000, 5, 3), 5);
}

TEST(Grain, WhatIsMovedIsCutByItsBytes) {
  EXPECT_EQ(moving_tasks(65535, 100, 4), 1);
  EXPECT_EQ(moving_tasks(3 * 65536, 100, 4), 3);
  EXPECT_EQ(moving_tasks(int64_t{1} << 40, 100, 4), 16);
  EXPECT_EQ(moving_tasks(int64_t{1} << 40, 5, 4), 5);
  EXPECT_EQ(moving_tasks(0, 0, 4), 1);
}

}  // namespace
}  // namespace sparkle
