// Element types as the shaders on integers know them (glsl/bytes.glsl), and what such a shader needs of a device.
#pragma once

#include <optional>

#include "backends/vulkan/kernels/vulkan_kernel.h"

namespace sparkle::vulkan {

// The constant of a type; none: the shaders do not read it.
inline std::optional<uint32_t> byte_type(DType type) {
  switch (type) {
    case DType::f32: return 0;
    case DType::u8: return 1;
    case DType::i8: return 2;
    case DType::u16: return 3;
    case DType::i16: return 4;
    case DType::i32: return 5;
    case DType::i4: return 6;
    case DType::u4: return 7;
    case DType::i2: return 8;
    case DType::u2: return 9;
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f4e2m1: return 10;  // which of them, their format says
    default: return std::nullopt;
  }
}
inline bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }

// Errors: type_not_served where shaders cannot address single bytes.
inline Status check_bytes(const Workshop& shop) {
  if (shop.context->features().i8) return ok();
  return Error{Reason::type_not_served,
               "The driver of '" + shop.context->physical().name +
                   "' gives shaders no access to single bytes, which 8-bit integers need; use --device cpu."};
}

}  // namespace sparkle::vulkan
