// Device descriptions survive the trip through JSON unchanged, wrong ones are refused with the place named, and every file in
// devices/ is sane.
#include "device/device_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "device/probe_cpu.h"

namespace sparkle {
namespace {

Device random_device(std::mt19937& random) {
  const auto integer = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const auto real = [&] { return std::ldexp(std::uniform_real_distribution<double>(0.5, 1)(random), integer(-40, 60)); };
  Device d;
  d.name = "Device \"" + std::to_string(integer(0, 99)) + "\" \\ \xc3\xa9";
  d.kind = static_cast<DeviceKind>(integer(0, 2));
  d.vendor = integer(0, 1) ? "Vendor" : "";
  d.cores = integer(1, 500);
  d.clock_hz = real();
  d.launch_seconds = real();
  d.link_bytes_per_second = real(), d.link_seconds = real();
  d.calibrated = integer(0, 1);
  d.limits.max_threads_per_group = d.kind == DeviceKind::cpu ? 0 : integer(1, 1024);
  d.limits.subgroup_size = integer(0, 64);
  d.limits.matrix_subgroup_size = integer(0, 64);
  d.limits.schedulers_per_core = integer(0, 16);
  d.limits.max_buffer_bytes = int64_t{1} << integer(0, 60);
  for (int i = integer(0, 5); i > 0; --i) {
    MemoryLevel l;
    l.name = "L" + std::to_string(i);
    l.bytes = int64_t{integer(0, 1 << 30)} << integer(0, 20);
    l.bytes_per_second = real();
    l.copy_bytes_per_second = integer(0, 1) ? real() : 0;
    l.shared_by = integer(1, 100);
    l.filled_by_hand = integer(0, 1);
    d.memory.push_back(l);
  }
  for (int i = integer(0, 5); i > 0; --i) {
    MathUnit u;
    u.name = "unit" + std::to_string(i);
    u.kind = static_cast<UnitKind>(integer(0, 2));
    u.m = integer(1, 64);
    u.n = integer(1, 256);
    u.input = static_cast<DType>(integer(0, static_cast<int>(DType::boolean)));
    u.flops_per_second = real();
    u.registers = integer(0, 255);
    d.units.push_back(u);
  }
  return d;
}

TEST(DeviceJson, RoundTripIsExact) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const Device device = random_device(random);
    const std::string text = device_to_json(device);
    const auto back = device_from_json(text);
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.error().message << "\n" << text;
    EXPECT_EQ(*back, device) << "seed " << seed << "\n" << text;
    EXPECT_EQ(device_to_json(*back), text);
  }
}

TEST(DeviceJson, ProbedMachineRoundTrips) {
  const Device device = probe_cpu();
  const auto back = device_from_json(device_to_json(device, "this machine"));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, device);
}

TEST(DeviceJson, OnlyTheSchemaIsRequired) {
  const auto device = device_from_json(R"({"schema": "sparkle-device-1"})");
  ASSERT_TRUE(device.ok()) << device.error().message;
  EXPECT_EQ(*device, Device{});
}

// Puts `fields` into a document and expects an error that names `place`.
void expect_error(const std::string& fields, const std::string& place) {
  const auto device = device_from_json(R"({"schema": "sparkle-device-1", )" + fields + "}");
  ASSERT_FALSE(device.ok()) << fields;
  EXPECT_EQ(device.error().reason, Reason::bad_format);
  EXPECT_TRUE(device.error().message.starts_with(place)) << fields << " -> " << device.error().message;
}

TEST(DeviceJson, ErrorsNameThePlace) {
  expect_error(R"("memory": [{"name": "L1"}, {"name": "L2"}, {"name": "L3", "bytes": -5}])", "memory[2].bytes is -5");
  expect_error(R"("memory": [{"name": "L1", "bytes": 1.5}])", "memory[0].bytes is 1.5");
  expect_error(R"("memory": [{"name": "L1", "bytes": "32K"}])", "memory[0].bytes is \"32K\"");
  expect_error(R"("memory": [{"name": "L1", "bytes": 99999999999999999999}])", "memory[0].bytes");
  expect_error(R"("memory": [{"name": "L1", "bytes": 18446744073709551615}])", "memory[0].bytes");
  expect_error(R"("memory": [{"name": "L1", "bytes_per_second": -1e9}])", "memory[0].bytes_per_second");
  expect_error(R"("memory": [{"name": "L1", "byte": 5}])", "memory[0].byte is not a field");
  expect_error(R"("memory": [{"bytes": 5}])", "memory[0].name");
  expect_error(R"("memory": [{"name": "L1"}, {"name": "L1"}])", "memory[1].name");
  expect_error(R"("memory": {"name": "L1"})", "memory is {");
  expect_error(R"("memory": [5])", "memory[0] is 5");
  expect_error(R"("units": [{"name": "a", "m": 0}])", "units[0].m is 0");
  expect_error(R"("units": [{"name": "a", "n": 100000}])", "units[0].n");
  expect_error(R"("units": [{"name": "a", "input": "f31"}])", "units[0].input is \"f31\"");
  expect_error(R"("units": [{"name": "a", "kind": "tensor"}])", "units[0].kind");
  expect_error(R"("limits": {"subgroup_size": true})", "limits.subgroup_size is true");
  expect_error(R"("limits": [])", "limits is []");
  expect_error(R"("kind": "tpu")", "kind is \"tpu\"");
  expect_error(R"("cores": 0)", "cores is 0");
  expect_error(R"("clock_hz": null)", "clock_hz is null");
  expect_error(R"("clock_hz": 1e999)", "The device description is not JSON");
  expect_error(R"("calibrated": 1)", "calibrated is 1");
  expect_error(R"("name": 7)", "name is 7");
  expect_error(R"("colour": "red")", "colour is not a field");
  expect_error(R"("kind": "cpu", "limits": {"max_threads_per_group": 64})", "limits.max_threads_per_group is for GPUs");
}

