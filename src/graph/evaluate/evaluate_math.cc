// Folding of arithmetic by the families' own definitions, the functions that their references are made of: floats in double
// precision, rounded once, integers exactly, wrapping as the type does.
#include <algorithm>
#include <cmath>

#include "families/family.h"
#include "families/pointwise/arithmetic.h"
#include "families/pointwise/cast.h"
#include "families/reduce/reduce.h"
#include "families/types.h"
#include "graph/evaluate/evaluate.h"
#include "graph/infer/infer.h"
#include "graph/evaluate/values.h"

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
      const Dims from = row_major(x->shape).strides;
      Dims strides = Dims::filled(shape.size(), 0);
      for (int i = 0; i < x->shape.size(); ++i)
        if (x->shape[i] != 1) strides[i + shape.size() - x->shape.size()] = from[i];
      strides_.push_back(strides);
    }
    positions.assign(std::max<size_t>(3, inputs.size()), 0);
  }
  void next() {
    for (int axis = shape_.size() - 1; axis >= 0; --axis) {
      const bool more = ++at_[axis] < shape_[axis];
      for (size_t i = 0; i < strides_.size(); ++i)
        positions[i] += static_cast<size_t>(strides_[i][axis] * (more ? 1 : 1 - shape_[axis]));
      if (more) return;
      at_[axis] = 0;
    }
  }
  std::vector<size_t> positions;

 private:
  Dims shape_, at_;
  std::vector<Dims> strides_;
};

// A program by the pointwise family's definition, operands broadcast to y.
void run_pointwise(const PointwiseParams& params, const std::vector<const HostTensor*>& inputs, const HostTensor& y) {
  std::vector<TensorView> views;
  for (const HostTensor* x : inputs) {
    TensorView view{x->bytes.get(), {x->dtype, y.shape, row_major(y.shape)}};
    const Dims from = row_major(x->shape).strides;
    view.desc.layout.strides = Dims::filled(y.shape.size(), 0);
    for (int i = 0; i < x->shape.size(); ++i)
      if (x->shape[i] != 1) view.desc.layout.strides[i + y.shape.size() - x->shape.size()] = from[i];
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
  if (!type_row(op.op).types.has(c.in(c.inputs.size() - 1).dtype)) return c.unsupported();
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
  HostTensor y = HostTensor::zeros(op.to, x.shape);
  run_pointwise(cast_program(op.to, op.saturate, op.rounding), {&x}, y);
  return one(std::move(y));
}

// By the reduce family's definition, as at run time.
Result<Values> evaluate_reduce(const EvaluateContext& c, const ReduceOp& op) {
  const HostTensor& x = c.in(0);
  const auto& [type, shape] = c.outputs[0];
  const ReduceParams params{op.kind, op.axes};
  if (!type_row(StageParams(params)).types.has(x.dtype)) return c.unsupported();
  Dims kept = x.shape;
  for (int64_t axis : op.axes) kept[static_cast<int>(axis)] = 1;
  HostTensor y = HostTensor::zeros(type, kept);
  const TensorView from = x.view(), to = y.view();
  reduce_info().reference(params, {&from, 1}, {&to, 1});
  y.shape = shape;
  return one(std::move(y));
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
