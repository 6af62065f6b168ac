// Every pointwise operation as a loop over a strip, once per unit. Common ones are vectors, rare ones go through the
// family's definition in double precision, element by element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/strip_ops.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/simd_math-inl.h"
#include "backends/cpu/pointwise/strip_ops.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// `unrolled`: vectors at once, so that the loads of one run beside the stores of the other. One at a time for the longest
// functions: GELU loses by more, whose chains fill a core's queues by themselves, and a logarithm's constants would leave the
// registers.
#undef STRIP
#define STRIP(name, unrolled, formula)                                                                              \
  struct name##_op {                                                                                                \
    static constexpr size_t kUnrolled = unrolled;                                                                   \
    template <class D, class V>                                                                                     \
    HWY_INLINE V operator()([[maybe_unused]] D d, [[maybe_unused]] V x, [[maybe_unused]] V y, [[maybe_unused]] V z, \
                            [[maybe_unused]] const StripCall& c) const {                                            \
      using namespace simd_math;                                                                                    \
      return formula;                                                                                               \
    }                                                                                                               \
  };
#undef STRIP_OP
#define STRIP_OP(name, formula) STRIP(name, 4, formula)
#undef STRIP_FUNCTION
#define STRIP_FUNCTION(name, formula) STRIP(name, 1, formula)
#undef WHERE
#define WHERE(mask) hn::IfThenElseZero(mask, hn::Set(d, 1.0f))
#undef TRUE_
#define TRUE_(v) hn::Not(hn::Eq(v, hn::Zero(d)))

STRIP_OP(identity, x)
STRIP_OP(constant, hn::Set(d, c.a))
STRIP_OP(add, hn::Add(x, y))
STRIP_OP(sub, hn::Sub(x, y))
STRIP_OP(mul, hn::Mul(x, y))
STRIP_OP(div, hn::Div(x, y))
STRIP_FUNCTION(pow, Pow(d, x, y))
STRIP_OP(min, hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y))
STRIP_OP(max, hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y))
STRIP_OP(fma, hn::MulAdd(x, y, z))
STRIP_OP(select, hn::IfThenElse(TRUE_(x), y, z))
STRIP_OP(less, WHERE(hn::Lt(x, y)))
STRIP_OP(less_equal, WHERE(hn::Le(x, y)))
STRIP_OP(greater, WHERE(hn::Gt(x, y)))
STRIP_OP(greater_equal, WHERE(hn::Ge(x, y)))
STRIP_OP(equal, WHERE(hn::Eq(x, y)))
STRIP_OP(logical_and, WHERE(hn::And(TRUE_(x), TRUE_(y))))
STRIP_OP(logical_or, WHERE(hn::Or(TRUE_(x), TRUE_(y))))
STRIP_OP(logical_xor, WHERE(hn::Xor(TRUE_(x), TRUE_(y))))
STRIP_OP(logical_not, WHERE(hn::Eq(x, hn::Zero(d))))
STRIP_OP(affine, hn::MulAdd(x, hn::Set(d, c.a), hn::Set(d, c.b)))
STRIP_OP(neg, hn::Neg(x))
STRIP_OP(abs, hn::Abs(x))
STRIP_OP(sign, hn::IfThenElse(hn::IsNaN(x), x, hn::Sub(WHERE(hn::Gt(x, hn::Zero(d))), WHERE(hn::Lt(x, hn::Zero(d))))))
STRIP_OP(reciprocal, hn::Div(hn::Set(d, 1.0f), x))
STRIP_OP(sqrt, hn::Sqrt(x))
STRIP_OP(exp, Exp(d, x))
STRIP_FUNCTION(log, Log(d, x))
STRIP_OP(sin, Sin(d, x))
STRIP_OP(cos, Cos(d, x))
STRIP_OP(erf, Erf(d, x))
STRIP_OP(floor, hn::Floor(x))
STRIP_OP(ceil, hn::Ceil(x))
STRIP_OP(round, hn::Round(x))
STRIP_OP(is_nan, WHERE(hn::IsNaN(x)))
STRIP_OP(relu, Relu(d, x))
STRIP_OP(clip, Clip(d, x, c.a, c.b))
STRIP_OP(leaky_relu, LeakyRelu(d, x, c.a))
STRIP_OP(prelu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, y), x))
STRIP_OP(elu, Elu(d, x, c.a))
STRIP_OP(selu, Selu(d, x, c.a, c.b))
STRIP_OP(celu, Celu(d, x, c.a))
STRIP_OP(thresholded_relu, hn::IfThenElseZero(hn::Gt(x, hn::Set(d, c.a)), x))
STRIP_OP(sigmoid, Sigmoid(d, x))
STRIP_OP(hard_sigmoid, HardSigmoid(d, x, c.a, c.b))
STRIP_OP(tanh, Tanh(d, x))
STRIP_OP(silu, Silu(d, x))
STRIP_OP(hard_swish, HardSwish(d, x))
STRIP_FUNCTION(gelu, Gelu(d, x))
STRIP_OP(gelu_tanh, GeluTanh(d, x))
STRIP_OP(softplus, Softplus(d, x))
STRIP_OP(softsign, hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Abs(x))))
STRIP_OP(mish, Mish(d, x))

