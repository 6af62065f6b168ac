// What the parts of sparkle._core share: element types and arrays between Python and sparkle.hpp.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <optional>
#include <sparkle/sparkle.hpp>
#include <vector>

namespace nb = nanobind;

namespace core {

// Any array that speaks the buffer protocol or DLPack, dense and row-major, in host memory.
using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Objects = std::vector<nb::object>;

inline constexpr uint8_t kBfloat = static_cast<uint8_t>(nb::dlpack::dtype_code::Bfloat), kBool = 6;

inline sparkle::Type type_of(nb::dlpack::dtype d) {
  using sparkle::Type;
  const int bits = d.bits;
  switch (d.code) {
    case static_cast<uint8_t>(nb::dlpack::dtype_code::Float):
      if (bits == 32) return Type::f32;
      if (bits == 16) return Type::f16;
      if (bits == 64) return Type::f64;
      break;
    case kBfloat: return Type::bf16;
    case static_cast<uint8_t>(nb::dlpack::dtype_code::Int):
      return bits == 8 ? Type::i8 : bits == 16 ? Type::i16 : bits == 32 ? Type::i32 : Type::i64;
    case static_cast<uint8_t>(nb::dlpack::dtype_code::UInt):
      return bits == 8 ? Type::u8 : bits == 16 ? Type::u16 : bits == 32 ? Type::u32 : Type::u64;
    case kBool: return Type::boolean;
    default: break;
  }
  throw sparkle::Exception(SPARKLE_NOT_SERVED, "Arrays of this element type cannot be taken.");
}

inline nb::dlpack::dtype dtype_of(sparkle::Type type) {
  using sparkle::Type;
  const auto make = [&](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sparkle::size_of(type)), 1};
  };
  switch (type) {
    case Type::f32:
    case Type::f16:
    case Type::f64: return make(nb::dlpack::dtype_code::Float);
    case Type::i8:
    case Type::i16:
    case Type::i32:
    case Type::i64: return make(nb::dlpack::dtype_code::Int);
    case Type::boolean: return nb::dlpack::dtype{kBool, 8, 1};
    default: return make(nb::dlpack::dtype_code::UInt);
  }
}

inline const char* name_of(sparkle::Type type) {
  static constexpr const char* kNames[] = {"float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16",
                                           "int32", "uint32", "int64", "uint64", "bool",
                                           // those of the ml_dtypes package
                                           "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
                                           "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2"};
  return kNames[static_cast<int>(type)];
}

// The type of NumPy whose elements hold the bits of a type that NumPy lacks; other types are their own.
inline sparkle::Type bits_of(sparkle::Type type) {
  if (type == sparkle::Type::bf16) return sparkle::Type::u16;
  return type >= sparkle::Type::f8e4m3fn ? sparkle::Type::u8 : type;
}

inline sparkle::Type type_named(const std::string& name) {
  for (int i = static_cast<int>(sparkle::Type::f32); i <= static_cast<int>(sparkle::Type::u2); ++i)
    if (name == name_of(static_cast<sparkle::Type>(i))) return static_cast<sparkle::Type>(i);
  throw sparkle::Exception(SPARKLE_BAD_USAGE, "There is no element type '" + name + "'.");
}

// A tensor on the memory of an array, which keeps it alive.
struct Borrowed {
  Array array;
  sparkle::Tensor tensor;
};

// NumPy has no bfloat16 and no type below 16 bits but the 8-bit integers: where such a type is wanted, the bits come as
// unsigned integers.
inline Borrowed borrow(const nb::object& object, std::optional<sparkle::Type> wanted, const std::string& what) {
  Borrowed b;
  if (!nb::try_cast(object, b.array))
    throw sparkle::Exception(SPARKLE_BAD_INPUT, what + " is no dense row-major array in host memory.");
  sparkle::Shape shape;
  for (size_t i = 0; i < b.array.ndim(); ++i) shape.push_back(static_cast<int64_t>(b.array.shape(i)));
  sparkle::Type type = type_of(b.array.dtype());
  if (wanted && type == bits_of(*wanted)) type = *wanted;
  b.tensor = sparkle::Tensor(type, std::move(shape), const_cast<void*>(b.array.data()));
  return b;
}

// The tensor's memory as an array that owns it; types that NumPy lacks as their bits.
inline nb::object array_of(const sparkle::Tensor& t) {
  auto* owner = new std::shared_ptr<void>(t.owner());
  const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<void>*>(p); });
  std::vector<size_t> shape(t.shape().begin(), t.shape().end());
  return nb::cast(nb::ndarray<nb::numpy>(t.data(), shape.size(), shape.data(), capsule, nullptr, dtype_of(bits_of(t.type()))));
}

template <class F>
auto unlocked(F&& work) {
  const nb::gil_scoped_release release;
  return work();
}

// sparkle/vision.hpp as Python sees it.
void bind_vision(nb::module_& m);

}  // namespace core
