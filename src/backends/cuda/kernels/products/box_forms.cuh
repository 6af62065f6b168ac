// How a warp's outputs of 16 rows lie as 16 rows of 128 bytes in shared memory, chunks of 16 bytes exchanged as the swizzle of
// tensor maps does, and how they get there from the registers that products leave sums in: of a thread four of each group of
// eight columns, two side by side in row lane / 4 and two in the row 8 further. No two lanes meet in a bank.
#pragma once

#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/ptx/matrix.cuh"
#include "backends/cuda/ptx/memory.cuh"

namespace sparkle::cuda {

// Which group of columns the values 4 * j and behind are of, and the value `at` of all sums of a row, where all lanes take them
// in order.
struct ColumnsInOrder {
  SPARKLE_DEVICE static uint32_t group(int j) { return static_cast<uint32_t>(j); }
  template <class Sum, int kSums>
  SPARKLE_DEVICE static Sum taken(const Sum (&sums)[kSums], int at) {
    return sums[at];
  }
};

// 16 bits: matrices of 8 rows by 16 bytes, two below each other, then the two beside them.
struct HalfBoxForm : ColumnsInOrder {
  static constexpr int kBytes = 2, kColumns = 128 / kBytes, kValues = kColumns / 2;
  uint32_t line, chunk;

  SPARKLE_DEVICE explicit HalfBoxForm(uint32_t lane) : line(lane % 16 * 128), chunk((lane / 16 ^ lane % 8) * 16) {}
  SPARKLE_DEVICE void put(SharedAddress box, Element type, bool relu, const float (&v)[kValues]) const {
    if (type == Element::f16) {
      if (relu) put_as<Element::f16, true>(box, v);
      else put_as<Element::f16, false>(box, v);
    } else {
      if (relu) put_as<Element::bf16, true>(box, v);
      else put_as<Element::bf16, false>(box, v);
    }
  }
  SPARKLE_DEVICE void add(SharedAddress lines, Element type, float (&v)[kValues]) const {
    SPARKLE_UNROLL
    for (int j = 0; j < 4; ++j) {
      uint32_t words[4];
      load_matrix_4(words, lines + line + (chunk ^ j * 32));
      SPARKLE_UNROLL
      for (int e = 0; e < 8; ++e) {
        const auto bits = static_cast<uint16_t>(words[e / 2] >> (e % 2 * 16));
        v[8 * j + e] += type == Element::f16 ? float_of_half(bits) : float_of_bfloat(bits);
      }
    }
  }

 private:
  template <Element kElement, bool kRelu>
  SPARKLE_DEVICE void put_as(SharedAddress box, const float (&v)[kValues]) const {
    SPARKLE_UNROLL
    for (int j = 0; j < 4; ++j) {
      uint32_t words[4];
      SPARKLE_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float low = v[8 * j + 2 * e], high = v[8 * j + 2 * e + 1];
        words[e] = kElement == Element::f16 ? halfs_of<kRelu>(low, high) : bfloats_of<kRelu>(low, high);
      }
      store_matrix_4(box + line + (chunk ^ j * 32), words);
    }
  }
};

// f32: two values at once. Rows side by side would meet in the banks of two chunks, so that odd ones begin with the other half
// of the groups.
struct FloatBoxForm {
  static constexpr int kBytes = 4, kColumns = 128 / kBytes, kValues = kColumns / 2;
  uint32_t line, chunk, turned;  // 0, or 2: odd rows' groups are exchanged by it

  SPARKLE_DEVICE explicit FloatBoxForm(uint32_t lane)
      : line(lane / 4 * 128 + lane % 2 * 8), chunk((lane % 4 / 2 ^ lane / 4) * 16), turned(lane / 4 % 2 * 2) {}
  SPARKLE_DEVICE uint32_t group(int j) const { return static_cast<uint32_t>(j) ^ turned; }
  template <int kSums>
  SPARKLE_DEVICE float taken(const float (&sums)[kSums], int at) const {
    return turned != 0 ? sums[at ^ 8] : sums[at];
  }
  SPARKLE_DEVICE void put(SharedAddress box, Element, bool relu, const float (&v)[kValues]) const {
    SPARKLE_UNROLL
    for (int i = 0; i < kValues / 2; ++i) {
      const float a = relu ? rectified(v[2 * i]) : v[2 * i], b = relu ? rectified(v[2 * i + 1]) : v[2 * i + 1];
      store_shared_8(box + place(i), bits_of(a), bits_of(b));
    }
  }
  SPARKLE_DEVICE void add(SharedAddress lines, Element, float (&v)[kValues]) const {
    SPARKLE_UNROLL
    for (int i = 0; i < kValues / 2; ++i) {
      const Words2 w = load_shared_8(lines + place(i));
      v[2 * i] += float_of(w.v[0]), v[2 * i + 1] += float_of(w.v[1]);
    }
  }

 private:
  // Of values 2 * i and 2 * i + 1; those with an odd i are of the row 8 further.
  SPARKLE_DEVICE uint32_t place(int i) const { return line + (chunk ^ group(i / 2) * 32) + static_cast<uint32_t>(i % 2 * 1024); }
};

// Bytes: two values at once, of a lane and its neighbour in one word.
struct ByteBoxForm : ColumnsInOrder {
  static constexpr int kBytes = 1, kColumns = 128 / kBytes, kValues = kColumns / 2;
  uint32_t line, chunk;

  SPARKLE_DEVICE explicit ByteBoxForm(uint32_t lane) : line(lane / 4 * 128 + lane % 4 * 2), chunk(lane / 4 * 16) {}
  SPARKLE_DEVICE void put(SharedAddress box, Element, bool, const int32_t (&v)[kValues]) const {
    SPARKLE_UNROLL
    for (int i = 0; i < kValues / 2; ++i) {
      const auto pair = static_cast<uint16_t>((v[2 * i] & 255) | v[2 * i + 1] << 8);
      store_shared_2(box + line + (chunk ^ i / 4 * 16) + static_cast<uint32_t>(i / 2 % 2 * 8 + i % 2 * 1024), pair);
    }
  }
};

// What outputs of products of an operand are that leave so.
template <Operand kType>
struct BoxFormOf {
  using Type = HalfBoxForm;
};
template <>
struct BoxFormOf<Operand::tf32> {
  using Type = FloatBoxForm;
};
template <>
struct BoxFormOf<Operand::i8> {
  using Type = ByteBoxForm;
};
template <>
struct BoxFormOf<Operand::u8> {
  using Type = ByteBoxForm;
};

}  // namespace sparkle::cuda
