// The command on a CUDA device, which the functional model stands for.
#include <nlohmann/json.hpp>
#include <set>

#include "command/command.h"
#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

const std::string kShort = " --rounds 2 --round-ms 0.1 --json";

class CommandCuda : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (std::string(SPARKLE_CUDA_MODEL).empty()) GTEST_SKIP() << "this build has no functional model of CUDA's devices";
  }
  nlohmann::json rows_of(const std::string& arguments) const {
    const Said said = sparkle(arguments, model());
    EXPECT_EQ(said.status, 0) << said.err;
    auto json = nlohmann::json::parse(said.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << said.out;
    return json.is_object() ? json["rows"] : nlohmann::json::array();
  }
  std::string model() const {
    return "export SPARKLE_CUDA_DRIVER='" SPARKLE_CUDA_MODEL "' XDG_CACHE_HOME='" + path("cache") + "';";
  }
};

// Each step's whole output has been checked, or there would be no row.
TEST_F(CommandCuda, TheLadderHasItsSteps) {
  for (const std::string type : {"", " --precision bf16"}) {
    std::set<std::string> measured;
    for (const auto& row : rows_of("bench --device cuda --ladder --conv ic16ih9oc24oh9kh3ph1" + type + kShort)) {
      if (row.contains("absent")) continue;
      measured.insert(row["level"].get<std::string>());
      EXPECT_EQ(row["clock"], "device");
      EXPECT_TRUE(row["predicted_bytes"].is_object());
    }
    for (const char* step :
         {"unrolled", "one_output", "mma", "mma_in_turn", "wgmma", "wgmma_halo", "wgmma_pairs", "as planned"})
      EXPECT_TRUE(measured.count(step)) << step << type;
    EXPECT_EQ(measured.count("fma"), type.empty() ? 1u : 0u);
    EXPECT_EQ(measured.count("fma_widened"), type.empty() ? 0u : 1u);
  }
}

TEST_F(CommandCuda, AblationSwitchesOnePatternAtATime) {
  std::vector<std::string> without, absent;
  for (const auto& row : rows_of("bench --device cuda --ablate --conv ic16ih9oc24oh9kh3ph1" + kShort)) {
    without.push_back(row["without"]);
    if (row.contains("absent")) absent.push_back(row["without"]);
    else EXPECT_LT(row["max_error"], 1e-5) << row["without"];
  }
  EXPECT_EQ(without, (std::vector<std::string>{"all on", "tile", "matrix units", "copying engine", "window reuse", "cluster",
                                               "vectorise", "pipeline", "fuse", "implicit window"}));
  EXPECT_EQ(absent, (std::vector<std::string>{"matrix units", "copying engine", "window reuse", "cluster"}));
}

// The product that is planned for 16 bits is by matrix units; without them the same layer is stored as before, and its operands
// lose nothing on CUDA cores.
TEST_F(CommandCuda, AblationTakesMatrixUnitsFromLayersIn16Bits) {
  for (const std::string type : {"bf16", "fp16"}) {
    bool found = false;
    for (const auto& row :
         rows_of("bench --device cuda --ablate --precision " + type + " --conv mb8ic16ih9oc64oh9kh3ph1" + kShort)) {
      if (row["without"] == "all on") {
        EXPECT_SAYS(row["schedule"].get<std::string>(), "mma");
      }
      if (row["without"] != "matrix units") continue;
      found = true;
      EXPECT_FALSE(row.contains("absent")) << row;
      EXPECT_SAYS(row["schedule"].get<std::string>(), "fma_widened");
      EXPECT_GT(row["factor"], 0);
    }
    EXPECT_TRUE(found);
  }
}

