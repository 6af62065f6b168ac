// Lines of points through the passes of a transform, in place: on the way in each pass multiplies what its butterfly made, on
// the way back what its butterfly takes, in the opposite order, so that nothing is ever sorted.
#include "backends/cpu/fft/fft_lines.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fft/fft_lines.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/fft/fft_butterflies-inl.h"
#include "backends/cpu/simd/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Blocks up to this size go through all their passes while they lie in the L1.
constexpr int64_t kNearBytes = 20 * 1024;

int64_t lanes_here() { return static_cast<int64_t>(hn::Lanes(D())); }

// One butterfly: points x, x + step, ... The inverse exchanges real and imaginary parts and twists before, not after.
#define SPARKLE_FFT_LOAD(q, r, i) V r = hn::LoadU(d, x + (q) * step + re), i = hn::LoadU(d, x + (q) * step + im)
#define SPARKLE_FFT_STORE(q, r, i) hn::StoreU(r, d, x + (q) * step + re), hn::StoreU(i, d, x + (q) * step + im)
#define SPARKLE_FFT_TWIST(when, q, r, i) \
  if constexpr (kTwist && kInverse == when) twist(d, w + 2 * (q) - 2, r, i)

template <int kRadix, bool kInverse, bool kTwist>
HWY_INLINE void butterfly(D d, float* HWY_RESTRICT x, int64_t step, int64_t lanes, const float* HWY_RESTRICT w) {
  const int64_t re = kInverse ? lanes : 0, im = kInverse ? 0 : lanes;
  (void)w;
  if constexpr (kRadix == 2) {
    SPARKLE_FFT_LOAD(0, ar, ai);
    SPARKLE_FFT_LOAD(1, br, bi);
    SPARKLE_FFT_TWIST(true, 1, br, bi);
    dft2(ar, ai, br, bi);
    SPARKLE_FFT_TWIST(false, 1, br, bi);
    SPARKLE_FFT_STORE(0, ar, ai);
    SPARKLE_FFT_STORE(1, br, bi);
  } else if constexpr (kRadix == 3) {
    SPARKLE_FFT_LOAD(0, ar, ai);
    SPARKLE_FFT_LOAD(1, br, bi);
    SPARKLE_FFT_LOAD(2, cr, ci);
    SPARKLE_FFT_TWIST(true, 1, br, bi);
    SPARKLE_FFT_TWIST(true, 2, cr, ci);
    dft3(d, ar, ai, br, bi, cr, ci);
    SPARKLE_FFT_TWIST(false, 1, br, bi);
    SPARKLE_FFT_TWIST(false, 2, cr, ci);
    SPARKLE_FFT_STORE(0, ar, ai);
    SPARKLE_FFT_STORE(1, br, bi);
    SPARKLE_FFT_STORE(2, cr, ci);
  } else if constexpr (kRadix == 4) {
    SPARKLE_FFT_LOAD(0, ar, ai);
    SPARKLE_FFT_LOAD(1, br, bi);
    SPARKLE_FFT_LOAD(2, cr, ci);
    SPARKLE_FFT_LOAD(3, dr, di);
    SPARKLE_FFT_TWIST(true, 1, br, bi);
    SPARKLE_FFT_TWIST(true, 2, cr, ci);
    SPARKLE_FFT_TWIST(true, 3, dr, di);
    dft4(ar, ai, br, bi, cr, ci, dr, di);
    SPARKLE_FFT_TWIST(false, 1, br, bi);
    SPARKLE_FFT_TWIST(false, 2, cr, ci);
    SPARKLE_FFT_TWIST(false, 3, dr, di);
    SPARKLE_FFT_STORE(0, ar, ai);
    SPARKLE_FFT_STORE(1, br, bi);
    SPARKLE_FFT_STORE(2, cr, ci);
    SPARKLE_FFT_STORE(3, dr, di);
  } else if constexpr (kRadix == 5) {
    SPARKLE_FFT_LOAD(0, ar, ai);
    SPARKLE_FFT_LOAD(1, br, bi);
    SPARKLE_FFT_LOAD(2, cr, ci);
    SPARKLE_FFT_LOAD(3, dr, di);
    SPARKLE_FFT_LOAD(4, er, ei);
    SPARKLE_FFT_TWIST(true, 1, br, bi);
    SPARKLE_FFT_TWIST(true, 2, cr, ci);
    SPARKLE_FFT_TWIST(true, 3, dr, di);
    SPARKLE_FFT_TWIST(true, 4, er, ei);
    dft5(d, ar, ai, br, bi, cr, ci, dr, di, er, ei);
    SPARKLE_FFT_TWIST(false, 1, br, bi);
    SPARKLE_FFT_TWIST(false, 2, cr, ci);
    SPARKLE_FFT_TWIST(false, 3, dr, di);
    SPARKLE_FFT_TWIST(false, 4, er, ei);
    SPARKLE_FFT_STORE(0, ar, ai);
    SPARKLE_FFT_STORE(1, br, bi);
    SPARKLE_FFT_STORE(2, cr, ci);
    SPARKLE_FFT_STORE(3, dr, di);
    SPARKLE_FFT_STORE(4, er, ei);
  } else {
    SPARKLE_FFT_LOAD(0, ar, ai);
    SPARKLE_FFT_LOAD(1, br, bi);
    SPARKLE_FFT_LOAD(2, cr, ci);
    SPARKLE_FFT_LOAD(3, dr, di);
    SPARKLE_FFT_LOAD(4, er, ei);
    SPARKLE_FFT_LOAD(5, fr, fi);
    SPARKLE_FFT_LOAD(6, gr, gi);
    SPARKLE_FFT_LOAD(7, hr, hi);
    SPARKLE_FFT_TWIST(true, 1, br, bi);
    SPARKLE_FFT_TWIST(true, 2, cr, ci);
    SPARKLE_FFT_TWIST(true, 3, dr, di);
    SPARKLE_FFT_TWIST(true, 4, er, ei);
    SPARKLE_FFT_TWIST(true, 5, fr, fi);
    SPARKLE_FFT_TWIST(true, 6, gr, gi);
    SPARKLE_FFT_TWIST(true, 7, hr, hi);
    dft8(d, ar, ai, br, bi, cr, ci, dr, di, er, ei, fr, fi, gr, gi, hr, hi);
    SPARKLE_FFT_TWIST(false, 1, br, bi);
    SPARKLE_FFT_TWIST(false, 2, cr, ci);
    SPARKLE_FFT_TWIST(false, 3, dr, di);
    SPARKLE_FFT_TWIST(false, 4, er, ei);
    SPARKLE_FFT_TWIST(false, 5, fr, fi);
    SPARKLE_FFT_TWIST(false, 6, gr, gi);
    SPARKLE_FFT_TWIST(false, 7, hr, hi);
    SPARKLE_FFT_STORE(0, ar, ai);
    SPARKLE_FFT_STORE(1, br, bi);
    SPARKLE_FFT_STORE(2, cr, ci);
    SPARKLE_FFT_STORE(3, dr, di);
    SPARKLE_FFT_STORE(4, er, ei);
    SPARKLE_FFT_STORE(5, fr, fi);
    SPARKLE_FFT_STORE(6, gr, gi);
    SPARKLE_FFT_STORE(7, hr, hi);
  }
}
#undef SPARKLE_FFT_LOAD
#undef SPARKLE_FFT_STORE
#undef SPARKLE_FFT_TWIST

