// Rows of bytes: the moves under copy, pad, gather and nearest resize.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/copy/rows.cc"
#include <cstring>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

// One row of a size known at compile time.
template <size_t bytes>
HWY_INLINE void move_fixed(const std::byte* x, std::byte* y) {
  std::memcpy(y, x, bytes);
}

template <size_t bytes>
void copy_fixed_rows(const RowsArguments& a) {
  const std::byte* x = a.x;
  std::byte* y = a.y;
  for (int64_t i = 0; i < a.n; ++i, x += a.px, y += a.py) move_fixed<bytes>(x, y);
}

// One row of at least one vector: the last vector overlaps the one before it, so there is no tail.
HWY_INLINE void copy_vectors(const std::byte* x, std::byte* y, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto* from = reinterpret_cast<const uint8_t*>(x);
  auto* to = reinterpret_cast<uint8_t*>(y);
  size_t i = 0;
  for (; i + lanes <= bytes; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (i < bytes) hn::StoreU(hn::LoadU(d, from + bytes - lanes), d, to + bytes - lanes);
}

void copy_rows(const RowsArguments& a) {
  switch (a.bytes) {
    case 1: return copy_fixed_rows<1>(a);
    case 2: return copy_fixed_rows<2>(a);
    case 4: return copy_fixed_rows<4>(a);
    case 8: return copy_fixed_rows<8>(a);
    case 12: return copy_fixed_rows<12>(a);
    case 16: return copy_fixed_rows<16>(a);
    case 32: return copy_fixed_rows<32>(a);
    case 64: return copy_fixed_rows<64>(a);
    default: break;
  }
  const auto bytes = static_cast<size_t>(a.bytes);
  const size_t lanes = hn::Lanes(hn::ScalableTag<uint8_t>());
  const std::byte* x = a.x;
  std::byte* y = a.y;
  // Up to 1 KB a call of memcpy costs more than it saves.
  if (bytes >= lanes && bytes <= 1024) {
    for (int64_t i = 0; i < a.n; ++i, x += a.px, y += a.py) copy_vectors(x, y, bytes);
  } else {
    for (int64_t i = 0; i < a.n; ++i, x += a.px, y += a.py) std::memcpy(y, x, bytes);
  }
}

// Whole lines of y bypass the caches; the parts of lines at both ends do not.
HWY_INLINE void stream_row(const std::byte* x, std::byte* y, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const size_t head = (64 - reinterpret_cast<uintptr_t>(y) % 64) % 64;
  if (bytes < head + 256) {
    std::memcpy(y, x, bytes);
    return;
  }
  if (head) std::memcpy(y, x, head);
  const auto* from = reinterpret_cast<const uint8_t*>(x);
  auto* to = reinterpret_cast<uint8_t*>(y);
  size_t i = head;
  for (; i + 64 <= bytes; i += 64)
    for (size_t j = 0; j < 64; j += lanes) hn::Stream(hn::LoadU(d, from + i + j), d, to + i + j);
  if (i < bytes) std::memcpy(y + i, x + i, bytes - i);
}

void stream_rows(const RowsArguments& a) {
  if (a.bytes < 320) return copy_rows(a);
  for (int64_t i = 0; i < a.n; ++i) stream_row(a.x + i * a.px, a.y + i * a.py, static_cast<size_t>(a.bytes));
}

void fill_row(std::byte* y, uint64_t pattern, int64_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lane_bytes = hn::Lanes(d) * 8, size = static_cast<size_t>(bytes);
  const auto v = hn::BitCast(hn::ScalableTag<uint8_t>(), hn::Set(d, pattern));
  size_t i = 0;
  for (; i + lane_bytes <= size; i += lane_bytes) hn::StoreU(v, hn::ScalableTag<uint8_t>(), reinterpret_cast<uint8_t*>(y + i));
  for (; i + 8 <= size; i += 8) std::memcpy(y + i, &pattern, 8);
  if (i < size) std::memcpy(y + i, &pattern, size - i);
}

void stream_fill_row(std::byte* y, uint64_t pattern, int64_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  const size_t lanes = hn::Lanes(d), size = static_cast<size_t>(bytes);
  const size_t head = (64 - reinterpret_cast<uintptr_t>(y) % 64) % 64;
  // The pattern starts anew after the head, which must hold whole patterns.
  if (size < head + 256 || head % 8) return fill_row(y, pattern, bytes);
  fill_row(y, pattern, static_cast<int64_t>(head));
  const auto v = hn::Set(d, pattern);
  size_t i = head;
  for (; i + 64 <= size; i += 64)
    for (size_t j = 0; j < 8; j += lanes) hn::Stream(v, d, reinterpret_cast<uint64_t*>(y + i) + j);
  if (i < size) fill_row(y + i, pattern, static_cast<int64_t>(size - i));
}

template <size_t bytes>
void pick_fixed(const std::byte* x, const int64_t* from, std::byte* y, int64_t n, int64_t py) {
  for (int64_t i = 0; i < n; ++i, y += py) move_fixed<bytes>(x + from[i], y);
}

void pick_rows(const std::byte* x, const int64_t* from, std::byte* y, int64_t n, int64_t py, int64_t bytes) {
  switch (bytes) {
    case 1: return pick_fixed<1>(x, from, y, n, py);
    case 2: return pick_fixed<2>(x, from, y, n, py);
    case 4: return pick_fixed<4>(x, from, y, n, py);
    case 8: return pick_fixed<8>(x, from, y, n, py);
    case 12: return pick_fixed<12>(x, from, y, n, py);
    case 16: return pick_fixed<16>(x, from, y, n, py);
    case 32: return pick_fixed<32>(x, from, y, n, py);
    case 64: return pick_fixed<64>(x, from, y, n, py);
    default: break;
  }
  const auto size = static_cast<size_t>(bytes);
  if (size >= hn::Lanes(hn::ScalableTag<uint8_t>()) && size <= 1024) {
    for (int64_t i = 0; i < n; ++i, y += py) copy_vectors(x + from[i], y, size);
  } else {
    for (int64_t i = 0; i < n; ++i, y += py) std::memcpy(y, x + from[i], size);
  }
}

template <class T>
void framed_elements(const FramedArguments& a) {
  T constant;
  std::memcpy(&constant, &a.constant, sizeof constant);
  const auto bytes = static_cast<size_t>(a.behind - a.before) * sizeof(T);
  const bool vectors = bytes >= hn::Lanes(hn::ScalableTag<uint8_t>()) && bytes <= 1024;
  for (int64_t i = 0; i < a.n; ++i) {
    std::byte* y = a.y + i * a.py;
    if (a.from[i] == kNowhere) {
      fill_row(y, a.constant, a.count * static_cast<int64_t>(sizeof(T)));
      continue;
    }
    const T* x = reinterpret_cast<const T*>(a.x + a.from[i]);
    T* to = reinterpret_cast<T*>(y);
    for (int64_t k = 0; k < a.before; ++k) to[k] = a.places[k] < 0 ? constant : x[a.places[k]];
    const auto* stretch = reinterpret_cast<const std::byte*>(x + a.places[a.before]);
    if (vectors) {
      copy_vectors(stretch, reinterpret_cast<std::byte*>(to + a.before), bytes);
    } else {
      std::memcpy(to + a.before, stretch, bytes);
    }
    for (int64_t k = a.behind; k < a.count; ++k) to[k] = a.places[k] < 0 ? constant : x[a.places[k]];
  }
}

void framed_lines(const FramedArguments& a) {
  switch (a.bytes) {
    case 1: return framed_elements<uint8_t>(a);
    case 2: return framed_elements<uint16_t>(a);
    case 4: return framed_elements<uint32_t>(a);
    default: return framed_elements<uint64_t>(a);
  }
}

// What follows the last element may lie outside of memory, so the last vectors end with it: theirs are the odd places.
template <class T>
void every_second_of(const RowsArguments& a) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* x = reinterpret_cast<const T*>(a.x);
  T* y = reinterpret_cast<T*>(a.y);
  int64_t i = 0;
  hn::Vec<decltype(d)> even, odd;
  for (; i + lanes < a.n; i += lanes) {
    hn::LoadInterleaved2(d, x + 2 * i, even, odd);
    hn::StoreU(even, d, y + i);
  }
  if (a.n > lanes) {
    i = a.n - lanes;
    hn::LoadInterleaved2(d, x + 2 * i - 1, even, odd);
    hn::StoreU(odd, d, y + i);
  } else {
    for (; i < a.n; ++i) y[i] = x[2 * i];
  }
}

