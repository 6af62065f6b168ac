// Every model at hand is read, simplified and bound to the shapes of its stored inputs; the inferred types and shapes of its
// outputs are compared with the stored outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "graph/graph.h"
#include "graph/infer/known_types.h"
#include "graph/evaluate/values.h"
#include "onnx/reader.h"
#include "onnx/tensor_proto.h"
#include "plan/lower/supported.h"

namespace sparkle {
namespace {
namespace fs = std::filesystem;

const fs::path kSource = SPARKLE_SOURCE_DIR;

struct Tally {
  int bound = 0, unsupported = 0;
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
      ++tally.unsupported;
    } else {
      failed(graph.error().message);
    }
    return;
  }
  for (const Refusal& r :
       unsupported(*graph))  // of operators and types that are not supported, as binding and planning say too
    if (r.reason == Reason::bad_model) failed("refused: '" + r.name + "' (" + r.type + "): " + r.why);
  if (auto status = simplify(*graph); !status.ok()) return failed(status.error().message);
  std::vector<InputBinding> bindings;
  const std::vector<bool> needed = inputs_needed_by_value(*graph);
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const auto value = read_pb(*data / ("input_" + std::to_string(i) + ".pb"));
    if (!value) {
      ++tally.unsupported;
      return;
    }
    bindings.push_back({value->shape, needed[i] ? value : std::nullopt});
  }
  auto bound = sparkle::bind(*graph, bindings);
  if (!bound.ok()) {
    if (bound.error().reason != Reason::operator_not_served) return failed(bound.error().message);
    ++tally.unsupported;
    ++tally.why[bound.error().message.substr(0, 160)];
    return;
  }
  const auto compare = [&](const Graph& g, const char* when) {
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      const auto stored = read_pb(*data / ("output_" + std::to_string(i) + ".pb"));
      const GraphTensor& t = g.tensor(g.outputs[i]);
      // The data decides how many rows NonMaxSuppression finds; the graph holds the most there can be.
      Dims shape = t.shape;
      if (stored && t.open && stored->shape[0] <= shape[0]) shape[0] = stored->shape[0];
      if (stored && (stored->shape != shape || stored->dtype != t.dtype))
        failed(std::string(when) + ": output '" + t.name + "' is " + std::string(name_of(t.dtype)) + " " + t.shape.to_string() +
               ", stored is " + std::string(name_of(stored->dtype)) + " " + stored->shape.to_string());
    }
    for (const GraphTensor& t : g.tensors)
      if (!t.known) failed(std::string(when) + ": tensor '" + t.name + "' has no shape");
  };
  compare(*bound, "bound");
  // Types that are known before any shape is are those that inference finds.
  const auto types = known_types(*graph);
  std::map<std::string, DType> known;
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i]) known[graph->tensors[i].name] = *types[i];
  for (const GraphTensor& t : bound->tensors)
    if (const auto at = known.find(t.name); at != known.end() && at->second != t.dtype)
      failed("tensor '" + t.name + "' is taken for " + std::string(name_of(at->second)) + ", but is " +
             std::string(name_of(t.dtype)));
  for (TensorId id : graph->outputs)
    if (!types[static_cast<size_t>(id)]) failed("the type of '" + graph->tensor(id).name + "' is not known without shapes");
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

// Folding: with every input given by value, outputs that become constants equal the stored ones.
void check_folding(const fs::path& folder, Tally& tally) {
  const auto model = model_in(folder);
  const auto data = data_in(folder);
  if (!model || !data) return;
  const auto graph = read_onnx(model->string());
  if (!graph.ok()) return;
  std::vector<InputBinding> bindings;
  for (size_t i = 0; i < graph->inputs.size(); ++i) {
    const auto value = read_pb(*data / ("input_" + std::to_string(i) + ".pb"));
    if (!value) return;
    bindings.push_back({value->shape, value});
  }
  const auto bound = sparkle::bind(*graph, bindings);
  if (!bound.ok()) return;
  for (size_t i = 0; i < bound->outputs.size(); ++i) {
    const auto& value = bound->tensor(bound->outputs[i]).constant;
    const auto stored = read_pb(*data / ("output_" + std::to_string(i) + ".pb"));
    if (!value || !stored) continue;
    ++tally.bound;
    const auto a = as_doubles(*value), b = as_doubles(*stored);
    double largest = 0, worst = 0;
    for (double v : b) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
    const double part = stored->dtype == DType::f16    ? 1e-3
                        : stored->dtype == DType::bf16 ? 8e-3
                        : is_float(stored->dtype)      ? 1e-5
                                                       : 0;
    for (size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
      if (a[k] == b[k] || (a[k] != a[k] && b[k] != b[k])) continue;
      const double excess = std::abs(a[k] - b[k]) - (part * largest + 1e2 * part * std::abs(b[k]));
      worst = excess <= 0 ? worst : std::max(worst, std::abs(a[k] - b[k]));
      if (!(excess <= 0) && worst == 0) worst = INFINITY;
    }
    if (a.size() != b.size() || worst > 0)
      tally.failures.push_back(folder.filename().string() + ": folded output differs from the stored one by " +
                               std::to_string(worst));
  }
}

void report(const Tally& tally, const std::string& what) {
  for (const auto& [why, count] : tally.why) std::printf("%4d  %s\n", count, why.c_str());
  std::printf("%s: %d bound, %d not supported, %zu failed\n", what.c_str(), tally.bound, tally.unsupported,
              tally.failures.size());
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

TEST(BindModels, FoldedValues) {
  for (const fs::path& root :
       {kSource / "tests" / "vectors", kSource / ".." / "shared" / "data" / "onnx-conformance" / "node"}) {
    if (!fs::exists(root)) continue;
    Tally tally;
    for (const auto& entry : fs::directory_iterator(root))
      if (entry.is_directory()) check_folding(entry.path(), tally);
    report(tally, "folded, " + root.filename().string());
  }
}

// Models whose weights are all ConstantOfShape lie beside their outputs, without inputs.
TEST(BindModels, LightModels) {
  const fs::path root = kSource / ".." / "shared" / "data" / "onnx-conformance" / "light";
  if (!fs::exists(root)) GTEST_SKIP() << "no ../shared/data/onnx-conformance beside the source tree";
  Tally tally;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.path().extension() != ".onnx") continue;
    const std::string name = entry.path().stem().string();
    auto graph = read_onnx(entry.path().string());
    const auto stored = read_pb(root / (name + "_output_0.pb"));
    const auto failed = [&](const std::string& what) { tally.failures.push_back(name + ": " + what); };
    if (!graph.ok()) {
      failed(graph.error().message);
      continue;
    }
    if (auto status = simplify(*graph); !status.ok()) failed(status.error().message);
    std::vector<InputBinding> bindings;
    for (TensorId id : graph->inputs) {
      Dims shape = graph->tensor(id).shape;
      for (int64_t& size : shape) size = size < 0 ? 1 : size;
      bindings.push_back({shape, {}});
    }
    auto bound = sparkle::bind(*graph, bindings);
    if (!bound.ok()) {
      failed(bound.error().message);
      continue;
    }
    ++tally.bound;
    for (const Op& op : bound->ops)
      if (std::holds_alternative<ConstantOfShapeOp>(op.params)) failed("'" + op.name + "' was not folded");
    if (stored && stored->shape != bound->tensor(bound->outputs[0]).shape)
      failed("output is " + bound->tensor(bound->outputs[0]).shape.to_string() + ", stored is " + stored->shape.to_string());
  }
  report(tally, "light");
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
