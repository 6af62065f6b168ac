// Elements of operands, and sums of products: 32-bit floats, of bytes 32-bit integers that wrap.
#pragma once

#include <cstdint>

#include "cuda_model/model.h"

namespace cuda_model {

double element_of(Product type, const unsigned char* bytes);
inline void add_to(Product type, void* sums, int place, double sum) {
  if (type == Product::s8) {
    auto& to = static_cast<uint32_t*>(sums)[place];
    to += static_cast<uint32_t>(static_cast<int64_t>(sum));
  } else {
    auto& to = static_cast<float*>(sums)[place];
    to = static_cast<float>(static_cast<double>(to) + sum);
  }
}

}  // namespace cuda_model
