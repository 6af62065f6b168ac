// Every model at hand is read, simplified and bound to the shapes of its stored inputs; the inferred types and shapes of its
// outputs are compared with the stored outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "graph/graph.h"
#include "onnx/reader.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

const fs::path kSource = SPARKLE_SOURCE_DIR;

struct Tally {
  int bound = 0, not_served = 0;
  std::map<std::string, int> why;
  std::vector<std::string> failures;
};

std::optional<HostTensor> read_pb(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  ::onnx::TensorProto proto;
  if (!proto.ParseFromIstream(&file)) return std::nullopt;
  auto tensor = take_tensor(proto, path.string(), "");
  return tensor.ok() ? std::optional(*tensor) : std::nullopt;
}

std::optional<fs::path> model_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".onnx") return entry.path();
  return std::nullopt;
}

std::optional<fs::path> data_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) return entry.path();
  return std::nullopt;
}

// Reads, simplifies, binds, simplifies, binds again; outputs against the stored ones.
void check(const fs::path& folder, Tally& tally) {
  const auto model = model_in(folder);
  const auto data = data_in(folder);
  if (!model || !data) return;
  const auto failed = [&](const std::string& what) { tally.failures.push_back(folder.filename().string() + ": " + what); };
  auto graph = read_onnx(model->string());
  if (!graph.ok()) {
    const Reason reason = graph.error().reason;
    if (reason == Reason::operator_not_served || reason == Reason::type_not_served) {
      ++tally.not_served;
    } else {
      failed(graph.error().message);
    }
    return;
  }
  if (auto status = simplify(*graph); !status.ok()) return failed(status.error().message);
  std::vector<InputBinding> bindings;
  const std::vector<bool> needed = inputs_needed_by_value(*graph);
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const auto value = read_pb(*data / ("input_" + std::to_string(i) + ".pb"));
    if (!value) {
      ++tally.not_served;
      return;
    }
    bindings.push_back({value->shape, needed[i] ? value : std::nullopt});
  }
  auto bound = sparkle::bind(*graph, bindings);
  if (!bound.ok()) {
    if (bound.error().reason != Reason::operator_not_served) return failed(bound.error().message);
    ++tally.not_served;
    ++tally.why[bound.error().message.substr(0, 160)];
    return;
  }
  const auto compare = [&](const Graph& g, const char* when) {
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      const auto stored = read_pb(*data / ("output_" + std::to_string(i) + ".pb"));
      const GraphTensor& t = g.tensor(g.outputs[i]);
      if (stored && (stored->shape != t.shape || stored->dtype != t.dtype))
        failed(std::string(when) + ": output '" + t.name + "' is " + std::string(name_of(t.dtype)) + " " + t.shape.to_string() +
               ", stored is " + std::string(name_of(stored->dtype)) + " " + stored->shape.to_string());
    }
    for (const GraphTensor& t : g.tensors)
      if (!t.known) failed(std::string(when) + ": tensor '" + t.name + "' has no shape");
  };
  compare(*bound, "bound");
  if (auto status = simplify(*bound); !status.ok()) return failed(status.error().message);
  compare(*bound, "simplified");
  for (InputBinding& binding : bindings) binding.value.reset();
  bool by_value = false;
  for (bool n : needed) by_value = by_value || n;
  if (!by_value) {
    const auto again = sparkle::bind(*bound, bindings);
    if (!again.ok()) return failed("bound again: " + again.error().message);
    compare(*again, "bound again");
    if (to_text(*again) != to_text(*bound)) failed("binding again changes the graph");
  }
  ++tally.bound;
}

void report(const Tally& tally, const std::string& what) {
  for (const auto& [why, count] : tally.why) std::printf("%4d  %s\n", count, why.c_str());
  std::printf("%s: %d bound, %d not served, %zu failed\n", what.c_str(), tally.bound, tally.not_served, tally.failures.size());
  for (const std::string& failure : tally.failures) ADD_FAILURE() << failure;
}

TEST(BindModels, TestVectors) {
  Tally tally;
  for (const auto& entry : fs::directory_iterator(kSource / "tests" / "vectors"))
    if (entry.is_directory()) check(entry.path(), tally);
  report(tally, "tests/vectors");
  EXPECT_GT(tally.bound, 100);
}

TEST(BindModels, Conformance) {
  const fs::path root = kSource / ".." / "shared" / "data" / "onnx-conformance";
  if (!fs::exists(root)) GTEST_SKIP() << "no ../shared/data/onnx-conformance beside the source tree";
  for (const auto& group : fs::directory_iterator(root)) {
    if (!group.is_directory()) continue;
    Tally tally;
    for (const auto& entry : fs::directory_iterator(group.path()))
      if (entry.is_directory()) check(entry.path(), tally);
    report(tally, group.path().filename().string());
  }
}

TEST(BindModels, Networks) {
  const fs::path root = kSource / ".." / "shared" / "data" / "models";
  if (!fs::exists(root)) GTEST_SKIP() << "no ../shared/data/models beside the source tree";
  Tally tally;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory()) check(entry.path(), tally);
  report(tally, "models");
}

}  // namespace
}  // namespace sparkle
