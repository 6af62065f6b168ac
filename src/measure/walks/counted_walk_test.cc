// Predicted traffic against a counted walk: the bytes per memory level of a footprint against those that the kernel's loop nest
// moves through caches of the device's sizes.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "backends/cpu/gemm/gemm_geometry.h"
#include "base/system/sanitized.h"
#include "device/device_json.h"
#include "families/common.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/fft/fft.h"
#include "families/gemm/gemm.h"
#include "families/grouped/grouped.h"
#include "families/inverted/inverted.h"
#include "families/registry.h"
#include "families/winograd/winograd.h"
#include "plan/choose/choose.h"
#include "measure/walks/direct_walk_testing.h"
#include "measure/walks/fft_walk_testing.h"
#include "measure/walks/inverted_walk_testing.h"
#include "measure/walks/kernel_walks_testing.h"
#include "measure/prepared_layer.h"

namespace sparkle {
namespace {

// Bytes per level, innermost first: of a run after one that left what fits, and of a first run, written back to the end.
// Between runs of a network's layer something else passes, so that the truth lies between the two.
struct Walked {
  std::vector<double> least, most;
};
template <class Walk>
Walked walked_twice(Walk walk, testing::MemoryWalk& memory) {
  Walked bytes;
  walk.run();
  memory.flush();
  bytes.most = memory.take();
  walk.run();
  bytes.least = memory.take();
  return bytes;
}

// Larger layers would take minutes to walk; where each instruction costs several even these.
#if defined(SPARKLE_TESTS_EMULATED)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = kSanitized;
#endif
constexpr double kMostFlops = kSlow ? 6e7 : 4e8;
constexpr int kEvery = kSlow ? 4 : 1;  // of the layers' candidates that could be walked

// Empty for what has no walk.
Walked walked(const Stage& stage, const Schedule& schedule, const Device& device) {
  testing::MemoryWalk memory(device);
  const MathUnit* unit = device.unit(unit_of(schedule));
  if (!unit) return {};
  const int64_t lanes = unit->n;
  const int registers = registers_of(*unit);
  if (const auto* s = get_if<GemmSchedule>(&schedule)) {
    const auto geometry = cpu::gemm_geometry(stage, *s, lanes);
    EXPECT_TRUE(geometry.ok());
    return walked_twice(testing::GemmWalk(stage, *s, *geometry, lanes, registers, memory), memory);
  }
  if (const auto* s = get_if<WinogradSchedule>(&schedule)) {
    const auto geometry = cpu::winograd_geometry(stage, *s, lanes);
    EXPECT_TRUE(geometry.ok());
    return walked_twice(testing::WinogradWalk(stage, *s, *geometry, lanes, memory), memory);
  }
  if (const auto* s = get_if<DepthwiseSchedule>(&schedule); s && s->variant.starts_with("tile"))
    return walked_twice(testing::DepthwiseWalk(stage, *s, lanes, device.memory[0].bytes, memory), memory);
  if (const auto* s = get_if<GroupedSchedule>(&schedule))
    return walked_twice(testing::GroupedWalk(stage, *s, lanes, memory), memory);
  if (const auto* s = get_if<DirectSchedule>(&schedule))
    return walked_twice(testing::DirectWalk(stage, *s, lanes, registers, memory), memory);
  if (const auto* s = get_if<InvertedSchedule>(&schedule)) {
    const auto geometry = cpu::inverted_geometry(stage, *s, lanes);
    EXPECT_TRUE(geometry.ok());
    return walked_twice(testing::InvertedWalk(stage, *s, *geometry, lanes, registers, memory), memory);
  }
  if (const auto* s = get_if<FftSchedule>(&schedule)) {
    cpu::FftKernels sizes;
    sizes.lanes = lanes, sizes.registers = registers;
    const auto geometry = cpu::fft_geometry(stage, *s, sizes);
    EXPECT_TRUE(geometry.ok());
    return walked_twice(testing::FftWalk(stage, *geometry, memory), memory);
  }
  return {};
}

// One of each architecture: others of it would count the same again.
std::vector<Device> cpus() {
  std::vector<Device> devices;
  for (const std::string name : {"epyc-zen4", "ryzen-zen3-laptop", "xeon-emr", "graviton3-neoverse-v1"}) {
    auto device = load_device(SPARKLE_SOURCE_DIR "/devices/" + name + ".json");
    EXPECT_TRUE(device.ok()) << name;
    if (device.ok()) devices.push_back(std::move(*device));
  }
  return devices;
}

// Beyond 20 % of what the walk counts. Small parts of a kernel's traffic (2 % of what it moves through its registers) cost no
// time.
bool agrees(double predicted, double least, double most, double registers) {
  return predicted >= 0.8 * least - 0.02 * registers && predicted <= 1.2 * most + 0.02 * registers;
}

// A stage and how it is done.
struct WalkedStage {
  std::string name;
  Stage stage;
  Schedule schedule;
  Footprint footprint;
};

// All candidates of a family to compute the layers, at most `most` of each.
std::vector<WalkedStage> layer_candidates(const std::vector<NamedProblem>& layers, std::string_view family,
                                          const Device& device, size_t most) {
  std::vector<WalkedStage> list;
  for (const NamedProblem& layer : layers) {
    if (layer.problem.nominal_flops() > kMostFlops) continue;
    AnchorCall call = call_of(layer.problem);
    call.fit = {Fit::exact, Fit::rounded};  // so that kernels that keep weights in 16 bits are among the candidates
    const auto found = candidates_of(call, device, {});
    EXPECT_TRUE(found.ok());
    if (!found.ok()) continue;
    size_t taken = 0;
    for (const Choice& candidate : *found) {
      const Stage& stage = candidate.plan.stages[0].stage;
      if (name_of(stage.family()) != family || taken++ >= most) continue;
      list.push_back({layer.name + " " + candidate.algorithm, stage, candidate.schedules[0], candidate.footprints[0]});
    }
  }
  return list;
}

// Blocks of inverted residuals and depthwise separable layers: input channels, plane, wide channels, filters, filter, stride.
struct Block {
  int64_t c, size, wide, k, filter, stride;
};
constexpr Block kBlocks[] = {{32, 112, 32, 16, 3, 1},   {16, 112, 96, 24, 3, 2},   {24, 56, 144, 24, 3, 1},
                             {24, 56, 144, 32, 3, 2},   {32, 28, 192, 32, 3, 1},   {32, 28, 192, 64, 3, 2},
                             {64, 14, 384, 64, 3, 1},   {64, 14, 384, 96, 3, 1},   {96, 14, 576, 96, 3, 1},
                             {96, 14, 576, 160, 3, 2},  {160, 7, 960, 160, 3, 1},  {160, 7, 960, 320, 3, 1},
                             {24, 56, 144, 40, 5, 2},   {40, 28, 240, 40, 5, 1},   {64, 112, 64, 64, 3, 2},
                             {128, 56, 128, 128, 3, 1}, {256, 28, 256, 256, 3, 1}, {512, 14, 512, 512, 3, 1}};

Stage stage_of(const Block& b) {
  InvertedParams p;
  p.expand = b.c != b.wide;
  const int64_t pad = b.filter / 2, out = (b.size + b.stride - 1) / b.stride;
  p.window = {{1, b.filter, b.filter}, {1, b.stride, b.stride}, {1, 1, 1}, {0, pad, pad}, {0, pad, pad}};
  p.wide.activation = p.deep.activation = Activation::relu;
  const auto map = [](int64_t c, int64_t size) {
    return TensorDesc{DType::f32, {1, c, size, size}, channels_last({1, c, size, size})};
  };
  Stage stage{p, {map(b.c, b.size)}, {map(b.k, out)}};
  if (p.expand) stage.inputs.push_back(dense_desc(DType::f32, {b.wide, b.c, 1, 1}));
  stage.inputs.push_back(dense_desc(DType::f32, {b.wide, 1, b.filter, b.filter}));
  stage.inputs.push_back(dense_desc(DType::f32, {b.k, b.wide, 1, 1}));
  if (p.expand && b.c == b.k && b.stride == 1) {
    get<InvertedParams>(stage.params).project.residuals_before = 1;
    stage.inputs.push_back(map(b.c, b.size));
  }
  return stage;
}

std::vector<WalkedStage> block_candidates(const Device& device) {
  std::vector<WalkedStage> list;
  const FamilyInfo& family = info(Family::inverted);
  for (const Block& block : kBlocks) {
    const Stage stage = stage_of(block);
    for (const Variant& variant : family.variants) {
      Reason why_not{};
      for (const Schedule& schedule : family.schedules(stage, variant, device, why_not)) {
        const std::string name = std::to_string(block.c) + "x" + std::to_string(block.size) + "-" + std::to_string(block.wide) +
                                 "-" + std::to_string(block.k) + " " + to_text(schedule);
        list.push_back({name, stage, schedule, family.footprint(stage, schedule, device)});
      }
    }
  }
  return list;
}

// Compares all candidates on all devices; at most one of `one_of` comparisons may be apart.
void compare(std::string_view family, int one_of, const std::function<std::vector<WalkedStage>(const Device&)>& candidates_on,
             int every = 1) {
  int compared = 0, apart = 0, number = 0;
  std::string list;
  for (const Device& device : cpus())
    for (const WalkedStage& candidate : candidates_on(device)) {
      if (number++ % every != 0) continue;
      const Walked counted = walked(candidate.stage, candidate.schedule, device);
      if (counted.least.empty()) continue;
      const std::vector<double>& predicted = candidate.footprint.bytes;
      for (size_t i = 0; i < predicted.size(); ++i) {
        ++compared;
        if (agrees(predicted[i], counted.least[i], counted.most[i], counted.least[0])) continue;
        ++apart;
        char line[400];
        std::snprintf(line, sizeof line, "%s %s %s: %.0f KB predicted, %.0f to %.0f counted (%s)\n",
                      device.architecture.c_str(), candidate.name.c_str(), device.memory[i].name.c_str(), predicted[i] / 1024,
                      counted.least[i] / 1024, counted.most[i] / 1024, to_text(candidate.schedule).c_str());
        list += line;
      }
    }
  std::printf("%.*s: %d of %d apart\n", static_cast<int>(family.size()), family.data(), apart, compared);
  EXPECT_GT(compared, 20) << family;
  // A sample may have fewer comparisons than `one_of`, and the one among them.
  const int allowed = std::max(every > 1 ? 1 : 0, compared / one_of);
  EXPECT_LE(apart, allowed) << family << "\n" << list;
}
void compare_layers(std::string_view family, int one_of, size_t most = std::numeric_limits<size_t>::max()) {
  const auto layers = read_layers(SPARKLE_SOURCE_DIR "/shapes/layers.csv");
  ASSERT_TRUE(layers.ok());
  compare(family, one_of, [&](const Device& device) { return layer_candidates(*layers, family, device, most); }, kEvery);
}

// Of how many comparisons one may be apart. The caches of the walk forget the oldest line first, so that whatever is a little
// too large is lost altogether, and a footprint cannot always tell on which side of that edge it lies.
TEST(CountedWalk, Gemm) { compare_layers("gemm", 40); }
TEST(CountedWalk, Winograd) { compare_layers("winograd", 300); }
TEST(CountedWalk, Grouped) { compare_layers("grouped", 19); }
TEST(CountedWalk, Depthwise) { compare_layers("depthwise", 300); }
TEST(CountedWalk, Direct) { compare_layers("direct", 40); }
TEST(CountedWalk, Inverted) { compare("inverted", 50, block_candidates); }
// Walks of transforms take longest.
TEST(CountedWalk, Fft) { compare_layers("fft", 110, 2); }

}  // namespace
}  // namespace sparkle
