// Quantised operators. Their operands are brought into one order: tensors first, zero points and scales behind them.
#include "onnx/node.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {

// The element type that an attribute names by ONNX's number; nothing where it is 0 or not given.
std::optional<DType> named_type(Node& node, std::string_view name) {
  const int64_t number = node.integer(name, 0);
  if (number == 0) return std::nullopt;
  const auto type = dtype_from_onnx(static_cast<int>(number));
  if (!type)
    node.fail(Reason::type_not_served, "names element type " + std::to_string(number) + " in '" + std::string(name) + "'");
  return type;
}

OpParams read_quantize(Node& node) {
  QuantizeOp op;
  op.axis = node.integer("axis", 1);
  op.block = node.integer("block_size", 0);
  op.saturate = node.flag("saturate", true);
  if (const int64_t precision = node.integer("precision", 0); precision != 0 && precision != 1)
    return UnknownOp{"its division in another precision than float is not supported"};
  if (const auto type = named_type(node, "output_dtype")) op.to = *type;
  return op;
}

OpParams read_dequantize(Node& node) {
  DequantizeOp op;
  op.axis = node.integer("axis", 1);
  op.block = node.integer("block_size", 0);
  op.to = named_type(node, "output_dtype");
  return op;
}

OpParams read_dynamic(Node&) { return DynamicQuantizeOp{}; }

// The attributes of a convolution by the reader of Conv.
ConvOp read_window(Node& node) { return std::get<ConvOp>(find_operator("", "Conv")->read(node)); }

// x, w, zero points of x, w -> the order of ops.h.
void order_integer(Node& node) { node.inputs = {node.input(0), node.input(1), kAbsent, node.input(2), node.input(3)}; }
// x, scale, zero, w, scale, zero, y's scale, zero, bias.
void order_quantized(Node& node) {
  node.inputs = {node.input(0), node.input(3), node.input(8), node.input(2), node.input(5),
                 node.input(7), node.input(1), node.input(4), node.input(6)};
}

OpParams read_conv_integer(Node& node) {
  order_integer(node);
  return QuantizedConvOp{read_window(node), {}};
}
OpParams read_qlinear_conv(Node& node) {
  order_quantized(node);
  return QuantizedConvOp{read_window(node), {}};
}
OpParams read_matmul_integer(Node& node) {
  order_integer(node);
  return QuantizedMatMulOp{};
}
OpParams read_qlinear_matmul(Node& node) {
  order_quantized(node);
  return QuantizedMatMulOp{};
}

OpParams read_qlinear_add(Node&) { return QuantizedAddOp{}; }

OpParams read_qlinear_average(Node& node) { return QuantizedAverageOp{node.flag("channels_last", false)}; }

constexpr OperatorRow kRows[] = {
    {"QuantizeLinear", read_quantize, 2},
    {"DequantizeLinear", read_dequantize, 2},
    {"DynamicQuantizeLinear", read_dynamic, 1},
    {"ConvInteger", read_conv_integer, 2},
    {"QLinearConv", read_qlinear_conv, 8},
    {"MatMulInteger", read_matmul_integer, 2},
    {"QLinearMatMul", read_qlinear_matmul, 8},
    {"com.microsoft.QLinearAdd", read_qlinear_add, 7},
    {"com.microsoft.QLinearGlobalAveragePool", read_qlinear_average, 4},
};
}  // namespace

std::span<const OperatorRow> quantize_operators() { return kRows; }

}  // namespace sparkle
