// Plans as text: what is printed reads back to the same text, for every network at hand; damaged text gets a sentence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <set>

#include "families/copy/copy.h"
#include "families/pointwise/pointwise.h"
#include "onnx/reader.h"
#include "networks/zoo.h"
#include "plan/choose.h"
#include "plan/explain.h"
#include "plan/plan_testing.h"

namespace sparkle {
namespace {

void expect_round_trip(const Plan& plan) {
  const std::string text = to_text(plan);
  const auto back = plan_from_text(text);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(to_text(*back), text);
  EXPECT_EQ(back->steps.size(), plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep &a = plan.steps[i], &b = back->steps[i];
    ASSERT_TRUE(a.stage.params == b.stage.params && a.schedule == b.schedule) << a.name;
    ASSERT_TRUE(a.name == b.name && a.nodes == b.nodes && a.inputs == b.inputs && a.outputs == b.outputs) << a.name;
    for (size_t k = 0; k < a.stage.inputs.size(); ++k) ASSERT_EQ(a.stage.inputs[k].layout, b.stage.inputs[k].layout) << a.name;
  }
}

TEST(PlanText, ZooRoundTrips) {
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
        expect_round_trip(*plan);
      }
    }
  }
}

TEST(PlanText, ModelsRoundTrip) {
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
    expect_round_trip(*plan);
  }
  if (planned == 0) GTEST_SKIP() << "no model under " << root << " could be planned";
}

Plan small_plan(const char* machine = "epyc-zen4") {
  auto graph = testing::ready(std::move(*zoo_network("tiny_unet")));
  return std::move(*make_plan(*graph, testing::device_named(machine)));
}

TEST(PlanText, StrangeNamesSurvive) {
  Plan plan = small_plan();
  plan.model = "a name=b {c} [d]  e";
  plan.tensors[0].name = " name= name=x";
  plan.steps[0].name = "step name={";
  plan.steps[0].nodes = {"node with spaces", "", "name=x"};
  plan.constants[0].name = "w name=v";
  expect_round_trip(plan);
  plan.steps[0].cost.bound = "a level, of {some} name";
  plan.model = "two\nlines";
  const auto back = plan_from_text(to_text(plan));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(to_text(*back), to_text(plan));
}

TEST(PlanText, NamesThatAreNotUtf8AreExplained) {
  Plan plan = small_plan();
  plan.steps[0].name = plan.model = "a\xff\x80z";
  EXPECT_NE(explain_json(plan, testing::device_named("epyc-zen4")).find("\"steps\""), std::string::npos);
}

TEST(PlanText, HashesOfConstantsSurvive) {
  const Plan plan = small_plan();
  const auto back = plan_from_text(to_text(plan));
  ASSERT_TRUE(back.ok());
  EXPECT_NE(back->constants[0].hash, 0u);
}

TEST(PlanText, ErrorsNameTheLine) {
  const auto problem = [](const std::string& text) {
    const auto p = plan_from_text(text);
    return p.ok() ? "" : p.error().message;
  };
  EXPECT_NE(problem("").find("empty"), std::string::npos);
  EXPECT_NE(problem("other\n").find("line 1"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\nnonsense\n").find("line 2: 'nonsense'"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\ninputs 0 x\n").find("line 2"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\ninputs 0\n").find("not a tensor"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\n  node x\n").find("no step is open"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\narena many\n").find("line 2"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\nconstant xyz dtype=f32 shape=[1] name=\n").find("hash"), std::string::npos);
  const std::string large = "constant 1 dtype=f32 shape=[32,8,20300000000000001] name=\n",
                    half = "constant 1 dtype=f32 shape=[100000000000000000] name=\n";
  EXPECT_NE(problem("sparkle-plan 1\n" + large).find("line 2: the constants are more"), std::string::npos);
  EXPECT_NE(problem("sparkle-plan 1\n" + half + half + half).find("line 4: the constants are more"), std::string::npos);
}

// Damaged text: a plan that prints and reads back, or a sentence; never a crash, neither when it is explained.
TEST(PlanText, HostileTextIsSurvived) {
  const std::string good = to_text(small_plan());
  const Device device = testing::device_named("epyc-zen4");
  std::mt19937_64 rng(5);
  const std::string_view alphabet = "{}[]=, -0123456789abx.\n";
  for (int round = 0; round < 1500; ++round) {
    std::string text = good;
    for (uint64_t edits = 1 + rng() % 3; edits > 0; --edits) {
      const size_t at = rng() % text.size();
      switch (rng() % 3) {
        case 0: text.erase(at, 1 + rng() % 40); break;
        case 1: text.insert(at, 1, alphabet[rng() % alphabet.size()]); break;
        default: text[at] = alphabet[rng() % alphabet.size()];
      }
    }
    const auto plan = plan_from_text(text);
    if (!plan.ok()) {
      EXPECT_EQ(plan.error().reason, Reason::bad_format);
      continue;
    }
    const std::string printed = to_text(*plan);
    const auto again = plan_from_text(printed);
    ASSERT_TRUE(again.ok()) << "round " << round << ": " << again.error().message;
    EXPECT_FALSE(explain(*plan, device).empty());
    EXPECT_FALSE(explain_json(*plan, device).empty());
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
        for (int i = 0; i < at.size(); ++i) p += at[i] * desc.layout.pitch[i];
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
        continue;  // has one where it lost by too little, none where errors are avoided
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
  const Plan plan = small_plan("h200");
  const std::string text = explain(plan, testing::device_named("h200"), {.candidates = true, .step = ""});
  EXPECT_NE(text.find("no_kernel"), std::string::npos);
  EXPECT_NE(text.find("bound, not calibrated"), std::string::npos);
  EXPECT_NE(text.find("nothing here runs on cuda yet"), std::string::npos);
  for (const PlanStep& step : plan.steps) {
    EXPECT_FALSE(has_kernel(step)) << step.name;
    EXPECT_GT(step.cost.seconds, 0) << step.name;
  }
}

}  // namespace
}  // namespace sparkle
