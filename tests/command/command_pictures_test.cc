// `sparkle run` on a picture: a network that enlarges beats bicubic against a known original, and the comparison shows the
// figures; detectors, and what takes one picture without a batch, answer as tasks do.
#include <nlohmann/json.hpp>

#include "command/command.h"
#include "graph/test_graphs.h"
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

// Networks that hold their answer, so that its figures are known; they take pictures of 16x16.
class CommandPicture : public testing::Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    write("a.ppm", "P6\n16 16\n255\n" + std::string(16 * 16 * 3, '\x80'));
  }
  // Outputs that are `values` + 0 * the picture's mean.
  void save_constant(const std::string& name, const Dims& input,
                     const std::vector<std::pair<std::string, HostTensor>>& outputs) {
    testing::GraphBuilder b;
    TensorId x = b.input(input);
    const TensorId none = b.pointwise(PointwiseOp::mul, {x, b.floats({1}, {0})});
    const TensorId zero = b.op("ReduceMax", ReduceOp{ReduceKind::max, {}, false}, {none});
    std::vector<TensorId> ids;
    for (const auto& [called, values] : outputs) {
      const TensorId held = b.graph.add_constant("c_" + called, values);
      ids.push_back(b.pointwise(PointwiseOp::add, {held, zero}));
      b.graph.tensor(ids.back()).name = called;
    }
    b.graph.outputs = ids;
    save(b.graph, name);
  }
  static HostTensor filled(const Dims& shape, float value) {
    HostTensor t = HostTensor::zeros(DType::f32, shape);
    std::fill(t.data<float>(), t.data<float>() + t.elements(), value);
    return t;
  }
};

TEST_F(CommandPicture, DetrIsADetectorOfItsOwn) {
  HostTensor logits = filled({1, 100, 6}, -9), boxes = filled({1, 100, 4}, 0.25f);
  logits.data<float>()[6 * 3 + 2] = 9;
  save_constant("detr.onnx", {1, 3, 16, 16}, {{"logits", logits}, {"pred_boxes", boxes}});
  const auto said = sparkle("run detr.onnx a.ppm");
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "detr, RGB, stretched to 16x16 (bilinear), /255, minus (0.485, 0.456, 0.406)");
  EXPECT_SAYS(said.out,
              "form     DETR (softmax over the classes, the last of them 'no object'; boxes as centre and size in 0..1)");
  EXPECT_SAYS(said.out, "  100.00 %      2.0     2.0     6.0     6.0  class 2\n");
  EXPECT_FALSE(testing::contains(said.out, "output   '"));  // the answer alone
  const auto json = nlohmann::json::parse(sparkle("run detr.onnx a.ppm --json").out, nullptr, false);
  EXPECT_EQ(json["answer"]["boxes"].size(), 1u);
  EXPECT_EQ(json["outputs"].size(), 2u);
  // Under other names the same is taken for an SSD, which it cannot be.
  save_constant("plain.onnx", {1, 3, 16, 16}, {{"s", logits}, {"b", boxes}});
  EXPECT_SAYS(refusal("run plain.onnx a.ppm"), "Read as SSD");
  EXPECT_SAYS(refusal("run plain.onnx a.ppm"), "scores should lie in 0..1, and they are -9 to 9; give the preset detr");
  EXPECT_SAYS(sparkle("run plain.onnx a.ppm --preset detr").out, "  100.00 %      2.0     2.0     6.0     6.0  class 2\n");
  write("four.txt", "a\nb\nc\nd\n"), write("five.txt", "a\nb\nc\nd\ne\n");
  EXPECT_SAYS(refusal("run detr.onnx a.ppm --labels four.txt"), "The labels are 4 lines, but output 'logits'");
  EXPECT_SAYS(sparkle("run detr.onnx a.ppm --labels five.txt").out, "6.0  c\n");
}

TEST_F(CommandPicture, LabelsOfNobodyKnowsWhatAskForTheTask) {
  save_constant("odd.onnx", {1, 3, 16, 16}, {{"a", filled({1, 9, 40}, 0.f)}, {"b", filled({1, 4, 3, 5}, 0.f)}});
  write("two.txt", "a\nb\n");
  const std::string said = refusal("run odd.onnx a.ppm --labels two.txt");
  EXPECT_SAYS(said, "no output ('a' 1x9x40, 'b' 1x4x3x5) is a row of classes; give a picture and the task");
  EXPECT_EQ(sparkle("run odd.onnx a.ppm").status, 0);
}

TEST_F(CommandPicture, AnAnswerIsPrintedOnce) {
  save_constant("classes.onnx", {1, 3, 16, 16}, {{"p", HostTensor::of<float>(DType::f32, {1, 3}, {0.1f, 0.2f, 0.7f})}});
  const auto times = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(times(sparkle("run classes.onnx a.ppm --task classify").out, "70.00 %"), 1);
  EXPECT_EQ(times(sparkle("run classes.onnx a.ppm").out, "70.00 %"), 1);
  save_constant("embed.onnx", {1, 3, 16, 16}, {{"embedding", filled({1, 128}, 0.5f)}});
  const auto said = sparkle("run embed.onnx a.ppm").out;
  EXPECT_SAYS(said, "128 numbers of length");
  EXPECT_FALSE(testing::contains(said, "classes")) << said;
}

