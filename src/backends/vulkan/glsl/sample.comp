// Sampling at positions that are data: a thread finds the taps of one output position and makes up to kChannels channels of it.
// Positions are computed in the operations of families/sample/sample.cc, one by one: ties of nearest sampling depend on them.
// build: sample
// build: sample_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "divide.glsl"
#include "quotient.glsl"
layout(constant_id = 3) const uint kMode = 0;     // nearest, linear, cubic
layout(constant_id = 4) const uint kPadding = 0;  // zeros, border, reflection
layout(constant_id = 5) const bool kAlignCorners = false;
layout(constant_id = 6) const int kSpatial = 2;

const int kChannels = 4;  // as in sample.cc
const int kNowhere = -2147483648;
const int kTaps = kMode == 0 ? 1 : kMode == 1 ? 2 : 4;

// As SampleRecord of kernels/sample.cc. Axes of the output, innermost first, their channels in `groups`: channels of a thread
// lie `groups` apart.
struct SampleRecord {
  uint count;
  int rank, channel_axis, channels, groups;
  int first_x, first_grid, first_y;
  Divisor size[5];
  int x[5], grid[5], y[5];
  int next_x, next_y, next_coordinate;  // between the channels of a thread, between coordinates
  int elements[3], strides[3];             // of x's spatial axes
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Records { SampleRecord v; };
layout(push_constant, scalar) uniform Push {
  Elements x, grid, y;
  Records record;
} push;
#define R push.record.v

float reflected(float x, float low, float high) {
  precise const float range = high - low;
  if (range <= 0.0) return low;
  if (x >= low && x <= high) return x;
  precise const float beyond = x < low ? low - x : x - high;
  // No rounding takes a quotient of floats to 1 or 2 that is less.
  precise float times = beyond < range ? 0.0 : 1.0;
  if (beyond >= 2.0 * range) times = trunc(divided(beyond, range));
  precise const float product = times * range;
  precise const float rest = beyond - product;
  const bool from_low = (x < low) == (times - 2.0 * floor(times * 0.5) == 0.0);
  precise const float place = from_low ? low + rest : high - rest;
  return place;
}

struct Taps {
  ivec4 place;
  vec4 weight;
};

int place_of(int at, int length, int stride, float low, float high) {
  if (at < 0 || at >= length) {
    if (kPadding == 0) return kNowhere;
    if (kPadding == 2) at = int(reflected(float(at), low, high));
    at = clamp(at, 0, length - 1);
  }
  return at * stride;
}

float near_weight(float d) { return ((-0.75 + 2.0) * d - (-0.75 + 3.0)) * d * d + 1.0; }
float far_weight(float d) { return ((-0.75 * d + 3.75) * d - 6.0) * d + 3.0; }

Taps taps_of(float coordinate, int size, int stride) {
  const float length = float(size);
  precise const float low = kAlignCorners ? 0.0 : -0.5;
  precise const float high = kAlignCorners ? length - 1.0 : length - 0.5;
  precise float x = coordinate + 1.0;
  if (kAlignCorners) {
    x = x * 0.5;
    x = x * (length - 1.0);
  } else {
    x = x * length;
    x = x - 1.0;
    x = x * 0.5;
  }
  // What is no number, or beyond 2^30, by its bits: comparisons with NaN are not every driver's.
  const uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) >= 0x4e800000u) x = bits <= 0x7f800000u ? 2.0 * length + 8.0 : -length - 8.0;
  if (kMode == 0) x = roundEven(x);
  if (x < low || x > high) {
    if (kPadding == 1) x = clamp(x, 0.0, length - 1.0);
    if (kPadding == 2) x = reflected(x, low, high);
  }
  Taps taps;
  taps.place = ivec4(0);
  taps.weight = vec4(1.0);
  if (kMode == 0) {
    taps.place.x = place_of(int(x), size, stride, low, high);
    return taps;
  }
  const float below = floor(x);
  precise const float t = x - below;
  const int first = kMode == 1 ? int(below) : int(below) - 1;
  taps.weight = kMode == 1 ? vec4(1.0 - t, t, 0.0, 0.0)
                           : vec4(far_weight(1.0 + t), near_weight(t), near_weight(1.0 - t), far_weight(2.0 - t));
  [[unroll]] for (int i = 0; i < kTaps; ++i) taps.place[i] = place_of(first + i, size, stride, low, high);
  return taps;
}

void main() {
  const uint thread = (gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (thread >= R.count) return;
  uint rest = thread;
  int from = R.first_x, position = R.first_grid, to = R.first_y, channel = 0;
  for (int i = 0; i < R.rank; ++i) {
    const int at = int(fast_divmod(rest, R.size[i]));
    from += at * R.x[i];
    position += at * R.grid[i];
    to += at * R.y[i];
    if (i == R.channel_axis) channel = at;
  }
  const Taps nothing = Taps(ivec4(0), vec4(1.0));
  // The innermost axis is the first of the coordinates.
  const Taps c = taps_of(float(push.grid.v[position]), R.elements[2], R.strides[2]);
  Taps b = nothing, a = nothing;
  if (kSpatial > 1) b = taps_of(float(push.grid.v[position + R.next_coordinate]), R.elements[1], R.strides[1]);
  if (kSpatial > 2) a = taps_of(float(push.grid.v[position + 2 * R.next_coordinate]), R.elements[0], R.strides[0]);
  vec4 sum = vec4(0.0);
  for (int i = 0; i < (kSpatial > 2 ? kTaps : 1); ++i) {
    if (a.place[i] == kNowhere) continue;
    for (int j = 0; j < (kSpatial > 1 ? kTaps : 1); ++j) {
      if (b.place[j] == kNowhere) continue;
      [[unroll]] for (int k = 0; k < kTaps; ++k) {
        if (c.place[k] == kNowhere) continue;
        const float weight = a.weight[i] * b.weight[j] * c.weight[k];
        const int place = from + a.place[i] + b.place[j] + c.place[k];
        [[unroll]] for (int n = 0; n < kChannels; ++n)
          if (channel + n * R.groups < R.channels) sum[n] += weight * float(push.x.v[place + n * R.next_x]);
      }
    }
  }
  [[unroll]] for (int n = 0; n < kChannels; ++n)
    if (channel + n * R.groups < R.channels) push.y.v[to + n * R.next_y] = ELEMENT(sum[n]);
}
