// Detectors that name each object once - DETR, RT-DETR, YOLOv10 -, values that cannot be of the form that was taken, and inputs
// of one picture without a batch; on small made-up outputs, with boxes computed by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "vision/tasks/answer.h"
#include "vision/tasks/choose_preprocess.h"
#include "vision/tasks/detection_form.h"

namespace sparkle {
namespace {

constexpr int64_t kQueries = 7;

// Made for a picture of 1280x640 that was stretched to 64x64.
Result<Answer> found_in(const std::string& preset, const std::vector<std::string>& names,
                        const std::vector<HostTensor>& outputs, int labels = 0) {
  Preprocess p = *preprocess_preset(preset);
  p.width = p.height = 64, p.fit = PictureFit::stretch;
  const Image picture = Image::filled(1280, 640, 1, 0);
  AnswerOptions options;
  options.detect.names = labels;
  return make_answer(Task::detect, names, outputs, p, rows_of(picture), options);
}

// Logits of -6, of query 2 with 4 for the class `best`; its box lies about the middle, the others are small.
std::vector<HostTensor> queries(int64_t classes, int64_t best, int64_t count = kQueries) {
  HostTensor logits = HostTensor::zeros(DType::f32, {1, count, classes}), boxes = HostTensor::zeros(DType::f32, {1, count, 4});
  std::fill(logits.data<float>(), logits.data<float>() + logits.elements(), -6.f);
  logits.data<float>()[2 * classes + best] = 4;
  for (int64_t i = 0; i < 4 * count; ++i) boxes.data<float>()[i] = 0.1f;
  const float box[] = {0.5f, 0.25f, 0.25f, 0.125f};
  std::copy(box, box + 4, boxes.data<float>() + 8);
  return {logits, boxes};
}

void expect_box(const Answer& answer, int label, double score) {
  ASSERT_EQ(answer.boxes.size(), 1u) << answer.form;
  const FoundBox& b = answer.boxes[0];
  EXPECT_EQ(b.label, label);
  EXPECT_NEAR(b.score, score, 1e-5) << answer.form;
  EXPECT_NEAR(b.x0, (0.5 - 0.125) * 1280, 1e-2);
  EXPECT_NEAR(b.x1, (0.5 + 0.125) * 1280, 1e-2);
  EXPECT_NEAR(b.y0, (0.25 - 0.0625) * 640, 1e-2);
  EXPECT_NEAR(b.y1, (0.25 + 0.0625) * 640, 1e-2);
}

TEST(DetectQueries, EachClassBySigmoidOrAllBySoftmax) {
  const double sigmoid = 1 / (1 + std::exp(-4.0));
  const auto softmax = [](int classes) { return 1 / (1 + (classes - 1) * std::exp(-10.0)); };
  const std::vector<std::string> names = {"logits", "pred_boxes"};
  const struct {
    const char* preset;
    int classes, labels;
    int64_t count;
    bool shared;
  } cases[] = {
      {"rtdetr", 80, 0, kQueries, false}, {"rtdetr", 92, 0, kQueries, false},    {"detr", 92, 0, kQueries, true},
      {"detr", 5, 0, kQueries, true},     {"detr", 91, 0, kQueries, false},      {"detr", 5, 5, kQueries, false},
      {"detr", 5, 4, kQueries, true},     {"imagenet", 92, 0, kQueries, true},   {"imagenet", 5, 0, 100, true},
      {"imagenet", 5, 4, kQueries, true}, {"imagenet", 80, 80, kQueries, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.preset + (" " + std::to_string(c.classes)) + " " + std::to_string(c.labels));
    const auto answer = found_in(c.preset, names, queries(c.classes, 3, c.count), c.labels);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->form.find("'no object'") != std::string::npos, c.shared) << answer->form;
    expect_box(*answer, 3, c.shared ? softmax(c.classes) : sigmoid);
    EXPECT_EQ(to_json(*answer, {})["form"], answer->form);
  }
  // What found nothing is no object, however sure it is.
  const auto nothing = found_in("detr", names, queries(92, 91));
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->boxes.empty());
}

