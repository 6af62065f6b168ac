// Pieces of rows sorted in shared memory, best first (Batcher's bitonic network): a row each, several short rows of a power of two to a
// workgroup, or runs of long ones, of which as many entries are kept as can come out.
// build: top_k_sort_1 -DBITS=8 -DCELL=uint8_t
// build: top_k_sort_2 -DBITS=16 -DCELL=uint16_t
// build: top_k_sort_4 -DBITS=32 -DCELL=uint
// build: top_k_sort_8 -DBITS=64 -DCELL=uvec2
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#define GATHERED uint
#include "rows.glsl"
#include "top_k.glsl"
#include "top_k_runs.glsl"

const uint kEntries = 1024;
shared KEY keys[kEntries];
shared uint ranks[kEntries];

void main() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, thread = gl_LocalInvocationID.x;
  const uint pieces = kEntries / width();  // of this workgroup
  for (uint i = thread; i < kEntries; i += kThreads) {
    const uint piece = group * pieces + i / width(), row = piece / runs();
    const uint element = (piece - row * runs()) * width() + i % width();
    Entry entry = Entry(KEY(0u), kNoRank);
    if (row < R.rows && element < R.elements) entry = entry_at(place_of(kRows, row), element);
    keys[i] = entry.key, ranks[i] = entry.rank;
  }
  for (uint size = 2; size <= width(); size *= 2)
    for (uint apart_by = size / 2; apart_by > 0; apart_by /= 2) {
      barrier();
      for (uint pair = thread; pair < kEntries / 2; pair += kThreads) {
        const uint i = 2 * pair - (pair & (apart_by - 1)), j = i + apart_by;
        const Entry a = Entry(keys[i], ranks[i]), b = Entry(keys[j], ranks[j]);
        const bool best_first = (i & (width() - 1) & size) == 0u;
        if (is_better(b, a) == best_first) {
          keys[i] = b.key, ranks[i] = b.rank;
          keys[j] = a.key, ranks[j] = a.rank;
        }
      }
    }
  barrier();
  for (uint i = thread; i < kEntries; i += kThreads) {
    const uint piece = group * pieces + i / width(), row = piece / runs(), at = i % width();
    if (row >= R.rows || at >= most()) continue;
    if (runs() > 1)
      Runs(push.work).v[runs_to() + piece * most() + at] = Entry(keys[i], ranks[i]);
    else
      put(place_of(kRows, row), at, ranks[i]);
  }
}
