// `sparkle fix` as a person uses it: what a target pads, what it refuses to write over, samples of bytes, the same precision in
// memory.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "graph/test_graphs.h"
#include "onnx/tensor_file.h"
#include "onnx/tensor_proto.h"
#include "run/session_testing.h"

namespace sparkle::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class CommandFix : public Command {
 protected:
  // 3 -> 67 -> 129 channels: sizes that no matrix unit takes.
  std::string odd_network(const std::string& name) const {
    GraphBuilder b;
    const auto conv = [&](TensorId x, int64_t c, int64_t k) {
      ConvOp op;
      op.kernel = {3, 3}, op.pads_begin = op.pads_end = {1, 1};
      return b.op("Conv", op, {x, b.weights({k, c, 3, 3})});
    };
    b.done(conv(conv(b.input({1, 3, 40, 40}), 3, 67), 67, 129));
    return save(b.graph, name);
  }
  std::string fixed(const std::string& arguments) const {
    const Said said = sparkle("fix " + arguments);
    EXPECT_EQ(said.status, 0) << arguments << "\n" << said.err;
    return said.out;
  }
};

TEST_F(CommandFix, PadsForTheUnitsOfTheTarget) {
  const std::string model = odd_network("odd.onnx");
  const auto misaligned = [&](const std::string& path) {
    const json target = json::parse(sparkle("check " + path + " --target a4500 --json").out, nullptr, false)["targets"][0];
    int found = 0;
    for (const json& finding : target["findings"])
      found += finding["code"] == "channels_unaligned" && finding["by_fix"] == true;
    return found;
  };
  EXPECT_GT(misaligned(model), 0);
  // As it is, and in the type that the model has after that.
  EXPECT_SAYS(fixed(model + " -o wide.onnx --target a4500"), "pad_channels");
  EXPECT_EQ(misaligned("wide.onnx"), 0);
  fixed(model + " -o odd16.onnx --target avx512 --precision fp16");
  EXPECT_GT(misaligned("odd16.onnx"), 0);
  EXPECT_SAYS(fixed("odd16.onnx -o wide16.onnx --target a4500"), "pad_channels");
  EXPECT_EQ(misaligned("wide16.onnx"), 0);
  // Vectors take any number.
  EXPECT_FALSE(contains(fixed(model + " -o same.onnx --target avx512"), "pad_channels"));
}

TEST_F(CommandFix, TakesTheNamesOfWhatCheckFinds) {
  const std::string model = odd_network("odd.onnx");
  EXPECT_SAYS(fixed(model + " -o out.onnx --target h200 --only channels_unaligned"), "pad_channels");
  EXPECT_SAYS(fixed(model + " -o out.onnx --target h200 --only batchnorm_apart"), "nothing to mend");
  EXPECT_SAYS(refusal("fix " + model + " -o out.onnx --only depthwise"), "channels_unaligned");
  EXPECT_SAYS(refusal("fix " + model + " -o out.onnx --precision fp16 --keep-wide nobody"), "no layer 'nobody'");
}

// Nor does any other command that writes.
TEST_F(CommandFix, DoesNotWriteOverTheModel) {
  const std::string model = odd_network("odd.onnx"), before = text_of("odd.onnx");
  fs::create_symlink(model, path("link.onnx"));
  for (const char* output : {"odd.onnx", "./odd.onnx", "link.onnx"})
    for (const char* command :
         {"fix odd.onnx --target h200 -o ", "compile odd.onnx -o ", "check odd.onnx --target h200 --html ",
          "report odd.onnx --trace ", "report odd.onnx -o ", "bench --model odd.onnx --output "}) {
      EXPECT_SAYS(refusal(std::string(command) + output), "is the model that is read");
      EXPECT_TRUE(text_of("odd.onnx") == before) << command << output;
    }
}

// Weights of 1e4 behind bytes: sums that 16-bit floats do not hold, unless all samples are zero.
TEST_F(CommandFix, SamplesOfBytesAreNotZero) {
  GraphBuilder b;
  CastOp to_floats;
  const TensorId x = b.op("Cast", to_floats, {b.input({1, 3, 8, 8}, DType::u8)});
  ConvOp op;
  op.kernel = {3, 3};
  b.done(b.op("Conv", op, {x, b.floats({8, 3, 3, 3}, std::vector<float>(8 * 3 * 9, 1e4f))}));
  const Said said = sparkle("fix " + save(b.graph, "bytes.onnx") + " -o out.onnx --precision fp16 --target h200");
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "kept wide:\n  n1");
  EXPECT_FALSE(contains(said.out, "0 .. 0")) << said.out;
}

TEST_F(CommandFix, RunsInAnotherPrecisionAnswerAsTheFixedFile) {
  const std::string model = odd_network("odd.onnx");
  ASSERT_TRUE(write_tensor_pb(path("x.pb"), "x", random_tensor(DType::f32, {1, 3, 40, 40}, 5)).ok());
  for (const std::string precision : {"fp16", "bf16", "int8"}) {
    // Both measure ranges on the same values.
    fixed(model + " x.pb -o narrow.onnx --precision " + precision);
    const Said said = sparkle("run " + model + " x.pb --output in_memory_" + precision + " --precision " + precision);
    EXPECT_EQ(said.status, 0) << said.err;
    EXPECT_EQ(sparkle("run narrow.onnx x.pb --output by_file_" + precision).status, 0);
    int outputs = 0;
    for (const auto& entry : fs::directory_iterator(path("in_memory_" + precision))) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(text_of("in_memory_" + precision + "/" + name) == text_of("by_file_" + precision + "/" + name)) << name;
      ++outputs;
    }
    EXPECT_EQ(outputs, 1);
  }
  // Not because nothing was changed.
  sparkle("run " + model + " x.pb --output as_it_is");
  for (const auto& entry : fs::directory_iterator(path("as_it_is"))) {
    const std::string name = entry.path().filename().string();
    for (const char* precision : {"fp16", "bf16", "int8"})
      EXPECT_FALSE(text_of("as_it_is/" + name) == text_of("by_file_" + std::string(precision) + "/" + name)) << precision;
  }
  EXPECT_EQ(sparkle("run " + model + " --precision int8").status, 0);
  EXPECT_SAYS(refusal("run " + model + " --precision fp12"), "fp16");
}

}  // namespace
}  // namespace sparkle::testing
