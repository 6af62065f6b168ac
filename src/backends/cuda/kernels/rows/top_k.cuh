// Elements ranked: a key that is larger the better an element is, and among equal ones the lower rank (families/top_k/top_k.h).
// kind: of numbers, as kUnsigned and so on; scale and y: values (maybe none) and indices.
#pragma once

#include "backends/cuda/kernels/rows/rows.cuh"
#include "backends/cuda/kernels/rows/top_k_record.h"

namespace sparkle::cuda {

inline constexpr uint32_t kNoRank = 0xffffffffu;  // of what is no element, with the lowest key

template <class Key>
struct RankedEntry {
  Key key;
  uint32_t rank;
};
template <class Key>
SPARKLE_DEVICE bool is_better(const RankedEntry<Key>& a, const RankedEntry<Key>& b) {
  return a.key > b.key || (a.key == b.key && a.rank < b.rank);
}

// The bits of an element of up to sizeof(Key) bytes.
template <class Key>
SPARKLE_DEVICE Key bits_at(DType type, const void* from, int64_t at) {
  switch (sizeof(Key) == 8 ? 8 : size_of(type)) {
    case 1: return load_global(static_cast<const uint8_t*>(from) + at);
    case 2: return load_global(static_cast<const uint16_t*>(from) + at);
    default: return load_global(static_cast<const Key*>(from) + at);
  }
}

// As families/values/typed.h orders them: numbers by size, zeros of either sign alike, NaN above all.
template <class Key>
SPARKLE_DEVICE Key rank_key(const RowsRecord& record, Key bits) {
  const auto type = static_cast<DType>(record.type[kRowX]);
  const Key top = Key{1} << (8 * size_of(type) - 1), all = top | (top - 1);
  Key key = record.kind == kRankSigned ? bits ^ top : bits;
  if (record.kind == kRankFloat) {
    const Key infinity = type == DType::f16    ? Key{0x7c00}
                         : type == DType::bf16 ? Key{0x7f80}
                                               : static_cast<Key>(sizeof(Key) == 8 ? 0x7ff0000000000000u : 0x7f800000u);
    const Key size = bits & (top - 1);
    key = size > infinity ? all : bits == size ? bits | top : top - size;
  }
  const bool nan_first = record.kind == kRankFloat && (record.flags & kRankNanFirst) && key == all;
  return record.flags & kRankLargest || nan_first ? key : ~key & all;
}

// Ranks count the elements of a row from its begin or its end, and so back.
SPARKLE_DEVICE uint32_t rank_of(const RowsRecord& record, uint32_t i) {
  return record.flags & kRankLastOfEquals ? record.elements - 1 - i : i;
}

// A row by its number, wherever a thread stands.
struct RankedRow {
  RowPlaces origin = {};
  SPARKLE_DEVICE RankedRow(const RowsRecord& record, uint32_t row) { RowOfThread::add(record, 0, row, origin); }
  SPARKLE_DEVICE explicit RankedRow(const RowOfThread& row) : origin(row.origin) {}
  SPARKLE_DEVICE RowPlaces element(const RowsRecord& record, uint32_t i) const {
    RowPlaces p = origin;
    RowOfThread::add(record, 1, i, p);
    return p;
  }
  template <class Key>
  SPARKLE_DEVICE RankedEntry<Key> entry(const RowsRecord& record, uint32_t i) const {
    const Key bits = bits_at<Key>(static_cast<DType>(record.type[kRowX]), record.x, element(record, i).at[kRowX]);
    return {rank_key(record, bits), rank_of(record, i)};
  }
  // The entry that comes out as number `i` of its row.
  template <class Key>
  SPARKLE_DEVICE void put(const RowsRecord& record, uint32_t i, uint32_t rank) const {
    const uint32_t from = rank_of(record, rank);
    const RowPlaces to = element(record, i);
    store_global(static_cast<int64_t*>(record.y) + to.at[kRowY], int64_t{from});
    if (!(record.flags & kRankValues)) return;
    const auto type = static_cast<DType>(record.type[kRowX]);
    const Key bits = bits_at<Key>(type, record.x, element(record, from).at[kRowX]);
    void* values = const_cast<void*>(record.scale);
    switch (sizeof(Key) == 8 ? 8 : size_of(type)) {
      case 1: return store_global(static_cast<uint8_t*>(values) + to.at[kRowScale], static_cast<uint8_t>(bits));
      case 2: return store_global(static_cast<uint16_t*>(values) + to.at[kRowScale], static_cast<uint16_t>(bits));
      default: return store_global(static_cast<Key*>(values) + to.at[kRowScale], bits);
    }
  }
};

}  // namespace sparkle::cuda