// Weights, and what lies between steps, as the driver was asked for them: at least what the plan says.
TEST_F(CommandCuda, ModelsAreTimedWithWhatTheyHoldOfTheDevice) {
  const Said said =
      sparkle("bench --device cuda --model " SPARKLE_SOURCE_DIR "/models/upscale2x.onnx --shape image=1x3x4x4 --runs 1 --json",
              model());
  ASSERT_EQ(said.status, 0) << said.err;
  const auto json = nlohmann::json::parse(said.out);
  const auto total = json["total"];
  const Said plan =
      sparkle("explain " SPARKLE_SOURCE_DIR "/models/upscale2x.onnx --shape image=1x3x4x4 --device cuda --json", model());
  ASSERT_EQ(plan.status, 0) << plan.err;
  const auto explained = nlohmann::json::parse(plan.out);
  EXPECT_GE(total["device_bytes"], explained["memory_bytes"]);
  EXPECT_GT(explained["memory_bytes"], explained["constant_bytes"]);
  EXPECT_LT(total["device_bytes"], 64 << 20);
  // What a run takes of graphs between two events. A CPU tells nothing of the kind.
  EXPECT_GT(total["device_ms"], 0);
  EXPECT_GE(total["device_repeats"], 1);
  EXPECT_FALSE(json["profiling"].contains("cost_percent"));  // the device is kept busy on purpose before its steps
  const Said cpu = sparkle("bench --model " SPARKLE_SOURCE_DIR "/models/upscale2x.onnx --shape image=1x3x4x4 --runs 1 --json");
  ASSERT_EQ(cpu.status, 0) << cpu.err;
  EXPECT_EQ(nlohmann::json::parse(cpu.out)["total"]["device_ms"], 0);
}

// Of a layer that takes less than 200 us in the functional model too.
TEST_F(CommandCuda, SmallLayersAreTimedManyRunsAtOnce) {
  const auto rows = rows_of("bench --device cuda --conv ic1ih1oc1oh1kh1" + kShort);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GE(rows[0]["repeats"], 1);
  EXPECT_LE(rows[0]["repeats"], 64);
  EXPECT_EQ(rows[0]["clock"], "device");
}

TEST_F(CommandCuda, SaysWhatTheDeviceIsGiven) {
  const Said said = sparkle("explain --device cuda --source 3x3 --conv ic64ih56oc64oh56kh3ph1 --precision bf16", model());
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "kernel sparkle_gemm_");
  EXPECT_SAYS(said.out, " threads, ");
  EXPECT_SAYS(said.out, " bytes of shared memory");
  EXPECT_SAYS(said.out, "    compiled for tiles of ");
  EXPECT_SAYS(said.out, "    x = operand 0\n");
  // The same for a card that is not here.
  EXPECT_SAYS(sparkle("explain --device h200 --source 3x3 --conv mb32ic128ih56oc128oh56kh3ph1 --precision bf16").out,
              "    map of x: ");
  EXPECT_SAYS(sparkle("explain --device rdna3 --source 3x3 --conv ic64ih56oc64oh56kh3ph1").out, "shader ");
  EXPECT_SAYS(refusal("explain --device avx2 --source 3x3 --conv ic64ih56oc64oh56kh3ph1"), "What a GPU would be given");
  EXPECT_SAYS(refusal("explain --device rdna3 --source 5x5 --conv ic64ih56oc64oh56kh3ph1"), "No step of the plan");
  EXPECT_SAYS(refusal("explain --device rdna3 --source 3x3 --levels --conv ic64ih56oc64oh56kh3ph1"),
              "--source is a page of its own");
}

TEST_F(CommandCuda, EdgesOfGraphsCanAllBeFullOnes) {
  const std::string run = "run " SPARKLE_SOURCE_DIR "/models/upscale2x.onnx --shape image=1x3x4x4 --device cuda";
  const auto with = [&](const char* edges) { return sparkle(run, model() + " export SPARKLE_CUDA_EDGES=" + edges + ";"); };
  const Said full = with("full"), unknown = with("soft");
  EXPECT_SAYS(full.out, "no kernel begins before those that it follows are over, since SPARKLE_CUDA_EDGES asks for it");
  EXPECT_EQ(sparkle(run, model()).out.find("no kernel begins"), std::string::npos);
  EXPECT_NE(unknown.status, 0);
  EXPECT_SAYS(unknown.err, "SPARKLE_CUDA_EDGES is 'soft'; it may be 'full' or 'programmatic'.");
}

