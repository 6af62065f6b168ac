// `sparkle bench` beside other engines, by steps and by ablation: what is refused, what is verified, what the JSON holds. The
// engines here are small stand-ins (tests/fake_peers), so that the test needs none installed.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "algorithms/algorithm.h"
#include "command/command.h"
#include "graph/test_graphs.h"

namespace sparkle::testing {
namespace {

const std::string kFakes = SPARKLE_FAKE_PEERS;
const std::string kConv = " --conv g1mb2ic3ih9oc5oh5kh3sh2ph1";
const std::string kShort = " --rounds 2 --round-ms 0.1";

class CommandAgainst : public Command {
 protected:
  nlohmann::json json_of(const std::string& arguments) const {
    const Said said = sparkle(arguments + " --json");
    EXPECT_EQ(said.status, 0) << said.err;
    auto json = nlohmann::json::parse(said.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << said.out;
    return json;
  }
};

TEST_F(CommandAgainst, RefusesWhatIsNotThere) {
  const std::string bench = "bench" + kConv + " --against ";
  EXPECT_SAYS(refusal(bench + "cudnn"),
              "There is no peer 'cudnn' to measure against; there are onednn, onnxruntime, openblas.");
  EXPECT_SAYS(refusal(bench + ","), "there are onednn, onnxruntime, openblas");
  EXPECT_SAYS(refusal(bench + "openblas=nowhere.so"), "The library of openblas cannot be loaded");
  EXPECT_SAYS(refusal(bench + "openblas=" + kFakes + "/libfake_onednn.so"), "so it is not a usable openblas");
  const std::string old = refusal(bench + "onednn=" + kFakes + "/libfake_onednn.so");
  if (contains(old, "built without oneDNN's headers")) {
    EXPECT_SAYS(old, "Run scripts/setup bench");
  } else {
    EXPECT_SAYS(old, "is version 2.6.3; its kernels changed much since, so at least 3.7 is measured against.");
  }
  const std::string fake = "openblas=" + kFakes + "/libfake_openblas.so";
  EXPECT_SAYS(refusal(bench + fake + "," + fake), "The peer 'openblas' is named twice.");
}

TEST_F(CommandAgainst, RefusesWhatDoesNotGoTogether) {
  EXPECT_SAYS(refusal("bench x.onnx --against openblas"), "'openblas' runs no whole models; write --against onnxruntime");
  EXPECT_SAYS(refusal("bench x.onnx --against onnxruntime --streams 2"), "--streams does not go with --against");
  EXPECT_SAYS(refusal("bench x.onnx --rounds 2"), "--rounds is for layers and for models --against another engine");
  EXPECT_SAYS(refusal("bench x.onnx --runs 2 --duration 1"), "--runs does not go with --duration");
  EXPECT_SAYS(refusal("bench --streams 2" + kConv), "--streams measures a model and needs one");
  EXPECT_SAYS(refusal("bench --dt f16" + kConv), "--dt is for problem files and needs --batch");
  EXPECT_SAYS(refusal("bench --ladder --against openblas" + kConv), "--against does not go with --ladder");
  EXPECT_SAYS(refusal("bench --ablate --against openblas" + kConv), "--against does not go with --ablate");
  EXPECT_SAYS(refusal("bench --ablate --ladder" + kConv), "--ablate does not go with --ladder");
  EXPECT_SAYS(refusal("bench --ablate --algorithm winograd4" + kConv), "does not go with --ablate");
  EXPECT_SAYS(refusal("bench --filter a" + kConv), "--filter picks layers of a list and needs --layers");
  EXPECT_SAYS(refusal("bench --gemm 64x"), "'64x' is not a matrix product such as 64x12544x147");
  write("layers.csv", "name,c,h,w,k,r,s\nfirst,3,8,8,4,3,3\nsecond,4,6,6,8,1,1\n");
  EXPECT_SAYS(refusal("bench --layers layers.csv --filter third"), "No layer of 'layers.csv' has a name");
}

TEST_F(CommandAgainst, PeersAreVerifiedAndInTheRows) {
  write("layers.csv",
        "name,n,c,h,w,k,r,s,stride_h,pad_h,dil_h,groups,kind,old_ms,old_what\nfirst,2,3,9,8,4,3,2,2,1,1,1,conv,12.5,an old "
        "machine\nsecond,1,8,6,6,4,1,1,1,0,1,2,,,\nproduct,1,7,3,5,6,1,1,1,0,1,1,gemm,,\nskipped,1,1,1,1,1,1,1,1,0,1,1,,,\n");
  const std::string peer = " --against openblas=" + kFakes + "/libfake_openblas.so" + kShort + " --threads 1";
  const auto json = json_of("bench --layers layers.csv --filter first --filter second --filter product" + peer);
  ASSERT_EQ(json["rows"].size(), 3u);
  for (const auto& row : json["rows"]) {
    const auto& blas = row["peers"]["openblas"];
    EXPECT_EQ(blas["version"], "plain loops 1.0");
    for (const char* key : {"median_ms", "min_ms", "p95_ms", "speedup", "max_error", "percent_of_peak", "fixed_ms_taken_off"})
      EXPECT_TRUE(blas[key].is_number()) << key;
    EXPECT_LT(blas["max_error"], 1e-5);
    EXPECT_GT(blas["median_ms"], 0);
    EXPECT_EQ(row["best_speedup"], blas["speedup"]);
  }
  EXPECT_EQ(json["rows"][0]["old_ms"], 12.5);
  EXPECT_EQ(json["rows"][0]["old_what"], "an old machine");
  EXPECT_FALSE(json["rows"][1].contains("old_ms"));
  EXPECT_SAYS(json["rows"][0]["problem"].get<std::string>(), "bias=1");
  EXPECT_SAYS(json["rows"][0]["problem"].get<std::string>(), "act=none");
  EXPECT_SAYS(json["rows"][2]["problem"].get<std::string>(), "rows=6 columns=15 depth=7");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_TRUE(json["speedup_geometric_means"]["openblas"].is_number());
  EXPECT_TRUE(json["speedup_geometric_means"]["best_of_each_layer"].is_number());
  const Said text = sparkle("bench" + kConv + peer);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_SAYS(text.out, "openblas            plain loops 1.0");
  EXPECT_SAYS(text.out, "bias fused, no activation");
}

TEST_F(CommandAgainst, AWrongPeerIsNotTimed) {
  const Said said = sparkle("bench" + kConv + " --against openblas=" + kFakes + "/libfake_wrong_openblas.so" + kShort);
  EXPECT_EQ(said.status, 1);
  EXPECT_SAYS(said.err, "openblas computes 3x9x9 -> 5 3x3 s2 p1 n2 wrongly");
}

// x -> Relu -> h -> Relu -> y, which the stand-in for ONNX Runtime computes too.
Graph two_relus() {
  GraphBuilder b;
  const TensorId h = b.pointwise(PointwiseOp::relu, {b.input({2, 5})}), y = b.pointwise(PointwiseOp::relu, {h});
  b.graph.tensor(h).name = "h", b.graph.tensor(y).name = "y";
  return b.done(y);
}

TEST_F(CommandAgainst, WholeModelsBesideOnnxRuntime) {
  save(two_relus(), "relus.onnx");
  const std::string right = " --threads 1 --against onnxruntime=" + kFakes + "/libfake_onnxruntime.so";
  const std::string wrong = " --threads 1 --against onnxruntime=" + kFakes + "/libfake_wrong_onnxruntime.so";
  const auto json = json_of("bench relus.onnx" + kShort + right);
  EXPECT_EQ(json["certificate"]["versions"]["onnxruntime"], "fake 1.0");
  EXPECT_EQ(json["file"], "relus.onnx");
  EXPECT_EQ(json["rounds"], 2);
  EXPECT_SAYS(json["criterion"].get<std::string>(), "f32: |a-b| <= 1e-05 max|b| + 0.001 |b|");
  for (const char* engine : {"sparkle", "onnxruntime"})
    for (const char* key : {"p50_ms", "p90_ms", "p99_ms", "min_ms"}) EXPECT_GT(json[engine][key], 0) << engine << key;
  EXPECT_SAYS(sparkle("bench relus.onnx" + kShort + right).out, "ONNX Runtime's time over Sparkle's, median of 2 rounds");

  const auto same = json_of("compare relus.onnx" + right);
  EXPECT_EQ(same["compared"], 2);
  EXPECT_EQ(same["different"], 0);
  EXPECT_TRUE(same["first_to_depart"].is_null());
  const Said differs = sparkle("compare relus.onnx" + wrong);
  EXPECT_EQ(differs.status, 1) << differs.err;
  EXPECT_SAYS(differs.out, "The first that departs is the tensor 'h' of n0, Relu: 1 of 10 elements differ, the first at 0");
  EXPECT_SAYS(differs.out, "2 tensors compared, 1 differ, 0 skipped");
  EXPECT_EQ(sparkle("compare relus.onnx --atol 1.5" + wrong).status, 0);
  EXPECT_SAYS(refusal("compare relus.onnx --against openblas"), "runs no whole models");
  EXPECT_SAYS(refusal("bench relus.onnx --against onnxruntime=nowhere.so"), "The library of onnxruntime cannot be loaded");
}

TEST_F(CommandAgainst, ManyRequestsAtOnceAndForATime) {
  save(two_relus(), "relus.onnx");
  const auto load = json_of("bench relus.onnx --streams 2 --duration 0.05");
  EXPECT_EQ(load["streams"], 2);
  EXPECT_GT(load["runs_per_second"], 0);
  EXPECT_LE(load["latency"]["p50_ms"], load["latency"]["p99_ms"]);
  EXPECT_SAYS(load["checked"].get<std::string>(), "3 times");  // before, and of each stream
  const auto alone = json_of("bench relus.onnx --duration 0.05");
  EXPECT_GE(alone["total"]["runs"], 5);
  EXPECT_LE(alone["total"]["p90_ms"], alone["total"]["p99_ms"]);
  EXPECT_EQ(alone["file"], "relus.onnx");
}

TEST_F(CommandAgainst, ProblemFilesOfBenchdnn) {
  write("problems", "--reset --dir=FWD_D,BWD_D\nmb1_ic8ih9oc8kh3ph1n\"net:conv1\"\n--stag=axb\nic4ih6oc4kh1n\"net:other\"\n");
  const Said said = sparkle("bench --batch problems --filter conv1 --json" + kShort);
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.err, "--dir=BWD_D are left out: FWD_B, FWD_D and FWD_I are measured.");
  EXPECT_SAYS(said.err, "'--stag=axb' of a problem file means nothing here");
  const auto json = nlohmann::json::parse(said.out);
  ASSERT_EQ(json["rows"].size(), 1u);
  EXPECT_EQ(json["rows"][0]["name"], "net:conv1");
  EXPECT_EQ(json["file"], "problems");
  EXPECT_SAYS(json["rows"][0]["problem"].get<std::string>(), "bias=0");
  EXPECT_SAYS(json["rows"][0]["problem"].get<std::string>(), "act=none");
}

TEST_F(CommandAgainst, TheLadderHasEveryStep) {
  const auto json = json_of("bench --ladder --conv ic16ih8oc16oh8kh3ph1" + kShort);
  for (const auto& row : json["rows"])
    for (const char* column : {"gflops", "executed_gflops", "percent_of_roof", "predicted_bytes", "host_transfers", "clock"})
      EXPECT_TRUE(row.contains(column) || row.contains("absent")) << row;
  std::vector<std::string> steps;
  for (const auto& row : json["rows"]) {
    steps.push_back(row["level"]);
    EXPECT_TRUE(row["what"].is_string());
    if (row.contains("absent")) {
      EXPECT_FALSE(row.contains("median_ms"));
      continue;
    }
    // Weights in 16 bits are rounded to 2^-11 and 2^-8 of themselves.
    const std::string step = steps.back();
    EXPECT_LT(row["max_error"], step == "gemm_f16"    ? std::ldexp(1, -11)
                                : step == "gemm_bf16" ? std::ldexp(1, -8)
                                                      : 5e-5)
        << step;
    for (const char* key : {"median_ms", "gflops", "threads", "predicted_gbytes_per_s"})
      EXPECT_TRUE(row[key].is_number()) << key;
    EXPECT_TRUE(row["predicted_bytes"].is_object());
  }
  std::vector<std::string> expected{"naive", "threaded", "cache-blocked", "vectorised", "register-tiled", "implicit GEMM"};
  for (const Algorithm& algorithm : algorithms())
    if (algorithm.name != "gemm") expected.emplace_back(algorithm.name);
  expected.push_back("as planned");
  EXPECT_EQ(steps, expected);
  EXPECT_EQ(json["rows"][0]["threads"], 1);
}

// On a Vulkan device each optimisation step is a variant of its own, timed by the device's clock while nothing moves between
// host and device.
TEST_F(CommandAgainst, TheLadderOfAVulkanDevice) {
  if (sparkle("devices --device vulkan").status != 0) GTEST_SKIP() << "SKIP: no Vulkan device";
  const auto json = json_of("bench --device vulkan --ladder --conv ic8ih6oc8oh6kh3ph1" + kShort);
  std::set<std::string> measured, absent;
  for (const auto& row : json["rows"]) {
    const std::string level = row["level"];
    if (row.contains("absent")) {
      absent.insert(level);
      continue;
    }
    measured.insert(level);
    for (const char* column : {"gflops", "executed_gflops", "percent_of_roof", "gbytes_per_s", "median_ms"})
      EXPECT_TRUE(row[column].is_number()) << level << " " << column;
    EXPECT_GT(row["predicted_bytes"]["DRAM"], 0) << level;
    EXPECT_EQ(row["host_transfers"], 0) << level;
    EXPECT_EQ(row["clock"], "device") << level;
    EXPECT_LE(row["max_error"], level == "sums_f16" ? 1e-3 : 1e-5) << level;
  }
  for (const char* step :
       {"unrolled", "naive", "groups", "halo", "fours", "several", "NCHW", "implicit", "winograd2", "winograd4", "as planned"})
    EXPECT_TRUE(measured.count(step)) << step;
  for (const char* step : {"cooperative", "cooperative_group", "fft"})
    EXPECT_TRUE(measured.count(step) + absent.count(step)) << step;
  const auto of_planes = json_of("bench --device vulkan --ladder --planes --conv ic8ih6oc8oh6kh3ph1" + kShort);
  EXPECT_TRUE(std::ranges::any_of(of_planes["rows"], [](const auto& row) {
    return row["level"] == "NHWC" && row.contains("median_ms") && row["predicted_bytes"]["DRAM"] > 0;
  }));
  EXPECT_SAYS(sparkle("bench --device vulkan --ladder --conv ic8ih6oc8oh6kh3ph1" + kShort).out,
              "GFLOP/s executed  % peak  % roof  factor MB shared  MB DRAM    GB/s copies    error");
}

TEST_F(CommandAgainst, AblationSwitchesOnePatternAtATime) {
  const auto json = json_of("bench --ablate --conv ic16ih8oc16oh8kh3ph1" + kShort);
  std::vector<std::string> without;
  for (const auto& row : json["rows"]) {
    without.push_back(row["without"]);
    if (!row.contains("absent")) {
      EXPECT_LT(row["max_error"], 1e-5);
      EXPECT_EQ(row.contains("factor"), row["without"] != "all on");
    }
  }
  EXPECT_EQ(without, (std::vector<std::string>{"all on", "tile", "block", "vectorise", "pipeline", "fuse"}));
  EXPECT_EQ(json["rows"][5]["algorithm"], "gemm, pointwise");
}

// What is switched off is asserted in src/measure/steps/ablation_test.cc; here each row computes the layer on whatever device
// there is.
TEST_F(CommandAgainst, AblationOfAVulkanDevice) {
  if (sparkle("devices --device vulkan").status != 0) GTEST_SKIP() << "SKIP: no Vulkan device";
  const auto json = json_of("bench --device vulkan --ablate --conv ic16ih8oc16oh8kh3ph1" + kShort);
  std::vector<std::string> without;
  for (const auto& row : json["rows"]) {
    without.push_back(row["without"]);
    EXPECT_FALSE(row.contains("absent")) << row;
    EXPECT_LT(row["max_error"], 1e-5) << row["without"];
    EXPECT_EQ(row["clock"], "device");
    EXPECT_EQ(row.contains("factor"), row["without"] != "all on");
  }
  EXPECT_EQ(without,
            (std::vector<std::string>{"all on", "tile", "vectorise", "pipeline", "unroll", "bank padding", "NHWC", "fuse"}));
}

// Whatever prints or keeps a result says how it came about, by one writer.
TEST_F(CommandAgainst, ResultsCarryACertificate) {
  const auto whole = [](const nlohmann::json& c, const std::string& command) {
    EXPECT_SAYS(c["command"].get<std::string>(), command);
    const std::string commit = c["commit"];
    EXPECT_TRUE(commit == "unknown" || commit.size() == 40) << commit;
    EXPECT_TRUE(c["clean"].is_boolean());
    EXPECT_EQ(c["date"].get<std::string>().size(), 20u) << c["date"];
    EXPECT_FALSE(c["cpu"]["name"].get<std::string>().empty());
    EXPECT_TRUE(c["versions"]["sparkle"].is_string());
    EXPECT_TRUE(c["load_average"].is_number());
    EXPECT_TRUE(c["environment"].is_object());
  };
  whole(json_of("bench" + kConv + kShort)["certificate"], "sparkle bench --conv g1mb2ic3ih9oc5oh5kh3sh2ph1");
  whole(json_of("bench --ladder" + kConv + kShort)["certificate"], "--ladder");
  const auto beside = json_of("bench" + kConv + kShort + " --threads 1 --against openblas=" + kFakes + "/libfake_openblas.so");
  EXPECT_EQ(beside["certificate"]["versions"]["openblas"], "plain loops 1.0");
  EXPECT_EQ(sparkle("bench" + kConv + kShort + " --output kept.json").status, 0);
  whole(nlohmann::json::parse(text_of("kept.json"))["certificate"], "--output kept.json");
  whole(nlohmann::json::parse(sparkle("certificate --command 'tool --x' --version peer=1.2").out), "tool --x");
  ::setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  const auto held = nlohmann::json::parse(sparkle("certificate --command x").out);
  ::unsetenv("ONEDNN_MAX_CPU_ISA");
  EXPECT_EQ(held["environment"]["ONEDNN_MAX_CPU_ISA"], "AVX2");
  EXPECT_SAYS(refusal("certificate --command x --version peer"), "--version takes NAME=VERSION");
}

}  // namespace
}  // namespace sparkle::testing