template <int kRadix, bool kInverse>
void pass_of(const FftPlan& plan, const FftPass& pass, float* x, int64_t blocks) {
  const D d;
  const int64_t lanes = lanes_here(), point = 2 * lanes, step = pass.step * point;
  const float* HWY_RESTRICT twiddles = plan.twiddles.data() + pass.twiddles;
  for (int64_t b = 0; b < blocks; ++b, x += kRadix * step) {
    butterfly<kRadix, kInverse, false>(d, x, step, lanes, twiddles);
    const float* HWY_RESTRICT w = twiddles;
    for (int64_t j = 1; j < pass.step; ++j, w += 2 * (kRadix - 1))
      butterfly<kRadix, kInverse, true>(d, x + j * point, step, lanes, w);
  }
}

template <bool kInverse>
void run_pass(const FftPlan& plan, const FftPass& pass, float* x, int64_t blocks) {
  switch (pass.radix) {
    case 2: return pass_of<2, kInverse>(plan, pass, x, blocks);
    case 3: return pass_of<3, kInverse>(plan, pass, x, blocks);
    case 4: return pass_of<4, kInverse>(plan, pass, x, blocks);
    case 5: return pass_of<5, kInverse>(plan, pass, x, blocks);
#if SPARKLE_REGISTERS >= 32  // fft_radices has no 8 for fewer
    default: return pass_of<8, kInverse>(plan, pass, x, blocks);
#endif
  }
}

