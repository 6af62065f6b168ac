// What `sparkle` says where options do not fit: one sentence and status 2, never silence; and its errors as JSON.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "graph/test_graphs.h"
#include "onnx/tensor_file.h"

namespace sparkle::testing {
namespace {

const std::string kUpscale = (kSource / "models/upscale2x.onnx").string();

class CommandOptions : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    GraphBuilder b;  // ten classes of a picture of 8x8
    const TensorId x = b.input({1, 3, 8, 8});
    classifier_ = save(b.done(b.op("Conv", ConvOp{}, {x, b.weights({10, 3, 8, 8})})), "classifier.onnx");
    write("small.ppm", "P6\n8 8\n255\n" + std::string(8 * 8 * 3, 'x'));
    write("large.ppm", "P6\n40 30\n255\n" + std::string(40 * 30 * 3, 'x'));
  }
  std::string classifier_;
};

TEST_F(CommandOptions, ForcedNamesMustExist) {
  for (const std::string& command :
       {"run " + classifier_, "explain " + classifier_, std::string("explain --conv ic8ih8oc8kh3ph1"),
        std::string("bench --conv ic8ih8oc8kh3ph1")}) {
    EXPECT_SAYS(refusal(command + " --variant nonsense"), "There is no kernel variant 'nonsense'; there are tile");
    EXPECT_SAYS(refusal(command + " --algorithm nonsense"), "There is no algorithm 'nonsense'; there are ");
  }
  const Said plain = sparkle("run " + classifier_ + " --variant plain");
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_SAYS(plain.err, "runs on plain reference loops, as --variant plain demands");
}

// Every command that plans a model heeds --fallback, before it leaves anything behind; the others refuse it.
TEST_F(CommandOptions, NoCommandIgnoresFallback) {
  const std::string forbidden = " --variant plain --fallback forbid";
  for (const std::string& command :
       {"run " + classifier_, "bench --model " + classifier_, "explain " + classifier_,
        std::string("explain --conv ic8ih8oc8kh3ph1"), "compile " + classifier_ + " -o out.sparkle"}) {
    const Said said = sparkle(command + forbidden);
    EXPECT_EQ(said.status, 3) << command << "\n" << said.out << said.err;
    EXPECT_SAYS(said.err, "which --fallback forbids");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.sparkle"));
  write("starts", "start\nquit\n");
  const std::string with_input = " <starts >.out 2>.err #";  // in the place of what sparkle() redirects
  const Said start = sparkle("bench --serve --model " + classifier_ + forbidden + with_input);
  EXPECT_EQ(start.status, 3);
  EXPECT_SAYS(start.out, "which --fallback forbids");
  EXPECT_EQ(sparkle("bench --serve --model " + classifier_ + with_input).status, 0);
  EXPECT_SAYS(sparkle("explain " + classifier_ + " --variant plain").err, "runs on plain reference loops");
  EXPECT_EQ(sparkle("explain " + classifier_ + " --variant plain --fallback allow").err, "");
  const std::string conv = "bench --conv ic8ih8oc8kh3ph1 --fallback forbid";
  for (const std::string mode : {"", " --ladder", " --ablate", " --crossover", " --batches 2"})
    EXPECT_SAYS(refusal(conv + mode), "--fallback is for the steps of a model and needs one");
  EXPECT_SAYS(refusal("bench --gemm 8x8x8 --fallback warn"), "--fallback is for the steps of a model");
  EXPECT_SAYS(refusal("tune --conv ic8ih8oc8kh3ph1 --fallback warn"), "--fallback does not go with tune");
}

// What the caller requires of a plan is held against each of its layers before anything runs.
TEST_F(CommandOptions, RequirementsThatAreNotMetAreStatus3NamingTheLayer) {
  for (const std::string& command :
       {"run " + classifier_, "explain " + classifier_, "compile " + classifier_ + " -o out.sparkle"}) {
    const Said unit = sparkle(command + " --device cpu --require matrix");
    if (unit.status != 0) {  // a CPU with tile registers may compute it by these
      EXPECT_EQ(unit.status, 3) << command << unit.err;
      EXPECT_SAYS(unit.err, "and --require matrix is not met");
      EXPECT_SAYS(unit.err, "Step '");
    }
    const Said device = sparkle(command + " --device cpu --require device=vulkan");
    EXPECT_EQ(device.status, 3) << command << device.err;
    EXPECT_SAYS(device.err, "runs on cpu, and --require device=vulkan is not met");
  }
  EXPECT_EQ(sparkle("run " + classifier_ + " --device cpu --require device=cpu").status, 0);
  EXPECT_SAYS(refusal("run " + classifier_ + " --require speed"), "'speed' is neither matrix nor device=NAME");
}

// A device that cannot be used here gives way to the CPU where that is allowed, and the answer says so.
TEST_F(CommandOptions, ADeviceThatIsMissingGivesWayWhereAllowed) {
  ::setenv("SPARKLE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  const std::string missing = "run " + classifier_ + " --device cuda --json";
  const Said refused = sparkle(missing);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(sparkle(missing + " --fallback forbid").status, 2);
  const Said said = sparkle(missing + " --fallback allow");
  ::unsetenv("SPARKLE_CUDA_DRIVER");
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.err, "The CPU runs the model in its place.");
  const auto events = nlohmann::json::parse(said.out)["events"];
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["what"], "device");
  EXPECT_EQ(events[0]["from"], "cuda");
  EXPECT_EQ(events[0]["reason"], "device_unusable");
  // A device by a number that no device here has is missing too; what is no name of a device is an error on any machine.
  const std::string run = "run " + classifier_ + " --json --device ";
  for (const char* name : {"vulkan:99", "cuda:99"}) {
    EXPECT_EQ(sparkle(run + name).status, 2) << name;
    const Said instead = sparkle(run + name + " --fallback allow");
    ASSERT_EQ(instead.status, 0) << name << instead.err;
    EXPECT_SAYS(instead.err, "The CPU runs the model in its place.");
    const auto told = nlohmann::json::parse(instead.out)["events"];
    ASSERT_EQ(told.size(), 1u) << name;
    EXPECT_EQ(told[0]["from"], name);
    EXPECT_EQ(told[0]["reason"], "device_unusable");
  }
  for (const char* name : {"vulkan:x", "vulkan:", "vulkan:-1", "cuda:0x", "vulcan"})
    EXPECT_SAYS(refusal("run " + classifier_ + " --fallback allow --device " + name), name);
  // Where a device is required nothing takes its place.
  EXPECT_EQ(sparkle(run + "vulkan:99 --fallback allow --require device=vulkan").status, 3);
  const auto plain = nlohmann::json::parse(sparkle("run " + classifier_ + " --variant plain --json").out)["events"];
  ASSERT_GE(plain.size(), 1u);
  EXPECT_EQ(plain[0]["what"], "operator");
  EXPECT_EQ(plain[0]["to"], "plain loops");
}

