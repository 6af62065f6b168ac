// Maximum, mean or power mean of a window: one output a thread over any layout, or four channels of one.
// build: pool_1 -DWIDTH=1 -DVALUE=float
// build: pool_4 -DWIDTH=4 -DVALUE=vec4
// build: pool_1_half -DWIDTH=1 -DVALUE=float -DHALF
// build: pool_4_half -DWIDTH=4 -DVALUE=vec4 -DHALF
// build: pool_1_byte -DWIDTH=1 -DVALUE=float -DBYTE
// build: pool_1_double -DWIDTH=1 -DVALUE=double -DDOUBLE
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "pool.glsl"

void main() {
  uint index = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (index >= R.count) return;
  int channel;
  const ivec4 out_at = output_of(index, channel);
  const ivec3 origin = out_at.yzw * R.stride.xyz - R.pad.xyz;
  const int base = out_at.x * R.x_strides.x + channel * R.channel.x;
  VALUE best = lowest(), sum = VALUE(0.0);
  int count = 0, position = 0;
  for (int t = 0; t < R.filter_size.x; ++t) {
    const int d = origin.x + t * R.dilation.x;
    if (d < 0 || d >= R.x_size.y) continue;
    for (int r = 0; r < R.filter_size.y; ++r) {
      const int h = origin.y + r * R.dilation.y;
      if (h < 0 || h >= R.x_size.z) continue;
      for (int s = 0; s < R.filter_size.z; ++s) {
        const int w = origin.z + s * R.dilation.z;
        if (w < 0 || w >= R.x_size.w) continue;
        const VALUE x = LOADED(push.x.v[base + d * R.x_strides.y + h * R.x_strides.z + w * R.x_strides.w]);
#if WIDTH == 1
        if (kPositions && (count == 0 || goes_before(x, best))) position = (d * R.x_size.z + h) * R.x_size.w + w;
#endif
        take(x, best, sum);
        ++count;
      }
    }
  }
  store_output(out_at, channel, finished(best, sum, count, origin));
#if WIDTH == 1
  if (kPositions) {
    // Positions of large inputs take more than 32 bits.
    const uint plane = uint(R.x_size.y * R.x_size.z * R.x_size.w), instance = uint(out_at.x) * R.channels.size + uint(channel);
    uint high, low, carry;
    umulExtended(plane, instance, high, low);
    low = uaddCarry(low, uint(position), carry);
    push.positions.v[out_at.x * R.i_strides.x + out_at.y * R.i_strides.y + out_at.z * R.i_strides.z + out_at.w * R.i_strides.w +
                     channel * R.channel.z] = uvec2(low, high + carry);
  }
#endif
}
