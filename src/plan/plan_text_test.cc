// Plans as text: whole for every network at hand, and hashes of constants found in it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

#include "families/copy/copy.h"
#include "families/pointwise/pointwise.h"
#include "families/registry.h"
#include "onnx/reader.h"
#include "networks/zoo.h"
#include "plan/choose/choose.h"
#include "plan/explain.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

// Parameters and schedules come back from the plan's lines as they are, and each constant's hash is found.
void expect_whole_text(const Plan& plan) {
  const std::string text = to_text(plan);
  for (const PlanStep& step : plan.steps) {
    const auto params = params_from_text(step.stage.family(), to_text(step.stage.params));
    const auto schedule = schedule_from_text(step.stage.family(), to_text(step.schedule));
    ASSERT_TRUE(params.ok() && schedule.ok()) << step.name;
    ASSERT_TRUE(*params == step.stage.params && *schedule == step.schedule) << step.name;
    ASSERT_NE(text.find("\n  params " + to_text(step.stage.params) + "\n"), std::string::npos) << step.name;
    ASSERT_NE(text.find("\n  schedule " + to_text(step.schedule) + "\n"), std::string::npos) << step.name;
  }
  const auto hashes = constant_hashes(text);
  ASSERT_TRUE(hashes.ok()) << hashes.error().message;
  EXPECT_EQ(hashes->size(), plan.constants.size());
}

TEST(PlanText, IsWholeForTheZoo) {
  for (std::string_view name : zoo_names()) {
    if (name == "vgg16") continue;  // 550 MB of weights say nothing new
    for (const char* machine : {"epyc-zen4", "h200"}) {
      SCOPED_TRACE(std::string(name) + " on " + machine);
      auto network = zoo_network(name);
      ASSERT_TRUE(network.ok());
      auto graph = testing::ready(std::move(*network));
      ASSERT_TRUE(graph.ok()) << graph.error().message;
      for (bool fused : {true, false}) {
        PlanOptions options;
        options.fuse = fused;
        const auto plan = make_plan(*graph, testing::device_named(machine), options);
        ASSERT_TRUE(plan.ok()) << plan.error().message;
        expect_whole_text(*plan);
      }
    }
  }
}

TEST(PlanText, IsWholeForModels) {
  const std::filesystem::path root = SPARKLE_SOURCE_DIR "/../shared/data/models";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << root << " is not here";
  int planned = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".onnx") continue;
    SCOPED_TRACE(entry.path().string());
    auto network = read_onnx(entry.path().string());
    if (!network.ok()) continue;  // the reader's own tests say why
    auto graph = testing::ready(std::move(*network));
    if (!graph.ok()) continue;
    const auto plan = make_plan(*graph, testing::device_named("epyc-zen4"));
    if (!plan.ok()) {
      EXPECT_TRUE(plan.error().reason == Reason::operator_not_served || plan.error().reason == Reason::type_not_served)
          << plan.error().message;
      continue;
    }
    ++planned;
    expect_whole_text(*plan);
  }
  if (planned == 0) GTEST_SKIP() << "no model under " << root << " could be planned";
}

Plan small_plan(const char* machine = "epyc-zen4") {
  auto graph = testing::ready(std::move(*zoo_network("tiny_unet")));
  return std::move(*make_plan(*graph, testing::device_named(machine)));
}

