// Shape rules of quantised operators: results have the shapes of the operators on real numbers, types follow the zero points.
#include "graph/infer/infer.h"

namespace sparkle {
namespace {

bool is_byte(DType type) { return type == DType::u8 || type == DType::i8; }
// What QuantizeLinear makes; f8e8m0 is a type of scales.
bool is_small(DType type) {
  return is_byte(type) || type == DType::u16 || type == DType::i16 || (is_narrow(type) && type != DType::f8e8m0);
}

Error wrong_type(const InferContext& c, int i) {
  return c.fail(Reason::type_not_served,
                c.describe(i) + " has type " + std::string(name_of(c.type(i))) + ", which this operator does not support");
}

Status expect_float(const InferContext& c, int i) {
  if (!c.given(i) || c.type(i) == DType::f32 || c.type(i) == DType::f16 || c.type(i) == DType::bf16) return ok();
  return wrong_type(c, i);
}

Status expect_scalar(const InferContext& c, int i) {
  if (!c.given(i) || c.shape(i).product() == 1) return ok();
  return c.fail(Reason::operator_not_served, c.describe(i) + " should be one value for the whole tensor");
}

// One value, or one for each of `count` channels (the last axis of this operand).
Status expect_channels(const InferContext& c, int i, int64_t count) {
  if (!c.given(i) || c.shape(i).product() == 1) return ok();
  if (c.shape(i).product() == count && c.shape(i).back() == count) return ok();
  return c.fail(Reason::operator_not_served,
                c.describe(i) + " should hold one value, or one for each of the " + std::to_string(count) + " channels");
}

// Scale and zero point of QuantizeLinear and DequantizeLinear: of one element, of a list along `axis`, or one per block.
Status check_parameters(const InferContext& c, int64_t& axis, int64_t block) {
  const Dims &x = c.shape(0), &scale = c.shape(1);
  if (c.type(1) != DType::f8e8m0) SPARKLE_CHECK(expect_float(c, 1));
  if (c.given(2) && c.shape(2).product() != scale.product())
    return c.fail(Reason::bad_shape, c.describe(1) + " and " + c.describe(2) + " should have one shape");
  if (block < 0) return c.fail(Reason::bad_model, "block_size " + std::to_string(block) + " is negative");
  if (block == 0 && scale.product() == 1) {
    axis = 0;
    return ok();
  }
  SPARKLE_TRY(at, c.axis(axis, x.size()));
  axis = at;
  if (block == 0) {
    if (scale.size() == 1 && scale[0] == x[at]) return ok();
    return c.fail(Reason::bad_shape, c.describe(1) + " should hold one value, or one for each element of axis " +
                                         std::to_string(at) + " of " + c.describe(0));
  }
  bool fits = scale.size() == x.size();
  for (int i = 0; fits && i < x.size(); ++i) fits = scale[i] == (i == at ? (x[i] + block - 1) / block : x[i]);
  if (fits) return ok();
  return c.fail(Reason::bad_shape, c.describe(1) + " should be shaped like " + c.describe(0) + " in blocks of " +
                                       std::to_string(block) + " along axis " + std::to_string(at));
}

// The operands behind x, w and bias: zero points (3 to 5), scales (6 to 8). Sets the type of the result.
Result<DType> check_quantized(const InferContext& c, int64_t channels) {
  for (int i = 0; i < 2; ++i)
    if (!is_byte(c.type(i))) return wrong_type(c, i);
  if (c.given(2) && c.type(2) != DType::i32) return wrong_type(c, 2);
  for (int i : {3, 5, 6, 8}) SPARKLE_CHECK(expect_scalar(c, i));
  for (int i : {4, 7}) SPARKLE_CHECK(expect_channels(c, i, channels));
  for (int i : {6, 7, 8}) SPARKLE_CHECK(expect_float(c, i));
  for (int i : {3, 4})
    if (c.given(i) && c.type(i) != c.type(i - 3))
      return c.fail(Reason::bad_model, c.describe(i) + " and " + c.describe(i - 3) + " should have one type");
  if (!c.given(8)) return DType::i32;
  for (int i : {6, 7})
    if (!c.given(i)) return c.fail(Reason::bad_model, "the scale of " + c.describe(i - 6) + " is missing");
  if (!c.given(5)) return DType::u8;
  if (!is_byte(c.type(5))) return wrong_type(c, 5);
  return c.type(5);
}

}  // namespace

DType quantized_type(const QuantizeOp& op, std::optional<DType> zero_point) { return zero_point.value_or(op.to); }

Status infer_rule(InferContext& c, QuantizeOp& op) {
  SPARKLE_CHECK(c.expect(2, 3));
  if (c.type(0) != DType::i32) SPARKLE_CHECK(expect_float(c, 0));
  SPARKLE_CHECK(check_parameters(c, op.axis, op.block));
  op.to = quantized_type(op, c.given(2) ? std::optional(c.type(2)) : std::nullopt);
  if (!is_small(op.to))
    return c.fail(Reason::type_not_served, "the type " + std::string(name_of(op.to)) + " is not supported as its result");
  return c.set(0, op.to, c.shape(0));
}

Status infer_rule(InferContext& c, DequantizeOp& op) {
  SPARKLE_CHECK(c.expect(2, 3));
  if (c.type(0) != DType::i32 && !is_small(c.type(0))) return wrong_type(c, 0);
  SPARKLE_CHECK(check_parameters(c, op.axis, op.block));
  if (c.given(2) && c.type(2) != c.type(0))
    return c.fail(Reason::bad_model, c.describe(2) + " and " + c.describe(0) + " should have one type");
  const DType to = op.to.value_or(c.type(1));
  if (!is_float(to))
    return c.fail(Reason::type_not_served, "the type " + std::string(name_of(to)) + " is not supported as its result" +
                                               (op.to ? "" : "; set output_dtype"));
  return c.set(0, to, c.shape(0));
}

Status infer_rule(InferContext& c, DynamicQuantizeOp&) {
  SPARKLE_CHECK(c.expect(1, 1));
  if (c.type(0) != DType::f32) return wrong_type(c, 0);
  SPARKLE_CHECK(c.set(1, DType::f32, {}));
  SPARKLE_CHECK(c.set(2, DType::u8, {}));
  return c.set(0, DType::u8, c.shape(0));
}

Status infer_rule(InferContext& c, QuantizedConvOp& op) {
  SPARKLE_CHECK(c.expect(2, 9));
  SPARKLE_TRY(y, infer_convolution(c, op.conv));
  SPARKLE_TRY(type, check_quantized(c, y[1]));
  return c.set(0, type, y);
}

Status infer_rule(InferContext& c, QuantizedMatMulOp& op) {
  SPARKLE_CHECK(c.expect(2, 9));
  SPARKLE_TRY(y, infer_product(c, op.matmul));
  const Dims& b = c.shape(1);
  const int64_t columns = b.size() < 2 ? 1 : op.matmul.transpose_b ? b[0] : b.back();
  SPARKLE_TRY(type, check_quantized(c, columns));
  return c.set(0, type, y);
}

Status infer_rule(InferContext& c, QuantizedAddOp&) {
  SPARKLE_CHECK(c.expect(2, 8));
  for (int i : {1, 3, 4, 6})
    if (!c.given(i)) return c.fail(Reason::bad_model, "input " + std::to_string(i) + " is missing");
  for (int i : {0, 3})
    if (!is_byte(c.type(i))) return wrong_type(c, i);
  for (int i : {1, 2, 4, 5, 6, 7}) SPARKLE_CHECK(expect_scalar(c, i));
  for (int i : {1, 4, 6}) SPARKLE_CHECK(expect_float(c, i));
  const auto y = broadcast(c.shape(0), c.shape(3));
  if (!y) return c.fail(Reason::bad_shape, c.describe(0) + " and " + c.describe(3) + " do not broadcast");
  return c.set(0, c.given(7) ? c.type(7) : c.type(0), *y);
}

Status infer_rule(InferContext& c, QuantizedAverageOp& op) {
  SPARKLE_CHECK(c.expect(2, 5));
  if (!c.given(3)) return c.fail(Reason::bad_model, "input 3 is missing");
  if (!is_byte(c.type(0))) return wrong_type(c, 0);
  for (int i : {1, 2, 3, 4}) SPARKLE_CHECK(expect_scalar(c, i));
  for (int i : {1, 3}) SPARKLE_CHECK(expect_float(c, i));
  const Dims& x = c.shape(0);
  if (x.size() < 3) return c.fail(Reason::bad_shape, c.describe(0) + " should have rank 3 or more");
  Dims y = x;
  const int first = op.channels_last ? 1 : 2;
  for (int i = 0; i < x.size() - 2; ++i) y[first + i] = 1;
  return c.set(0, c.given(4) ? c.type(4) : c.type(0), y);
}

}  // namespace sparkle