// The passes from `level` on of a block: those of a large block one after another part by part, so that each part stays near.
template <bool kInverse>
void transform(const FftPlan& plan, size_t level, float* x) {
  if (level == plan.passes.size()) return;
  const FftPass& pass = plan.passes[level];
  const int64_t point = 2 * lanes_here(), block = pass.radix * pass.step;
  const bool near = block * point * 4 <= kNearBytes;
  const auto rest = [&]() HWY_ATTR {
    if (near) {
      for (size_t i = 1; level + i < plan.passes.size(); ++i) {
        const FftPass& next = plan.passes[kInverse ? plan.passes.size() - i : level + i];
        run_pass<kInverse>(plan, next, x, block / (next.radix * next.step));
      }
    } else {
      for (int64_t q = 0; q < pass.radix; ++q) transform<kInverse>(plan, level + 1, x + q * pass.step * point);
    }
  };
  if (kInverse) rest();
  run_pass<kInverse>(plan, pass, x, 1);
  if (!kInverse) rest();
}

void forward(const FftPlan& plan, float* x) { transform<false>(plan, 0, x); }
void inverse(const FftPlan& plan, float* x) { transform<true>(plan, 0, x); }

// Z = row 0 + i row 1: twice row 0 is Z[k] + conj Z[-k], twice i row 1 is Z[k] - conj Z[-k].
void split(const FftRowsCall& call) {
  const D d;
  const int64_t lanes = lanes_here(), point = 2 * lanes, n = call.plan->points;
  const int32_t* HWY_RESTRICT place = call.plan->place.data();
  for (int64_t k = 0; 2 * k <= n; ++k) {
    const float* HWY_RESTRICT z = call.row + place[k] * point;
    const float* HWY_RESTRICT m = call.row + place[k == 0 ? 0 : n - k] * point;
    const V zr = hn::LoadU(d, z), zi = hn::LoadU(d, z + lanes), mr = hn::LoadU(d, m), mi = hn::LoadU(d, m + lanes);
    float* HWY_RESTRICT to = call.lines + k * call.line_stride;
    hn::StoreU(hn::Add(zr, mr), d, to);
    hn::StoreU(hn::Sub(zi, mi), d, to + lanes);
    hn::StoreU(hn::Add(zi, mi), d, to + call.second);
    hn::StoreU(hn::Sub(mr, zr), d, to + call.second + lanes);
  }
}

void merge(const FftRowsCall& call) {
  const D d;
  const int64_t lanes = lanes_here(), point = 2 * lanes, n = call.plan->points;
  const int32_t* HWY_RESTRICT place = call.plan->place.data();
  for (int64_t k = 0; 2 * k <= n; ++k) {
    const float* HWY_RESTRICT from = call.lines + k * call.line_stride;
    const V ar = hn::LoadU(d, from), ai = hn::LoadU(d, from + lanes);
    const V br = hn::LoadU(d, from + call.second), bi = hn::LoadU(d, from + call.second + lanes);
    float* HWY_RESTRICT z = call.row + place[k] * point;
    hn::StoreU(hn::Sub(ar, bi), d, z);
    hn::StoreU(hn::Add(ai, br), d, z + lanes);
    if (k == 0 || 2 * k == n) continue;
    float* HWY_RESTRICT m = call.row + place[n - k] * point;
    hn::StoreU(hn::Add(ar, bi), d, m);
    hn::StoreU(hn::Sub(br, ai), d, m + lanes);
  }
}

template <bool kTail>
void load_points(const FftLoadCall& call) {
  const D d;
  const int64_t point = 2 * lanes_here();
  const float* HWY_RESTRICT x = call.x;
  float* HWY_RESTRICT to = call.to;
  for (int64_t i = 0; i < call.points; ++i, x += call.stride, to += point)
    hn::StoreU(load_some<kTail>(d, x, call.channels), d, to);
}
void load(const FftLoadCall& call) {
  if (call.channels == lanes_here()) {
    load_points<false>(call);
  } else {
    load_points<true>(call);
  }
}

