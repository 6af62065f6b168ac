// What is said of memory levels agrees with schedules and footprints, for every candidate of layers of each family, on CPUs and
// GPUs; plans of two devices stand side by side by the nodes that they do.
#include "plan/levels.h"

#include <gtest/gtest.h>

#include <set>

#include "families/common.h"
#include "families/depthwise/depthwise.h"
#include "families/direct/direct.h"
#include "families/fft/fft.h"
#include "families/fft/fft_tiles.h"
#include "families/gemm/gemm.h"
#include "families/gemm/gemm_family.h"
#include "families/gemm/gemm_tiles.h"
#include "families/grouped/grouped.h"
#include "families/inverted/inverted.h"
#include "families/registry.h"
#include "families/winograd/winograd.h"
#include "plan/choose/choose.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

constexpr const char* kDevices[] = {"xeon-emr", "ryzen-zen3-laptop", "graviton3-neoverse-v1", "h200-vulkan",
                                    "radeon-rx-7900-xtx"};
// Dense, pointwise, few channels, grouped, depthwise, and a large filter.
constexpr const char* kLayers[] = {"ic64ih56oc64oh56kh3ph1",      "ic512ih7oc2048oh7kh1",        "ic3ih224oc32oh112kh3sh2ph1",
                                   "ic16ih256oc64oh256kh1",       "g32ic128ih56oc128oh56kh3ph1", "g64ic64ih56oc64oh56kh3ph1",
                                   "g32ic32ih64oc32oh64kh31ph15", "ic8ih20oc8oh14kh7",           "ic2048ih1oc10oh1kh1"};

PlanStep step_of(const Choice& choice, size_t i) {
  PlanStep step;
  step.name = "layer", step.nodes = {"layer"}, step.algorithm = choice.algorithm;
  step.stage = choice.plan.stages[i].stage, step.schedule = choice.schedules[i], step.footprint = choice.footprints[i];
  step.cost = choice.costs[i];
  return step;
}

const LevelUse* level(const StepLevels& levels, std::string_view name) {
  for (const LevelUse& use : levels.levels)
    if (use.level == name) return &use;
  return nullptr;
}

double lanes_of_unit(const PlanStep& step, const Device& device) {
  const MathUnit* unit = device.unit(unit_of(step.schedule));
  return unit ? std::max(1, unit->n) : 1;
}

// Bytes of sums that the schedule alone says are in registers; 0 where it does not.
double register_bytes(const PlanStep& step, const Device& device) {
  const double lanes = lanes_of_unit(step, device);
  if (const auto* s = get_if<GemmSchedule>(&step.schedule); s && s->variant != kRowDots) return 4 * s->mr * s->nr * lanes;
  if (const auto* s = get_if<TileSchedule>(&step.schedule)) return 4.0 * s->thread_m * s->thread_n;
  if (const auto* s = get_if<WinogradSchedule>(&step.schedule)) return 4 * s->mr * s->nr * lanes;
  if (const auto* s = get_if<InvertedSchedule>(&step.schedule)) return 4 * s->mr * s->nr * lanes;
  if (const auto* s = get_if<DirectSchedule>(&step.schedule)) return 4 * s->maps * s->pixels * lanes;
  if (const auto* s = get_if<DepthwiseSchedule>(&step.schedule); s && !device.has_workgroups())
    return 4 * s->rows * s->columns * lanes;
  if (const auto* s = get_if<DepthwiseSchedule>(&step.schedule))
    return (s->variant.ends_with("naive") ? 4.0 : 16.0) * s->rows * s->columns;
  return 0;
}

// Bytes of shared memory of a workgroup, from the schedule alone.
double shared_of(const PlanStep& step) {
  if (const auto* s = get_if<TileSchedule>(&step.schedule))
    return static_cast<double>(is_integer_tile(s->variant) ? integer_tile_shared_bytes(*s)
                               : s->variant == kNativeType ? native_type_shared_bytes(*s, step.stage.outputs[0].dtype)
                                                           : tile_needs(*s).shared_bytes);
  if (const auto* s = get_if<FftTileSchedule>(&step.schedule))
    return static_cast<double>(fft_shared_bytes(*s)) +
           (s->product.m > 0 ? static_cast<double>(tile_needs(s->product).shared_bytes) : 0);
  return 0;
}