// Where a device has no kernel for a step the CPU computes it; forbidding that is a requirement that is not met.
TEST_F(CommandOptions, StepsWithoutAKernelAreStatus3WhereForbidden) {
  if (sparkle("run " + classifier_ + " --device vulkan").status != 0) GTEST_SKIP() << "no Vulkan device";
  GraphBuilder b;
  const TensorId x = b.input({5, 7}, DType::bf16);
  const std::string model = save(b.done(b.op("CumSum", CumSumOp{1}, {x})), "sums.onnx");
  const Said run = sparkle("run " + model + " --device vulkan");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_SAYS(run.err, "(scan) has no kernel on ");
  const std::string forbidden = " --device vulkan --fallback forbid";
  for (const std::string& command : {"run " + model, "bench --model " + model, "compile " + model + " -o out"}) {
    const Said said = sparkle(command + forbidden);
    EXPECT_EQ(said.status, 3) << command << "\n" << said.err;
    EXPECT_SAYS(said.err, "no Vulkan kernel of the scan family supports it");
  }
  EXPECT_EQ(sparkle("run " + classifier_ + forbidden).status, 0);
  EXPECT_EQ(sparkle("run nothing.onnx" + forbidden).status, 2);
  // The same of the file that such a model is compiled to.
  const Said compiled = sparkle("compile " + model + " -o sums.sparkle --device vulkan");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  const Said opened = sparkle("run sums.sparkle --json --device vulkan");
  ASSERT_EQ(opened.status, 0) << opened.err;
  EXPECT_SAYS(opened.err, "(scan) has no kernel on ");
  EXPECT_EQ(nlohmann::json::parse(opened.out)["outputs"],
            nlohmann::json::parse(sparkle("run " + model + " --json --device vulkan").out)["outputs"]);
  const Said said = sparkle("run sums.sparkle" + forbidden);
  EXPECT_EQ(said.status, 3) << said.err;
  EXPECT_SAYS(said.err, "(scan) has no kernel on ");
  EXPECT_EQ(sparkle("run sums.sparkle --device vulkan --require device=vulkan").status, 3);
}

