// Transforms in two passes, columns then rows, through a small square in L1.
#include "backends/cpu/winograd/winograd_transform.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/winograd/winograd_transform.cc"
#include "backends/cpu/simd/simd.h"
// must come after simd.h
#include "backends/cpu/simd/lanes-inl.h"
#include "backends/cpu/winograd/winograd_lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kMostLanes = HWY_MAX_BYTES / sizeof(float);

template <int kTile, bool kTail>
HWY_INLINE void input_vector(const TileInputCall& call, int64_t c, int64_t count) {
  constexpr int kPoints = kTile + 2;
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float square[kPoints * kPoints * kMostLanes];
  for (int column = 0; column < kPoints; ++column)
    input_line<kTile>(
        d, [&](int i) HWY_ATTR { return load_some<kTail>(d, call.pixels[i * kPoints + column] + c, count); },
        [&](int i, auto v) HWY_ATTR { hn::Store(v, d, square + (i * kPoints + column) * lanes); });
  for (int row = 0; row < kPoints; ++row)
    input_line<kTile>(
        d, [&](int i) HWY_ATTR { return hn::Load(d, square + (row * kPoints + i) * lanes); },
        [&](int i, auto v) HWY_ATTR { hn::StoreU(v, d, call.to + (row * kPoints + i) * call.point_stride + c); });
}

template <int kTile>
void input_tile(const TileInputCall& call) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= call.channels; c += lanes) input_vector<kTile, false>(call, c, lanes);
  if (c < call.channels) input_vector<kTile, true>(call, c, call.channels - c);
}

template <int kTile>
void output_tile(const TileOutputCall& call) {
  constexpr int kPoints = kTile + 2;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN float square[kTile * kPoints * kMostLanes];
  const V low = hn::Set(d, call.low), high = hn::Set(d, call.high);
  for (int vector = 0; vector < call.vectors; ++vector) {
    const int64_t at = vector * lanes;
    const float* HWY_RESTRICT products = call.products + at;
    for (int column = 0; column < kPoints; ++column)
      output_line<kTile>(
          d, [&](int i) HWY_ATTR { return hn::LoadU(d, products + (i * kPoints + column) * call.point_stride); },
          [&](int i, V v) HWY_ATTR { hn::Store(v, d, square + (i * kPoints + column) * lanes); });
    const V bias = call.finish ? hn::LoadU(d, call.bias + at) : hn::Zero(d);
    for (int row = 0; row < kTile; ++row) {
      if (row >= call.rows) break;
      float* HWY_RESTRICT y = call.y + row * call.y_row + at;
      const auto finish = [&](int i, V v) HWY_ATTR {
        if (i >= call.columns) return;
        if (call.finish) {
          if (call.scale) v = hn::Mul(v, hn::LoadU(d, call.scale + at));
          v = hn::Add(v, bias);
          for (int r = 0; r < call.residuals; ++r)
            v = hn::Add(v, hn::LoadU(d, call.residual[r] + row * call.residual_row[r] + i * call.residual_column[r] + at));
          // The sum is the second argument: x86 then hands a NaN on.
          if (call.clamp_below) v = hn::Max(low, v);
          if (call.clamp_above) v = hn::Min(high, v);
        }
        hn::StoreU(v, d, y + i * call.y_column);
      };
      output_line<kTile>(d, [&](int i) HWY_ATTR { return hn::Load(d, square + (row * kPoints + i) * lanes); }, finish);
    }
  }
}

// In double precision: an error of the weights would be the same for all their uses. Plain loops over a block of columns, which
// compilers turn into vectors.
constexpr int kBlock = 16;

template <int kPoints>
void filter_block(const WinogradTransform& t, const FilterCall& call, int64_t first, int64_t count, int64_t channel) {
  double taps[3][3][kBlock] = {};
  const float* from = call.weights + first * call.filter_stride + channel * call.channel_stride;
  for (int64_t j = 0; j < count; ++j, from += call.filter_stride)
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s) taps[r][s][j] = static_cast<double>(from[r * call.row_stride + s * call.tap_stride]);
  double columns[kPoints][3][kBlock];
  for (int p = 0; p < kPoints; ++p)
    for (int s = 0; s < 3; ++s)
      for (int j = 0; j < kBlock; ++j)
        columns[p][s][j] = t.filter[p][0] * taps[0][s][j] + t.filter[p][1] * taps[1][s][j] + t.filter[p][2] * taps[2][s][j];
  const int64_t kept = call.width - first < kBlock ? call.width - first : kBlock;
  for (int p = 0; p < kPoints; ++p)
    for (int q = 0; q < kPoints; ++q) {
      float* to = call.to + ((p * kPoints + q) * call.channels + channel) * call.width + first;
      float values[kBlock];
      for (int j = 0; j < kBlock; ++j)
        values[j] = static_cast<float>(t.filter[q][0] * columns[p][0][j] + t.filter[q][1] * columns[p][1][j] +
                                       t.filter[q][2] * columns[p][2][j]);
      for (int64_t j = 0; j < kept; ++j) to[j] = values[j];
    }
}

void filter(const WinogradTransform& t, const FilterCall& call) {
  for (int64_t channel = 0; channel < call.channels; ++channel)
    for (int64_t first = 0; first < call.width; first += kBlock) {
      const int64_t rest = call.filters - first, count = rest < 0 ? 0 : rest < kBlock ? rest : kBlock;
      if (t.points == 4) filter_block<4>(t, call, first, count, channel);
      if (t.points == 6) filter_block<6>(t, call, first, count, channel);
      if (t.points == 8) filter_block<8>(t, call, first, count, channel);
    }
}

const WinogradKernels* winograd_kernels() {
  static const WinogradKernels kernels = {static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())),
                                          filter,
                                          {input_tile<2>, input_tile<4>, input_tile<6>},
                                          {output_tile<2>, output_tile<4>, output_tile<6>}};
  return &kernels;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
const WinogradKernels* winograd_kernels_of(std::string_view unit) {
  const auto make = SPARKLE_PICK(winograd_kernels, unit);
  return make ? make() : nullptr;
}
}  // namespace sparkle::cpu
#endif