TEST(PlanText, StrangeNamesStayInTheirLine) {
  Plan plan = small_plan();
  plan.steps[0].nodes = {"a node"};
  const auto lines_of = [](const Plan& p) {
    const std::string text = to_text(p);
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto lines = lines_of(plan);
  const auto hashes = constant_hashes(to_text(plan));
  plan.model = plan.tensors[0].name = plan.steps[0].name = plan.constants[0].name = "x\nconstant 1 name={\r";
  plan.steps[0].nodes.front() = "name=x\n  node y";
  plan.steps[0].cost.bound = "a level, of {some} name";
  EXPECT_EQ(lines_of(plan), lines);
  const auto again = constant_hashes(to_text(plan));
  ASSERT_TRUE(hashes.ok() && again.ok());
  EXPECT_EQ(*again, *hashes);
}

TEST(PlanText, NamesThatAreNotUtf8AreExplained) {
  Plan plan = small_plan();
  plan.steps[0].name = plan.model = "a\xff\x80z";
  EXPECT_NE(explain_json(plan, testing::device_named("epyc-zen4")).find("\"steps\""), std::string::npos);
}

TEST(PlanText, HashesOfConstantsAreFound) {
  Plan plan = small_plan();
  const std::string text = to_text(plan);
  const auto hashes = constant_hashes(text);
  ASSERT_TRUE(hashes.ok());
  ASSERT_EQ(hashes->size(), plan.constants.size());
  for (size_t i = 0; i < hashes->size(); ++i) {
    EXPECT_NE((*hashes)[i], 0u);
    plan.constants[i].value.bytes.reset();
    plan.constants[i].hash = (*hashes)[i];
  }
  EXPECT_EQ(to_text(plan), text);
  EXPECT_TRUE(constant_hashes("")->empty());
  for (const char* line : {"constant xyz dtype=f32", "constant ", "constant 12345678901234567 dtype=f32"}) {
    const auto wrong = constant_hashes("sparkle-plan 1\n" + std::string(line));
    ASSERT_FALSE(wrong.ok()) << line;
    EXPECT_EQ(wrong.error().reason, Reason::bad_format);
    EXPECT_NE(wrong.error().message.find("line 2"), std::string::npos) << wrong.error().message;
  }
}

TEST(Plan, LivesNeverOverlapInTheArena) {
  for (const char* name : {"tiny_unet", "tiny_residual", "tiny_depthwise", "mobilenetv2"}) {
    auto graph = testing::ready(std::move(*zoo_network(name)));
    ASSERT_TRUE(graph.ok());
    const auto plan = make_plan(*graph, testing::device_named("epyc-zen4"));
    ASSERT_TRUE(plan.ok());
    // Whoever reads a tensor of the arena finds what its writers left: each byte of an input was last written as part of it.
    std::vector<int> writer(static_cast<size_t>(plan->arena_bytes / 4 + 16), -1);
    std::vector<std::set<int>> owners(plan->steps.size());
    const auto for_each_place = [&](const PlanTensor& t, const TensorDesc& desc, auto&& f) {
      Dims at = Dims::filled(desc.shape.size(), 0);
      for (int64_t n = desc.elements(); n > 0; --n) {
        int64_t p = t.offset / 4 + desc.layout.offset;
        for (int i = 0; i < at.size(); ++i) p += at[i] * desc.layout.strides[i];
        f(static_cast<size_t>(p));
        for (int i = at.size() - 1; i >= 0 && ++at[i] == desc.shape[i]; --i) at[i] = 0;
      }
    };
    // A buffer's writers: the steps whose outputs start at the same buffer and live until the reader.
    for (size_t s = 0; s < plan->steps.size(); ++s) {
      const PlanStep& step = plan->steps[s];
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const PlanTensor& t = plan->tensors[static_cast<size_t>(step.inputs[i])];
        if (t.kind != PlaceKind::arena) continue;
        bool written = true;
        for_each_place(t, step.stage.inputs[i], [&](size_t p) { written &= p < writer.size() && writer[p] >= 0; });
        EXPECT_TRUE(written) << name << " step " << step.name << " reads what nobody wrote";
      }
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        const PlanTensor& t = plan->tensors[static_cast<size_t>(step.outputs[i])];
        if (t.kind != PlaceKind::arena) continue;
        for_each_place(t, step.stage.outputs[i], [&](size_t p) {
          ASSERT_LT(p, writer.size());
          writer[p] = static_cast<int>(s);
        });
      }
    }
  }
}

