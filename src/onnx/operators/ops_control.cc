// Operators with graphs in their attributes, and those whose results' shapes only the data tells: the host runs them between
// the parts of a model (HostOp in graph/ops.h).
#include <algorithm>

#include "onnx/node.h"

namespace sparkle {
namespace {

OpParams read_if(Node& node) {
  HostOp op;
  op.kind = HostKind::branch, op.own = 1;
  node.inputs.resize(1);
  if (!node.body("then_branch", op) || !node.body("else_branch", op)) return op;
  for (const auto& body : op.bodies)
    if (body->outputs.size() < node.outputs.size())
      node.fail(Reason::bad_model, "has " + std::to_string(node.outputs.size()) + " outputs, but a branch of it has " +
                                       std::to_string(body->outputs.size()));
  return op;
}

OpParams read_loop(Node& node) {
  HostOp op;
  op.kind = HostKind::loop;
  node.inputs.resize(std::max<size_t>(node.inputs.size(), 2), kAbsent);
  op.own = static_cast<int64_t>(node.inputs.size());
  for (int i = 2; i < static_cast<int>(op.own); ++i)
    if (!node.given(i)) node.fail(Reason::bad_model, "lacks its input " + std::to_string(i));
  if (!node.body("body", op)) return op;
  const Graph& body = *op.bodies[0];
  const size_t read = node.inputs.size() - static_cast<size_t>(op.own);
  const size_t states = static_cast<size_t>(op.own) - 2;
  if (body.inputs.size() - read != states + 2)
    node.fail(Reason::bad_model, "carries " + std::to_string(states) + " values on, but its body has " +
                                     std::to_string(body.inputs.size() - read) + " inputs where " + std::to_string(states + 2) +
                                     " belong");
  else if (body.outputs.size() < states + 1 || node.outputs.size() > body.outputs.size() - 1)
    node.fail(Reason::bad_model, "has " + std::to_string(node.outputs.size()) + " outputs and carries " +
                                     std::to_string(states) + " values on, but its body has " +
                                     std::to_string(body.outputs.size()) + " outputs");
  return op;
}

bool axes_fit(const std::vector<int64_t>& list, size_t count) { return list.empty() || list.size() == count; }

OpParams read_scan(Node& node) {
  if (node.opset < 9) return UnknownOp{"its form of opset 8, with a batch of its own, is not supported"};
  HostOp op;
  op.kind = HostKind::scan;
  op.own = static_cast<int64_t>(node.inputs.size());
  op.scanned = node.integer("num_scan_inputs", 0);
  op.in_axes = node.integers("scan_input_axes"), op.out_axes = node.integers("scan_output_axes");
  op.in_backwards = node.integers("scan_input_directions"), op.out_backwards = node.integers("scan_output_directions");
  for (int i = 0; i < static_cast<int>(op.own); ++i)
    if (!node.given(i)) node.fail(Reason::bad_model, "lacks its input " + std::to_string(i));
  if (op.scanned < 1 || op.scanned > op.own) {
    node.fail(Reason::bad_model,
              "says that " + std::to_string(op.scanned) + " of its " + std::to_string(op.own) + " inputs are cut into slices");
    return op;
  }
  if (!node.body("body", op)) return op;
  const Graph& body = *op.bodies[0];
  const size_t formals = body.inputs.size() - (node.inputs.size() - static_cast<size_t>(op.own));
  const auto states = static_cast<size_t>(op.own - op.scanned);
  if (formals != static_cast<size_t>(op.own) || body.outputs.size() < states || node.outputs.size() > body.outputs.size())
    node.fail(Reason::bad_model, "has " + std::to_string(op.own) + " inputs and " + std::to_string(node.outputs.size()) +
                                     " outputs, but its body has " + std::to_string(formals) + " and " +
                                     std::to_string(body.outputs.size()));
  else if (const size_t stacked = body.outputs.size() - states;
           !axes_fit(op.in_axes, static_cast<size_t>(op.scanned)) || !axes_fit(op.out_axes, stacked) ||
           !axes_fit(op.in_backwards, static_cast<size_t>(op.scanned)) || !axes_fit(op.out_backwards, stacked))
    node.fail(Reason::bad_model, "gives axes or directions for another number of tensors than it scans");
  return op;
}

template <HostKind kKind>
OpParams read_plain(Node& node) {
  HostOp op;
  op.kind = kKind, op.own = static_cast<int64_t>(node.inputs.size());
  return op;
}

template <HostKind kKind>
OpParams read_along(Node& node) {
  HostOp op;
  op.kind = kKind, op.own = static_cast<int64_t>(node.inputs.size());
  if (node.has("axis")) op.axis = node.integer("axis", 0);
  if (kKind == HostKind::unique) op.sorted = node.flag("sorted", true);
  return op;
}

OpParams read_roi_align(Node& node) {
  HostOp op;
  op.kind = HostKind::roi_align, op.own = 3;
  const std::string mode = node.text("mode", "avg");
  if (mode != "avg" && mode != "max") return UnknownOp{"its attribute 'mode' is '" + mode + "'"};
  op.average = mode == "avg";
  const std::string transform =
      node.text("coordinate_transformation_mode", node.opset < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    return UnknownOp{"its attribute 'coordinate_transformation_mode' is '" + transform + "'"};
  op.half_pixel = transform == "half_pixel";
  op.height = node.integer("output_height", 1), op.width = node.integer("output_width", 1);
  op.samples = node.integer("sampling_ratio", 0);
  op.scale = node.real("spatial_scale", 1);
  constexpr int64_t kMost = 4096;
  if (op.height < 1 || op.width < 1 || op.height > kMost || op.width > kMost || op.samples < 0 || op.samples > kMost)
    node.fail(Reason::bad_model, "makes " + std::to_string(op.height) + "x" + std::to_string(op.width) + " cells of " +
                                     std::to_string(op.samples) +
                                     " samples; 1 to 4096 (0 samples: as many as fit) are supported");
  return op;
}

OpParams read_bit_shift(Node& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return UnknownOp{"its attribute 'direction' is '" + direction + "'"};
  HostOp op;
  op.kind = direction == "LEFT" ? HostKind::shift_left : HostKind::shift_right, op.own = 2;
  return op;
}

// Other bits than those of x: an exclusive or with all of them.
OpParams read_bitwise_not(Node& node) {
  const TensorId ones =
      node.import().graph.add_constant(node.name() + ":ones", HostTensor::of(DType::i64, {}, std::vector<int64_t>{-1}));
  node.inputs = {node.inputs[0], node.step(CastOp{}, {ones, node.inputs[0]})};
  HostOp op;
  op.kind = HostKind::bit_xor, op.own = 2;
  return op;
}

OpParams read_bit_cast(Node& node) {
  HostOp op;
  op.kind = HostKind::bit_cast, op.own = 1;
  const int to = static_cast<int>(std::clamp<int64_t>(node.integer("to", 0), 0, 1000));
  const auto type = dtype_from_onnx(to);
  if (!type) return UnknownOp{"its attribute 'to' is " + onnx_type_name(to)};
  op.dtype = *type;
  return op;
}

constexpr OperatorRow kControl[] = {
    {"If", read_if, 1},
    {"Loop", read_loop, 0},
    {"Scan", read_scan, 0},
    {"NonZero", read_plain<HostKind::non_zero>, 1},
    {"Compress", read_along<HostKind::compress>, 2},
    {"Unique", read_along<HostKind::unique>, 1},
    {"RoiAlign", read_roi_align, 3},
    {"BitwiseAnd", read_plain<HostKind::bit_and>, 2},
    {"BitwiseOr", read_plain<HostKind::bit_or>, 2},
    {"BitwiseXor", read_plain<HostKind::bit_xor>, 2},
    {"BitwiseNot", read_bitwise_not, 1},
    {"BitShift", read_bit_shift, 2},
    {"BitCast", read_bit_cast, 1},
    {"Det", read_plain<HostKind::determinant>, 1},
};

OpParams read_sequence_empty(Node& node) {
  HostOp op;
  op.kind = HostKind::sequence_empty;
  const int64_t type = node.integer("dtype", 1);
  const auto known = dtype_from_onnx(static_cast<int>(std::clamp<int64_t>(type, 0, 1000)));
  if (!known)
    return UnknownOp{"its attribute 'dtype' is " + onnx_type_name(static_cast<int>(std::clamp<int64_t>(type, 0, 1000)))};
  op.dtype = *known;
  return op;
}

OpParams read_split_to_sequence(Node& node) {
  HostOp op;
  op.kind = HostKind::split_to_sequence, op.own = static_cast<int64_t>(node.inputs.size());
  op.axis = node.integer("axis", 0);
  op.keep_axis = node.flag("keepdims", true) || node.given(1);
  return op;
}

OpParams read_concat_from_sequence(Node& node) {
  HostOp op;
  op.kind = HostKind::concat_from_sequence, op.own = 1;
  if (!node.has("axis")) node.fail(Reason::bad_model, "lacks its attribute 'axis'");
  op.axis = node.integer("axis", 0);
  op.keep_axis = !node.flag("new_axis", false);
  return op;
}

constexpr OperatorRow kSequences[] = {
    {"SequenceConstruct", read_plain<HostKind::sequence_construct>, 1},
    {"SequenceEmpty", read_sequence_empty, 0},
    {"SequenceAt", read_plain<HostKind::sequence_at>, 2},
    {"SequenceInsert", read_plain<HostKind::sequence_insert>, 2},
    {"SequenceErase", read_plain<HostKind::sequence_erase>, 1},
    {"SequenceLength", read_plain<HostKind::sequence_length>, 1},
    {"SplitToSequence", read_split_to_sequence, 1},
    {"ConcatFromSequence", read_concat_from_sequence, 1},
};

}  // namespace

std::span<const OperatorRow> control_operators() { return kControl; }
std::span<const OperatorRow> sequence_operators() { return kSequences; }

}  // namespace sparkle
