// The pool runs every task exactly once, whoever calls and however often, and leaves the callers' floating-point state alone.
#include "base/system/thread_pool.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>
#endif

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "base/system/cpu_count.h"
#include "base/system/denormals.h"
#include "base/system/per_worker.h"
#include "base/system/sanitized.h"

namespace sparkle {
namespace {

// Runs `tasks` tasks and checks that each ran once, with a worker index that is in range and held by one thread at a time.
void check_run(Executor& pool, int tasks) {
  std::vector<int> runs(static_cast<size_t>(tasks), 0);
  std::vector<std::atomic<int>> inside(static_cast<size_t>(pool.width()));
  std::atomic<int> faults{0};
  parallel_for(pool, tasks, [&](int task, int worker) {
    if (worker < 0 || worker >= pool.width()) {
      ++faults;
      return;
    }
    auto& mine = inside[static_cast<size_t>(worker)];
    if (mine.fetch_add(1) != 0) ++faults;
    ++runs[static_cast<size_t>(task)];  // plain: a task that runs twice at once is a race
    mine.fetch_sub(1);
  });
  EXPECT_EQ(faults.load(), 0);
  for (int task = 0; task < tasks; ++task) ASSERT_EQ(runs[static_cast<size_t>(task)], 1) << "task " << task << " of " << tasks;
}

class ThreadPoolWidths : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolWidths, RunsEveryTaskOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.width(), GetParam());
  for (int tasks : {0, 1, 2, 3, 7, 64, 1000}) check_run(pool, tasks);
}

TEST_P(ThreadPoolWidths, RangesHoldEveryItemOnce) {
  ThreadPool pool(GetParam());
  for (const int64_t items : {0, 1, 5, 64, 1001})
    for (const int64_t tasks : {1, 2, 3, 7, 64}) {
      std::vector<int> seen(static_cast<size_t>(items), 0);
      std::atomic<int64_t> ranges{0}, longest{0}, shortest{items};
      for_each_range(pool, items, tasks, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        ++ranges;
        for (int64_t most = longest; end - begin > most && !longest.compare_exchange_weak(most, end - begin);) {
        }
        for (int64_t least = shortest; end - begin < least && !shortest.compare_exchange_weak(least, end - begin);) {
        }
      });
      EXPECT_EQ(ranges, tasks);
      EXPECT_LE(longest - shortest, 1) << items << " items, " << tasks << " tasks";
      EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(items), 1)) << items << " items, " << tasks << " tasks";
    }
}

TEST_P(ThreadPoolWidths, ManySmallJobs) {
  ThreadPool pool(GetParam());
  int64_t sum = 0;
  for (int job = 0; job < 20000; ++job) {
    std::atomic<int> done{0};
    parallel_for(pool, 1 + job % 5, [&](int, int) { done.fetch_add(1, std::memory_order_relaxed); });
    sum += done.load() - (1 + job % 5);
  }
  EXPECT_EQ(sum, 0);
}

TEST_P(ThreadPoolWidths, SleepingWorkersWakeUp) {
  ThreadPool pool(ThreadPoolOptions{.threads = GetParam(), .spin_seconds = 0});
  for (int job = 0; job < 200; ++job) {
    if (job % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check_run(pool, 3);
  }
}

TEST_P(ThreadPoolWidths, SeveralCallersAtOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 5; ++caller)
    callers.emplace_back([&pool, caller] {
      for (int job = 0; job < 1000; ++job) check_run(pool, (caller + 1) * 4);
    });
  for (auto& caller : callers) caller.join();
}

