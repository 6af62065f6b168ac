// A move whose places in x come from a table along some axes: padding, and sampling of the nearest element. A unit a thread and step.
// build: indexed_units_1 -DBYTES=1
// build: indexed_units_2 -DBYTES=2
// build: indexed_units_4 -DBYTES=4
// build: indexed_units_8 -DBYTES=8
// build: indexed_units_16 -DBYTES=16
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "units.glsl"

// As IndexedRecord of indexed.cc. An axis with a table has its place in x, in units, in places[table + index], or kNowhere.
struct IndexedRecord {
  uvec4 value;  // what is stored where an axis leads nowhere, repeated
  uint count;
  int rank, first_x, first_y;
  Divisor size[kMostAxes];
  int x[kMostAxes], y[kMostAxes], table[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer IndexedRecords { IndexedRecord v; };

layout(push_constant, scalar) uniform Push {
  Units x, y;
  IndexedRecords record;
  Ints places;
} push;

#define R push.record.v
const int kNowhere = -2147483648;

UNIT value() {
#if BYTES == 8
  return R.value.xy;
#elif BYTES == 16
  return R.value;
#else
  return UNIT(R.value.x);
#endif
}

void main() {
  const uint first = first_unit();
  [[unroll]] for (int step = 0; step < kSteps; ++step) {
    uint unit = first + step * gl_WorkGroupSize.x;
    if (unit >= R.count) return;
    int from = R.first_x, to = R.first_y;
    bool somewhere = true;
    for (int i = R.rank - 1; i >= 0; --i) {
      const int at = int(split(unit, R.size[i]));
      to += at * R.y[i];
      if (R.table[i] < 0) {
        from += at * R.x[i];
      } else {
        const int place = push.places.v[R.table[i] + at];
        somewhere = somewhere && place != kNowhere;
        from += place;
      }
    }
    if (somewhere) {
      push.y.v[to] = push.x.v[from];
    } else {
      push.y.v[to] = value();
    }
  }
}