template <bool kTail>
void store_points(const FftStoreCall& call) {
  const D d;
  const V low = hn::Set(d, call.low), high = hn::Set(d, call.high);
  const V bias = hn::LoadU(d, call.bias), scale = call.scale ? hn::LoadU(d, call.scale) : hn::Set(d, 1.0f);
  const float* HWY_RESTRICT from = call.from;
  float* HWY_RESTRICT y = call.y;
  for (int64_t i = 0; i < call.pixels; ++i, from += call.step, y += call.y_stride) {
    V v = hn::MulAdd(hn::LoadU(d, from), scale, bias);
    for (int r = 0; r < call.residuals; ++r)
      v = hn::Add(v, load_some<kTail>(d, call.residual[r] + i * call.residual_strides[r], call.channels));
    // The sum is the second argument: x86 then hands a NaN on.
    if (call.clamp_below) v = hn::Max(low, v);
    if (call.clamp_above) v = hn::Min(high, v);
    store_some<kTail>(v, d, y, call.channels);
  }
}
void store(const FftStoreCall& call) {
  if (call.channels == lanes_here()) {
    store_points<false>(call);
  } else {
    store_points<true>(call);
  }
}

void multiply(float* x, const float* weights, int64_t count) {
  const D d;
  const int64_t lanes = lanes_here(), point = 2 * lanes;
  for (int64_t i = 0; i < count; ++i, x += point, weights += point) {
    const V xr = hn::LoadU(d, x), xi = hn::LoadU(d, x + lanes);
    const V wr = hn::LoadU(d, weights), wi = hn::LoadU(d, weights + lanes);
    hn::StoreU(hn::NegMulAdd(xi, wi, hn::Mul(xr, wr)), d, x);
    hn::StoreU(hn::MulAdd(xr, wi, hn::Mul(xi, wr)), d, x + lanes);
  }
}

// sum += x * w for a filter of a point.
#define SPARKLE_FFT_ADD(k)                                                          \
  {                                                                                 \
    const V wr = hn::Set(d, w[(k) * stride]), wi = hn::Set(d, w[(k) * stride + 1]); \
    r##k = hn::NegMulAdd(xi, wi, hn::MulAdd(xr, wr, r##k));                         \
    i##k = hn::MulAdd(xi, wr, hn::MulAdd(xr, wi, i##k));                            \
  }
#define SPARKLE_FFT_SUM(k) V r##k = hn::Zero(d), i##k = hn::Zero(d)
#define SPARKLE_FFT_OUT(k) hn::StoreU(r##k, d, y + (k) * call.y_filter), hn::StoreU(i##k, d, y + (k) * call.y_filter + lanes)
void product_tiles(const FftProductCall& call) {
  const D d;
  const int64_t lanes = lanes_here(), point = 2 * lanes, stride = 2 * call.depth;
  for (int64_t f = 0; f < call.count; ++f) {
    const float* HWY_RESTRICT x0 = call.x + f * point;
    int64_t k = 0;
    for (; k + 4 <= call.filters; k += 4) {
      const float* HWY_RESTRICT x = x0;
      const float* HWY_RESTRICT w = call.weights + (f * call.filters + k) * stride;
      SPARKLE_FFT_SUM(0);
      SPARKLE_FFT_SUM(1);
      SPARKLE_FFT_SUM(2);
      SPARKLE_FFT_SUM(3);
      for (int64_t c = 0; c < call.depth; ++c, x += call.x_channel, w += 2) {
        const V xr = hn::LoadU(d, x), xi = hn::LoadU(d, x + lanes);
        SPARKLE_FFT_ADD(0);
        SPARKLE_FFT_ADD(1);
        SPARKLE_FFT_ADD(2);
        SPARKLE_FFT_ADD(3);
      }
      float* HWY_RESTRICT y = call.y + k * call.y_filter + f * point;
      SPARKLE_FFT_OUT(0);
      SPARKLE_FFT_OUT(1);
      SPARKLE_FFT_OUT(2);
      SPARKLE_FFT_OUT(3);
    }
    for (; k < call.filters; ++k) {
      const float* HWY_RESTRICT x = x0;
      const float* HWY_RESTRICT w = call.weights + (f * call.filters + k) * stride;
      SPARKLE_FFT_SUM(0);
      for (int64_t c = 0; c < call.depth; ++c, x += call.x_channel, w += 2) {
        const V xr = hn::LoadU(d, x), xi = hn::LoadU(d, x + lanes);
        SPARKLE_FFT_ADD(0);
      }
      float* HWY_RESTRICT y = call.y + k * call.y_filter + f * point;
      SPARKLE_FFT_OUT(0);
    }
  }
}
#undef SPARKLE_FFT_ADD
#undef SPARKLE_FFT_OUT

