// f16 by the unit's own instructions, bf16 by shifts, the narrow types by tables and their bits, the others by loops that the
// compiler vectorises for each unit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conversions.cc"
#include "backends/cpu/simd/simd.h"
// after simd.h: compiled once per target
#include <bit>
#include <cstring>

#include "backends/cpu/conversions.h"
#include "backends/cpu/simd/lanes-inl.h"
#include "families/values/convert.h"

HWY_BEFORE_NAMESPACE();
namespace sparkle::cpu::HWY_NAMESPACE {
#if SPARKLE_SIMD
namespace hn = hwy::HWY_NAMESPACE;

void load_f16(const std::byte* from, int64_t count, float* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* x = reinterpret_cast<const hwy::float16_t*>(from);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, x + i)), d, to + i);
  if (i == count) return;
  HWY_ALIGN hwy::float16_t last[HWY_MAX_BYTES / 4] = {};
  std::memcpy(last, x + i, static_cast<size_t>(count - i) * 2);
  store_lanes(hn::PromoteTo(d, hn::Load(half, last)), d, to + i, count - i);
}

void store_f16(const float* from, int64_t count, std::byte* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* y = reinterpret_cast<hwy::float16_t*>(to);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, from + i)), half, y + i);
  if (i == count) return;
  HWY_ALIGN hwy::float16_t last[HWY_MAX_BYTES / 4];
  hn::Store(hn::DemoteTo(half, load_lanes(d, from + i, count - i)), half, last);
  std::memcpy(y + i, last, static_cast<size_t>(count - i) * 2);
}

void load_bf16(const std::byte* from, int64_t count, float* to) {
  const auto* x = reinterpret_cast<const uint16_t*>(from);
  for (int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16);
}

void store_bf16(const float* from, int64_t count, std::byte* to) {
  auto* y = reinterpret_cast<uint16_t*>(to);
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    y[i] = static_cast<uint16_t>((nan ? 0x7fc00000u : rounded) >> 16);
  }
}

template <class T>
void load(const std::byte* from, int64_t count, float* to) {
  const T* x = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(x[i]);
}

template <class T>
void store(const float* from, int64_t count, std::byte* to) {
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i] = converted<T>(from[i]);
}

void load_bool(const std::byte* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] != std::byte{0} ? 1.0f : 0.0f;
}

void store_bool(const float* from, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<std::byte>(from[i] != 0);
}

template <DType type>
void load_narrow(const std::byte* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = narrow::kFloatOf<type>[static_cast<size_t>(from[i])];
}

template <DType type>
void store_narrow(const float* from, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = narrowed<type>(from[i]);
}

Conversions find(DType type) {
  switch (type) {
    case DType::f32: return {load<float>, store<float>};
    case DType::f64: return {load<double>, store<double>};
    case DType::f16: return {load_f16, store_f16};
    case DType::bf16: return {load_bf16, store_bf16};
    case DType::i8: return {load<int8_t>, store<int8_t>};
    case DType::u8: return {load<uint8_t>, store<uint8_t>};
    case DType::i16: return {load<int16_t>, store<int16_t>};
    case DType::u16: return {load<uint16_t>, store<uint16_t>};
    case DType::i32: return {load<int32_t>, store<int32_t>};
    case DType::u32: return {load<uint32_t>, store<uint32_t>};
    case DType::i64: return {load<int64_t>, store<int64_t>};
    case DType::u64: return {load<uint64_t>, store<uint64_t>};
    case DType::boolean: return {load_bool, store_bool};
    default: break;
  }
  Conversions found;
  with_narrow(type, [&]<DType kType> { found = {load_narrow<kType>, store_narrow<kType>}; });
  return found;
}
#endif
}  // namespace sparkle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparkle::cpu {
namespace {

constexpr int64_t kBlock = 256;

// Elements of `size` bytes, `from_stride` and `to_stride` bytes apart.
template <class T>
void move(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, sizeof(T));
}
void move(int64_t size, const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t count) {
  switch (size) {
    case 1: return move<uint8_t>(from, from_stride, to, to_stride, count);
    case 2: return move<uint16_t>(from, from_stride, to, to_stride, count);
    case 4: return move<uint32_t>(from, from_stride, to, to_stride, count);
    default: return move<uint64_t>(from, from_stride, to, to_stride, count);
  }
}

}  // namespace

Conversions conversions(std::string_view unit, DType type) {
  Conversions (*const found)(DType) = SPARKLE_PICK(find, unit);
  return found ? found(type) : Conversions{};
}

void load_floats(const Conversions& c, DType type, const std::byte* from, int64_t stride, int64_t count, float* to) {
  if (stride == 1) return c.load(from, count, to);
  const int64_t size = size_of(type);
  alignas(64) std::byte block[kBlock * 8];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t part = count - i < kBlock ? count - i : kBlock;
    move(size, from + i * stride * size, stride * size, block, size, part);
    c.load(block, part, to + i);
  }
}

void store_floats(const Conversions& c, DType type, const float* from, int64_t count, std::byte* to, int64_t stride) {
  if (stride == 1) return c.store(from, count, to);
  const int64_t size = size_of(type);
  alignas(64) std::byte block[kBlock * 8];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t part = count - i < kBlock ? count - i : kBlock;
    c.store(from + i, part, block);
    move(size, block, size, to + i * stride * size, stride * size, part);
  }
}

}  // namespace sparkle::cpu
#endif