template <class Op, int kArity, bool kClipped>
void strip(const StripCall& call) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  // A copy that nothing points to: stores of vectors may alias the caller's, and each field would be read again behind them.
  const StripCall c = call;
  const float* xs = c.x.data;
  const float* ys = c.y.data;
  const float* zs = c.z.data;
  float* out = c.out;
  const size_t x_mask = c.x.mask, y_mask = c.y.mask, z_mask = c.z.mask, count = c.count;
  const V low = hn::Set(d, c.low), high = hn::Set(d, c.high);
  const auto result = [&](V x, V y, V z) HWY_ATTR {
    const V v = Op{}(d, x, y, z, c);
    return kClipped ? simd_math::at_most(simd_math::at_least(v, low), high) : v;
  };
  const auto vector_at = [&](size_t i) HWY_ATTR {
    const V x = kArity > 0 ? hn::LoadU(d, xs + (i & x_mask)) : hn::Zero(d);
    const V y = kArity > 1 ? hn::LoadU(d, ys + (i & y_mask)) : x;
    const V z = kArity > 2 ? hn::LoadU(d, zs + (i & z_mask)) : x;
    return result(x, y, z);
  };
  size_t i = 0;
  // The output may be an operand of the same elements: all of them are read before any is written.
  if constexpr (Op::kUnrolled == 4) {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const V v0 = vector_at(i), v1 = vector_at(i + lanes), v2 = vector_at(i + 2 * lanes), v3 = vector_at(i + 3 * lanes);
      hn::StoreU(v0, d, out + i);
      hn::StoreU(v1, d, out + i + lanes);
      hn::StoreU(v2, d, out + i + 2 * lanes);
      hn::StoreU(v3, d, out + i + 3 * lanes);
    }
  }
  for (; i + lanes <= count; i += lanes) hn::StoreU(vector_at(i), d, out + i);
  const auto left = static_cast<int64_t>(count - i);
  if (left > 0) {
    const V x = kArity > 0 ? load_lanes(d, xs + (i & x_mask), left) : hn::Zero(d);
    const V y = kArity > 1 ? load_lanes(d, ys + (i & y_mask), left) : x;
    const V z = kArity > 2 ? load_lanes(d, zs + (i & z_mask), left) : x;
    store_lanes(result(x, y, z), d, out + i, left);
  }
}

// Rare functions by their definition.
void strip_by_element(const StripCall& c) {
  const int arity = arity_of(c.op);
  for (size_t i = 0; i < c.count; ++i) {
    const auto value = [&](const StripOperand& v, int needed) {
      return arity >= needed ? static_cast<double>(v.data[i & v.mask]) : 0.0;
    };
    c.out[i] = static_cast<float>(
        evaluate(c.op, value(c.x, 1), value(c.y, 2), value(c.z, 3), static_cast<double>(c.a), static_cast<double>(c.b)));
  }
}

StripFunction find_strip(PointwiseOp op, bool clipped) {
  if (clipped) {
    switch (op) {
      case PointwiseOp::add: return strip<add_op, 2, true>;
      case PointwiseOp::sub: return strip<sub_op, 2, true>;
      case PointwiseOp::mul: return strip<mul_op, 2, true>;
      case PointwiseOp::fma: return strip<fma_op, 3, true>;
      case PointwiseOp::affine: return strip<affine_op, 1, true>;
      default: return nullptr;
    }
  }
  switch (op) {
    case PointwiseOp::tan:
    case PointwiseOp::asin:
    case PointwiseOp::acos:
    case PointwiseOp::atan:
    case PointwiseOp::sinh:
    case PointwiseOp::cosh:
    case PointwiseOp::asinh:
    case PointwiseOp::acosh:
    case PointwiseOp::atanh:
    case PointwiseOp::mod:
    case PointwiseOp::floor_mod:
    case PointwiseOp::power_of_two: return strip_by_element;
#undef CASE
#define CASE(name, arity) \
  case PointwiseOp::name: return strip<name##_op, arity, false>;
      // clang-format off
      CASE(identity, 1) CASE(constant, 0) CASE(add, 2) CASE(sub, 2) CASE(mul, 2) CASE(div, 2) CASE(pow, 2) CASE(min, 2)
      CASE(max, 2) CASE(fma, 3) CASE(select, 3) CASE(less, 2) CASE(less_equal, 2) CASE(greater, 2)
      CASE(greater_equal, 2) CASE(equal, 2) CASE(logical_and, 2) CASE(logical_or, 2) CASE(logical_xor, 2)
      CASE(logical_not, 1) CASE(affine, 1) CASE(neg, 1) CASE(abs, 1) CASE(sign, 1) CASE(reciprocal, 1) CASE(sqrt, 1)
      CASE(exp, 1) CASE(log, 1) CASE(sin, 1) CASE(cos, 1) CASE(erf, 1) CASE(floor, 1) CASE(ceil, 1) CASE(round, 1)
      CASE(is_nan, 1) CASE(relu, 1) CASE(clip, 1) CASE(leaky_relu, 1) CASE(prelu, 2) CASE(elu, 1) CASE(selu, 1)
      CASE(celu, 1) CASE(thresholded_relu, 1) CASE(sigmoid, 1) CASE(hard_sigmoid, 1) CASE(tanh, 1) CASE(silu, 1)
      CASE(hard_swish, 1) CASE(gelu, 1) CASE(gelu_tanh, 1) CASE(softplus, 1) CASE(softsign, 1) CASE(mish, 1)
// clang-format on
#undef CASE
  }
  return nullptr;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {

StripFinder strip_finder(std::string_view unit) { return SPARKLE_PICK(find_strip, unit); }

bool can_clip(PointwiseOp op) {
  return op == PointwiseOp::add || op == PointwiseOp::sub || op == PointwiseOp::mul || op == PointwiseOp::fma ||
         op == PointwiseOp::affine;
}

}  // namespace sparkle::cpu
#endif
