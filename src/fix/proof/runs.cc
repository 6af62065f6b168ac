#include "fix/proof/runs.h"

#include <random>
#include <set>

#include "base/half_floats.h"

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

std::vector<HostTensor> random_inputs(const Graph& graph, const std::vector<InputBinding>& bindings, uint64_t seed) {
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const GraphTensor& t = graph.tensor(graph.inputs[i]);
    std::mt19937_64 random(seed + 1000 * i);
    std::normal_distribution<float> normal;
    HostTensor value = HostTensor::zeros(t.dtype, bindings[i].shape);
    for (int64_t e = 0; e < value.elements(); ++e) {
      const float v = normal(random);
      if (t.dtype == DType::f32) value.data<float>()[e] = v;
      else if (t.dtype == DType::f64) value.data<double>()[e] = static_cast<double>(v);
      else if (t.dtype == DType::f16) value.data<uint16_t>()[e] = float_to_half(v);
      else if (t.dtype == DType::bf16) value.data<uint16_t>()[e] = float_to_bfloat16(v);
      else if (t.dtype == DType::i64) value.data<int64_t>()[e] = static_cast<int64_t>(random() % 8);
      else if (t.dtype == DType::i32) value.data<int32_t>()[e] = static_cast<int32_t>(random() % 8);
      else if (t.dtype == DType::boolean) value.data<uint8_t>()[e] = static_cast<uint8_t>(random() % 2);
      else if (t.dtype == DType::u8 || t.dtype == DType::i8) value.data<uint8_t>()[e] = static_cast<uint8_t>(random());
      else if (t.dtype == DType::u16 || t.dtype == DType::i16)
        value.data<uint16_t>()[e] = static_cast<uint16_t>(random() % 256);
      else if (t.dtype == DType::u32) value.data<uint32_t>()[e] = static_cast<uint32_t>(random() % 8);
      else if (t.dtype == DType::u64) value.data<uint64_t>()[e] = random() % 8;
    }
    inputs.push_back(std::move(value));
  }
  return inputs;
}

}  // namespace sparkle::fix