// An index that lies outside is named in the words that the CPU has for it.
TEST_F(CommandCuda, NamesIndicesThatLieOutside) {
  GraphBuilder b;
  const TensorId data = b.input({4}),
                 places = b.op("Cast", CastOp{DType::i64}, {b.pointwise(PointwiseOp::mul, {data, b.floats({}, {1e4f})})});
  b.graph.outputs = {b.op("ScatterElements", ScatterElementsOp{}, {data, places, data})};
  const std::string run = "run " + save(b.graph, "outside.onnx") + " --device ";
  const Said host = sparkle(run + "cpu"), card = sparkle(run + "cuda --fallback forbid", model());
  EXPECT_NE(host.status, 0);
  EXPECT_SAYS(host.err, "lies outside of axis 0 of size 4");
  EXPECT_EQ(card.status, host.status);
  EXPECT_EQ(card.err, host.err);
}

// A negation, a convolution whose taps it moves, and what is left of that above zero, in doubles: of these DeformConv has no
// kernel on GPUs.
class CommandCudaHost : public CommandCuda {
 protected:
  void SetUp() override {
    CommandCuda::SetUp();
    if (IsSkipped()) return;
    GraphBuilder b;
    const TensorId x = b.input({1, 8, 6, 6}, DType::f64), places = b.input({1, 18, 4, 4}, DType::f64);
    const TensorId w = b.op("Cast", CastOp{DType::f64}, {b.weights({4, 8, 3, 3})});
    const TensorId offsets = b.pointwise(PointwiseOp::neg, {places});
    const TensorId y = b.op("DeformConv", DeformConvOp{}, {x, w, offsets});
    b.graph.outputs = {b.pointwise(PointwiseOp::relu, {y})};
    moved_ = save(b.graph, "moved.onnx");
  }
  std::string moved_;
};

TEST_F(CommandCudaHost, StepsWithoutAKernelAreTheCpusAndSaidOnce) {
  const std::string run = "run --device cuda " + moved_;
  const Said said = sparkle(run + " --json --repeat 2", model());
  ASSERT_EQ(said.status, 0) << said.err;
  const auto events = nlohmann::json::parse(said.out)["events"];
  ASSERT_EQ(events.size(), 1u) << said.out;
  EXPECT_EQ(events[0]["what"], "operator");
  EXPECT_EQ(events[0]["reason"], "no_kernel");
  EXPECT_GT(events[0]["cost_ms"].get<double>(), 0.06);  // at least two transfers of 30 us
  EXPECT_SAYS(said.err, "(deform) has no kernel on");
  EXPECT_EQ(said.err.find("has no kernel on"), said.err.rfind("has no kernel on"));
  EXPECT_EQ(sparkle(run + " --fallback allow", model()).err.find("has no kernel on"), std::string::npos);
}

TEST_F(CommandCudaHost, ExplainAndBenchShowTheTransfers) {
  const Said text = sparkle("explain --device cuda " + moved_, model());
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part : {"download", "upload", "host: ", " link ", "1 steps without a kernel here run on the host"})
    EXPECT_SAYS(text.out, part);
  const auto plan = nlohmann::json::parse(sparkle("explain --json --device cuda " + moved_, model()).out);
  double link = 0;
  std::multiset<std::string> sides;
  for (const auto& step : plan["steps"]) {
    sides.insert(step["runs_on"].get<std::string>());
    if (step["runs_on"] == "link") link += step["predicted_ms"].get<double>();
  }
  EXPECT_EQ(sides.count("host"), 1u);
  EXPECT_EQ(sides.count("link"), 3u);
  EXPECT_GT(link, 0.09);
  EXPECT_GT(plan["predicted_ms"].get<double>(), link);
  const Said bench = sparkle("bench --device cuda --runs 2 --json " + moved_, model());
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_SAYS(bench.out, "\"runs_on\": \"link\"");
  const Said report = sparkle("report --device cuda --runs 2 --json " + moved_, model());
  ASSERT_EQ(report.status, 0) << report.err;
  EXPECT_SAYS(report.out, "\"runs_on\": \"host\"");
}

TEST_F(CommandCudaHost, ForbiddenOrRequiredItIsStatus3NamingTheLayer) {
  const std::string run = "run --device cuda " + moved_;
  for (const char* option : {" --fallback forbid", " --require device=cuda"}) {
    const Said said = sparkle(run + option, model());
    EXPECT_EQ(said.status, 3) << said.err;
    EXPECT_SAYS(said.err, "Step 'n2'");
  }
  const std::string compile = "compile --device cuda " + moved_ + " -o out.sparkle";
  for (const char* option : {" --fallback forbid", " --require device=cuda"}) {
    const Said said = sparkle(compile + option, model());
    EXPECT_EQ(said.status, 3) << said.err;
    EXPECT_FALSE(std::filesystem::exists(path("out.sparkle")));
  }
}

