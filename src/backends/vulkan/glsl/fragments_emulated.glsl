// Fragments as fragments.glsl has them, on devices without matrix units: a lane keeps its share of the sums, and both operands
// are read where they lie in shared memory.
const int kHeld = kFragmentM * kFragmentN / kSubgroup;  // sums of a fragment that a lane holds
struct LeftFragment {
  int at, stride;
};
#define RightFragment LeftFragment
struct Sums {
  float held[kHeld];
};
#define LEFT_AT(at, stride) LeftFragment(at, stride)
#define RIGHT_AT(at, stride) RightFragment(at, stride)
#define CLEAR(sums) clear(sums)
#define ADD_PRODUCT(sums, a, b) add_product(sums, a, b)
#define STORE_SUMS(at, stride, sums) store_sums(at, stride, sums)
void tile_barrier() { barrier(); }
void own_barrier() { barrier(); }
int fragment_lane() { return int(gl_LocalInvocationID.x) % kSubgroup; }
int fragment_subgroup() { return int(gl_LocalInvocationID.x) / kSubgroup; }
float left_at(int i) { return float(left[i >> 2][i & 3]); }
float right_at(int i) { return float(right[i >> 2][i & 3]); }
void clear(out Sums sums) {
  for (int i = 0; i < kHeld; ++i) sums.held[i] = 0.0;
}
void add_product(inout Sums sums, LeftFragment a, RightFragment b) {
  for (int i = 0; i < kHeld; ++i) {
    const int e = fragment_lane() + i * kSubgroup, row = e / kFragmentN, column = e % kFragmentN;
    for (int k = 0; k < kFragmentK; ++k)
      sums.held[i] += left_at(a.at + row * a.stride + k) * right_at(b.at + column * b.stride + k);
  }
}
void store_sums(int at, int stride, Sums sums) {
  for (int i = 0; i < kHeld; ++i) {
    const int e = fragment_lane() + i * kSubgroup;
    staging[at + e / kFragmentN * stride + e % kFragmentN] = sums.held[i];
  }
}
