// Non-maximum suppression: rows of image, class and box, those of one task behind those of the task before; -1 beyond the last.
// A thread for each box that could have been kept, and for each row.
// build: non_max_rows
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "non_max.glsl"

// Numbers of 64 bits, low words first.
void put(uint row, ivec3 v) {
  [[unroll]] for (int i = 0; i < 3; ++i) {
    const int at = 2 * (int(row) * R.row[0] + i * R.row[1]);
    push.rows.v[at] = v[i], push.rows.v[at + 1] = v[i] >> 31;
  }
}

void main() {
  const uint i = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (i < R.tasks * R.most) {
    const uint task = i / R.most, number = i - task * R.most, row = push.work.v[task] + number;
    if (row < push.work.v[task + 1u])
      put(row, ivec3(task / R.classes, task % R.classes, push.work.v[R.kept + i]));
  }
  if (i < R.rows && i >= push.work.v[R.tasks]) put(i, ivec3(-1));
}
