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
#include "report/pictures/preprocess.h"

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
    if (precision == Precision::int8 && report.integer_share < 0.8) {
      EXPECT_FALSE(report.wide.empty());
    }
  }
}

TEST(FixModels, StayThemselvesInFp16) { check_stored(Precision::fp16); }
TEST(FixModels, StayThemselvesInBf16) { check_stored(Precision::bf16); }
TEST(FixModels, StayThemselvesInInt8) { check_stored(Precision::int8); }

// The photographs that show something of ImageNet's classes; of three others the first two classes are all but equal.
constexpr const char* kOfAClass[] = {"chelsea.png", "coffee.png",   "hummingbird.jpg", "golden_retriever.jpg",
                                     "macaw.jpg",   "cat_720p.jpg", "kitten_rgba.png"};

// As `sparkle run` reads them.
void check_photographs(const std::string& name) {
  if (!fs::exists(kData / "images")) GTEST_SKIP() << "../shared/data is not here";
  auto preprocess = preprocess_preset("imagenet");
  ASSERT_TRUE(preprocess.ok());
  preprocess->width = preprocess->height = 224;
  preprocess->shorter_side = 256;
  std::vector<Sample> photographs;
  for (const char* file : kOfAClass) {
    auto image = read_image((kData / "images" / file).string());
    ASSERT_TRUE(image.ok()) << image.error().message;
    photographs.push_back({*to_tensor(*image, *preprocess)});
  }
  auto original = model(name);
  ASSERT_TRUE(original.ok()) << original.error().message;
  for (const Precision precision : kNarrow) {
    auto result = fixed(*original, precision, photographs);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->report.whole->outputs[0].samples, 7);
    EXPECT_EQ(result->report.whole->outputs[0].same_top1, 7) << name_of(precision);
    if (precision == Precision::int8) {
      EXPECT_GE(result->report.integer_share, 0.8);
    }
  }
}

TEST(FixModels, PhotographsKeepTheirNamesBySqueezeNet) { check_photographs("squeezenet1.1"); }
TEST(FixModels, PhotographsKeepTheirNamesByMobileNet) { check_photographs("mobilenetv2"); }

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
