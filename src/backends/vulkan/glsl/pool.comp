// Maximum, mean or power mean of a window: one output a thread over any layout, or four channels of one.
// build: pool_1 -DWIDTH=1 -DVALUE=float
// build: pool_4 -DWIDTH=4 -DVALUE=vec4
// build: pool_1_half -DWIDTH=1 -DVALUE=float -DHALF
// build: pool_4_half -DWIDTH=4 -DVALUE=vec4 -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "divide.glsl"
#if WIDTH == 4
#define Values Element4s
#define STORED ELEMENT4
#else
#define Values Elements
#define STORED ELEMENT
#endif
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { uvec2 v[]; };

// As PoolRecord of pool.cc. Pitches count values: of four channels in the wide build.
struct PoolRecord {
  uint count;
  Divisor n, channels, d, h, w;  // outputs
  ivec4 x_size, x_pitch, y_pitch, i_pitch, channel;  // n,d,h,w; channels of x, y and positions
  ivec4 filter_size, stride, dilation, pad, pad_end;  // along d,h,w
  int power;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer PoolRecords { PoolRecord v; };

layout(push_constant, scalar) uniform Push {
  Values x, y;
  Longs positions;
  PoolRecords record;
} push;

layout(constant_id = 3) const uint kKind = 0;               // as PoolKind: max, average, lp
layout(constant_id = 4) const bool kCountPad = false;       // the mean counts padding
layout(constant_id = 5) const bool kPositions = false;      // of the maxima are stored too
layout(constant_id = 6) const bool kPlanes = false;         // neighbouring threads go along rows, else along channels

#define R push.record.v

bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
// Whether x takes the place of the largest so far: a NaN does, and keeps it.
bool goes_before(float x, float best) { return !is_nan(best) && (x > best || is_nan(x)); }
float larger(float x, float best) { return goes_before(x, best) ? x : best; }
vec4 larger(vec4 x, vec4 best) {
  return vec4(larger(x.x, best.x), larger(x.y, best.y), larger(x.z, best.z), larger(x.w, best.w));
}
// Whole powers by products: pow() would lose digits.
VALUE power_of(VALUE x, int p) {
  VALUE result = VALUE(1.0);
  for (; p > 0; p >>= 1) {
    if ((p & 1) != 0) result *= x;
    x *= x;
  }
  return result;
}
// The root of that power: a first guess, and a step of Newton's.
VALUE root_of(VALUE x, int p) {
  if (p == 1) return x;
  if (p == 2) return sqrt(x);
  const VALUE guess = exp2(log2(max(x, VALUE(1e-37))) / float(p));
  const VALUE better = guess * (float(p - 1) + x / power_of(guess, p)) / float(p);
  return better * sign(x);  // no sum, no root
}
// Taps of a window that end before the padding does, along one axis.
int taps_counted(int at, int axis) {
  int count = 0;
  for (int t = 0; t < R.filter_size[axis]; ++t)
    if (at + t * R.dilation[axis] < R.x_size[axis + 1] + R.pad_end[axis]) ++count;
  return count;
}

void main() {
  uint index = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  if (index >= R.count) return;
  ivec4 out_at;
  int channel;
  if (!kPlanes) channel = int(split(index, R.channels));
  out_at.w = int(split(index, R.w));
  out_at.z = int(split(index, R.h));
  out_at.y = int(split(index, R.d));
  if (kPlanes) channel = int(split(index, R.channels));
  out_at.x = int(index);
  const ivec3 origin = out_at.yzw * R.stride.xyz - R.pad.xyz;
  const int base = out_at.x * R.x_pitch.x + channel * R.channel.x;
  VALUE best = VALUE(uintBitsToFloat(0xff800000u)), sum = VALUE(0.0);
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
        const VALUE x = VALUE(push.x.v[base + d * R.x_pitch.y + h * R.x_pitch.z + w * R.x_pitch.w]);
        if (kKind == 0u) {
#if WIDTH == 1
          if (kPositions && (count == 0 || goes_before(x, best))) position = (d * R.x_size.z + h) * R.x_size.w + w;
#endif
          best = larger(x, best);
        } else {
          sum += kKind == 1u ? x : power_of(abs(x), R.power);
        }
        ++count;
      }
    }
  }
  VALUE result = best;
  if (kKind == 1u) {
    if (kCountPad) count = taps_counted(origin.x, 0) * taps_counted(origin.y, 1) * taps_counted(origin.z, 2);
    result = count == 0 ? VALUE(uintBitsToFloat(0x7fc00000u)) : sum / float(count);
  }
  if (kKind == 2u) result = root_of(sum, R.power);
  push.y.v[out_at.x * R.y_pitch.x + out_at.y * R.y_pitch.y + out_at.z * R.y_pitch.z + out_at.w * R.y_pitch.w +
           channel * R.channel.y] = STORED(result);
#if WIDTH == 1
  if (kPositions) {
    // Positions of large inputs take more than 32 bits.
    const uint plane = uint(R.x_size.y * R.x_size.z * R.x_size.w), instance = uint(out_at.x) * R.channels.size + uint(channel);
    uint high, low, carry;
    umulExtended(plane, instance, high, low);
    low = uaddCarry(low, uint(position), carry);
    push.positions.v[out_at.x * R.i_pitch.x + out_at.y * R.i_pitch.y + out_at.z * R.i_pitch.z + out_at.w * R.i_pitch.w +
                     channel * R.channel.z] = uvec2(low, high + carry);
  }
#endif
}
