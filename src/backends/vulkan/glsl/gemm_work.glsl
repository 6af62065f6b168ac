// What the tiles' kernels share: which tile a workgroup makes, elements of its operands, and the way out of its sums.
layout(constant_id = kVectors_id) const bool kVectors = false;
layout(constant_id = kPacked_id) const bool kPacked = true;
layout(constant_id = kStoreVectors_id) const bool kStoreVectors = false;
layout(constant_id = kPartial_id) const bool kPartial = false;
#include "gemm_taps.glsl"

// The tile at row m0 and column n0 of an instance, from elements first to last of k.
struct Work {
  Instance at;
  int index;    // of the instance
  int part;     // of the sums
  int m0, n0;
  int first, last;
  int weights;  // where w begins
};
Work work_of_group(int rows, int columns) {
  Work work;
  work.index = push.first_instance + int(gl_WorkGroupID.z) / push.parts;
  work.part = int(gl_WorkGroupID.z) % push.parts;
  work.at = instance_at(work.index);
  const ivec2 origin = tile_origin(rows, columns);
  work.m0 = origin.x, work.n0 = origin.y;
  work.first = work.part * push.steps, work.last = min(G.k, work.first + push.steps);
  work.weights = kPacked ? work.at.packed : work.at.w;
  return work;
}

// An element of a row of x; padding counts as zero, and so does what lies beyond k.
bool is_there(ivec3 pixel, ivec4 tap) { return tap.x < kFilterT && !in_padding(pixel); }
float x_at(WindowRow row, ivec4 tap) {
  const ivec3 p = pixel_under(row, tap.xyz);
  float value = 0.0;
  if (is_there(p, tap)) value = float(push.x.v[element_of(row, p) + tap.w * G.channel.x]);
  return value;
}
// Four of them from an element on.
vec4 four_of_x(WindowRow row, ivec4 tap) {
  vec4 value = vec4(0.0);
  if (kVectors) {
    const ivec3 p = pixel_under(row, tap.xyz);
    if (is_there(p, tap)) value = vec4(Element4s(push.x).v[(element_of(row, p) + tap.w) >> 2]);
  } else {
    [[unroll]] for (int i = 0; i < 4; ++i) {
      value[i] = x_at(row, tap);
      tap = next_tap(tap);
    }
  }
  return value;
}
// Four columns of a row of w as it is, which begins at `from`.
vec4 four_of_w(int k, int n, int from) {
  vec4 value = vec4(0.0);
  if (k >= G.k) return value;
  from += dot4(tap_within(k), G.w_strides);
  [[unroll]] for (int i = 0; i < 4; ++i)
    if (n + i < G.n) value[i] = float(push.w.v[from + (n + i) * G.w_filter_stride]);
  return value;
}

// Sums on their way out, four filters of row m at a time: finished, or as they are where workgroups share them.
struct RowOfY {
  ivec4 pixel;
  int to;
};
RowOfY row_of_y(int m, Work work) {
  RowOfY row;
  row.pixel = pixel_of(m);
  row.to = kPartial ? partial_at(work.part, work.index, m) : work.at.y + dot4(row.pixel, G.y_strides);
  return row;
}
void store_vec4(RowOfY row, Work work, int n, vec4 sums) {
  if (kPartial) {
    if (n < G.n) Vec4s(push.y).v[(row.to + n) >> 2] = sums;
  } else if (kStoreVectors) {
    if (n >= G.n) return;
    vec4 value;
    [[unroll]] for (int l = 0; l < 4; ++l) value[l] = finished(sums[l], work.at, row.pixel, n + l);
    Element4s(push.y).v[(row.to + n) >> 2] = ELEMENT4(value);
  } else {
    [[unroll]] for (int l = 0; l < 4; ++l)
      if (n + l < G.n) push.y.v[row.to + (n + l) * G.channel.y] = ELEMENT(finished(sums[l], work.at, row.pixel, n + l));
  }
}
