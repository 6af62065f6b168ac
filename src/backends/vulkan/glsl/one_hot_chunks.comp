// One value where an element's place along an axis is the index there, another one elsewhere. An element a thread and step.
// build: one_hot_chunks_1 -DBYTES=1
// build: one_hot_chunks_2 -DBYTES=2
// build: one_hot_chunks_4 -DBYTES=4
// build: one_hot_chunks_8 -DBYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "chunks.glsl"

// As OneHotRecord of one_hot.cc. Strides of the indices count indices; `place`: 1 along the axis, 0 along others.
struct OneHotRecord {
  uint count;
  int rank, first_index, first_y, value_stride, axis_size;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes], index[kMostAxes], place[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer OneHotRecords { OneHotRecord v; };

layout(push_constant, scalar) uniform Push {
  Ints indices;
  Chunks values, y;
  OneHotRecords record;
} push;
#define R push.record.v

layout(constant_id = 3) const uint kType = 0;  // of the indices
const uint kF32 = 0, kI32 = 1, kU32 = 2, kI64 = 3, kU64 = 4;
const int kNowhere = -2147483648;

// As a place along the axis; what no axis has is no place.
int index_at(int at) {
  if (kType == kF32) {
    const float index = trunc(intBitsToFloat(push.indices.v[at]));
    return abs(index) < 2147483520.0 ? int(index) : kNowhere;  // false for NaN too
  }
  if (kType == kI32) return push.indices.v[at];
  if (kType == kU32) return push.indices.v[at] < 0 ? kNowhere : push.indices.v[at];
  const int low = push.indices.v[2 * at], high = push.indices.v[2 * at + 1];
  return high == low >> 31 && (kType == kI64 || high == 0) ? low : kNowhere;
}

void main() {
  const uint first = first_chunk();
  const WORD off = WORD(push.values.v[0]), on = WORD(push.values.v[R.value_stride]);
  [[unroll]] for (int step = 0; step < kSteps; ++step) {
    uint chunk = first + step * gl_WorkGroupSize.x;
    if (chunk >= R.count) return;
    int to = R.first_y, at = R.first_index, place = 0;
    for (int i = R.rank - 1; i >= 0; --i) {
      const int here = int(fast_divmod(chunk, R.size[i]));
      to += here * R.y[i];
      at += here * R.index[i];
      place += here * R.place[i];
    }
    const int index = index_at(at);
    push.y.v[to] = CHUNK((index < 0 ? index + R.axis_size : index) == place ? on : off);
  }
}
