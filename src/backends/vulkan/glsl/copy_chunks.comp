// A copy between any two layouts, a chunk a thread and step.
// build: copy_chunks_1 -DBYTES=1
// build: copy_chunks_2 -DBYTES=2
// build: copy_chunks_4 -DBYTES=4
// build: copy_chunks_8 -DBYTES=8
// build: copy_chunks_16 -DBYTES=16
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "chunks.glsl"

// As CopyRecord of copy.cc. Strides in chunks; `first`: of element (0,...,0) from the lowest chunk, in x and y.
struct CopyRecord {
  uint count;
  int rank, first_x, first_y;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer CopyRecords { CopyRecord v; };

layout(push_constant, scalar) uniform Push {
  Chunks x, y;
  CopyRecords record;
} push;

#define R push.record.v

void main() {
  const uint first = first_chunk();
  // All loads go before the first store, which might be to the same place for all that the compiler knows.
  WORD value[kSteps];
  int to[kSteps];
  [[unroll]] for (int step = 0; step < kSteps; ++step) {
    uint chunk = min(first + step * gl_WorkGroupSize.x, R.count - 1);
    int from = R.first_x;
    to[step] = R.first_y;
    for (int i = R.rank - 1; i >= 0; --i) {
      const int at = int(fast_divmod(chunk, R.size[i]));
      from += at * R.x[i];
      to[step] += at * R.y[i];
    }
    value[step] = WORD(push.x.v[from]);
  }
  [[unroll]] for (int step = 0; step < kSteps; ++step)
    if (first + step * gl_WorkGroupSize.x < R.count) push.y.v[to[step]] = CHUNK(value[step]);
}