TEST(DeviceJson, GpusHaveWorkgroupsOfSomeSize) {
  for (const char* kind : {"vulkan", "cuda"}) {
    const auto device = device_from_json(R"({"schema": "sparkle-device-1", "kind": ")" + std::string(kind) + "\"}");
    ASSERT_TRUE(device.ok()) << device.error().message;
    EXPECT_TRUE(device->has_workgroups());
    EXPECT_GE(device->limits.max_threads_per_group, 128);
  }
}

// Fields that versions before wrote and none read.
TEST(DeviceJson, FormerFieldsAreReadOver) {
  const auto device = device_from_json(
      R"({"schema": "sparkle-device-1", "by_roofs": true, "memory": [{"name": "L1", "bytes": 32768, "line_bytes": 64}],)"
      R"( "units": [{"name": "a", "n": 8, "alignment_elements": 4, "latency_cycles": 5}]})");
  ASSERT_TRUE(device.ok()) << device.error().message;
  EXPECT_EQ(device->memory[0].bytes, 32768);
  EXPECT_EQ(device->units[0].n, 8);
  expect_error(R"("units": [{"name": "a", "line_bytes": 64}])", "units[0].line_bytes is not a field");
}

TEST(DeviceJson, NoSchemaNoDevice) {
  for (const char* text : {"", "{", "[]", "5", "nonsense", "{}", R"({"schema": "sparkle-device-2"})", R"({"schema": 1})"}) {
    const auto device = device_from_json(text);
    ASSERT_FALSE(device.ok()) << text;
    EXPECT_EQ(device.error().reason, Reason::bad_format);
  }
  const auto deep = device_from_json(std::string(1 << 18, '['));
  EXPECT_FALSE(deep.ok());
}

TEST(DeviceJson, DamagedTextNeverCrashes) {
  const std::string good = device_to_json(probe_cpu());
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2) text[at] = static_cast<char>(random());
      else text.erase(at, 1 + random() % 20);
    }
    const auto device = device_from_json(text);
    if (device.ok()) {
      EXPECT_EQ(*device_from_json(device_to_json(*device)), *device) << "seed " << seed;
    }
  }
}

TEST(LoadDevice, NamesTheFile) {
  const auto missing = load_device("/nonexistent/device.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().reason, Reason::file_unreadable);
  EXPECT_NE(missing.error().message.find("/nonexistent/device.json"), std::string::npos);
  EXPECT_EQ(load_device(::testing::TempDir()).error().reason, Reason::file_unreadable);  // a folder
  const std::string path = ::testing::TempDir() + "sparkle_bad_device.json";
  std::ofstream(path) << R"({"schema": "sparkle-device-1", "cores": -1})";
  const auto bad = load_device(path);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find(path + ": cores is -1"), std::string::npos) << bad.error().message;
  std::filesystem::remove(path);
}

TEST(KnownDevices, AllAreSane) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SPARKLE_SOURCE_DIR "/devices")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    ++count;
    const auto loaded = load_device(entry.path().string());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const Device& d = *loaded;
    EXPECT_EQ(*device_from_json(device_to_json(d)), d);
    EXPECT_FALSE(d.name.empty());
    EXPECT_FALSE(d.architecture.empty());
    EXPECT_GT(d.cores, 1);
    EXPECT_GT(d.clock_hz, 5e8);
    EXPECT_LT(d.clock_hz, 7e9);
    EXPECT_GT(d.launch_seconds, 0);
    ASSERT_GE(d.memory.size(), 3u);
    EXPECT_EQ(d.memory.back().name, "DRAM");
    for (size_t i = 0; i < d.memory.size(); ++i) {
      const MemoryLevel& l = d.memory[i];
      if (l.name != "DRAM") {
        EXPECT_GT(l.bytes, 0) << l.name;
      }
      EXPECT_GT(l.bytes_per_second, 0) << l.name;
      EXPECT_GE(l.total_bytes_per_second, l.bytes_per_second) << l.name;
      // Two cores never read more than twice what one does alone.
      EXPECT_LE(l.total_bytes_per_second, 1.1 * d.cores * l.bytes_per_second) << l.name;
      if (i > 0) {
        EXPECT_LE(l.total_bytes_per_second, d.memory[i - 1].total_bytes_per_second) << l.name;
      }
    }
    ASSERT_FALSE(d.units.empty());
    EXPECT_EQ(d.units.front().kind, UnitKind::vector_fma);
    for (const MathUnit& u : d.units) {
      EXPECT_GT(u.flops_per_second, 0) << u.name;
      // Measured one after the other, on clocks that wander by some percent.
      EXPECT_LE(u.total_flops_per_second, 1.05 * d.cores * u.flops_per_second) << u.name;
      EXPECT_GT(u.total_flops_per_second, 0.5 * d.cores * u.flops_per_second) << u.name;
    }
    if (!d.has_workgroups()) {
      EXPECT_TRUE(d.unit("avx2") != nullptr || d.unit("neon") != nullptr);
    } else {
      EXPECT_GT(d.limits.subgroup_size, 0);
      EXPECT_GT(d.limits.shared_bytes_per_group, 0);
      EXPECT_GT(d.limits.max_threads_per_group, 0);
    }
  }
  EXPECT_GE(count, 9);
}

}  // namespace
}  // namespace sparkle
