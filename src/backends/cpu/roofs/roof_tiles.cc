// The peak of matrix units: products of whole tiles that stay in registers, into four sums. A product waits 52 cycles for the
// sum before it and takes 16 of the unit, by Intel's tables, so that three sums would leave it idle.
#include <algorithm>
#include <iterator>

#include "backends/cpu/gemm/matrix/tile_machine.h"
#include "backends/cpu/roofs/roof_kernels.h"

namespace sparkle::cpu {
namespace {

#if defined(__x86_64__)
template <TileProduct product>
double tile_loop(double flops, float* sink) {
  constexpr int kGroup = product == TileProduct::bf16 ? 2 : 4;  // elements in 32 bits
  constexpr double kPerRound = 4 * 2.0 * kTileRows * (kTileBytes / 4) * (kTileBytes / 4 * kGroup);
  const auto rounds = static_cast<int64_t>(flops / kPerRound) + 1;
  alignas(64) std::byte ones[kTileRows * kTileBytes];
  std::fill(std::begin(ones), std::end(ones), std::byte{1});
  AmxTiles::configure(whole_tiles());
  AmxTiles::load<4>(ones, kTileBytes), AmxTiles::load<5>(ones, kTileBytes);
  AmxTiles::load<6>(ones, kTileBytes), AmxTiles::load<7>(ones, kTileBytes);
  for (int64_t i = 0; i < rounds; ++i) {
    AmxTiles::add<product, 0, 4, 6>(), AmxTiles::add<product, 1, 4, 7>();
    AmxTiles::add<product, 2, 5, 6>(), AmxTiles::add<product, 3, 5, 7>();
  }
  AmxTiles::store<3>(ones, kTileBytes);
  AmxTiles::release();
  *sink += static_cast<float>(ones[0]);
  return static_cast<double>(rounds) * kPerRound;
}
#endif

}  // namespace

double (*tile_products([[maybe_unused]] std::string_view unit))(double flops, float* sink) {
#if defined(__x86_64__)
  if (unit == "amx-int8") return tile_loop<TileProduct::u8_i8>;
  if (unit == "amx-bf16") return tile_loop<TileProduct::bf16>;
#endif
  return nullptr;
}

}  // namespace sparkle::cpu
