// What the kernels of the pool family share: operands, and what becomes of a window's elements. WIDTH: outputs of a thread; BYTE:
// maxima of 8-bit integers, which floats hold; DOUBLE: f64.
#include "divide.glsl"
#ifdef BYTE
#extension GL_EXT_shader_8bit_storage : require
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };
#define Values Bytes
#elif defined(DOUBLE)
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Doubles { double v[]; };
#define Values Doubles
#define ELEMENTS double
#elif WIDTH == 4
#define Values Element4s
#define ELEMENTS ELEMENT4
#else
#define Values Elements
#define ELEMENTS ELEMENT
#endif
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Longs { uvec2 v[]; };

// As PoolRecord of pool.cc. Strides count values: of four channels in the wide build.
struct PoolRecord {
  uint count;
  Divisor n, channels, d, h, w;  // outputs
  ivec4 x_size, x_strides, y_strides, i_strides, channel;  // n,d,h,w; channels of x, y and positions
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

#ifdef BYTE
layout(constant_id = 7) const bool kSigned = false;
#define LOADED(x) (kSigned ? float(bitfieldExtract(int(x), 0, 8)) : float(int(x)))
#define STORED(x) uint8_t(int(x) & 255)
#else
#define LOADED(x) VALUE(x)
#define STORED(x) ELEMENTS(x)
#endif

#ifdef DOUBLE
#define SINGLE double
bool is_nan(double x) {
  const uvec2 bits = unpackDouble2x32(x);
  const uint high = bits.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && bits.x != 0u);
}
#else
#define SINGLE float
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
#endif
// Whether x takes the place of the largest so far: a NaN does, and keeps it.
bool goes_before(SINGLE x, SINGLE best) { return !is_nan(best) && (x > best || is_nan(x)); }
SINGLE larger(SINGLE x, SINGLE best) { return goes_before(x, best) ? x : best; }
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
#ifdef DOUBLE
  return VALUE(uintBitsToFloat(0x7fc00000u));  // pool.cc serves no others
#else
  const VALUE guess = exp2(log2(max(x, VALUE(1e-37))) / float(p));
  const VALUE better = guess * (float(p - 1) + x / power_of(guess, p)) / float(p);
  return better * sign(x);  // no sum, no root
#endif
}
// Taps of a window that end before the padding does, along one axis.
int taps_counted(int at, int axis) {
  int count = 0;
  for (int t = 0; t < R.filter_size[axis]; ++t)
    if (at + t * R.dilation[axis] < R.x_size[axis + 1] + R.pad_end[axis]) ++count;
  return count;
}

#ifdef BYTE
float lowest() { return kSigned ? -128.0 : 0.0; }
#else
VALUE lowest() { return VALUE(uintBitsToFloat(0xff800000u)); }
#endif
// An element of the window: to the largest, or to the sum.
void take(VALUE x, inout VALUE best, inout VALUE sum) {
  if (kKind == 0u) best = larger(x, best);
  else sum += kKind == 1u ? x : power_of(abs(x), R.power);
}
// The output of a window with `count` elements from `origin` on.
VALUE finished(VALUE best, VALUE sum, int count, ivec3 origin) {
  if (kKind == 0u) return best;
  if (kKind == 2u) return root_of(sum, R.power);
  if (kCountPad) count = taps_counted(origin.x, 0) * taps_counted(origin.y, 1) * taps_counted(origin.z, 2);
  return count == 0 ? VALUE(uintBitsToFloat(0x7fc00000u)) : sum / float(count);
}
// Where output `index` lies: n,d,h,w, and its channel.
ivec4 output_of(uint index, out int channel) {
  ivec4 at;
  if (!kPlanes) channel = int(fast_divmod(index, R.channels));
  at.w = int(fast_divmod(index, R.w));
  at.z = int(fast_divmod(index, R.h));
  at.y = int(fast_divmod(index, R.d));
  if (kPlanes) channel = int(fast_divmod(index, R.channels));
  at.x = int(index);
  return at;
}
void store_output(ivec4 at, int channel, VALUE value) {
  push.y.v[at.x * R.y_strides.x + at.y * R.y_strides.y + at.z * R.y_strides.z + at.w * R.y_strides.w + channel * R.channel.y] = STORED(value);
}
