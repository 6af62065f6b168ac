// Sums, means, extrema and norms over rows; kind: the number of ReduceKind. Floats in fp32, doubles in theirs; integers modulo 2^64, which agrees with
// sums modulo their own size, with a sign and without.
#include "backends/cuda/kernels/rows/rows.cuh"

using namespace sparkle::cuda;

namespace {

enum Kind : uint8_t { kSum, kMean, kMax, kMin, kProduct, kL1, kL2, kSumSquare, kLogSum, kLogSumExp };

template <class T>
SPARKLE_DEVICE T larger(T a, T b) {
  return a > b || a != a ? a : b;
}
template <class T>
SPARKLE_DEVICE T smaller(T a, T b) {
  return a < b || a != a ? a : b;
}
// The extrema of nothing: the lowest and highest of the type.
template <class T>
SPARKLE_DEVICE T lowest(DType type) {
  if constexpr (!kIsInteger<T>) return -INFINITY;
  switch (type) {
    case DType::i8: return static_cast<T>(INT8_MIN);
    case DType::i16: return static_cast<T>(INT16_MIN);
    case DType::i32: return static_cast<T>(INT32_MIN);
    case DType::i64: return static_cast<T>(INT64_MIN);
    default: return 0;
  }
}
template <class T>
SPARKLE_DEVICE T highest(DType type) {
  if constexpr (!kIsInteger<T>) return INFINITY;
  switch (type) {
    case DType::i8: return static_cast<T>(INT8_MAX);
    case DType::u8: return static_cast<T>(UINT8_MAX);
    case DType::i16: return static_cast<T>(INT16_MAX);
    case DType::u16: return static_cast<T>(UINT16_MAX);
    case DType::i32: return static_cast<T>(INT32_MAX);
    case DType::u32: return static_cast<T>(UINT32_MAX);
    case DType::i64: return static_cast<T>(INT64_MAX);
    case DType::boolean: return 1;
    default: return static_cast<T>(UINT64_MAX);
  }
}

template <class T>
SPARKLE_DEVICE void reduce_rows(const RowsRecord& record) {
  const RowOfThread row(record);
  const auto type = static_cast<DType>(record.type[kRowX]);
  const auto value = [&](const RowPlaces& p) { return row_value<T>(record, kRowX, record.x, p); };
  const uint8_t kind = record.kind;
  const auto start = [&]() -> T {
    return kind == kMax || kind == kLogSumExp ? lowest<T>(type) : kind == kMin ? highest<T>(type) : kind == kProduct ? T(1) : T(0);
  };
  const auto join = [&](T a, T b) -> T {
    return kind == kMax || kind == kLogSumExp ? larger(a, b) : kind == kMin ? smaller(a, b) : kind == kProduct ? a * b : a + b;
  };
  T result = start();
  for_each_element(record, row, [&](const RowPlaces& p) {
    const T v = value(p);
    result = join(result, kind == kL1 ? (v < 0 ? T(0) - v : v) : kind == kL2 || kind == kSumSquare ? v * v : v);
  });
  result = over_row(record, row, result, join);
  if constexpr (!kIsInteger<T>) {
    if (kind == kLogSumExp) {  // the same in all threads of a launch
      const T shift = result - result == 0 ? result : T(0);  // 0 of what is no number, or infinite
      T sum = 0;
      for_each_element(record, row, [&](const RowPlaces& p) { sum += std::exp(value(p) - shift); });
      sum = over_row(record, row, sum, [](T a, T b) { return a + b; });
      result = std::log(sum) + shift;
    }
    if (kind == kL2) result = std::sqrt(result);
    if (kind == kLogSum) result = std::log(result);
  }
  if (kind == kMean && (!kIsInteger<T> || record.elements > 0)) result = result / static_cast<T>(record.elements);
  if (row.valid(record) && row.place == 0)
    stored(static_cast<DType>(record.type[kRowY]), record.y, row.origin.at[kRowY], result);
}

}  // namespace

SPARKLE_KERNEL(sparkle_reduce_rows_f32, RowsRecord, kRowsThreads, 8) { reduce_rows<float>(record); }
SPARKLE_KERNEL(sparkle_reduce_rows_f64, RowsRecord, kRowsThreads, 8) { reduce_rows<double>(record); }
SPARKLE_KERNEL(sparkle_reduce_rows_i64, RowsRecord, kRowsThreads, 8) { reduce_rows<int64_t>(record); }
SPARKLE_KERNEL(sparkle_reduce_rows_u64, RowsRecord, kRowsThreads, 8) { reduce_rows<uint64_t>(record); }
