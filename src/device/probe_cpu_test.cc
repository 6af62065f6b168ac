// The probe describes the machine it runs on within sense, and survives files that lie or are missing.
#include "device/probe_cpu.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sparkle {
namespace {

TEST(ProbeCpu, DescribesThisMachine) {
  const Device device = probe_cpu();
  EXPECT_EQ(device.kind, DeviceKind::cpu);
  EXPECT_FALSE(device.name.empty());
  EXPECT_FALSE(device.architecture.empty());
  EXPECT_GE(device.cores, 1);
  EXPECT_NE(device.thread_note.find("affinity"), std::string::npos);
  EXPECT_FALSE(device.calibrated);
  ASSERT_FALSE(device.memory.empty());
  EXPECT_EQ(device.memory.back().name, "DRAM");
  EXPECT_GT(device.memory.back().bytes, 1 << 20);
  for (size_t i = 0; i + 1 < device.memory.size(); ++i) {
    EXPECT_GT(device.memory[i].bytes, 0);
    EXPECT_GE(device.memory[i].shared_by, 1);
    EXPECT_LT(device.memory[i].bytes, device.memory[i + 1].bytes);
  }
  for (const MathUnit& unit : device.units) {
    EXPECT_FALSE(unit.name.empty());
    EXPECT_GT(unit.m * unit.n * unit.k, 1) << unit.name;
    EXPECT_GT(unit.registers, 0) << unit.name;
    EXPECT_EQ(device.unit(unit.name), &unit);  // names are unique
  }
}

TEST(ProbeCpu, UnitsFollowTheInstructionSet) {
  const Device device = probe_cpu();
#if defined(__x86_64__)
  EXPECT_EQ(device.unit("avx2") != nullptr, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(device.unit("avx512") != nullptr, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"));
  if (const MathUnit* unit = device.unit("avx512")) {
    EXPECT_EQ(unit->n, 16);
    EXPECT_EQ(unit->registers, 32);
    EXPECT_EQ(unit, &device.units.front());
  }
#elif defined(__aarch64__)
  ASSERT_NE(device.unit("neon"), nullptr);
  EXPECT_EQ(device.unit("neon")->n, 4);
  if (const MathUnit* unit = device.unit("sve")) {
    EXPECT_EQ(unit->n % 4, 0);
    EXPECT_GE(unit->n, 4);
  }
#endif
}

TEST(ProbeCpu, ThreadsCanBeOverridden) {
  const Device device = probe_cpu({.threads = 3});
  EXPECT_EQ(device.cores, 3);
  EXPECT_NE(device.thread_note.find("requested"), std::string::npos);
}

TEST(ProbeCpu, KnowsArchitectures) {
  EXPECT_EQ(x86_architecture("AuthenticAMD", 25, 17, 1), "zen4");
  EXPECT_EQ(x86_architecture("AuthenticAMD", 25, 0x50, 0), "zen3");
  EXPECT_EQ(x86_architecture("AuthenticAMD", 26, 2, 0), "zen5");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 143, 8), "sapphire-rapids");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 207, 2), "emerald-rapids");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 0x55, 7), "cascade-lake");
  EXPECT_EQ(x86_architecture("Unheard", 6, 143, 8), "");
  EXPECT_EQ(arm_architecture(0x41, 0xd40), "neoverse-v1");
  EXPECT_EQ(arm_architecture(0x41, 0xfff), "");
}

// A virtual machine may report any model; instructions that the model never had give it away.
TEST(ProbeCpu, FeaturesOverrideAMadeUpModel) {
  const X86Features amx{.amx = true, .avx512_fp16 = true}, fp16{.avx512_fp16 = true};
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 167, 1), "rocket-lake");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 167, 1, amx), "sapphire-rapids or later");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 167, 1, fp16), "sapphire-rapids or later");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 0x55, 7, fp16), "sapphire-rapids or later");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 0xffff, 0, amx), "sapphire-rapids or later");  // a model still to come
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 0x97, 2, fp16), "alder-lake");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 143, 8, amx), "sapphire-rapids");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 207, 2, amx), "emerald-rapids");
  EXPECT_EQ(x86_architecture("GenuineIntel", 6, 173, 1, amx), "granite-rapids");
}

class FakeMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::path(::testing::TempDir()) / (std::string("sparkle_machine_") + test->name());
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  void cache(int index, const std::string& level, const std::string& type, const std::string& size, const std::string& cpus) {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    write(folder + "level", level);
    write(folder + "type", type);
    write(folder + "size", size);
    write(folder + "shared_cpu_list", cpus);
    write(folder + "coherency_line_size", "64");
  }
  std::vector<MemoryLevel> memory() { return cpu_memory(root_.string()); }
  std::filesystem::path root_;
};

TEST_F(FakeMachine, ServerWithHyperthreads) {
  write("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,16");
  write("sys/devices/system/cpu/online", "0-31");
  write("proc/meminfo", "MemTotal:       16777216 kB");
  cache(0, "1", "Data", "48K", "0,16");
  cache(1, "1", "Instruction", "32K", "0,16");
  cache(2, "2", "Unified", "2048K", "0,16");
  cache(3, "3", "Unified", "30M", "0-31");
  const auto levels = memory();
  ASSERT_EQ(levels.size(), 4u);
  EXPECT_EQ(levels[0].name, "L1");
  EXPECT_EQ(levels[0].bytes, 48 << 10);
  EXPECT_EQ(levels[0].shared_by, 1);
  EXPECT_EQ(levels[1].bytes, 2 << 20);
  EXPECT_EQ(levels[2].shared_by, 16);
  EXPECT_EQ(levels[3].name, "DRAM");
  EXPECT_EQ(levels[3].bytes, int64_t{16} << 30);
}

TEST_F(FakeMachine, LyingHypervisor) {
  cache(0, "1", "Data", "32K", "0");
  cache(1, "2", "Unified", "16K", "0");   // smaller than L1
  cache(2, "3", "Unified", "-5K", "0-");  // no size at all
  cache(3, "4", "Unified", "64M", "garbage");
  const auto levels = memory();
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[0].name, "L1");
  EXPECT_EQ(levels[1].name, "L4");
  EXPECT_EQ(levels[1].shared_by, 1);
  EXPECT_EQ(levels[2].bytes, 0);  // unknown
}

TEST_F(FakeMachine, NothingToRead) {
  const auto levels = memory();  // x86 still asks cpuid
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.back().name, "DRAM");
  const Device device = probe_cpu({.root = root_.string()});
  EXPECT_FALSE(device.name.empty());
}

}  // namespace
}  // namespace sparkle