TEST(Plan, ConcatenationsAreWrittenInPlace) {
  auto graph = testing::ready(std::move(*zoo_network("squeezenet1.1")));
  const auto plan = make_plan(*graph, testing::device_named("epyc-zen4"));
  ASSERT_TRUE(plan.ok());
  for (const PlanStep& step : plan->steps)
    if (const auto* copy = get_if<CopyParams>(&step.stage.params)) {
      EXPECT_NE(copy->why, "concat") << step.name;
    }
}

TEST(Plan, EmptyPartsOfAConcatenationAreNothing) {
  testing::GraphBuilder b;
  const TensorId x = b.input({2, 2, 0}), y = b.input({2, 3, 0});
  auto g = b.bound({b.op("Concat", ConcatOp{1}, {b.pointwise(PointwiseOp::exp, {x}), b.pointwise(PointwiseOp::exp, {y})})});
  ASSERT_TRUE(g.ok()) << g.error().message;
  const auto plan = make_plan(*g, testing::device_named("epyc-zen4"));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(plan->steps.empty());
}

TEST(Plan, BudgetAndForcedNamesAreSentences) {
  auto graph = testing::ready(std::move(*zoo_network("tiny_chain")));
  PlanOptions options;
  options.memory_budget = 1000;
  auto plan = make_plan(*graph, testing::device_named("epyc-zen4"), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().reason, Reason::over_memory_budget);
  EXPECT_NE(plan.error().message.find("the memory budget is 1000"), std::string::npos);
  options = {};
  options.algorithm = "magic";
  plan = make_plan(*graph, testing::device_named("epyc-zen4"), options);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().reason, Reason::bad_usage);
}

TEST(Explain, CandidatesWithoutAScheduleHaveNoCost) {
  const Plan plan = small_plan("epyc-zen4");
  const Device device = testing::device_named("epyc-zen4");
  const std::string text = explain(plan, device, {.candidates = true, .step = ""});
  const size_t at = text.find("registers_idle");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(text.rfind('\n', at), text.find('\n', at) - text.rfind('\n', at));
  EXPECT_EQ(line.find(" ms "), std::string::npos) << line;
  EXPECT_NE(line.find(sentence_of(Reason::registers_idle)), std::string::npos) << line;
  EXPECT_EQ(text.find(" 0.0000 ms (launch)  variant=tile"), std::string::npos) << text;
  int with = 0, without = 0;
  const auto json = nlohmann::json::parse(explain_json(plan, device));
  for (const auto& step : json["steps"])
    for (const auto& candidate : step["candidates"]) {
      EXPECT_EQ(candidate.contains("predicted_ms"), candidate.contains("bound"));
      if (candidate["reason"] == "less_accurate")
        continue;  // has one where it lost by too little, none where the approximation policy is exact
      if (candidate["reason"] == "chosen" || candidate["reason"] == "costlier") {
        ++with;
        EXPECT_TRUE(candidate.contains("predicted_ms")) << candidate.dump();
      } else {
        ++without;
        EXPECT_FALSE(candidate.contains("predicted_ms")) << candidate.dump();
      }
    }
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

TEST(Explain, AMachineThatIsNotHereGetsAWholePlan) {
  Plan plan = small_plan("h200");
  const Device device = testing::device_named("h200");
  for (const PlanStep& step : plan.steps) {
    EXPECT_TRUE(has_kernel(step)) << step.name;
    EXPECT_GT(step.cost.seconds, 0) << step.name;
  }
  const std::string text = explain(plan, device, {.candidates = true, .step = ""});
  for (const char* part : {"bound, not calibrated", "variant=fma", "chosen"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("their times are what its roofs allow"), std::string::npos) << text;
  plan.steps[0].schedule = LoopSchedule{std::string(kNoKernel), "fma-f32", 0};
  EXPECT_NE(explain(plan, device, {}).find("no_kernel, none here computes them on NVIDIA H200; their times are what"),
            std::string::npos);
}

}  // namespace
}  // namespace sparkle
