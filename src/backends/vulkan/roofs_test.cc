// The probes of memory on the device at hand: kernels run, times are told, rates are such as a machine has.
#include "backends/vulkan/roofs.h"

#include "backends/vulkan/roofs_memory.h"
#include "backends/vulkan/vulkan_testing.h"

namespace sparkle::vulkan {
namespace {

// Parts that the backend owns.
Workshop shop_of(VulkanBackend& backend, std::shared_ptr<Pipelines> pipelines = {}) {
  Workshop shop;
  shop.pipelines = std::shared_ptr<Pipelines>(std::move(pipelines), &backend.pipelines());
  return shop;
}

TEST(VulkanRoofs, CurvesTellATimeForEachWorkingSet) {
  SPARKLE_NEEDS_VULKAN(backend);
  const auto sets = working_sets(1 << 19, 1 << 21);
  ASSERT_EQ(sets.size(), 5u);
  for (const uint32_t groups : {1u, 4u}) {
    const auto curve = measure_read_curve(*backend, shop_of(*backend), groups, 256, sets);
    ASSERT_TRUE(curve.ok()) << curve.error().message;
    ASSERT_EQ(curve->size(), sets.size());
    for (size_t i = 0; i < sets.size(); ++i) {
      EXPECT_EQ((*curve)[i].bytes, sets[i]);
      EXPECT_GT((*curve)[i].seconds_per_byte, 1e-14);
      EXPECT_LT((*curve)[i].seconds_per_byte, 1e-7);
    }
    EXPECT_FALSE(levels_of(*curve).empty());
  }
  const auto none = measure_read_curve(*backend, shop_of(*backend), 1, 256, {});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST(VulkanRoofs, SharedMemoryHasARate) {
  SPARKLE_NEEDS_VULKAN(backend);
  const auto rate = measure_shared(*backend, shop_of(*backend), 4);
  ASSERT_TRUE(rate.ok()) << rate.error().message;
  EXPECT_GT(*rate, 1e8);
  EXPECT_LT(*rate, 1e15);
}

TEST(VulkanRoofs, MemoryFillsInADescription) {
  SPARKLE_NEEDS_VULKAN(backend);
  Device device = backend->device();
  device.cores = 2;
  device.architecture = "any";  // caches of a software device are looked at here alone
  device.memory.back().bytes = int64_t{256} << 20;
  MemoryLevel& dram = device.memory.back();
  dram.total_bytes_per_second = 1e12, dram.bytes_per_second = 1e9;
  ASSERT_TRUE(measure_memory(*backend, shop_of(*backend), device).ok());
  EXPECT_GT(device.memory.front().total_bytes_per_second, 0);
  EXPECT_EQ(device.memory.front().bytes_per_second, device.memory.front().total_bytes_per_second / 2);
  for (size_t i = 1; i + 1 < device.memory.size(); ++i) {
    EXPECT_GE(device.memory[i].bytes, 1 << 19);
    EXPECT_GT(device.memory[i].total_bytes_per_second, 0);
    EXPECT_LE(device.memory[i].bytes_per_second, device.memory[i].total_bytes_per_second);
  }
  EXPECT_GE(device.memory.back().bytes_per_second, 1e9);
}

}  // namespace
}  // namespace sparkle::vulkan
