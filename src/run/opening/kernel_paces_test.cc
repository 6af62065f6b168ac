#include "run/opening/kernel_paces.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/device_json.h"
#include "device/estimate.h"
#include "device/probe_cpu.h"
#include "families/common.h"
#include "families/registry.h"

namespace sparkle {
namespace {

TEST(KernelPaces, AreOfVariantsThatThereAre) {
  ProbeOptions probe;
  probe.threads = 1;
  Device device = probe_cpu(probe);
  estimate_rates(device);
  measure_paces(device);
  const MathUnit* unit = best_vector_unit(device);
  if (!unit) GTEST_SKIP() << "this machine has no vector unit with kernels";
  ASSERT_FALSE(device.paces.empty());
  for (const KernelPace& p : device.paces) {
    EXPECT_EQ(p.unit, unit->name);
    EXPECT_GE(p.ratio, 0.8) << p.name;
    EXPECT_LE(p.ratio, 1.7) << p.name;
    const size_t space = p.name.find(' ');
    Family family{};
    ASSERT_TRUE(space != std::string::npos && parse_name(p.name.substr(0, space), family)) << p.name;
    const std::string variant = p.name.substr(space + 1);
    const auto& variants = info(family).variants;
    EXPECT_TRUE(std::any_of(variants.begin(), variants.end(), [&](const Variant& v) { return v.name == variant; })) << p.name;
    EXPECT_EQ(device.pace(name_of(family), variant, unit->name), p.ratio);
  }
  // They are part of the description.
  const auto read = device_from_json(device_to_json(device));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->paces, device.paces);
}

}  // namespace
}  // namespace sparkle
