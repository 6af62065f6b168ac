// Gather: slices of x as rows. Each index is clamped to the axis, so wrong data never reads outside of x.
#include <algorithm>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/gather/elements.h"
#include "families/gather/gather.h"
#include "families/values/indices.h"

namespace sparkle::cpu {
namespace {

class GatherKernel final : public CpuKernel {
 public:
  GatherKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows)
      : schedule_(schedule), rows_(rows), element_(size_of(stage.outputs[0].dtype)), bytes_(stage.outputs[0].bytes()) {
    const TensorDesc &x = stage.inputs[0], &indices = stage.inputs[1], &y = stage.outputs[0];
    const int axis = get<GatherParams>(stage.params).axis, index_rank = indices.shape.size();
    stream_ = beyond_caches(device, 2 * bytes_);
    size_ = x.shape[axis];
    stride_ = x.layout.strides[axis] * element_;
    wide_ = indices.dtype == DType::i64;
    // Outer axes of a slice, then the axes of the indices (whose x is an offset into the indices), then the slice itself.
    std::vector<MoveAxis> slice;
    for (int i = 0; i < axis; ++i)
      outer_.push_back({y.shape[i], x.layout.strides[i] * element_, y.layout.strides[i] * element_});
    for (int i = 0; i < index_rank; ++i)
      picks_.push_back(
          {y.shape[axis + i], indices.layout.strides[i] * size_of(indices.dtype), y.layout.strides[axis + i] * element_});
    Dims shape, from, to;
    for (int i = axis + index_rank; i < y.shape.size(); ++i) {
      shape.push_back(y.shape[i]);
      from.push_back(x.layout.strides[i - index_rank + 1]);
      to.push_back(y.layout.strides[i]);
    }
    slice_ = move_axes(shape, {{}, from}, {{}, to}, element_);
    merge_axes(slice_);
    run_ = take_run(slice_, element_);
    if (!slice_.empty()) {
      inner_ = slice_.back();
      slice_.pop_back();
    }
    merge_axes(outer_);
    // The same few small elements of many lines: where they lie is looked up once for all lines.
    merge_axes(picks_);
    listed_ = slice_.empty() && inner_.size == 1 && run_ <= kSmall && picks_.size() == 1 && picks_[0].size <= kMostListed &&
              count_of(outer_) > 1;
  }
  int64_t workspace_bytes() const override { return listed_ ? picks_[0].size * 8 : 0; }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0 || size_ == 0) return;
    if (listed_) return run_listed(launch);
    const int64_t picks = count_of(picks_), items = count_of(outer_) * picks, pieces = count_of(slice_);
    const int tasks = tasks_for(schedule_, *launch.executor, items, bytes_, element_);
    for_each_range(*launch.executor, items, tasks, [&](int64_t begin, int64_t end) {
      Walk outer(outer_, begin / picks), pick(picks_, begin % picks);
      const std::byte* x = source(launch, outer, pick);
      for (int64_t item = begin; item < end; ++item) {
        std::byte* y = launch.outputs[0] + outer.y + pick.y;
        pick.next();
        if (item % picks == picks - 1) outer.next();
        // Slices lie anywhere: the next one is fetched while this one is copied.
        const std::byte* next = item + 1 < end ? source(launch, outer, pick) : x;
        for (int64_t at = 0; at < std::min<int64_t>(run_, kAhead); at += 64) __builtin_prefetch(next + at);
        Walk walk(slice_, 0);
        for (int64_t piece = 0; piece < pieces; ++piece, walk.next())
          (stream_ ? rows_.stream : rows_.copy)({x + walk.x, y + walk.y, inner_.size, inner_.x, inner_.y, run_});
        x = next;
      }
      if (stream_) rows_.finish();
    });
  }

 private:
  static constexpr int64_t kSmall = 16, kMostListed = 4096;  // bytes of an element, elements of a line
  static constexpr int64_t kAhead = 4096;  // bytes of the next slice to fetch early; further on the hardware has noticed

  void run_listed(const CpuLaunch& launch) const {
    const MoveAxis& picks = picks_[0];
    auto* places = reinterpret_cast<int64_t*>(launch.workspace);
    for (int64_t i = 0; i < picks.size; ++i) places[i] = offset_of(launch.inputs[1] + i * picks.x);
    const int64_t lines = count_of(outer_);
    for_each_range(*launch.executor, lines, tasks_for(schedule_, *launch.executor, lines, bytes_, element_),
                   [&](int64_t begin, int64_t end) {
                     Walk outer(outer_, begin);
                     for (int64_t line = begin; line < end; ++line, outer.next())
                       rows_.pick(launch.inputs[0] + outer.x, places, launch.outputs[0] + outer.y, picks.size, picks.y, run_);
                   });
  }

  // Of the slice in x that the index at `place` asks for.
  int64_t offset_of(const std::byte* place) const {
    const int64_t index = wide_ ? *reinterpret_cast<const int64_t*>(place) : *reinterpret_cast<const int32_t*>(place);
    return clamped_index(index, size_) * stride_;
  }
  // Where the slice begins that the index at `pick` asks for.
  const std::byte* source(const CpuLaunch& launch, const Walk& outer, const Walk& pick) const {
    return launch.inputs[0] + outer.x + offset_of(launch.inputs[1] + pick.x);
  }

  LoopSchedule schedule_;
  const RowMoves& rows_;
  int64_t element_, bytes_;
  bool stream_ = false, wide_ = false, listed_ = false;
  int64_t size_ = 0, stride_ = 0;  // of the gathered axis in x
  std::vector<MoveAxis> outer_, picks_, slice_;
  MoveAxis inner_;
  int64_t run_ = 0;
};

}  // namespace

Result<CpuKernelPtr> make_gather(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  const RowMoves* rows = loop ? row_moves(loop->unit) : nullptr;
  const GatherForm form = get<GatherParams>(stage.params).form;
  if (!loop || !rows || loop->variant != (form == GatherForm::elements ? "elements" : "slices"))
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no gather variant '" + variant_of(schedule) + "' for unit '" + unit_of(schedule) + "'."};
  const DType type = stage.inputs[1].dtype;
  if (!is_index_type(type))
    return Error{Reason::type_not_served, "Gather takes indices of i32 or i64, not " + std::string(name_of(type)) + "."};
  if (form == GatherForm::elements) return make_gather_elements(stage, *loop);
  if (form == GatherForm::tuples) return make_gather_tuples(stage, *loop, *rows);
  return CpuKernelPtr(std::make_unique<GatherKernel>(stage, *loop, device, *rows));
}

}  // namespace sparkle::cpu
