// Tiles of inputs, or filters that are no constants, to their frequencies: [frequency][outer][plane] of complex numbers.
// build: fft_input
// build: fft_filter -DFILTER
// build: fft_input_half -DHALF
// build: fft_filter_half -DFILTER -DHALF
#version 460
#extension GL_GOOGLE_include_directive : require
#include "buffers.glsl"
#include "fft.glsl"

#ifdef FILTER
// Taps that see inputs, with zeros between them; those that fall together add up. The outer index is group and channel, with
// channels up to a whole step of the product.
float taps_at(ivec2 at, int from) {
  float sum = 0.0;
  for (int r = at.x; r < R.reach.x; r += kRows)
    for (int s = at.y; s < R.reach.y; s += kColumns) {
      const ivec2 spread = ivec2(r, s) + R.first, tap = spread / R.dilation;
      if (tap * R.dilation == spread) sum += float(push.w.v[from + tap.x * R.w_strides.z + tap.y * R.w_strides.w]);
    }
  return sum;
}
void load_filters(int group, int channel, int pair) {
  for (int i = thread_index(); i < kPairs * kRows * kColumns; i += threads()) {
    const int column = i % kColumns, row = i / kColumns % kRows, p = i / (kColumns * kRows), k = 2 * (pair + p);
    vec2 value = vec2(0.0);
    [[unroll]] for (int l = 0; l < 2; ++l)
      if (channel < R.channels && k + l < R.filters)
        value[l] = taps_at(ivec2(row, column), (group * R.filters + k + l) * R.w_strides.x + channel * R.w_strides.y);
    points[point_at(p, row, column)] = value;
  }
}
#endif

void main() {
  const Task task = task_of();
  if (task.none) return;
  const int pair = int(task.block) * kPairs;
  uint group = task.outer;
#ifdef FILTER
  const int channel = int(fast_divmod(group, R.outers));
  load_filters(int(group), channel, pair);
  transform_there(0, kRows);
#else
  const Tile tile = tile_of(fast_divmod(group, R.tiles));
  load_tile(tile, int(group) * R.channels, pair);
  transform_there(kFlat ? 0 : tile.begin.x, kFlat ? 1 : tile.end.x);
#endif
  for (int i = thread_index(); i < kPairs * kFrequencies; i += threads()) {
    const int p = i % kPairs, at = i / kPairs;
    if (pair + p >= R.pairs) continue;
    vec4 value = parted(frequency_of(p, at / kRows, at % kRows));
#ifdef FILTER
    value *= R.factor * vec4(1.0, -1.0, 1.0, -1.0);  // sums of products go along with the filter, not against it
#endif
    Vec4s(push.y).v[((pair + p) * R.out_pair + at * R.out_frequency + int(task.outer) * R.out_outer) >> 2] = value;
  }
}
