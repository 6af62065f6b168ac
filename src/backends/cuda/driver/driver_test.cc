#include "backends/cuda/driver/driver.h"

#include <gtest/gtest.h>

#include "backends/cuda/cuda_testing.h"
#include "device/device_json.h"

namespace sparkle::cuda {
namespace {

TEST(CudaDriver, SaysWhyThereIsNone) {
  const With elsewhere("SPARKLE_CUDA_DRIVER", "/nowhere/libcuda.so.1");
  const auto driver = Driver::open(12000);
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.error().reason, Reason::device_unusable);
  EXPECT_NE(driver.error().message.find("'/nowhere/libcuda.so.1' cannot be opened"), std::string::npos)
      << driver.error().message;
}

TEST(CudaDriver, SaysWhatALibraryLacks) {
  const With elsewhere("SPARKLE_CUDA_DRIVER", "libm.so.6");
  const auto driver = Driver::open(12000);
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.error().message.find("has no cuInit"), std::string::npos) << driver.error().message;
}

TEST(CudaDriver, RefusesOldDrivers) {
  const With old("SPARKLE_CUDA_MODEL_VERSION", "11040");
  const auto driver = Driver::open(12000);
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.error().message.find("is of CUDA 11.4, and 12.0 is needed"), std::string::npos) << driver.error().message;
}

// Of all results of cuda.h, those after which it says to start the process anew, and uncorrectable errors.
TEST(CudaDriver, KnowsWhichResultsLoseTheDevice) {
  std::vector<int> lost;
  for (int code = 0; code < 1000; ++code)
    if (is_lost(static_cast<CuResult>(code))) lost.push_back(code);
  EXPECT_EQ(lost, (std::vector<int>{214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}));
}

// What the driver tells makes the description that devices/h200.json has from the data sheet, but for roundings there.
TEST(CudaDriver, DescribesAsTheDataSheetDoes) {
  const auto driver = Driver::open(12000);
  ASSERT_TRUE(driver.ok()) << driver.error().message;
  const DeviceInfo& info = (*driver)->devices()[0];
  EXPECT_EQ(info.unusable, "");
  EXPECT_EQ(info.capability, 90);
  const Device& d = info.description;
  const auto known = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(d.name, known->name);
  EXPECT_EQ(d.architecture, known->architecture);
  EXPECT_EQ(d.cores, known->cores);
  EXPECT_EQ(d.limits, known->limits);
  ASSERT_EQ(d.memory.size(), known->memory.size());
  for (size_t i = 0; i < d.memory.size(); ++i) {
    const MemoryLevel &a = d.memory[i], &b = known->memory[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.bytes, b.bytes) << a.name;
    EXPECT_EQ(a.shared_by, b.shared_by) << a.name;
    EXPECT_EQ(a.filled_by_hand, b.filled_by_hand) << a.name;
    EXPECT_NEAR(a.total_bytes_per_second / b.total_bytes_per_second, 1, 0.02) << a.name;
  }
  ASSERT_EQ(d.units.size(), known->units.size());
  for (const MathUnit& b : known->units) {
    const MathUnit* a = d.unit(b.name);
    ASSERT_TRUE(a) << b.name;
    EXPECT_EQ(a->kind, b.kind) << b.name;
    EXPECT_EQ(std::tuple(a->m, a->n, a->k), std::tuple(b.m, b.n, b.k)) << b.name;
    EXPECT_EQ(std::tuple(a->input, a->accumulator, a->registers), std::tuple(b.input, b.accumulator, b.registers)) << b.name;
    EXPECT_NEAR(a->total_flops_per_second / b.total_flops_per_second, 1, 0.02) << b.name;
  }
}

}  // namespace
}  // namespace sparkle::cuda
