// Choice and cost: what is forced is taken, what is passed over says why, measurements outrank predictions.
#include "plan/choose/choose.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "families/common.h"
#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "plan/fuse/anchors.h"
#include "plan/memory/budget.h"
#include "plan/choose/cost.h"
#include "plan/explain.h"
#include "plan/plan_testing.h"
#include "plan/choose/tuning_store.h"

namespace sparkle {
namespace {

AnchorCall call_of(std::string_view text) {
  const Problem p = *parse_conv(text);
  const ProblemOperands operands = operands_of(p);
  return {p, operands.inputs, operands.output};
}
constexpr std::string_view kLayer = "ic64ih56oc64oh56kh3ph1", kDepthwise = "g64ic64ih56oc64oh56kh3ph1";

const Candidate* candidate(const Choice& choice, std::string_view algorithm, std::string_view schedule) {
  for (const Candidate& c : choice.candidates)
    if (c.algorithm == algorithm && c.schedule.find(schedule) != std::string::npos) return &c;
  return nullptr;
}

TEST(Cost, GrowsWithWorkAndTraffic) {
  const Device device = testing::device_named("epyc-zen4");
  GemmSchedule schedule;
  schedule.unit = "avx512";
  Footprint f;
  f.bytes.assign(device.memory.size(), 0);
  f.parallel_items = 64;
  double before = cost_of(f, schedule, device).seconds;
  EXPECT_EQ(cost_of(f, schedule, device).bound, device.launch_seconds > 0 ? "launch" : "compute");
  for (double flops : {1e6, 1e8, 1e10}) {
    f.executed_flops = flops;
    EXPECT_GT(cost_of(f, schedule, device).seconds, before);
    before = cost_of(f, schedule, device).seconds;
  }
  EXPECT_EQ(cost_of(f, schedule, device).bound, "compute");
  for (size_t level = 0; level < f.bytes.size(); ++level) {
    Footprint more = f;
    double last = cost_of(more, schedule, device).seconds;
    for (double bytes : {1e6, 1e10, 1e13}) {
      more.bytes[level] = bytes;
      EXPECT_GE(cost_of(more, schedule, device).seconds, last);
      last = cost_of(more, schedule, device).seconds;
    }
    EXPECT_EQ(cost_of(more, schedule, device).bound, device.memory[level].name);
  }
  Footprint alone = f;
  alone.parallel_items = 1;
  EXPECT_GE(cost_of(alone, schedule, device).seconds, cost_of(f, schedule, device).seconds);
}

TEST(Cost, SurvivesADeviceOfUnknowns) {
  Footprint f;
  f.executed_flops = 1e9;
  const Cost cost = cost_of(f, LoopSchedule{}, Device{});
  EXPECT_GT(cost.seconds, 0);
  EXPECT_TRUE(std::isfinite(cost.seconds));
  EXPECT_EQ(add({1, "compute"}, {2, "DRAM"}).bound, "DRAM");
  EXPECT_EQ(add({1, "compute"}, {2, "DRAM"}).seconds, 3);
}

TEST(Choose, CheapestFirstAndEveryOtherSaysWhy) {
  for (std::string_view layer : {kLayer, kDepthwise}) {
    const auto choice = choose(call_of(layer), testing::device_named("epyc-zen4"), {});
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_TRUE(choice->algorithm.starts_with(layer == kDepthwise ? "depthwise" : "winograd")) << choice->algorithm;
    ASSERT_FALSE(choice->candidates.empty());
    EXPECT_EQ(choice->candidates[0].reason, Reason::none);
    EXPECT_EQ(choice->candidates[0].schedule, to_text(choice->schedules[0]));
    for (size_t i = 1; i < choice->candidates.size(); ++i) {
      const Candidate& c = choice->candidates[i];
      EXPECT_NE(c.reason, Reason::none) << c.algorithm << " " << c.schedule;
      if (c.reason == Reason::less_accurate) {
        EXPECT_LT(c.cost->seconds, choice->cost.seconds) << c.schedule;
      }
      // What is called costlier has a cost to compare.
      if (c.reason == Reason::costlier) {
        ASSERT_TRUE(c.cost.has_value()) << c.algorithm << " " << c.schedule;
        EXPECT_GE(c.cost->seconds, choice->cost.seconds);
      }
    }
  }
}

// A copy of the input and a product: what is compared, and shown, is the time of both, not that of the cheap one.
TEST(Choose, CandidatesOfSeveralStagesCostTheWhole) {
  const Device device = testing::device_named("epyc-zen4");
  PlanOptions forced;
  forced.algorithm = "gemm_padded";
  constexpr std::string_view kSmallPlane = "ic64ih5oc64oh5kh3ph1";
  const auto alone = choose(call_of(kSmallPlane), device, forced), among = choose(call_of(kSmallPlane), device, {});
  ASSERT_TRUE(alone.ok() && among.ok());
  ASSERT_EQ(alone->schedules.size(), 2u);
  int listed = 0;
  for (const Candidate& c : among->candidates) {
    if (c.algorithm != "gemm_padded" || !c.cost) continue;
    EXPECT_GE(c.cost->seconds, alone->cost.seconds * (1 - 1e-12)) << c.schedule;
    ++listed;
  }
  EXPECT_GE(listed, 2);
}

TEST(Choose, UnitsWithoutKernelsAreListed) {
  const Device device = testing::device_named("xeon-emr");
  const auto choice = choose(call_of(kLayer), device, {});
  ASSERT_TRUE(choice.ok());
  ASSERT_NE(device.unit("amx-int8"), nullptr);
  ASSERT_NE(device.unit("amx-bf16"), nullptr);
  int listed = 0;
  for (const MathUnit& unit : device.units)
    if (!has_kernels(device, unit)) {
      const Candidate* c = candidate(*choice, "gemm", "unit=" + unit.name);
      ASSERT_NE(c, nullptr) << unit.name;
      EXPECT_EQ(c->reason, Reason::no_kernel);
      ++listed;
    }
  EXPECT_GT(listed, 0);
}

TEST(Choose, ForcedAlgorithmAndVariant) {
  const Device device = testing::device_named("epyc-zen4");
  PlanOptions options;
  options.algorithm = "gemm";
  auto choice = choose(call_of(kDepthwise), device, options);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->algorithm, "gemm");
  ASSERT_NE(candidate(*choice, "depthwise", "-"), nullptr);
  EXPECT_EQ(candidate(*choice, "depthwise", "-")->reason, Reason::forced_other);
  options.algorithm = "depthwise";  // cannot support this layer: left to the others
  choice = choose(call_of(kLayer), device, options);
  ASSERT_TRUE(choice.ok());
  EXPECT_NE(choice->algorithm, "depthwise");
  options = {};
  options.variant = "plain";
  choice = choose(call_of(kLayer), device, options);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(variant_of(choice->schedules[0]), "plain");
  ASSERT_NE(candidate(*choice, "gemm", "tile6x4"), nullptr);
  EXPECT_EQ(candidate(*choice, "gemm", "tile6x4")->reason, Reason::forced_other);
}

TEST(Choose, FewRegistersAndStridedChannelsAreReasons) {
  PlanOptions options;
  options.algorithm = "gemm";
  const auto laptop = choose(call_of(kLayer), testing::device_named("ryzen-zen3-laptop"), options);
  ASSERT_TRUE(laptop.ok());
  EXPECT_EQ(variant_of(laptop->schedules[0]), "tile6x2");
  ASSERT_NE(candidate(*laptop, "gemm", "tile6x4"), nullptr);
  EXPECT_EQ(candidate(*laptop, "gemm", "tile6x4")->reason, Reason::too_few_registers);
  AnchorCall strided = call_of(kLayer);
  strided.inputs[0].layout = row_major(strided.inputs[0].shape);
  const auto choice = choose(strided, testing::device_named("epyc-zen4"), options);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(variant_of(choice->schedules[0]), "plain");
  EXPECT_EQ(candidate(*choice, "gemm", "tile6x4")->reason, Reason::layout_not_served);
  const auto server = choose(call_of(kLayer), testing::device_named("epyc-zen4"), options);
  ASSERT_TRUE(server.ok());
  ASSERT_NE(candidate(*server, "gemm", "tile6x2"), nullptr);
  EXPECT_EQ(candidate(*server, "gemm", "tile6x2")->reason, Reason::registers_idle);
  EXPECT_FALSE(candidate(*server, "gemm", "tile6x2")->cost.has_value());
}

TEST(Choose, RoundingErrorsStayBelowTheAccuracyAskedFor) {
  const Device device = testing::device_named("epyc-zen4");
  const AnchorCall call = call_of("ic512ih28oc512oh28kh3ph1");
  double before = 0;
  for (const char* name : {"winograd2", "winograd4", "winograd6"}) {
    const double error = algorithm_named(name)->error(call);
    EXPECT_GT(error, before);
    before = error;
    PlanOptions options;
    options.accuracy = error * 0.99;
    const auto without = choose(call, device, options);
    ASSERT_TRUE(without.ok());
    ASSERT_NE(candidate(*without, name, "-"), nullptr);
    EXPECT_EQ(candidate(*without, name, "-")->reason, Reason::too_inaccurate);
    options.algorithm = name;  // who forces it knows
    EXPECT_EQ(choose(call, device, options)->algorithm, name);
  }
  PlanOptions strict;
  strict.accuracy = 1e-9;
  EXPECT_EQ(choose(call, device, strict)->algorithm, "gemm");
}

// A 3x3 layer that gains by tiles, alone and beside work that it is a few thousandths of.
TEST(Choose, RoundingErrorsMustBeWorthItForTheNetwork) {
  const Device device = testing::device_named("epyc-zen4");
  const auto algorithm_of_small = [&](bool beside) {
    testing::GraphBuilder b;
    TensorId y = b.op("Conv", testing::conv_op(1), {b.input({1, 64, 14, 14}), b.weights({64, 64, 3, 3})});
    if (beside) {
      const TensorId wide = b.op("Conv", testing::conv_op(0), {b.input({1, 512, 112, 112}), b.weights({512, 512, 1, 1})});
      b.graph.outputs.push_back(wide);
    }
    b.graph.outputs.push_back(y);
    auto graph = testing::ready(b.graph);
    EXPECT_TRUE(graph.ok());
    auto plan = make_plan(*graph, device, {});
    EXPECT_TRUE(plan.ok());
    for (const PlanStep& step : plan->steps)
      if (step.problem.find("kh3") != std::string::npos || step.algorithm.starts_with("winograd")) return step.algorithm;
    return std::string("gemm");
  };
  EXPECT_TRUE(algorithm_of_small(false).starts_with("winograd")) << algorithm_of_small(false);
  EXPECT_EQ(algorithm_of_small(true), "gemm");
}

TEST(Choose, AStoredMeasurementOverridesTheCost) {
  const Device device = testing::device_named("epyc-zen4");
  const AnchorCall call = call_of(kDepthwise);
  const auto by_cost = choose(call, device, {});
  ASSERT_TRUE(by_cost.ok());
  for (const Candidate& c : by_cost->candidates) {
    if (c.reason != Reason::costlier) continue;
    TuningStore store(TuningStore::header_for(device));
    store.put(tuning_key(call, {}), {c.algorithm, c.schedule});
    PlanOptions options;
    options.tuning = &store;
    const auto tuned = choose(call, device, options);
    ASSERT_TRUE(tuned.ok());
    EXPECT_EQ(to_text(tuned->schedules[0]), c.schedule);
    if (variant_of(tuned->schedules[0]) != "plain") {
      EXPECT_EQ(tuned->algorithm, c.algorithm);
    }
    EXPECT_TRUE(std::any_of(tuned->candidates.begin(), tuned->candidates.end(),
                            [](const Candidate& other) { return other.reason == Reason::tuned_other; }));
  }
  // An entry that names nothing known changes nothing.
  TuningStore stale(TuningStore::header_for(device));
  stale.put(tuning_key(call, {}), {by_cost->algorithm, "variant=gone"});
  PlanOptions options;
  options.tuning = &stale;
  const auto choice = choose(call, device, options);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(to_text(choice->schedules[0]), to_text(by_cost->schedules[0]));
}

TEST(Choose, CandidatesBeginWithThePlannersOwnAndEachCanBeStored) {
  const Device device = testing::device_named("epyc-zen4");
  const AnchorCall call = call_of(kLayer);
  const auto planned = choose(call, device, {});
  const auto found = candidates_of(call, device, {});
  ASSERT_TRUE(planned.ok() && found.ok());
  EXPECT_EQ(found->front().algorithm, planned->algorithm);
  EXPECT_EQ(to_text(found->front().schedules[0]), to_text(planned->schedules[0]));
  EXPECT_GT(found->size(), 10u);
  for (size_t i = 0; i < found->size(); ++i) {
    const Choice& candidate = (*found)[i];
    if (i > 1) {
      EXPECT_GE(candidate.cost.seconds, (*found)[i - 1].cost.seconds);
    }
    // Two algorithms may have schedules that read alike.
    TuningStore store(TuningStore::header_for(device));
    store.put(tuning_key(call, {}), {candidate.algorithm, to_text(candidate.schedules[0])});
    PlanOptions options;
    options.tuning = &store;
    const auto stored = choose(call, device, options);
    ASSERT_TRUE(stored.ok());
    EXPECT_EQ(stored->algorithm, candidate.algorithm);
    EXPECT_EQ(to_text(stored->schedules[0]), to_text(candidate.schedules[0]));
  }
}

TEST(Choose, TuningKeysTellAccuracyEpilogueAndLayoutsApart) {
  const AnchorCall call = call_of(kLayer);
  PlanOptions strict;
  strict.accuracy = 1e-6;
  AnchorCall part = call, biased = call, elsewhere = call;
  part.output.layout.strides[3] *= 2;
  biased.problem.epilogue.bias = true;
  elsewhere.output.layout.offset = 64;
  EXPECT_NE(tuning_key(call, strict), tuning_key(call, {}));
  EXPECT_NE(tuning_key(part, {}), tuning_key(call, {}));
  EXPECT_NE(tuning_key(biased, {}), tuning_key(call, {}));
  EXPECT_EQ(tuning_key(elsewhere, {}), tuning_key(call, {}));
}

// Where every kernel failed on a driver, say.
TEST(Choose, ADeviceWithoutKernelsGetsABound) {
  for (const char* name : {"h200", "rtx-3090", "radeon-rx-7900-xtx"}) {
    Device device = testing::device_named(name);
    for (int family = 0; family < kFamilies; ++family)
      for (const Variant& variant : info(static_cast<Family>(family)).variants)
        device.denylist += std::string(info(static_cast<Family>(family)).name) + "/" + std::string(variant.name) + " ";
    const auto choice = choose(call_of(kLayer), device, {});
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_EQ(variant_of(choice->schedules[0]), kNoKernel);
    EXPECT_TRUE(std::any_of(choice->candidates.begin(), choice->candidates.end(), [](const Candidate& c) {
      return c.reason == Reason::no_kernel && c.schedule.find("variant=no_kernel") != std::string::npos;
    }));
    // No faster than the fp32 unit of the data sheet.
    const double flops = call_of(kLayer).problem.nominal_flops();
    const MathUnit* unit = device.unit(unit_of(choice->schedules[0]));
    ASSERT_NE(unit, nullptr);
    EXPECT_GE(choice->cost.seconds * unit->flops_per_second * device.cores, 0.9 * flops) << name;
  }
}

// Tiles of workgroups where there is a backend; what failed on a driver gives way to the next one.
TEST(Choose, GpusGetTilesAndDoWithoutWhatIsDenied) {
  for (const char* name : {"radeon-rx-7900-xtx", "radeon-rx-6900-xt", "radeon-rx-vega-64", "arc-a770", "rtx-3090-vulkan",
                           "rtx-4090-vulkan", "h200-vulkan", "lavapipe"}) {
    Device device = testing::device_named(name);
    const auto choice = choose(call_of(kLayer), device, {});
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_FALSE(choice->without_kernel) << name;
    const std::string family(name_of(choice->plan.stages[0].stage.family())), chosen(variant_of(choice->schedules[0]));
    device.denylist = family + "/" + chosen;
    const auto other = choose(call_of(kLayer), device, {});
    ASSERT_TRUE(other.ok()) << other.error().message;
    EXPECT_NE(variant_of(other->schedules[0]), chosen) << name;
    EXPECT_TRUE(std::any_of(other->candidates.begin(), other->candidates.end(),
                            [](const Candidate& c) { return c.reason == Reason::failed_probe; }));
  }
}

// Depthwise filters stay in a workgroup's shared memory, dense ones have a product for each frequency.
TEST(Choose, LargeFiltersGoByTransformsOnGpus) {
  for (const char* name : {"radeon-rx-7900-xtx", "radeon-rx-6900-xt", "radeon-rx-vega-64", "h200-vulkan"}) {
    const Device device = testing::device_named(name);
    for (const auto& [text, variant] :
         {std::pair{"g384ic384ih56oc384oh56kh31ph15", "whole"}, std::pair{"ic64ih112oc64oh112kh13ph6", "points"}}) {
      SCOPED_TRACE(std::string(name) + " " + text);
      const auto choice = choose(call_of(text), device, {});
      ASSERT_TRUE(choice.ok()) << choice.error().message;
      EXPECT_EQ(choice->plan.stages[0].stage.family(), Family::fft);
      EXPECT_EQ(variant_of(choice->schedules[0]), variant);
    }
    // Few products to spare.
    const auto small = choose(call_of("g384ic384ih56oc384oh56kh5ph2"), device, {});
    ASSERT_TRUE(small.ok()) << small.error().message;
    EXPECT_NE(small->plan.stages[0].stage.family(), Family::fft) << name;
  }
}

TEST(TuningStore, RoundTripsAndRefusesForeignHeaders) {
  const Device device = testing::device_named("epyc-zen4");
  const std::string header = TuningStore::header_for(device);
  TuningStore store(header);
  store.put("kind=conv n=1", {"gemm", "variant=tile6x4 unit=avx512"});
  store.put("kind=matmul", {"depthwise", "variant=plain unit=- grain=0"});
  const auto back = TuningStore::parse(store.to_text(), header);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->to_text(), store.to_text());
  EXPECT_EQ(back->size(), 2u);
  ASSERT_NE(back->find("kind=matmul"), nullptr);
  EXPECT_EQ(back->find("kind=matmul")->schedule, "variant=plain unit=- grain=0");
  EXPECT_EQ(back->find("kind=matmul")->algorithm, "depthwise");
  EXPECT_EQ(back->find("kind=none"), nullptr);

