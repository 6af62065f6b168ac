// Element types by their names in the Open Inference Protocol: "FP32", "INT64", "BOOL".
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace sparkle::serve {

// Empty for types that the protocol has no name for.
constexpr std::string_view protocol_name(DType type) {
  switch (type) {
    case DType::f32: return "FP32";
    case DType::f16: return "FP16";
    case DType::bf16: return "BF16";
    case DType::f64: return "FP64";
    case DType::i8: return "INT8";
    case DType::u8: return "UINT8";
    case DType::i16: return "INT16";
    case DType::u16: return "UINT16";
    case DType::i32: return "INT32";
    case DType::u32: return "UINT32";
    case DType::i64: return "INT64";
    case DType::u64: return "UINT64";
    case DType::boolean: return "BOOL";
    default: return "";
  }
}

constexpr std::optional<DType> protocol_type(std::string_view name) {
  for (int i = 0; i < kDTypes; ++i)
    if (!name.empty() && protocol_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace sparkle::serve