// The file of such a plan is opened like any other: the same bytes, steps and events, and the same words where it may not be.
TEST_F(CommandCudaHost, CompiledFilesHoldTheHostsSteps) {
  const Said compiled = sparkle("compile --device cuda " + moved_ + " -o out.sparkle", model());
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_SAYS(compiled.out, "1 steps without a kernel here run on the host");
  EXPECT_SAYS(compiled.err, "(deform) has no kernel on");
  const Said live = sparkle("run --json --device cuda " + moved_, model());
  const Said opened = sparkle("run --json --device cuda out.sparkle", model());
  ASSERT_EQ(opened.status, 0) << opened.err;
  const auto a = nlohmann::json::parse(live.out), b = nlohmann::json::parse(opened.out);
  EXPECT_EQ(b["outputs"], a["outputs"]);
  EXPECT_EQ(b["events"], a["events"]);
  EXPECT_EQ(sparkle("explain --plan --device cuda out.sparkle", model()).out,
            sparkle("explain --plan --device cuda " + moved_, model()).out);
  for (const char* option : {" --fallback forbid", " --require device=cuda"})
    for (const char* command : {"run", "bench --runs 2", "explain"}) {
      const Said said = sparkle(std::string(command) + " --device cuda out.sparkle" + option, model());
      EXPECT_EQ(said.status, 3) << command << option << said.err;
      EXPECT_SAYS(said.err, "Step 'n2'");
    }
  EXPECT_SAYS(refusal("run --device cpu out.sparkle", model()), "was compiled for the device");
}

// Two convolutions with moved taps and a negation between: it stays with them.
TEST_F(CommandCudaHost, CheapStepsBetweenTheHostsGoThereToo) {
  GraphBuilder b;
  const TensorId x = b.input({1, 2, 6, 6}, DType::f64), offsets = b.input({1, 2, 6, 6}, DType::f64);
  const TensorId w = b.op("Cast", CastOp{DType::f64}, {b.weights({2, 2, 1, 1})});
  const auto moved = [&](TensorId from) { return b.op("DeformConv", DeformConvOp{}, {from, w, offsets}); };
  b.graph.outputs = {moved(b.pointwise(PointwiseOp::neg, {moved(x)}))};
  const std::string model_file = save(b.graph, "twice.onnx");
  const auto plan = nlohmann::json::parse(sparkle("explain --json --device cuda " + model_file, model()).out);
  std::multiset<std::string> reasons;
  for (const auto& step : plan["steps"]) reasons.insert(step["reason"].get<std::string>());
  EXPECT_EQ(reasons.count("no_kernel"), 2u) << plan;
  EXPECT_EQ(reasons.count("cheaper_on_host"), 1u) << plan;
  const Said said = sparkle("run --json --device cuda " + model_file, model());
  ASSERT_EQ(said.status, 0) << said.err;
  std::multiset<std::string> events;
  const auto result = nlohmann::json::parse(said.out);
  for (const auto& event : result["events"]) events.insert(event["reason"].get<std::string>());
  EXPECT_EQ(events, (std::multiset<std::string>{"cheaper_on_host", "no_kernel", "no_kernel"}));
  EXPECT_EQ(result["outputs"], nlohmann::json::parse(sparkle("run --json " + model_file).out)["outputs"]);
  EXPECT_SAYS(sparkle("explain --device cuda " + model_file, model()).out, "and 1 between them that are cheaper there");
  ASSERT_EQ(sparkle("compile --device cuda " + model_file + " -o twice.sparkle", model()).status, 0);
  EXPECT_EQ(nlohmann::json::parse(sparkle("run --json --device cuda twice.sparkle", model()).out)["events"], result["events"]);
  EXPECT_EQ(sparkle("run --device cuda --fallback forbid " + model_file, model()).status, 3);
}

}  // namespace
}  // namespace sparkle::testing