TEST(DetectQueries, NeitherTheNamesNorTheOrderNeedBeThose) {
  std::vector<HostTensor> outputs = queries(80, 3);
  const auto named = found_in("rtdetr", {"a", "b"}, outputs);
  ASSERT_TRUE(named.ok()) << named.error().message;
  expect_box(*named, 3, 1 / (1 + std::exp(-4.0)));
  std::swap(outputs[0], outputs[1]);
  const auto swapped = found_in("imagenet", {"pred_boxes", "pred_logits"}, outputs);
  ASSERT_TRUE(swapped.ok()) << swapped.error().message;
  expect_box(*swapped, 3, 1 / (1 + std::exp(-4.0)));
  // Four classes beside four corners, and more outputs than these two.
  outputs = queries(4, 3);
  outputs.push_back(HostTensor::zeros(DType::f32, {1, kQueries, 256}));
  const auto more = found_in("rtdetr", {"logits", "pred_boxes", "last_hidden_state"}, outputs);
  ASSERT_TRUE(more.ok()) << more.error().message;
  expect_box(*more, 3, 1 / (1 + std::exp(-4.0)));
  // Two queries of one place and class stay two, and a query may be of two classes.
  outputs = queries(80, 3);
  outputs[0].data<float>()[2 * 80 + 7] = 3;
  std::copy_n(outputs[0].data<float>() + 2 * 80, 80, outputs[0].data<float>() + 5 * 80);
  std::copy_n(outputs[1].data<float>() + 8, 4, outputs[1].data<float>() + 20);
  const auto twice = found_in("rtdetr", {"a", "b"}, outputs);
  ASSERT_TRUE(twice.ok());
  ASSERT_EQ(twice->boxes.size(), 4u);
  EXPECT_EQ(twice->boxes[1].label, 3);
  EXPECT_EQ(twice->boxes[3].label, 7);
}

TEST(DetectQueries, ProbabilitiesAreTakenAsTheyAre) {
  std::vector<HostTensor> outputs = queries(80, 3);
  for (int64_t i = 0; i < outputs[0].elements(); ++i) outputs[0].data<float>()[i] = outputs[0].data<float>()[i] > 0 ? 0.75f : 0;
  const auto answer = found_in("rtdetr", {"scores", "boxes"}, outputs);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  expect_box(*answer, 3, 0.75);
}

TEST(DetectQueries, PresetsAreGuessedFromNamesAndSizes) {
  const auto preset = [](const char* scores, const char* boxes, int64_t n, int64_t classes) {
    return guess_preset({{scores, DType::f32, {1, n, classes}}, {boxes, DType::f32, {1, n, 4}}}, 640, 640);
  };
  EXPECT_EQ(preset("logits", "pred_boxes", 100, 92), "detr");
  EXPECT_EQ(preset("pred_logits", "pred_boxes", 300, 91), "detr");
  EXPECT_EQ(preset("logits", "pred_boxes", 100, 6), "detr");
  EXPECT_EQ(preset("logits", "pred_boxes", 300, 80), "rtdetr");
  EXPECT_EQ(preset("logits", "pred_boxes", -1, 80), "rtdetr");
  EXPECT_EQ(preset("scores", "boxes", 4420, 2), "ultraface");
  EXPECT_EQ(guess_preset({{"output0", DType::f32, {1, 300, 6}}}, 640, 640), "yolov10");
  EXPECT_EQ(guess_preset({{"output0", DType::f32, {1, 8400, 6}}}, 640, 640), "yolox");
  const SessionInput open{"pixels", DType::f32, {1, 3, -1, -1}, {}, true};
  const auto p =
      choose_preprocess(open, {{"logits", DType::f32, {1, 300, 80}}, {"pred_boxes", DType::f32, {1, 300, 4}}}, {}, {});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(to_text(*p), "RGB, stretched to 640x640 (bilinear), /255, NCHW");
}

