// Pointwise programs as GLSL: one text for a program and its element types. Sizes, strides and the parameters of instructions
// come in a record, so that neither a new shape nor other bounds of a clip build anything.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "families/pointwise/pointwise.h"
#include "families/stage.h"

namespace sparkle::vulkan {

// Axes beyond the innermost one, after those that could be merged are.
inline constexpr int kPointwiseAxes = 7;
// What is pushed: addresses of operands, output and record.
inline constexpr int kPointwiseOperands = 12;

// In front of a text whose compilers are to leave NaN and infinities alone: SignedZeroInfNanPreserve for 32 bits. The extension
// GL_EXT_spirv_intrinsics is required before.
inline constexpr std::string_view kKeepsNan =
    "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4466], 4461, 32);\n";

struct PointwiseText {
  std::string glsl;
  std::vector<uint32_t> parameters;  // four words per instruction, as the text reads them
};

// What a device can promise of a shader that demands it.
struct FloatPromises {
  bool keeps_nan = false;  // compilers leave NaN and infinities alone
  bool exact_f16 = false;  // conversions to f16 and back are exact, or round to even: none by hand
  bool doubles = false;    // shaders may compute in double precision
};

// Errors: type_not_served, naming the type or the operation.
Result<PointwiseText> pointwise_text(const PointwiseParams& program, std::span<const DType> inputs, DType output,
                                     const FloatPromises& promises);

// The program in fp32 as a function of this name of one float per operand; `parameter`: a function that gives parameter
// 2 * instruction (a) and the one behind it (b). Errors: type_not_served, naming the operation.
Result<std::string> float_program(const PointwiseParams& program, const std::string& name, const std::string& parameter);

}  // namespace sparkle::vulkan