  const auto foreign = TuningStore::parse(store.to_text(), TuningStore::header_for(testing::device_named("xeon-emr")));
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().reason, Reason::bad_input);
  EXPECT_NE(foreign.error().message.find("tune again"), std::string::npos);
  EXPECT_EQ(foreign.error().message.find('\t'), std::string::npos);
  const auto other = TuningStore::parse("hello\n", header);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("no tuning store"), std::string::npos) << other.error().message;
  const auto torn = TuningStore::parse(header + "\nkind=conv\tno schedule\n", header);
  ASSERT_FALSE(torn.ok());
  EXPECT_NE(torn.error().message.find("line 2"), std::string::npos);
  EXPECT_FALSE(TuningStore::parse("", header).ok());

  const std::string path = ::testing::TempDir() + "sparkle_tuning_test.txt";
  ASSERT_TRUE(store.save(path).ok());
  const auto loaded = TuningStore::load(path, device);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->to_text(), store.to_text());
  std::remove(path.c_str());
  EXPECT_EQ(TuningStore::load(path, device).error().reason, Reason::file_unreadable);
  EXPECT_FALSE(store.save("/nowhere/at/all").ok());
}

// As when several processes tune at once: each has read the file before the others wrote.
TEST(TuningStore, SavingKeepsWhatOthersSaved) {
  const Device device = testing::device_named("epyc-zen4");
  const std::string path = ::testing::TempDir() + "sparkle_tuning_merge_test.txt", header = TuningStore::header_for(device);
  std::remove(path.c_str());
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      TuningStore store(header);
      for (int i = 0; i < 10; ++i) {
        store.put("kind=" + std::to_string(t) + "." + std::to_string(i), {"gemm", "variant=plain"});
        EXPECT_TRUE(store.save(path).ok());
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(TuningStore::load(path, device)->size(), 60u);

  // What this one measured itself goes before what the file says of it; what it only read does not.
  TuningStore ours = *TuningStore::load(path, device), theirs = ours;
  theirs.put("kind=0.0", {"fft", "a=1"});
  theirs.put("kind=0.1", {"fft", "a=1"});
  ASSERT_TRUE(theirs.save(path).ok());
  ours.put("kind=0.1", {"direct", "b=1"});
  ASSERT_TRUE(ours.save(path).ok());
  EXPECT_EQ(ours.find("kind=0.0")->algorithm, "fft");
  EXPECT_EQ(TuningStore::load(path, device)->find("kind=0.1")->algorithm, "direct");
  EXPECT_EQ(TuningStore::load(path, device)->to_text(), ours.to_text());
  std::remove(path.c_str());
}

constexpr std::string_view kFullyConnected = "ic4096ih1oc4096oh1kh1ph0", kDeep = "ic512ih7oc2048oh7kh1ph0";

AnchorCall weights_that_fit(std::string_view text, Fit f16, Fit bf16) {
  AnchorCall call = call_of(text);
  call.fit = {f16, bf16};
  return call;
}
std::string algorithm_of(const AnchorCall& call, const PlanOptions& options = {}) {
  const auto choice = choose(call, testing::device_named("epyc-zen4"), options);
  EXPECT_TRUE(choice.ok());
  return choice.ok() ? choice->algorithm : "";
}

TEST(Choose, KeepsWeightsInSixteenBitsWhereReadingThemBinds) {
  PlanOptions rough;
  rough.accuracy = 1e-3;
  const auto call = [](Fit f16, Fit bf16) { return weights_that_fit(kFullyConnected, f16, bf16); };
  EXPECT_EQ(algorithm_of(call(Fit::exact, Fit::rounded)), "gemm_f16");
  EXPECT_EQ(algorithm_of(call(Fit::rounded, Fit::exact)), "gemm_bf16");
  EXPECT_EQ(algorithm_of(call(Fit::rounded, Fit::rounded)), "gemm");
  EXPECT_EQ(algorithm_of(call(Fit::rounded, Fit::rounded), rough), "gemm_f16");
  EXPECT_EQ(algorithm_of(call(Fit::never, Fit::rounded), rough), "gemm");  // bf16 errs more than 1e-3
  EXPECT_EQ(algorithm_of(call_of(kFullyConnected), rough), "gemm");        // weights that change
  const auto choice = choose(call(Fit::exact, Fit::rounded), testing::device_named("epyc-zen4"), {});
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->error, 0);
  EXPECT_EQ(variant_of(choice->schedules[0]), "half6x4");
  EXPECT_EQ(candidate(*choice, "gemm_bf16", "-")->reason, Reason::too_inaccurate);
  // Half the bytes from memory, half the memory.
  const auto wide = choose(call(Fit::never, Fit::never), testing::device_named("epyc-zen4"), {});
  ASSERT_TRUE(wide.ok());
  EXPECT_NEAR(choice->footprints[0].bytes.back(), wide->footprints[0].bytes.back() / 2,
              0.01 * wide->footprints[0].bytes.back());
  EXPECT_EQ(2 * packed_bytes(*choice, testing::device_named("epyc-zen4")),
            packed_bytes(*wide, testing::device_named("epyc-zen4")));
}