TEST(DetectRows, OfYoloV10) {
  HostTensor rows = HostTensor::zeros(DType::f32, {1, kQueries, 6});
  const float found[] = {24, 12, 40, 20, 0.75f, 3}, same[] = {24, 12, 40, 20, 0.7f, 3};
  std::copy_n(found, 6, rows.data<float>() + 12), std::copy_n(same, 6, rows.data<float>());
  Preprocess p = *preprocess_preset("yolov10");  // in the middle: 32 rows of the tensor are the picture's, 20 pixels each
  p.width = p.height = 64;
  const Image picture = Image::filled(1280, 640, 1, 0);
  const auto answer = make_answer(Task::detect, {"output0"}, {rows}, p, rows_of(picture), {});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  ASSERT_EQ(answer->boxes.size(), 2u);  // the network has chosen already
  const FoundBox& b = answer->boxes[0];
  EXPECT_EQ(b.label, 3);
  EXPECT_FLOAT_EQ(b.score, 0.75f);
  EXPECT_NEAR(b.x0, 480, 1e-3);
  EXPECT_NEAR(b.y0, 0, 1e-3);  // above the picture
  EXPECT_NEAR(b.x1, 800, 1e-3);
  EXPECT_NEAR(b.y1, (20 - 16) * 20, 1e-3);
  rows.data<float>()[12 + 5] = 2.5f;
  const auto wrong = make_answer(Task::detect, {"output0"}, {rows}, p, rows_of(picture), {});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(
      wrong.error().message.find("YOLOv10 (corners in pixels, score and class a row), the last number of a row should be a "
                                 "class, and one is 2.5"),
      std::string::npos)
      << wrong.error().message;
}

TEST(DetectValues, ThatCannotBeOfTheFormAreASentence) {
  const auto sentence = [](const Result<Answer>& answer) { return answer.ok() ? "no error" : answer.error().message; };
  const auto pair = [](std::initializer_list<float> scores, std::initializer_list<float> boxes) {
    return std::vector{HostTensor::of<float>(DType::f32, {1, 2, 3}, scores),
                       HostTensor::of<float>(DType::f32, {1, 2, 4}, boxes)};
  };
  const std::vector<std::string> plain = {"s", "b"};
  HostTensor six = HostTensor::zeros(DType::f32, {1, 1, 6});
  const float inverted[] = {40, 20, 24, 12, 0.9f, 3}, small[] = {0.1f, 0.1f, 0.2f, 0.2f, 0.9f, 3};
  std::copy_n(inverted, 6, six.data<float>());
  HostTensor tiny = HostTensor::zeros(DType::f32, {1, 1, 6});
  std::copy_n(small, 6, tiny.data<float>());
  HostTensor raw = HostTensor::zeros(DType::f32, {1, 6, 84});
  raw.data<float>()[4 * 84] = raw.data<float>()[5 * 84] = -3;
  const struct {
    Result<Answer> answer;
    const char* want;
  } cases[] = {
      {found_in("ultraface", plain, queries(80, 3)),
       "Read as SSD (scores with background first, corners in 0..1), scores should lie in 0..1, and they are -6 to 4; give the "
       "preset detr (of DETR and YOLOS) or rtdetr (of RT-DETR)"},
      {found_in("ultraface", plain, pair({0, 1, 0, 0, 1, 0}, {0.5f, 0.5f, 0.2f, 0.2f, 0.1f, 0.1f, 0.2f, 0.2f})),
       "boxes should have their corners in order, and one has 0.5, 0.5 before 0.2, 0.2"},
      {found_in("ultraface", plain, pair({0, 1, 0, 0, 1, 0}, {5, 5, 20, 20, 1, 1, 20, 20})),
       "boxes should lie in 0..1, and they reach from 0 to 20"},
      {found_in("rtdetr", plain, pair({0, -5, 0, 0, 1, 0}, {5, 5, 20, 20, 1, 1, 20, 20})),
       "Read as RT-DETR (sigmoid of each class"},
      {found_in("yolov10", {"y"}, {six}), "one has 40, 20 before 24, 12"},
      {found_in("yolov10", {"y"}, {tiny}), "boxes should be in pixels of the input, and they lie in 0..1"},
      {found_in("yolo", {"y"}, {raw}),
       "Read as YOLOv8 (centre and size in pixels and classes a column), scores should lie in 0..1, and they are -3 to 0"},
      {found_in("rtdetr", {"logits", "pred_boxes"}, queries(80, 3), 79),
       "has 80 classes; give one line for each, or the preset detr where the last is 'no object'."},
  };
  for (const auto& c : cases) EXPECT_NE(sentence(c.answer).find(c.want), std::string::npos) << sentence(c.answer);
}

