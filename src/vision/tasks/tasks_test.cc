// Answers from tensors: the forms of detectors on small made-up outputs, and trained models on the shared photographs, which
// must give what their meta.json says.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "graph/test_graphs.h"
#include "onnx/metadata.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_model.h"
#include "vision/pictures/picture.h"
#include "vision/tasks/answer.h"
#include "vision/tasks/picture_task.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
const fs::path kData = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data";

Preprocess stretched(int width, int height) {
  Preprocess p = *preprocess_preset("ultraface");
  p.width = width, p.height = height;
  return p;
}

TEST(Tasks, AreGuessedFromOutputs) {
  const struct {
    std::vector<OutputForm> outputs;
    const char* want;
  } cases[] = {
      {{{"output", DType::f32, {1, 3549, 85}}}, "detect"},
      {{{"output0", DType::f32, {1, 84, 3549}}}, "detect"},
      {{{"scores", DType::f32, {1, 4420, 2}}, {"boxes", DType::f32, {1, 4420, 4}}}, "detect"},
      {{{"boxes", DType::f32, {-1, 4}}, {"labels", DType::i64, {-1}}, {"scores", DType::f32, {-1}}}, "detect"},
      {{{"out", DType::f32, {1, 85, 26, 26}}}, "detect"},
      {{{"rows", DType::f32, {1, 300, 6}}}, "detect"},
      {{{"six", DType::f32, {1, 1, 6}}}, "classify"},
      {{{"logits", DType::f32, {1, 300, 92}}, {"pred_boxes", DType::f32, {1, 300, 4}}}, "detect"},
      {{{"logits", DType::f32, {1, 21, 416, 416}}}, "segment"},
      {{{"classes", DType::i64, {1, 416, 416}}}, "segment"},
      {{{"y", DType::f32, {1, 3, 832, 832}}}, "upscale"},
      {{{"predicted_depth", DType::f32, {1, 416, 416}}}, "depth"},
      {{{"embedding", DType::f32, {1, 512}}}, "embed"},
      {{{"logits", DType::f32, {-1, 1000}}}, "classify"},
      {{{"a", DType::f32, {1, 7, 9, 11, 13}}}, "nothing"},
  };
  for (const auto& c : cases) {
    const auto guess = guess_task(c.outputs, 416, 416);
    EXPECT_STREQ(guess ? name_of(guess->task) : "nothing", c.want) << c.outputs[0].name;
  }
  EXPECT_EQ(guess_preset({{"output", DType::f32, {1, 3549, 85}}}, 416, 416), "yolox");
  EXPECT_EQ(guess_preset({{"logits", DType::f32, {1, 21, 257, 257}}}, 257, 257), "deeplab");
  EXPECT_EQ(guess_preset({{"logits", DType::f32, {1, 1000}}}, 224, 224), "");
}

