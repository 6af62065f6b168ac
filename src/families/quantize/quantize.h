// The quantize family: between real numbers and integers with scale and zero point, and the small quantised operators that are
// no sums of products. Scales and zero points are operands, seen with stride 0 where one value serves all.
//   quantize   x, scale, zero -> y              y = saturate(round_to_even(x / scale) + zero); to a narrow float:
//                                               encoded(x / scale + zero), within [low, high] where clip says so
//   dequantize x, scale, zero -> y              y = (x - zero) * scale
//   dynamic    x -> y u8, scale, zero           scale and zero from the range of x, zero included
//   add        a, scale, zero, b, scale, zero, y's scale, y's zero -> y     quantize(dequantize(a) + dequantize(b)), in fp32
//   average    x, scale, zero, y's scale, y's zero -> y [N,C,1,...]         the mean of each channel
//   factor     a, b, y -> a * b / y             what an integer sum is scaled by
#pragma once

#include "base/record.h"
#include "families/integers/integers.h"

namespace sparkle {

enum class QuantizeKind : uint8_t { quantize, dequantize, dynamic, add, average, factor };
std::string_view name_of(QuantizeKind kind);
bool parse_name(std::string_view text, QuantizeKind& kind);

struct QuantizeParams {
  QuantizeKind kind = QuantizeKind::quantize;
  int axis = 0;       // with block > 0: the axis along which `block` neighbours share scale and zero point
  int64_t block = 0;  // 0: scale and zero point are shaped like x
  bool clip = false;  // y stays within [low, high] too
  int64_t low = 0, high = 0;

  template <class V>
  void visit(V& v) {
    v("kind", kind), v("axis", axis), v("block", block), v("clip", clip), v("low", low), v("high", high);
  }
  friend bool operator==(const QuantizeParams&, const QuantizeParams&) = default;
};

// The values that y may take.
IntegerRange output_range(DType type, const QuantizeParams& params);

// Scale and zero point of DynamicQuantizeLinear for values between `least` and `most`.
struct DynamicScale {
  float scale = 1;
  uint8_t zero = 0;
};
DynamicScale dynamic_scale(float least, float most);

// One value: x / scale rounded to even plus zero, saturated. NaN gives what zero gives.
int32_t quantized(float x, float scale, int32_t zero, const IntegerRange& range);

}  // namespace sparkle