TEST_F(CommandOptions, BenchRefusesWhatDoesNotGoTogether) {
  const std::string model = "bench --model " + classifier_;
  EXPECT_SAYS(refusal(model + " --layers x.csv"), "--layers is for layers and does not go with a model");
  EXPECT_SAYS(refusal(model + " --conv ic8ih8oc8kh3"), "--conv");
  EXPECT_SAYS(refusal(model + " --ladder"), "--ladder");
  EXPECT_SAYS(refusal(model + " --rounds 3"), "--rounds");
  EXPECT_SAYS(refusal(model + " --serve --runs 3"), "--runs does not go with --serve");
  EXPECT_SAYS(refusal("bench --conv ic8ih8oc8kh3 --runs 3"), "--runs measures a model");
  EXPECT_SAYS(refusal("bench --conv ic8ih8oc8kh3 --ladder --variant plain"), "does not go with --ladder");
  EXPECT_SAYS(refusal("bench --conv ic8ih8oc8kh3 --ladder --batches 2"), "--ladder does not go with --batches");
  EXPECT_SAYS(refusal(model + " --batches 2"), "--batches is for layers and does not go with a model");
  EXPECT_SAYS(refusal("bench --conv ic8ih20oc8oh20kh5ph2 --crossover --memory-budget 1"), "the memory budget is 1;");
  for (const std::string& command : {model, std::string("bench --conv ic8ih8oc8kh3")})
    EXPECT_SAYS(refusal(command + " --output no/such/folder/x.json"), "'no/such/folder/x.json' cannot be written");
}

// What may be planned is what options leave, wherever layers are measured.
TEST_F(CommandOptions, CrossoverPlansByTheOptions) {
  const std::string crossover = "bench --conv ic8ih20oc8oh20kh5ph2 --crossover --rounds 1 --round-ms 1 --json --nonfinite ";
  for (const std::string nonfinite : {"fast", "exact"}) {
    const auto json = nlohmann::json::parse(sparkle(crossover + nonfinite).out, nullptr, false);
    ASSERT_TRUE(json.is_object());
    ASSERT_EQ(json["layers"][0]["points"].size(), 1u);
    EXPECT_EQ(json["layers"][0]["points"][0]["fft_predicted"].get<double>() > 0, nonfinite == "fast");
  }
}

TEST_F(CommandOptions, BenchWritesTheModelsRows) {
  const Said said = sparkle("bench --model " + classifier_ + " --runs 3 --output rows.json");
  ASSERT_EQ(said.status, 0) << said.err;
  const auto json = nlohmann::json::parse(text_of("rows.json"));
  ASSERT_GT(json["rows"].size(), 0u);
  EXPECT_GT(json["rows"][0]["predicted_bytes"]["L1"], 0);
  EXPECT_GT(json["total"]["peak_bytes"], 0);
  double executed = 0;
  for (const auto& row : json["rows"]) {
    EXPECT_LE(row["executed_gflops"], row["gflops"]) << row;
    executed += row["executed_gflops"].get<double>();
  }
  EXPECT_GT(executed, 0);
  // Forty runs are not in order by chance.
  const auto time = nlohmann::json::parse(sparkle("bench --json --runs 40 --model " + classifier_).out)["total"];
  EXPECT_LE(time["min_ms"], time["median_ms"]);
  EXPECT_LT(time["min_ms"], time["p95_ms"]);
  EXPECT_LE(time["median_ms"], time["p95_ms"]);
}