// One object of class 1 whose box is 8..24 x 16..48 of a 64x64 tensor, as each form says it, in a picture twice as large.
TEST(Detect, FormsGiveTheSameBox) {
  constexpr int64_t kCells = 8 * 8 + 4 * 4 + 2 * 2;
  const auto zeros = [](const Dims& shape) { return HostTensor::zeros(DType::f32, shape); };
  const auto fill_row = [](float* v, std::initializer_list<float> values) { std::copy(values.begin(), values.end(), v); };
  struct Case {
    std::vector<std::string> names;
    std::vector<HostTensor> outputs;
  };
  std::vector<Case> cases;
  // Stride 8, cell (2, 4): centre 16, 32 is that cell's corner.
  HostTensor grid = zeros({1, kCells, 7}), decoded = zeros({1, kCells, 7}), anchors = zeros({1, 3 * kCells, 7});
  fill_row(grid.data<float>() + (4 * 8 + 2) * 7, {0, 0, std::log(2.f), std::log(4.f), 0.9f, 0.1f, 0.9f});
  int64_t at = 0;
  for (const int s : {8, 16, 32})
    for (int y = 0; y < 64 / s; ++y)
      for (int x = 0; x < 64 / s; ++x, ++at) fill_row(decoded.data<float>() + at * 7, {(x + .5f) * s, (y + .5f) * s, 1, 1});
  fill_row(decoded.data<float>() + (4 * 8 + 2) * 7, {16, 32, 16, 32, 0.9f, 0.1f, 0.9f});
  fill_row(anchors.data<float>() + 7, {16, 32, 16, 32, 0.9f, 0.1f, 0.9f});
  cases.push_back({{"output"}, {grid}});
  cases.push_back({{"output"}, {decoded}});
  cases.push_back({{"output"}, {anchors}});
  HostTensor columns = zeros({1, 6, kCells});
  for (int i = 0; i < 6; ++i)
    columns.data<float>()[i * kCells + 5] = std::array{16.f, 32.f, 16.f, 32.f, 0.1f, 0.81f}[static_cast<size_t>(i)];
  cases.push_back({{"output0"}, {columns}});
  HostTensor cells = zeros({1, 7, 4, 4});  // cell (1, 2): its corner is 16, 32
  const float logit_w = std::log(0.25f / 0.75f), logit_h = 0;
  for (int i = 0; i < 7; ++i)
    cells.data<float>()[i * 16 + 2 * 4 + 1] =
        std::array{0.81f, 0.f, 0.f, logit_w, logit_h, 0.1f, 0.81f}[static_cast<size_t>(i)];
  cases.push_back({{"out"}, {cells}});
  HostTensor scores = zeros({1, 10, 3}), corners = zeros({1, 10, 4});
  for (int i = 0; i < 10; ++i) fill_row(corners.data<float>() + 4 * i, {0.125f, 0.25f, 0.375f, 0.75f});
  fill_row(scores.data<float>() + 3 * 3, {0.1f, 0.09f, 0.81f});
  cases.push_back({{"scores", "boxes"}, {scores, corners}});
  cases.push_back({{"boxes", "scores"}, {corners, scores}});
  cases.push_back({{"boxes", "labels", "scores"},
                   {HostTensor::of<float>(DType::f32, {1, 4}, {8, 16, 24, 48}), HostTensor::of<int64_t>(DType::i64, {1}, {1}),
                    HostTensor::of<float>(DType::f32, {1}, {0.81f})}});
  const Image picture = Image::filled(128, 128, 3, 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto answer = make_answer(Task::detect, cases[i].names, cases[i].outputs, stretched(64, 64), rows_of(picture), {});
    ASSERT_TRUE(answer.ok()) << i << ": " << answer.error().message;
    ASSERT_EQ(answer->boxes.size(), 1u) << i;
    const FoundBox& b = answer->boxes[0];
    EXPECT_EQ(b.label, 1) << i;
    EXPECT_NEAR(b.score, 0.81, 1e-4) << i;
    EXPECT_NEAR(b.x0, 16, 1e-3) << i;
    EXPECT_NEAR(b.y0, 32, 1e-3) << i;
    EXPECT_NEAR(b.x1, 48, 1e-3) << i;
    EXPECT_NEAR(b.y1, 96, 1e-3) << i;
  }
  EXPECT_FALSE(make_answer(Task::detect, {"y"}, {zeros({1, 5})}, stretched(64, 64), rows_of(picture), {}).ok());
}

TEST(Detect, OfBoxesThatOverlapTheBestStays) {
  const std::vector<std::string> names = {"boxes", "labels", "scores"};
  const std::vector<HostTensor> outputs = {
      HostTensor::of<float>(DType::f32, {4, 4}, {0, 0, 10, 10, 1, 0, 11, 10, 1, 0, 11, 10, NAN, 0, 1, 1}),
      HostTensor::of<int64_t>(DType::i64, {4}, {0, 0, 1, 0}), HostTensor::of<float>(DType::f32, {4}, {0.7f, 0.9f, 0.6f, 1.f})};
  const Image black = Image::filled(20, 20, 3, 0);
  const auto answer = make_answer(Task::detect, names, outputs, stretched(20, 20), rows_of(black), {});
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->boxes.size(), 2u);  // the other class stays beside it, what is no number goes
  EXPECT_FLOAT_EQ(answer->boxes[0].score, 0.9f);
  EXPECT_EQ(answer->boxes[1].label, 1);
  const Image drawn = draw_answer(black, *answer, {"cat"});
  EXPECT_EQ(drawn.width, 20);
  EXPECT_GT(drawn.height, 20);  // the legend
}

