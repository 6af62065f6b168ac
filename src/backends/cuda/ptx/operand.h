// What products multiply, and tensor maps: words that host and kernels share.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

enum class Operand : uint8_t { f16, bf16, tf32, i8, u8, f32 };
constexpr bool is_integer(Operand type) { return type == Operand::i8 || type == Operand::u8; }
// Bytes of an operand in memory.
constexpr int operand_bytes(Operand type) {
  return is_integer(type) ? 1 : type == Operand::f16 || type == Operand::bf16 ? 2 : 4;
}
// What filters are where pixels are of `type`: of bytes signed ones.
constexpr Operand filter_operand(Operand type) { return type == Operand::u8 ? Operand::i8 : type; }

// 128 bytes as cuTensorMapEncodeTiled or -Im2col writes them.
struct alignas(64) TensorMap {
  uint64_t words[16] = {};
};

}  // namespace sparkle::cuda
