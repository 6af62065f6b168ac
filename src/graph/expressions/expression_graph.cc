// Expressions as graphs: element types are settled by what meets (docs/expressions.md), shapes by broadcasting; numbers become
// constants of the type of what they meet, or parameters of an operation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "families/values/element.h"
#include "families/integers/integers.h"
#include "families/pointwise/arithmetic.h"
#include "families/type_set.h"
#include "graph/expressions/expression.h"
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

using Step = ExpressionStep;

// A step's value: a tensor of the graph, or a number that has no type yet.
struct Value {
  TensorId id = kAbsent;
  DType type = DType::f32;
  Dims shape;
  bool is_number = false;
  double number = 0;
};

bool is_integer(DType type) { return kIntegers.has(type); }
// The float in which integers are computed where they meet floats or functions.
DType float_for(DType type) { return size_of(type) >= 4 && is_integer(type) ? DType::f64 : DType::f32; }

// The type that two meet in; nothing where there is none.
std::optional<DType> common_type(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (is_float(a) && is_float(b)) return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
  if (is_float(a)) return float_for(b) == DType::f64 ? DType::f64 : a;
  if (is_float(b)) return float_for(a) == DType::f64 ? DType::f64 : b;
  if (kSignedIntegers.has(a) == kSignedIntegers.has(b)) return size_of(a) > size_of(b) ? a : b;
  const DType with_sign = kSignedIntegers.has(a) ? a : b, without = kSignedIntegers.has(a) ? b : a;
  if (size_of(with_sign) > size_of(without)) return with_sign;
  switch (without) {
    case DType::u8: return DType::i16;
    case DType::u16: return DType::i32;
    case DType::u32: return DType::i64;
    default: return std::nullopt;
  }
}

bool fits(double number, DType type) {
  if (number != std::trunc(number) || std::abs(number) > 9007199254740992.0) return false;
  const int bits = static_cast<int>(8 * size_of(type));
  return kSignedIntegers.has(type) ? number >= -std::ldexp(1.0, bits - 1) && number < std::ldexp(1.0, bits - 1)
                                   : number >= 0 && number < std::ldexp(1.0, bits);
}

// The type that a number and a tensor meet in: the tensor's, unless that cannot hold the number.
std::optional<DType> with_number(DType type, double number) {
  if (is_float(type)) return type;
  if (type == DType::boolean) return fits(number, DType::i32) ? DType::i32 : DType::f32;
  if (fits(number, type)) return type;
  if (number == std::trunc(number) && std::isfinite(number)) return std::nullopt;
  return float_for(type);
}

bool compares(PointwiseOp op) {
  return op == PointwiseOp::less || op == PointwiseOp::less_equal || op == PointwiseOp::greater ||
         op == PointwiseOp::greater_equal || op == PointwiseOp::equal;
}
bool is_logical(PointwiseOp op) {
  return op == PointwiseOp::logical_and || op == PointwiseOp::logical_or || op == PointwiseOp::logical_xor ||
         op == PointwiseOp::logical_not;
}

class Builder {
 public:
  Builder(const Expression& e, const std::vector<ExpressionOperand>& operands) : e_(e), operands_(operands) {
    graph_.name = "expression";
    graph_.opset = 21;
  }

  Result<Graph> build() {
    for (const Step& step : e_.steps) {
      SPARKLE_TRY(value, made(step));
      values_.push_back(std::move(value));
      producers_.resize(graph_.ops.size(), &step);
    }
    Value result = values_.back();
    if (result.is_number) result = constant(DType::f32, result.number);
    // The result is a tensor of its own even where it is an operand.
    result = added(PointwiseNode{PointwiseOp::identity}, {result}, result.type, result.shape);
    graph_.tensor(result.id).name = "result";
    graph_.outputs.push_back(result.id);
    producers_.resize(graph_.ops.size(), &e_.steps.back());
    SPARKLE_CHECK(constants_hold());
    return std::move(graph_);
  }