TEST_F(CommandOptions, RunRefusesWhatDoesNotApply) {
  EXPECT_SAYS(refusal("run " + classifier_ + " small.ppm --tile 64"), "--tile is for networks that enlarge a picture");
  EXPECT_SAYS(refusal("run " + classifier_ + " small.ppm --reference small.ppm"), "--reference is for networks");
  EXPECT_SAYS(refusal("run " + classifier_ + " --preset unit"), "--preset is for pictures");
  EXPECT_SAYS(refusal("run " + classifier_ + " small.ppm --scale 0"), "--scale 0");
  write("labels.txt", "one\ntwo\n");
  EXPECT_SAYS(refusal("run " + classifier_ + " small.ppm --labels labels.txt"), "has 10 classes; give one line for each");
  write("labels.txt", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_EQ(sparkle("run " + classifier_ + " small.ppm --labels labels.txt").status, 0);
  EXPECT_SAYS(refusal("run " + kUpscale + " large.ppm --labels labels.txt"), "--labels is for classifiers");
}

TEST_F(CommandOptions, EnlargingSaysEverythingBeforeItRuns) {
  EXPECT_SAYS(refusal("run " + kUpscale + " large.ppm --reference nofile.png"), "'nofile.png' cannot be read");
  EXPECT_SAYS(refusal("run " + kUpscale + " large.ppm --reference small.ppm"),
              "The reference is 8x8, the result will be 80x60; give one of that size.");
  const Said text = sparkle("run " + kUpscale + " large.ppm --output out");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_FALSE(contains(text.out, "for a tile")) << text.out;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "out")) files.push_back(entry.path().filename());
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{"large_comparison.png", "large_upscaled.png", "upscaled.npy"}));
  const auto json = nlohmann::json::parse(sparkle("run " + kUpscale + " large.ppm --json").out);
  EXPECT_SAYS(json["inputs"][0].get<std::string>(), "large.ppm (40x30): unit, RGB");
  EXPECT_EQ(json["outputs"][0]["shape"], (std::vector<int>{1, 3, 60, 80}));
}

TEST_F(CommandOptions, EnlargingNamesATileThatFits) {
  write("wide.ppm", "P6\n600 400\n255\n" + std::string(600 * 400 * 3, 'x'));
  const std::string run = "run " + kUpscale + " wide.ppm --json --memory-budget ";
  const std::string said = refusal(run + "40M");
  const size_t at = said.find("give --tile ");
  ASSERT_NE(at, std::string::npos) << said;
  const std::string tile = said.substr(at + 12, said.find(' ', at + 12) - at - 12);
  const Said smaller = sparkle(run + "40M --tile " + tile);
  ASSERT_EQ(smaller.status, 0) << smaller.err;
  EXPECT_LE(nlohmann::json::parse(smaller.out)["peak_bytes"], 40 << 20);
  EXPECT_SAYS(refusal(run + "1M"), "however small the tiles");
}

TEST_F(CommandOptions, SentencesNameTheCause) {
  const char header[] =
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x4e\x20\0\0\x4e\x20\x08\x02\0\0\0"
      "\x6c\x12\xd1\x6e\0\0\0\0IDAT";
  write("vast.png", std::string(header, sizeof header - 1));
  EXPECT_SAYS(refusal("run " + classifier_ + " vast.png"), "declares 20000x20000 pixels; at most 100 million are read");
  EXPECT_SAYS(refusal("rum x.onnx"), "There is no command 'rum'; did you mean 'run'?");
  EXPECT_SAYS(refusal("xyzzyx"), "There is no command 'xyzzyx'; there are ");
  GraphBuilder b;
  const TensorId x = b.input({2, 6}), shape = b.input({2}, DType::i64);
  const std::string reshape =
      save(b.done(b.pointwise(PointwiseOp::exp, {b.op("Reshape", ReshapeOp{}, {x, shape})})), "reshape.onnx");
  EXPECT_SAYS(refusal("explain " + reshape), "The input 'x1' decides shapes by its value");
  GraphBuilder c;
  const TensorId data = c.input({3, 2}), index = c.input({2}, DType::i64);
  const std::string gather = save(c.done(c.op("Gather", GatherOp{}, {data, index})), "gather.onnx");
  const Said zeros = sparkle("run " + gather);
  EXPECT_SAYS(zeros.out, "'x1' 2, zeros");
  EXPECT_SAYS(zeros.out, "'x0' 3x2, seeded random values");
}

