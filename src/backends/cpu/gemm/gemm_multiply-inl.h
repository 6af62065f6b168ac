// The products of the register tile (gemm_tile-inl.h): all steps of k, and what is fetched meanwhile. Compiled once per target.
#if defined(SPARKLE_GEMM_MULTIPLY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPARKLE_GEMM_MULTIPLY_INL_H_
#undef SPARKLE_GEMM_MULTIPLY_INL_H_
#else
#define SPARKLE_GEMM_MULTIPLY_INL_H_
#endif

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/register_tile-inl.h"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD

// A bfloat16: the upper half of a float.
struct Bfloat {
  uint16_t bits;
};

HWY_INLINE Floats load_weights(const float* HWY_RESTRICT from) { return hn::LoadU(FloatTag(), from); }
HWY_INLINE Floats load_weights(const hwy::float16_t* HWY_RESTRICT from) {
  return hn::PromoteTo(FloatTag(), hn::LoadU(hn::Rebind<hwy::float16_t, FloatTag>(), from));
}
HWY_INLINE Floats load_weights(const Bfloat* HWY_RESTRICT from) {
  const auto bits = hn::LoadU(hn::Rebind<uint16_t, FloatTag>(), reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(hn::Rebind<uint32_t, FloatTag>(), bits)));
}

// Where the rows' elements of one run lie. Up to six rows have a pointer each. More of them lie at a constant stride: every
// third has a pointer, which with the scaled index of x86 addresses its two neighbours too.
template <int kRows>
class RunOfRows {
 public:
  HWY_INLINE RunOfRows(const TileCall& call, const GemmRun& run) : stride_(call.a_stride) {
    unrolled<kPointers>(
        [&](int p) SPARKLE_INLINED { from_[p] = (kTall ? call.a[0] + p * kRowsPerPointer * stride_ : call.a[p]) + run.a; });
  }
  // The element of row r at step i. The pointers of a tall tile move with the steps; those of others stay, and i is their
  // index.
  HWY_INLINE float at(int r, int64_t i) const {
    return kTall ? from_[r / kRowsPerPointer][r % kRowsPerPointer * stride_] : from_[r][i];
  }
  HWY_INLINE void step() {
    if constexpr (kTall) unrolled<kPointers>([&](int p) SPARKLE_INLINED { ++from_[p]; });
  }

 private:
  static constexpr bool kTall = kRows > kMaxTileRows;
  static constexpr int kRowsPerPointer = kTall ? 3 : 1;
  static constexpr int kPointers = (kRows + kRowsPerPointer - 1) / kRowsPerPointer;
  const float* from_[kPointers];
  int64_t stride_;
};

// The level of cache that a kernel fetches into, as schedules say it.
inline constexpr int kFetchIntoL1 = 1, kFetchIntoL2 = 2;
// What __builtin_prefetch takes as its last argument.
inline constexpr int kIntoL1 = 3, kIntoL2 = 2;

// Small tiles are bound by their loads: a prefetch per step costs them 1-3 % (6x2 with AVX2, Zen 4, 2026-11). With 16 registers
// they have it in the kernels that fetch into the L2, for stages whose operands come from beyond it.
constexpr bool fetches(int rows, int vectors, int nearest) {
  return rows * vectors >= (nearest == kFetchIntoL2 && SPARKLE_REGISTERS < 32 ? 12 : 18);
}

// The lines that one row of the tile will add and write.
template <int kVectors>
HWY_INLINE void fetch_row(const TileCall& call, int row) {
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = call.column + v * float_lanes();
    for (int i = 0; i < call.residuals; ++i) __builtin_prefetch(call.residual[i][row] + column, 0, kIntoL1);
    __builtin_prefetch(call.y[row] + column, 1, kIntoL1);
  }
}

// Of a panel.
inline constexpr int kMostVectors = SPARKLE_REGISTERS >= 32 ? kMaxTileVectors : 2;

