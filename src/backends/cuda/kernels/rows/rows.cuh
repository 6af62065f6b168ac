// Rows of elements that belong together: where a thread stands among them, and sums over the threads of a row.
#pragma once

#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/rows/rows_record.h"

namespace sparkle::cuda {

struct RowPlaces {
  int64_t at[4];  // of x, scale, bias, y
};

struct RowOfThread {
  uint32_t row, lane, place;  // place: among the row's threads
  RowPlaces origin;

  SPARKLE_DEVICE explicit RowOfThread(const RowsRecord& record) {
    const uint32_t t = thread_id();
    lane = record.lanes_first ? t % record.lanes : t / record.depth;
    place = record.lanes_first ? t / record.lanes : t % record.depth;
    row = block_x() * record.lanes + lane;
    origin = {};
    add(record, 0, row < record.rows ? row : record.rows - 1, origin);
  }
  // Where the element of the row is.
  SPARKLE_DEVICE RowPlaces element(const RowsRecord& record, uint32_t number) const {
    RowPlaces p = origin;
    add(record, 1, number, p);
    return p;
  }
  SPARKLE_DEVICE bool valid(const RowsRecord& record) const { return row < record.rows; }

  // The word of another thread of this row in shared memory.
  SPARKLE_DEVICE SharedAddress slot(const RowsRecord& record, uint32_t other) const {
    return shared_base() + 8 * (record.lanes_first ? other * record.lanes + lane : lane * record.depth + other);
  }

  // What number `number` of the rows (which: 0), of the elements of one (1), adds to places.
  SPARKLE_DEVICE static void add(const RowsRecord& record, int which, uint32_t number, RowPlaces& p) {
    for (int i = record.axes[which] - 1; i >= 0; --i) {
      const auto at = static_cast<int32_t>(fast_divmod(number, record.size[which][i]));
      SPARKLE_UNROLL
      for (int o = 0; o < 4; ++o) p.at[o] += int64_t{at} * record.strides[which][i][o];
    }
  }
};

SPARKLE_DEVICE void put_shared(SharedAddress at, float v) { store_shared_4(at, bits_of(v)); }
SPARKLE_DEVICE void put_shared(SharedAddress at, uint64_t v) {
  store_shared_8(at, static_cast<uint32_t>(v), static_cast<uint32_t>(v >> 32));
}
SPARKLE_DEVICE void put_shared(SharedAddress at, int64_t v) { put_shared(at, static_cast<uint64_t>(v)); }
SPARKLE_DEVICE void put_shared(SharedAddress at, double v) { put_shared(at, __builtin_bit_cast(uint64_t, v)); }
SPARKLE_DEVICE void take_shared(SharedAddress at, float& v) { v = float_of(load_shared_4(at)); }
SPARKLE_DEVICE void take_shared(SharedAddress at, uint64_t& v) {
  v = load_shared_4(at) | uint64_t{load_shared_4(at + 4)} << 32;
}
SPARKLE_DEVICE void take_shared(SharedAddress at, int64_t& v) {
  uint64_t u;
  take_shared(at, u);
  v = static_cast<int64_t>(u);
}

SPARKLE_DEVICE void take_shared(SharedAddress at, double& v) {
  uint64_t u;
  take_shared(at, u);
  v = __builtin_bit_cast(double, u);
}

// What `join` makes of the values of all threads of the row, in each of them.
template <class T, class Join>
SPARKLE_DEVICE T over_row(const RowsRecord& record, const RowOfThread& row, T value, Join&& join) {
  sync_block();  // what was read before has been
  put_shared(row.slot(record, row.place), value);
  sync_block();
  for (uint32_t step = record.depth / 2; step > 0; step /= 2) {
    if (row.place < step) {
      T other;
      take_shared(row.slot(record, row.place + step), other);
      value = join(value, other);
      put_shared(row.slot(record, row.place), value);
    }
    sync_block();
  }
  take_shared(row.slot(record, 0), value);
  return value;
}

// f(element's places) for this thread's elements of the row.
template <class F>
SPARKLE_DEVICE void for_each_element(const RowsRecord& record, const RowOfThread& row, F&& f) {
  for (uint32_t i = row.place; i < record.elements; i += record.depth) f(row.element(record, i));
}
template <class T>
SPARKLE_DEVICE T row_value(const RowsRecord& record, int operand, const void* from, const RowPlaces& p) {
  return loaded<T>(static_cast<DType>(record.type[operand]), from, p.at[operand]);
}

}  // namespace sparkle::cuda
