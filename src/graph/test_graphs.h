// Small graphs for the tests of graph/: built in a line each.
#pragma once

#include <gtest/gtest.h>

#include "graph/graph.h"

namespace sparkle::testing {

struct GraphBuilder {
  Graph graph;

  TensorId input(const Dims& shape, DType type = DType::f32) {
    GraphTensor t;
    t.name = "x" + std::to_string(graph.inputs.size());
    t.dtype = type;
    t.shape = shape;
    t.rank_known = t.known = true;
    for (int64_t size : shape) t.known = t.known && size >= 0;
    graph.inputs.push_back(graph.add(t));
    return graph.inputs.back();
  }
  TensorId floats(const Dims& shape, std::vector<float> values) {
    return graph.add_constant("c" + std::to_string(graph.tensors.size()), HostTensor::of(DType::f32, shape, values));
  }
  TensorId ints(std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return graph.add_constant("c" + std::to_string(graph.tensors.size()), HostTensor::of(DType::i64, {count}, values));
  }
  TensorId weights(const Dims& shape, float start = 0.5f) {
    std::vector<float> values(static_cast<size_t>(shape.product()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = start + 0.25f * static_cast<float>(i % 7) - 0.125f * static_cast<float>(i % 3);
    return floats(shape, values);
  }
  std::vector<TensorId> many(std::string type, OpParams params, std::vector<TensorId> inputs, int outputs) {
    Op op;
    op.name = "n" + std::to_string(graph.ops.size());
    op.type = std::move(type);
    op.params = std::move(params);
    op.inputs = std::move(inputs);
    for (int i = 0; i < outputs; ++i) {
      GraphTensor t;
      t.name = op.name + "_out" + (outputs > 1 ? std::to_string(i) : "");
      op.outputs.push_back(graph.add(t));
    }
    graph.ops.push_back(op);
    return op.outputs;
  }
  TensorId op(std::string type, OpParams params, std::vector<TensorId> inputs) {
    return many(std::move(type), std::move(params), std::move(inputs), 1)[0];
  }
  TensorId pointwise(PointwiseOp kind, std::vector<TensorId> inputs, double a = 0, double b = 0) {
    return op(std::string(name_of(kind)), PointwiseNode{kind, a, b}, std::move(inputs));
  }
  Graph& done(TensorId output) {
    graph.outputs = {output};
    return graph;
  }
  // Bound with the declared shapes.
  Result<Graph> bound(std::vector<TensorId> outputs) {
    graph.outputs = std::move(outputs);
    std::vector<InputBinding> bindings;
    for (TensorId id : graph.inputs) bindings.push_back({graph.tensor(id).shape, std::nullopt});
    return sparkle::bind(graph, bindings);
  }
  // The inferred shape of an output as text, or the error's sentence.
  std::string shape(TensorId output) {
    const auto g = bound({output});
    return g.ok() ? g->tensor(g->outputs[0]).shape.to_string() : g.error().message;
  }
};

}  // namespace sparkle::testing
