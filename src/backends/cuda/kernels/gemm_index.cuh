// Where rows, taps and instances of a product lie.
#pragma once

#include "backends/cuda/kernels/gemm_record.h"
#include "backends/cuda/ptx/threads.cuh"

namespace sparkle::cuda {

SPARKLE_DEVICE uint32_t divided(uint32_t n, const Divisor& d) {
#ifdef __CUDACC__
  const uint32_t high = __umulhi(n, d.factor);
#else
  const uint32_t high = static_cast<uint32_t>(uint64_t{n} * d.factor >> 32);
#endif
  return d.size == 1 ? n : high >> d.shift;
}
// The remainder, and n becomes the quotient.
SPARKLE_DEVICE uint32_t fast_divmod(uint32_t& n, const Divisor& d) {
  const uint32_t quotient = divided(n, d), rest = n - quotient * d.size;
  n = quotient;
  return rest;
}

// A row as an output's n,d,h,w.
struct Pixel {
  int32_t v[4];
};
SPARKLE_DEVICE Pixel pixel_of(const GemmRecord& record, int32_t row) {
  Pixel p;
  uint32_t rest = static_cast<uint32_t>(row);
  p.v[3] = static_cast<int32_t>(fast_divmod(rest, record.rows_by[2]));
  p.v[2] = static_cast<int32_t>(fast_divmod(rest, record.rows_by[1]));
  p.v[1] = static_cast<int32_t>(fast_divmod(rest, record.rows_by[0]));
  p.v[0] = static_cast<int32_t>(rest);
  return p;
}
SPARKLE_DEVICE int32_t dot4(const int32_t (&a)[4], const int32_t (&b)[4]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

// An instance by its number, outermost first.
struct Instance {
  int32_t v[4];
};
SPARKLE_DEVICE Instance instance_of(const GemmRecord& record, uint32_t number) {
  Instance i;
  i.v[3] = static_cast<int32_t>(fast_divmod(number, record.instances_by[2]));
  i.v[2] = static_cast<int32_t>(fast_divmod(number, record.instances_by[1]));
  i.v[1] = static_cast<int32_t>(fast_divmod(number, record.instances_by[0]));
  i.v[0] = static_cast<int32_t>(number);
  return i;
}

// Tile `number` of an instance: swaths of columns one after another, so that tiles that run at once share both operands.
struct TilePlace {
  int32_t m, n;
};
SPARKLE_DEVICE TilePlace tile_place(const GemmRecord& record, int32_t number, int32_t tiles_m) {
  const int32_t swath = number / (record.swath * tiles_m), first = swath * record.swath;
  const int32_t rest = number - first * tiles_m;
  const int32_t width = record.tiles_n - first < record.swath ? record.tiles_n - first : record.swath;
  return {rest / width, first + rest % width};
}

// The input that the first tap of an output reads, along d,h,w; and the element there (maybe outside of x).
struct Origin {
  int32_t d, h, w, element;
};
SPARKLE_DEVICE Origin origin_of(const GemmRecord& record, int32_t row) {
  const Pixel p = pixel_of(record, row);
  Origin o;
  o.d = p.v[1] * record.stride[0] - record.pad[0];
  o.h = p.v[2] * record.stride[1] - record.pad[1];
  o.w = p.v[3] * record.stride[2] - record.pad[2];
  o.element = p.v[0] * record.x_strides[0] + o.d * record.x_strides[1] + o.h * record.x_strides[2] + o.w * record.x_strides[3];
  return o;
}
SPARKLE_DEVICE bool inside(int32_t place, int32_t size) { return static_cast<uint32_t>(place) < static_cast<uint32_t>(size); }

}  // namespace sparkle::cuda
