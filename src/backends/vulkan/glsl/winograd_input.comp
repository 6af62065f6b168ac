// Inputs of Winograd's tiles to their points: a thread per tile and channel, neighbours in channels.
// build: winograd_input
// build: winograd_input_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"
#include "winograd.glsl"

// y: [point][tile][c], in f32
void main() {
  const int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  const int tiles = all_tiles(), channels = G.filter_size.w;
  if (index >= tiles * channels) return;
  const int c = index % channels, tile = index / channels;
  const ivec3 place = place_of(tile);
  const int from = place.x * G.x_strides.x + c * G.channel.x;
  float square[6][6];
  [[unroll]] for (int i = 0; i < kPoints; ++i)
    [[unroll]] for (int j = 0; j < kPoints; ++j) {
      const int h = place.y + i - G.pad.y, w = place.z + j - G.pad.z;
      const bool inside = h >= 0 && h < G.x_size.z && w >= 0 && w < G.x_size.w;
      square[i][j] = inside ? float(push.x.v[from + h * G.x_strides.z + w * G.x_strides.w]) : 0.0;
    }
  BOTH_AXES(input_line, square, kPoints, kPoints)
  [[unroll]] for (int i = 0; i < kPoints; ++i)
    [[unroll]] for (int j = 0; j < kPoints; ++j) Floats(push.y).v[((i * kPoints + j) * tiles + tile) * channels + c] = square[i][j];
}
