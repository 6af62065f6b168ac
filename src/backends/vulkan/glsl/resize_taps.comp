// Linear and cubic sampling: an output a thread and step, from taps that tables hold along up to three axes. Wider builds make
// neighbouring outputs that the taps do not tell apart: channels, mostly.
// build: resize_taps_4 -DBYTES=4 -DVALUE=float
// build: resize_taps_8 -DBYTES=8 -DVALUE=vec2
// build: resize_taps_16 -DBYTES=16 -DVALUE=vec4
// build: resize_taps_half_2 -DBYTES=2 -DVALUE=float -DHALF -DSTORED=float16_t
// build: resize_taps_half_4 -DBYTES=4 -DVALUE=vec2 -DHALF -DSTORED=f16vec2
// build: resize_taps_half_8 -DBYTES=8 -DVALUE=vec4 -DHALF -DSTORED=f16vec4
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "chunks.glsl"
#ifndef HALF
#define STORED VALUE
#endif
layout(buffer_reference, scalar, buffer_reference_align = BYTES) buffer Values { STORED v[]; };

// As TapsRecord of resize.cc. An axis with taps has slot 0 to 2: those of its index i are taps[slot] entries of the tables from
// start[slot] + i * taps[slot] on. Entry 0 is one tap of weight 1, for slots that no axis has.
struct TapsRecord {
  uint count;
  int rank, first_x, first_y;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes], slot[kMostAxes];
  int start[3], taps[3];
  float extrapolation;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer TapsRecords { TapsRecord v; };

layout(push_constant, scalar) uniform Push {
  Values x, y;
  TapsRecords record;
  Ints offsets;
  Floats weights;
} push;

#define R push.record.v
const int kNowhere = -2147483648;

void main() {
  const uint first = first_chunk();
  for (int step = 0; step < kSteps; ++step) {
    uint chunk = first + step * gl_WorkGroupSize.x;
    if (chunk >= R.count) return;
    int from = R.first_x, to = R.first_y;
    ivec3 entry = ivec3(0);
    for (int i = R.rank - 1; i >= 0; --i) {
      const int at = int(fast_divmod(chunk, R.size[i])), slot = R.slot[i];
      to += at * R.y[i];
      if (slot < 0) {
        from += at * R.x[i];
      } else {
        const int begin = R.start[slot] + at * R.taps[slot];
        if (slot == 0) entry[0] = begin;
        else if (slot == 1) entry[1] = begin;
        else entry[2] = begin;
      }
    }
    VALUE sum = VALUE(0.0);
    if (push.offsets.v[entry[0]] == kNowhere || push.offsets.v[entry[1]] == kNowhere || push.offsets.v[entry[2]] == kNowhere) {
      sum = VALUE(R.extrapolation);
    } else {
      for (int i = 0; i < R.taps[0]; ++i) {
        const int from0 = from + push.offsets.v[entry[0] + i];
        const float weight0 = push.weights.v[entry[0] + i];
        for (int j = 0; j < R.taps[1]; ++j) {
          const int from1 = from0 + push.offsets.v[entry[1] + j];
          const float weight1 = weight0 * push.weights.v[entry[1] + j];
          for (int k = 0; k < R.taps[2]; ++k) {
            const float weight = weight1 * push.weights.v[entry[2] + k];
            sum += weight * VALUE(push.x.v[from1 + push.offsets.v[entry[2] + k]]);
          }
        }
      }
    }
    push.y.v[to] = STORED(sum);
  }
}
