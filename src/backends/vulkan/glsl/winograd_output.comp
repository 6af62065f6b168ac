// Products at the points of Winograd's tiles to outputs: a thread per tile and filter, neighbours in filters.
// build: winograd_output
// build: winograd_output_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "gemm.glsl"
#include "winograd.glsl"

// x: [point][tile][k], in f32
void main() {
  const int index = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
  const int tiles = all_tiles();
  if (index >= tiles * G.n) return;
  const int k = index % G.n, tile = index / G.n;
  const ivec3 place = place_of(tile);
  float square[6][6];
  [[unroll]] for (int i = 0; i < kPoints; ++i)
    [[unroll]] for (int j = 0; j < kPoints; ++j) square[i][j] = Floats(push.x).v[((i * kPoints + j) * tiles + tile) * G.n + k];
  BOTH_AXES(output_line, square, kPoints, kTile)
  const Instance at = instance_at(0);
  for (int i = 0; i < kTile && place.y + i < G.rows.z; ++i)
    for (int j = 0; j < kTile && place.z + j < G.rows.w; ++j) {
      const ivec4 pixel = ivec4(place.x, 0, place.y + i, place.z + j);
      push.y.v[dot4(pixel, G.y_strides) + k * G.channel.y] = ELEMENT(finished(square[i][j], at, pixel, k));
    }
}
