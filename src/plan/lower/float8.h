// Convolutions and products whose factors are 8-bit floats in the model, each behind a DequantizeLinear, on devices that
// multiply such: scales become a factor of the sums, and nothing is dequantised. In f32 x * s and w * t are rounded before they
// are multiplied, here once behind the sum.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "families/stage.h"
#include "graph/graph.h"

namespace sparkle {

// What stands in such an operator's place.
struct Float8Factors {
  TensorId x = kAbsent, w = kAbsent;  // both f8e4m3fn or both f8e5m2; w is a constant
  HostTensor scales;                  // f32, of each output channel: x's times w's
};

class Float8Products {
 public:
  Float8Products(const Graph& graph, const Device& device);

  // Of a Conv or MatMul; nothing where its factors are others, or no kernel of the device multiplies these.
  std::optional<Float8Factors> factors_of(const Op& op) const;
  // Whether operator `number` is a DequantizeLinear whose result nothing reads but such operators.
  bool drops(int number) const { return !dropped_.empty() && dropped_[static_cast<size_t>(number)]; }

 private:
  // A DequantizeLinear from 8-bit floats without a zero point, whose scales are constants.
  struct Dequantized {
    TensorId x = kAbsent;
    const HostTensor* scale = nullptr;
    int64_t axis = 0;
  };
  std::optional<Dequantized> dequantized(TensorId id) const;
  // The product alone, as the gemm family sees it: pixels with their channels innermost.
  Stage bare_stage(const Op& op, DType type) const;

  const Graph& graph_;
  const Device& device_;
  std::vector<int> producers_;  // of each tensor; empty: the device multiplies none
  std::vector<bool> dropped_;
};

}  // namespace sparkle
