// Sweeps every fp32 function over its range on each unit of this machine and bounds the error in units of the last place.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/simd_math_test.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include "backends/cpu/simd/simd_math-inl.h"

#ifndef SPARKLE_SIMD_MATH_TEST_ONCE
#define SPARKLE_SIMD_MATH_TEST_ONCE
namespace sparkle::cpu {
enum class Fn { exp, log, sigmoid, tanh, erf, sin, cos, silu, gelu, gelu_tanh, softplus, mish, expm1, hard_swish, pow };
}
#endif

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;
void apply_function(Fn fn, const float* x, float* y, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto loop = [&](auto f) HWY_ATTR {
    for (size_t i = 0; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i)), d, y + i);
  };
  switch (fn) {
    case Fn::exp: return loop([&](auto v) HWY_ATTR { return simd_math::Exp(d, v); });
    case Fn::log: return loop([&](auto v) HWY_ATTR { return simd_math::Log(d, v); });
    case Fn::sigmoid: return loop([&](auto v) HWY_ATTR { return simd_math::Sigmoid(d, v); });
    case Fn::tanh: return loop([&](auto v) HWY_ATTR { return simd_math::Tanh(d, v); });
    case Fn::erf: return loop([&](auto v) HWY_ATTR { return simd_math::Erf(d, v); });
    case Fn::sin: return loop([&](auto v) HWY_ATTR { return simd_math::Sin(d, v); });
    case Fn::cos: return loop([&](auto v) HWY_ATTR { return simd_math::Cos(d, v); });
    case Fn::silu: return loop([&](auto v) HWY_ATTR { return simd_math::Silu(d, v); });
    case Fn::gelu: return loop([&](auto v) HWY_ATTR { return simd_math::Gelu(d, v); });
    case Fn::gelu_tanh: return loop([&](auto v) HWY_ATTR { return simd_math::GeluTanh(d, v); });
    case Fn::softplus: return loop([&](auto v) HWY_ATTR { return simd_math::Softplus(d, v); });
    case Fn::mish: return loop([&](auto v) HWY_ATTR { return simd_math::Mish(d, v); });
    case Fn::expm1: return loop([&](auto v) HWY_ATTR { return simd_math::Expm1(d, v); });
    case Fn::hard_swish: return loop([&](auto v) HWY_ATTR { return simd_math::HardSwish(d, v); });
    case Fn::pow: return loop([&](auto v) HWY_ATTR { return simd_math::Pow(d, v, hn::Set(d, 1.5f)); });
  }
}
void activate_values(Activation activation, float a, float b, float* values, size_t count) {
  simd_math::activate_strip(activation, a, b, values, count);
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "backends/cpu/test_units.h"

namespace sparkle::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Distance in units of the last place of the exact result; denormal results count as zero.
double ulps(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  if (std::abs(want) > std::numeric_limits<float>::max())
    return std::isinf(got) == std::isinf(static_cast<float>(want)) ? 0 : INFINITY;
  const double tiny = std::numeric_limits<float>::min();
  if (std::abs(want) < tiny) return std::abs(got) <= tiny ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 24);
}

struct Sweep {
  Fn fn;
  const char* name;
  std::function<double(double)> exact;
  double low, high, bound;
};

