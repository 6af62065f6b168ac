// `sparkle run` on a network that enlarges: against a known original it beats bicubic, and the comparison shows the figures.
#include "command/command.h"
#include "vision/pictures/image.h"

namespace sparkle {
namespace {

class CommandUpscale : public testing::Command {
 protected:
  std::string model() const { return "'" + (testing::kSource / "models/upscale2x.onnx").string() + "'"; }
  std::string picture() const { return "'" + (testing::kSource / "models/test_picture.png").string() + "'"; }
};

TEST_F(CommandUpscale, ShrunkFirstItIsComparedWithTheOriginal) {
  const auto said = sparkle("run " + model() + " " + picture() + " --shrink-first --output results");
  ASSERT_EQ(said.status, 0) << said.err;
  double network = 0, bicubic = 0;
  const size_t at = said.out.find("quality");
  ASSERT_NE(at, std::string::npos) << said.out;
  ASSERT_EQ(std::sscanf(said.out.c_str() + at, "quality %lf dB luma PSNR, bicubic %lf dB", &network, &bicubic), 2);
  EXPECT_GT(bicubic, 20);
  EXPECT_GT(network, bicubic + 1);
  const auto original = read_image(testing::kSource / "models/test_picture.png");
  const auto comparison = read_image(path("results/test_picture_comparison.png"));
  const auto enlarged = read_image(path("results/test_picture_upscaled.png"));
  ASSERT_TRUE(original.ok() && comparison.ok() && enlarged.ok());
  EXPECT_EQ(enlarged->width, original->width / 2 * 2);
  // The caption's ink: dark points on the paper above both sides.
  const int half = comparison->width / 2;
  int ink[2] = {0, 0};
  for (int y = 0; y < 18; ++y)
    for (int x = 0; x < comparison->width; ++x) ink[x >= half] += *comparison->at(x, y) < 60;
  EXPECT_GT(ink[0], 100);
  EXPECT_GT(ink[1], 100);
}

TEST_F(CommandUpscale, ComparingWhereThereIsNothingToCompareIsRefused) {
  EXPECT_SAYS(refusal("run " + model() + " " + picture() + " --shrink-first --reference " + picture()),
              "leave --reference out");
  const std::string squeeze = "'" + (testing::kSource / "tests/vectors/network_squeeze/model.onnx").string() + "'";
  EXPECT_SAYS(refusal("run " + squeeze + " --shrink-first"), "enlarge");
}

// The demo takes paths from the folder where it is called: it gets as far as reading them.
TEST_F(CommandUpscale, TheDemoTakesTheCallersPaths) {
  const std::string demo = "'" + (testing::kSource / "scripts/demo").string() + "'";
  EXPECT_EQ(std::system(("cd '" + path("") + "' && " + demo + " missing.png 2>.err").c_str()) >> 8, 2);
  EXPECT_SAYS(text_of(".err"), path("missing.png"));
}

}  // namespace
}  // namespace sparkle
