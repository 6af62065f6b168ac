// Scatter: data is copied, then the updates follow. Work is cut where no two tasks meet at one place: ScatterElements by the
// lines along its axis, ScatterND within the slices; so updates of one place keep their order. Indices are clamped.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/scatter/one_hot.h"
#include "families/values/indices.h"
#include "families/loops/grain.h"
#include "families/scatter/combine.h"

namespace sparkle::cpu {
namespace {

// n updates from `from` on, to elements `index * moved` apart; strides in elements.
struct Line {
  int64_t n = 0, from = 0, index = 0, moved = 0, size = 1;
};
using LineFunction = void (*)(const Line&, DType, const std::byte* index, const std::byte* from, std::byte* to);
// to[i] meets from[i], i < n.
using SliceFunction = void (*)(const std::byte* from, std::byte* to, int64_t n);

template <ScatterReduction reduction, class T>
void scatter_line(const Line& line, DType type, const std::byte* index, const std::byte* from, std::byte* to) {
  const T* updates = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  const int64_t wide = size_of(type) * line.index;
  for (int64_t i = 0; i < line.n; ++i) {
    T& place = y[clamped_index(load_index(type, index + i * wide), line.size) * line.moved];
    place = combined<reduction>(place, updates[i * line.from]);
  }
}

template <ScatterReduction reduction, class T>
void scatter_slice(const std::byte* from, std::byte* to, int64_t n) {
  const T* updates = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = combined<reduction>(y[i], updates[i]);
}

class ScatterKernel : public CpuKernel {
 public:
  ScatterKernel(const Stage& stage, const LoopSchedule& schedule)
      : schedule_(schedule),
        type_(stage.inputs[1].dtype),
        element_(size_of(stage.outputs[0].dtype)),
        bytes_(stage.outputs[0].bytes()),
        updates_bytes_(stage.inputs[2].bytes()) {}

 protected:
  void copy_data(const CpuLaunch& launch) const {
    constexpr int64_t kPiece = 65536;
    const int64_t pieces = (bytes_ + kPiece - 1) / kPiece;
    // The grain is that of the updates, which may be far fewer.
    const int64_t tasks = moving_tasks(bytes_, pieces, launch.executor->width());
    for_each_range(*launch.executor, pieces, tasks, [&](int64_t first, int64_t last) {
      const int64_t begin = first * kPiece, end = std::min(bytes_, last * kPiece);
      std::memcpy(launch.outputs[0] + begin, launch.inputs[0] + begin, static_cast<size_t>(end - begin));
    });
  }

  LoopSchedule schedule_;
  DType type_;  // of the indices
  int64_t element_, bytes_, updates_bytes_;
};

class ElementsKernel final : public ScatterKernel {
 public:
  ElementsKernel(const Stage& stage, const LoopSchedule& schedule) : ScatterKernel(stage, schedule) {
    const auto& p = get<ScatterParams>(stage.params);
    const TensorDesc &data = stage.inputs[0], &indices = stage.inputs[1];
    for (int i = 0; i < data.shape.size(); ++i) {
      // Updates and indices share shape and layout: the walk counts in elements of both and of y.
      if (i != p.axis) outer_.push_back({indices.shape[i], indices.layout.strides[i], data.layout.strides[i]});
    }
    const int64_t along = indices.layout.strides[p.axis];
    line_ = {indices.shape[p.axis], along, along, data.layout.strides[p.axis], data.shape[p.axis]};
    visit_type(data.dtype, [&]<class T>(T) {
      with_reduction(p.reduction, [&]<ScatterReduction reduction>() { scatter_ = scatter_line<reduction, T>; });
    });
  }

  void run(const CpuLaunch& launch) const override {
    copy_data(launch);
    if (bytes_ == 0 || updates_bytes_ == 0) return;
    const int64_t lines = count_of(outer_), wide = size_of(type_);
    const int tasks = tasks_for(schedule_, *launch.executor, lines, updates_bytes_, element_);
    for_each_range(*launch.executor, lines, tasks, [&](int64_t begin, int64_t end) {
      Walk walk(outer_, begin);
      for (int64_t i = begin; i < end; ++i, walk.next())
        scatter_(line_, type_, launch.inputs[1] + walk.x * wide, launch.inputs[2] + walk.x * element_,
                 launch.outputs[0] + walk.y * element_);
    });
  }