TEST(Choose, KeepsWeightsInSixteenBitsWhereThatIsForced) {
  PlanOptions by_algorithm, by_variant;
  by_algorithm.algorithm = "gemm_bf16";
  by_variant.variant = "bfloat6x4";
  for (const PlanOptions& options : {by_algorithm, by_variant}) {
    const auto choice =
        choose(weights_that_fit(kDeep, Fit::rounded, Fit::rounded), testing::device_named("epyc-zen4"), options);
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->algorithm, "gemm_bf16");
    EXPECT_EQ(variant_of(choice->schedules[0]), "bfloat6x4");
    EXPECT_GT(choice->error, 1e-3);
  }
  // Numbers that the type does not hold are not forced into it.
  EXPECT_NE(algorithm_of(weights_that_fit(kDeep, Fit::rounded, Fit::never), by_algorithm), "gemm_bf16");
}

TEST(TuningKey, NamesTheTypesThatWeightsMayBeKeptIn) {
  PlanOptions rough;
  rough.accuracy = 1e-3;
  const std::string plain = tuning_key(call_of(kLayer), {});
  const auto call = [](Fit f16, Fit bf16) { return weights_that_fit(kLayer, f16, bf16); };
  EXPECT_EQ(tuning_key(call(Fit::rounded, Fit::rounded), {}), plain);
  EXPECT_EQ(tuning_key(call(Fit::exact, Fit::rounded), {}), plain + " weights=f16");
  EXPECT_EQ(tuning_key(call(Fit::exact, Fit::exact), {}), plain + " weights=f16 weights=bf16");
  EXPECT_EQ(tuning_key(call(Fit::rounded, Fit::rounded), rough), tuning_key(call_of(kLayer), rough) + " weights=f16");
}

