// A machine of eight tile registers of up to 16 rows by 64 bytes, as a policy that matrix_tile.h multiplies with: AmxTiles runs
// the instructions of Intel AMX, tile_machine_testing.h does in plain C++ what they are documented to do. A machine has, all
// static and for the calling thread alone:
//   configure(TileShape)     ldtilecfg; all tiles become zero
//   release()                tilerelease; the core keeps no tiles, and task switches save none
//   zero<t>()                tilezero
//   load<t>(from, stride)    tileloadd: the tile's rows, `stride` bytes apart
//   store<t>(to, stride)     tilestored
//   add<product, c, a, b>()  tile c += tile a (rows by k) * tile b (k in groups of four bytes by columns)
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparkle::cpu {

inline constexpr int kTiles = 8, kTileRows = 16, kTileBytes = 64;

// The operand of ldtilecfg for its palette 1.
struct TileShape {
  uint8_t palette = 0, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileShape) == 64);

// All tiles as large as they can be.
constexpr TileShape whole_tiles() {
  TileShape shape;
  shape.palette = 1;
  for (int t = 0; t < kTiles; ++t) shape.rows[t] = kTileRows, shape.row_bytes[t] = kTileBytes;
  return shape;
}

// What lies in the 32 bits of the left and of the right operand: four bytes, or two bf16. Sums are i32 that wrap, or f32.
enum class TileProduct : uint8_t { u8_i8, i8_i8, bf16 };

#if defined(__x86_64__)
// Assembly, since the compilers' intrinsics take the numbers of tiles as literals only or choose them on their own.
struct AmxTiles {
  static void configure(const TileShape& shape) { asm volatile("ldtilecfg %0" : : "m"(shape)); }
  static void release() { asm volatile("tilerelease"); }
  template <int t>
  [[gnu::always_inline]] static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(t));
  }
  template <int t>
  [[gnu::always_inline]] static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(t) : "memory");
  }
  template <int t>
  [[gnu::always_inline]] static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(t) : "memory");
  }
  template <TileProduct product, int c, int a, int b>
  [[gnu::always_inline]] static void add() {
    if constexpr (product == TileProduct::u8_i8) {
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    } else if constexpr (product == TileProduct::i8_i8) {
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    } else {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b));
    }
  }
};
#endif

}  // namespace sparkle::cpu
