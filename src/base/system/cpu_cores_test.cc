// Cores and their speeds from what Linux tells, and how many threads follow from them and from quotas, on trees of files as
// machines of each kind have them.
#include "base/system/cpu_cores.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/folder_testing.h"
#include "base/system/cpu_count.h"

namespace sparkle {
namespace {

class Machine : public testing::FolderTest {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text << "\n";
  }
  // A CPU and all that share its core. Zero: the system does not tell.
  void add(int cpu, const std::string& siblings, int capacity, int kilohertz) {
    const std::string of_cpu = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    write(of_cpu + "topology/thread_siblings_list", siblings);
    if (capacity > 0) write(of_cpu + "cpu_capacity", std::to_string(capacity));
    if (kilohertz > 0) write(of_cpu + "cpufreq/cpuinfo_max_freq", std::to_string(kilohertz));
    cpus_.push_back(cpu);
  }
  void add_servers_core(int core) {
    for (const int cpu : {core, core + 4}) add(cpu, std::to_string(core) + "," + std::to_string(core + 4), 0, 3500000);
  }
  void set_quota(const std::string& quota) {
    write("proc/self/cgroup", "0::/");
    write("sys/fs/cgroup/cpu.max", quota);
  }
  std::vector<CpuCore> cores() { return cpu_cores(cpus_, folder_.string()); }
  ThreadCount threads(int requested = 0) { return usable_threads(requested, cpus_, folder_.string()); }

  std::vector<int> cpus_;
};

TEST_F(Machine, PerformanceCoresWithTwoThreadsBesideEfficientOnes) {
  for (const int cpu : {0, 1}) add(cpu, "0-1", 0, 5000000);
  for (const int cpu : {2, 3}) add(cpu, "2-3", 0, 5000000);
  for (const int cpu : {4, 5, 6, 7}) add(cpu, std::to_string(cpu), 0, 4000000);
  write("sys/devices/cpu_core/cpus", "0-3");
  write("sys/devices/cpu_atom/cpus", "4-7");
  const std::vector<CpuCore> list = cores();
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(list[0].cpus, (std::vector{0, 1}));
  EXPECT_EQ(list[1].cpus, (std::vector{2, 3}));
  EXPECT_EQ(list[2].cpus, (std::vector{4}));
  EXPECT_EQ(list[1].speed, 1);
  EXPECT_EQ(list[5].speed, 0.4);
  EXPECT_EQ(threads().note, "6 threads (affinity 8 on 6 cores, 4 of them slower, cgroup quota none)");
  EXPECT_EQ(threads(3).note, "3 threads (requested; 6 by default: affinity 8 on 6 cores, 4 of them slower, cgroup quota none)");
}

TEST_F(Machine, AFewEfficientCoresAreLeftOut) {
  for (int core = 0; core < 6; ++core)
    for (const int thread : {0, 1})
      add(2 * core + thread, std::to_string(2 * core) + "-" + std::to_string(2 * core + 1), 0, 5000000);
  for (const int cpu : {12, 13, 14, 15}) add(cpu, std::to_string(cpu), 0, 4000000);
  write("sys/devices/cpu_atom/cpus", "12-15");
  EXPECT_EQ(threads().note, "6 threads (affinity 16 on 10 cores, 4 slower ones left out, cgroup quota none)");
}

TEST_F(Machine, BigAndLittleCores) {
  for (const int cpu : {0, 1, 2, 3}) add(cpu, std::to_string(cpu), 446, 1800000);
  for (const int cpu : {4, 5, 6, 7}) add(cpu, std::to_string(cpu), 1024, 2400000);
  EXPECT_EQ(cores().front().cpus, (std::vector{4}));
  EXPECT_EQ(threads().note, "4 threads (affinity 8, 4 slower ones left out, cgroup quota none)");
  cpus_ = {0, 1, 2, 3};  // a process that may use the little ones alone
  EXPECT_EQ(threads().note, "4 threads (affinity 4, cgroup quota none)");
}

TEST_F(Machine, CoresOfThreeKinds) {
  for (const int cpu : {0, 1, 2, 3}) add(cpu, std::to_string(cpu), 300, 0);
  for (const int cpu : {4, 5, 6}) add(cpu, std::to_string(cpu), 850, 0);
  add(7, "7", 1024, 0);
  EXPECT_EQ(threads().threads, 4);
}

TEST_F(Machine, ServerWithTwoThreadsACore) {
  for (int core = 0; core < 4; ++core) add_servers_core(core);
  ASSERT_EQ(cores().size(), 4u);
  EXPECT_EQ(cores()[1].cpus, (std::vector{1, 5}));
  EXPECT_EQ(threads().note, "4 threads (affinity 8 on 4 cores, cgroup quota none)");
}

TEST_F(Machine, ClocksOfOneKindDifferALittle) {
  for (const int cpu : {0, 1, 2, 3}) add(cpu, std::to_string(cpu), 1024, cpu < 2 ? 5700000 : 5300000);
  EXPECT_EQ(threads().note, "4 threads (affinity 4, cgroup quota none)");
}

TEST_F(Machine, SingleCore) {
  add(0, "0", 1024, 0);
  EXPECT_EQ(threads().note, "1 thread (affinity 1, cgroup quota none)");
}

TEST_F(Machine, NothingIsTold) {
  cpus_ = {0, 3, 9};
  EXPECT_EQ(cores().size(), 3u);
  EXPECT_EQ(threads().threads, 3);
}

TEST_F(Machine, SpeedsThatSomeLackAreNone) {
  add(0, "0", 1024, 3000000);
  add(1, "1", 0, 0);
  EXPECT_EQ(cores()[1].speed, 1);
}

TEST_F(Machine, QuotasAreRounded) {
  for (int core = 0; core < 4; ++core) add_servers_core(core);
  struct Case {
    const char* quota;
    int threads;
    bool over;
  };
  for (const Case& c : {Case{"150000 100000", 2, true}, Case{"140000 100000", 1, false}, Case{"200000 100000", 2, false},
                        Case{"50000 100000", 1, true}, Case{"1000 100000", 1, true}, Case{"max 100000", 4, false},
                        Case{"390000 100000", 4, true}, Case{"1600000 100000", 4, false}}) {
    set_quota(c.quota);
    EXPECT_EQ(threads().threads, c.threads) << c.quota;
    EXPECT_EQ(threads().over_quota, c.over) << c.quota;
  }
  set_quota("200000 100000");
  EXPECT_TRUE(threads(3).over_quota);
  EXPECT_FALSE(threads(1).over_quota);
}

TEST(CpuList, HoldsRangesAndNumbers) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (std::vector{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
  EXPECT_EQ(parse_cpu_list("nonsense"), std::vector<int>{});
  EXPECT_EQ(parse_cpu_list("4,3-1,9"), std::vector{4});
  EXPECT_EQ(parse_cpu_list("2-99999999999"), std::vector<int>{});
  EXPECT_EQ(parse_cpu_list("-5"), std::vector<int>{});
}

}  // namespace
}  // namespace sparkle
