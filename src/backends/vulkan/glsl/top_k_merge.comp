// Pairs of sorted runs merged into one each: an entry's place is its own number and how many of the other run are better. A
// thread an entry.
// build: top_k_merge_1 -DBITS=8 -DCELL=uint8_t
// build: top_k_merge_2 -DBITS=16 -DCELL=uint16_t
// build: top_k_merge_4 -DBITS=32 -DCELL=uint
// build: top_k_merge_8 -DBITS=64 -DCELL=uvec2
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#define GATHERED uint
#include "rows.glsl"
#include "top_k.glsl"
#include "top_k_runs.glsl"

void main() {
  const uint thread = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * kThreads + gl_LocalInvocationID.x;
  // Incoming runs: half as wide; pairs whose second one is missing are none to merge with.
  const uint half_width = width() / 2, most_from = min(k(), half_width), runs_of_row = (R.elements + half_width - 1) / half_width;
  const uint run = thread / most_from, number = thread - run * most_from, row = run / runs_of_row;
  if (row >= R.rows) return;
  const uint own = run - row * runs_of_row, other = own ^ 1u;
  if (number >= R.elements - own * half_width) return;
  const uint others = other < runs_of_row ? min(most_from, R.elements - other * half_width) : 0u;
  const uint row_from = runs_from() + row * runs_of_row * most_from;
  Runs from = Runs(push.work);
  const Entry entry = from.v[row_from + own * most_from + number];
  uint better = 0u, end = others;
  while (better < end) {
    const uint middle = (better + end) / 2;
    if (is_better(from.v[row_from + other * most_from + middle], entry)) better = middle + 1u;
    else end = middle;
  }
  const uint at = number + better;
  if (at >= most()) return;
  if (runs() > 1)
    Runs(push.work).v[runs_to() + (row * runs() + own / 2u) * most() + at] = entry;
  else
    put(place_of(kRows, row), at, entry.rank);
}