TEST(Preprocess, OnePictureWithoutABatch) {
  const struct {
    Dims shape;
    bool taken, last;
    int width;
  } cases[] = {{{3, 48, 64}, true, false, 64}, {{48, 64, 3}, true, true, 64},  {{3, -1, -1}, true, false, 0},
               {{-1, -1, 3}, true, true, 0},   {{1, 48, 64}, false, false, 0}, {{2, 48, 64}, false, false, 0},
               {{-1, -1, -1}, false, false, 0}};
  for (const auto& c : cases) {
    const auto input = picture_input(DType::f32, c.shape);
    ASSERT_EQ(input.has_value(), c.taken) << c.shape.to_string();
    if (!input) continue;
    EXPECT_FALSE(input->batched);
    EXPECT_EQ(input->channels_last, c.last);
    EXPECT_EQ(input->width, c.width);
  }
  EXPECT_TRUE(picture_input(DType::f32, {1, 3, 48, 64})->batched);
  Preprocess p = *preprocess_preset("torchvision");
  p.width = 6, p.height = 4, p.batched = false;
  Image image = Image::filled(6, 4, 3, 0);
  image.at(1, 0)[2] = 255;
  const auto first = to_tensor(image, p);
  p.channels_last = true;
  const auto last = to_tensor(image, p);
  ASSERT_TRUE(first.ok() && last.ok());
  EXPECT_EQ(first->shape, (Dims{3, 4, 6}));
  EXPECT_EQ(last->shape, (Dims{4, 6, 3}));
  EXPECT_FLOAT_EQ(first->data<float>()[2 * 24 + 1], 1);
  EXPECT_FLOAT_EQ(last->data<float>()[5], 1);
}

TEST(Upscale, ChannelsLastAndWithoutABatch) {
  EXPECT_STREQ(name_of(guess_task({{"y", DType::f32, {1, 128, 128, 3}}}, 64, 64)->task), "upscale");
  EXPECT_EQ(guess_preset({{"y", DType::f32, {1, 128, 128, 3}}}, 64, 64), "unit");
  EXPECT_EQ(guess_preset({{"y", DType::f32, {1, 3, 128, 128}}}, 64, 64), "unit");
  Preprocess p = *preprocess_preset("unit");
  p.width = p.height = 2;
  const Image picture = Image::filled(2, 2, 3, 0);
  std::vector<float> first, last;
  for (int i = 0; i < 48; ++i) first.push_back(static_cast<float>(i) / 255);
  for (int i = 0; i < 48; ++i) last.push_back(first[static_cast<size_t>(i % 3 * 16 + i / 3)]);
  for (const bool channels_last : {false, true})
    for (const bool batched : {false, true}) {
      p.channels_last = channels_last, p.batched = batched;
      Dims shape = channels_last ? Dims{1, 4, 4, 3} : Dims{1, 3, 4, 4};
      HostTensor y = HostTensor::of<float>(DType::f32, shape, channels_last ? last : first);
      if (!batched) y.shape = channels_last ? Dims{4, 4, 3} : Dims{3, 4, 4};
      const auto answer = make_answer(Task::upscale, {"y"}, {y}, p, rows_of(picture), {});
      ASSERT_TRUE(answer.ok()) << answer.error().message;
      EXPECT_EQ(answer->picture.size_text(), "4x4");
      EXPECT_NEAR(answer->picture.at(1, 0)[2], 33, 1e-3);
      EXPECT_NEAR(answer->picture.at(0, 1)[0], 4, 1e-3);
    }
}

}  // namespace
}  // namespace sparkle
