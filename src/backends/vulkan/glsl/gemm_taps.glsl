// Elements of a row of an implicit GEMM: its k runs over the window's taps and their channels. The includer says how far a step
// of the tile is (kK).
layout(constant_id = kFilterT_id) const int kFilterT = 1;
layout(constant_id = kFilterR_id) const int kFilterR = 1;
layout(constant_id = kFilterS_id) const int kFilterS = 1;
layout(constant_id = kStrideT_id) const int kStrideT = 1;
layout(constant_id = kStrideR_id) const int kStrideR = 1;
layout(constant_id = kStrideS_id) const int kStrideS = 1;

// The tap and channel of this thread's first element.
int tap_t, tap_r, tap_s, tap_c;

// The tap t,r,s and the channel of element k, and of the one behind it.
ivec4 tap_of(int k) {
  const int c = rest(k, G.filter_size.w), tap = over(k, G.filter_size.w);
  return ivec4(over(tap, kFilterS * kFilterR), rest(over(tap, kFilterS), kFilterR), rest(tap, kFilterS), c);
}
// Of one that is not beyond the last.
ivec4 tap_within(int k) { return kFilterT * kFilterR * kFilterS == 1 ? ivec4(0, 0, 0, k) : tap_of(k); }
ivec4 next_tap(ivec4 at) {
  if (++at.w < G.filter_size.w) return at;
  at.w = 0;
  if (++at.z < kFilterS) return at;
  at.z = 0;
  if (++at.y < kFilterR) return at;
  return ivec4(at.x + 1, 0, 0, 0);
}
void seek(int k) {
  const ivec4 at = tap_of(k);
  tap_t = at.x, tap_r = at.y, tap_s = at.z, tap_c = at.w;
}
void advance() {
  tap_c += kK;
  while (tap_c >= G.filter_size.w) {
    tap_c -= G.filter_size.w;
    if (++tap_s == kFilterS) {
      tap_s = 0;
      if (++tap_r == kFilterR) {
        tap_r = 0;
        ++tap_t;
      }
    }
  }
}
