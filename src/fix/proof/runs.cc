#include "fix/proof/runs.h"

#include <cmath>
#include <random>
#include <set>

#include "families/values/element.h"

namespace sparkle::fix {

Result<Runner> Runner::open(const Document& doc, std::shared_ptr<Backend> backend, const std::vector<std::string>& within,
                            const SessionOptions& options) {
  SPARKLE_TRY(graph, doc.to_graph());
  Runner runner;
  for (TensorId id : graph.outputs) runner.names_.push_back(graph.tensor(id).name);
  runner.outputs_ = graph.outputs.size();
  std::map<std::string, TensorId> ids;
  std::set<TensorId> made, asked(graph.outputs.begin(), graph.outputs.end());
  for (const Op& op : graph.ops)
    for (TensorId id : op.outputs)
      if (id != kAbsent) made.insert(id);
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (!graph.tensors[t].name.empty()) ids.emplace(graph.tensors[t].name, static_cast<TensorId>(t));
  for (const std::string& name : within) {
    const auto at = ids.find(name);
    if (at == ids.end() || !made.contains(at->second) || !asked.insert(at->second).second) continue;
    runner.names_.push_back(name);
    graph.outputs.push_back(at->second);
    if (!graph.declared.empty()) graph.declared.push_back({});
  }
  SPARKLE_TRY(session, Session::open(std::move(graph), std::move(backend), options));
  runner.session_ = std::move(session);
  return runner;
}

namespace {

// Integers of 16 bits and more may be indices, of which small ones exist.
double random_value(DType type, std::mt19937_64& random, std::normal_distribution<float>& normal) {
  if (type == DType::f8e8m0) return std::exp2(static_cast<double>(random() % 8) - 4);  // powers of two alone
  if (is_float(type) || is_narrow_float(type)) return static_cast<double>(normal(random));
  const auto below = [&](uint64_t count) { return static_cast<double>(random() % count); };
  if (type == DType::boolean) return below(2);
  if (type == DType::u16 || type == DType::i16) return below(256);
  if (type == DType::u8) return below(256);
  if (type == DType::i8) return below(256) - 128;
  if (is_narrow_integer(type)) {
    const int64_t bits = stored_bits(type);
    const bool has_sign = type == DType::i4 || type == DType::i2;
    return below(uint64_t{1} << bits) - (has_sign ? static_cast<double>(int64_t{1} << (bits - 1)) : 0);
  }
  return below(8);
}

}  // namespace

std::vector<HostTensor> random_inputs(const Graph& graph, const std::vector<InputBinding>& bindings, uint64_t seed) {
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const GraphTensor& t = graph.tensor(graph.inputs[i]);
    std::mt19937_64 random(seed + 1000 * i);
    std::normal_distribution<float> normal;
    HostTensor value = HostTensor::zeros(t.dtype, bindings[i].shape);
    for (int64_t e = 0; e < value.elements(); ++e)
      store_element(t.dtype, random_value(t.dtype, random, normal), value.bytes.get() + e * size_of(t.dtype));
    inputs.push_back(std::move(value));
  }
  return inputs;
}

}  // namespace sparkle::fix
