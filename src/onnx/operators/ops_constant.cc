// Constants and the operators about shapes that constant folding removes; and the look-up over all themes.
#include <unordered_map>

#include "families/values/element.h"
#include "onnx/node.h"
#include "onnx/tensor_proto.h"

namespace sparkle {
namespace {

template <class T, class V>
void define_list(Node& node, DType type, const std::vector<V>& values) {
  HostTensor tensor = HostTensor::zeros(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) tensor.data<T>()[i] = static_cast<T>(values[i]);
  node.define(std::move(tensor));
}

OpParams read_constant(Node& node) {
  if (::onnx::TensorProto* proto = node.tensor("value")) {
    auto value = take_tensor(*proto, "its value", node.import().folder, node.import().external());
    if (value.ok()) {
      node.define(std::move(value).value());
    } else if (value.error().reason == Reason::type_not_served) {
      return UnknownOp{"its attribute 'value' has element type " + onnx_type_name(proto->data_type())};
    } else {
      node.fail(value.error());
    }
  } else if (node.has("value_float")) {
    node.define(HostTensor::of(DType::f32, {}, std::vector<float>{static_cast<float>(node.real("value_float", 0))}));
  } else if (node.has("value_floats")) {
    define_list<float>(node, DType::f32, node.reals("value_floats"));
  } else if (node.has("value_int")) {
    node.define(HostTensor::of(DType::i64, {}, std::vector<int64_t>{node.integer("value_int", 0)}));
  } else if (node.has("value_ints")) {
    define_list<int64_t>(node, DType::i64, node.integers("value_ints"));
  } else if (const std::string name = node.unread_attribute(); !name.empty()) {
    return UnknownOp{"its attribute '" + name + "' is no numeric tensor"};
  } else {
    node.fail(Reason::bad_model, "has no value");
  }
  return {};
}

OpParams read_constant_of_shape(Node& node) {
  ConstantOfShapeOp op;
  ::onnx::TensorProto* proto = node.tensor("value");
  if (!proto) return op;
  auto value = take_tensor(*proto, "its value", node.import().folder, node.import().external());
  if (!value.ok()) {
    node.fail(value.error());
    return op;
  }
  if (value->elements() != 1) {
    node.fail(Reason::bad_model, "has a value of " + std::to_string(value->elements()) + " elements where one is wanted");
    return op;
  }
  op.dtype = value->dtype;
  op.value = load_element(op.dtype, value->bytes.get());
  // Exactness: integers beyond 2^53 do not pass through the parameter.
  if ((op.dtype == DType::i64 || op.dtype == DType::u64) && !(op.value < 0x1p53 && op.value > -0x1p53))
    return UnknownOp{"its attribute 'value' cannot be kept exactly"};
  return op;
}

OpParams read_shape(Node& node) {
  ShapeOp op{node.integer("start", 0), {}};
  if (node.has("end")) op.end = node.integer("end", 0);
  return op;
}
OpParams read_size(Node&) { return SizeOp{}; }
OpParams read_range(Node&) { return RangeOp{}; }

constexpr OperatorRow kRows[] = {
    {"Constant", read_constant, 0}, {"ConstantOfShape", read_constant_of_shape, 1},
    {"Shape", read_shape, 1},       {"Size", read_size, 1},
    {"Range", read_range, 3},
};
}  // namespace

std::span<const OperatorRow> constant_operators() { return kRows; }

std::vector<std::span<const OperatorRow>> operator_themes() {
  return {window_operators(),   pointwise_operators(), normalize_operators(), attention_operators(),
          reduce_operators(),   quantize_operators(),  shape_operators(),     index_operators(),
          resize_operators(),   sample_operators(),    constant_operators(),  control_operators(),
          sequence_operators(), recurrent_operators(), composed_operators(),  signal_operators()};
}

const OperatorRow* find_operator(std::string_view domain, std::string_view type) {
  if (!domain.empty() && domain != "ai.onnx" && domain != "com.microsoft") return nullptr;
  static const auto* const table = [] {
    auto* rows = new std::unordered_map<std::string_view, const OperatorRow*>;
    for (const auto& theme : operator_themes())
      for (const OperatorRow& row : theme) rows->emplace(row.type, &row);
    return rows;
  }();
  const std::string qualified = domain == "com.microsoft" ? "com.microsoft." + std::string(type) : std::string(type);
  const auto at = table->find(qualified);
  return at == table->end() ? nullptr : at->second;
}

}  // namespace sparkle