void expect_agreement(const PlanStep& step, const Device& device) {
  SCOPED_TRACE(std::string(name_of(step.stage.family())) + " " + to_text(step.schedule) + " on " + device.name);
  const StepLevels levels = levels_of(step, device);
  ASSERT_EQ(levels.levels.size(), device.memory.size() + 1);
  EXPECT_FALSE(levels.vectorised.empty());
  EXPECT_FALSE(levels.in_flight.empty());
  const LevelUse& registers = levels.levels[0];
  EXPECT_EQ(registers.level, kRegisters);
  if (const double bytes = register_bytes(step, device); bytes > 0) {
    ASSERT_FALSE(registers.tiles.empty());
    EXPECT_EQ(registers.tiles[0].bytes, bytes);
  }
  const MathUnit* unit = device.unit(unit_of(step.schedule));
  if (!device.has_workgroups() && unit && unit->kind == UnitKind::vector_fma) {
    for (const BlockingTile& tile : registers.tiles)
      EXPECT_LE(tile.bytes, 4.0 * std::max(1, unit->n) * registers_of(*unit)) << tile.what;
  }
  double shared = 0;
  for (size_t i = 0; i < device.memory.size(); ++i) {
    const LevelUse& use = levels.levels[i + 1];
    EXPECT_EQ(use.level, device.memory[i].name);
    EXPECT_EQ(use.bytes, i < step.footprint.bytes.size() ? step.footprint.bytes[i] : 0) << use.level;
    double in = 0;
    for (size_t j = i + 1; j < step.footprint.bytes.size() && in <= 0; ++j) in = step.footprint.bytes[j];
    EXPECT_NEAR(use.reuse * in, in > 0 ? use.bytes : 0, 1e-6 * use.bytes) << use.level;
    for (const BlockingTile& tile : use.tiles) {
      EXPECT_GT(tile.bytes, 0) << tile.what;
      if (i + 1 < device.memory.size() && use.capacity > 0) {
        EXPECT_LE(tile.bytes, static_cast<double>(use.capacity)) << use.level << ": " << tile.what;
      }
      if (device.memory[i].filled_by_hand) shared += tile.bytes;
      EXPECT_EQ(tile.what.find("-"), std::string::npos) << tile.what;  // no negative size
    }
  }
  if (device.has_workgroups() && (get_if<TileSchedule>(&step.schedule) || get_if<FftTileSchedule>(&step.schedule))) {
    const auto* tiles = get_if<TileSchedule>(&step.schedule);
    if (!tiles || tiles->variant != "halo") {
      EXPECT_EQ(shared, shared_of(step));  // of that the window decides
    }
    if (tiles && device.limits.shared_bytes_per_group > 0) {
      EXPECT_LE(shared, static_cast<double>(device.limits.shared_bytes_per_group));
    }
  }
}

TEST(Levels, AgreeWithEverySchedule) {
  std::set<std::string> seen;
  for (const char* name : kDevices) {
    const Device device = testing::device_named(name);
    for (const char* layer : kLayers) {
      const Problem p = *parse_conv(layer);
      const ProblemOperands operands = operands_of(p);
      PlanOptions options;
      options.accuracy = 1e-2;
      const auto candidates = candidates_of(AnchorCall{p, operands.inputs, operands.output}, device, options);
      ASSERT_TRUE(candidates.ok()) << layer << ": " << candidates.error().message;
      for (const Choice& choice : *candidates)
        for (size_t i = 0; i < choice.plan.stages.size(); ++i) {
          const PlanStep step = step_of(choice, i);
          seen.insert(std::string(device.has_workgroups() ? "gpu " : "cpu ") + std::string(name_of(step.stage.family())));
          expect_agreement(step, device);
        }
    }
  }
  for (const char* wanted : {"cpu gemm", "cpu winograd", "cpu direct", "cpu depthwise", "cpu grouped", "cpu fft", "gpu gemm",
                             "gpu winograd", "gpu depthwise", "gpu fft"})
    EXPECT_TRUE(seen.contains(wanted)) << wanted;
}

// Every family says something of all of its samples, on whatever device has schedules for them.
TEST(Levels, EveryFamilyIsDescribed) {
  for (const char* name : kDevices) {
    const Device device = testing::device_named(name);
    for (int i = 0; i < kFamilies; ++i) {
      const FamilyInfo& family = info(static_cast<Family>(i));
      int described = 0;
      for (const Variant& variant : family.variants)
        for (const SampleForm& form : family.sample_forms()) {
          const Schedule asked = LoopSchedule{std::string(variant.name), "", 0};
          for (const Stage& stage : family.samples({form.params, asked, form.inputs, form.outputs})) {
            Reason why = Reason::none;
            for (const Schedule& schedule : family.schedules(stage, variant, device, why)) {
              PlanStep step;
              step.stage = stage, step.schedule = schedule, step.footprint = family.footprint(stage, schedule, device);
              expect_agreement(step, device);
              const StepLevels levels = levels_of(step, device);
              size_t tiles = 0;
              for (const LevelUse& use : levels.levels) tiles += use.tiles.size();
              EXPECT_GT(tiles, 0u) << family.name;
              ++described;
            }
          }
        }
      if (!device.has_workgroups()) {
        EXPECT_GT(described, 0) << family.name << " on " << name;
      }
    }
  }
}

