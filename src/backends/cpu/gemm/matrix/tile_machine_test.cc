// The emulated tile registers hold to the manual on shapes that are not whole, and do what the instructions of this machine do
// where it has them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/gemm/matrix/tile_machine_testing.h"
#include "device/probe_cpu.h"

namespace sparkle::cpu {
namespace {

// Tile 0 of m rows by n columns, 4 of m by k groups of four bytes, 6 of k by n.
TileShape shaped(int m, int n, int k) {
  TileShape shape;
  shape.palette = 1;
  const auto set = [&](int t, int rows, int bytes) {
    shape.rows[t] = static_cast<uint8_t>(rows), shape.row_bytes[t] = static_cast<uint16_t>(bytes);
  };
  set(0, m, 4 * n), set(4, m, 4 * k), set(6, k, 4 * n);
  return shape;
}

// a [m][a_stride], b [k][b_stride], sums [m][c_stride], strides in bytes: added to what `sums` holds.
template <class Machine, TileProduct product>
void add_product(const TileShape& shape, const std::byte* a, int64_t a_stride, const std::byte* b, int64_t b_stride,
                 std::byte* sums, int64_t c_stride) {
  Machine::configure(shape);
  Machine::template load<0>(sums, c_stride);
  Machine::template load<4>(a, a_stride);
  Machine::template load<6>(b, b_stride);
  Machine::template add<product, 0, 4, 6>();
  Machine::template store<0>(sums, c_stride);
  Machine::release();
}

std::vector<std::byte> random_bytes(std::mt19937& random, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(TileMachine, ProductsOfBytesAreThoseOfPlainLoops) {
  std::mt19937 random(1);
  const int64_t faults = EmulatedTiles::faults();
  for (int i = 0; i < 100; ++i) {
    const auto pick = [&] { return static_cast<int>(random() % 16) + 1; };
    const int m = pick(), n = pick(), k = pick();
    constexpr int64_t kA = 80, kB = 72, kC = 96;
    const std::vector<std::byte> a = random_bytes(random, 16 * kA), b = random_bytes(random, 16 * kB),
                                 before = random_bytes(random, 16 * kC);
    for (const bool is_signed : {false, true}) {
      std::vector<std::byte> sums = before, want = before;
      for (int r = 0; r < m; ++r)
        for (int c = 0; c < n; ++c) {
          uint32_t sum;
          std::memcpy(&sum, &want[static_cast<size_t>(r * kC + 4 * c)], 4);
          for (int j = 0; j < 4 * k; ++j) {
            const auto left = static_cast<uint8_t>(a[static_cast<size_t>(r * kA + j)]);
            const auto right = static_cast<int8_t>(b[static_cast<size_t>(j / 4 * kB + 4 * c + j % 4)]);
            sum += static_cast<uint32_t>((is_signed ? static_cast<int8_t>(left) : int{left}) * right);
          }
          std::memcpy(&want[static_cast<size_t>(r * kC + 4 * c)], &sum, 4);
        }
      const auto add =
          is_signed ? add_product<EmulatedTiles, TileProduct::i8_i8> : add_product<EmulatedTiles, TileProduct::u8_i8>;
      add(shaped(m, n, k), a.data(), kA, b.data(), kB, sums.data(), kC);
      EXPECT_EQ(sums, want) << m << " " << n << " " << k << " signed " << is_signed;
    }
  }
  EXPECT_EQ(EmulatedTiles::faults(), faults);
  EXPECT_EQ(EmulatedTiles::holders(), 0);
}

float sum_of_pairs(const std::vector<float>& left, const std::vector<float>& right, float before) {
  std::byte a[64], b[16 * 4], sum[4];
  const auto k = static_cast<int>(left.size() / 2);
  const auto pairs = [](const std::vector<float>& from, std::byte* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      const auto half = static_cast<uint16_t>(std::bit_cast<uint32_t>(from[i]) >> 16);
      std::memcpy(to + 2 * i, &half, 2);
    }
  };
  pairs(left, a), pairs(right, b);
  std::memcpy(sum, &before, 4);
  add_product<EmulatedTiles, TileProduct::bf16>(shaped(1, 1, k), a, 64, b, 4, sum, 4);
  float result;
  std::memcpy(&result, sum, 4);
  return result;
}

TEST(TileMachine, PairsAreSummedApartAndDenormalNumbersAreZero) {
  EXPECT_EQ(sum_of_pairs({1, 2, 3, 4}, {5, 6, 7, 8}, 0.5f), 5 + 12 + 21 + 32 + 0.5f);
  // The first of each pair and the second have sums of their own: 2^24 + 1 is not rounded away by the 1 of the other sum.
  const float large = 0x1p24f;
  EXPECT_EQ(sum_of_pairs({large, 1, 0, 1}, {1, 1, 0, 1}, 0), large + 2);
  EXPECT_EQ(sum_of_pairs({large, 0, 1, 0, 1, 0}, {1, 0, 1, 0, 1, 0}, 0), large);
  // Operands, products and sums below 2^-126 are zeros.
  EXPECT_EQ(sum_of_pairs({0x1p-127f, 0}, {0x1p100f, 0}, 0), 0.0f);
  EXPECT_EQ(sum_of_pairs({0x1p-80f, 0}, {0x1p-60f, 0}, 0), 0.0f);
  EXPECT_EQ(sum_of_pairs({1, 0}, {0, 0}, 0x1p-130f), 0.0f);
  EXPECT_TRUE(std::isnan(sum_of_pairs({std::numeric_limits<float>::infinity(), 0}, {0, 0}, 0)));
}

TEST(TileMachine, WhatWouldFaultIsCounted) {
  const auto faults_of = [](auto&& act) {
    const int64_t before = EmulatedTiles::faults();
    act();
    EmulatedTiles::release();
    return EmulatedTiles::faults() - before;
  };
  std::byte memory[1024] = {};
  EXPECT_EQ(faults_of([&] { EmulatedTiles::load<0>(memory, 64); }), 1);  // no shape yet
  TileShape wrong = whole_tiles();
  wrong.rows[3] = 17;
  EXPECT_EQ(faults_of([&] { EmulatedTiles::configure(wrong); }), 1);
  wrong = whole_tiles(), wrong.reserved[2] = 1;
  EXPECT_EQ(faults_of([&] { EmulatedTiles::configure(wrong); }), 1);
  TileShape mixed = shaped(4, 4, 4);
  mixed.rows[6] = 3;
  EXPECT_EQ(faults_of([&] {
              EmulatedTiles::configure(mixed);
              EmulatedTiles::add<TileProduct::u8_i8, 0, 4, 6>();
            }),
            1);
  EmulatedTiles::configure(whole_tiles());
  EXPECT_EQ(EmulatedTiles::holders(), 1);
  EmulatedTiles::release();
  EXPECT_EQ(EmulatedTiles::holders(), 0);
}

TEST(TileMachine, InstructionsDoWhatTheEmulationDoes) {
  const Device device = probe_cpu();
  const bool bytes = device.unit("amx-int8") != nullptr, pairs = device.unit("amx-bf16") != nullptr;
  if (!bytes && !pairs) GTEST_SKIP() << "this machine has no AMX, or the system does not let its tiles be used";
#if defined(__x86_64__)
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const auto pick = [&] { return static_cast<int>(random() % 16) + 1; };
    const TileShape shape = shaped(pick(), pick(), pick());
    std::vector<std::byte> a = random_bytes(random, 1024), b = random_bytes(random, 1024), sums(1024);
    const auto same = [&](const char* what, auto real, auto emulated) {
      std::vector<std::byte> got = sums, want = sums;
      real(shape, a.data(), 64, b.data(), 64, got.data(), 64), emulated(shape, a.data(), 64, b.data(), 64, want.data(), 64);
      EXPECT_EQ(got, want) << what << ", case " << i;
    };
    if (bytes) {
      sums = random_bytes(random, 1024);
      same("u8 by i8", add_product<AmxTiles, TileProduct::u8_i8>, add_product<EmulatedTiles, TileProduct::u8_i8>);
      same("i8 by i8", add_product<AmxTiles, TileProduct::i8_i8>, add_product<EmulatedTiles, TileProduct::i8_i8>);
    }
    if (!pairs) continue;
    // Finite numbers of all sizes whose sums do not overflow, some denormal.
    const auto fill = [&](std::vector<std::byte>& to, size_t size) {
      for (size_t at = 0; at < to.size(); at += size) {
        const float v = std::ldexp(static_cast<float>(random() % 511) - 255, static_cast<int>(random() % 150) - 135);
        const uint32_t bits = std::bit_cast<uint32_t>(v) >> (size == 2 ? 16 : 0);
        std::memcpy(&to[at], &bits, size);
      }
    };
    fill(a, 2), fill(b, 2), fill(sums, 4);
    same("bf16", add_product<AmxTiles, TileProduct::bf16>, add_product<EmulatedTiles, TileProduct::bf16>);
  }
#endif
}

}  // namespace
}  // namespace sparkle::cpu
