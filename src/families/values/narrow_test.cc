// The types below 16 bits: every code against the formats' definitions, every rounding against a search for the nearest value.
#include "families/values/narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <vector>

#include "families/values/convert.h"
#include "families/pointwise/cast.h"
#include "families/pointwise/pointwise.h"

namespace sparkle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr DType kScaled[] = {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1};

double value_of(DType type, int code) {
  const auto byte = static_cast<std::byte>(code);
  return load_element(type, &byte);
}
template <class F>
int code_of(DType type, F value) {
  std::byte byte{0x5a};
  store_row(type, &value, 1, &byte, 1);
  return static_cast<int>(byte);
}

// As the papers write it: sign, exponent e, fraction f: 2^(e - bias) (1 + f), or 2^(1 - bias) f where e is 0.
double defined(int exponent_bits, int mantissa_bits, int bias, int code) {
  const int sign = code >> (exponent_bits + mantissa_bits) & 1;
  const int e = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const double f = (code & ((1 << mantissa_bits) - 1)) / std::pow(2.0, mantissa_bits);
  const double size = e == 0 ? std::pow(2.0, 1 - bias) * f : std::pow(2.0, e - bias) * (1 + f);
  return sign ? -size : size;
}

void expect_value(DType type, int code, double want) {
  const double have = value_of(type, code);
  EXPECT_TRUE(have == want ? std::signbit(have) == std::signbit(want) : std::isnan(have) && std::isnan(want))
      << name_of(type) << " " << code << ": " << have << ", expected " << want;
}

TEST(Narrow, EveryCode) {
  for (int code = 0; code < 256; ++code) {
    const int size = code & 127;
    const double nan = std::nan(""), sign = code >> 7 ? -1 : 1;
    expect_value(DType::f8e4m3fn, code, size == 127 ? nan : defined(4, 3, 7, code));
    expect_value(DType::f8e4m3fnuz, code, code == 128 ? nan : defined(4, 3, 8, code));
    expect_value(DType::f8e5m2, code, size > 124 ? nan : size == 124 ? sign * kInfinity : defined(5, 2, 15, code));
    expect_value(DType::f8e5m2fnuz, code, code == 128 ? nan : defined(5, 2, 16, code));
    expect_value(DType::f8e8m0, code, code == 255 ? nan : std::pow(2.0, code - 127));
    expect_value(DType::f4e2m1, code, defined(2, 1, 1, code & 15));
    expect_value(DType::u4, code, code & 15);
    expect_value(DType::i4, code, (code & 15) - (code & 8 ? 16 : 0));
    expect_value(DType::u2, code, code & 3);
    expect_value(DType::i2, code, (code & 3) - (code & 2 ? 4 : 0));
  }
  const double largest[] = {448, 240, 57344, 57344, 6};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(largest_of(kScaled[i]), largest[i]);
}

// The codes of a type in ascending order of its finite numbers, from 0 on.
std::vector<int> positive_codes(DType type) {
  std::vector<int> codes;
  for (int code = 0; code < (type == DType::f4e2m1 ? 8 : 128); ++code)
    if (std::isfinite(value_of(type, code))) codes.push_back(code);
  return codes;
}