TEST(Placement, UndoesCropAndLetterbox) {
  Preprocess p;
  p.width = p.height = 224, p.shorter_side = 256;
  Placement at = placement_of(p, 512, 1024);  // twice the size; 64 pixels of margin, and 256 more of the longer side
  EXPECT_NEAR(at.scale_x, 2, 1e-9);
  EXPECT_NEAR(at.offset_x, 32, 1e-9);
  EXPECT_NEAR(at.offset_y, 288, 1e-9);
  p = *preprocess_preset("yolo");
  p.width = p.height = 640;
  at = placement_of(p, 1280, 640);
  EXPECT_NEAR(at.scale_y, 2, 1e-9);
  EXPECT_NEAR(at.offset_y, -320, 1e-9);
  EXPECT_NEAR(at.offset_x, 0, 1e-9);
}

TEST(Preprocess, BytesWithChannelsLast) {
  const auto input = picture_input(DType::u8, {1, 4, 6, 3});
  ASSERT_TRUE(input && input->channels_last);
  Preprocess p = *preprocess_preset("raw");
  p.channels_last = true, p.type = DType::u8, p.fit = PictureFit::stretch, p.width = 6, p.height = 4;
  Image image = Image::filled(6, 4, 3, 0);
  image.at(1, 0)[2] = 200;
  const auto tensor = to_tensor(image, p);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->shape, (Dims{1, 4, 6, 3}));
  EXPECT_EQ(tensor->data<uint8_t>()[5], 200);
}

TEST(Metadata, IsFoundWithoutTheGraph) {
  using namespace std::string_literals;
  const std::string entry = "\x0a\x05names\x12\x1c{0: 'person', 12: \"traffic\"}"s;
  const std::string model = "\x08\x07\x3a\x02\x0a\x00"s + "\x72"s + static_cast<char>(entry.size()) + entry;
  const auto metadata = read_metadata_bytes(std::as_bytes(std::span(model)));
  const auto names = class_names(metadata);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names.at(0), "person");
  EXPECT_EQ(names.at(12), "traffic");
  for (size_t keep = 0; keep < model.size(); ++keep)
    (void)read_metadata_bytes(std::as_bytes(std::span(model)).subspan(0, keep));
}

// From a picture through a model [3, h, w] or [h, w, 3] to what it answers, sizes open or not.
TEST(PictureTask, TakesOnePictureWithoutABatch) {
  const auto backend = open_backend({});
  ASSERT_TRUE(backend.ok());
  const Picture picture = picture_from_image(Image::filled(4, 2, 3, 51));
  for (const Dims& shape : {Dims{3, 2, 4}, Dims{2, 4, 3}, Dims{3, -1, -1}, Dims{-1, -1, 3}}) {
    testing::GraphBuilder b;
    ModelFile model;
    model.graph = b.done(b.pointwise(PointwiseOp::add, {b.input(shape), b.floats({1}, {1})}));
    auto session = open_session(std::move(model), backend->backend, {});
    ASSERT_TRUE(session.ok()) << session.error().message;
    PictureTaskOptions options;
    options.task = "embed", options.words.preset = "torchvision";
    const auto task = PictureTask::open(std::move(*session), options);
    ASSERT_TRUE(task.ok()) << task.error().message;
    const auto tensor = (*task)->tensor_of(picture);
    ASSERT_TRUE(tensor.ok());
    EXPECT_EQ(tensor->shape, shape[0] == 3 ? (Dims{3, 2, 4}) : (Dims{2, 4, 3}));
    const auto found = (*task)->answer(picture);
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_EQ(found->answer.embedding.size(), 24u);
    for (const float v : found->answer.embedding) EXPECT_FLOAT_EQ(v, 1.2f);
  }
}

