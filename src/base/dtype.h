// Element types of tensors: names and sizes. Those below 16 bits from f8e4m3fn on are storage types: tensors of them are moved
// and converted (families/values/narrow.h), nothing is computed in them. In memory each of their elements has a byte of its
// own, 4- and 2-bit elements in its low bits; they are packed in ONNX files alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sparkle {

enum class DType : uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2,
};
inline constexpr int kDTypes = static_cast<int>(DType::u2) + 1;

// Bytes of one element.
constexpr int64_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::i4:
    case DType::u4:
    case DType::i2:
    case DType::u2: return 1;
  }
  return 0;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::f64: return "f64";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::i16: return "i16";
    case DType::u16: return "u16";
    case DType::i32: return "i32";
    case DType::u32: return "u32";
    case DType::i64: return "i64";
    case DType::u64: return "u64";
    case DType::boolean: return "bool";
    case DType::f8e4m3fn: return "f8e4m3fn";
    case DType::f8e4m3fnuz: return "f8e4m3fnuz";
    case DType::f8e5m2: return "f8e5m2";
    case DType::f8e5m2fnuz: return "f8e5m2fnuz";
    case DType::f8e8m0: return "f8e8m0";
    case DType::f4e2m1: return "f4e2m1";
    case DType::i4: return "i4";
    case DType::u4: return "u4";
    case DType::i2: return "i2";
    case DType::u2: return "u2";
  }
  return "?";
}

// The type called `name`, or nothing.
constexpr std::optional<DType> dtype_from(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i)
    if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}

// The floats that operators compute on.
constexpr bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

constexpr bool is_narrow(DType type) { return type >= DType::f8e4m3fn; }
constexpr bool is_narrow_float(DType type) { return type >= DType::f8e4m3fn && type <= DType::f4e2m1; }
constexpr bool is_narrow_integer(DType type) { return type >= DType::i4; }

// Bits of one element in a file.
constexpr int64_t stored_bits(DType type) {
  if (type == DType::i2 || type == DType::u2) return 2;
  if (type == DType::i4 || type == DType::u4 || type == DType::f4e2m1) return 4;
  return 8 * size_of(type);
}

}  // namespace sparkle