void every_second(const RowsArguments& a) {
  switch (a.bytes) {
    case 1: return every_second_of<uint8_t>(a);
    case 2: return every_second_of<uint16_t>(a);
    default: return every_second_of<uint32_t>(a);
  }
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <hwy/cache_control.h>
namespace sparkle::cpu {

const RowMoves* row_moves(std::string_view unit) {
  // One table per unit, filled on first use and never changed.
  static const std::array<std::string_view, 4> units = {"avx512", "avx2", "neon", "sve"};
  static const auto tables = [] {
    std::array<RowMoves, 4> t{};
    for (size_t i = 0; i < t.size(); ++i)
      t[i] = {SPARKLE_PICK(copy_rows, units[i]),       SPARKLE_PICK(stream_rows, units[i]), SPARKLE_PICK(fill_row, units[i]),
              SPARKLE_PICK(stream_fill_row, units[i]), [] { hwy::FlushStream(); },          SPARKLE_PICK(pick_rows, units[i]),
              SPARKLE_PICK(framed_lines, units[i]),    SPARKLE_PICK(every_second, units[i])};
    return t;
  }();
  for (size_t i = 0; i < units.size(); ++i)
    if (units[i] == unit && tables[i].copy) return &tables[i];
  return nullptr;
}

}  // namespace sparkle::cpu
#endif