 private:
  Error fail(Reason reason, const Step& s, const std::string& message) const {
    return error_at(reason, e_.text, s.at, message);
  }
  // Constants are worked out when shapes are bound: what fails there is said of its place in the text.
  Status constants_hold() const {
    std::vector<InputBinding> shapes;
    for (const TensorId id : graph_.inputs) shapes.push_back({graph_.tensor(id).shape, std::nullopt});
    const auto bound = sparkle::bind(graph_, shapes);
    if (bound.ok()) return ok();
    const auto& [reason, message] = bound.error();
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const std::string head = "Node '" + graph_.ops[i].name + "' (Expression): ";
      if (message.starts_with(head))
        return fail(reason, *producers_[i], message.substr(head.size(), message.size() - head.size() - 1));
    }
    return fail(reason, e_.steps.back(), message);
  }
  const Value& value(int i) const { return values_[static_cast<size_t>(i)]; }

  Result<Value> made(const Step& s) {
    switch (s.kind) {
      case Step::Kind::operand: return operand(s);
      case Step::Kind::number: {
        Value v;
        v.is_number = true, v.number = s.a;
        return v;
      }
      case Step::Kind::cast: {
        if (value(s.x).is_number) return constant(s.to, value(s.x).number);
        return cast(value(s.x), s.to);
      }
      case Step::Kind::operation: break;
    }
    return operation(s);
  }

  Result<Value> operand(const Step& s) {
    const std::string& name = e_.names[static_cast<size_t>(s.x)];
    const auto at =
        std::find_if(operands_.begin(), operands_.end(), [&](const ExpressionOperand& o) { return o.name == name; });
    if (at == operands_.end()) {
      std::string given;
      for (const ExpressionOperand& o : operands_) given += (given.empty() ? "" : ", ") + o.name;
      return fail(Reason::bad_usage, s,
                  "'" + name.substr(0, 40) + "' is not given; " + (given.empty() ? "nothing is" : "there are " + given));
    }
    Value v;
    v.type = at->dtype, v.shape = at->shape, v.is_number = at->is_number, v.number = at->number;
    if (v.is_number) return v;
    GraphTensor t;
    t.name = name, t.dtype = v.type, t.shape = v.shape, t.known = t.rank_known = true;
    v.id = graph_.add(std::move(t));
    graph_.inputs.push_back(v.id);
    return v;
  }

  Value constant(DType type, double number) {
    const auto key = std::pair(type, number);
    const auto at = number == number && number != 0 ? constants_.find(key) : constants_.end();
    Value v;
    v.type = type;
    if (at != constants_.end()) {
      v.id = at->second;
      return v;
    }
    HostTensor t = HostTensor::zeros(type, {});
    // What no integer holds saturates.
    store_element(type, is_float(type) ? number : std::trunc(number), t.bytes.get());
    v.id = graph_.add_constant("constant_" + std::to_string(graph_.tensors.size()), std::move(t));
    if (number == number && number != 0) constants_.emplace(key, v.id);
    return v;
  }

  Value added(const OpParams& params, const std::vector<Value>& inputs, DType type, const Dims& shape) {
    Op op;
    op.type = "Expression";
    op.name = "step_" + std::to_string(graph_.ops.size() + 1);
    op.params = params;
    for (const Value& v : inputs) op.inputs.push_back(v.id);
    GraphTensor t;
    t.name = op.name, t.dtype = type, t.shape = shape, t.known = t.rank_known = true;
    Value v;
    v.type = type, v.shape = shape, v.id = graph_.add(std::move(t));
    op.outputs = {v.id};
    graph_.ops.push_back(std::move(op));
    return v;
  }
  Value cast(const Value& v, DType to) {
    if (v.type == to) return v;
    return added(CastOp{to}, {v}, to, v.shape);
  }
  // As a tensor of this type.
  Value as(const Value& v, DType type) { return v.is_number ? constant(type, v.number) : cast(v, type); }

  // The type in which values `first` to `last` of a step are computed.
  Result<DType> type_of(const Step& s, const std::vector<Value>& list, size_t first) const {
    std::optional<DType> type;
    for (size_t i = first; i < list.size(); ++i) {
      if (list[i].is_number) continue;
      const DType next = list[i].type;
      if (!kComputed.has(next))
        return fail(Reason::type_not_served, s,
                    "nothing is computed in " + std::string(name_of(next)) + "; convert it, as in f32(x)");
      const auto both = type ? common_type(*type, next) : next;
      if (!both)
        return fail(Reason::type_not_served, s,
                    std::string(name_of(*type)) + " and " + std::string(name_of(next)) +
                        " have no common type; convert one, as in i64(x)");
      type = both;
    }
    if (!type) return DType::f32;
    for (size_t i = first; i < list.size(); ++i) {
      if (!list[i].is_number) continue;
      const auto both = with_number(*type, list[i].number);
      if (!both)
        return fail(Reason::type_not_served, s,
                    "the number does not fit " + std::string(name_of(*type)) + "; convert the tensor, as in f32(x)");
      type = both;
    }
    return *type;
  }

  Result<Value> operation(const Step& s) {
    const int arity = arity_of(s.op);
    const int arguments[] = {s.x, s.y, s.z};
    std::vector<Value> list;
    Dims shape;
    for (int i = 0; i < arity; ++i) {
      list.push_back(value(arguments[i]));
      const auto both = broadcast(shape, list.back().shape);
      if (!both)
        return fail(Reason::bad_shape, s,
                    "the shapes " + shape.to_string() + " and " + list.back().shape.to_string() + " do not broadcast");
      shape = *both;
    }
    if (std::all_of(list.begin(), list.end(), [](const Value& v) { return v.is_number; })) {
      // Numbers that were given by name.
      Value v;
      v.is_number = true;
      const auto number = [&](size_t i) { return i < list.size() ? list[i].number : 0; };
      v.number = evaluate(s.op, number(0), number(1), number(2), s.a, s.b);
      return v;
    }
    const bool chooses = s.op == PointwiseOp::select;
    DType type = DType::boolean;
    if (!is_logical(s.op)) {
      SPARKLE_TRY(found, type_of(s, list, chooses ? 1 : 0));
      type = found;
      if (type == DType::boolean && !chooses && s.op != PointwiseOp::equal) type = DType::i32;
      // Integers have no exponential; whole factors and bounds they have.
      const bool whole = serves_integers(s.op) && (s.op != PointwiseOp::affine || (fits(s.a, type) && fits(s.b, type)));
      if (!is_float(type) && !whole) type = float_for(type);
    }
    for (size_t i = 0; i < list.size(); ++i) list[i] = as(list[i], chooses && i == 0 ? DType::boolean : type);
    const bool truth = compares(s.op) || is_logical(s.op) || s.op == PointwiseOp::is_nan;
    PointwiseNode node{s.op, s.a, s.b};
    if (s.op == PointwiseOp::clip) node.a = std::min(s.a, s.b);  // where the bounds cross, the upper one wins
    return added(node, list, truth ? DType::boolean : type, shape);
  }

  const Expression& e_;
  const std::vector<ExpressionOperand>& operands_;
  Graph graph_;
  std::vector<const Step*> producers_;  // of the graph's operations
  std::vector<Value> values_;
  std::map<std::pair<DType, double>, TensorId> constants_;
};

}  // namespace

Result<Graph> expression_graph(const Expression& expression, const std::vector<ExpressionOperand>& operands) {
  return Builder(expression, operands).build();
}

}  // namespace sparkle
