// What flows between the parts of a model: a tensor, or a sequence of tensors.
#pragma once

#include <vector>

#include "base/tensor.h"

namespace sparkle {

struct PartValue {
  std::vector<HostTensor> items;  // one, but of a sequence
  bool sequence = false;
  bool given = false;
  DType dtype = DType::f32;  // of a sequence without items

  static PartValue of(HostTensor tensor) { return {{std::move(tensor)}, false, true, DType::f32}; }
  static PartValue of(std::vector<HostTensor> tensors, DType type) { return {std::move(tensors), true, true, type}; }
};

}  // namespace sparkle
