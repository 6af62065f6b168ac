// What units want of sizes, on the machines of devices/.
#include "device/units/unit_sizes.h"

#include <gtest/gtest.h>

#include "device/device_json.h"

namespace sparkle {
namespace {

Device device_named(const std::string& name) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/" + name + ".json");
  EXPECT_TRUE(device.ok());
  return device.ok() ? std::move(*device) : Device{};
}

TEST(UnitSizes, MatrixUnitsOfGpusTakeRunsOf16Bytes) {
  for (const char* name : {"h200", "a100", "rtx-3090"}) {
    const Device device = device_named(name);
    EXPECT_EQ(channel_multiple(device, Precision::fp16), 8) << name;
    EXPECT_EQ(channel_multiple(device, Precision::bf16), 8) << name;
    EXPECT_EQ(channel_multiple(device, Precision::tf32), 4) << name;
    EXPECT_EQ(channel_multiple(device, Precision::int8), 16) << name;
    EXPECT_EQ(channel_multiple(device, Precision::fp32), 1) << name;
  }
}

TEST(UnitSizes, DotProductsTakeWhatTheySum) {
  EXPECT_EQ(channel_multiple(device_named("radeon-rx-6900-xt"), Precision::int8), 4);
  EXPECT_EQ(channel_multiple(device_named("epyc-zen4"), Precision::int8), 4);
  EXPECT_EQ(channel_multiple(device_named("epyc-zen4"), Precision::bf16), 2);
  EXPECT_EQ(channel_multiple(device_named("epyc-zen4"), Precision::fp32), 1);
}

TEST(UnitSizes, NoInstructionSumsLessThanTheMultiple) {
  const Device graviton = device_named("graviton3-neoverse-v1");
  EXPECT_EQ(channel_multiple(graviton, Precision::int8), 8);
  EXPECT_EQ(channel_multiple(graviton, Precision::bf16), 4);
}

TEST(UnitSizes, Tf32IsNeverFp32) {
  const Device h200 = device_named("h200");
  EXPECT_EQ(fastest_unit(h200, Precision::tf32)->name, "wgmma-tf32");
  EXPECT_EQ(fastest_unit(h200, Precision::fp32)->name, "fma-f32");
  EXPECT_EQ(fastest_unit(h200, Precision::fp16)->name, "wgmma-f16");
  EXPECT_EQ(fastest_unit(h200, Precision::fp16, UnitKind::vector_fma)->name, "fma-f16");
  EXPECT_EQ(fastest_unit(device_named("radeon-rx-6900-xt"), Precision::bf16), nullptr);
}

TEST(UnitSizes, BytesThatAreOnlyAddedAreNoProducts) {
  EXPECT_EQ(fastest_unit(device_named("radeon-rx-vega-64"), Precision::int8), nullptr);
}

TEST(UnitSizes, PrecisionsHaveNames) {
  for (int i = 0; i < kPrecisions; ++i) {
    Precision found = Precision::fp32;
    EXPECT_TRUE(parse_name(name_of(static_cast<Precision>(i)), found));
    EXPECT_EQ(found, static_cast<Precision>(i));
  }
  Precision none = Precision::int8;
  EXPECT_FALSE(parse_name("fp64", none));
  EXPECT_EQ(none, Precision::int8);
}

}  // namespace
}  // namespace sparkle
