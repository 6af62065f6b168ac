// --unit: what a device becomes, and layers computed by each unit that this machine has.
#include "run/opening/force_unit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/device_json.h"
#include "families/common.h"
#include "measure/layer_bench.h"
#include "run/opening/open_backend.h"

namespace sparkle {
namespace {

std::string names_of(const Device& device) {
  std::string names;
  for (const MathUnit& unit : device.units) names += (names.empty() ? "" : " ") + unit.name;
  return names;
}

Device described(const std::string& name) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/" + name + ".json");
  EXPECT_TRUE(device.ok());
  return device.ok() ? std::move(*device) : Device{};
}

std::string names_with(Device device, const std::string& unit) {
  const Status forced = force_unit(device, unit);
  return forced.ok() ? names_of(device) : forced.error().message;
}

TEST(ForceUnit, KeepsAUnitAndWhatItIsUsedWith) {
  const Device zen4 = described("epyc-zen4");
  EXPECT_EQ(names_with(zen4, "avx512"), "avx512 avx2-int16");
  EXPECT_EQ(names_with(zen4, "avx512-vnni"), "avx512 avx512-vnni");
  EXPECT_EQ(names_with(zen4, "avx2"), "avx2 avx2-int16");
  EXPECT_EQ(names_with(described("xeon-emr"), "amx-int8"), "avx512 avx512-vnni amx-int8");
  EXPECT_EQ(names_with(described("xeon-emr"), "amx-bf16"), "avx512 avx2-int16 amx-bf16");
  EXPECT_EQ(names_with(described("xeon-emr"), "avx512-vnni"), "avx512 avx512-vnni");
  const Device graviton = described("graviton3-neoverse-v1");
  EXPECT_EQ(names_with(graviton, "neon"), "neon");
  EXPECT_EQ(names_with(graviton, "neon-dot"), "neon neon-dot");
  EXPECT_EQ(names_with(graviton, "sve"), "sve neon");
  Device avx2 = zen4;
  ASSERT_TRUE(force_unit(avx2, "avx2").ok());
  EXPECT_EQ(best_vector_unit(avx2)->n, 8);
  EXPECT_EQ(best_vector_unit(avx2)->registers, 16);
}

TEST(ForceUnit, RefusesOthersNamingThosePresent) {
  Device zen4 = described("epyc-zen4");
  const Device before = zen4;
  for (const std::string unit : {"neon", "amx-int8", "avx512-bf16", "AVX2", ""}) {
    const Status refused = force_unit(zen4, unit);
    ASSERT_FALSE(refused.ok()) << unit;
    EXPECT_EQ(refused.error().reason, Reason::bad_usage);
    EXPECT_NE(refused.error().message.find("'" + unit + "'"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("avx512, avx2, avx512-vnni"), std::string::npos) << refused.error().message;
    EXPECT_EQ(refused.error().message.find("bf16, "), std::string::npos) << refused.error().message;
  }
  EXPECT_EQ(zen4, before);
  Device gpu = described("radeon-rx-7900-xtx");
  EXPECT_EQ(force_unit(gpu, "avx2").error().reason, Reason::device_unusable);
}

Result<OpenBackend> open_with(const std::string& unit) {
  BackendOptions options;
  options.name = "cpu", options.threads = 2, options.unit = unit;
  return open_backend(options);
}

// Every algorithm that serves the layer, by every unit here: right, and by kernels of that unit alone.
TEST(ForceUnit, LayersAreRightByEachUnitOfThisMachine) {
  const Result<OpenBackend> whole = open_with("");
  ASSERT_TRUE(whole.ok());
  int units = 0;
  for (const MathUnit& unit : whole->backend->device().units) {
    if (!has_kernels(whole->backend->device(), unit)) continue;
    auto open = open_with(unit.name);
    ASSERT_TRUE(open.ok()) << open.error().message;
    const Device& device = open->backend->device();
    EXPECT_NE(open->note.find(unit.name + " alone"), std::string::npos) << open->note;
    const std::vector<std::pair<const char*, std::vector<const char*>>> layers = {
        {"ic24ih14oc40oh14kh3ph1", {"", "gemm", "winograd4"}},
        {"ic3ih21oc16oh21kh3ph1", {"", "direct"}},
        {"g32ic32ih14oc32oh14kh3ph1", {"", "depthwise"}},
        {"g8ic32ih9oc32oh9kh3ph1", {"", "grouped", "direct"}},
        {"ic8ih40oc8oh40kh21ph10", {"", "fft"}}};
    for (const auto& [text, algorithms] : layers)
      for (const char* algorithm : algorithms) {
        // Its tiles are arrays of registers, which vectors without a fixed length cannot lie in.
        if (unit.name == "sve" && std::string_view(algorithm) == "grouped") continue;
        const auto problem = parse_conv(text);
        ASSERT_TRUE(problem.ok());
        LayerBenchOptions options;
        options.rounds = 1, options.seconds_per_round = 1e-4;
        options.plan.algorithm = algorithm;
        const auto measured = measure_layer(*open->backend, *problem, options);
        ASSERT_TRUE(measured.ok()) << unit.name << " " << text << " " << algorithm << ": " << measured.error().message;
        EXPECT_EQ(measured->checked.times, 2);
        for (const Schedule& s : measured->choice.schedules) {
          SCOPED_TRACE(unit.name + " " + text + " " + algorithm + ": " + to_text(s));
          EXPECT_NE(device.unit(unit_of(s)), nullptr);
          EXPECT_NE(variant_of(s), "plain");
        }
      }
    ++units;
  }
  if (units == 0) GTEST_SKIP() << "this machine has no unit with kernels";
}

}  // namespace
}  // namespace sparkle
