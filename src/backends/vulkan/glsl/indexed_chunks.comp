// A move whose places in x come from a table along some axes: padding, and sampling of the nearest element. A chunk a thread and step.
// build: indexed_chunks_1 -DBYTES=1
// build: indexed_chunks_2 -DBYTES=2
// build: indexed_chunks_4 -DBYTES=4
// build: indexed_chunks_8 -DBYTES=8
// build: indexed_chunks_16 -DBYTES=16
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "chunks.glsl"

// As IndexedRecord of indexed.cc. An axis with a table has its place in x, in chunks, in offsets[table + index], or kNowhere.
struct IndexedRecord {
  uvec4 value;  // what is stored where an axis leads nowhere, repeated
  uint count;
  int rank, first_x, first_y;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes], table[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer IndexedRecords { IndexedRecord v; };

layout(push_constant, scalar) uniform Push {
  Chunks x, y;
  IndexedRecords record;
  Ints offsets;
} push;

#define R push.record.v
const int kNowhere = -2147483648;

WORD constant() {
#if BYTES == 8
  return R.value.xy;
#elif BYTES == 16
  return R.value;
#else
  return R.value.x;
#endif
}

void main() {
  const uint first = first_chunk();
  // All loads go before the first store, which might be to the same place for all that the compiler knows.
  WORD value[kSteps];
  int to[kSteps];
  [[unroll]] for (int step = 0; step < kSteps; ++step) {
    uint chunk = min(first + step * gl_WorkGroupSize.x, R.count - 1);
    int from = R.first_x;
    to[step] = R.first_y;
    bool somewhere = true;
    for (int i = R.rank - 1; i >= 0; --i) {
      const int at = int(fast_divmod(chunk, R.size[i]));
      to[step] += at * R.y[i];
      if (R.table[i] < 0) {
        from += at * R.x[i];
      } else {
        const int place = push.offsets.v[R.table[i] + at];
        somewhere = somewhere && place != kNowhere;
        from += place;
      }
    }
    value[step] = constant();
    if (somewhere) value[step] = WORD(push.x.v[from]);
  }
  [[unroll]] for (int step = 0; step < kSteps; ++step)
    if (first + step * gl_WorkGroupSize.x < R.count) push.y.v[to[step]] = CHUNK(value[step]);
}
