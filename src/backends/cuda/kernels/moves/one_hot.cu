// One value where an element's place along an axis is the index there, another one elsewhere.
#include "backends/cuda/kernels/elements/elements.cuh"
#include "backends/cuda/kernels/gemm_index.cuh"
#include "backends/cuda/kernels/moves/scatter_record.h"

using namespace sparkle::cuda;

namespace {

template <class Cell>
SPARKLE_DEVICE void one_hot(const OneHotRecord& record) {
  const auto* values = static_cast<const Cell*>(record.values);
  const Cell off = load_global(values), on = load_global(values + record.value_stride);
  const uint32_t first = block_x() * (kMoveThreads * kMoveSteps) + thread_id();
  SPARKLE_ROLLED
  for (int step = 0; step < kMoveSteps; ++step) {
    uint32_t item = first + static_cast<uint32_t>(step * kMoveThreads);
    if (item >= record.count) return;
    int64_t to = 0, at = 0, place = 0;
    for (int i = record.axes.rank - 1; i >= 0; --i) {
      const auto here = static_cast<int32_t>(fast_divmod(item, record.axes.size[i]));
      to += int64_t{here} * record.axes.y[i];
      at += int64_t{here} * record.axes.x[i];
      place += int64_t{here} * record.place[i];
    }
    const auto type = static_cast<DType>(record.type);
    // What no axis has is no place: numbers above 63 bits, of any size that are no integers' at all.
    bool counts = true;
    int64_t index;
    if (type == DType::f32) {
      const float number = load_global(static_cast<const float*>(record.indices) + at);
      counts = std::fabs(number) < 2147483520.0f;  // false for NaN too
      index = counts ? static_cast<int64_t>(number) : 0;
    } else {
      index = loaded<int64_t>(type, record.indices, at);
      counts = !(type == DType::u64 && index < 0);
    }
    store_global(static_cast<Cell*>(record.y) + to,
                 counts && (index < 0 ? index + record.axis_size : index) == place ? on : off);
  }
}

}  // namespace

SPARKLE_KERNEL(sparkle_one_hot_1, OneHotRecord, kMoveThreads, 8) { one_hot<uint8_t>(record); }
SPARKLE_KERNEL(sparkle_one_hot_2, OneHotRecord, kMoveThreads, 8) { one_hot<uint16_t>(record); }
SPARKLE_KERNEL(sparkle_one_hot_4, OneHotRecord, kMoveThreads, 8) { one_hot<uint32_t>(record); }
SPARKLE_KERNEL(sparkle_one_hot_8, OneHotRecord, kMoveThreads, 8) { one_hot<uint64_t>(record); }