 private:
  std::vector<MoveAxis> outer_;
  Line line_;
  LineFunction scatter_ = nullptr;
};

class TuplesKernel final : public ScatterKernel {
 public:
  TuplesKernel(const Stage& stage, const LoopSchedule& schedule) : ScatterKernel(stage, schedule) {
    const TensorDesc &data = stage.inputs[0], &indices = stage.inputs[1];
    const int outer = indices.shape.size() - 1;
    for (int i = 0; i < outer; ++i) tuples_ *= indices.shape[i];
    for (int64_t i = 0; i < indices.shape[outer]; ++i) axes_.push_back({data.shape[static_cast<int>(i)], 0, 0});
    for (int i = static_cast<int>(axes_.size()); i < data.shape.size(); ++i) slice_ *= data.shape[i];
    for (size_t i = 0; i < axes_.size(); ++i) axes_[i].y = data.layout.strides[static_cast<int>(i)];
    visit_type(data.dtype, [&]<class T>(T) {
      with_reduction(get<ScatterParams>(stage.params).reduction,
                     [&]<ScatterReduction reduction>() { scatter_ = scatter_slice<reduction, T>; });
    });
  }

  void run(const CpuLaunch& launch) const override {
    copy_data(launch);
    if (bytes_ == 0 || updates_bytes_ == 0) return;
    // Every task sees every tuple and does its part of each slice; a part is worth it from 4 KB on.
    const int64_t worth = std::max<int64_t>(1, 4096 / element_),
                  part = schedule_.grain > 0 ? std::min(worth, schedule_.grain) : worth;
    const int64_t most = std::max<int64_t>(1, slice_ / part);
    const int tasks = tasks_for(schedule_, *launch.executor, most, updates_bytes_, element_);
    for_each_range(*launch.executor, slice_, tasks, [&](int64_t begin, int64_t end) {
      const auto length = static_cast<int64_t>(axes_.size());
      for (int64_t tuple = 0; tuple < tuples_; ++tuple) {
        const std::byte* index = launch.inputs[1] + tuple * length * size_of(type_);
        int64_t place = begin;
        for (const MoveAxis& axis : axes_) {
          place += clamped_index(load_index(type_, index), axis.size) * axis.y;
          index += size_of(type_);
        }
        scatter_(launch.inputs[2] + (tuple * slice_ + begin) * element_, launch.outputs[0] + place * element_, end - begin);
      }
    });
  }

 private:
  int64_t tuples_ = 1, slice_ = 1;  // elements of a slice
  std::vector<MoveAxis> axes_;      // those that tuples point into: size, and stride of y in elements
  SliceFunction scatter_ = nullptr;
};

}  // namespace

Result<CpuKernelPtr> make_scatter(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (!loop || loop->variant != "lines")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no scatter variant '" + variant_of(schedule) + "'."};
  bool rows = is_row_major(stage.outputs[0].shape, stage.outputs[0].layout);
  for (const TensorDesc& x : stage.inputs) rows = rows && is_row_major(x.shape, x.layout);
  if (!rows) return Error{Reason::layout_not_served, "Scatter takes row-major operands."};
  const ScatterForm form = get<ScatterParams>(stage.params).form;
  if (form == ScatterForm::one_hot) return make_one_hot(stage, *loop);
  if (!is_index_type(stage.inputs[1].dtype))
    return Error{Reason::type_not_served,
                 "Scatter takes indices of i32 or i64, not " + std::string(name_of(stage.inputs[1].dtype)) + "."};
  if (form == ScatterForm::elements) return CpuKernelPtr(std::make_unique<ElementsKernel>(stage, *loop));
  return CpuKernelPtr(std::make_unique<TuplesKernel>(stage, *loop));
}

}  // namespace sparkle::cpu
