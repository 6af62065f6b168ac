// Deformable convolution: a workgroup makes kPixels pixels of kFilters filters of one group. What it multiplies is sampled into
// shared memory, kSlab elements of a pixel's taps and channels at a time; a thread has four pixels of four filters.
// build: deform
// build: deform_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "divide.glsl"
layout(constant_id = 3) const bool kBias = false;
layout(constant_id = 4) const bool kMask = false;

const int kPixels = 16, kFilters = 64, kSlab = 16, kThreads = 64;  // as in deform.cc

// As DeformRecord of kernels/deform.cc.
struct DeformRecord {
  int pixels, depth, inner, outer, height, width, taps;
  Divisor columns, rows, channels, filter_columns, offset_channels, filter_tiles, groups;
  int stride[2], dilation[2], pad[2];
  int x[4], w[4], offset[4], mask[4], y[4], bias;
  int first_x, first_w, first_offset, first_bias, first_mask, first_y;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Records { DeformRecord v; };
layout(push_constant, scalar) uniform Push {
  Elements x, w, offset, bias, mask, y;
  Records record;
  uint workgroups;
} push;
#define R push.record.v

shared float samples[kSlab][kPixels + 1];
shared float filters[kSlab][kFilters + 1];

float element(int from, int h, int w) {
  if (h < 0 || h >= R.height || w < 0 || w >= R.width) return 0.0;
  return float(push.x.v[from + h * R.x[2] + w * R.x[3]]);
}

float sampled(int pixel, int k, int group) {
  if (pixel >= R.pixels || k >= R.depth) return 0.0;
  uint image = uint(pixel), tap = uint(k);
  const int column = int(fast_divmod(image, R.columns)), row = int(fast_divmod(image, R.rows)), n = int(image);
  const int channel = group * R.inner + int(fast_divmod(tap, R.channels));
  uint down = tap;
  const int s = int(fast_divmod(down, R.filter_columns)), r = int(down);
  const int moved = int(divided(uint(channel), R.offset_channels)) * R.taps + int(tap);
  const int at = R.first_offset + n * R.offset[0] + 2 * moved * R.offset[1] + row * R.offset[2] + column * R.offset[3];
  precise const float h = float(row * R.stride[0] + r * R.dilation[0] - R.pad[0]) + float(push.offset.v[at]);
  precise const float w =
      float(column * R.stride[1] + s * R.dilation[1] - R.pad[1]) + float(push.offset.v[at + R.offset[1]]);
  float value = 0.0;
  // Also false for what is no number.
  if (h > -1.0 && w > -1.0 && h < float(R.height) && w < float(R.width)) {
    const int h0 = int(floor(h)), w0 = int(floor(w)), from = R.first_x + n * R.x[0] + channel * R.x[1];
    precise const float lower = h - floor(h), right = w - floor(w);
    value = (1.0 - lower) * ((1.0 - right) * element(from, h0, w0) + right * element(from, h0, w0 + 1)) +
            lower * ((1.0 - right) * element(from, h0 + 1, w0) + right * element(from, h0 + 1, w0 + 1));
  }
  if (kMask)
    value *= float(push.mask.v[R.first_mask + n * R.mask[0] + moved * R.mask[1] + row * R.mask[2] + column * R.mask[3]]);
  return value;
}

float weight(int filter_at, int k, int group) {
  if (filter_at >= R.outer || k >= R.depth) return 0.0;
  uint tap = uint(k);
  const int channel = int(fast_divmod(tap, R.channels)), s = int(fast_divmod(tap, R.filter_columns));
  return float(push.w.v[R.first_w + (group * R.outer + filter_at) * R.w[0] + channel * R.w[1] + int(tap) * R.w[2] + s * R.w[3]]);
}

void main() {
  uint work = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
  if (work >= push.workgroups) return;
  const int first_filter = int(fast_divmod(work, R.filter_tiles)) * kFilters, group = int(fast_divmod(work, R.groups));
  const int first_pixel = int(work) * kPixels, thread = int(gl_LocalInvocationID.x);
  const int pixel = thread / 16, own = thread % 16;
  vec4 sum[4];
  [[unroll]] for (int i = 0; i < 4; ++i) sum[i] = vec4(0.0);
  for (int k = 0; k < R.depth; k += kSlab) {
    barrier();
    [[dont_unroll]] for (int i = thread; i < kSlab * kPixels; i += kThreads)
      samples[i % kSlab][i / kSlab] = sampled(first_pixel + i / kSlab, k + i % kSlab, group);
    [[dont_unroll]] for (int i = thread; i < kSlab * kFilters; i += kThreads)
      filters[i % kSlab][i / kSlab] = weight(first_filter + i / kSlab, k + i % kSlab, group);
    barrier();
    [[dont_unroll]] for (int j = 0; j < kSlab; ++j) {
      const vec4 values = vec4(samples[j][pixel], samples[j][pixel + 4], samples[j][pixel + 8], samples[j][pixel + 12]);
      [[unroll]] for (int i = 0; i < 4; ++i) sum[i] += filters[j][own + 16 * i] * values;
    }
  }
  [[unroll]] for (int p = 0; p < 4; ++p) {
    uint image = uint(first_pixel + pixel + 4 * p);
    if (image >= uint(R.pixels)) continue;
    const int column = int(fast_divmod(image, R.columns)), row = int(fast_divmod(image, R.rows));
    const int to = R.first_y + int(image) * R.y[0] + row * R.y[2] + column * R.y[3];
    [[unroll]] for (int i = 0; i < 4; ++i) {
      const int at = first_filter + own + 16 * i, k = group * R.outer + at;
      if (at >= R.outer) continue;
      float result = sum[i][p];
      if (kBias) result += float(push.bias.v[R.first_bias + k * R.bias]);
      push.y.v[to + k * R.y[1]] = ELEMENT(result);
    }
  }
}
