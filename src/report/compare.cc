#include "report/compare.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "families/values/element.h"

namespace sparkle {
namespace {

double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

double element(const HostTensor& t, int64_t i) {
  switch (t.dtype) {
    case DType::f32: return t.data<float>()[i];
    case DType::f64: return t.data<double>()[i];
    case DType::f16: return half_to_double(t.data<uint16_t>()[i]);
    case DType::bf16: return std::bit_cast<float>(static_cast<uint32_t>(t.data<uint16_t>()[i]) << 16);
    case DType::i8: return t.data<int8_t>()[i];
    case DType::u8:
    case DType::boolean: return t.data<uint8_t>()[i];
    case DType::i16: return t.data<int16_t>()[i];
    case DType::u16: return t.data<uint16_t>()[i];
    case DType::i32: return t.data<int32_t>()[i];
    case DType::u32: return t.data<uint32_t>()[i];
    case DType::i64: return static_cast<double>(t.data<int64_t>()[i]);
    case DType::u64: return static_cast<double>(t.data<uint64_t>()[i]);
    default: return load_element(t.dtype, t.bytes.get() + i);  // the narrow types
  }
}

std::string number(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", v);
  return text;
}

}  // namespace

Tolerance tolerance_for(DType dtype, bool whole_network) {
  switch (dtype) {
    case DType::f16: return {1e-3, 1e-2};
    case DType::bf16: return {8e-3, 2e-2};
    case DType::f32:
    case DType::f64: return {whole_network ? 1e-4 : 1e-5, 1e-3};
    default: return {0, 0};
  }
}

std::string to_text(const Tolerance& t) {
  if (t.absolute == 0 && t.relative == 0) return "equal";
  char text[80];
  std::snprintf(text, sizeof text, "|a-b| <= %g%s + %g |b|", t.absolute, t.of_largest ? " max|b|" : "", t.relative);
  return text;
}

Comparison compare(const HostTensor& actual, const HostTensor& expected, const Tolerance& tolerance) {
  Comparison c;
  if (actual.dtype != expected.dtype) {
    c.problem = "type " + std::string(name_of(actual.dtype)) + ", expected " + std::string(name_of(expected.dtype));
    return c;
  }
  if (!(actual.shape == expected.shape)) {
    c.problem = "shape " + actual.shape.to_string() + ", expected " + expected.shape.to_string();
    return c;
  }
  const int64_t n = expected.elements();
  for (int64_t i = 0; i < n; ++i)
    if (const double b = std::abs(element(expected, i)); std::isfinite(b)) c.largest_value = std::max(c.largest_value, b);
  const bool inexact = tolerance.absolute > 0 || tolerance.relative > 0;
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < n; ++i) {
    const double a = element(actual, i), b = element(expected, i);
    // Integers of 64 bits may differ where doubles of them do not.
    const bool whole = !is_float(expected.dtype) && !is_narrow(expected.dtype) && expected.dtype != DType::boolean;
    const int64_t size = size_of(expected.dtype);
    if (whole ? std::memcmp(actual.bytes.get() + i * size, expected.bytes.get() + i * size, static_cast<size_t>(size)) == 0
              : a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    const double error = std::abs(a - b);
    if (std::isfinite(error)) c.largest_error = std::max(c.largest_error, error);
    const double floor = tolerance.absolute * (tolerance.of_largest ? c.largest_value : 1);
    if ((!whole || inexact) && error <= floor + tolerance.relative * std::abs(b) && std::isfinite(error)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong > 0) {
    c.problem = std::to_string(wrong) + " of " + std::to_string(n) + " elements differ, the first at " + std::to_string(first) +
                ": " + number(element(actual, first)) + ", expected " + number(element(expected, first)) + " (largest error " +
                number(c.largest_error) + ")";
    return c;
  }
  c.equal = true;
  return c;
}

Comparison compare_direction(const HostTensor& actual, const HostTensor& expected) {
  constexpr double kLeastCosine = 0.98;
  // Type and shape, and the errors to report.
  Comparison c = compare(actual, expected, {0, 0});
  if (c.equal || actual.dtype != expected.dtype || !(actual.shape == expected.shape)) return c;
  double product = 0, norm_a = 0, norm_b = 0;
  int64_t top_a = 0, top_b = 0;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    const double a = element(actual, i), b = element(expected, i);
    product += a * b, norm_a += a * a, norm_b += b * b;
    if (a > element(actual, top_a)) top_a = i;
    if (b > element(expected, top_b)) top_b = i;
  }
  const double cosine = product / std::sqrt(norm_a * norm_b);
  c.equal = top_a == top_b && cosine >= kLeastCosine;
  c.problem = c.equal ? std::string()
                      : "largest at " + std::to_string(top_a) + ", expected " + std::to_string(top_b) + "; cosine " +
                            number(cosine) + ", expected at least " + number(kLeastCosine);
  return c;
}

}  // namespace sparkle