// A multiply-add waits four cycles for the one before it into the same sum, and two units start one each cycle: tiles of fewer
// sums than that add every second, third ... product up apart, as far as there are registers.
constexpr int chains_of(int rows, int vectors) {
  constexpr int kSumsInFlight = 8;
  const int wanted = (kSumsInFlight + rows * vectors - 1) / (rows * vectors);
  const int room = (SPARKLE_REGISTERS - 2 - 2 * vectors) / (rows * vectors);  // weights of two steps beside them
  const int chains = wanted < room ? wanted : room;
  return rows > kMaxTileRows || chains < 1 ? 1 : chains;
}

// One step of k: a row of weights is loaded, an element of each row of the tile is broadcast and multiplied by all of them,
// into chain number `chain` of the `chains`, one tile of kRows after another.
template <int kRows, int kVectors, int kAll, class W>
HWY_INLINE void multiply_step(RegisterTile<kAll, kVectors> chains, int chain, const RunOfRows<kRows>& pixels, int64_t i,
                              const W* HWY_RESTRICT b) {
  RegisterTile<1, kVectors>::with_zeros([&](auto weights) SPARKLE_INLINED {
    weights.each([&](Floats& w, int, int v) SPARKLE_INLINED { w = load_weights(b + v * float_lanes()); });
    chains.each_row([&](auto row, int r) SPARKLE_INLINED {
      if (r / kRows == chain) row.add_products(hn::Set(FloatTag(), pixels.at(r % kRows, i)), weights);
    });
  });
}

// W: the type that weights are stored in; kNearest: the level of cache that is prefetched into. `others`: chains of sums beside
// the first, one tile of kRows after another.
template <class W, int kNearest, int kRows, int kVectors, int kOthers>
HWY_INLINE void multiply_runs(RegisterTile<kRows, kVectors> sums, RegisterTile<kOthers, kVectors> others,
                              const TileCall& call) {
  const int64_t width = kVectors * float_lanes();
  // Lines of residuals and y are asked for a row at a time along the sum: all at once they would fill the buffers for lines on
  // their way, and the weights would wait behind them.
  int rows_fetched = 0;
  [[maybe_unused]] const char* prefetch = call.prefetch;
  [[maybe_unused]] const int64_t prefetch_step = call.prefetch_step;
  for (const GemmRun *run = call.runs, *end = run + call.run_count; run != end; ++run) {
    const W* HWY_RESTRICT b = static_cast<const W*>(call.b) + run->k * width;
    const int64_t length = run->length;
    RunOfRows<kRows> pixels(call, *run);
    for (int64_t i = 0; i < length;) {
      int64_t stop = length;
      if (call.spacing > 0 && rows_fetched < kRows) {
        stop = i + call.spacing < length ? i + call.spacing : length;
        fetch_row<kVectors>(call, rows_fetched++);
      }
      if constexpr (kOthers > 0) {
        constexpr int kChains = 1 + kOthers / kRows;
        for (; i + kChains <= stop; i += kChains, b += kChains * width) {
          multiply_step(sums, 0, pixels, i, b);
          unrolled<kChains - 1>(
              [&](int chain) SPARKLE_INLINED { multiply_step(others, chain, pixels, i + 1 + chain, b + (1 + chain) * width); });
        }
      }
      for (; i < stop; ++i, b += width, pixels.step()) {
        multiply_step(sums, 0, pixels, i, b);
        if constexpr (fetches(kRows, kVectors, kNearest)) {
          __builtin_prefetch(prefetch, 0, kNearest == kFetchIntoL1 ? kIntoL1 : kIntoL2);
          prefetch += prefetch_step;
        }
      }
    }
  }
}
template <class W, int kChains, int kNearest, int kRows, int kVectors>
HWY_INLINE void multiply(RegisterTile<kRows, kVectors> sums, const TileCall& call) {
  constexpr int kOthers = kRows * (kChains - 1);
  RegisterTile<kOthers, kVectors>::with_zeros([&](auto others) SPARKLE_INLINED {
    multiply_runs<W, kNearest>(sums, others, call);
    others.each_row([&](auto row, int other) SPARKLE_INLINED {
      sums.each_row([&](auto to, int r) SPARKLE_INLINED {
        if (other % kRows == r) to.add(row);
      });
    });
  });
}

#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled include guard
