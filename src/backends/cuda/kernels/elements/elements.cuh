// Elements of a type that is known when a kernel runs (cells.cuh says what is done with each).
#pragma once

#include "backends/cuda/kernels/elements/cells.cuh"
#include "base/dtype.h"

namespace sparkle::cuda {

using sparkle::DType;

// CELL(type, how its elements lie in memory)
#define SPARKLE_CELLS(CELL)                                                                                            \
  CELL(f32, CellF32)                                                                                                   \
  CELL(f16, CellF16)                                                                                                   \
  CELL(bf16, CellBf16) CELL(f64, CellF64) CELL(i8, CellI8) CELL(u8, CellU8) CELL(boolean, CellBool) CELL(i16, CellI16) \
      CELL(u16, CellU16) CELL(i32, CellI32) CELL(u32, CellU32) CELL(i64, CellI64) CELL(u64, CellU64)

// `load`: what is read by, of a pointer to the bits.
template <class T, class Load>
SPARKLE_DEVICE T loaded_by(Load&& load, DType type, const void* from, int64_t at) {
#define CELL(type, Cell) \
  case DType::type: return Cell::template number<T>(load(static_cast<const Cell::Bits*>(from) + at));
  switch (type) {
    SPARKLE_CELLS(CELL)
    default: return 0;
  }
#undef CELL
}
// What nobody writes while the kernel runs.
template <class T>
SPARKLE_DEVICE T loaded(DType type, const void* from, int64_t at) {
  return loaded_by<T>([](const auto* p) { return load_global(p); }, type, from, at);
}

template <class T>
SPARKLE_DEVICE void stored(DType type, void* to, int64_t at, T value) {
#define CELL(type, Cell) \
  case DType::type: return store_global(static_cast<Cell::Bits*>(to) + at, Cell::template bits<T>(value));
  switch (type) {
    SPARKLE_CELLS(CELL)
    default: return;
  }
#undef CELL
}

}  // namespace sparkle::cuda
