// GatherND: each tuple of indices names a contiguous slice of x. The places of a block of tuples are found first, then copied.
#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/gather/elements.h"
#include "families/gather/gather.h"
#include "families/values/indices.h"

namespace sparkle::cpu {
namespace {

class TuplesKernel final : public CpuKernel {
 public:
  TuplesKernel(const Stage& stage, const LoopSchedule& schedule, const RowMoves& rows)
      : schedule_(schedule), rows_(rows), element_(size_of(stage.outputs[0].dtype)), bytes_(stage.outputs[0].bytes()) {
    const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1];
    const int batch = get<GatherParams>(stage.params).batch_axes, outer = indices.shape.size() - 1;
    empty_ = x.elements() == 0;
    type_ = indices.dtype;
    length_ = indices.shape[outer];
    tuples_ = 1;
    for (int i = 0; i < outer; ++i) tuples_ *= indices.shape[i];
    slice_ = element_;
    for (int i = batch + static_cast<int>(length_); i < x.shape.size(); ++i) slice_ *= x.shape[i];
    int64_t part = slice_;
    for (int i = batch + static_cast<int>(length_) - 1; i >= batch; --i) {
      axes_[static_cast<size_t>(i - batch)] = {x.shape[i], part};
      part *= x.shape[i];
    }
    batch_bytes_ = part;
    int64_t batches = 1;
    for (int i = 0; i < batch; ++i) batches *= x.shape[i];
    per_batch_ = tuples_ / std::max<int64_t>(1, batches);
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0 || empty_) return;
    constexpr int64_t kBlock = 256;
    const int tasks = tasks_for(schedule_, *launch.executor, tuples_, bytes_, element_);
    for_each_range(*launch.executor, tuples_, tasks, [&](int64_t begin, int64_t end) {
      std::array<int64_t, kBlock> from;
      for (int64_t first = begin; first < end; first += kBlock) {
        const int64_t count = std::min(kBlock, end - first);
        for (int64_t i = 0; i < count; ++i) from[static_cast<size_t>(i)] = place_of(launch.inputs[1], first + i);
        rows_.pick(launch.inputs[0], from.data(), launch.outputs[0] + first * slice_, count, slice_, slice_);
      }
    });
  }

 private:
  struct TupleAxis {
    int64_t size = 1, stride = 0;  // in bytes
  };

  // Where in x the slice of a tuple begins.
  int64_t place_of(const std::byte* indices, int64_t tuple) const {
    int64_t place = tuple / per_batch_ * batch_bytes_;
    for (int64_t k = 0; k < length_; ++k) {
      const TupleAxis& axis = axes_[static_cast<size_t>(k)];
      place += clamped_index(load_index(type_, indices + (tuple * length_ + k) * size_of(type_)), axis.size) * axis.stride;
    }
    return place;
  }

  LoopSchedule schedule_;
  const RowMoves& rows_;
  int64_t element_, bytes_;
  bool empty_ = false;
  DType type_ = DType::i64;  // of the indices
  int64_t length_ = 0, tuples_ = 1, per_batch_ = 1, slice_ = 0, batch_bytes_ = 0;
  std::array<TupleAxis, kMaxRank> axes_{};
};

}  // namespace

Result<CpuKernelPtr> make_gather_tuples(const Stage& stage, const LoopSchedule& schedule, const RowMoves& rows) {
  for (const TensorDesc* desc : {&stage.inputs[0], &stage.inputs[1], &stage.outputs[0]})
    if (!is_row_major(desc->shape, desc->layout))
      return Error{Reason::layout_not_served, "Gather by tuples takes row-major operands."};
  return CpuKernelPtr(std::make_unique<TuplesKernel>(stage, schedule, rows));
}

}  // namespace sparkle::cpu
