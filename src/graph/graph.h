// Graph: a model as numbered tensors and operators in topological order. Device-free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "families/gemm/stored_weights.h"
#include "graph/ops.h"

namespace sparkle {

using TensorId = int;                    // index into Graph::tensors
inline constexpr TensorId kAbsent = -1;  // an optional input that is not given

struct GraphTensor {
  std::string name;
  DType dtype = DType::f32;
  bool known = false;  // shape is known (rank and sizes); else `shape` holds -1 for unknown sizes
  bool rank_known = false;
  Dims shape;
  std::vector<std::string> axis_names;  // "N", "batch_size" for symbolic sizes of graph inputs and outputs; may be empty
  bool open = false;                    // axis 0 is the most that there can be: the data tells how many, the other rows hold -1
  std::optional<HostTensor> constant;   // weights, and whatever folding made known
  std::optional<WeightFit> fit{};       // of a constant whose values are elsewhere, in types of 16 bits
};

struct Op {
  std::string name;  // the node's name in the model, or "Conv_12" where it has none
  std::string type;  // the operator as the model calls it: "Conv", "com.microsoft.QLinearAdd"
  OpParams params;
  std::vector<TensorId> inputs, outputs;
};

// What a model says of one of its outputs.
struct DeclaredOutput {
  std::optional<DType> dtype;
  bool rank_known = false;
  Dims shape;  // -1 where it says no size
};

// What folding may still cost a graph before its run: a few operators could ask for any number of large constants, or for hours
// of computing. Bytes of new constants; work in elements read and written. 2^30 of them are some seconds of plain loops. What a
// model file holds itself is added by its reader: large models may have their weights moved about.
struct FoldingLimit {
  int64_t bytes = int64_t{1} << 30, work = int64_t{1} << 30;
};

struct Graph {
  std::string name;
  int64_t opset = 0;
  std::vector<GraphTensor> tensors;
  std::vector<Op> ops;  // topological order
  std::vector<TensorId> inputs, outputs;
  // Of the outputs, in their order, where a model file declares them: bind() refuses types that are really others, and says
  // which sizes are. Else empty.
  std::vector<DeclaredOutput> declared;
  FoldingLimit folding;

  const GraphTensor& tensor(TensorId id) const { return tensors[static_cast<size_t>(id)]; }
  GraphTensor& tensor(TensorId id) { return tensors[static_cast<size_t>(id)]; }
  TensorId add(GraphTensor tensor) {
    tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(tensors.size()) - 1;
  }
  TensorId add_constant(std::string tensor_name, HostTensor value);
};

// What is given for one graph input: its shape, and its value where shapes depend on it (see inputs_needed_by_value).
struct InputBinding {
  Dims shape;
  std::optional<HostTensor> value;
};

// Exact rewrites that need no shapes: constants folded, BatchNormalization and Pad into Conv, Sigmoid*x to SiLU, Erf chains to
// GELU, Identity and Dropout dropped, dead operators removed ... Call once after reading, and again after bind().
Status simplify(Graph& graph);

// Whether the value of input i of an operator decides shapes or attributes.
bool decides_by_value(const OpParams& params, size_t i);
// True per graph input whose value decides a shape or an attribute (Reshape's shape, Slice's starts, Resize's scales ...).
std::vector<bool> inputs_needed_by_value(const Graph& graph);

// The graph for these inputs (one binding per graph input, in order): all shapes known, attributes resolved, everything that
// depends on constants and shapes alone folded. Errors name the node: bad_shape, bad_input, bad_model, operator_not_served.
Result<Graph> bind(const Graph& graph, const std::vector<InputBinding>& inputs);

// Plain evaluation of one operator on constants of any type: the engine of folding. Its cost is taken off `left`. Errors:
// operator_not_served, also where it costs more.
Result<std::vector<HostTensor>> evaluate(const Op& op, const std::vector<const HostTensor*>& inputs, FoldingLimit& left);
Result<std::vector<HostTensor>> evaluate(const Op& op, const std::vector<const HostTensor*>& inputs);

// "conv1 Conv [1x3x224x224, 64x3x7x7] -> [1x64x112x112]" per line: for tests and explain.
std::string to_text(const Graph& graph);

}  // namespace sparkle
