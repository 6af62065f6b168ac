// Elements of operands, and sums of products: 32-bit floats, of bytes 32-bit integers that wrap.
#pragma once

#include <cstdint>

#include "cuda_model/model.h"

namespace cuda_model {

constexpr bool is_integer(Product type) { return type == Product::s8 || type == Product::u8; }
constexpr int product_bytes(Product type) { return is_integer(type) ? 1 : type == Product::tf32 ? 4 : 2; }
double element_of(Product type, const unsigned char* bytes);
inline void add_to(Product type, void* sums, int place, double sum) {
  if (is_integer(type)) {
    auto& to = static_cast<uint32_t*>(sums)[place];
    to += static_cast<uint32_t>(static_cast<int64_t>(sum));
  } else {
    auto& to = static_cast<float*>(sums)[place];
    to = static_cast<float>(static_cast<double>(to) + sum);
  }
}

}  // namespace cuda_model
