// GemmRecord: the sizes and strides of a gemm stage as shaders read them. glsl/gemm_record.inc has its fields, once for both
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
#include "backends/vulkan/glsl/record_fields.inc"
#include "backends/vulkan/glsl/gemm_record.inc"

  // Behind the last change of rows and instances.
  void set_divisors();
};

consteval bool gemm_record_has_no_gaps() {
  size_t end = 0;
  bool none = true;
#define FIELD(name, bytes) none &= offsetof(GemmRecord, name) == end, end += (bytes);
#include "backends/vulkan/glsl/record_places.inc"
#include "backends/vulkan/glsl/gemm_record.inc"
#undef FIELD
  return none && end == sizeof(GemmRecord);
}
static_assert(gemm_record_has_no_gaps());

// Errors: layout_not_served where an operand spans more than 2^31 elements or more than four batch axes remain.
Result<GemmRecord> gemm_record(const Stage& stage);

// Where an operand that is shaped like the output has the element of an output: by its row's pixel, its instance and channel.
struct OperandStrides {
  int32_t row[4] = {}, instance[4] = {}, channel = 0;
};
OperandStrides operand_strides(const Stage& stage, const TensorDesc& operand);

// Whether so many neighbouring channels of an operand are one aligned vector wherever they begin.
bool in_vectors(int32_t wide, const TensorDesc& desc, std::span<const int32_t> strides, int32_t channel, int64_t count);
// Four of them: a vector of floats, one word of 8-bit integers.
inline bool is_vec4(const TensorDesc& desc, std::span<const int32_t> strides, int32_t channel, int64_t count) {
  return in_vectors(4, desc, strides, channel, count);
}

}  // namespace sparkle::vulkan
