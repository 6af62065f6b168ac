// The machines that are built in: each can be had by its names, and is what its file says.
#include "device/known/known_devices.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "device/device_json.h"
#include "device/units/unit_sizes.h"

namespace sparkle {
namespace {

TEST(KnownDevices, AreTheFilesOfTheRepository) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SPARKLE_SOURCE_DIR "/devices")) {
    ++files;
    const auto built_in = known_device(entry.path().stem().string());
    const auto read = load_device(entry.path().string());
    ASSERT_TRUE(built_in.ok() && read.ok()) << entry.path();
    EXPECT_EQ(*built_in, *read) << entry.path();
  }
  EXPECT_EQ(known_devices().size(), files) << "a file with two names, or a name without a file";
}

TEST(KnownDevices, HaveShortNames) {
  for (const char* name : {"h200", "a100", "rtx3090", "ada", "rdna2", "rdna3", "xe", "avx512", "avx2", "neon", "a4500", "a40",
                           "rtx3080", "rx7900xt", "raphael", "7700x", "7900x", "RTX-3090", "radeon rx 7900 xt"})
    EXPECT_TRUE(known_device(name).ok()) << name;
  for (const KnownDevice& known : known_devices()) EXPECT_TRUE(is_known_device(known.name)) << known.name;
  for (const char* name : {"", "cpu", "vulkan", "auto", "rtx"}) EXPECT_FALSE(is_known_device(name)) << name;
  EXPECT_EQ(known_device("z80").error().reason, Reason::bad_usage);
}

// A rate of all cores is what one core has, times their number: of one machine's data sheet, clocks that fall by a quarter
// aside.
TEST(KnownDevices, RatesOfOneCoreAndOfAllAgree) {
  for (const KnownDevice& known : known_devices()) {
    const auto device = known_device(known.name);
    ASSERT_TRUE(device.ok());
    for (const MathUnit& unit : device->units) {
      if (unit.flops_per_second <= 0 || unit.total_flops_per_second <= 0) continue;
      const double cores = unit.total_flops_per_second / unit.flops_per_second;
      EXPECT_GT(cores, 0.7 * device->cores) << known.name << " " << unit.name;
      EXPECT_LT(cores, 1.05 * device->cores) << known.name << " " << unit.name;
    }
  }
}

}  // namespace
}  // namespace sparkle
