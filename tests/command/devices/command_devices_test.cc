// `sparkle devices --why` and --device auto where there is a choice: the functional model of a CUDA device stands for a card.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "networks/zoo.h"

namespace sparkle::testing {
namespace {

class CommandDevices : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    save(*zoo_network("tiny_chain", {}), "net.onnx");
  }
  std::string cache() const { return "export XDG_CACHE_HOME='" + path("cache") + "'; "; }
};

TEST_F(CommandDevices, WhyIsATableOfAllThatAreHere) {
  const Said said = sparkle("devices --why net.onnx", cache());
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "predicted ms");
  EXPECT_SAYS(said.out, "\ncpu ");
  const auto json = nlohmann::json::parse(sparkle("devices --why net.onnx --json", cache()).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_TRUE(json["device"].is_string());
  for (const auto& row : json["rows"]) {
    EXPECT_FALSE(row["why"].get<std::string>().empty()) << row;
    // Mesa's software device is never preferred to the CPU.
    if (row["why"] == "a software device, whose cores are the CPU's") {
      EXPECT_NE(json["device"], row["device"]);
    }
  }
  EXPECT_SAYS(refusal("devices --why net.onnx --device cpu"), "leave out --device and --calibrate");
  EXPECT_SAYS(refusal("devices --why none.onnx"), "none.onnx");
  EXPECT_SAYS(sparkle("serve --help").out, "what is fastest for the model");
}

TEST_F(CommandDevices, AutoIsTheDeviceThatIsPredictedToBeFasterAndRemembered) {
  if (std::string(SPARKLE_CUDA_MODEL).empty()) GTEST_SKIP() << "this build has no functional model of CUDA's devices";
  const std::string card = cache() + "export SPARKLE_CUDA_DRIVER='" SPARKLE_CUDA_MODEL "'; ";
  const auto json = nlohmann::json::parse(sparkle("devices --why net.onnx --json", card).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  const std::string chosen = json["device"];
  const Said first = sparkle("run net.onnx", card);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_SAYS(first.err, "--device auto is " + chosen + ": chosen for this model before");
  // The outputs are those of the device that was chosen.
  const auto a = nlohmann::json::parse(sparkle("run net.onnx --json", card).out, nullptr, false);
  const auto b = nlohmann::json::parse(sparkle("run net.onnx --json --device " + chosen, card).out, nullptr, false);
  EXPECT_EQ(a["outputs"], b["outputs"]);
  // Another cache remembers nothing: it is decided anew, and said why.
  EXPECT_SAYS(sparkle("run net.onnx", card + "export XDG_CACHE_HOME='" + path("other") + "'; ").err, "--device auto is ");
  EXPECT_EQ(sparkle("run net.onnx --device cpu", card).err, "");
}

TEST_F(CommandDevices, SizesThatNobodyToldLeaveItToTheCpu) {
  if (std::string(SPARKLE_CUDA_MODEL).empty()) GTEST_SKIP() << "this build has no functional model of CUDA's devices";
  const std::string card = cache() + "export SPARKLE_CUDA_DRIVER='" SPARKLE_CUDA_MODEL "'; ";
  const std::string open = SPARKLE_SOURCE_DIR "/models/upscale2x.onnx";
  EXPECT_SAYS(sparkle("report '" + open + "'", card).err, "--device auto is cpu: The model leaves sizes");
  EXPECT_SAYS(refusal("devices --why '" + open + "'"), "give them with --shape");
}

}  // namespace
}  // namespace sparkle::testing