// The answer of a shared model on a photograph, preprocessed as is guessed.
Result<Answer> answer_of(const std::string& name, const char* photograph, Task* guessed) {
  SPARKLE_TRY(backend, open_backend({}));
  SPARKLE_TRY(model, read_model((kData / "models" / name / (name + ".onnx")).string()));
  SPARKLE_TRY(session, open_session(std::move(model), backend.backend, {}));
  SPARKLE_TRY(picture, read_image((kData / "images" / photograph).string()));
  const auto input = picture_input(session->inputs()[0].dtype, session->inputs()[0].shape);
  std::vector<OutputForm> forms;
  std::vector<std::string> names;
  for (const SessionInput& o : session->outputs()) forms.push_back({o.name, o.dtype, o.shape}), names.push_back(o.name);
  const std::string preset = guess_preset(forms, input->width, input->height);
  SPARKLE_TRY(p, preprocess_preset(preset.empty() ? "unit" : preset));
  p.width = input->width, p.height = input->height;
  if (input->channels == 1) p.color = Color::grey;
  const auto guess = guess_task(forms, p.width, p.height);
  *guessed = guess ? guess->task : Task::classify;
  SPARKLE_TRY(tensor, to_tensor(picture, p));
  SPARKLE_TRY(outputs, session->run({tensor}));
  return make_answer(*guessed, names, outputs, p, rows_of(picture), {});
}

TEST(SharedModels, AnswerAsTheirMetaSays) {
  if (!fs::exists(kData / "models")) GTEST_SKIP() << "../shared/data is not here";
  struct Want {
    const char *model, *photograph;
    std::vector<FoundBox> boxes;  // in pixels of the photograph
  };
  // detections_416 times the picture's size over the letterbox's; faces_rel times the picture's size.
  const float c = 1280.f / 416, k = 600.f / 416;
  const Want wants[] = {
      {"yolox-nano", "cat_720p.jpg", {{33.4f * c, 35.3f * c, 308.5f * c, 231.9f * c, 0.797f, 15}}},
      {"yolox-nano",
       "coffee.png",
       {{112.4f * k, 10.7f * k, 292.7f * k, 203.2f * k, 0.899f, 41}, {0.1f * k, 0.2f * k, 414.7f * k, 276.1f * k, 0.732f, 60}}},
      {"ultraface-rfb-320", "astronaut.png", {{0.351f * 512, 0.12f * 512, 0.523f * 512, 0.34f * 512, 1.f, 0}}},
      {"ultraface-rfb-320-boxes", "astronaut.png", {{0.351f * 512, 0.12f * 512, 0.523f * 512, 0.34f * 512, 1.f, 0}}},
  };
  Task task = Task::classify;
  for (const Want& w : wants) {
    const auto answer = answer_of(w.model, w.photograph, &task);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(task, Task::detect);
    ASSERT_EQ(answer->boxes.size(), w.boxes.size()) << w.model << " " << w.photograph;
    for (size_t i = 0; i < w.boxes.size(); ++i) {
      const FoundBox &have = answer->boxes[i], &want = w.boxes[i];
      EXPECT_EQ(have.label, want.label);
      EXPECT_NEAR(have.score, want.score, 0.01);
      // Filters differ where a picture is shrunk: one pixel of the tensor's.
      for (const auto& [a, b] : {std::pair{have.x0, want.x0}, {have.y0, want.y0}, {have.x1, want.x1}, {have.y1, want.y1}})
        EXPECT_NEAR(a, b, 3.1);
    }
  }
  const auto cat = answer_of("deeplabv3-mobilenetv2-257", "chelsea.png", &task);
  ASSERT_TRUE(cat.ok()) << cat.error().message;
  EXPECT_EQ(task, Task::segment);
  const auto classes = to_json(*cat, {})["classes"];
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_EQ(classes[1]["class"], 8);
  EXPECT_NEAR(classes[1]["share"].get<double>(), 0.7678, 0.01);
  const auto larger = answer_of("super-resolution-10", "chelsea.png", &task);
  ASSERT_TRUE(larger.ok()) << larger.error().message;
  EXPECT_EQ(task, Task::upscale);
  EXPECT_EQ(larger->picture.size_text(), "672x672");
  double mean = 0;
  for (const float v : to_grey(larger->picture).pixels) mean += static_cast<double>(v);
  EXPECT_NEAR(mean / 255 / (672 * 672), 0.4608, 0.01);  // bilinear where the golden input was bicubic
}

}  // namespace
}  // namespace sparkle
