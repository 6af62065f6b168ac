// Long windows of which there are few: a workgroup makes kLanes outputs side by side, or four channels of each, and shares their
// windows' elements among its threads.
// build: pool_group_1 -DWIDTH=1 -DVALUE=float
// build: pool_group_4 -DWIDTH=4 -DVALUE=vec4
// build: pool_group_1_half -DWIDTH=1 -DVALUE=float -DHALF
// build: pool_group_4_half -DWIDTH=4 -DVALUE=vec4 -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "pool.glsl"

layout(constant_id = 7) const uint kLanes = 1;  // a power of two, as the workgroup's size is
shared VALUE gathered[gl_WorkGroupSize.x];

// The first tap of an axis that lies inside, and how many do.
ivec2 taps_inside(int origin, int axis) {
  const int dilation = R.dilation[axis];
  const int first = origin < 0 ? (dilation - 1 - origin) / dilation : 0;
  const int last = min(R.filter_size[axis], (R.x_size[axis + 1] - origin + dilation - 1) / dilation);
  return ivec2(first, max(0, last - first));
}

void main() {
  const uint thread = gl_LocalInvocationID.x, lane = thread % kLanes, depth = thread / kLanes;
  const uint index = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * kLanes + lane;
  const bool there = index < R.count;
  int channel;
  const ivec4 out_at = output_of(min(index, R.count - 1), channel);
  const ivec3 origin = out_at.yzw * R.stride.xyz - R.pad.xyz;
  const ivec2 d = taps_inside(origin.x, 0), h = taps_inside(origin.y, 1), w = taps_inside(origin.z, 2);
  const int base = out_at.x * R.x_strides.x + channel * R.channel.x, count = d.y * h.y * w.y;
  VALUE best = lowest(), sum = VALUE(0.0);
  if (there)
    for (int i = int(depth); i < count; i += int(gl_WorkGroupSize.x / kLanes)) {
      const int line = i / w.y, slice = line / h.y;
      const ivec3 at = origin + ivec3(d.x + slice, h.x + line - slice * h.y, w.x + i - line * w.y) * R.dilation.xyz;
      take(LOADED(push.x.v[base + at.x * R.x_strides.y + at.y * R.x_strides.z + at.z * R.x_strides.w]), best, sum);
    }
  gathered[thread] = kKind == 0u ? best : sum;
  barrier();
  for (uint step = gl_WorkGroupSize.x / 2; step >= kLanes; step /= 2) {
    if (thread < step) {
      const VALUE other = gathered[thread + step];
      gathered[thread] = kKind == 0u ? larger(other, gathered[thread]) : gathered[thread] + other;
    }
    barrier();
  }
  if (there && depth == 0) store_output(out_at, channel, finished(gathered[thread], gathered[thread], count, origin));
}
