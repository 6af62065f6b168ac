// TypeSet: which element types something takes, and the sets that families speak of.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/dtype.h"

namespace sparkle {

class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (DType type : types) bits_ |= 1u << static_cast<unsigned>(type);
  }
  constexpr bool has(DType type) const { return bits_ >> static_cast<unsigned>(type) & 1u; }
  friend constexpr TypeSet operator|(TypeSet a, TypeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  uint32_t bits_ = 0;
};
std::string to_text(TypeSet types);  // "f32, f16, bf16"

inline constexpr TypeSet kFloats{DType::f32, DType::f16, DType::bf16, DType::f64};
inline constexpr TypeSet kSignedIntegers{DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr TypeSet kUnsignedIntegers{DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr TypeSet kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr TypeSet kNumbers = kFloats | kIntegers;
inline constexpr TypeSet kComputed = kNumbers | TypeSet{DType::boolean};
inline constexpr TypeSet kNarrow{DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0,
                                 DType::f4e2m1,   DType::i4,         DType::u4,     DType::i2,         DType::u2};
inline constexpr TypeSet kAllTypes = kComputed | kNarrow;

// The type that values have inside of one step, f16 and bf16 excepted their own.
constexpr DType computed_in(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

}  // namespace sparkle
