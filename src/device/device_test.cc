// What descriptions of machines say of each other.
#include "device/device.h"

#include <gtest/gtest.h>

namespace sparkle {
namespace {

TEST(Devices, AreOneMachineByWhatTheyAreMadeAs) {
  Device here;
  here.name = "A", here.vendor = "B", here.architecture = "C";
  Device same = here;
  same.cores = 7, same.driver = "another", same.calibrated = true, same.launch_seconds = 1;
  EXPECT_TRUE(same_machine(here, same));
  for (std::string Device::* field : {&Device::name, &Device::vendor, &Device::architecture}) {
    Device other = here;
    other.*field += "x";
    EXPECT_FALSE(same_machine(here, other));
  }
  Device other = here;
  other.kind = DeviceKind::vulkan;
  EXPECT_FALSE(same_machine(here, other));
}

TEST(Devices, TransfersTakeTheLinksTime) {
  Device device;
  EXPECT_DOUBLE_EQ(transfer_seconds(device, 12e6), 1e-3 + 30e-6);
  device.link_bytes_per_second = 50e9;
  EXPECT_DOUBLE_EQ(transfer_seconds(device, 50e6), 1e-3 + 30e-6);
  device.link_seconds = 10e-6;
  EXPECT_DOUBLE_EQ(transfer_seconds(device, 0), 10e-6);
}

}  // namespace
}  // namespace sparkle
