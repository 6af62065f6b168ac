// Where elements lie in registers and in shared memory: the figures of the PTX ISA (9.7.14, "Matrix fragments for mma.m16n8k16"
// and the others, ldmatrix, stmatrix, and for wgmma "Register fragment D", "Strides" and "Swizzling modes"), written out
// element by element.
#include <gtest/gtest.h>

#include <cstring>

#include "base/half_floats.h"
#include "cuda_model/instructions.h"

namespace cuda_model {
namespace {

// ldmatrix: row r of matrix i goes to lanes 4r .. 4r + 3, two elements each; with .trans lane 4c + r/2 has elements of column
// c.
TEST(CudaModelMatrix, LdmatrixGivesEachLaneItsPairOfARow) {
  for (const bool is_transposed : {false, true}) {
    const std::string error = run_body({{}, {32}, {}, 1024, 3}, [&] {
      const uint32_t lane = thread_id();
      uint16_t row[8];
      for (uint32_t c = 0; c < 8; ++c)
        row[c] = static_cast<uint16_t>(lane / 8 * 100 + lane % 8 * 10 + c);  // matrix, row, column
      const SharedAddress own = shared_base() + lane * 16;
      store_shared(own, row, 16);
      sync_warp();
      uint32_t r[4];
      load_matrix(r, 4, own, is_transposed);
      for (uint32_t matrix = 0; matrix < 4; ++matrix) {
        for (uint32_t half = 0; half < 2; ++half) {
          const uint32_t along = lane / 4, pair = lane % 4 * 2 + half;
          const uint32_t expected = matrix * 100 + (is_transposed ? pair * 10 + along : along * 10 + pair);
          if ((r[matrix] >> (16 * half) & 0xffff) != expected) fault("element of another place");
        }
      }
      store_matrix(shared_base() + 512 + lane * 16, r, 4, is_transposed);
      sync_warp();
      uint16_t again[8];
      load_shared(again, shared_base() + 512 + lane * 16, 16);
      if (std::memcmp(again, row, 16) != 0) fault("stmatrix is not ldmatrix's inverse");
    });
    EXPECT_EQ(error, "");
  }
}

// m16n8k16, f16: a0 and a1 of a register pair hold row = group, group + 8; k = 2 * place + i, + 8 for the last two registers.
TEST(CudaModelMatrix, MmaOfFp16TakesTheDocumentedElements) {
  float a[16][16], b[16][8], d[16][8] = {};
  for (int i = 0; i < 256; ++i) a[i / 16][i % 16] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < 128; ++i) b[i / 8][i % 8] = static_cast<float>(i % 5 - 2);
  const std::string error = run_body({{}, {32}, {}, 64, 3}, [&] {
    const int lane = static_cast<int>(thread_id()), group = lane >> 2, place = lane % 4;
    uint32_t ra[4] = {}, rb[2] = {};
    for (int i = 0; i < 8; ++i) {
      const int row = (i >= 0 && i < 2) || (i >= 4 && i < 6) ? group : group + 8,
                column = place * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      ra[i / 2] |= static_cast<uint32_t>(sparkle::float_to_half(a[row][column])) << (16 * (i & 1));
    }
    for (int i = 0; i < 4; ++i) {
      const int row = place * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      rb[i / 2] |= static_cast<uint32_t>(sparkle::float_to_half(b[row][group])) << (16 * (i & 1));
    }
    float c[4] = {};
    mma(Product::f16, c, ra, rb);
    for (int i = 0; i < 4; ++i) d[i < 2 ? group : group + 8][place * 2 + (i & 1)] = c[i];
  });
  ASSERT_EQ(error, "");
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += a[i][k] * b[k][j];
      EXPECT_EQ(d[i][j], sum);
    }
  }
}

// m16n8k32, s8: a_i for i in 0..15: row = group for i < 4 and 8 <= i < 12, else group + 8; column = place * 4 + (i & 3), + 16
// for i >= 8.
TEST(CudaModelMatrix, MmaOfBytesTakesTheDocumentedElements) {
  int a[16][32], b[32][8], d[16][8] = {};
  for (int i = 0; i < 512; ++i) a[i / 32][i % 32] = i * 37 % 256 - 128;
  for (int i = 0; i < 256; ++i) b[i / 8][i % 8] = i * 91 % 256 - 128;
  const std::string error = run_body({{}, {32}, {}, 64, 3}, [&] {
    const int lane = static_cast<int>(thread_id()), group = lane >> 2, place = lane % 4;
    uint32_t ra[4] = {}, rb[2] = {};
    for (int i = 0; i < 16; ++i) {
      const int row = i < 4 || (i >= 8 && i < 12) ? group : group + 8, column = place * 4 + (i & 3) + (i >= 8 ? 16 : 0);
      ra[i / 4] |= static_cast<uint32_t>(a[row][column] & 255) << (8 * (i & 3));
    }
    for (int i = 0; i < 8; ++i) {
      const int row = place * 4 + (i & 3) + (i >= 4 ? 16 : 0);
      rb[i / 4] |= static_cast<uint32_t>(b[row][group] & 255) << (8 * (i & 3));
    }
    int32_t c[4] = {};
    mma(Product::s8, c, ra, rb);
    for (int i = 0; i < 4; ++i) d[i < 2 ? group : group + 8][place * 2 + (i & 1)] = c[i];
  });
  ASSERT_EQ(error, "");
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += a[i][k] * b[k][j];
      EXPECT_EQ(d[i][j], sum);
    }
  }
}

