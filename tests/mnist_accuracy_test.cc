// All 10,000 test digits of MNIST through two trained networks: as many right answers as the golden engine gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "idx_file.h"
#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "onnx/reader.h"
#include "run/session.h"

namespace sparkle {
namespace {

namespace fs = std::filesystem;
const fs::path kData = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data";
constexpr int kDigits = 10000, kPixels = 28 * 28;

// Both models declare a batch of one.
void check(const std::string& name, float scale) {
  const fs::path images = kData / "mnist/t10k-images-idx3-ubyte.gz", labels = kData / "mnist/t10k-labels-idx1-ubyte.gz";
  const fs::path model = kData / "models" / name / (name + ".onnx");
  if (!fs::exists(images) || !fs::exists(labels) || !fs::exists(model)) GTEST_SKIP() << "../shared/data is not here";
  const auto pixels = testing::read_idx(images, 16, static_cast<size_t>(kDigits) * kPixels);
  const auto truth = testing::read_idx(labels, 8, kDigits);
  ASSERT_FALSE(pixels.empty());
  ASSERT_FALSE(truth.empty());
  auto graph = read_onnx(model.string());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  ProbeOptions probe;
  probe.threads = 1;
  ThreadPoolOptions pool;
  pool.threads = 1;
  auto backend = cpu::make_cpu_backend(probe_cpu(probe), std::make_shared<ThreadPool>(pool));
  auto session = Session::open(std::move(*graph), std::move(backend), {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  int correct = 0;
  for (int d = 0; d < kDigits; ++d) {
    HostTensor digit = HostTensor::uninitialized(DType::f32, {1, 1, 28, 28});
    for (int i = 0; i < kPixels; ++i)
      digit.data<float>()[i] = static_cast<float>(pixels[static_cast<size_t>(d) * kPixels + i]) * scale;
    auto outputs = (*session)->run({digit});
    ASSERT_TRUE(outputs.ok()) << "digit " << d << ": " << outputs.error().message;
    ASSERT_EQ((*outputs)[0].elements(), 10);
    const float* scores = (*outputs)[0].data<float>();
    correct += std::max_element(scores, scores + 10) - scores == truth[static_cast<size_t>(d)];
  }
  EXPECT_EQ(correct, 9891);
}

TEST(MnistAccuracy, Mnist8) { check("mnist-8", 1.f); }
TEST(MnistAccuracy, MnistCnn) { check("mnist-cnn", 1.f / 255); }

}  // namespace
}  // namespace sparkle