// The fit is read off the constants; where only rounded weights would need their ranges, these are not looked at.
TEST(JudgeWeights, ReadsTheValuesOfAnchors) {
  const auto fit_at = [](float weight, double accuracy) {
    testing::GraphBuilder b;
    const TensorId x = b.input({1, 8});
    const TensorId weights = b.floats({8, 4}, std::vector<float>(32, weight));
    PlanOptions options;
    options.accuracy = accuracy;
    const auto graph = testing::ready(b.done(b.op("MatMul", MatMulOp{}, {x, weights})));
    EXPECT_TRUE(graph.ok());
    const auto anchors = anchors_of(*graph, testing::device_named("epyc-zen4"), options);
    EXPECT_TRUE(anchors.ok() && anchors->size() == 1 && anchors->front().call.fit);
    return anchors->front().call.fit.value_or(WeightFit{});
  };
  EXPECT_EQ(fit_at(0.5f, 5e-5), (WeightFit{Fit::exact, Fit::exact}));
  EXPECT_EQ(fit_at(0.1f, 5e-5), (WeightFit{Fit::rounded, Fit::rounded}));
  EXPECT_EQ(fit_at(1e5f, 5e-5), (WeightFit{Fit::rounded, Fit::rounded}));
  EXPECT_EQ(fit_at(1e5f, 1e-3), (WeightFit{Fit::never, Fit::rounded}));
}

}  // namespace
}  // namespace sparkle
