// Transforms of the fft family in shared memory: pairs of planes, each pair as the real and the imaginary parts of one transform
// of kRows x kColumns points. Passes are in place, so frequencies end in an order of their own (families/fft, fft_tables.h).
#include "divide.glsl"
#include "post_op.glsl"

struct FftRecord {
#include "record_fields.inc"
#include "fft_record.inc"
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer FftRecords { FftRecord v; POST_OP_RECORD };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Roots { vec2 v[]; };

layout(push_constant, scalar) uniform Push {
  Elements x, w, y, scale, bias, r0, r1;
  POST_OP_OPERANDS
  FftRecords record;
  Roots roots;  // of kColumns, then of kRows
  Ints offsets;  // of column frequencies 0 to kColumns / 2, of those of the other sign, and of rows' of the other sign by place
} push;

// The epilogue, bound when the pipeline is made.
layout(constant_id = 3) const uint kActivation = 0;
layout(constant_id = 4) const bool kScale = false;
layout(constant_id = 5) const bool kBias = false;
layout(constant_id = 6) const int kBefore = 0;  // residuals
layout(constant_id = 7) const int kAfter = 0;
layout(constant_id = 8) const int kRows = 8;
layout(constant_id = 9) const int kColumns = 8;
layout(constant_id = 10) const int kPairs = 1;  // of a workgroup
layout(constant_id = 11) const bool kAcross = true;  // neighbouring threads read neighbouring channels, else neighbouring pixels
// Factors of both lengths in the order of the passes, 1 for those that there are not.
layout(constant_id = 12) const int kWide0 = 8;
layout(constant_id = 13) const int kWide1 = 1;
layout(constant_id = 14) const int kWide2 = 1;
layout(constant_id = 15) const int kWide3 = 1;
layout(constant_id = 16) const int kWide4 = 1;
layout(constant_id = 17) const int kHigh0 = 8;
layout(constant_id = 18) const int kHigh1 = 1;
layout(constant_id = 19) const int kHigh2 = 1;
layout(constant_id = 20) const int kHigh3 = 1;
layout(constant_id = 21) const int kHigh4 = 1;

#define R push.record.v

#include "activations.glsl"

// Odd distances of lines, and a gap every 16 points of a single one, keep what threads touch together in different banks.
const bool kFlat = kRows == 1;
const int kRowStride = (kFlat ? kColumns + kColumns / 16 : kColumns) | 1;
const int kPlane = kRows * kRowStride;
shared vec2 points[kPairs * kPlane];

const int kHalf = kColumns / 2 + 1, kFrequencies = kHalf * kRows;

int point_at(int pair, int row, int column) {
  return pair * kPlane + row * kRowStride + (kFlat ? column + column / 16 : column);
}
int thread_index() { return int(gl_LocalInvocationID.x); }
int threads() { return int(gl_WorkGroupSize.x); }

vec2 times(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
vec2 turned(vec2 a) { return vec2(a.y, -a.x); }  // times -i

void transform4(inout vec2 a, inout vec2 b, inout vec2 c, inout vec2 d) {
  const vec2 p = a + c, q = a - c, r = b + d, s = turned(b - d);
  a = p + r, b = q + s, c = p - r, d = q - s;
}
// The first `radix` of v, in place.
void transform(int radix, inout vec2 v[8]) {
  if (radix == 8) {
    const float h = 0.70710678118654752;
    vec2 a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
    vec2 e = v[0] - v[4], f = v[1] - v[5], g = turned(v[2] - v[6]), k = v[3] - v[7];
    f = h * vec2(f.x + f.y, f.y - f.x), k = h * vec2(k.y - k.x, -k.x - k.y);
    transform4(a, b, c, d);
    transform4(e, f, g, k);
    v[0] = a, v[1] = e, v[2] = b, v[3] = f, v[4] = c, v[5] = g, v[6] = d, v[7] = k;
  } else if (radix == 4) {
    transform4(v[0], v[1], v[2], v[3]);
  } else if (radix == 2) {
    const vec2 a = v[0] + v[1];
    v[1] = v[0] - v[1], v[0] = a;
  } else if (radix == 3) {
    const vec2 sum = v[1] + v[2], middle = v[0] - 0.5 * sum, turn = 0.86602540378443865 * turned(v[1] - v[2]);
    v[0] += sum, v[1] = middle + turn, v[2] = middle - turn;
  } else if (radix == 5) {
    const float c1 = 0.30901699437494742, c2 = -0.80901699437494742, s1 = 0.95105651629515357, s2 = 0.58778525229247313;
    const vec2 a = v[1] + v[4], b = v[2] + v[3], c = turned(v[1] - v[4]), d = turned(v[2] - v[3]);
    const vec2 first = v[0] + c1 * a + c2 * b, second = v[0] + c2 * a + c1 * b;
    const vec2 turn = s1 * c + s2 * d, other = s2 * c - s1 * d;
    v[0] += a + b;
    v[1] = first + turn, v[4] = first - turn, v[2] = second + other, v[3] = second - other;
  }
}

// One pass over lines of all pairs, a transform of `radix` points a thread, neighbours on neighbouring lines: rows
// first, first + stride, ... or (high) all columns. Back: the same on numbers whose parts are exchanged, factors before sums.
void pass(const bool high, const bool back, const int radix, const int block, int first, int stride, int lines) {
  const int length = high ? kRows : kColumns, step = block / radix;
  const int all = lines * kPairs * (length / radix);
  const float each = 1.0 / float(lines * kPairs), of_pair = 1.0 / float(lines);
  barrier();
  for (int i = thread_index(); i < all; i += threads()) {
    // Exact: numbers are below 2^16, and a quotient is at least half a line away from the next.
    const int j = int((float(i) + 0.5) * each), line = i - j * (lines * kPairs);
    const int pair = int((float(line) + 0.5) * of_pair), at = first + (line - pair * lines) * stride;
    const int k = j % step, from = j / step * block + k;
    vec2 v[8];
    int place[8];
    [[unroll]] for (int q = 0; q < radix; ++q) {
      place[q] = high ? point_at(pair, from + q * step, at) : point_at(pair, at, from + q * step);
      v[q] = back ? points[place[q]].yx : points[place[q]];
    }
    const int scale = length / block * k, roots = high ? kColumns : 0;
    if (back && step > 1)
      [[unroll]] for (int q = 1; q < radix; ++q) v[q] = times(v[q], push.roots.v[roots + q * scale]);
    transform(radix, v);
    if (!back && step > 1)
      [[unroll]] for (int q = 1; q < radix; ++q) v[q] = times(v[q], push.roots.v[roots + q * scale]);
    [[unroll]] for (int q = 0; q < radix; ++q) points[place[q]] = back ? v[q].yx : v[q];
  }
}

// There: rows from begin to end (the others are zeros), then columns.
void transform_there(int begin, int end) {
  const int rows = end - begin;
  if (rows > 0) {
    pass(false, false, kWide0, kColumns, begin, 1, rows);
    if (kWide1 > 1) pass(false, false, kWide1, kColumns / kWide0, begin, 1, rows);
    if (kWide2 > 1) pass(false, false, kWide2, kColumns / (kWide0 * kWide1), begin, 1, rows);
    if (kWide3 > 1) pass(false, false, kWide3, kColumns / (kWide0 * kWide1 * kWide2), begin, 1, rows);
    if (kWide4 > 1) pass(false, false, kWide4, kWide4, begin, 1, rows);
  }
  if (!kFlat) {
    pass(true, false, kHigh0, kRows, 0, 1, kColumns);
    if (kHigh1 > 1) pass(true, false, kHigh1, kRows / kHigh0, 0, 1, kColumns);
    if (kHigh2 > 1) pass(true, false, kHigh2, kRows / (kHigh0 * kHigh1), 0, 1, kColumns);
    if (kHigh3 > 1) pass(true, false, kHigh3, kRows / (kHigh0 * kHigh1 * kHigh2), 0, 1, kColumns);
    if (kHigh4 > 1) pass(true, false, kHigh4, kHigh4, 0, 1, kColumns);
  }
  barrier();
}
// And back: columns, then the first `rows` rows that are outputs.
void transform_back(int rows, int stride) {
  if (!kFlat) {
    if (kHigh4 > 1) pass(true, true, kHigh4, kHigh4, 0, 1, kColumns);
    if (kHigh3 > 1) pass(true, true, kHigh3, kRows / (kHigh0 * kHigh1 * kHigh2), 0, 1, kColumns);
    if (kHigh2 > 1) pass(true, true, kHigh2, kRows / (kHigh0 * kHigh1), 0, 1, kColumns);
    if (kHigh1 > 1) pass(true, true, kHigh1, kRows / kHigh0, 0, 1, kColumns);
    pass(true, true, kHigh0, kRows, 0, 1, kColumns);
  }
  if (kWide4 > 1) pass(false, true, kWide4, kWide4, 0, stride, rows);
  if (kWide3 > 1) pass(false, true, kWide3, kColumns / (kWide0 * kWide1 * kWide2), 0, stride, rows);
  if (kWide2 > 1) pass(false, true, kWide2, kColumns / (kWide0 * kWide1), 0, stride, rows);
  if (kWide1 > 1) pass(false, true, kWide1, kColumns / kWide0, 0, stride, rows);
  pass(false, true, kWide0, kColumns, 0, stride, rows);
  barrier();
}

// A frequency and the one of the other sign, as places of a pair's plane.
struct Frequency {
  int place, other;
  bool alone;  // both are of one column: rows list both
};
Frequency frequency_of(int pair, int column, int row) {
  Frequency f;
  const int here = push.offsets.v[column], there = push.offsets.v[kHalf + column];
  const int mirrored = kFlat ? 0 : push.offsets.v[2 * kHalf + row];
  f.place = point_at(pair, row, here), f.other = point_at(pair, mirrored, there);
  f.alone = here == there;
  return f;
}
// Of the two planes, twice their numbers at a frequency: sums and differences of it and its mirror.
vec4 parted(Frequency f) {
  const vec2 z = points[f.place], m = points[f.other];
  return vec4(z.x + m.x, z.y - m.y, z.y + m.y, m.x - z.x);
}
// Both planes' numbers at a frequency, to the plane and its mirror.
void join(Frequency f, vec4 v) {
  points[f.place] = vec2(v.x - v.w, v.y + v.z);
  if (f.other != f.place && !f.alone) points[f.other] = vec2(v.x + v.w, v.z - v.y);
}

// What this workgroup does: `block` of kPairs pairs, and the outer index.
struct Task {
  uint block, outer;
  bool none;
};
Task task_of() {
  uint index = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;
  Task t;
  t.none = index >= R.count;
  t.block = fast_divmod(index, R.blocks);
  t.outer = index;
  return t;
}
// A tile of outputs: image, place among the tiles, first output pixel, first input (may be padding).
struct Tile {
  int image;
  ivec2 pixel, origin, outputs, begin, end;
};
Tile tile_of(uint index) {
  ivec2 at;
  at.y = int(fast_divmod(index, R.tiles_w));
  at.x = int(fast_divmod(index, R.tiles_h));
  Tile t;
  t.image = int(index);
  t.pixel = at * R.tile;
  t.outputs = min(R.tile, R.y_size - t.pixel);
  t.origin = t.pixel * R.stride - R.pad;
  t.begin = clamp(-t.origin, ivec2(0), R.span);
  t.end = clamp(R.x_size - t.origin, t.begin, R.span);
  return t;
}
// Of `kPairs` pairs of `across` pixels, in the order in which operands lie.
struct Element {
  int pair, row, column;
};
Element element_of(int i, int rows, int columns) {
  Element e;
  if (kAcross) {
    e.pair = i % kPairs, i /= kPairs;
    e.row = i / columns, e.column = i - e.row * columns;
  } else {
    e.pair = i / (rows * columns), i -= e.pair * (rows * columns);
    e.row = i / columns, e.column = i - e.row * columns;
  }
  return e;
}
// Inputs of a tile for pairs from `pair` on, of channels from `channel` on; zeros around them.
void load_tile(Tile t, int channel, int pair) {
  for (int i = thread_index(); i < kPairs * kRows * kColumns; i += threads()) {
    const Element e = element_of(i, kRows, kColumns);
    const ivec2 at = ivec2(e.row, e.column);
    vec2 value = vec2(0.0);
    const int c = 2 * (pair + e.pair);
    if (all(greaterThanEqual(at, t.begin)) && all(lessThan(at, t.end)) && c < R.channels) {
      const ivec2 pixel = t.origin + at;
      const int from =
          t.image * R.x_strides.x + (channel + c) * R.x_strides.y + pixel.x * R.x_strides.z + pixel.y * R.x_strides.w;
      value.x = float(push.x.v[from]);
      if (c + 1 < R.channels) value.y = float(push.x.v[from + R.x_strides.y]);
    }
    points[point_at(e.pair, e.row, e.column)] = value;
  }
}
int dot4(ivec4 a, ivec4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
POST_OP_FUNCTION
// The sum of an output pixel (n, filter, h, w) to what is stored.
float finished(float sum, ivec4 pixel) {
  sum *= R.alpha;
  if (kScale) sum *= float(push.scale.v[pixel.y * R.vector_strides.x]);
  if (kBias) sum += float(push.bias.v[pixel.y * R.vector_strides.y]);
  const float first = kBefore + kAfter > 0 ? float(push.r0.v[dot4(pixel, R.r_strides[0])]) : 0.0;
  const float second = kBefore + kAfter > 1 ? float(push.r1.v[dot4(pixel, R.r_strides[1])]) : 0.0;
  if (kBefore > 0) sum += first;
  if (kBefore > 1) sum += second;
  sum = activated(kActivation, sum, R.a, R.b);
  if (kAfter > 0) sum += kBefore > 0 ? second : first;
  if (kAfter > 1) sum += second;
  return WITH_POST_OP(sum, ivec4(pixel.x, 0, pixel.zw), pixel.y, 0);
}
// Outputs of a tile for pairs from `pair` on, of filters from `first` on.
void store_tile(Tile t, int first, int pair) {
  for (int i = thread_index(); i < kPairs * t.outputs.x * t.outputs.y; i += threads()) {
    const Element e = element_of(i, t.outputs.x, t.outputs.y);
    const vec2 value = points[point_at(e.pair, e.row * R.stride.x, e.column * R.stride.y)];
    const int k = 2 * (pair + e.pair);
    [[unroll]] for (int l = 0; l < 2; ++l) {
      if (k + l >= R.filters) continue;
      const ivec4 pixel = ivec4(t.image, first + k + l, t.pixel.x + e.row, t.pixel.y + e.column);
      push.y.v[dot4(pixel, R.y_strides)] = ELEMENT(finished(value[l], pixel));
    }
  }
}
