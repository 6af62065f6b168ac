// Updates and where they go: what the shaders of the scatter family share. Indices may count from the end; one that lies outside is
// taken to the nearest element of its axis and reported.
#include "bounds_reports.glsl"
#include "divide.glsl"
const int kMostAxes = 8;

// As ScatterRecord of scatter.cc. Axes of the updates, serial ones first: updates that differ along those alone may meet at one
// place. A tuple of `picked` indices moves along so many axes of y. Strides of indices count indices.
struct ScatterRecord {
  uint parallel, serial;  // updates
  int rank, serial_rank, first_update, first_y, first_index;
  int picked, tuple_stride;
  Divisor size[kMostAxes];
  int update[kMostAxes], y[kMostAxes], index[kMostAxes], order[kMostAxes], slot[kMostAxes];
  int picked_size[kMostAxes], picked_y[kMostAxes], picked_slot[kMostAxes];
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer ScatterRecords { ScatterRecord v; };
layout(buffer_reference, scalar, buffer_reference_align = CELL_BYTES) buffer Cells { CELL v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };

layout(push_constant, scalar) uniform Push {
  Ints indices;
  Cells updates, y;
  Words claims;
  BoundsReports bounds_reports;
  ScatterRecords record;
} push;
#define R push.record.v

layout(constant_id = 3) const bool kLong = false;  // indices of 64 bits, read as two words

// Offsets of an update: its own, y's, its indices', their row-major number, and its place among the claims.
struct Offsets { int update, y, index, order, slot; };
Offsets begin_of_all() { return Offsets(R.first_update, R.first_y, R.first_index, 0, 0); }
// Those of update number `item` over the axes [first, end) on top.
void move_along(inout Offsets p, uint item, int first, int end) {
  for (int i = end - 1; i >= first; --i) {
    const int at = int(fast_divmod(item, R.size[i]));
    p.update += at * R.update[i];
    p.y += at * R.y[i];
    p.index += at * R.index[i];
    p.order += at * R.order[i];
    p.slot += at * R.slot[i];
  }
}
// And where its indices lead.
void move_to_target(inout Offsets p, bool reports) {
  for (int i = 0; i < R.picked; ++i) {
    const int at = p.index + i * R.tuple_stride, size = R.picked_size[i];
    int index = push.indices.v[kLong ? 2 * at : at];
    const int low = index, high = kLong ? push.indices.v[2 * at + 1] : low >> 31;
    if (high != low >> 31) index = high < 0 ? -2147483647 - 1 : 2147483647;
    if (reports && (index < -size || index >= size)) report_bounds(push.bounds_reports, uint(p.order + i), low, high);
    index = clamp(index < 0 ? index + size : index, 0, size - 1);
    p.y += index * R.picked_y[i];
    p.slot += index * R.picked_slot[i];
  }
}
uint thread_number() {
  return (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}
