// What products multiply, and tensor maps: words that host and kernels share.
#pragma once

#include <cstdint>

namespace sparkle::cuda {

enum class Operand : uint8_t { f16, bf16, tf32, i8, f32 };
// Bytes of an operand in memory.
constexpr int operand_bytes(Operand type) {
  return type == Operand::i8 ? 1 : type == Operand::f16 || type == Operand::bf16 ? 2 : 4;
}

// 128 bytes as cuTensorMapEncodeTiled or -Im2col writes them.
struct alignas(64) TensorMap {
  uint64_t words[16] = {};
};

}  // namespace sparkle::cuda
