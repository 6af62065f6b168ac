// Kernels that are wrong in ways that a benchmark may fail to see, planted through a backend of the tests' own: no command that
// times or chooses kernels takes one for right. Each line of the table is printed by its test.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "command/command.h"
#include "networks/network_builder.h"

namespace sparkle::testing {
namespace {

constexpr const char* kConv = " --conv g1mb1ic16ih12oc24oh12kh3ph1";
constexpr const char* kShort = " --rounds 1 --round-ms 0.1";

struct Asked {
  std::string name, arguments;
  friend void PrintTo(const Asked& a, std::ostream* out) { *out << a.name; }
};

std::vector<Asked> asked() {
  // The same layer twice: the second may find the first one's answer.
  const std::string twice = std::string(kConv) + kConv;
  return {{"layers", "bench" + twice + kShort},
          {"gemm", std::string("bench --gemm 24x40x32 --gemm 24x40x32") + kShort},
          {"ladder", std::string("bench --ladder") + kConv + kShort},
          {"ablate", std::string("bench --ablate") + kConv + kShort},
          {"crossover", std::string("bench --crossover --conv g1mb1ic16ih20oc16oh20kh7ph3") + kShort},
          {"batches", "bench --batches 3 --rounds 1" + twice},
          {"model", "bench --model net.onnx --runs 2"},
          {"pipeline", "bench net.onnx --pipeline --items 8"},
          {"against", "bench --against openblas=" SPARKLE_FAKE_PEERS "/libfake_openblas.so" + twice + kShort},
          {"tune", std::string("tune --tuning store") + kConv},
          {"tune_model", "tune net.onnx --tuning store"}};
}

class CommandPlanted : public Command {
 protected:
  void save_network() const {
    NetworkBuilder net("net", 3, false);
    TensorId x = net.input("x", {1, 16, 12, 12});
    for (const char* name : {"a", "b", "c"}) x = net.conv(name, x, {.filters = 16, .kernel = 3, .pad = 1});
    net.output(x, "y", {1, 16, 12, 12});
    save(net.finish(), "net.onnx");
  }
  Said with(const std::string& fault, const std::string& arguments, const std::string& device = "cpu --threads 1") const {
    save_network();
    return run(SPARKLE_PLANTED_COMMAND, arguments + " --device " + device,
               "export XDG_CACHE_HOME=$PWD SPARKLE_PLANTED=" + fault + ";");
  }
};

class EachCommand : public CommandPlanted, public ::testing::WithParamInterface<std::tuple<Asked, const char*>> {};

TEST_P(EachCommand, CatchesIt) {
  const auto& [what, fault] = GetParam();
  const Said said = with(fault, what.arguments);
  const std::string first = said.err.substr(0, said.err.find('\n'));
  std::printf("%-10s %-10s status %d  %s\n", what.name.c_str(), fault, said.status, first.c_str());
  // Where the first candidate's kernel is right, tuning goes on with it and leaves the others out.
  const bool tunes = what.name.starts_with("tune"), goes_on = tunes && std::string(fault) == "inherits";
  EXPECT_EQ(said.status, goes_on ? 0 : 1) << said.out << said.err;
  EXPECT_TRUE(contains(said.err, "wrong")) << said.out << said.err;
  EXPECT_FALSE(contains(said.err, "probed beside")) << "caught by its rate alone: " << said.err;
  if (!goes_on) return;
  EXPECT_SAYS(said.err, "It is left out.");
  const Said store = with(fault, what.arguments + " --json --again");
  EXPECT_FALSE(contains(store.out, "\"outcome\": \"changed\"")) << store.out;
}

// A report is looked at: wrong outputs end it, unless nobody wants them compared, and then it says so.
TEST_F(CommandPlanted, ReportsCatchThemToo) {
  for (const char* fault : {"nothing", "half", "fourth", "inherits", "first_only"}) {
    const Said said = with(fault, "report net.onnx --runs 2");
    EXPECT_EQ(said.status, 1) << fault << said.out << said.err;
    EXPECT_SAYS(said.err, "of the model is wrong");
    EXPECT_EQ(said.out, "") << fault;
  }
  EXPECT_SAYS(with("none", "report net.onnx --runs 2").out, "of plain loops, 3 times");
  const Said unchecked = with("half", "report net.onnx --runs 2 --check never");
  EXPECT_EQ(unchecked.status, 0) << unchecked.err;
  EXPECT_SAYS(unchecked.out, "not compared: nobody asked for it");
}

// On a GPU memory is pooled and results come by a copy: what finds a wrong kernel there is the same.
TEST_F(CommandPlanted, OnVulkanToo) {
  if (with("none", "devices", "vulkan").status != 0) GTEST_SKIP() << "no Vulkan device";
  for (const Asked& what : asked()) {
    if (what.name != "layers" && what.name != "ladder" && what.name != "batches" && what.name != "model") continue;
    for (const char* fault : {"none", "nothing", "inherits", "first_only"}) {
      const Said said = with(fault, what.arguments, "vulkan");
      const bool right = std::string(fault) == "none";
      std::printf("%-10s %-10s status %d  %s\n", what.name.c_str(), fault, said.status, said.err.substr(0, 140).c_str());
      EXPECT_EQ(said.status, right ? 0 : 1) << what.name << fault << said.out << said.err;
      EXPECT_EQ(contains(said.err, "wrong"), !right) << what.name << fault << said.out << said.err;
      EXPECT_FALSE(contains(said.err, "probed beside")) << "caught by its rate alone: " << said.err;
    }
  }
}

// The same command, nothing planted.
TEST_F(CommandPlanted, NothingIsCaughtWhereNothingIsPlanted) {
  for (const Asked& what : asked()) {
    const Said said = with("none", what.arguments);
    EXPECT_EQ(said.status, 0) << what.name << "\n" << said.out << said.err;
    EXPECT_FALSE(contains(said.err, "wrong")) << said.err;
    if (!what.name.starts_with("tune")) {
      EXPECT_SAYS(said.out, what.name == "pipeline" ? "each to the bit as by itself" : "outputs checked before") << what.name;
    }
    EXPECT_FALSE(contains(said.out, "not at all")) << said.out;
  }
}

// Right answers at a rate that no machine has: the run fails with one sentence that names the row, the roof and what was
// probed.
class EachRoof : public EachCommand {};
TEST_P(EachRoof, FailsTheRun) {
  const auto& [what, fault] = GetParam();
  const Said said = with(fault, what.arguments);
  std::printf("%-10s %-13s status %d  %s\n", what.name.c_str(), fault, said.status, said.err.substr(0, 140).c_str());
  EXPECT_EQ(said.status, 1) << said.out << said.err;
  EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
  EXPECT_SAYS(said.err, "probed beside");
  EXPECT_SAYS(said.err, what.name == "pipeline"            ? "the roofs probed beside allow"
                        : std::string(fault) == "low_peak" ? "executed GFLOP/s"
                                                           : "GB/s of compulsory traffic");
}
INSTANTIATE_TEST_SUITE_P(Planted, EachRoof,
                         ::testing::Combine(::testing::ValuesIn(asked()), ::testing::Values("low_peak", "low_bandwidth")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

// Wiped memory is NaN, and so may be the answer.
TEST_F(CommandPlanted, AnswersThatAreNanMustBeWrittenToo) {
  NetworkBuilder net("nan", 3, false);
  TensorId x = net.input("x", {1, 16, 12, 12});
  x = net.op("add", "Add", PointwiseNode{PointwiseOp::add}, {x, net.floats("nan", {NAN})}, 16);
  net.output(net.conv("c", x, {.filters = 16, .kernel = 3, .pad = 1}), "y", {1, 16, 12, 12});
  save(net.finish(), "nan.onnx");
  // The second convolution's result comes to lie where that of the addition was.
  NetworkBuilder deep("deep", 3, false);
  x = deep.input("x", {1, 16, 12, 12});
  x = deep.op("add", "Add", PointwiseNode{PointwiseOp::add}, {x, deep.floats("nan", {NAN})}, 16);
  for (const char* name : {"a", "b"}) x = deep.conv(name, x, {.filters = 16, .kernel = 3, .pad = 1});
  deep.output(deep.max_pool("pool", x, 3, 1, 1), "y", {1, 16, 12, 12});
  save(deep.finish(), "deep.onnx");
  for (const std::string model : {"nan.onnx", "deep.onnx"}) {
    const Said right = with("none", "bench --runs 2 --model " + model);
    EXPECT_EQ(right.status, 0) << right.err;
    for (const char* fault : {"nothing", "half", "first_only"}) {
      const Said said = with(fault, "bench --runs 2 --model " + model);
      EXPECT_EQ(said.status, 1) << model << fault << said.out << said.err;
      EXPECT_SAYS(said.err, "Output 'y' of the model is wrong");
    }
  }
}

// What is looked at changes from run to run, and comes again with --seed.
TEST_F(CommandPlanted, SeedsArePrintedAndRepeatable) {
  const auto seed_of = [&](const std::string& more) {
    const std::string out = with("none", std::string("bench") + kConv + kShort + more).out;
    const size_t at = out.find("--seed ");
    return at == std::string::npos ? out : out.substr(at);
  };
  EXPECT_NE(seed_of(""), seed_of(""));
  EXPECT_EQ(seed_of(" --seed 41"), "--seed 41 repeats it\n");
}

// A layer alone is looked at on what it was looked at among others.
TEST_F(CommandPlanted, SeedsOfALayerAreItsOwn) {
  const auto checked = [&](const std::string& layers) {
    const Said said = with("none", "bench --seed 41 --json" + layers + kShort);
    const auto json = nlohmann::json::parse(said.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << said.out << said.err;
    std::vector<std::string> texts;
    for (const auto& row : json["rows"]) texts.push_back(row["checked"]);
    return texts;
  };
  const std::string other = " --conv g1mb1ic8ih12oc24oh12kh3ph1";
  const auto all = checked(other + kConv + kConv), alone = checked(kConv);
  ASSERT_EQ(all.size(), 3u);
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0], all[1]);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(Planted, EachCommand,
                         ::testing::Combine(::testing::ValuesIn(asked()),
                                            ::testing::Values("nothing", "half", "fourth", "inherits", "first_only")),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace sparkle::testing
