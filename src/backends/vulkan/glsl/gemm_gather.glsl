// The operands of an implicit GEMM on their way into a workgroup's tiles, kLoad elements at a time: four in f32, or with EIGHTS
// eight halves as they are. Rows of the left one are gathered through the window, padding counts as zero. The includer says how
// many loads of each a thread makes (kLoadsA, kLoadsB), how many threads there are, and the tile's kM, kN and kK.
layout(constant_id = kVectors_id) const bool kVectors = false;  // a load's channels at once: counts and pitches are multiples of it
layout(constant_id = kPacked_id) const bool kPacked = true;    // the right operand is packed: [k][n_padded], zeros beyond k and n
layout(constant_id = kStoreVectors_id) const bool kStoreVectors = false;
#include "gemm_taps.glsl"

#ifdef EIGHTS
#define LOADED uvec4
#define NOTHING uvec4(0)
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Eights { uvec4 v[]; };
#else
#define LOADED vec4
#define NOTHING vec4(0.0)
#endif
LOADED next_a[kLoadsA];
// Where this thread's rows lie: their pixel's first tap.
int row_from[kLoadsA];
ivec3 row_at[kLoadsA];
// One element of the left operand, or zero.
float element(int load, int t, int r, int s, int c) {
  const ivec3 p = row_at[load] + ivec3(t, r, s) * G.dilation.xyz;
  if (t >= kFilterT || any(lessThan(p, ivec3(0))) || any(greaterThanEqual(p, G.x_size.yzw))) return 0.0;
  return float(push.x.v[row_from[load] + p.x * G.x_pitch.y + p.y * G.x_pitch.z + p.z * G.x_pitch.w + c * G.channel.x]);
}
LOADED load_a(int load) {
  if (kVectors) {
    const ivec3 p = row_at[load] + ivec3(tap_t, tap_r, tap_s) * G.dilation.xyz;
    if (tap_t >= kFilterT || any(lessThan(p, ivec3(0))) || any(greaterThanEqual(p, G.x_size.yzw))) return NOTHING;
    const int from = row_from[load] + p.x * G.x_pitch.y + p.y * G.x_pitch.z + p.z * G.x_pitch.w + tap_c;
#ifdef EIGHTS
    return Eights(push.x).v[from >> 3];
#else
    return vec4(Element4s(push.x).v[from >> 2]);
#endif
  }
  float value[kLoad];
  ivec4 at = ivec4(tap_t, tap_r, tap_s, tap_c);
  [[unroll]] for (int i = 0; i < kLoad; ++i) {
    value[i] = element(load, at.x, at.y, at.z, at.w);
    at = next_tap(at);
  }
#ifdef EIGHTS
  uvec4 halves;
  [[unroll]] for (int i = 0; i < 4; ++i) halves[i] = packFloat2x16(f16vec2(value[2 * i], value[2 * i + 1]));
  return halves;
#else
  return vec4(value[0], value[1], value[2], value[3]);
#endif
}
// Four columns of a row of the right operand as it is.
vec4 load_b(int k, int n, int from) {
  vec4 value = vec4(0.0);
  if (k >= G.k) return value;
  const ivec4 at = tap_within(k);
  from += dot4(at, G.w_pitch);
  [[unroll]] for (int i = 0; i < 4; ++i)
    if (n + i < G.n) value[i] = float(push.w.v[from + (n + i) * G.w_filter_pitch]);
  return value;
}

// Before the first load: the rows of the tile that begins at m0, and where its sums begin.
void begin_rows(int thread, Instance at, int m0, int k) {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) {
    const int m = m0 + over(thread + i * kThreads, kK / kLoad);
    const ivec4 pixel = pixel_of(min(m, G.m - 1));
    row_from[i] = at.x + pixel.x * G.x_pitch.x;
    row_at[i] = pixel.yzw * ivec3(kStrideT, kStrideR, kStrideS) - G.pad.xyz;
  }
  seek(k + rest(thread, kK / kLoad) * kLoad);
}
void load_rows() {
  [[unroll]] for (int i = 0; i < kLoadsA; ++i) next_a[i] = load_a(i);
}

// Which instance this workgroup works for, and which part of its sums.
int instance_index() { return push.first_instance + int(gl_WorkGroupID.z) / push.parts; }
int part_index() { return int(gl_WorkGroupID.z) % push.parts; }
