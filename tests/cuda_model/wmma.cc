// wmma: loads, products and stores of fragments of 16 x 16, in registers as the model likes: lanes l and l + 16 have row l of A
// or column l of B, and of the sums lane l has half of row l / 2.
#include <cstring>

#include "cuda_model/machine.h"
#include "cuda_model/products.h"

namespace cuda_model {
namespace {

struct Fragment {
  void* registers;
  SharedAddress address;
  uint32_t stride;
};
struct Product16 {
  float* sums;
  const uint32_t *a, *b;
};

// All lanes name one place, at a multiple of 32 bytes, and rows at multiples of 16.
const Fragment& agreed(void* const* all, uint32_t bytes, const char* what) {
  const auto& first = *static_cast<const Fragment*>(all[0]);
  for (int lane = 1; lane < 32; ++lane) {
    const auto& other = *static_cast<const Fragment*>(all[lane]);
    if (other.address != first.address || other.stride != first.stride) fault(std::string(what) + " of lanes that disagree");
  }
  if (first.address % 32 != 0) fault(std::string(what) + " at an address that is no multiple of 32");
  if (first.stride * bytes % 16 != 0) fault(std::string(what) + " of rows that are no multiples of 16 bytes apart");
  return first;
}

}  // namespace

void wmma_load(uint32_t* registers, SharedAddress from, uint32_t stride) {
  Fragment mine{registers, from, stride};
  meet_warp("wmma.load", &mine, [](void* const* all) {
    const Fragment& f = agreed(all, 2, "wmma.load");
    for (uint32_t row = 0; row < 16; ++row) {
      const SharedAddress at = f.address + row * f.stride * 2;
      const unsigned char* bytes = shared_bytes(at, 32, 16, "wmma.load");
      touch(at, 32, *self().warp, Access::read, "wmma.load");
      for (const uint32_t lane : {row, row + 16}) std::memcpy(static_cast<const Fragment*>(all[lane])->registers, bytes, 32);
    }
  });
}

void wmma(float* sums, const uint32_t* a, const uint32_t* b) {
  Product16 mine{sums, a, b};
  meet_warp("wmma.mma", &mine, [](void* const* all) {
    const auto of = [&](int lane) -> const Product16& { return *static_cast<const Product16*>(all[lane]); };
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        double sum = 0;
        for (int k = 0; k < 16; ++k) {
          sum += element_of(Product::f16, reinterpret_cast<const unsigned char*>(of(row).a) + 2 * k) *
                 element_of(Product::f16, reinterpret_cast<const unsigned char*>(of(column).b) + 2 * k);
        }
        add_to(Product::f16, of(row * 2 + column / 8).sums, column % 8, sum);
      }
    }
  });
}

void wmma_store(SharedAddress to, const float* sums, uint32_t stride) {
  Fragment mine{const_cast<float*>(sums), to, stride};
  meet_warp("wmma.store", &mine, [](void* const* all) {
    const Fragment& f = agreed(all, 4, "wmma.store");
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const SharedAddress at = f.address + (lane / 2 * f.stride + lane % 2 * 8) * 4;
      unsigned char* bytes = shared_bytes(at, 32, 16, "wmma.store");
      touch(at, 32, *self().warp, Access::write, "wmma.store");
      std::memcpy(bytes, static_cast<const Fragment*>(all[lane])->registers, 32);
    }
  });
}

}  // namespace cuda_model
