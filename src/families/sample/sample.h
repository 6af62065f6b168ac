// The sample family: x read at positions that are data (GridSample). Along each spatial axis the taps of a position are one
// (nearest), two (linear) or four (cubic) neighbours; the weight of a tap is the product over the axes.
// Operands: x [N,C,spatial], grid [N,out spatial,rank] (last axis: innermost spatial axis first, -1..1 across x) -> y
// [N,C,out spatial]. One to three spatial axes. Formulas: https://onnx.ai/onnx/operators/onnx__GridSample.html
#pragma once

#include <array>

#include "base/record.h"
#include "base/tensor.h"

namespace sparkle {

enum class SampleMode : uint8_t { nearest, linear, cubic };
enum class SamplePadding : uint8_t { zeros, border, reflection };
std::string_view name_of(SampleMode mode);
bool parse_name(std::string_view text, SampleMode& mode);
std::string_view name_of(SamplePadding padding);
bool parse_name(std::string_view text, SamplePadding& padding);

struct SampleParams {
  SampleMode mode = SampleMode::linear;
  SamplePadding padding = SamplePadding::zeros;
  bool align_corners = false;  // -1 and 1 are the centres of the outer elements, not their outer edges

  template <class V>
  void visit(V& v) {
    v("mode", mode), v("padding", padding), v("align_corners", align_corners);
  }
  friend bool operator==(const SampleParams&, const SampleParams&) = default;
};

// The taps of one coordinate along an axis of `size` >= 1 elements. Index -1: outside, reads as zero.
struct SampleTaps {
  int count = 0;
  std::array<int64_t, 4> index{};
  std::array<float, 4> weight{};
};
SampleTaps sample_taps(const SampleParams& params, float coordinate, int64_t size);

}  // namespace sparkle
