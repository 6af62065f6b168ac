// The micro-kernel on 8-bit integers of a matrix unit: sums of tiles by SPARKLE_MACHINE (tile_machine.h) through a buffer on
// the stack, finished by the vectors of SPARKLE_UNIT (dot_units.h). Included once per unit inside its region.
#include "backends/cpu/gemm/integers/integer_finish-inl.h"

// Vectors that hold the columns of a tile.
constexpr int kTileVectors = kMatrixLanes / SPARKLE_UNIT::kLanes;

template <int kColumns>
[[gnu::always_inline]] inline void finish_matrix(const IntegerMatrixCall& call, const int32_t* sums) {
  using U = SPARKLE_UNIT;
  using V = U::V;
#if SPARKLE_X86
  if (call.scale && !call.b_zero && call.columns >= kColumns * kMatrixLanes) {
    const V zero = U::splat(call.y_zero);
    const float low = call.low, high = call.high;
    for (int r = 0; r < call.rows; ++r)
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; ++c, sums += kMatrixLanes) {
        V row[kTileVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kTileVectors; ++v) row[v] = U::load(sums + v * U::kLanes);
        finish_whole_row(row, call.correction + c * kMatrixLanes, call.row_correction[r], call.scale + c * kMatrixLanes, low,
                         high, zero, static_cast<uint8_t*>(call.row(r)) + c * kMatrixLanes);
      }
    return;
  }
#endif
  for (int r = 0; r < call.rows; ++r)
    for (int c = 0; c < kColumns; ++c, sums += kMatrixLanes) {
      V row[kTileVectors];
      for (int v = 0; v < kTileVectors; ++v) row[v] = U::load(sums + v * U::kLanes);
      finish_row<kTileVectors>(call, r, c * kMatrixLanes, row);
    }
}

template <TileProduct product, int kRows, int kColumns>
void integer_matrix_tile(const IntegerMatrixCall& call) {
  alignas(64) int32_t sums[kRows * kTileRows * kColumns * kMatrixLanes];
  multiply_tiles<SPARKLE_MACHINE, product, kRows, kColumns>(call.operands, sums);
  finish_matrix<kColumns>(call, sums);
}

inline void begin_tiles() { SPARKLE_MACHINE::configure(whole_tiles()); }
inline void end_tiles() { SPARKLE_MACHINE::release(); }

template <TileProduct product>
void fill_matrix_tiles(IntegerMatrixKernel (&tile)[2][2]) {
  tile[0][0] = integer_matrix_tile<product, 1, 1>, tile[0][1] = integer_matrix_tile<product, 1, 2>;
  tile[1][0] = integer_matrix_tile<product, 2, 1>, tile[1][1] = integer_matrix_tile<product, 2, 2>;
}

inline IntegerMatrixKernels make_matrix_kernels() {
  IntegerMatrixKernels kernels;
  kernels.begin = begin_tiles, kernels.end = end_tiles;
  fill_matrix_tiles<TileProduct::u8_i8>(kernels.tile[0]);
  fill_matrix_tiles<TileProduct::i8_i8>(kernels.tile[1]);
  return kernels;
}
