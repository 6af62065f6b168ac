// Real models through `fix` in each precision: photographs keep their names, digits are read as well as before, everything else
// stays close to what the original says of its stored inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "idx_file.h"
#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "fix/fix.h"
#include "onnx/tensor_file.h"
#include "report/float_type.h"
#include "vision/pictures/preprocess.h"

namespace sparkle::fix {
namespace {

namespace fs = std::filesystem;
const fs::path kData = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data";
constexpr Precision kNarrow[] = {Precision::fp16, Precision::bf16, Precision::int8};

std::shared_ptr<Backend> cpu_backend() {
  static const std::shared_ptr<Backend> backend = [] {
    ProbeOptions probe;
    probe.threads = 2;
    ThreadPoolOptions pool;
    pool.threads = 2;
    return cpu::make_cpu_backend(probe_cpu(probe), std::make_shared<ThreadPool>(pool));
  }();
  return backend;
}

Result<Document> model(const std::string& name) {
  return Document::read((kData / "models" / name / (name + ".onnx")).string());
}

std::vector<Sample> stored_inputs(const std::string& name, size_t inputs) {
  std::vector<Sample> samples;
  for (int set = 0;; ++set) {
    const fs::path folder = kData / "models" / name / ("test_data_set_" + std::to_string(set));
    if (!fs::exists(folder)) return samples;
    Sample sample;
    for (size_t i = 0; i < inputs; ++i) {
      auto tensor = read_tensor_pb((folder / ("input_" + std::to_string(i) + ".pb")).string());
      EXPECT_TRUE(tensor.ok()) << tensor.error().message;
      sample.push_back(tensor->value);
    }
    samples.push_back(std::move(sample));
  }
}

// Padded for fp16's units or those of bytes as they are on GPUs, and narrowed.
Result<Fixed> fixed(const Document& original, Precision precision, std::vector<Sample> samples) {
  FixOptions options;
  options.precision = precision;
  options.multiple = precision == Precision::int8 ? 16 : 8;
  options.samples = std::move(samples);
  return fix_model(original, options, cpu_backend());
}

// What did not become integer has a name and a reason.
void all_named(const FixReport& report) {
  double named = 0;
  for (const auto& w : report.wide) {
    EXPECT_FALSE(w.why.empty()) << w.layer;
    named += w.share;
  }
  EXPECT_NEAR(report.integer_share + named, 1, 1e-6);
}

void check_stored(Precision precision) {
  if (!fs::exists(kData / "models")) GTEST_SKIP() << "../shared/data is not here";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kData / "models")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  ASSERT_GE(names.size(), 20u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    auto original = model(name);
    ASSERT_TRUE(original.ok()) << original.error().message;
    const auto samples = stored_inputs(name, static_cast<size_t>(original->graph().input_size()));
    auto result = fixed(*original, precision, samples);
    ASSERT_TRUE(result.ok()) << result.error().message;
    const FixReport& report = result->report;
    if (report.exact) {
      EXPECT_LE(report.exact->largest(), 1e-5);
    }
    if (!report.whole) {
      EXPECT_FALSE(report.notes.empty()) << "neither another precision nor a word why not";
      continue;
    }
    if (report.whole->classifies()) {
      EXPECT_EQ(report.whole->agreement(), 1);
    } else {
      EXPECT_GE(report.whole->cosine(), precision == Precision::int8 ? 0.99 : 0.999);
    }
    if (precision != Precision::int8) continue;
    all_named(report);
    // The stored inputs of SqueezeNet 1.1 are photographs, normalised, and noise of 0 to 255 that was published with it.
    const bool mixed = std::any_of(report.notes.begin(), report.notes.end(), [](const std::string& note) {
      return note.find("samples that were prepared alike") != std::string::npos;
    });
    EXPECT_EQ(mixed, name == "squeezenet1.1");
    EXPECT_GE(report.integer_share, mixed ? 0.4 : 0.8);
  }
}

TEST(FixModels, StayThemselvesInFp16) { check_stored(Precision::fp16); }
TEST(FixModels, StayThemselvesInBf16) { check_stored(Precision::bf16); }
TEST(FixModels, StayThemselvesInInt8) { check_stored(Precision::int8); }

// Every network that names what pictures show, and how it wants them (the data's README).
struct Classifier {
  const char* name;
  const char* preset;
  int size, shorter_side;
  Color color = Color::rgb;
};
std::ostream& operator<<(std::ostream& out, const Classifier& c) { return out << c.name; }
constexpr Classifier kClassifiers[] = {
    {"squeezenet1.1", "imagenet", 224, 256},        {"squeezenet-fp16", "raw", 224, 256, Color::bgr},
    {"mobilenetv2", "imagenet", 224, 256},          {"mobilenetv2-int8", "imagenet", 224, 256},
    {"mobilenetv2-int8-qdq", "imagenet", 224, 256}, {"resnet20-cifar10", "imagenet", 32, 32},
    {"resnet32-cifar10", "imagenet", 32, 32}};

// Of three photographs the first two classes are all but equal: by MobileNetV2 0.2454 and 0.2448 for the rocket.
bool is_clear(const fs::path& file) {
  const std::string name = file.stem().string();
  return name != "astronaut" && name != "rocket" && name != "camera";
}

// All photographs that there are, or the clear ones, as `sparkle run` reads them.
std::vector<Sample> photographs(const Classifier& c, DType type, bool all = true) {
  auto preprocess = preprocess_preset(c.preset);
  EXPECT_TRUE(preprocess.ok());
  preprocess->width = preprocess->height = c.size;
  preprocess->shorter_side = c.shorter_side;
  preprocess->color = c.color;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kData / "images"))
    if (all || is_clear(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Sample> samples;
  for (const fs::path& file : files) {
    auto image = read_image(file.string());
    EXPECT_TRUE(image.ok()) << image.error().message;
    if (image.ok()) samples.push_back({*in_float_type(*to_tensor(*image, *preprocess), type)});
  }
  return samples;
}

class FixPhotographs : public ::testing::TestWithParam<Classifier> {};

TEST_P(FixPhotographs, KeepTheirNames) {
  if (!fs::exists(kData / "images")) GTEST_SKIP() << "../shared/data is not here";
  auto original = model(GetParam().name);
  ASSERT_TRUE(original.ok()) << original.error().message;
  auto before = Runner::open(*original, cpu_backend());
  ASSERT_TRUE(before.ok()) << before.error().message;
  const auto samples = photographs(GetParam(), before->inputs()[0].dtype);
  ASSERT_GE(samples.size(), 10u);
  for (const Precision precision : kNarrow) {
    SCOPED_TRACE(name_of(precision));
    auto result = fixed(*original, precision, samples);
    ASSERT_TRUE(result.ok()) << result.error().message;
    // Not as the proof says it, but as the file answers.
    auto after = Runner::open(result->model, cpu_backend());
    ASSERT_TRUE(after.ok()) << after.error().message;
    for (const Sample& sample : samples) {
      Difference d;
      auto wanted = before->run(sample), found = after->run(sample);
      ASSERT_TRUE(wanted.ok() && found.ok());
      add_sample(d, (*wanted)[0], (*found)[0]);
      EXPECT_EQ(d.same_top1, 1);
    }
    if (precision != Precision::int8 || !result->report.whole) continue;
    all_named(result->report);
    // To keep what is a matter of chance as well takes layers that the others do not need.
    auto clear = fixed(*original, precision, photographs(GetParam(), before->inputs()[0].dtype, false));
    ASSERT_TRUE(clear.ok()) << clear.error().message;
    EXPECT_EQ(clear->report.whole->outputs[0].samples, 7);
    EXPECT_EQ(clear->report.whole->agreement(), 1);
    EXPECT_GE(clear->report.integer_share, 0.8);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FixPhotographs, ::testing::ValuesIn(kClassifiers), [](const auto& of) {
  std::string name = of.param.name;
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
});

// Of the 10,000 digits the original reads 9891: at most 10 fewer in 16 bits, 50 fewer in 8.
void check_digits(const std::string& name, float scale) {
  constexpr int kDigits = 10000, kPixels = 28 * 28;
  if (!fs::exists(kData / "mnist")) GTEST_SKIP() << "../shared/data is not here";
  const auto pixels = sparkle::testing::read_idx(kData / "mnist/t10k-images-idx3-ubyte.gz", 16, size_t{kDigits} * kPixels);
  const auto truth = sparkle::testing::read_idx(kData / "mnist/t10k-labels-idx1-ubyte.gz", 8, kDigits);
  ASSERT_FALSE(pixels.empty() || truth.empty());
  auto original = model(name);
  ASSERT_TRUE(original.ok()) << original.error().message;
  for (const Precision precision : kNarrow) {
    auto result = fixed(*original, precision, stored_inputs(name, 1));
    ASSERT_TRUE(result.ok()) << result.error().message;
    auto runner = Runner::open(result->model, cpu_backend());
    ASSERT_TRUE(runner.ok()) << runner.error().message;
    int right = 0;
    for (int d = 0; d < kDigits; ++d) {
      HostTensor digit = HostTensor::uninitialized(DType::f32, {1, 1, 28, 28});
      for (int i = 0; i < kPixels; ++i)
        digit.data<float>()[i] = static_cast<float>(pixels[static_cast<size_t>(d) * kPixels + i]) * scale;
      auto outputs = runner->run({digit});
      ASSERT_TRUE(outputs.ok()) << outputs.error().message;
      const float* scores = (*outputs)[0].data<float>();
      right += std::max_element(scores, scores + 10) - scores == truth[static_cast<size_t>(d)];
    }
    EXPECT_GE(right, precision == Precision::int8 ? 9891 - 50 : 9891 - 10) << name_of(precision);
  }
}

TEST(FixModels, DigitsAreReadAsWellByMnist8) { check_digits("mnist-8", 1.f); }
TEST(FixModels, DigitsAreReadAsWellByMnistCnn) { check_digits("mnist-cnn", 1.f / 255); }

}  // namespace
}  // namespace sparkle::fix
