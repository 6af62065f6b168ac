// A copy whose neighbours in x lie apart in y and the other way round: tiles of 32 x 32 chunks go through shared memory, so that both
// sides see whole lines. A row of the tile is one chunk longer than its lines: columns then lie in different banks.
// build: copy_transpose_1 -DBYTES=1
// build: copy_transpose_2 -DBYTES=2
// build: copy_transpose_4 -DBYTES=4
// build: copy_transpose_8 -DBYTES=8
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "chunks.glsl"

// As TransposeRecord of copy.cc: a is the axis of neighbours in x, b that of neighbours in y; the others are outer.
struct TransposeRecord {
  int size_a, size_b, stride_y, stride_x;  // of a in y, of b in x
  int rank, first_x, first_y;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer TransposeRecords { TransposeRecord v; };

layout(push_constant, scalar) uniform Push {
  Chunks x, y;
  TransposeRecords record;
  Divisor tiles_a, tiles_b;  // tiles along a go first, then those along b, then the outer axes
  uint tiles;
} push;

#define R push.record.v
const int kTile = 32, kRows = 8;  // a workgroup is kTile x kRows threads
shared WORD tile[kTile * (kTile + 1)];

void main() {
  uint index = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
  if (index >= push.tiles) return;
  const int a0 = int(fast_divmod(index, push.tiles_a)) * kTile, b0 = int(fast_divmod(index, push.tiles_b)) * kTile;
  int from = R.first_x, to = R.first_y;
  for (int i = R.rank - 1; i >= 0; --i) {
    const int at = int(fast_divmod(index, R.size[i]));
    from += at * R.x[i];
    to += at * R.y[i];
  }
  const int column = int(gl_LocalInvocationID.x) % kTile, row0 = int(gl_LocalInvocationID.x) / kTile;
  [[unroll]] for (int row = 0; row < kTile; row += kRows) {
    const int a = a0 + column, b = b0 + row + row0;
    if (a < R.size_a && b < R.size_b) tile[(row + row0) * (kTile + 1) + column] = WORD(push.x.v[from + a + b * R.stride_x]);
  }
  barrier();
  [[unroll]] for (int row = 0; row < kTile; row += kRows) {
    const int a = a0 + row + row0, b = b0 + column;
    if (a < R.size_a && b < R.size_b) push.y.v[to + b + a * R.stride_y] = CHUNK(tile[column * (kTile + 1) + row + row0]);
  }
}
