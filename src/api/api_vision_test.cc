// Answers from pictures as a program outside sees them: sparkle/vision.hpp over the demo network and the shared models.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sparkle/vision.hpp>

#include "api_testing.h"

namespace {

namespace fs = std::filesystem;
namespace vision = sparkle::vision;
using sparkle::testing::kModel, sparkle::testing::status_of;

const std::string kPicture = SPARKLE_SOURCE_DIR "/models/test_picture.png";
const fs::path kData = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data";

sparkle::Tensor pixels(int64_t height, int64_t width, int64_t channels) {
  sparkle::Tensor t(sparkle::Type::u8, {height, width, channels});
  for (int64_t i = 0; i < t.elements(); ++i) t.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7 % 251);
  return t;
}

std::string sentence_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const sparkle::Exception& e) {
    return e.what();
  }
  return "";
}

TEST(Vision, PicturesComeFromFilesBytesAndPixels) {
  const vision::Picture read(kPicture);
  EXPECT_GT(read.width(), 100);
  const sparkle::Tensor own = read.pixels();
  ASSERT_EQ(own.shape(), (sparkle::Shape{read.height(), read.width(), 3}));
  const vision::Picture copy(own);
  EXPECT_EQ(std::memcmp(copy.pixels().data(), own.data(), own.bytes()), 0);
  const vision::Picture alpha(pixels(2, 3, 4)), grey(pixels(2, 3, 1));
  EXPECT_EQ(alpha.pixels().shape(), (sparkle::Shape{2, 3, 3}));
  EXPECT_EQ(grey.pixels().shape(), (sparkle::Shape{2, 3, 1}));
  sparkle::Tensor wide(sparkle::Type::u16, {1, 2});
  wide.data<uint16_t>()[0] = 65535;
  EXPECT_EQ(vision::Picture(wide).pixels().data<uint8_t>()[0], 255);
  const std::string bmp = "BM";
  EXPECT_EQ(status_of([&] { vision::Picture(bmp.data(), bmp.size()); }), SPARKLE_BAD_FORMAT);
}

TEST(Vision, WhatIsNoPictureIsOneSentence) {
  EXPECT_EQ(status_of([] { vision::Picture("/no/such.png"); }), SPARKLE_FILE_UNREADABLE);
  EXPECT_EQ(status_of([] { vision::Picture("text", 4); }), SPARKLE_BAD_FORMAT);
  EXPECT_NE(sentence_of([] { vision::Picture("text", 4); }).find("'the bytes given' is not a picture"), std::string::npos);
  EXPECT_NE(sentence_of([] { vision::Picture(pixels(2, 2, 5)); }).find("u8 2x2x5 was given"), std::string::npos);
  EXPECT_EQ(status_of([] { vision::Picture(sparkle::Tensor(sparkle::Type::f32, {2, 2, 3})); }), SPARKLE_BAD_INPUT);
  EXPECT_EQ(status_of([] { vision::Picture(sparkle::Tensor(sparkle::Type::u8, {0, 2, 3})); }), SPARKLE_BAD_FORMAT);
  sparkle_picture* picture = nullptr;
  sparkle_tensor empty{};
  empty.type = SPARKLE_U8, empty.rank = 2, empty.shape[0] = empty.shape[1] = 2;
  EXPECT_EQ(sparkle_picture_from_pixels(&empty, &picture), SPARKLE_BAD_USAGE);  // data is NULL
  EXPECT_EQ(sparkle_picture_read(nullptr, &picture), SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_picture_width(nullptr), 0);
}

TEST(Vision, TheDemoNetworkEnlarges) {
  const sparkle::Session session(sparkle::Device("cpu", 2), kModel);
  const vision::Task task(session);
  EXPECT_NE(task.describe().find("\"task\":null"), std::string::npos) << task.describe();
  const vision::Picture small(pixels(40, 60, 3));
  const vision::Answer answer = task(small);
  EXPECT_EQ(answer.task(), "upscale");
  EXPECT_NE(answer.why().find("2 times as large"), std::string::npos) << answer.why();
  EXPECT_NE(task.describe().find("\"task\":\"upscale\""), std::string::npos) << task.describe();
  const sparkle::Tensor larger = answer.tensor();
  ASSERT_EQ(larger.shape(), (sparkle::Shape{80, 120, 3}));
  EXPECT_EQ(std::memcmp(answer.draw(small).pixels().data(), larger.data(), larger.bytes()), 0);
  EXPECT_NE(answer.json().find("\"width\":120"), std::string::npos) << answer.json();
  EXPECT_TRUE(answer.boxes().empty() && answer.classes().empty());

  // In tiles, and from a run of the caller's.
  vision::TaskOptions cut;
  cut.tile = 32;
  const sparkle::Tensor tiled = vision::Task(session, cut)(small).tensor();
  ASSERT_EQ(tiled.bytes(), larger.bytes());
  for (size_t i = 0; i < tiled.bytes(); ++i)
    ASSERT_LE(std::abs(tiled.data<uint8_t>()[i] - larger.data<uint8_t>()[i]), 1) << i;  // sums in another order, then rounded
  const vision::Answer own = task.answer(small, session.run({task.preprocess(small)}));
  EXPECT_EQ(std::memcmp(own.tensor().data(), larger.data(), larger.bytes()), 0);
  EXPECT_EQ(status_of([&] { task.answer(small, {}); }), SPARKLE_BAD_USAGE);
}

