#include "serve/json/json_value.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/half_floats.h"

namespace sparkle::serve {
namespace {

template <class T>
bool put_integer(HostTensor& t, int64_t at, const Scalar& v) {
  if (v.kind == Scalar::Kind::natural) {
    if (v.natural > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
    t.data<T>()[at] = static_cast<T>(v.natural);
    return true;
  }
  if (v.kind != Scalar::Kind::negative || v.negative < static_cast<int64_t>(std::numeric_limits<T>::min())) return false;
  t.data<T>()[at] = static_cast<T>(v.negative);
  return true;
}

// Rounded once, from the digits themselves.
float as_float(const Scalar& v) {
  float value = 0;
  if (v.kind == Scalar::Kind::real && v.text) {
    const auto end = v.text->data() + v.text->size();
    if (const auto read = std::from_chars(v.text->data(), end, value); read.ec == std::errc() && read.ptr == end) return value;
  }
  return static_cast<float>(v.as_double());
}

}  // namespace

bool put_value(HostTensor& t, int64_t at, const Scalar& v) {
  if (t.dtype == DType::boolean) {
    const bool is_bit = v.kind == Scalar::Kind::natural && v.natural <= 1;
    if (v.kind != Scalar::Kind::boolean && !is_bit) return false;
    t.data<uint8_t>()[at] = is_bit ? static_cast<uint8_t>(v.natural) : v.truth;
    return true;
  }
  if (!v.is_number()) return false;
  switch (t.dtype) {
    case DType::f32: {
      const float value = as_float(v);
      t.data<float>()[at] = value;
      return std::isfinite(value);
    }
    case DType::f64: t.data<double>()[at] = v.as_double(); return true;
    case DType::f16: {
      const uint16_t bits = double_to_half(v.as_double());
      t.data<uint16_t>()[at] = bits;
      return std::isfinite(half_to_float(bits));
    }
    case DType::bf16: {
      const uint16_t bits = float_to_bfloat16(as_float(v));
      t.data<uint16_t>()[at] = bits;
      return std::isfinite(bfloat16_to_float(bits));
    }
    case DType::i8: return put_integer<int8_t>(t, at, v);
    case DType::u8: return put_integer<uint8_t>(t, at, v);
    case DType::i16: return put_integer<int16_t>(t, at, v);
    case DType::u16: return put_integer<uint16_t>(t, at, v);
    case DType::i32: return put_integer<int32_t>(t, at, v);
    case DType::u32: return put_integer<uint32_t>(t, at, v);
    case DType::i64: return put_integer<int64_t>(t, at, v);
    case DType::u64: return put_integer<uint64_t>(t, at, v);
    default: return false;
  }
}

}  // namespace sparkle::serve
