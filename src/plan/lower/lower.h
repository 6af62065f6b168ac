// Lowering: groups of operators become draft steps on values with layouts. Window operators read and write channels last; what
// is only a change of view (reshape, transpose, slice, split, expand) makes no step; copies appear where layouts cannot be
// avoided.
#pragma once

#include "families/pointwise/pointwise.h"
#include "plan/draft.h"
#include "plan/fuse/fuse.h"
#include "plan/lower/float8.h"

namespace sparkle {

struct Lowering {
  const Graph& graph;
  Draft draft;
  std::vector<int> value_of;  // tensor -> draft value in the tensor's own type, -1 while it has none
  std::vector<int> wide_of;   // f16 and bf16 tensors -> their value in f32, -1 while they have none
  const Device& device;
  Float8Products float8;
  DType kept = DType::f32;  // f16 or bf16: what the kernels of the group that is being lowered read and write as it is

  // The value of a tensor in its own type; constants get theirs at first use. What exists in f32 only is converted by a step.
  int value(TensorId id);
  // The value in the type that kernels read: f16 and bf16 tensors in f32, converted by a step or, constants, here and now;
  // as they are where the group's kernels take them.
  int computed(TensorId id);
  // Whichever exists without a conversion: for what reads all types.
  int either(TensorId id) { return has_own(id) ? value(id) : computed(id); }
  bool has_own(TensorId id) const;
  // The type of what such kernels write for a tensor of this type.
  DType computed_type(DType type) const;
  // Whether `result` has 16 bits, some of these tensors, beside constants, exist in it, and a step of this family can write it
  // from all of them.
  bool in_16_bits(Family family, const std::vector<TensorId>& ids, DType result) const;
  bool is_output(TensorId id) const;
  const Op& op(const Group& group) const { return graph.ops[static_cast<size_t>(group.ops.back())]; }
  const GraphTensor& result(const Group& group) const { return graph.tensor(group.output); }
  std::vector<std::string> nodes(const Group& group) const;
  // The value computed for a tensor: in its own type, or in f32 where that is f16 or bf16.
  void set(TensorId id, int v);
};

// Errors: operator_not_served, type_not_served naming the node.
Result<Draft> lower(const Graph& graph, const std::vector<Group>& groups, const Device& device);

// By theme; each serves the alternatives of OpParams that its file lists and returns false for others.
Status lower_anchor(Lowering& l, const Group& group);
Status lower_pointwise(Lowering& l, const Group& group);
Result<bool> lower_window(Lowering& l, const Group& group);    // pool, resize, local response
Result<bool> lower_normal(Lowering& l, const Group& group);    // normalisations, softmax, reduce
Result<bool> lower_quantize(Lowering& l, const Group& group);  // operators on quantised tensors
Result<bool> lower_view(Lowering& l, const Group& group);      // reshape, transpose, slice, split, expand
Result<bool> lower_movement(Lowering& l, const Group& group);  // concat, pad, gather, tile, depth-to-space, cast
Result<bool> lower_index(Lowering& l, const Group& group);     // arg, top-k, gather and scatter by places, cumsum, trilu, boxes
Result<bool> lower_attention(Lowering& l, const Group& group);  // attention, rotary embedding
Result<bool> lower_sample(Lowering& l, const Group& group);     // grid sample, deformable convolution
// The operators of lower_index serve all types that their inference lets through.
bool is_index_operator(const Op& op);
// The caller's outputs: where a value is dense, row-major and alone in its buffer it is written in place, else copied.
void lower_outputs(Lowering& l);

// A convolution's sizes. Errors: operator_not_served where its rank is not 1 to 3.
Result<Problem> conv_problem(const Lowering& l, const Op& op, const ConvOp& conv);
// A matrix product with the batch axes of numpy's rules: a and b are brought to one rank of at least 2, a batch that only a has
// (b one matrix) joins the rows where memory allows. `shape` is that of the product inside the step.
struct MatrixProduct {
  Problem problem;
  int a, b;
  Dims shape;
};
MatrixProduct matrix_product(Draft& d, int a, int b, const MatMulOp& matmul);

// A pointwise step of one program over values that are broadcast to `shape`; returns its output value.
int pointwise_step(Lowering& l, const std::string& name, std::vector<std::string> nodes, const PointwiseParams& program,
                   const std::vector<int>& operands, DType dtype, const Dims& shape);

}  // namespace sparkle
