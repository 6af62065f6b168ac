// Draft: the plan while it is being made. Values are views of buffers; steps name values; layouts may still change (a part of a
// concatenation moves into its whole) until the stages are written out.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "plan/plan.h"

namespace sparkle {

struct DraftBuffer {
  PlaceKind kind = PlaceKind::arena;
  int index = 0;  // which input, output or constant
  int64_t elements = 0;
  DType dtype = DType::f32;
  std::optional<WeightFit> fit{};  // constants: in types of 16 bits, where it is known
  bool fixed = false;              // its place is settled: inputs, constants, outputs, buffers of concatenations being filled
};

struct DraftValue {
  std::string name;
  int buffer = 0;
  TensorDesc desc;
};

struct DraftStep {
  std::string name;
  std::vector<std::string> nodes;
  std::variant<Problem, StageParams> work;
  std::vector<int> inputs, outputs;  // values
  int anchor = -1;                   // the graph's operator whose sum this is
};

struct Draft {
  std::vector<DraftBuffer> buffers;
  std::vector<DraftValue> values;
  std::vector<DraftStep> steps;
  std::vector<PlanConstant> constants;
  std::vector<int> inputs, outputs;                   // values
  std::map<std::pair<int, std::string>, int> relaid;  // (value, layout) -> the copy already made

  DraftValue& value(int id) { return values[static_cast<size_t>(id)]; }
  const TensorDesc& desc(int id) const { return values[static_cast<size_t>(id)].desc; }
  DraftBuffer& buffer_of(int id) { return buffers[static_cast<size_t>(value(id).buffer)]; }

  // A new buffer holding one dense tensor whose axes lie in `order`.
  int make(const std::string& name, DType dtype, const Dims& shape, const Dims& order);
  // Another view of the same buffer.
  int view(int value, const TensorDesc& desc);
  int constant(const std::string& name, const HostTensor& tensor);
  // The tensor behind a constant value, or nullptr.
  const HostTensor* constant_of(int value);
  // The value in dense layout of this axis order: itself, a constant rearranged here and now, or the output of a copy step.
  int in_order(int value, const Dims& order, const std::string& why);
  // The value with channels (axis 1) at stride 1 and no broadcast or reversed axis: what window kernels read.
  int channels_innermost(int value);
  void step(const std::string& name, std::vector<std::string> nodes, std::variant<Problem, StageParams> work,
            std::vector<int> inputs, std::vector<int> outputs);
  // An anchor's problem on its operands as they finally lie.
  AnchorCall call_of(const DraftStep& step, const Problem& problem) const;
};

// Logical axes of a dense NHWC-like or row-major tensor of this rank.
Dims order_channels_last(int rank);
Dims order_row_major(int rank);

}  // namespace sparkle
