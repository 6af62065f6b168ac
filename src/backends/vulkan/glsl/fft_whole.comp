// Channels with a filter each: a workgroup takes pairs of channels of a tile there, multiplies, and takes them back.
// build: fft_whole
// build: fft_whole_half -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "fft.glsl"

// w: [pair][frequency] of the filters of both channels.
void main() {
  const Task task = task_of();
  if (task.none) return;
  const Tile tile = tile_of(task.outer);
  const int pair = int(task.block) * kPairs;
  load_tile(tile, 0, pair);
  transform_there(kFlat ? 0 : tile.begin.x, kFlat ? 1 : tile.end.x);
  for (int i = thread_index(); i < kPairs * kFrequencies; i += threads()) {
    const int row = i % kRows, column = i / kRows % kHalf, p = i / kFrequencies;
    if (pair + p >= R.pairs) continue;
    const Frequency f = frequency_of(p, column, row);
    if (f.alone && f.other < f.place) continue;
    const vec4 filters = Vec4s(push.w).v[(pair + p) * kFrequencies + column * kRows + row];
    const vec4 z = parted(f);
    const vec4 product = vec4(times(z.xy, filters.xy), times(z.zw, filters.zw));
    points[f.place] = vec2(product.x - product.w, product.y + product.z);
    if (f.other != f.place) points[f.other] = vec2(product.x + product.w, product.z - product.y);
  }
  transform_back(kFlat ? 1 : tile.outputs.x, R.stride.x);
  store_tile(tile, 0, pair);
}
