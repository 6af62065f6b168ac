// Products of a warp and how their operands lie in its registers (PTX ISA, "Matrix multiply-accumulate operation using mma
// instruction", and ldmatrix, stmatrix). Lane = 4 * group + place. In bytes all types of operands lie alike: a row of A or a
// column of B is 32 bytes of k, of which a register holds bytes 4 * place and on, of the first or the second 16.
#include <cmath>
#include <cstring>

#include "base/half_floats.h"
#include "cuda_model/machine.h"
#include "cuda_model/products.h"

namespace cuda_model {

double element_of(Product type, const unsigned char* bytes) {
  uint16_t half = 0;
  uint32_t word = 0;
  switch (type) {
    case Product::f16: std::memcpy(&half, bytes, 2); return static_cast<double>(sparkle::half_to_float(half));
    case Product::bf16: std::memcpy(&half, bytes, 2); return static_cast<double>(sparkle::bfloat16_to_float(half));
    case Product::s8: return static_cast<double>(static_cast<int8_t>(*bytes));
    case Product::u8: return static_cast<double>(*bytes);
    case Product::tf32: break;
  }
  std::memcpy(&word, bytes, 4);
  const float value = __builtin_bit_cast(float, word);
  if (std::isfinite(value) && (word & 0x1fffu) != 0) fault("multiplies a float that is not rounded to tf32");
  return static_cast<double>(value);
}

namespace {

struct MatrixMove {
  uint32_t* registers;
  int count;
  bool transposed;
  SharedAddress row;
};

// Byte `byte` of row `row` of matrix `matrix`, as lanes give the rows' addresses.
unsigned char* matrix_row(void* const* all, int matrix, int row, Access access, const char* what) {
  const SharedAddress address = static_cast<const MatrixMove*>(all[matrix * 8 + row])->row;
  unsigned char* bytes = shared_bytes(address, 16, 16, what);
  touch(address, 16, *self().warp, access, what);
  return bytes;
}

// Both directions: element (r, c) of a matrix of 16-bit elements lies in lane 4r + c/2, half c%2; transposed in 4c + r/2, r%2.
template <class Move>
void each_element(void* const* all, Access access, const char* what, Move move) {
  const auto* first = static_cast<const MatrixMove*>(all[0]);
  for (int matrix = 0; matrix < first->count; ++matrix) {
    for (int r = 0; r < 8; ++r) {
      unsigned char* row = matrix_row(all, matrix, r, access, what);
      for (int c = 0; c < 8; ++c) {
        const int lane = first->transposed ? 4 * c + r / 2 : 4 * r + c / 2, half = first->transposed ? r % 2 : c % 2;
        auto* register_bytes = reinterpret_cast<unsigned char*>(static_cast<MatrixMove*>(all[lane])->registers + matrix);
        move(row + 2 * c, register_bytes + 2 * half);
      }
    }
  }
}

struct Mma {
  Product type;
  void* sums;
  const uint32_t *a, *b;
};

}  // namespace

void load_matrix(uint32_t* registers, int count, SharedAddress row, bool transposed) {
  MatrixMove move{registers, count, transposed, row};
  meet_warp("ldmatrix", &move, [](void* const* all) {
    each_element(all, Access::read, "ldmatrix", [](const unsigned char* row, unsigned char* to) { std::memcpy(to, row, 2); });
  });
}
void store_matrix(SharedAddress row, const uint32_t* registers, int count, bool transposed) {
  MatrixMove move{const_cast<uint32_t*>(registers), count, transposed, row};
  meet_warp("stmatrix", &move, [](void* const* all) {
    each_element(all, Access::write, "stmatrix",
                 [](unsigned char* row, const unsigned char* from) { std::memcpy(row, from, 2); });
  });
}

void mma(Product type, void* sums, const uint32_t* a, const uint32_t* b) {
  Mma mine{type, sums, a, b};
  meet_warp("mma", &mine, [](void* const* all) {
    const Product type = static_cast<const Mma*>(all[0])->type;
    const int bytes = product_bytes(type), depth = 32 / bytes;
    double a[16][32], b[32][8];
    for (int lane = 0; lane < 32; ++lane) {
      const auto& mine = *static_cast<const Mma*>(all[lane]);
      const int group = lane / 4, place = lane % 4;
      for (int r = 0; r < 4; ++r) {
        const auto* from = reinterpret_cast<const unsigned char*>(mine.a + r);
        for (int e = 0; e < 4 / bytes; ++e) {
          a[group + r % 2 * 8][(r / 2 * 16 + place * 4) / bytes + e] = element_of(type, from + e * bytes);
        }
      }
      for (int r = 0; r < 2; ++r) {
        const auto* from = reinterpret_cast<const unsigned char*>(mine.b + r);
        for (int e = 0; e < 4 / bytes; ++e) {
          b[(r * 16 + place * 4) / bytes + e][group] = element_of(type, from + e * bytes);
        }
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = 0;
        for (int k = 0; k < depth; ++k) sum += a[row][k] * b[k][column];
        add_to(type, static_cast<Mma*>(all[lane])->sums, i, sum);
      }
    }
  });
}

}  // namespace cuda_model