TEST_F(CommandPicture, WithoutAnAxisForSeveral) {
  const std::vector<std::pair<std::string, HostTensor>> outputs = {
      {"boxes", HostTensor::of<float>(DType::f32, {2, 4}, {1, 2, 9, 12, 3, 4, 5, 16})}, {"scores", filled({2}, 0.75f)}};
  for (const Dims& shape : {Dims{3, 16, 16}, Dims{16, 16, 3}}) {
    save_constant("one.onnx", shape, outputs);
    const auto said = sparkle("run one.onnx a.ppm --task embed --preset torchvision");
    ASSERT_EQ(said.status, 0) << said.err;
    EXPECT_SAYS(said.out, shape[0] == 3 ? "stretched to 16x16 (bilinear), /255, CHW" : "/255, HWC");
    const auto many = sparkle("run one.onnx a.ppm a.ppm a.ppm --task embed --preset torchvision");
    ASSERT_EQ(many.status, 0) << many.err;
    EXPECT_EQ(std::count(many.out.begin(), many.out.end(), '\n'), 3);
    EXPECT_SAYS(many.out, "\"embedding\":[1.0,2.0,9.0,12.0,3.0,4.0,5.0,16.0]");
    EXPECT_EQ(sparkle("run one.onnx a.ppm a.ppm --batch 2").status, 2);
  }
}

// Several pictures and a folder: what is drawn of each, named after it and never over another's, beside the lines.
TEST_F(CommandPicture, SeveralAreDrawnIntoAFolder) {
  HostTensor rows = filled({1, 10, 6}, 0);
  const float box[] = {2, 3, 9, 12, 0.75f, 1};
  std::copy_n(box, 6, rows.data<float>());
  save_constant("rows.onnx", {1, 3, 16, 16}, {{"output0", rows}});
  for (const char* folder : {"one", "two"}) std::filesystem::create_directory(folder_ / folder);
  for (const char* name : {"one/a.ppm", "two/a.ppm", "two/a_2.ppm"}) write(name, text_of("a.ppm"));
  const std::string words = "run rows.onnx a.ppm one two --output drawn";
  const auto said = sparkle(words);
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_SAYS(said.out, "4 items answered");
  const auto alone = sparkle("run rows.onnx a.ppm --output alone");
  ASSERT_EQ(alone.status, 0) << alone.err;
  const std::string picture = text_of("alone/a_detect.png");
  ASSERT_FALSE(picture.empty());
  for (const char* name : {"a", "a_2", "a_3", "a_4"})  // two/a_2.ppm keeps its name
    EXPECT_EQ(text_of("drawn/" + std::string(name) + "_detect.png") == picture, true) << name;
  std::istringstream lines(text_of("drawn/answers.jsonl"));
  std::vector<std::string> written;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    EXPECT_EQ(json["answer"]["boxes"].size(), 1u) << line;
    written.push_back(json["answer"]["written"][0]);
  }
  const std::vector<std::string> want = {"drawn/a_detect.png", "drawn/a_3_detect.png", "drawn/a_4_detect.png",
                                         "drawn/a_2_detect.png"};
  EXPECT_EQ(written, want);
  EXPECT_SAYS(sparkle(words).out, "4 had been before");
  EXPECT_SAYS(refusal("run rows.onnx a.ppm - --output other"), "Standard input is read once");
  EXPECT_SAYS(refusal("run rows.onnx a.ppm one --task embed --output other"), "a folder is for pictures in files");
  write("file", "");
  EXPECT_SAYS(refusal("run rows.onnx a.ppm one --output file/folder"), "The folder 'file/folder' cannot be made");
  // Masks, depths and larger pictures as well.
  save_constant("mask.onnx", {1, 3, 16, 16}, {{"y", filled({1, 21, 16, 16}, 0.5f)}});
  save_constant("depth.onnx", {1, 3, 16, 16}, {{"depth", filled({1, 1, 16, 16}, 0.5f)}});
  save_constant("large.onnx", {1, 3, 16, 16}, {{"y", filled({1, 3, 32, 32}, 0.5f)}});
  for (const char* model : {"mask", "depth", "large"}) {
    const auto more = sparkle("run " + std::string(model) + ".onnx one two --output " + model);
    EXPECT_EQ(more.status, 0) << more.err;
  }
  for (const char* name : {"mask/a_segment.png", "mask/a_mask.png", "mask/a_3_mask.png", "depth/a_3_depth.png",
                           "large/a_upscale.png", "large/a_2_upscale.png"})
    EXPECT_TRUE(std::filesystem::is_regular_file(folder_ / name)) << name;
}

// Who has read enough ends the program, which says nothing about it.
TEST_F(CommandPicture, AReaderThatLeavesIsNoError) {
  save_constant("embed.onnx", {1, 3, 16, 16}, {{"embedding", filled({1, 4000}, 0.5f)}});
  for (int i = 0; i < 40; ++i) write("many_" + std::to_string(100 + i) + ".ppm", text_of("a.ppm"));
  const auto said = run("/bin/sh", "-c '" SPARKLE_COMMAND " run embed.onnx many_*.ppm | head -c 50'", "");
  EXPECT_EQ(said.out.size(), 50u);
  EXPECT_EQ(said.err, "");
}

}  // namespace
}  // namespace sparkle
