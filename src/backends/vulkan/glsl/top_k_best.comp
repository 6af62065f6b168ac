// The best element of each row. Long rows of which there are few are cut into parts: one dispatch finds the best of each, a second
// one the best of these.
// build: top_k_best_1 -DBITS=8 -DCELL=uint8_t
// build: top_k_best_2 -DBITS=16 -DCELL=uint16_t
// build: top_k_best_4 -DBITS=32 -DCELL=uint
// build: top_k_best_8 -DBITS=64 -DCELL=uvec2
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#define GATHERED uint
#include "rows.glsl"
#include "top_k.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };
shared KEY keys[kThreads];  // and ranks in `gathered`

void main() {
  const uint row = row_of_thread(), thread = gl_LocalInvocationID.x, part = gl_WorkGroupID.z;
  const bool there = row < R.rows;
  const ivec4 origin = there ? place_of(kRows, row) : ivec4(0);
  Entry best = Entry(KEY(0u), kNoRank);
  const uint first = kStage == 2 ? 0u : part * R.part_length;
  const uint end = kStage == 2 ? R.parts : min(first + R.part_length, R.elements);
  if (there)
    for (uint i = first + depth(); i < end; i += R.depth) {
      const uint from = kStage == 2 ? Words(push.work).v[2 * (i * R.rows + row)] : i;
      const Entry entry = entry_at(origin, from);
      if (is_better(entry, best)) best = entry;
    }
  keys[thread] = best.key, gathered[thread] = best.rank;
  barrier();
  for (uint step = R.depth / 2; step > 0; step /= 2) {
    if (depth() < step) {
      const uint other = thread + step * apart();
      const Entry entry = Entry(keys[other], gathered[other]);
      if (is_better(entry, Entry(keys[thread], gathered[thread]))) keys[thread] = entry.key, gathered[thread] = entry.rank;
    }
    barrier();
  }
  if (!there || depth() != 0) return;
  if (kStage == 1)
    Words(push.work).v[2 * (part * R.rows + row)] = rank_of(gathered[thread]);
  else
    put(origin, 0u, gathered[thread]);
}
