// A workgroup makes a square of output pixels for a few filters, one output a thread: the inputs that they see, with what lies
// around the square, are brought into shared memory some channels at a time. Windows of two dimensions.
// build: gemm_halo
// build: gemm_halo_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"

layout(constant_id = kSide_id) const int kSide = 8;     // of the square
layout(constant_id = kFilters_id) const int kFilters = 4;
layout(constant_id = kChannels_id) const int kChannels = 4;  // at a time
layout(constant_id = kReachH_id) const int kReachH = 3;  // inputs that an output sees along each axis
layout(constant_id = kReachW_id) const int kReachW = 3;
layout(constant_id = kStrideR_id) const int kStrideR = 1;
layout(constant_id = kStrideS_id) const int kStrideS = 1;

const int kThreads = kSide * kSide * kFilters;
const int kPatchH = (kSide - 1) * kStrideR + kReachH, kPatchW = (kSide - 1) * kStrideS + kReachW;
const int kPatch = kPatchH * kPatchW * kChannels;
shared float patch_of[kPatch];

void main() {
  const int thread = int(gl_LocalInvocationID.x), side = thread / kFilters;
  const Instance at = instance_at(push.first_instance + int(gl_WorkGroupID.z));
  const ivec2 squares = (G.rows.zw + kSide - 1) / kSide;
  const ivec2 tile = tile_origin(1, kFilters);  // rows of tiles are squares here
  const int square = tile.x;
  const int n = square / (squares.x * squares.y);
  if (n >= G.rows.x) return;
  const ivec2 corner = ivec2(square / squares.y % squares.x, square % squares.y) * kSide;
  const ivec2 origin = corner * ivec2(kStrideR, kStrideS) - G.pad.yz;
  const ivec4 pixel = ivec4(n, 0, corner + ivec2(side / kSide, side % kSide));
  const int k = tile.y + thread % kFilters;
  const bool there = pixel.z < G.rows.z && pixel.w < G.rows.w && k < G.n;
  const int seen = (side / kSide * kStrideR * kPatchW + side % kSide * kStrideS) * kChannels;
  float sum = 0.0;
  for (int c0 = 0; c0 < G.filter_size.w; c0 += kChannels) {
    const int channels = min(kChannels, G.filter_size.w - c0);
    for (int e = thread; e < kPatch; e += kThreads) {
      const int c = e % kChannels, place = e / kChannels;
      const ivec2 p = origin + ivec2(place / kPatchW, place % kPatchW);
      const bool inside = c < channels && p.x >= 0 && p.x < G.x_size.z && p.y >= 0 && p.y < G.x_size.w;
      patch_of[e] = inside ? float(push.x.v[at.x + dot4(ivec4(n, 0, p), G.x_strides) + (c0 + c) * G.channel.x]) : 0.0;
    }
    barrier();
    if (there)
      for (int r = 0; r < G.filter_size.y; ++r)
        for (int s = 0; s < G.filter_size.z; ++s) {
          const int from = seen + (r * G.dilation.y * kPatchW + s * G.dilation.z) * kChannels;
          const int weight = at.w + k * G.w_filter_stride + r * G.w_strides.y + s * G.w_strides.z + c0 * G.w_strides.w;
          for (int c = 0; c < channels; ++c) sum = fma(patch_of[from + c], float(push.w.v[weight + c * G.w_strides.w]), sum);
        }
    barrier();
  }
  if (there) push.y.v[at.y + dot4(pixel, G.y_strides) + k * G.channel.y] = ELEMENT(finished(sum, at, pixel, k));
}