TEST_F(CommandOptions, ErrorsAsJson) {
  for (const std::string& arguments :
       std::vector<std::string>{"run nofile.onnx --json", "run --nonsense --json", "rum --json"}) {
    const Said said = sparkle(arguments);
    EXPECT_EQ(said.status, 2);
    const auto json = nlohmann::json::parse(said.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << said.out;
    EXPECT_EQ(json["error"]["reason"], arguments == "run nofile.onnx --json" ? "file_unreadable" : "bad_usage");
    EXPECT_EQ("sparkle: " + json["error"]["message"].get<std::string>() + "\n", said.err);
  }
  EXPECT_EQ(sparkle("run nofile.onnx").out, "");
}

TEST_F(CommandOptions, VerifyIsStrict) {
  GraphBuilder b;
  const TensorId x = b.input({2, 2});
  const TensorId y = b.pointwise(PointwiseOp::exp, {x}), z = b.pointwise(PointwiseOp::tanh, {x});
  b.graph.outputs = {y, z};
  std::filesystem::create_directories(folder_ / "two/test_data_set_0");
  save(b.graph, "two/model.onnx");
  const HostTensor zeros = HostTensor::zeros(DType::f32, {2, 2});
  const HostTensor ones = HostTensor::of(DType::f32, {2, 2}, std::vector<float>{1, 1, 1, 1});
  ASSERT_TRUE(write_tensor_pb(path("two/test_data_set_0/input_0.pb"), "x0", zeros).ok());
  ASSERT_TRUE(write_tensor_pb(path("two/test_data_set_0/output_0.pb"), "y", ones).ok());
  Said said = sparkle("verify two");
  EXPECT_EQ(said.status, 1);
  EXPECT_SAYS(said.out, "it holds 1 output_*.pb, the model has 2 outputs");
  ASSERT_TRUE(write_tensor_pb(path("two/test_data_set_0/output_1.pb"), "z", zeros).ok());
  said = sparkle("verify two");
  EXPECT_EQ(said.status, 0) << said.out;
  EXPECT_EQ(said.err, "");

  GraphBuilder unsupported;
  const TensorId d = unsupported.input({2, 2}, DType::i32);
  unsupported.done(unsupported.pointwise(PointwiseOp::exp, {d}));
  std::filesystem::create_directories(folder_ / "wide/test_data_set_0");
  save(unsupported.graph, "wide/model.onnx");
  ASSERT_TRUE(write_tensor_pb(path("wide/test_data_set_0/input_0.pb"), "x0", HostTensor::zeros(DType::i32, {2, 2})).ok());
  said = sparkle("verify wide");
  EXPECT_EQ(said.status, 0) << said.out;
  EXPECT_SAYS(said.out, "0 passed, 0 failed, 1 skipped");
  EXPECT_SAYS(said.err, "Nothing was compared");
  std::filesystem::remove_all(folder_ / "wide/test_data_set_0");
  said = sparkle("verify wide");  // without a test set it is no test, supported or not
  EXPECT_EQ(said.status, 1);
  EXPECT_SAYS(said.out, "there is no test_data_set_*");
}

// exp(0) = 1 is expected to be 1.01: what the type allows says no, what is asked for decides, and what was gone by is printed.
TEST_F(CommandOptions, VerifyTakesTolerances) {
  GraphBuilder b;
  b.done(b.pointwise(PointwiseOp::exp, {b.input({4})}));
  std::filesystem::create_directories(folder_ / "near/test_data_set_0");
  save(b.graph, "near/model.onnx");
  const HostTensor zeros = HostTensor::zeros(DType::f32, {4});
  const HostTensor wanted = HostTensor::of(DType::f32, {4}, std::vector<float>{1, 1.01f, 1, 1});
  ASSERT_TRUE(write_tensor_pb(path("near/test_data_set_0/input_0.pb"), "x0", zeros).ok());
  ASSERT_TRUE(write_tensor_pb(path("near/test_data_set_0/output_0.pb"), "y", wanted).ok());
  Said said = sparkle("verify near");
  EXPECT_EQ(said.status, 1);
  EXPECT_SAYS(said.out, "output 0: 1 of 4 elements differ, the first at 1: 1, expected 1.01");
  for (const char* enough : {"--atol 0.02", "--rtol 0.02", "--atol 0.006 --rtol 0.005", "--atol 0.02 --rtol 0"}) {
    said = sparkle(std::string("verify near ") + enough);
    EXPECT_EQ(said.status, 0) << enough << "\n" << said.out;
    EXPECT_SAYS(said.out, "1 passed, 0 failed, 0 skipped");
  }
  EXPECT_SAYS(said.out, "|a-b| <= 0.02");
  for (const char* less : {"--atol 0.009 --rtol 0", "--rtol 0.009 --atol 0", "--atol 0", "--atol 0.003 --rtol 0.003"}) {
    said = sparkle(std::string("verify near ") + less);
    EXPECT_EQ(said.status, 1) << less << "\n" << said.out;
    EXPECT_SAYS(said.out, "FAIL  near");
  }
  for (const char* none : {"--atol -1", "--rtol nan", "--atol inf", "--rtol much"}) refusal(std::string("verify near ") + none);
  EXPECT_SAYS(refusal("verify --kernels pool/plain --atol 1"), "is for outputs of models and does not go with --kernels");
}

}  // namespace
}  // namespace sparkle::testing