// m16n8k8, tf32: a0 (group, place), a1 (group + 8, place), a2 (group, place + 4), a3 (group + 8, place + 4); b0 (place, group),
// b1 (place
// + 4, group).
TEST(CudaModelMatrix, MmaOfTf32TakesTheDocumentedElements) {
  float a[16][8], b[8][8], d[16][8] = {};
  for (int i = 0; i < 128; ++i) a[i / 8][i % 8] = static_cast<float>(i % 11 - 5);
  for (int i = 0; i < 64; ++i) b[i / 8][i % 8] = static_cast<float>(i % 9 - 4);
  const std::string error = run_body({{}, {32}, {}, 64, 3}, [&] {
    const uint32_t lane = thread_id(), group = lane >> 2, place = lane % 4;
    const float fa[4] = {a[group][place], a[group + 8][place], a[group][place + 4], a[group + 8][place + 4]};
    const float fb[2] = {b[place][group], b[place + 4][group]};
    uint32_t ra[4], rb[2];
    std::memcpy(ra, fa, 16), std::memcpy(rb, fb, 8);
    float c[4] = {};
    mma(Product::tf32, c, ra, rb);
    for (uint32_t i = 0; i < 4; ++i) d[i < 2 ? group : group + 8][place * 2 + (i & 1)] = c[i];
  });
  ASSERT_EQ(error, "");
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 8; ++k) sum += a[i][k] * b[k][j];
      EXPECT_EQ(d[i][j], sum);
    }
  }
}

// wgmma, f16, n = 16: rows of 32, 64 or 128 bytes with that swizzle - the chunk's number exchanged with that of the row, rows
// of eight apart by the stride - and the second 32 bytes of k by the address. D: lane of warp w has rows 16w + group, + 8;
// columns 8j + 2 place, + 1.
TEST(CudaModelMatrix, WgmmaReadsSwizzledRowsByDescriptors) {
  for (const uint32_t swizzle : {32u, 64u, 128u}) {
    float a[64][64], b[16][64];
    std::vector<float> d(64 * 16);
    for (int i = 0; i < 64 * 64; ++i) a[i / 64][i % 64] = static_cast<float>(i * 7 % 13 - 6);
    for (int i = 0; i < 16 * 64; ++i) b[i / 64][i % 64] = static_cast<float>(i * 5 % 11 - 5);
    const uint32_t elements = swizzle / 2, mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
    const std::string error = run_body({{}, {128}, {}, 16384, 3}, [&] {
      const uint32_t thread = thread_id();
      const SharedAddress left = shared_base(), right = left + 8192;
      const auto put = [&](SharedAddress tile, uint32_t row, const float* from) {
        for (uint32_t chunk = 0; chunk < swizzle / 16; ++chunk) {
          uint16_t bits[8];
          for (uint32_t i = 0; i < 8; ++i) bits[i] = sparkle::float_to_half(from[chunk * 8 + i]);
          // By the figure: in 128 bytes lie 128 / swizzle rows; the chunk is exchanged with the number of these 128 bytes.
          const uint32_t line = row / (128 / swizzle), within = chunk ^ (line % (swizzle / 16));
          store_shared(tile + row * swizzle + within * 16, bits, 16);
        }
      };
      if (thread < 64) put(left, thread, a[thread]);
      if (thread < 16) put(right, thread, b[thread]);
      fence_async_proxy();
      sync_threads(0, 128);
      const auto descriptor = [&](SharedAddress at) {
        return uint64_t{mode} << 62 | uint64_t{8 * swizzle >> 4} << 32 | uint64_t{1} << 16 | ((at & 0x3ffff) >> 4);
      };
      float sums[8];
      wgmma_fence();
      for (uint32_t k = 0; k < elements / 16; ++k)
        wgmma(Product::f16, Product::f16, 16, sums, descriptor(left + 32 * k), descriptor(right + 32 * k), k > 0);
      wgmma_commit();
      wgmma_wait(0);
      for (uint32_t i = 0; i < 8; ++i) {
        d[(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8) * 16 + i / 4 * 8 + thread % 4 * 2 + i % 2] = sums[i];
      }
    });
    ASSERT_EQ(error, "");
    for (uint32_t i = 0; i < 64; ++i) {
      for (uint32_t j = 0; j < 16; ++j) {
        float sum = 0;
        for (uint32_t k = 0; k < elements; ++k) sum += a[i][k] * b[j][k];
        EXPECT_EQ(d[i * 16 + j], sum) << swizzle;
      }
    }
  }
}

}  // namespace
}  // namespace cuda_model
