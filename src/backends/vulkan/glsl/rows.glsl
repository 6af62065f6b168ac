// Rows of elements that belong together (those of one reduction, one softmax, one norm): rows.h has the same record. A workgroup
// serves `lanes` rows with `depth` threads each; neighbouring threads lie along whichever of the two memory runs.
#include "pointwise_math.glsl"

struct RowsRecord {
  uint rows, elements, lanes, depth, parts, part_length, lanes_first;
  float epsilon;
  uint own[6];
  uint axes[2];
  uint divide[48];  // for each nest and axis, innermost first: size, multiplier, shift
  int strides[64];    // for each nest and axis of x, scale, bias, y
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer RowsRecords { RowsRecord v; };

layout(push_constant, scalar) uniform Push {
  Elements x, scale, bias, y;
  Floats work;
  RowsRecords record;
} push;
#define R push.record.v

const int kRows = 0, kElements = 1;
layout(constant_id = 3) const uint kStage = 0;  // 0: all in one; 1: a part of each row, to the workspace; 2: from there to the end

// Offsets in x, scale, bias and y.
ivec4 place_of(int nest, uint index) {
  ivec4 at = ivec4(0);
  for (uint axis = 0; axis < R.axes[nest]; ++axis) {
    uint here = index;
    if (axis + 1 < R.axes[nest]) {
      const uint d = nest * 24 + axis * 3;
      uint high, low;
      umulExtended(index, R.divide[d + 1], high, low);
      const uint outer = (index + high) >> R.divide[d + 2];
      here = index - outer * R.divide[d];
      index = outer;
    }
    const uint p = nest * 32 + axis * 4;
    at += int(here) * ivec4(R.strides[p], R.strides[p + 1], R.strides[p + 2], R.strides[p + 3]);
  }
  return at;
}

// Of this thread: its row, and its place among the row's threads.
uint lane() { return R.lanes_first != 0u ? gl_LocalInvocationID.x % R.lanes : gl_LocalInvocationID.x / R.depth; }
uint depth() { return R.lanes_first != 0u ? gl_LocalInvocationID.x / R.lanes : gl_LocalInvocationID.x % R.depth; }
uint row_of_thread() { return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * R.lanes + lane(); }
// Threads of one row are so far apart in the workgroup.
uint apart() { return R.lanes_first != 0u ? R.lanes : 1u; }

const uint kThreads = 128;
#ifndef GATHERED
#define GATHERED vec2
#endif
shared GATHERED gathered[kThreads];
