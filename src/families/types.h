// Element types: which form of which family computes in which types, said once. The planner refuses by this table, its error
// sentence quotes it and docs/element_types.md is printed from it.
//
// f16 and bf16 are storage types: arithmetic on them is done in f32 and rounded to nearest even where a tensor is stored in 16
// bits. GPUs that store f16 exchange it between the families that keeps_halves() lists, everything else between f32 steps. f64
// is computed in double, integers in their own type, exactly, wrapping around as two's complement does. The narrow types are
// moved and converted, nothing else.
#pragma once

#include <initializer_list>
#include <span>
#include <string>

#include "families/stage.h"

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

// One form of a family: "window" convolutions, "max" pooling ...
struct TypeRow {
  Family family;
  std::string_view form;       // empty: the whole family
  std::string_view operators;  // what the model calls it
  TypeSet types;
  std::string_view how;  // how types other than f32 are computed
};
std::span<const TypeRow> type_rows();
// The row that a stage of these parameters belongs to. A pointwise program belongs to the row of its last instruction.
const TypeRow& type_row(const StageParams& params);
const TypeRow& type_row(PointwiseOp op);

// Whether the family's kernels on this device read and write f16 as it is; else it is converted to f32 before them.
bool keeps_halves(Family family, const Device& device);

// The type that values have inside of one step, f16 and bf16 excepted their own.
constexpr DType computed_in(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

// The type in which a pointwise program over these operands is computed: double where f64 is among them or where 32- or 64-bit
// integers meet floats, f32 for the other floats and for truth values alone, else the operands' own integer type (8 bits for
// those of 4 and 2).
DType pointwise_arithmetic(std::span<const DType> operands, DType result);
DType pointwise_arithmetic(std::span<const TensorDesc> operands, const TensorDesc& result);

// True where integers have the operation.
bool serves_integers(PointwiseOp op);

// The table as a page of documentation.
std::string type_table();

}  // namespace sparkle
