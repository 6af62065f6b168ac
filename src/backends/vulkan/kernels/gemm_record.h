// GemmRecord: the sizes and pitches of a gemm stage as shaders read them (glsl/gemm.glsl has the same fields). Windows and
// dense products are one: a row is an output pixel (n,d,h,w) or a row of the left operand as (0,0,0,m), k runs over taps and
// channels, instances are groups or batch elements.
#pragma once

#include <cstdint>
#include <span>

#include "backends/vulkan/kernels/divisor.h"
#include "base/result.h"
#include "families/stage.h"

namespace sparkle::vulkan {

struct GemmRecord {
  int32_t rows[4];     // outputs along n,d,h,w
  int32_t x_size[4];   // inputs along n,d,h,w
  int32_t x_pitch[4];  // elements between neighbours along n,d,h,w
  int32_t y_pitch[4];
  int32_t r_pitch[2][4];                   // of the residuals
  int32_t channel[4];                      // pitch of x's channels, y's filters, and those of the residuals
  int32_t filter[4];                       // taps along d,h,w, and channels of an instance
  int32_t stride[4], dilation[4], pad[4];  // along d,h,w
  int32_t w_pitch[8];                      // of the right operand as it is: filters, channels, taps along d,h,w
  int32_t instances[4];                    // outermost first
  int32_t x_instance[4], w_instance[4], y_instance[4], r_instance[2][4];
  int32_t m, n, k, n_padded;            // of an instance; n_padded: a row of packed weights
  int32_t channel_instance;             // scale and bias move so far from one instance to the next
  int32_t packed_instance[4];           // packed weights move so many elements
  Divisor rows_by[3], instances_by[3];  // of d,h,w, and of the three innermost
  float alpha, a, b;                    // of the epilogue

  // Behind the last change of rows and instances.
  void set_divisors();
};

// Errors: layout_not_served where an operand spans more than 2^31 elements or more than four batch axes remain.
Result<GemmRecord> gemm_record(const Stage& stage);

// Where an operand that is shaped like the output has the element of an output: by its row's pixel, its instance and channel.
struct Places {
  int32_t row[4] = {}, instance[4] = {}, channel = 0;
};
Places places_of(const Stage& stage, const TensorDesc& operand);

// Whether so many neighbouring channels of an operand are one aligned vector wherever they begin.
bool in_vectors(int32_t wide, const TensorDesc& desc, std::span<const int32_t> pitches, int32_t channel, int64_t count);
// Four of them: a vector of floats, one word of 8-bit integers.
inline bool fours(const TensorDesc& desc, std::span<const int32_t> pitches, int32_t channel, int64_t count) {
  return in_vectors(4, desc, pitches, channel, count);
}

}  // namespace sparkle::vulkan
