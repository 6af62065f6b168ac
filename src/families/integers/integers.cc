#include "families/integers/integers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sparkle {

namespace {
bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }
}  // namespace

bool is_integer(const std::vector<TensorDesc>& inputs) { return !inputs.empty() && is_byte(inputs[0].dtype); }

IntegerOperands integer_operands(const Epilogue& e) {
  IntegerOperands at;
  int next = 2;
  if (e.scale) at.scale = next++;
  if (e.bias) at.bias = next++;
  at.a_zero = next++;
  at.b_zero = next++;
  if (e.scale) at.y_zero = next++;
  at.count = next;
  return at;
}

IntegerRange range_of(DType type) {
  switch (type) {
    case DType::u8: return {0, 255};
    case DType::i8: return {-128, 127};
    case DType::u16: return {0, 65535};
    case DType::i16: return {-32768, 32767};
    case DType::u4: return {0, 15};
    case DType::i4: return {-8, 7};
    case DType::u2: return {0, 3};
    case DType::i2: return {-2, 1};
    default: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

IntegerRange output_range(DType type, const Epilogue& e) {
  IntegerRange range = range_of(type);
  if (e.activation == Activation::clip) {
    range.low = std::clamp(static_cast<int64_t>(e.a), range.low, range.high);
    range.high = std::clamp(static_cast<int64_t>(e.b), range.low, range.high);
  }
  return range;
}

int32_t requantized(int32_t sum, float scale, int32_t zero, const IntegerRange& range) {
  const float low = static_cast<float>(range.low - zero), high = static_cast<float>(range.high - zero);
  const float value = static_cast<float>(sum) * scale;
  return static_cast<int32_t>(std::nearbyint(std::min(std::max(value, low), high))) + zero;
}

Status check_integer_stage(const std::vector<TensorDesc>& inputs, const TensorDesc& output, const Epilogue& e) {
  const IntegerOperands at = integer_operands(e);
  if (static_cast<int>(inputs.size()) != at.count || e.residuals() > 0 || e.has_post_op() || e.alpha != 1 ||
      (e.activation != Activation::none && (e.activation != Activation::clip || !e.scale)))
    return Error{Reason::internal,
                 "An integer stage has two operands, scale and bias, zero points, and no activation but clip."};
  const auto expect = [&](int i, bool fits, const char* what) -> Status {
    if (i < 0 || fits) return ok();
    return Error{Reason::type_not_served, "Operand " + std::to_string(i) + " of an integer stage is " +
                                              std::string(name_of(inputs[static_cast<size_t>(i)].dtype)) + ", not " + what +
                                              "."};
  };
  const auto type = [&](int i) { return i < 0 ? DType::f32 : inputs[static_cast<size_t>(i)].dtype; };
  SPARKLE_CHECK(expect(1, is_byte(type(1)) || type(1) == DType::i16, "an 8-bit integer"));
  SPARKLE_CHECK(expect(at.scale, type(at.scale) == DType::f32, "f32"));
  SPARKLE_CHECK(expect(at.bias, type(at.bias) == DType::i32, "i32"));
  SPARKLE_CHECK(expect(at.a_zero, type(at.a_zero) == type(0), "of its operand's type"));
  SPARKLE_CHECK(expect(at.b_zero, type(at.b_zero) == type(1), "of its operand's type"));
  SPARKLE_CHECK(expect(at.y_zero, type(at.y_zero) == output.dtype, "of its operand's type"));
  if (e.scale ? is_byte(output.dtype) : output.dtype == DType::i32) return ok();
  return Error{Reason::type_not_served, "The output of an integer stage is " + std::string(name_of(output.dtype)) +
                                            ", not an 8-bit integer or, without a scale, i32."};
}

}  // namespace sparkle
