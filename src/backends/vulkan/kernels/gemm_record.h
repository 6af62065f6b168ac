// GemmRecord: the sizes and pitches of a gemm stage as shaders read them. glsl/gemm_record.inc has its fields, once for both
// sides, and says what they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/vulkan/kernels/divisor.h"
#include "base/result.h"
#include "families/stage.h"

namespace sparkle::vulkan {

struct GemmRecord {
#define VECTOR(name) int32_t name[4];
#define VECTORS(name, count) int32_t name[count][4];
#define INTEGER(name) int32_t name;
#define DIVISORS(name, count) Divisor name[count];
#define REAL(name) float name;
#include "backends/vulkan/glsl/gemm_record.inc"

  // Behind the last change of rows and instances.
  void set_divisors();
};

// Shaders see the fields one behind the other (GL_EXT_scalar_block_layout): so do they lie here.
consteval bool is_without_gaps() {
  size_t at = 0;
  bool same = true;
#define VECTOR(name) same &= offsetof(GemmRecord, name) == at, at += 16;
#define VECTORS(name, count) same &= offsetof(GemmRecord, name) == at, at += 16 * (count);
#define INTEGER(name) same &= offsetof(GemmRecord, name) == at, at += 4;
#define DIVISORS(name, count) same &= offsetof(GemmRecord, name) == at, at += 12 * (count);
#define REAL(name) same &= offsetof(GemmRecord, name) == at, at += 4;
#include "backends/vulkan/glsl/gemm_record.inc"
  return same && at == sizeof(GemmRecord);
}
static_assert(is_without_gaps());

// Errors: layout_not_served where an operand spans more than 2^31 elements or more than four batch axes remain.
Result<GemmRecord> gemm_record(const Stage& stage);

// Where an operand that is shaped like the output has the element of an output: by its row's pixel, its instance and channel.
struct Places {
  int32_t row[4] = {}, instance[4] = {}, channel = 0;
};
Places places_of(const Stage& stage, const TensorDesc& operand);

// Whether so many neighbouring channels of an operand are one aligned vector wherever they begin.
bool in_vectors(int32_t wide, const TensorDesc& desc, std::span<const int32_t> pitches, int32_t channel, int64_t count);
// Four of them: a vector of floats, one word of 8-bit integers.
inline bool fours(const TensorDesc& desc, std::span<const int32_t> pitches, int32_t channel, int64_t count) {
  return in_vectors(4, desc, pitches, channel, count);
}

}  // namespace sparkle::vulkan
