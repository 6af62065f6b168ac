// Every model at hand, compiled and opened again, gives the bits that the model gives: all operators of tests/vectors, the
// model of this repository, and the real ones beside it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "backends/cpu/cpu_backend.h"
#include "base/system/thread_pool.h"
#include "device/probe_cpu.h"
#include "onnx/reader.h"
#include "onnx/tensor_file.h"
#include "prepare/compile_model.h"
#include "run/opening/open_model.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

const fs::path kSource = SPARKLE_SOURCE_DIR;

fs::path model_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".onnx") return entry.path();
  return {};
}

std::vector<HostTensor> inputs_in(const fs::path& folder) {
  std::vector<HostTensor> inputs;
  for (int i = 0;; ++i) {
    const fs::path file = folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return inputs;
    auto tensor = read_tensor_pb(file.string());
    EXPECT_TRUE(tensor.ok()) << file;
    if (!tensor.ok()) return {};
    inputs.push_back(std::move(tensor->value));
  }
}

struct Tally {
  int same = 0, unsupported = 0;
};

void check(const fs::path& folder, const std::shared_ptr<Backend>& backend, Tally& tally) {
  SCOPED_TRACE(folder.filename().string());
  const fs::path model = model_in(folder);
  const auto inputs = inputs_in(folder);
  if (model.empty() || inputs.empty()) return;
  auto graph = read_onnx(model.string());
  if (!graph.ok()) return;
  auto plain = Session::open(*graph, backend, {});
  if (!plain.ok()) return;
  const auto want = (*plain)->run(inputs);
  if (!want.ok()) return;  // other tests tell what is supported
  std::vector<Dims> shapes;
  for (const HostTensor& input : inputs) shapes.push_back(input.shape);
  const std::string file = (fs::temp_directory_path() / ("compiled_" + std::to_string(::getpid()) + ".sparkle")).string();
  const auto done = compile_model(std::move(*graph), backend, {}, shapes, file);
  if (!done.ok()) {
    EXPECT_EQ(done.error().reason, Reason::operator_not_served) << done.error().message;
    ++tally.unsupported;
    return;
  }
  auto read = read_model(file);
  fs::remove(file);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_TRUE(read->compiled);
  EXPECT_TRUE(read->compiled->check_weights().ok());
  auto session = open_session(std::move(*read), backend, {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  const auto have = (*session)->run(inputs);
  ASSERT_TRUE(have.ok()) << have.error().message;
  ASSERT_EQ(have->size(), want->size());
  for (size_t i = 0; i < want->size(); ++i) {
    ASSERT_EQ((*have)[i].shape, (*want)[i].shape) << i;
    ASSERT_EQ((*have)[i].dtype, (*want)[i].dtype) << i;
    EXPECT_EQ(std::memcmp((*have)[i].bytes.get(), (*want)[i].bytes.get(), static_cast<size_t>((*want)[i].size_bytes())), 0)
        << i;
  }
  ++tally.same;
}

Tally check_all(const fs::path& folder) {
  const auto backend = cpu::make_cpu_backend(probe_cpu(), std::make_shared<ThreadPool>(2));
  Tally tally;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& one : folders) check(one, backend, tally);
  return tally;
}

TEST(CompiledModels, OperatorsGiveTheSameBits) {
  const Tally tally = check_all(kSource / "tests/vectors");
  EXPECT_GT(tally.same, 200);
  EXPECT_LT(tally.unsupported, tally.same / 10);  // inputs that decide shapes
}

TEST(CompiledModels, RealNetworksGiveTheSameBits) {
  const fs::path folder = kSource / "../shared/data/models";
  if (!fs::exists(folder)) GTEST_SKIP() << "the models are not here";
  EXPECT_GT(check_all(folder).same, 10);
}

}  // namespace
}  // namespace sparkle
