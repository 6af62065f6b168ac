// `sparkle compile` at a shell: run, bench, explain and verify take its file like the model, with the same numbers, and
// refused with one sentence where it does not fit.
#include <fstream>
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "graph/test_graphs.h"
#include "networks/zoo.h"

namespace sparkle::testing {
namespace {

class CommandCompile : public Command {
 protected:
  std::string chain() const { return save(*zoo_network("tiny_residual", {}), "chain.onnx"); }
  std::string outputs(const std::string& arguments) const {
    const Said said = sparkle("run " + arguments + " --json");
    EXPECT_EQ(said.status, 0) << said.err;
    return said.status == 0 ? nlohmann::json::parse(said.out)["outputs"].dump() : "";
  }
};

TEST_F(CommandCompile, CommandsTakeItsFileLikeTheModel) {
  chain();
  const Said compiled = sparkle("compile chain.onnx -o chain.sparkle");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_SAYS(compiled.out, "written  chain.sparkle");
  EXPECT_SAYS(compiled.out, "packed weights");
  EXPECT_EQ(outputs("chain.sparkle"), outputs("chain.onnx"));
  EXPECT_EQ(sparkle("explain --plan chain.sparkle").out, sparkle("explain --plan chain.onnx").out);
  EXPECT_SAYS(sparkle("bench --model chain.sparkle --runs 2").out, "first answer");
  const Said json = sparkle("compile chain.onnx -o again.sparkle --json");
  ASSERT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["written"], "again.sparkle");
  EXPECT_EQ(text_of("again.sparkle"), text_of("chain.sparkle"));  // the same model gives the same file
}

// What it was compiled with belongs to it: nothing need be said again when it is opened.
TEST_F(CommandCompile, FusionIsKept) {
  save(*zoo_network("tiny_depthwise", {}), "net.onnx");
  const auto plan = [&](const std::string& arguments) { return sparkle("explain --plan " + arguments).out; };
  for (const std::string fusion : {"none", "inverted"}) {
    ASSERT_EQ(sparkle("compile net.onnx -o net.sparkle --fusion " + fusion).status, 0);
    EXPECT_EQ(outputs("net.sparkle"), outputs("net.onnx --fusion " + fusion)) << fusion;
    EXPECT_TRUE(plan("net.sparkle") == plan("net.onnx --fusion " + fusion)) << fusion;
    EXPECT_EQ(contains(plan("net.sparkle"), "family=inverted"), fusion == "inverted");
    // Saying it again changes nothing, saying otherwise is refused.
    EXPECT_EQ(outputs("net.sparkle --fusion " + fusion), outputs("net.sparkle")) << fusion;
    const std::string other = fusion == "none" ? "inverted" : "none";
    for (const std::string command : {"run", "explain", "bench --runs 2 --model"})
      EXPECT_SAYS(refusal(command + " net.sparkle --fusion " + other),
                  "was compiled with the fusion '" + fusion + "', not '" + other + "'");
  }
  ASSERT_EQ(sparkle("compile net.onnx -o net.sparkle").status, 0);
  EXPECT_SAYS(refusal("run net.sparkle --fusion none"), "was compiled with the fusion chosen by cost, not 'none'");
}

TEST_F(CommandCompile, OpenSizesAreFixed) {
  const std::string model = (kSource / "models/upscale2x.onnx").string();
  EXPECT_SAYS(refusal("compile " + model + " -o x.sparkle"), "leaves sizes of input 'image' (f32 Nx3xHxW) open");
  ASSERT_EQ(sparkle("compile " + model + " -o x.sparkle --shape image=1x3x20x24").status, 0);
  EXPECT_EQ(outputs("x.sparkle"), outputs(model + " --shape image=1x3x20x24"));
  EXPECT_SAYS(refusal("run x.sparkle --shape image=1x3x24x24"), "compile the model for this shape");
  EXPECT_SAYS(refusal("explain x.sparkle --shape image=1x3x24x24"), "is compiled for its shapes");
}

TEST_F(CommandCompile, RefusesWhatDiffers) {
  chain();
  ASSERT_EQ(sparkle("compile chain.onnx -o chain.sparkle --threads 1").status, 0);
  EXPECT_SAYS(refusal("run chain.sparkle --threads 3"), "was compiled for 1 thread, here are 3 threads");
  EXPECT_SAYS(refusal("run chain.sparkle --threads 1 --algorithm gemm"), "was compiled with the algorithm chosen by cost");
  EXPECT_SAYS(refusal("explain chain.sparkle --device " + (kSource / "devices/h200.json").string()), "was compiled for");
  EXPECT_SAYS(refusal("compile chain.sparkle -o twice.sparkle"), "is a compiled model, made for one machine");
  EXPECT_SAYS(refusal("compile chain.onnx -o no/such/folder.sparkle"), "cannot be written");
  const std::string whole = text_of("chain.sparkle");
  write("short.sparkle", whole.substr(0, whole.size() / 2));
  EXPECT_SAYS(refusal("run short.sparkle --threads 1"), "is cut short");
  std::string changed = whole;
  const size_t middle = (4096 + whole.find("algorithm=")) / 2;  // of the weights; longer than the lines between constants
  for (size_t i = 0; i < 192; ++i) changed[middle + i] = static_cast<char>(changed[middle + i] ^ 1);
  write("changed.sparkle", changed);
  EXPECT_EQ(sparkle("run changed.sparkle --threads 1").status, 0);                              // weights are checked by verify
  EXPECT_SAYS(sparkle("verify chain.sparkle --threads 1").out, "there is no test_data_set_*");  // its weights are whole
  const Said verified = sparkle("verify changed.sparkle --threads 1");
  EXPECT_EQ(verified.status, 1);
  EXPECT_SAYS(verified.out, "are not what was written");
}

TEST_F(CommandCompile, VerifyRunsACompiledModel) {
  const std::filesystem::path vector = kSource / "tests/vectors/qlinearconv_depthwise";
  std::filesystem::copy(vector, folder_ / "test", std::filesystem::copy_options::recursive);
  ASSERT_EQ(sparkle("compile test/model.onnx -o test/model.sparkle").status, 0);
  const Said verified = sparkle("verify test/model.sparkle test");
  EXPECT_EQ(verified.status, 0) << verified.out;
  EXPECT_SAYS(verified.out, "2 passed, 0 failed");
}

TEST_F(CommandCompile, MemoryBudgetsAreMetAndTold) {
  GraphBuilder b;
  TensorId x = b.input({1, 64, 56, 56});
  ConvOp conv;
  conv.pads_begin = conv.pads_end = {1, 1};
  for (int i = 0; i < 4; ++i) x = b.op("Conv", conv, {x, b.weights({64, 64, 3, 3}, 0.01f * static_cast<float>(i))});
  const std::string model = save(b.done(x), "convs.onnx");
  const auto free = nlohmann::json::parse(sparkle("run " + model + " --json").out);
  ASSERT_EQ(free["budget_steps"], 0);
  const int64_t peak = free["peak_bytes"].get<int64_t>();
  const Said tight = sparkle("run " + model + " --json --memory-budget " + std::to_string(peak - 1));
  ASSERT_EQ(tight.status, 0) << tight.err;
  const auto fitting = nlohmann::json::parse(tight.out);
  EXPECT_LT(fitting["peak_bytes"].get<int64_t>(), peak);
  EXPECT_GT(fitting["budget_steps"].get<int>(), 0);
  EXPECT_GE(fitting["budget_lost_ms"].get<double>(), 0);
  EXPECT_SAYS(sparkle("run " + model + " --memory-budget " + std::to_string(peak - 1)).out, "for the memory budget");
  // Without kernels the planner foresees somewhat less: no scratch that they add, no original weights.
  const std::string less = " --memory-budget " + std::to_string(peak * 3 / 4);
  EXPECT_SAYS(sparkle("explain --candidates " + model + less).out, "over_memory_budget");
  const Said compiled = sparkle("compile " + model + " -o convs.sparkle" + less);
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_SAYS(compiled.out, "for the memory budget");
  EXPECT_EQ(sparkle("run convs.sparkle").status, 0);
}

}  // namespace
}  // namespace sparkle::testing