// Nearest by distance, the even code in the middle. Beyond the largest: nothing, from the middle to where the next would be on.
std::optional<int> nearest(DType type, const std::vector<int>& codes, double value) {
  const double last = value_of(type, codes.back()), step = last - value_of(type, codes[codes.size() - 2]);
  if (value >= last + step / 2) {
    // In the middle the even code wins, which is the one after the last where that is odd.
    if (value > last + step / 2 || codes.back() % 2 != 0) return std::nullopt;
    return codes.back();
  }
  int best = 0;
  for (const int code : codes) {
    const double distance = std::abs(value_of(type, code) - value), least = std::abs(value_of(type, best) - value);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return best;
}

template <class F>
void expect_nearest(DType type, const std::vector<int>& codes, F size) {
  const int beyond = type == DType::f8e5m2 ? 0x7c : type == DType::f8e4m3fn ? 0x7f : type == DType::f4e2m1 ? 7 : 0x80;
  const bool unsigned_zero = type == DType::f8e4m3fnuz || type == DType::f8e5m2fnuz;
  const int want = nearest(type, codes, static_cast<double>(size)).value_or(beyond);
  EXPECT_EQ(code_of(type, size), want) << name_of(type) << " " << size;
  const int sign = type == DType::f4e2m1 ? 8 : 128;
  const bool keeps = !unsigned_zero || (want != 0 && want != 0x80);
  EXPECT_EQ(code_of(type, -size), keeps ? want | sign : want) << name_of(type) << " " << -size;
}

template <class F>
void expect_roundings() {
  for (const DType type : kScaled) {
    const std::vector<int> codes = positive_codes(type);
    std::vector<double> places{0, 1e-12, 1e5, 1e30, kInfinity};
    for (size_t i = 0; i < codes.size(); ++i) {
      const double at = value_of(type, codes[i]), next = i + 1 < codes.size() ? value_of(type, codes[i + 1]) : at * 1.25;
      places.insert(places.end(), {at, (at + next) / 2});
    }
    // The largest is in the middle between 5 and 8, between 416 and 480 and so on: exactly half way to what would come next.
    const double last = value_of(type, codes.back());
    places.push_back(last + (last - value_of(type, codes[codes.size() - 2])) / 2);
    for (const double place : places) {
      const F at = static_cast<F>(place);
      for (const F v : {at, std::nextafter(at, F(0)), std::nextafter(at, static_cast<F>(kInfinity))})
        expect_nearest(type, codes, v);
    }
    std::mt19937 random(11);
    std::uniform_real_distribution<double> exponent(-20, 18);
    for (int i = 0; i < 4000; ++i) expect_nearest(type, codes, static_cast<F>(std::exp2(exponent(random))));
  }
}
TEST(Narrow, RoundsFloatsToNearestEven) { expect_roundings<float>(); }
TEST(Narrow, RoundsDoublesToNearestEven) { expect_roundings<double>(); }

TEST(Narrow, EveryCodeComesBack) {
  for (int t = static_cast<int>(DType::f8e4m3fn); t < kDTypes; ++t) {
    const DType type = static_cast<DType>(t);
    for (int code = 0; code < 1 << stored_bits(type); ++code) {
      const double value = value_of(type, code);
      const int f64 = code_of(type, value), f32 = code_of(type, static_cast<float>(value));
      std::byte rounded{0x5a};
      store_element(type, value, &rounded);
      EXPECT_EQ(f64, f32) << name_of(type) << " " << code;
      EXPECT_EQ(f64, static_cast<int>(rounded)) << name_of(type) << " " << code;
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(value_of(type, f64))) << name_of(type) << " " << code;
      } else {
        EXPECT_EQ(f64, code) << name_of(type);
      }
    }
  }
  EXPECT_EQ(code_of(DType::f4e2m1, std::nan("")), 0);
}

// x as a power of two, by logarithms; what is beyond both ends by the specification's table.
int power_code(double x, PowerRounding rounding, bool saturate) {
  const double least = std::exp2(-127), most = std::exp2(127);
  if (std::isnan(x) || x < 0) return 255;
  if (x < least) return saturate ? 0 : 255;
  if (x > most) return saturate ? 254 : 255;
  const double down = std::exp2(std::floor(std::log2(x))), up = down == x ? down : 2 * down;
  const double chosen = rounding == PowerRounding::up     ? up
                        : rounding == PowerRounding::down ? down
                        : x - down < up - x               ? down
                                                          : up;
  return static_cast<int>(std::log2(chosen)) + 127;
}

