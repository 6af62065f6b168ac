// Photographs through the picture path of `sparkle run`: the labels that two ImageNet networks give, and pictures enlarged in
// tiles against the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "onnx/reader.h"
#include "vision/pictures/preprocess.h"
#include "vision/pictures/tiled.h"
#include "run/session.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
const fs::path kSource = SPARKLE_SOURCE_DIR;
const fs::path kData = kSource / "../shared/data";

Result<std::unique_ptr<Session>> open_model(const fs::path& path) {
  SPARKLE_TRY(graph, read_onnx(path.string()));
  ProbeOptions probe;
  probe.threads = 2;
  ThreadPoolOptions pool;
  pool.threads = 2;
  return Session::open(std::move(graph), cpu::make_cpu_backend(probe_cpu(probe), std::make_shared<ThreadPool>(pool)), {});
}

struct Expected {
  const char* file;
  int squeezenet, mobilenet;
  bool tie = false;  // no class is right, and of two that are nearly as likely the rounding of a JPEG decoder picks one
};
// The table of ../shared/data/README.md.
constexpr Expected kPhotographs[] = {
    {"chelsea.png", 285, 285},          {"coffee.png", 967, 967}, {"astronaut.png", 823, 450},
    {"rocket.jpg", 657, 812, true},     {"camera.png", 872, 872}, {"hummingbird.jpg", 94, 94},
    {"golden_retriever.jpg", 207, 207}, {"macaw.jpg", 88, 88},    {"cat_720p.jpg", 285, 285},
    {"kitten_rgba.png", 281, 281},
};

constexpr float kTie = 0.02f;  // of scores before softmax: 2 % in probability

void check_labels(const std::string& name, int Expected::* wanted) {
  if (!fs::exists(kData / "images")) GTEST_SKIP() << "../shared/data is not here";
  auto session = open_model(kData / "models" / name / (name + ".onnx"));
  ASSERT_TRUE(session.ok()) << session.error().message;
  auto preprocess = preprocess_preset("imagenet");
  ASSERT_TRUE(preprocess.ok());
  preprocess->width = preprocess->height = 224;
  preprocess->shorter_side = 256;
  for (const Expected& photograph : kPhotographs) {
    auto image = read_image((kData / "images" / photograph.file).string());
    ASSERT_TRUE(image.ok()) << image.error().message;
    auto outputs = (*session)->run({*to_tensor(*image, *preprocess)});
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const float* scores = (*outputs)[0].data<float>();
    const auto first = std::max_element(scores, scores + 1000);
    EXPECT_GE(scores[photograph.*wanted], *first - (photograph.tie ? kTie : 0))
        << photograph.file << ": class " << first - scores;
  }
}

TEST(Photographs, SqueezeNetNamesThem) { check_labels("squeezenet1.1", &Expected::squeezenet); }
TEST(Photographs, MobileNetNamesThem) { check_labels("mobilenetv2", &Expected::mobilenet); }

TEST(Tiled, EqualsTheWhole) {
  auto session = open_model(kSource / "models/upscale2x.onnx");
  ASSERT_TRUE(session.ok()) << session.error().message;
  auto image = read_image((kSource / "models/test_picture.png").string());
  ASSERT_TRUE(image.ok()) << image.error().message;
  auto preprocess = preprocess_preset("unit");
  ASSERT_TRUE(preprocess.ok());
  const HostTensor input = *to_tensor(crop(*image, 100, 90, 131, 97), *preprocess);
  HostTensor results[2];
  const TileOptions options[2] = {{0, 8}, {64, 8}};
  for (int i = 0; i < 2; ++i) {
    auto plan = plan_tiles(**session, input.shape, options[i]);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_EQ(plan->factor, 2);
    EXPECT_EQ(plan->tiles(), i == 0 ? 1 : 6);
    auto run = run_tiles(**session, input, *plan, options[i]);
    ASSERT_TRUE(run.ok()) << run.error().message;
    results[i] = run->output;
  }
  ASSERT_EQ(results[0].shape, results[1].shape);
  double worst = 0;
  for (int64_t e = 0; e < results[0].elements(); ++e)
    worst = std::max(worst, std::abs(static_cast<double>(results[0].data<float>()[e]) - results[1].data<float>()[e]));
  EXPECT_LT(worst, 1e-5);  // values lie in 0..1; the plans of two sizes may sum in another order
}

TEST(Tiled, OverlapMustLeaveSomething) {
  auto session = open_model(kSource / "models/upscale2x.onnx");
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto plan = plan_tiles(**session, {1, 3, 100, 100}, {16, 8});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().reason, Reason::bad_usage);
}

}  // namespace
}  // namespace sparkle
