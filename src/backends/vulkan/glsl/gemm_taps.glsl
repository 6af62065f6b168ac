// Elements of a row of an implicit GEMM: its k runs over the taps t,r,s of the window and their channels c. An element is an
// ivec4 of (t,r,s,c); those beyond the last have t >= kFilterT.
layout(constant_id = kFilterT_id) const int kFilterT = 1;
layout(constant_id = kFilterR_id) const int kFilterR = 1;
layout(constant_id = kFilterS_id) const int kFilterS = 1;
layout(constant_id = kStrideT_id) const int kStrideT = 1;
layout(constant_id = kStrideR_id) const int kStrideR = 1;
layout(constant_id = kStrideS_id) const int kStrideS = 1;

// Element k, and the one behind an element.
ivec4 tap_of(int k) {
  const int c = umod(k, G.filter_size.w), tap = udiv(k, G.filter_size.w);
  return ivec4(udiv(tap, kFilterS * kFilterR), umod(udiv(tap, kFilterS), kFilterR), umod(tap, kFilterS), c);
}
ivec4 next_tap(ivec4 at) {
  if (++at.w < G.filter_size.w) return at;
  at.w = 0;
  if (++at.z < kFilterS) return at;
  at.z = 0;
  if (++at.y < kFilterR) return at;
  return ivec4(at.x + 1, 0, 0, 0);
}
// Element k where it is not beyond the last.
ivec4 tap_within(int k) { return kFilterT * kFilterR * kFilterS == 1 ? ivec4(0, 0, 0, k) : tap_of(k); }
// So many elements further on.
void advance(inout ivec4 at, int elements) {
  at.w += elements;
  while (at.w >= G.filter_size.w) {
    at.w -= G.filter_size.w;
    if (++at.z == kFilterS) {
      at.z = 0;
      if (++at.y == kFilterR) {
        at.y = 0;
        ++at.x;
      }
    }
  }
}

// A row of the left operand, gathered through the window: where its image begins in x, and its pixel's first tap along d,h,w.
struct WindowRow {
  int from;
  ivec3 at;
};
// Row m of an instance that begins at `x`; the last one in the place of those beyond.
WindowRow window_row(int m, int x) {
  const ivec4 pixel = pixel_of(min(m, G.m - 1));
  return WindowRow(x + pixel.x * G.x_strides.x, pixel.yzw * ivec3(kStrideT, kStrideR, kStrideS) - G.pad.xyz);
}
// The pixel of x that a row has under a tap, whether it is one, and its first element.
ivec3 pixel_under(WindowRow row, ivec3 tap) { return row.at + tap * G.dilation.xyz; }
bool in_padding(ivec3 p) { return any(lessThan(p, ivec3(0))) || any(greaterThanEqual(p, G.x_size.yzw)); }
int element_of(WindowRow row, ivec3 p) { return row.from + p.x * G.x_strides.y + p.y * G.x_strides.z + p.z * G.x_strides.w; }
