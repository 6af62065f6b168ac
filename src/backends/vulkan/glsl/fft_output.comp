// Frequencies of tiles, [frequency][group and tile][filter] of complex numbers, to outputs.
// build: fft_output
// build: fft_output_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "fft.glsl"

void main() {
  const Task task = task_of();
  if (task.none) return;
  const int pair = int(task.block) * kPairs;
  uint group = task.outer;
  const Tile tile = tile_of(fast_divmod(group, R.tiles));
  for (int i = thread_index(); i < kPairs * kFrequencies; i += threads()) {
    const int p = i % kPairs, at = i / kPairs;
    vec4 value = vec4(0.0);
    if (pair + p < R.pairs)
      value = Vec4s(push.x).v[((pair + p) * R.out_pair + at * R.out_frequency + int(task.outer) * R.out_outer) >> 2];
    join(frequency_of(p, at / kRows, at % kRows), value);
  }
  transform_back(kFlat ? 1 : tile.outputs.x, R.stride.x);
  store_tile(tile, int(group) * R.filters, pair);
}
