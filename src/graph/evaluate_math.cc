// Folding of arithmetic. Floats are computed in double precision and rounded once (exact for + - * / and square roots of
// f32), integers exactly in 64 bits, wrapping as the type does.
#include <cmath>

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

int64_t integer_power(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t result = 1, base = static_cast<uint64_t>(x);
  for (auto n = static_cast<uint64_t>(y); n; n >>= 1, base *= base)
    if (n & 1) result *= base;
  return wrap(result);
}

// The operators that integers and booleans have; false for the others. Division by zero is refused by the caller.
bool integer_op(PointwiseOp op, int64_t x, int64_t y, int64_t z, double a, double b, int64_t& r) {
  const auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  switch (op) {
    case PointwiseOp::identity: r = x; break;
    case PointwiseOp::add: r = wrap(ux + uy); break;
    case PointwiseOp::sub: r = wrap(ux - uy); break;
    case PointwiseOp::mul: r = wrap(ux * uy); break;
    case PointwiseOp::fma: r = wrap(ux * uy + static_cast<uint64_t>(z)); break;
    case PointwiseOp::div: r = y == -1 ? wrap(0 - ux) : x / y; break;
    case PointwiseOp::mod: r = y == -1 ? 0 : x % y; break;  // the sign of x, as std::fmod
    case PointwiseOp::pow: r = integer_power(x, y); break;
    case PointwiseOp::min: r = std::min(x, y); break;
    case PointwiseOp::max: r = std::max(x, y); break;
    case PointwiseOp::select: r = x ? y : z; break;
    case PointwiseOp::less: r = x < y; break;
    case PointwiseOp::less_equal: r = x <= y; break;
    case PointwiseOp::greater: r = x > y; break;
    case PointwiseOp::greater_equal: r = x >= y; break;
    case PointwiseOp::equal: r = x == y; break;
    case PointwiseOp::logical_and: r = x && y; break;
    case PointwiseOp::logical_or: r = x || y; break;
    case PointwiseOp::logical_xor: r = !x != !y; break;
    case PointwiseOp::logical_not: r = !x; break;
    case PointwiseOp::neg: r = wrap(0 - ux); break;
    case PointwiseOp::abs: r = x < 0 ? wrap(0 - ux) : x; break;
    case PointwiseOp::sign: r = (x > 0) - (x < 0); break;
    case PointwiseOp::relu: r = std::max<int64_t>(x, 0); break;
    case PointwiseOp::floor:
    case PointwiseOp::ceil:
    case PointwiseOp::round: r = x; break;
    case PointwiseOp::clip:
      r = x;
      if (static_cast<double>(r) < a) r = static_cast<int64_t>(std::ceil(a));
      if (static_cast<double>(r) > b) r = static_cast<int64_t>(std::floor(b));
      break;
    default: return false;
  }
  return true;
}

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
  std::vector<std::vector<int64_t>> values;
  for (const HostTensor* x : c.inputs) values.push_back(as_integers(*x));
  const bool divides = op.op == PointwiseOp::div || op.op == PointwiseOp::mod;
  if (divides)
    for (int64_t v : values[1])
      if (v == 0) return c.fail(Reason::bad_model, "an integer constant is divided by zero");
  for (size_t i = 0; i < values.size(); ++i)  // beyond what signed arithmetic holds
    if (c.in(i).dtype == DType::u64)
      for (int64_t v : values[i])
        if (v < 0) return c.not_served();
  bool served = true;
  const auto result = walk<int64_t>(shape, c.inputs, values, [&](int64_t x, int64_t y, int64_t z) {
    int64_t r = 0;
    served = integer_op(op.op, x, y, z, op.a, op.b, r) && served;
    return r;
  });
  if (!served) return c.not_served();
  return one(from_integers(type, shape, result));
}

Result<Values> evaluate_cast(const EvaluateContext& c, const CastOp& op) {
  const HostTensor& x = c.in(0);
  if (x.dtype == op.to) return one(x);
  return one(is_float(x.dtype) ? from_doubles(op.to, x.shape, as_doubles(x)) : from_integers(op.to, x.shape, as_integers(x)));
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
