// OneHot: y is filled with `off`, then each index sets one `on`. Indices outside of the axis set nothing.
#include "backends/cpu/scatter/one_hot.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "backends/cpu/copy/moves.h"
#include "families/scatter/scatter.h"
#include "families/values/typed.h"

namespace sparkle::cpu {
namespace {

// The place along an axis of `size`, or -1.
template <class I>
int64_t place_of(I value, int64_t size) {
  if constexpr (is_float_type<I>) {
    const auto index = std::trunc(static_cast<double>(to_computed(value))), length = static_cast<double>(size);
    if (!(index >= -length && index < length)) return -1;
    return static_cast<int64_t>(index < 0 ? index + length : index);
  } else {
    if (value >= I{0}) return std::cmp_less(value, size) ? static_cast<int64_t>(value) : -1;
    return std::cmp_less(value, -size) ? -1 : static_cast<int64_t>(value) + size;
  }
}

// `outer` blocks of [size][inner] from as many blocks of [inner] indices.
struct Blocks {
  int64_t outer, size, inner;
};
using BlocksFunction = void (*)(const Blocks&, const std::byte* indices, const std::byte* values, std::byte* y);

template <class I, class T>
void set_blocks(const Blocks& b, const std::byte* indices, const std::byte* values, std::byte* out) {
  const I* index = reinterpret_cast<const I*>(indices);
  const T off = reinterpret_cast<const T*>(values)[0], on = reinterpret_cast<const T*>(values)[1];
  T* y = reinterpret_cast<T*>(out);
  for (int64_t o = 0; o < b.outer; ++o, y += b.size * b.inner, index += b.inner) {
    std::fill_n(y, b.size * b.inner, off);
    for (int64_t i = 0; i < b.inner; ++i)
      if (const int64_t place = place_of(index[i], b.size); place >= 0) y[place * b.inner + i] = on;
  }
}

class OneHotKernel final : public CpuKernel {
 public:
  OneHotKernel(const Stage& stage, const LoopSchedule& schedule)
      : schedule_(schedule), bytes_(stage.outputs[0].bytes()), index_(size_of(stage.inputs[0].dtype)) {
    const TensorDesc& y = stage.outputs[0];
    const int axis = get<ScatterParams>(stage.params).axis;
    blocks_ = {1, y.shape[axis], 1};
    for (int i = 0; i < axis; ++i) blocks_.outer *= y.shape[i];
    for (int i = axis + 1; i < y.shape.size(); ++i) blocks_.inner *= y.shape[i];
    element_ = size_of(y.dtype);
    visit_type(stage.inputs[0].dtype, [&]<class I>(I) {
      set_ = element_ == 1   ? set_blocks<I, uint8_t>
             : element_ == 2 ? set_blocks<I, uint16_t>
             : element_ == 4 ? set_blocks<I, uint32_t>
                             : set_blocks<I, uint64_t>;
    });
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const int tasks = tasks_for(schedule_, *launch.executor, blocks_.outer, bytes_, element_);
    for_each_range(*launch.executor, blocks_.outer, tasks, [&](int64_t begin, int64_t end) {
      const Blocks part{end - begin, blocks_.size, blocks_.inner};
      set_(part, launch.inputs[0] + begin * blocks_.inner * index_, launch.inputs[1],
           launch.outputs[0] + begin * blocks_.size * blocks_.inner * element_);
    });
  }

 private:
  LoopSchedule schedule_;
  int64_t bytes_, index_, element_ = 1;
  Blocks blocks_{};
  BlocksFunction set_ = nullptr;
};

}  // namespace

Result<CpuKernelPtr> make_one_hot(const Stage& stage, const LoopSchedule& schedule) {
  return CpuKernelPtr(std::make_unique<OneHotKernel>(stage, schedule));
}

}  // namespace sparkle::cpu
