// A pattern that an ablation says is off is off: seen in what the CPU's loops hand to their kernels, in what a GPU's driver is
// given, and in the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backends/cpu/gemm/gemm_nest.h"
#include "base/system/executor.h"
#include "device/device_json.h"
#include "families/gemm/gemm.h"
#include "families/gemm/scalar_unit.h"
#include "families/loops/tile_schedule.h"
#include "measure/steps/optimisation_steps.h"
#include "measure/prepared_layer.h"
#ifdef SPARKLE_TESTS_WITH_VULKAN
#include "backends/vulkan/sources.h"
#endif

namespace sparkle {
namespace {

const OptimisationStep& named(const std::vector<OptimisationStep>& levels, std::string_view name) {
  const auto at = std::ranges::find(levels, name, &OptimisationStep::name);
  EXPECT_NE(at, levels.end()) << name;
  return *at;
}

Problem layer(const char* text) {
  auto problem = parse_conv(text);
  EXPECT_TRUE(problem.ok());
  problem->epilogue.bias = true, problem->epilogue.activation = Activation::relu;
  return *problem;
}

std::vector<OptimisationStep> ablation(const Problem& problem, const char* device) {
  const auto described = load_device(std::string(SPARKLE_SOURCE_DIR "/devices/") + device + ".json");
  EXPECT_TRUE(described.ok());
  auto levels = ablation_of(problem, *described, PlanOptions{});
  EXPECT_TRUE(levels.ok()) << levels.error().message;
  return levels.ok() ? *levels : std::vector<OptimisationStep>{};
}

// What the micro-kernels of a run were asked for.
struct Seen {
  int rows = 0, vectors = 0;  // the most of a call
  int64_t fetched = 0;        // calls that fetch ahead
  int64_t lines = 0;          // calls that fetch lines of y
  int64_t calls = 0;
  int64_t changes = 0;  // of the panel of weights from call to call
  const void* panel = nullptr;
};
Seen seen;

template <int kRows, int kVectors>
void watch(const cpu::TileCall& call) {
  seen.rows = std::max(seen.rows, kRows), seen.vectors = std::max(seen.vectors, kVectors);
  seen.fetched += call.prefetch_step != 0, seen.lines += call.spacing != 0;
  seen.changes += seen.calls > 0 && call.b != seen.panel;
  seen.panel = call.b, ++seen.calls;
}
template <int kRows>
void watch_rows(cpu::TileKernels& kernels) {
  kernels.set(kRows, 1, watch<kRows, 1>), kernels.set(kRows, 2, watch<kRows, 2>);
  kernels.set(kRows, 3, watch<kRows, 3>), kernels.set(kRows, 4, watch<kRows, 4>);
}

// The loops of a level's product with kernels that compute nothing and remember what they were called with.
Seen watched(const OptimisationStep& level, int lanes) {
  const Stage& stage = level.choice.plan.stages[0].stage;
  const auto& schedule = get<GemmSchedule>(level.choice.schedules[0]);
  cpu::TileKernels kernels;
  kernels.lanes = lanes, kernels.max_vectors = cpu::kMaxTileVectors, kernels.tall_vectors = 2;
  watch_rows<1>(kernels), watch_rows<2>(kernels), watch_rows<3>(kernels), watch_rows<4>(kernels), watch_rows<5>(kernels);
  watch_rows<6>(kernels), watch_rows<7>(kernels), watch_rows<8>(kernels), watch_rows<9>(kernels), watch_rows<10>(kernels);
  watch_rows<11>(kernels), watch_rows<12>(kernels);
  kernels.finish = [](const cpu::FinishCall&) {};
  const auto geometry = cpu::gemm_geometry(stage, schedule, lanes);
  EXPECT_TRUE(geometry.ok());
  std::vector<float> x(static_cast<size_t>(stage.inputs[0].elements())), y(static_cast<size_t>(stage.outputs[0].elements()));
  std::vector<float> w(static_cast<size_t>((geometry->padded_n + 64) * geometry->k)), bias(4096);
  cpu::GemmOperands operands;
  operands.a = x.data(), operands.b = w.data(), operands.bias = bias.data(), operands.y = y.data();
  seen = {};
  InlineExecutor alone;
  cpu::run_gemm(*geometry, schedule, get<GemmParams>(stage.params).epilogue, kernels, operands, alone);
  EXPECT_GT(seen.calls, 0);
  return seen;
}

// Deep enough for chunks of k and panels beyond half of the L2; 16 filters would make calls of two tiles.
TEST(Ablation, PatternsOfACpuAreOff) {
  for (const char* text : {"ic512ih14oc512oh14kh3ph1", "ic16ih56oc16oh56kh1ph0"}) {
    SCOPED_TRACE(text);
    const auto levels = ablation(layer(text), "epyc-zen4");
    ASSERT_EQ(levels.size(), 6u);
    const OptimisationStep& all = levels[0];
    const auto& on = get<GemmSchedule>(all.choice.schedules[0]);
    const Seen with = watched(all, 16);
    EXPECT_GT(with.rows * with.vectors, 5);
    EXPECT_GT(with.fetched, 0);
    EXPECT_GT(with.lines, 0);

    // One row and one vector a call, never two tiles at once; what is fetched is still fetched.
    const Seen untiled = watched(named(levels, "tile"), 16);
    EXPECT_EQ(untiled.rows, 1);
    EXPECT_EQ(untiled.vectors, 1);
    EXPECT_GT(untiled.fetched, 0);

    // Everything is the same but the unit, whose kernels have one lane.
    GemmSchedule scalar = get<GemmSchedule>(named(levels, "vectorise").choice.schedules[0]);
    EXPECT_EQ(scalar.unit, kScalarUnit);
    scalar.unit = on.unit;
    EXPECT_EQ(scalar, on);

    const Seen unfetched = watched(named(levels, "pipeline"), 16);
    EXPECT_EQ(unfetched.fetched, 0);
    EXPECT_EQ(unfetched.lines, 0);
    EXPECT_EQ(unfetched.rows, with.rows);
    EXPECT_EQ(unfetched.calls, with.calls);

    // Sums without bias and activation, then these: two steps over a plane in between.
    const Choice& apart = named(levels, "fuse").choice;
    ASSERT_EQ(apart.plan.stages.size(), 2u);
    EXPECT_EQ(get<GemmParams>(apart.plan.stages[0].stage.params).epilogue, Epilogue{});
    EXPECT_EQ(apart.plan.stages[1].stage.family(), Family::pointwise);
    EXPECT_EQ(apart.plan.temporaries.size(), 1u);
    EXPECT_EQ(apart.schedules[0], all.choice.schedules[0]);
  }
}

// Cut to the caches, a panel of weights serves many tiles before the next; not cut, the panels change at every call.
TEST(Ablation, LoopsAreNotCut) {
  const auto levels = ablation(layer("ic512ih14oc512oh14kh3ph1"), "epyc-zen4");
  const Seen cut = watched(levels[0], 16), uncut = watched(named(levels, "block"), 16);
  EXPECT_LT(cut.changes * 4, cut.calls);
  EXPECT_GT(uncut.changes + 1, uncut.calls / 2);
  EXPECT_EQ(named(ablation(layer("ic16ih56oc16oh56kh1ph0"), "epyc-zen4"), "block").absent,
            "all weights stay in half of the L2: nothing is cut");
}

#ifdef SPARKLE_TESTS_WITH_VULKAN
std::map<std::string, uint32_t> constants_of(const OptimisationStep& level, const Device& device, std::string& shader) {
  std::map<std::string, uint32_t> found;
  const auto sources =
      vulkan::sources_of(level.choice.plan.stages[0].stage, level.choice.schedules[0], device, 1u << 1 | 1u << 2);
  EXPECT_TRUE(sources.ok()) << sources.error().message;
  if (!sources.ok() || sources->empty()) return found;
  shader = sources->front().shader;
  for (const auto& constant : sources->front().constants) found[constant.name] = constant.value;
  return found;
}

TEST(Ablation, PatternsOfAGpuAreOff) {
  const auto device = load_device(SPARKLE_SOURCE_DIR "/devices/radeon-rx-7900-xtx.json");
  ASSERT_TRUE(device.ok());
  // Enough tiles for all cores: no sum is split.
  const auto levels = ablation(layer("ic64ih224oc64oh224kh3ph1"), "radeon-rx-7900-xtx");
  ASSERT_EQ(levels.size(), 8u);
  std::string shader;
  auto all = constants_of(levels[0], *device, shader);
  EXPECT_EQ(shader, "gemm_tile");
  EXPECT_EQ(all.count("kAhead"), 0u);  // on unless said otherwise
  EXPECT_EQ(all["kVectors"], 1u);
  EXPECT_EQ(all["kStoreVectors"], 1u);

  auto single = constants_of(named(levels, "vectorise"), *device, shader);
  EXPECT_EQ(shader, "gemm_tile");
  for (const char* constant : {"kVectors", "kStoreVectors", "kVec4"}) EXPECT_EQ(single.at(constant), 0u) << constant;
  EXPECT_EQ(single.at("kAhead"), 1u);
  auto waiting = constants_of(named(levels, "pipeline"), *device, shader);
  EXPECT_EQ(shader, "gemm_tile");
  EXPECT_EQ(waiting.at("kAhead"), 0u);
  EXPECT_EQ(waiting.at("kVec4"), 1u);
  EXPECT_EQ(waiting["kVectors"], 1u);
  for (const char* same : {"kM", "kN", "kK", "kThreadM", "kThreadN"}) {
    EXPECT_EQ(waiting[same], all[same]) << same;
    EXPECT_EQ(single[same], all[same]) << same;
  }
  EXPECT_GT(all["kPad"], 0u);
  EXPECT_GT(all["kUnroll"], 1u);
  EXPECT_EQ(constants_of(named(levels, "unroll"), *device, shader).at("kUnroll"), 1u);
  EXPECT_EQ(shader, "gemm_tile");
  EXPECT_EQ(constants_of(named(levels, "bank padding"), *device, shader).at("kPad"), 0u);
  EXPECT_EQ(shader, "gemm_tile");
  // The same tiles of maps whose channels lie a plane apart: nothing moves four at a time, neither in nor out.
  const OptimisationStep& planes = named(levels, "NHWC");
  EXPECT_TRUE(planes.other_layout);
  EXPECT_EQ(planes.choice.plan.stages[0].stage.inputs[0].layout.strides[1], 224 * 224);
  EXPECT_EQ(planes.choice.schedules[0], levels[0].choice.schedules[0]);
  auto apart_by_planes = constants_of(planes, *device, shader);
  EXPECT_EQ(shader, "gemm_tile");
  EXPECT_EQ(apart_by_planes["kVec4"], 0u);
  EXPECT_EQ(apart_by_planes["kStoreVectors"], 0u);
  for (const char* same : {"kM", "kN", "kK", "kThreadM", "kThreadN", "kUnroll", "kPad"})
    EXPECT_EQ(apart_by_planes[same], all[same]) << same;
  constants_of(named(levels, "tile"), *device, shader);
  EXPECT_EQ(shader, "gemm_direct");
  EXPECT_EQ(get<TileSchedule>(named(levels, "tile").choice.schedules[0]).thread_m, 1);
  const Choice& apart = named(levels, "fuse").choice;
  ASSERT_EQ(apart.plan.stages.size(), 2u);
  EXPECT_EQ(apart.plan.stages[1].stage.family(), Family::pointwise);
}
#endif

// On CUDA another compiled kernel stands for each pattern that is off; each is said to be absent where the product has no such
// pattern.
TEST(Ablation, PatternsOfACudaDeviceAreOff) {
  auto device = load_device(SPARKLE_SOURCE_DIR "/devices/h200.json");
  ASSERT_TRUE(device.ok());
  struct Case {
    const char *layer, *dtype;
    std::vector<std::pair<const char*, const char*>> variants;  // of a step; nullptr: absent
  };
  const Case cases[] = {
      {"mb32ic384ih64oc384oh64kh3ph1",
       "bf16",
       {{"all on", "wgmma_pairs"},
        {"tile", "one_output"},
        {"copying engine", "mma"},
        {"cluster", "wgmma"},
        {"window reuse", nullptr},
        {"matrix units", "fma_widened"},
        {"pipeline", nullptr}}},
      {"mb32ic64ih56oc64oh56kh3ph1",
       "f16",
       {{"all on", "wgmma_halo"}, {"matrix units", "fma_widened"}, {"window reuse", "wgmma"}, {"cluster", nullptr}}},
      {"mb8ic3ih56oc64oh56kh3ph1", "bf16", {{"all on", "mma_elements"}, {"matrix units", nullptr}}},
      {"ic64ih56oc64oh56kh3ph1",
       "f32",
       {{"all on", "fma"},
        {"matrix units", nullptr},
        {"vectorise", "fma_elements"},
        {"pipeline", "fma_in_turn"},
        {"tile", "one_output"}}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.layer);
    Problem problem = layer(c.layer);
    problem.dtype = c.dtype;
    const auto steps = ablation_of(problem, *device, PlanOptions{});
    ASSERT_TRUE(steps.ok()) << steps.error().message;
    for (const auto& [name, variant] : c.variants) {
      const OptimisationStep& step = named(*steps, name);
      if (!variant) EXPECT_NE(step.absent, "") << name;
      else EXPECT_EQ(variant_of(step.choice.schedules.at(0)), variant) << name;
    }
    EXPECT_EQ(named(*steps, "fuse").choice.plan.stages.size(), 2u);
    EXPECT_EQ(named(*steps, "implicit window").choice.plan.stages.back().stage.family(), Family::copy);
  }
}

}  // namespace
}  // namespace sparkle
