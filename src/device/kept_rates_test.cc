// Measured rates of a GPU are found again by what its driver says alone.
#include "device/kept_rates.h"

#include <gtest/gtest.h>

#include "base/folder_testing.h"
#include "device/as_measured_testing.h"
#include "device/device_json.h"
#include "device/memory_curve.h"

namespace sparkle {
namespace {

class KeptRatesOfGpus : public testing::FolderTest {
 protected:
  void SetUp() override {
    testing::FolderTest::SetUp();
    auto loaded = load_device(SPARKLE_SOURCE_DIR "/devices/radeon-rx-7900-xtx.json");
    ASSERT_TRUE(loaded.ok());
    measured_ = as_measured(*loaded);
    described_ = measured_;
    remove_caches(described_);
    described_.calibrated = false, described_.launch_seconds = 0;
    for (MemoryLevel& level : described_.memory)
      level.bytes_per_second = level.total_bytes_per_second = level.copy_bytes_per_second = 0;
    for (MathUnit& unit : described_.units) unit.flops_per_second = unit.total_flops_per_second = 0;
  }
  Device measured_, described_;
};

TEST_F(KeptRatesOfGpus, BringTheCachesBack) {
  EXPECT_EQ(measured_.memory.size(), 4u);  // shared, L2, L3, DRAM
  EXPECT_FALSE(kept_rates(described_, "vulkan", folder_.string()).has_value());
  EXPECT_FALSE(keep_rates(measured_, "vulkan", folder_.string()).path.empty());
  Device again = described_;
  ASSERT_TRUE(kept_rates(again, "vulkan", folder_.string()).has_value());
  EXPECT_EQ(again, measured_);
}

TEST_F(KeptRatesOfGpus, AreOfOneDeviceAlone) {
  EXPECT_FALSE(keep_rates(measured_, "vulkan", folder_.string()).path.empty());
  Device other = described_;
  other.cores /= 2;
  EXPECT_FALSE(kept_rates(other, "vulkan", folder_.string()).has_value());
  other = described_;
  other.memory.front().bytes *= 2;
  EXPECT_FALSE(kept_rates(other, "vulkan", folder_.string()).has_value());
}

// A data sheet is left with what drivers and probes write.
TEST_F(KeptRatesOfGpus, AsMeasuredKeepsWhatIsWritten) {
  EXPECT_TRUE(measured_.calibrated);
  EXPECT_EQ(measured_.clock_hz, 0);
  EXPECT_EQ(measured_.level("L1"), nullptr);
  EXPECT_EQ(measured_.unit("coopmat-bf16"), nullptr);
  EXPECT_EQ(measured_.memory.front().bytes, measured_.limits.shared_bytes_per_group);
  EXPECT_DOUBLE_EQ(measured_.memory.back().total_bytes_per_second, 0.85 * 960e9);
  EXPECT_EQ(measured_.level("L2")->bytes, 6 << 20);
  EXPECT_GT(measured_.unit("coopmat-f16")->total_flops_per_second, 1e14);
}

}  // namespace
}  // namespace sparkle