TEST(Narrow, PowersOfTwo) {
  std::vector<double> values{0, -0.0, -1, -kInfinity, kInfinity, std::nan(""), 1e300, 1e-300, 1e-42};
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-130, 130);
  for (int i = 0; i < 3000; ++i) values.push_back(std::exp2(exponent(random)));
  for (int e = -128; e <= 128; ++e)
    for (const double factor : {1.0, 1.25, 1.5, 1.75}) values.push_back(factor * std::exp2(e));
  for (const double v : values)
    for (const bool saturate : {true, false})
      for (const PowerRounding rounding : {PowerRounding::up, PowerRounding::down, PowerRounding::nearest}) {
        const int want = power_code(v, rounding, saturate);
        EXPECT_EQ(narrow::encode_power(v, rounding, saturate), want) << v << " " << name_of(rounding) << saturate;
        const auto single = static_cast<float>(v);
        const int want_single = power_code(static_cast<double>(single), rounding, saturate);
        EXPECT_EQ(narrow::encode_power(single, rounding, saturate), want_single)
            << single << " " << name_of(rounding) << saturate;
        // Cast: the program, then the conversion into the type.
        const PointwiseInstruction step = cast_program(DType::f8e8m0, saturate, rounding).program[0];
        EXPECT_EQ(code_of(DType::f8e8m0, evaluate(step.op, v, 0, 0, step.a, step.b)), want) << v << " " << name_of(rounding);
      }
}

// The table of the Cast operator.
TEST(Narrow, CastSaturatesUnlessToldNotTo) {
  const auto cast = [](DType type, double v, bool saturate) {
    const PointwiseInstruction step = cast_program(type, saturate, PowerRounding::up).program[0];
    return value_of(type, code_of(type, evaluate(step.op, v, 0, 0, step.a, step.b)));
  };
  for (const DType type : kScaled) {
    const double most = largest_of(type);
    for (const double v : {kInfinity, 1e6}) {
      EXPECT_EQ(cast(type, v, true), most) << name_of(type);
      EXPECT_EQ(cast(type, -v, true), -most) << name_of(type);
      if (type == DType::f4e2m1) {
        EXPECT_EQ(cast(type, v, false), most);
      } else if (type == DType::f8e5m2) {
        EXPECT_EQ(cast(type, v, false), kInfinity);
        EXPECT_EQ(cast(type, -v, false), -kInfinity);
      } else {
        EXPECT_TRUE(std::isnan(cast(type, v, false))) << name_of(type);
      }
    }
    EXPECT_EQ(std::isnan(cast(type, std::nan(""), true)), type != DType::f4e2m1);
    EXPECT_EQ(cast(type, 1.5, true), 1.5);
  }
}

TEST(Narrow, IntegersKeepLowBits) {
  for (int64_t v = -600; v <= 600; ++v) {
    EXPECT_EQ(code_of(DType::i4, v), v & 15);
    EXPECT_EQ(code_of(DType::u2, static_cast<int16_t>(v)), v & 3);
    EXPECT_EQ(code_of(DType::u4, static_cast<double>(v) + (v < 0 ? -0.75 : 0.75)), v & 15);
    EXPECT_EQ(code_of(DType::i2, static_cast<float>(v)), v & 3);
  }
  EXPECT_EQ(code_of(DType::i4, std::nan("")), 0);
  // As constants of the planner: nearest, saturating.
  for (const auto& [type, value, want] : {std::tuple{DType::i4, 7.6, 7},
                                          {DType::i4, -99.0, 8},
                                          {DType::u4, 2.5, 2},
                                          {DType::u4, -3.0, 0},
                                          {DType::i2, 0.6, 1},
                                          {DType::u2, 9.0, 3}}) {
    std::byte byte{0x5a};
    store_element(type, value, &byte);
    EXPECT_EQ(static_cast<int>(byte), want) << name_of(type) << value;
  }
}

}  // namespace
}  // namespace sparkle