TEST(Levels, AShorterPanelIsNearer) {
  const Device device = testing::device_named("xeon-emr");
  const Problem p = *parse_conv("ic256ih14oc256oh14kh3ph1");
  const ProblemOperands operands = operands_of(p);
  PlanOptions options;
  options.algorithm = "gemm";
  const auto choice = choose(AnchorCall{p, operands.inputs, operands.output}, device, options);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  PlanStep step = step_of(*choice, 0);
  auto& schedule = get<GemmSchedule>(step.schedule);
  schedule.kc = 64, schedule.mc = 48, schedule.order = GemmOrder::columns;
  // 64 x 64 weights and six rows of inputs fit the L1, all 2304 of a panel do not.
  const StepLevels cut = levels_of(step, device);
  const LevelUse* l1 = level(cut, "L1");
  ASSERT_TRUE(l1 && !l1->tiles.empty());
  EXPECT_NE(l1->tiles[0].what.find("k = 64"), std::string::npos) << l1->tiles[0].what;
  EXPECT_NE(l1->tiles[0].what.find("weights of 64 filters"), std::string::npos) << l1->tiles[0].what;
  EXPECT_GE(l1->tiles[0].bytes, 64.0 * 64 * 4);
  schedule.kc = 0;
  const StepLevels whole = levels_of(step, device);
  EXPECT_EQ(level(whole, "L1")->tiles[0].what.find("weights"), std::string::npos) << level(whole, "L1")->tiles[0].what;
  EXPECT_NE(level(whole, "L2")->tiles[0].what.find("48 pixels and weights of 64 filters"), std::string::npos)
      << level(whole, "L2")->tiles[0].what;
}

// 24 -> 144 -> depthwise -> 24, as in MobileNetV2.
Graph inverted_block() {
  testing::GraphBuilder b;
  const TensorId x = b.input({1, 24, 56, 56});
  const TensorId wide = b.pointwise(PointwiseOp::relu, {b.op("Conv", testing::conv_op(0), {x, b.weights({144, 24, 1, 1})})});
  const TensorId deep =
      b.pointwise(PointwiseOp::relu, {b.op("Conv", testing::conv_op(1, 144), {wide, b.weights({144, 1, 3, 3})})});
  return b.done(b.op("Conv", testing::conv_op(0), {deep, b.weights({24, 144, 1, 1})}));
}

TEST(Levels, OfABlockStandBesideThoseOfItsLayers) {
  PlanOptions options;
  options.fusion = "inverted";
  const Graph graph = *testing::ready(inverted_block());
  std::vector<DevicePlan> plans;
  for (const char* name : {"xeon-emr", "h200-vulkan"}) {
    const Device device = testing::device_named(name);
    auto plan = make_plan(graph, device, options);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (const PlanStep& step : plan->steps) expect_agreement(step, device);
    plans.push_back({name, device, std::move(*plan)});
  }
  bool beside = false;
  for (const SameWork& group : same_work(plans, "")) {
    if (group[0].size() != 1 || group[1].size() != 3) continue;
    beside = true;
    const StepLevels block = levels_of(*group[0][0], plans[0].device);
    EXPECT_EQ(block.fused[0], "1x1, depthwise and 1x1");
    // The wide plane between the parts is what a pass keeps near; the GPU's layers carry it through memory.
    EXPECT_NE(level(block, "L2")->tiles[0].what.find("of the wide plane"), std::string::npos)
        << level(block, "L2")->tiles[0].what;
  }
  EXPECT_TRUE(beside) << levels_text(plans, "");
  EXPECT_NE(levels_json(plans, "").find("1x1, depthwise and 1x1"), std::string::npos);
}

// A step of the CPU that does what are three on the GPU stands beside all of them, and nothing is lost or doubled.
TEST(Levels, StandSideBySideByTheirNodes) {
  const auto plan_of = [](std::vector<std::vector<std::string>> nodes) {
    Plan plan;
    for (auto& of_step : nodes) {
      PlanStep step;
      step.name = of_step.empty() ? "moved" : of_step.front(), step.nodes = std::move(of_step);
      plan.steps.push_back(std::move(step));
    }
    return plan;
  };
  const std::vector<DevicePlan> plans = {{"a", {}, plan_of({{"one"}, {"two"}, {"three"}, {}, {"four"}})},
                                         {"b", {}, plan_of({{"one", "two", "three"}, {"four", "five"}})}};
  const auto groups = same_work(plans, "");
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0][0].size(), 3u);
  EXPECT_EQ(groups[0][0][2]->name, "three");
  EXPECT_EQ(groups[0][1].size(), 1u);
  EXPECT_EQ(groups[1][0].size(), 1u);
  EXPECT_TRUE(groups[1][1].empty());
  EXPECT_EQ(groups[2][1][0]->nodes.size(), 2u);
  const auto named = same_work(plans, "thr");
  ASSERT_EQ(named.size(), 1u);
  EXPECT_EQ(named[0][0].size(), 3u);
  EXPECT_TRUE(same_work(plans, "six").empty());
  EXPECT_NE(levels_text(plans, "six").find("'six'"), std::string::npos);
}

}  // namespace
}  // namespace sparkle