TEST(Vision, OptionsThatDoNotFitAreNamed) {
  const sparkle::Session session(sparkle::Device("cpu", 1), kModel);
  const auto refused = [&](auto&& change) {
    vision::TaskOptions options;
    change(options);
    return sentence_of([&] { vision::Task(session, options); });
  };
  EXPECT_NE(refused([](auto& o) { o.task = "guess"; }).find("There is no task 'guess'"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.preset = "none"; }).find("There is no preset 'none'"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.fit = "wide"; }).find("fit 'wide' is not understood"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.color = "red"; }).find("color 'red' is not understood"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.mean = "1,2"; }).find("mean '1,2' is not understood"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.pad_value = "x"; }).find("pad_value 'x' is not understood"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.labels = "/no/such.txt"; }).find("/no/such.txt"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.top = -1; }).find("top is how many"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.threshold = 2; }).find("threshold is a score"), std::string::npos);
  EXPECT_NE(refused([](auto& o) { o.labels = "a", o.names = {"b"}; }).find("give one of both"), std::string::npos);
  sparkle_vision_options wrong{};
  wrong.size = 3;
  sparkle_vision* opened = nullptr;
  EXPECT_EQ(sparkle_vision_open(session.c(), &wrong, &opened), SPARKLE_BAD_USAGE);
  EXPECT_EQ(sparkle_vision_open(nullptr, nullptr, &opened), SPARKLE_BAD_USAGE);
  sparkle_vision_release(nullptr), sparkle_picture_release(nullptr), sparkle_answer_release(nullptr);
}

TEST(Vision, AnswersOfTheCallersOwnAreDrawn) {
  const vision::Picture black(sparkle::Tensor(sparkle::Type::u8, {40, 40, 3}));
  const vision::Answer boxes(std::vector<vision::Box>{{4, 4, 30, 30, 0.9f, 3, "cat"}, {1, 1, 9, 9, 0.5f, 1, ""}});
  EXPECT_EQ(boxes.task(), "detect");
  EXPECT_EQ(boxes.boxes()[0].label, "cat");
  EXPECT_GT(boxes.draw(black).height(), 40);  // the legend
  EXPECT_EQ(status_of([] { vision::Answer(std::vector<vision::Box>{{0, 0, 1, 1, 1, 70000, ""}}); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([] { vision::Answer(std::vector<vision::Box>{{NAN, 0, 1, 1, 1, 0, ""}}); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { (void)boxes.tensor(); }), SPARKLE_BAD_USAGE);

  sparkle::Tensor mask(sparkle::Type::u8, {40, 40});
  mask.data<uint8_t>()[0] = 2;
  const vision::Answer segment("segment", mask, {"rest", "dog", "cat"});
  ASSERT_EQ(segment.classes().size(), 2u);
  EXPECT_EQ(segment.classes()[1].label, "cat");
  EXPECT_DOUBLE_EQ(segment.classes()[1].probability, 1.0 / 1600);
  EXPECT_GT(segment.draw(black).height(), 40);
  EXPECT_EQ(std::memcmp(segment.tensor().data(), mask.data(), mask.bytes()), 0);
  EXPECT_EQ(status_of([&] { segment.draw(vision::Picture(pixels(3, 3, 3))); }), SPARKLE_BAD_USAGE);

  sparkle::Tensor depth(sparkle::Type::f32, {1, 2});
  depth.data<float>()[1] = 5;
  const sparkle::Tensor grey = vision::Answer("depth", depth).draw(black).pixels();
  ASSERT_EQ(grey.shape(), (sparkle::Shape{1, 2, 1}));
  EXPECT_EQ(grey.data<uint8_t>()[0], 0);
  EXPECT_EQ(grey.data<uint8_t>()[1], 255);
  EXPECT_EQ(status_of([&] { vision::Answer("embed", depth); }), SPARKLE_BAD_USAGE);
  EXPECT_EQ(status_of([&] { vision::Answer("segment", depth); }), SPARKLE_BAD_USAGE);
}

sparkle::Session shared_model(const std::string& name) {
  return sparkle::Session(sparkle::Device("cpu", 2), (kData / "models" / name / (name + ".onnx")).string());
}

TEST(Vision, SharedModelsAnswer) {
  if (!fs::exists(kData / "models")) GTEST_SKIP() << "../shared/data is not here";
  vision::TaskOptions coco;
  coco.labels = (kData / "labels/coco_80.txt").string();
  const sparkle::Session yolox = shared_model("yolox-nano");
  const vision::Task detect(yolox, coco);
  EXPECT_NE(detect.describe().find("\"task\":\"detect\""), std::string::npos) << detect.describe();  // before any picture
  const vision::Picture cat((kData / "images/cat_720p.jpg").string());
  const auto boxes = detect(cat).boxes();
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].label, "cat");
  EXPECT_NEAR(boxes[0].score, 0.797, 0.01);
  EXPECT_NEAR(boxes[0].x1, 308.5 / 416 * 1280, 3.1);
  coco.threshold = 0.999f;
  EXPECT_TRUE(vision::Task(yolox, coco)(cat).boxes().empty());

  vision::TaskOptions names;
  names.labels = (kData / "labels/imagenet_synset_words.txt").string(), names.top = 2;
  const auto classes = vision::Task(shared_model("squeezenet1.1"), names)(cat).classes();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[0].index, 285);
  EXPECT_EQ(classes[0].label, "Egyptian cat");
  names.labels.clear(), names.names = {"cat"};
  EXPECT_NE(sentence_of([&] { vision::Task(shared_model("squeezenet1.1"), names); }).find("has 1000 classes"),
            std::string::npos);
  EXPECT_NE(sentence_of([&] { vision::Task(shared_model("mnist-diffusion-vit")); }).find("has one input"), std::string::npos);
}

}  // namespace
