// Chunks of x picked by indices, which may count from the end; one that lies outside is taken to the nearest element of its axis, so
// that nothing outside of x is read, and reported. A chunk a thread and step.
// build: gather_chunks_1 -DBYTES=1
// build: gather_chunks_2 -DBYTES=2
// build: gather_chunks_4 -DBYTES=4
// build: gather_chunks_8 -DBYTES=8
// build: gather_chunks_16 -DBYTES=16
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "chunks.glsl"
#include "bounds_reports.glsl"

// As GatherRecord of gather.cc. A tuple of `picked` indices moves along so many axes of x; strides of indices count indices.
struct GatherRecord {
  uint count;
  int rank, first_x, first_y, first_index;
  int picked, tuple_stride;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes], index[kMostAxes], order[kMostAxes];
  int picked_size[kMostAxes], picked_strides[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer GatherRecords { GatherRecord v; };

layout(push_constant, scalar) uniform Push {
  Chunks x;
  Ints indices;
  Chunks y;
  BoundsReports bounds_reports;
  GatherRecords record;
} push;

layout(constant_id = 3) const bool kLong = false;  // indices of 64 bits, read as two words
layout(constant_id = 4) const bool kMoves = true;  // false where x or y is empty: indices are looked at all the same

#define R push.record.v

int index_at(int place) {
  if (!kLong) return push.indices.v[place];
  const int low = push.indices.v[2 * place], high = push.indices.v[2 * place + 1];
  return high == low >> 31 ? low : high < 0 ? -2147483647 - 1 : 2147483647;
}

// The index at `place`, the i-th of this chunk's tuple, lies outside: told by its row-major number among all indices.
void report_index(int place, int i, uint chunk) {
  uint number = 0;
  for (int axis = R.rank - 1; axis >= 0; --axis) number += fast_divmod(chunk, R.size[axis]) * uint(R.order[axis]);
  const int low = push.indices.v[kLong ? 2 * place : place];
  report_bounds(push.bounds_reports, number + i, low, kLong ? push.indices.v[2 * place + 1] : low >> 31);
}

void main() {
  const uint first = first_chunk();
  // All loads go before the first store, which might be to the same place for all that the compiler knows.
  WORD value[kSteps];
  int to[kSteps];
  [[unroll]] for (int step = 0; step < kSteps; ++step) {
    const uint own = min(first + step * gl_WorkGroupSize.x, R.count - 1);
    uint chunk = own;
    int from = R.first_x, place = R.first_index;
    to[step] = R.first_y;
    for (int i = R.rank - 1; i >= 0; --i) {
      const int at = int(fast_divmod(chunk, R.size[i]));
      from += at * R.x[i];
      to[step] += at * R.y[i];
      place += at * R.index[i];
    }
    for (int i = 0; i < R.picked; ++i) {
      const int at = place + i * R.tuple_stride, index = index_at(at), size = R.picked_size[i];
      if (index < -size || index >= size) report_index(at, i, own);
      from += clamp(index < 0 ? index + size : index, 0, size - 1) * R.picked_strides[i];
    }
    if (kMoves) value[step] = WORD(push.x.v[from]);
  }
  [[unroll]] for (int step = 0; step < kSteps; ++step)
    if (kMoves && first + step * gl_WorkGroupSize.x < R.count) push.y.v[to[step]] = CHUNK(value[step]);
}