// Here a tile's channel is one number for all filters of the vector.
#define SPARKLE_FFT_ADD(t)                                                                        \
  {                                                                                               \
    const V xr = hn::Set(d, x[(t) * call.x_tile]), xi = hn::Set(d, x[(t) * call.x_tile + lanes]); \
    r##t = hn::NegMulAdd(xi, wi, hn::MulAdd(xr, wr, r##t));                                       \
    i##t = hn::MulAdd(xi, wr, hn::MulAdd(xr, wi, i##t));                                          \
  }
#define SPARKLE_FFT_OUT(t) hn::StoreU(r##t, d, y + (t) * call.y_tile), hn::StoreU(i##t, d, y + (t) * call.y_tile + lanes)
// All tiles at one point, one vector of filters.
void product_point(const FftProductCall& call, const float* x0, const float* HWY_RESTRICT weights, float* y0) {
  const D d;
  const int64_t lanes = lanes_here(), point = 2 * lanes;
  int64_t t = 0;
  for (; t + 4 <= call.tiles; t += 4) {
    const float* HWY_RESTRICT w = weights;
    SPARKLE_FFT_SUM(0);
    SPARKLE_FFT_SUM(1);
    SPARKLE_FFT_SUM(2);
    SPARKLE_FFT_SUM(3);
    for (int64_t first = 0; first < call.depth; first += lanes) {
      const float* HWY_RESTRICT x = x0 + t * call.x_tile + first / lanes * call.x_channel;
      const int64_t count = call.depth - first < lanes ? call.depth - first : lanes;
      for (int64_t c = 0; c < count; ++c, ++x, w += point) {
        const V wr = hn::LoadU(d, w), wi = hn::LoadU(d, w + lanes);
        SPARKLE_FFT_ADD(0);
        SPARKLE_FFT_ADD(1);
        SPARKLE_FFT_ADD(2);
        SPARKLE_FFT_ADD(3);
      }
    }
    float* HWY_RESTRICT y = y0 + t * call.y_tile;
    SPARKLE_FFT_OUT(0);
    SPARKLE_FFT_OUT(1);
    SPARKLE_FFT_OUT(2);
    SPARKLE_FFT_OUT(3);
  }
  for (; t < call.tiles; ++t) {
    const float* HWY_RESTRICT w = weights;
    // Four sums, so that each waits for a product of its own only.
    SPARKLE_FFT_SUM(0);
    SPARKLE_FFT_SUM(1);
    for (int64_t first = 0; first < call.depth; first += lanes) {
      const float* HWY_RESTRICT x = x0 + t * call.x_tile + first / lanes * call.x_channel;
      const int64_t count = call.depth - first < lanes ? call.depth - first : lanes;
      for (int64_t c = 0; c < count; ++c, ++x, w += point) {
        const V wr = hn::LoadU(d, w), wi = hn::LoadU(d, w + lanes), xr = hn::Set(d, x[0]), xi = hn::Set(d, x[lanes]);
        r0 = hn::MulAdd(xr, wr, r0), i0 = hn::MulAdd(xr, wi, i0);
        r1 = hn::NegMulAdd(xi, wi, r1), i1 = hn::MulAdd(xi, wr, i1);
      }
    }
    r0 = hn::Add(r0, r1), i0 = hn::Add(i0, i1);
    float* HWY_RESTRICT y = y0 + t * call.y_tile;
    SPARKLE_FFT_OUT(0);
  }
}
// Weights are read in the order in which they lie.
void product_channels(const FftProductCall& call) {
  const int64_t lanes = lanes_here(), point = 2 * lanes;
  const float* w = call.weights;
  for (int64_t f = 0; f < call.count; ++f)
    for (int64_t k = 0; k < call.filters; ++k, w += call.depth * point)
      product_point(call, call.x + f * point, w, call.y + k * call.y_filter + f * point);
}
#undef SPARKLE_FFT_ADD
#undef SPARKLE_FFT_OUT
#undef SPARKLE_FFT_SUM

const FftKernels* fft_kernels() {
  static const FftKernels kernels = {lanes_here(), SPARKLE_REGISTERS, forward,       inverse,         split, merge, load,
                                     store,        multiply,          product_tiles, product_channels};
  return &kernels;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
const FftKernels* fft_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(fft_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
