// Vector loops of resize: mixing lines, stretching a line of channel runs, stretching a line of single elements by gathers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/resize/lines.cc"
#include "backends/cpu/resize/lines.h"

#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

template <bool stream, class D, class V>
HWY_INLINE void store(V v, D d, float* y) {
  if constexpr (stream) {
    hn::Stream(v, d, y);
  } else {
    hn::StoreU(v, d, y);
  }
}

// The number of taps as a constant keeps weights in registers; 0: any number.
template <int taps, bool stream>
void mix_taps(const MixArguments& s) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int count = taps ? taps : s.taps;
  int64_t i = 0;
  for (; i + lanes <= s.n; i += lanes) {
    auto sum = hn::Mul(hn::Set(d, s.w[0]), hn::LoadU(d, s.x[0] + i));
    for (int k = 1; k < count; ++k) sum = hn::MulAdd(hn::Set(d, s.w[k]), hn::LoadU(d, s.x[k] + i), sum);
    store<stream>(sum, d, s.y + i);
  }
  for (; i < s.n; ++i) {
    float sum = s.w[0] * s.x[0][i];
    for (int k = 1; k < count; ++k) sum += s.w[k] * s.x[k][i];
    s.y[i] = sum;
  }
}

template <bool stream>
void mix_stored(const MixArguments& s) {
  switch (s.taps) {
    case 1: return mix_taps<1, stream>(s);
    case 2: return mix_taps<2, stream>(s);
    case 4: return mix_taps<4, stream>(s);
    default: return mix_taps<0, stream>(s);
  }
}

void mix_lines(const MixArguments& s) {
  if (s.stream && reinterpret_cast<uintptr_t>(s.y) % 64 == 0) {
    mix_stored<true>(s);
  } else {
    mix_stored<false>(s);
  }
}

template <int taps, bool stream>
void stretch_runs_taps(const StretchRuns& s) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t o = 0; o < s.n; ++o) {
    const float* w = s.w + o * taps;
    const int32_t* index = s.index + o * taps;
    const float* x[taps];
    for (int k = 0; k < taps; ++k) x[k] = s.x + index[k] * s.run;
    float* y = s.y + o * s.stride;
    int64_t r = 0;
    for (; r + lanes <= s.run; r += lanes) {
      auto sum = hn::Mul(hn::Set(d, w[0]), hn::LoadU(d, x[0] + r));
      for (int k = 1; k < taps; ++k) sum = hn::MulAdd(hn::Set(d, w[k]), hn::LoadU(d, x[k] + r), sum);
      store<stream>(sum, d, y + r);
    }
    for (; r < s.run; ++r) {
      float sum = w[0] * x[0][r];
      for (int k = 1; k < taps; ++k) sum += w[k] * x[k][r];
      y[r] = sum;
    }
  }
}

template <bool stream>
void stretch_runs_stored(const StretchRuns& s) {
  switch (s.taps) {
    case 1: return stretch_runs_taps<1, stream>(s);
    case 2: return stretch_runs_taps<2, stream>(s);
    default: return stretch_runs_taps<4, stream>(s);
  }
}

void stretch_runs(const StretchRuns& s) {
  const bool lines = reinterpret_cast<uintptr_t>(s.y) % 64 == 0 && s.stride % 16 == 0 && s.run % 16 == 0;
  if (s.stream && lines) {
    stretch_runs_stored<true>(s);
  } else {
    stretch_runs_stored<false>(s);
  }
}

template <int taps, bool stream>
void stretch_elements_taps(const StretchElements& s) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto top = hn::Set(di, static_cast<int32_t>(lanes - 1));
  int64_t o = 0;
  for (const int32_t* start = s.start; o + lanes <= s.n; o += lanes, ++start) {
    auto sum = hn::Zero(d);
    if (*start >= 0) {
      // The usual case of enlarging: neighbours of neighbours, picked from one vector of x.
      const auto x = hn::LoadU(d, s.x + *start);
      HWY_UNROLL(4)
      for (int k = 0; k < taps; ++k) {
        const auto from = hn::IndicesFromVec(d, hn::LoadU(di, s.index + k * s.planes + o));
        sum = hn::MulAdd(hn::LoadU(d, s.w + k * s.planes + o), hn::TableLookupLanes(x, from), sum);
      }
    } else if (*start != -1) {
      const auto low = hn::LoadU(d, s.x + (-2 - *start)), high = hn::LoadU(d, s.x + (-2 - *start) + lanes);
      HWY_UNROLL(4)
      for (int k = 0; k < taps; ++k) {
        const auto index = hn::LoadU(di, s.index + k * s.planes + o);
        const auto from = hn::IndicesFromVec(d, hn::And(index, top));
        const auto second = hn::RebindMask(d, hn::Gt(index, top));
        const auto x = hn::IfThenElse(second, hn::TableLookupLanes(high, from), hn::TableLookupLanes(low, from));
        sum = hn::MulAdd(hn::LoadU(d, s.w + k * s.planes + o), x, sum);
      }
    } else {
      for (int k = 0; k < taps; ++k) {
        const auto x = hn::GatherIndex(d, s.x, hn::LoadU(di, s.index + k * s.planes + o));
        sum = hn::MulAdd(hn::LoadU(d, s.w + k * s.planes + o), x, sum);
      }
    }
    store<stream>(sum, d, s.y + o);
  }
  // The rest is indexed from x on.
  for (; o < s.n; ++o) {
    float sum = 0;
    for (int k = 0; k < taps; ++k) sum += s.w[k * s.planes + o] * s.x[s.index[k * s.planes + o]];
    s.y[o] = sum;
  }
}

template <bool stream>
void stretch_elements_stored(const StretchElements& s) {
  switch (s.taps) {
    case 1: return stretch_elements_taps<1, stream>(s);
    case 2: return stretch_elements_taps<2, stream>(s);
    default: return stretch_elements_taps<4, stream>(s);
  }
}

void stretch_elements(const StretchElements& s) {
  if (s.stream && reinterpret_cast<uintptr_t>(s.y) % 64 == 0) {
    stretch_elements_stored<true>(s);
  } else {
    stretch_elements_stored<false>(s);
  }
}

int64_t float_lanes() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
LineFunctions line_functions(std::string_view unit) {
  return {SPARKLE_PICK(mix_lines, unit), SPARKLE_PICK(stretch_runs, unit), SPARKLE_PICK(stretch_elements, unit),
          SPARKLE_PICK(float_lanes, unit)};
}
}  // namespace sparkle::cpu
#endif
