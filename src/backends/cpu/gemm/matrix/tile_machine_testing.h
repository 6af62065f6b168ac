// The machine of tile_machine.h in plain C++, for tests on any CPU: what Intel's manual of the instructions says they do, rows,
// bytes, zeroed rests, the order of TDPBF16PS's roundings and its denormal numbers included. What an instruction would fault
// on is counted and does nothing.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "backends/cpu/gemm/matrix/tile_machine.h"

namespace sparkle::cpu {

struct EmulatedTileState {
  TileShape shape;
  std::byte tile[kTiles][kTileRows][kTileBytes] = {};
};

class EmulatedTiles {
 public:
  static void configure(const TileShape& shape) {
    bool right = shape.palette == 1 && shape.start_row == 0;
    for (const uint8_t byte : shape.reserved) right = right && byte == 0;
    for (int t = 0; t < 16; ++t) {
      right = right && shape.rows[t] <= (t < kTiles ? kTileRows : 0);
      right = right && shape.row_bytes[t] <= (t < kTiles ? kTileBytes : 0);
    }
    if (!right) return fault();
    if (state_.shape.palette == 0) ++holders_;
    state_ = EmulatedTileState{};
    state_.shape = shape;
  }
  static void release() {
    if (state_.shape.palette != 0) --holders_;
    state_ = EmulatedTileState{};
  }
  template <int t>
  static void zero() {
    static_assert(t >= 0 && t < kTiles);
    if (!usable(t)) return fault();
    std::memset(state_.tile[t], 0, sizeof state_.tile[t]);
  }
  template <int t>
  static void load(const void* from, int64_t stride) {
    zero<t>();
    if (!usable(t)) return;
    for (int row = 0; row < rows(t); ++row)
      std::memcpy(state_.tile[t][row], static_cast<const std::byte*>(from) + row * stride, bytes(t));
  }
  template <int t>
  static void store(void* to, int64_t stride) {
    if (!usable(t)) return fault();
    for (int row = 0; row < rows(t); ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * stride, state_.tile[t][row], bytes(t));
  }
  template <TileProduct product, int c, int a, int b>
  static void add() {
    static_assert(c != a && c != b && a != b);
    const bool right = usable(c) && usable(a) && usable(b) && rows(c) == rows(a) && bytes(c) == bytes(b) &&
                       bytes(a) == 4 * static_cast<size_t>(rows(b)) && bytes(c) % 4 == 0;
    if (!right) return fault();
    const int columns = static_cast<int>(bytes(c) / 4);
    for (int m = 0; m < rows(c); ++m) {
      std::byte* sums = state_.tile[c][m];
      if constexpr (product == TileProduct::bf16) {
        float even[kTileBytes / 4] = {}, odd[kTileBytes / 4] = {};
        for (int k = 0; k < rows(b); ++k)
          for (int n = 0; n < columns; ++n) {
            even[n] = fused(bf16_at(a, m, 2 * k), bf16_at(b, k, 2 * n), even[n]);
            odd[n] = fused(bf16_at(a, m, 2 * k + 1), bf16_at(b, k, 2 * n + 1), odd[n]);
          }
        for (int n = 0; n < columns; ++n) {
          float sum;
          std::memcpy(&sum, sums + 4 * n, 4);
          sum = flushed(flushed(sum) + flushed(even[n] + odd[n]));
          std::memcpy(sums + 4 * n, &sum, 4);
        }
      } else {
        for (int n = 0; n < columns; ++n) {
          uint32_t sum;
          std::memcpy(&sum, sums + 4 * n, 4);
          for (int k = 0; k < rows(b); ++k)
            for (int i = 0; i < 4; ++i) {
              const auto left = static_cast<uint8_t>(state_.tile[a][m][4 * k + i]);
              const int x = product == TileProduct::u8_i8 ? left : static_cast<int8_t>(left);
              sum += static_cast<uint32_t>(x * static_cast<int8_t>(state_.tile[b][k][4 * n + i]));
            }
          std::memcpy(sums + 4 * n, &sum, 4);
        }
      }
      // The rest of the row is bytes beyond the tile's, which are zero already.
    }
  }

  // Instructions since the program began that would have faulted, and threads whose cores would keep tiles.
  static int64_t faults() { return faults_; }
  static int holders() { return holders_; }

 private:
  static bool usable(int t) { return state_.shape.palette == 1 && rows(t) > 0 && bytes(t) > 0; }
  static int rows(int t) { return state_.shape.rows[t]; }
  static size_t bytes(int t) { return state_.shape.row_bytes[t]; }
  static void fault() { ++faults_; }

  static float flushed(float v) {
    return (std::bit_cast<uint32_t>(v) & 0x7f800000) == 0 ? std::copysign(0.0f, v) : v;  // denormal numbers count as zero
  }
  static float bf16_at(int t, int row, int i) {
    uint16_t half;
    std::memcpy(&half, state_.tile[t][row] + 2 * i, 2);
    return flushed(std::bit_cast<float>(static_cast<uint32_t>(half) << 16));
  }
  static float fused(float a, float b, float sum) { return flushed(std::fma(a, b, flushed(sum))); }

  static inline thread_local EmulatedTileState state_;
  static inline std::atomic<int64_t> faults_{0};
  static inline std::atomic<int> holders_{0};
};

}  // namespace sparkle::cpu