TEST_P(ThreadPoolWidths, NestedRunsFinish) {
  ThreadPool pool(GetParam());
  std::vector<std::thread> callers;
  std::atomic<int> inner{0};
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([&] {
      for (int job = 0; job < 50; ++job)
        parallel_for(pool, 6, [&](int, int) { parallel_for(pool, 5, [&](int, int) { ++inner; }); });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(inner.load(), 3 * 50 * 6 * 5);
}

// Each worker that takes a task keeps it until all others are done: the rest of its share is the others' to take.
TEST_P(ThreadPoolWidths, AWorkerThatIsHeldUpHoldsOneTask) {
  ThreadPool pool(GetParam());
  for (int job = 0; job < 200; ++job) {
    constexpr int kTasks = 64;
    std::atomic<int> held{0}, done{0};
    parallel_for(pool, kTasks, [&](int, int worker) {
      if (worker != 0) {
        ++held;
        while (held + done < kTasks) std::this_thread::yield();
      }
      ++done;
    });
    ASSERT_EQ(done, kTasks);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, ThreadPoolWidths, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, IsBuiltAndDestroyedAtAnyMoment) {
  for (int i = 0; i < 300; ++i) {
    ThreadPool pool(1 + i % 4);
    if (i % 3 == 0) check_run(pool, i % 7);
  }
}

TEST(ThreadPool, LongTasksAreWaitedFor) {
  ThreadPool pool(3);
  std::atomic<int> done{0};
  parallel_for(pool, 3, [&](int task, int) {
    if (task != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than any spin
    ++done;
  });
  EXPECT_EQ(done.load(), 3);
}

TEST(ThreadPool, FlushesDenormalsOnlyWhereAsked) {
  const bool before = ScopedFlushDenormals::flushing();
  for (bool flush : {false, true}) {
    ThreadPool pool(ThreadPoolOptions{.threads = 2, .flush_denormals = flush});
    std::atomic<int> flushed{0};
    volatile float tiny = 1e-30f;
    std::atomic<int> zeros{0};
    parallel_for(pool, 64, [&](int, int) {
      flushed += ScopedFlushDenormals::flushing();
      zeros += (tiny * 1e-12f == 0.0f);
    });
#if defined(__x86_64__) || defined(__aarch64__)
    EXPECT_EQ(flushed.load(), flush ? 64 : 0);
    EXPECT_EQ(zeros.load(), flush ? 64 : 0);
#endif
    EXPECT_EQ(ScopedFlushDenormals::flushing(), before);
  }
}

TEST(ThreadCount, SaysWhy) {
  const ThreadCount count = usable_threads();
  EXPECT_GE(count.threads, 1);
  EXPECT_NE(count.note.find("affinity"), std::string::npos);
  EXPECT_NE(count.note.find("cgroup quota"), std::string::npos);
  EXPECT_EQ(usable_threads(5).threads, 5);
  EXPECT_NE(usable_threads(5).note.find("5 threads (requested"), std::string::npos) << usable_threads(5).note;
}

TEST(PerWorker, MakesOneForEachThatWorks) {
  ThreadPool pool(3);
  struct Own {
    int owner = -1, tasks = 0;
  };
  PerWorker<Own> all(pool);
  std::atomic<int> made{0}, tasks{0}, strangers{0};
  parallel_for(pool, 200, [&](int, int worker) {
    Own& own = all.of(worker, [&](Own& fresh) {
      fresh.owner = worker;
      ++made;
    });
    if (own.owner != worker) ++strangers;
    ++own.tasks;  // plain: a worker's own
    ++tasks;
  });
  EXPECT_EQ(tasks, 200);
  EXPECT_EQ(strangers, 0);
  EXPECT_GE(made, 1);
  EXPECT_LE(made, pool.width());
  int counted = 0;
  for (int worker = 0; worker < pool.width(); ++worker) counted += all.of(worker, [](Own&) {}).tasks;
  EXPECT_EQ(counted, 200);
}

#if defined(__linux__)
// A caller that is bound to the CPU where the worker last ran takes it away from the worker: it may use all others only.
TEST(Seats, AWorkerLeavesItsCallersCpu) {
  cpu_set_t all;
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) GTEST_SKIP() << "this process has one CPU";
  ThreadPool pool(2);
  std::atomic<int> seen{-1};  // the CPU of the worker's last task
  std::atomic<bool> may_use_seen{true};
  // Jobs until the worker has taken a task that `done` is content with; a worker may come late to any number of them.
  const auto until = [&](auto done) {
    for (int job = 0; job < 20000 && !done(); ++job) {
      parallel_for(pool, 8, [&](int, int worker) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < end) {
        }
        if (worker == 0) return;
        cpu_set_t mine;
        CPU_ZERO(&mine);
        sched_getaffinity(0, sizeof mine, &mine);
        const int taken = seen.load();
        if (taken < 0) {
          seen = sched_getcpu();
        } else {
          may_use_seen = CPU_ISSET(taken, &mine) != 0;
        }
      });
    }
    return done();
  };
  ASSERT_TRUE(until([&] { return seen.load() >= 0; })) << "the worker took no task";
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(seen.load(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "threads cannot be bound here";
    EXPECT_TRUE(until([&] { return !may_use_seen.load(); }));
  }).join();
}
#endif

#if defined(__linux__)
std::atomic<int> stopped{0};
std::atomic<bool> go_on{false};

// Workers that get no CPU between two jobs: stopped by a signal whose handler does not return. The caller does all by itself.
TEST(ThreadPool, WorkersThatNeverComeAreNotWaitedFor) {
  if (kSanitized) GTEST_SKIP() << "sanitizers hold signals back";
  ThreadPool pool(3);
  std::array<std::atomic<pthread_t>, 3> threads{};
  for (int worker = 1; worker < 3; ++worker)
    while (threads[static_cast<size_t>(worker)] == pthread_t{})
      parallel_for(pool, 8, [&](int, int who) { threads[static_cast<size_t>(who)] = pthread_self(); });
  struct sigaction stop{}, before{};
  stop.sa_handler = [](int) {
    ++stopped;
    while (!go_on) usleep(100);
  };
  ASSERT_EQ(sigaction(SIGUSR1, &stop, &before), 0);
  for (int worker = 1; worker < 3; ++worker) ASSERT_EQ(pthread_kill(threads[static_cast<size_t>(worker)], SIGUSR1), 0);
  while (stopped < 2) std::this_thread::yield();
  std::atomic<int> others{0};
  for (int job = 0; job < 100; ++job) parallel_for(pool, 8, [&](int, int worker) { others += worker != 0; });
  EXPECT_EQ(others, 0);
  go_on = true;
  sigaction(SIGUSR1, &before, nullptr);
  check_run(pool, 100);
}
#endif

class CgroupQuota : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(::testing::TempDir()) / (std::string("sparkle_cgroup_") + test->name());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::optional<double> quota() { return cgroup_cpu_quota(root_.string()); }
  std::filesystem::path root_;
};

TEST_F(CgroupQuota, NoneWithoutFiles) { EXPECT_FALSE(quota().has_value()); }

TEST_F(CgroupQuota, VersionTwoTakesTheTightestAncestor) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(quota().has_value());
  write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(CgroupQuota, VersionTwoInAContainer) {
  write("proc/self/cgroup", "0::/a/path/of/the/host\n");
  write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(CgroupQuota, VersionOne) {
  write("proc/self/cgroup", "7:cpuset:/x\n4:cpu,cpuacct:/docker/1\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(quota().has_value());
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(quota(), 3.0);
}

TEST_F(CgroupQuota, NonsenseIsNoQuota) {
  write("proc/self/cgroup", "nonsense\n0::/a\n:::\n");
  write("sys/fs/cgroup/a/cpu.max", "abc def\n");
  EXPECT_FALSE(quota().has_value());
}

}  // namespace
}  // namespace sparkle
