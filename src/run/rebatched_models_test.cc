// Models for one item that were given three: each item's outputs are those of a run of its own.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/folder_testing.h"
#include "graph/batch/rebatch.h"
#include "networks/writer.h"
#include "networks/zoo.h"
#include "run/opening/open_backend.h"
#include "run/opening/open_model.h"
#include "run/session_testing.h"

namespace sparkle::testing {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kRows = 3;

HostTensor row(const HostTensor& t, int64_t r) {
  HostTensor part = t;
  part.shape[0] = 1;
  part.bytes = std::shared_ptr<std::byte[]>(t.bytes, t.bytes.get() + r * part.size_bytes());
  return part;
}

double largest(const HostTensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.elements(); ++i) most = std::max(most, std::abs(static_cast<double>(t.data<float>()[i])));
  return most;
}

// Sums may be taken in another order where another kernel serves the larger batch: 1e-4 of the largest value.
void expect_same(const HostTensor& have, const HostTensor& want, const std::string& where) {
  ASSERT_EQ(have.shape, want.shape) << where;
  const auto bytes = static_cast<size_t>(want.size_bytes());
  if (std::memcmp(have.bytes.get(), want.bytes.get(), bytes) == 0) return;
  ASSERT_EQ(want.dtype, DType::f32) << where << ": other types are exact";
  const double tolerance = 1e-4 * largest(want);
  for (int64_t i = 0; i < want.elements(); ++i)
    ASSERT_NEAR(have.data<float>()[i], want.data<float>()[i], tolerance) << where << ", element " << i;
}

void check(const Graph& graph, const std::string& name) {
  auto opened = open_backend({});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  auto many = rebatch(graph, kRows);
  ASSERT_TRUE(many.ok()) << name << ": " << many.error().message;
  auto alone = Session::open(graph, opened->backend, {}), together = Session::open(std::move(*many), opened->backend, {});
  ASSERT_TRUE(alone.ok() && together.ok()) << name;
  const std::vector<HostTensor> inputs = random_inputs(**together);
  ASSERT_EQ(inputs[0].shape[0], kRows);
  const auto all = (*together)->run(inputs);
  ASSERT_TRUE(all.ok()) << name << ": " << all.error().message;
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<HostTensor> own;
    for (const HostTensor& t : inputs) own.push_back(row(t, r));
    const auto one = (*alone)->run(own);
    ASSERT_TRUE(one.ok()) << name << ": " << one.error().message;
    for (size_t i = 0; i < one->size(); ++i) expect_same(row((*all)[i], r), (*one)[i], name + ", row " + std::to_string(r));
  }
}

TEST(RebatchedModels, OfTheZooAnswerAsAlone) {
  for (const char* name : {"tiny_chain", "tiny_residual", "tiny_depthwise", "tiny_unet", "tiny_detector"}) {
    const auto graph = zoo_network(name, {});
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    check(*graph, name);
  }
}

TEST(RebatchedModels, SharedModelsAnswerAsAlone) {
  const fs::path models = fs::path(SPARKLE_SOURCE_DIR) / "../shared/data/models";
  if (!fs::exists(models)) GTEST_SKIP() << "../shared/data is not here";
  for (const char* name :
       {"mnist-8", "mnist-cnn", "squeezenet1.1", "mobilenetv2", "mobilenetv2-int8-head-qdq", "emnist-autoencoder",
        "deeplabv3-mobilenetv2-257", "ultraface-rfb-320", "ultraface-rfb-320-boxes", "yolox-nano"}) {
    const auto graph = read_onnx_model((models / name / (std::string(name) + ".onnx")).string());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    check(*graph, name);
  }
}

// On a device of its own the model is read from its file once more, and given as many.
class RebatchedFile : public FolderTest {};
TEST_F(RebatchedFile, GoesOnWithAnotherDevice) {
  const auto graph = zoo_network("tiny_chain", {});
  ASSERT_TRUE(graph.ok() && write_onnx(*graph, path("net.onnx")).ok());
  BackendOptions plain;
  plain.name = "reference";
  auto cpu = open_backend({}), reference = open_backend(plain);
  ASSERT_TRUE(cpu.ok() && reference.ok());
  auto model = read_model(path("net.onnx"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  auto session = open_session(std::move(*model), cpu->backend, {}, kRows);
  ASSERT_TRUE(session.ok()) << session.error().message;
  const std::vector<HostTensor> inputs = random_inputs(**session);
  EXPECT_EQ(inputs[0].shape[0], kRows);
  const auto before = (*session)->run(inputs);
  const Status moved = (*session)->move_to(reference->backend);
  ASSERT_TRUE(before.ok() && moved.ok());
  const auto after = (*session)->run(inputs);
  ASSERT_TRUE(after.ok()) << after.error().message;
  expect_same((*after)[0], (*before)[0], "moved");
}

}  // namespace
}  // namespace sparkle::testing