double phi(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

const Sweep kSweeps[] = {
    {Fn::exp, "exp", [](double x) { return std::exp(x); }, -110, 95, 1.5},
    {Fn::log, "log", [](double x) { return std::log(x); }, 1e-44, 3e38, 2},
    {Fn::log, "log near one", [](double x) { return std::log(x); }, 0.5, 2, 2},
    {Fn::sigmoid, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -87, 30, 3},
    {Fn::tanh, "tanh", [](double x) { return std::tanh(x); }, -12, 12, 3},
    {Fn::erf, "erf", [](double x) { return std::erf(x); }, -6, 6, 2.5},
    {Fn::sin, "sin", [](double x) { return std::sin(x); }, -1e4, 1e4, 2},
    {Fn::cos, "cos", [](double x) { return std::cos(x); }, -1e4, 1e4, 2},
    {Fn::sin, "sin small", [](double x) { return std::sin(x); }, -4, 4, 2},
    {Fn::cos, "cos huge", [](double x) { return std::cos(x); }, -1e9, 1e9, 1},
    {Fn::silu, "silu", [](double x) { return x / (1 + std::exp(-x)); }, -80, 100, 3},
    {Fn::gelu, "gelu", [](double x) { return x * phi(x); }, -12, 20, 5},
    {Fn::gelu_tanh, "gelu_tanh", [](double x) { return activate(Activation::gelu_tanh, 0, 0, x); }, -2, 20, 5},
    {Fn::softplus, "softplus", [](double x) { return activate(Activation::softplus, 0, 0, x); }, -80, 100, 4},
    {Fn::mish, "mish", [](double x) { return activate(Activation::mish, 0, 0, x); }, -80, 100, 4},
    {Fn::expm1, "expm1", [](double x) { return std::expm1(x); }, -20, 80, 2.5},
    {Fn::hard_swish, "hard_swish", [](double x) { return activate(Activation::hard_swish, 0, 0, x); }, -2.5, 6, 4},
    {Fn::pow, "pow", [](double x) { return std::pow(x, 1.5); }, 0, 1e20, 1},
};

TEST(SimdMath, StaysWithinUlpsOfDouble) {
  for (const std::string& unit : test_units()) {
    const auto function = SPARKLE_PICK(apply_function, unit);
    ASSERT_NE(function, nullptr) << unit;
    for (const Sweep& sweep : kSweeps) {
      constexpr size_t kCount = 1 << 18;
      std::vector<float> x(kCount), y(kCount);
      std::mt19937_64 random(7);
      std::uniform_real_distribution<double> uniform(sweep.low, sweep.high), power(-30, 0);
      for (size_t i = 0; i < kCount; ++i) {
        // Half spread evenly, half towards zero.
        const double v = uniform(random);
        const double scaled = i % 2 ? v : v * std::exp2(power(random) * (i % 4 ? 1 : 0.2));
        x[i] = static_cast<float>(std::max(sweep.low, std::min(sweep.high, scaled)));
      }
      function(sweep.fn, x.data(), y.data(), kCount);
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < kCount; ++i)
        if (const double e = ulps(y[i], sweep.exact(static_cast<double>(x[i]))); !(e <= worst)) worst = e, at = x[i];
      EXPECT_LE(worst, sweep.bound) << sweep.name << " on " << unit << " at x=" << at;
      RecordProperty(std::string(sweep.name) + "_" + unit, std::to_string(worst));
    }
  }
}

TEST(SimdMath, KeepsSpecialValues) {
  for (const std::string& unit : test_units()) {
    const auto function = SPARKLE_PICK(apply_function, unit);
    constexpr size_t kCount = 64;
    const float specials[] = {0.0f, -0.0f, kInfinity, -kInfinity, kNan, 1e-40f, -1e-40f, 3e38f, -3e38f, 1.0f};
    for (const Sweep& sweep : kSweeps) {
      std::vector<float> x(kCount), y(kCount);
      for (size_t i = 0; i < kCount; ++i) x[i] = specials[i % std::size(specials)];
      function(sweep.fn, x.data(), y.data(), kCount);
      for (size_t i = 0; i < std::size(specials); ++i) {
        const double v = static_cast<double>(x[i]);
        if (sweep.fn == Fn::expm1 && v > 88) continue;  // outside of its range
        EXPECT_LE(ulps(y[i], sweep.exact(v)), 4) << sweep.name << " on " << unit << " of " << v << " is " << y[i];
      }
    }
  }
}

TEST(SimdMath, ActivatesStripsOfAnyLength) {
  for (const std::string& unit : test_units()) {
    const auto function = SPARKLE_PICK(activate_values, unit);
    for (int kind = 0; kind <= static_cast<int>(Activation::mish); ++kind) {
      for (size_t count : {0, 1, 7, 16, 33}) {
        const auto activation = static_cast<Activation>(kind);
        const double a = 0.25, b = 0.5;
        std::vector<float> values(count + 1);
        for (size_t i = 0; i < count; ++i) values[i] = 0.3f * static_cast<float>(i) - 3.0f;
        values[count] = 42.0f;
        const std::vector<float> before = values;
        function(activation, static_cast<float>(a), static_cast<float>(b), values.data(), count);
        for (size_t i = 0; i < count; ++i) {
          const double want = activate(activation, a, b, static_cast<double>(before[i]));
          EXPECT_NEAR(values[i], want, 1e-6 * (1 + std::abs(want))) << name_of(activation) << " on " << unit;
        }
        EXPECT_EQ(values[count], 42.0f) << name_of(activation) << " wrote past the end on " << unit;
      }
    }
  }
}

}  // namespace
}  // namespace sparkle::cpu
#endif
