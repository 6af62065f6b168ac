// Folding of arithmetic. Floats are computed in double precision and rounded once (exact for + - * / and square roots of
// f32), integers exactly, wrapping as the type does.
#include <algorithm>
#include <cmath>

#include "families/pointwise/cast.h"
#include "families/types.h"
#include "graph/evaluate.h"
#include "graph/infer.h"
#include "graph/values.h"

namespace sparkle {
namespace {

Values one(HostTensor t) {
  Values values;
  values.push_back(std::move(t));
  return values;
}

int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }

// Flat positions in each input of every output element, one output row at a time.
class BroadcastWalk {
 public:
  BroadcastWalk(const Dims& shape, const std::vector<const HostTensor*>& inputs)
      : shape_(shape), at_(Dims::filled(shape.size(), 0)) {
    for (const HostTensor* x : inputs) {
      const Dims from = row_major(x->shape).pitch;
      Dims pitch = Dims::filled(shape.size(), 0);
      for (int i = 0; i < x->shape.size(); ++i)
        if (x->shape[i] != 1) pitch[i + shape.size() - x->shape.size()] = from[i];
      pitches_.push_back(pitch);
    }
    positions.assign(std::max<size_t>(3, inputs.size()), 0);
  }
  void next() {
    for (int axis = shape_.size() - 1; axis >= 0; --axis) {
      const bool more = ++at_[axis] < shape_[axis];
      for (size_t i = 0; i < pitches_.size(); ++i)
        positions[i] += static_cast<size_t>(pitches_[i][axis] * (more ? 1 : 1 - shape_[axis]));
      if (more) return;
      at_[axis] = 0;
    }
  }
  std::vector<size_t> positions;

 private:
  Dims shape_, at_;
  std::vector<Dims> pitches_;
};

// A program by the pointwise family's definition, operands broadcast to y.
void run_pointwise(const PointwiseParams& params, const std::vector<const HostTensor*>& inputs, const HostTensor& y) {
  std::vector<TensorView> views;
  for (const HostTensor* x : inputs) {
    TensorView view{x->bytes.get(), {x->dtype, y.shape, row_major(y.shape)}};
    const Dims from = row_major(x->shape).pitch;
    view.desc.layout.pitch = Dims::filled(y.shape.size(), 0);
    for (int i = 0; i < x->shape.size(); ++i)
      if (x->shape[i] != 1) view.desc.layout.pitch[i + y.shape.size() - x->shape.size()] = from[i];
    views.push_back(view);
  }
  const TensorView out = y.view();
  pointwise_info().reference(params, views, {&out, 1});
}

template <class T, class Apply>
std::vector<T> walk(const Dims& shape, const std::vector<const HostTensor*>& inputs, const std::vector<std::vector<T>>& values,
                    Apply&& apply) {
  std::vector<T> result(static_cast<size_t>(shape.product()));
  BroadcastWalk walk(shape, inputs);
  const auto value = [&](size_t i) { return i < values.size() ? values[i][walk.positions[i]] : T{}; };
  for (T& r : result) {
    r = apply(value(0), value(1), value(2));
    walk.next();
  }
  return result;
}

}  // namespace

Result<Values> evaluate_pointwise(const EvaluateContext& c, const PointwiseNode& op) {
  const auto& [type, shape] = c.outputs[0];
  bool real = c.inputs.empty();
  for (const HostTensor* x : c.inputs) real = real || is_float(x->dtype);
  if (real) {
    std::vector<std::vector<double>> values;
    for (const HostTensor* x : c.inputs) values.push_back(as_doubles(*x));
    const auto result = walk<double>(shape, c.inputs, values,
                                     [&](double x, double y, double z) { return evaluate(op.op, x, y, z, op.a, op.b); });
    return one(from_doubles(type, shape, result));
  }
  // Integers and truth values: the family's own definition, exact in every type.
  if (!type_row(op.op).types.has(c.in(c.inputs.size() - 1).dtype)) return c.not_served();
  if (op.op == PointwiseOp::div || op.op == PointwiseOp::mod || op.op == PointwiseOp::floor_mod)
    for (int64_t v : as_integers(c.in(1)))
      if (v == 0) return c.fail(Reason::bad_model, "an integer constant is divided by zero");
  PointwiseParams params{static_cast<int>(c.inputs.size()), {{op.op, 0, 0, 0, op.a, op.b}}};
  params.program[0].y = std::min(1, params.inputs - 1), params.program[0].z = std::min(2, params.inputs - 1);
  HostTensor y = HostTensor::zeros(type, shape);
  run_pointwise(params, c.inputs, y);
  return one(std::move(y));
}

