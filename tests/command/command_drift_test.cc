// `sparkle drift`: the large network in small, fed its own frames in 16 bits beside fp32; what wrong weights look like, and
// what it refuses. With CUDA's functional model the first passes there too.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "networks/video_unet.h"
#include "networks/zoo.h"

namespace sparkle::testing {
namespace {

using nlohmann::json;

class CommandDrift : public Command {
 protected:
  std::string network(const std::string& name, VideoUnetOptions options) const {
    const auto graph = video_unet(options);
    EXPECT_TRUE(graph.ok()) << graph.error().message;
    const Status written = write_onnx(*graph, path(name), Weights::beside);
    EXPECT_TRUE(written.ok()) << written.error().message;
    return name;
  }
  json drift(const std::string& arguments, int status, const std::string& before = "") const {
    const Said said = sparkle("drift " + arguments + " --json", before);
    EXPECT_EQ(said.status, status) << said.err;
    json all = json::parse(said.out, nullptr, false);
    EXPECT_TRUE(all.is_object()) << said.out;
    return all;
  }
};

constexpr int64_t kBatch = 2, kBase = 16, kSize = 32;
// A pass errs by 0.0003 in fp16 and by 0.003 in bf16; what it hands to the next may not grow.
constexpr double kMostOfFp16 = 0.001, kMostOfBf16 = 0.008, kMostGrowth = 2;

TEST_F(CommandDrift, SixteenBitsStayNearOverManyPasses) {
  const std::string wide = network("wide", {kBatch, kBase, kSize});
  const std::string f16 = network("f16", {kBatch, kBase, kSize, DType::f16});
  const std::string bf16 = network("bf16", {kBatch, kBase, kSize, DType::bf16});
  const json all = drift(wide + " " + f16 + " " + bf16 + " --passes 25 --noise 0.6", 0);
  ASSERT_EQ(all["rows"].size(), 2u);
  for (const json& row : all["rows"]) {
    const bool fp16 = row["model"] == "f16";
    ASSERT_EQ(row["errors"].size(), 25u);
    for (const json& error : row["errors"]) {
      EXPECT_LT(error.get<double>(), fp16 ? kMostOfFp16 : kMostOfBf16) << row;
      EXPECT_LT(error.get<double>(), kMostGrowth * row["errors"][0].get<double>()) << row;
      EXPECT_GT(error.get<double>(), fp16 ? 5e-5 : 5e-4) << row;  // it was computed in fewer bits
    }
  }
  const json same = drift(wide + " " + wide + " --passes 2", 0);
  EXPECT_EQ(same["rows"][0]["errors"], json({0.0, 0.0}));
}

TEST_F(CommandDrift, OtherWeightsAreFarAway) {
  const std::string wide = network("wide", {1, kBase, 16}), other = network("other", {1, kBase, 16, DType::f32, 2});
  const Said said = sparkle("drift " + wide + " " + other + " --passes 2 --most 0.1");
  EXPECT_EQ(said.status, 1);
  EXPECT_SAYS(said.err, "'other' is ");
  EXPECT_SAYS(said.err, "away in pass 1, and --most allows 1.000e-01.");
  EXPECT_SAYS(said.out, "\n   2  ");
}

TEST_F(CommandDrift, SaysWhatCannotBeFedBack) {
  const std::string wide = network("wide", {1, kBase, 16});
  EXPECT_SAYS(refusal("drift " + wide), "Give the model that the others should agree with");
  EXPECT_SAYS(refusal("drift " + wide + " missing.onnx"), "missing.onnx");
  const std::string chain = save(*zoo_network("tiny_chain"), "chain");
  EXPECT_SAYS(refusal("drift '" + chain + "' " + wide), "there is nothing to feed back");
  const std::string large = network("large", {1, kBase, 32});
  EXPECT_SAYS(refusal("drift " + wide + " " + large + " --passes 1"), "cannot be compared");
}

#ifdef SPARKLE_CUDA_MODEL
TEST_F(CommandDrift, CudaIsAsNearInSixteenBits) {
  const std::string wide = network("wide", {1, kBase, 16}), narrow = network("bf16", {1, kBase, 16, DType::bf16});
  const std::string before = "SPARKLE_CUDA_DRIVER='" SPARKLE_CUDA_MODEL "' XDG_CACHE_HOME=$PWD";
  const json all = drift(wide + " " + narrow + " --passes 2 --noise 0.6 --device cuda --fallback forbid", 0, before);
  for (const json& error : all["rows"][0]["errors"]) {
    EXPECT_LT(error.get<double>(), kMostOfBf16);
    EXPECT_GT(error.get<double>(), 5e-4);
  }
}
#endif

}  // namespace
}  // namespace sparkle::testing