Result<Values> evaluate_cast(const EvaluateContext& c, const CastOp& op) {
  const HostTensor& x = c.in(0);
  if (x.dtype == op.to) return one(x);
  if (is_float(x.dtype) && is_float(op.to)) return one(from_doubles(op.to, x.shape, as_doubles(x)));
  HostTensor y = HostTensor::zeros(op.to, x.shape);
  run_pointwise(cast_program(op.to, op.saturate, op.rounding), {&x}, y);
  return one(std::move(y));
}

namespace {

// Sums of the reduction in the type's own domain; the finish turns them into the result.
template <class T>
struct Reduction {
  ReduceKind kind;
  bool first = true;
  T sum = 0, largest = 0;

  void add(T v) {
    switch (kind) {
      case ReduceKind::max: sum = first ? v : std::max(sum, v); break;
      case ReduceKind::min: sum = first ? v : std::min(sum, v); break;
      case ReduceKind::product: sum = first ? v : sum * v; break;
      case ReduceKind::l1: sum += v < 0 ? -v : v; break;
      case ReduceKind::l2:
      case ReduceKind::sum_square: sum += v * v; break;
      default: sum += v; break;
    }
    first = false;
  }
};

template <class T>
Result<std::vector<T>> reduce(const EvaluateContext& c, const ReduceOp& op, const std::vector<T>& x) {
  const Dims& from = c.in(0).shape;
  Dims kept = from;
  for (int64_t axis : op.axes) kept[static_cast<int>(axis)] = 1;
  Dims pitch = row_major(kept).pitch;
  int64_t count = 1;
  for (int64_t axis : op.axes) pitch[static_cast<int>(axis)] = 0, count *= from[static_cast<int>(axis)];
  std::vector<Reduction<T>> parts(static_cast<size_t>(kept.product()), Reduction<T>{op.kind});
  Dims at = Dims::filled(from.size(), 0);
  for (const T& value : x) {
    int64_t to = 0;
    for (int i = 0; i < at.size(); ++i) to += at[i] * pitch[i];
    parts[static_cast<size_t>(to)].add(value);
    for (int i = at.size() - 1; i >= 0 && ++at[i] == from[i]; --i) at[i] = 0;
  }
  std::vector<T> y;
  for (const auto& part : parts) {
    T v = part.sum;
    if (part.first && op.kind == ReduceKind::product) v = 1;
    if (part.first && (op.kind == ReduceKind::max || op.kind == ReduceKind::min || op.kind == ReduceKind::mean))
      return c.not_served();
    if (op.kind == ReduceKind::mean) v /= static_cast<T>(count);
    if (op.kind == ReduceKind::l2) v = static_cast<T>(std::sqrt(static_cast<double>(v)));
    if (op.kind == ReduceKind::log_sum) v = static_cast<T>(std::log(static_cast<double>(v)));
    y.push_back(v);
  }
  return y;
}

}  // namespace

Result<Values> evaluate_reduce(const EvaluateContext& c, const ReduceOp& op) {
  if (op.axes.empty()) return one(c.in(0));
  if (op.kind == ReduceKind::log_sum_exp) return c.not_served();
  const auto& [type, shape] = c.outputs[0];
  if (is_float(type)) {
    SPARKLE_TRY(y, reduce(c, op, as_doubles(c.in(0))));
    return one(from_doubles(type, shape, y));
  }
  // Integers that cannot overflow while they are summed.
  const std::vector<int64_t> x = as_integers(c.in(0));
  const bool squares = op.kind == ReduceKind::l2 || op.kind == ReduceKind::sum_square || op.kind == ReduceKind::product;
  if (type == DType::u64 || (squares && op.kind == ReduceKind::product && x.size() > 16)) return c.not_served();
  long double bound = op.kind == ReduceKind::product ? 1 : 0;
  for (int64_t v : x) {
    const auto magnitude = std::abs(static_cast<long double>(v));
    if (op.kind == ReduceKind::product) bound *= std::max<long double>(magnitude, 1);
    else bound += squares ? magnitude * magnitude : magnitude;
  }
  const bool extremum = op.kind == ReduceKind::max || op.kind == ReduceKind::min;
  if (!extremum && bound > 9e18L) return c.not_served();
  SPARKLE_TRY(y, reduce(c, op, x));
  return one(from_integers(type, shape, y));
}

Result<Values> evaluate_range(const EvaluateContext& c) {
  const auto& [type, shape] = c.outputs[0];
  if (is_float(type)) {
    const double start = scalar(c.in(0)), delta = scalar(c.in(2));
    std::vector<double> y(static_cast<size_t>(shape[0]));
    for (size_t i = 0; i < y.size(); ++i) y[i] = start + static_cast<double>(i) * delta;
    return one(from_doubles(type, shape, y));
  }
  const int64_t start = as_integers(c.in(0))[0], delta = as_integers(c.in(2))[0];
  std::vector<int64_t> y(static_cast<size_t>(shape[0]));
  for (size_t i = 0; i < y.size(); ++i) y[i] = wrap(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta));
  return one(from_integers(type, shape, y));
}

}  // namespace sparkle
