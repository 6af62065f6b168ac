// Axes that are not indexed melt into a run of bytes; the innermost indexed axis makes a line of segments (constant, forward,
// repeated, backward); outer axes pick the line of x.
#include "backends/cpu/copy/indexed.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backends/cpu/copy/magnify_rows.h"
#include "families/values/element.h"

namespace sparkle::cpu {
namespace {

// `count` runs from `out` on: source index `from`, from + step, ...; from -1 is the constant.
struct Segment {
  int64_t out, count, from, step;
};

struct IndexAxis {
  MoveAxis move;  // size: of y
  std::vector<int64_t> index;
  bool identity;
};

std::vector<Segment> segments_of(const std::vector<int64_t>& index) {
  std::vector<Segment> segments;
  for (size_t i = 0; i < index.size(); ++i) {
    if (!segments.empty()) {
      Segment& last = segments.back();
      const int64_t step = index[i] - index[i - 1];
      const bool constant = index[i] < 0 && last.from < 0;
      const bool follows = index[i] >= 0 && last.from >= 0 && std::abs(step) <= 1 && (last.count == 1 || step == last.step);
      if (constant || follows) {
        ++last.count;
        last.step = constant ? 0 : step;
        continue;
      }
    }
    segments.push_back({static_cast<int64_t>(i), 1, index[i], 1});
  }
  return segments;
}

class IndexedKernel final : public CpuKernel {
 public:
  IndexedKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows,
                std::vector<IndexedAxis> tables, double value)
      : schedule_(schedule),
        rows_(rows),
        magnify_(magnify_rows(schedule.unit)),
        element_(size_of(stage.outputs[0].dtype)),
        bytes_(stage.outputs[0].bytes()) {
    const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
    std::byte constant[8];
    store_element(y.dtype, value, constant);
    pattern_ = pattern_of(constant, element_);
    stream_ = beyond_caches(device, x.bytes() + bytes_);
    std::vector<IndexAxis> axes;
    for (int i = 0; i < y.shape.size(); ++i) {
      IndexedAxis& table = tables[static_cast<size_t>(i)];
      if (y.shape[i] == 1 && table.identity) continue;
      axes.push_back({{y.shape[i], x.layout.strides[i] * element_, y.layout.strides[i] * element_},
                      std::move(table.index),
                      table.identity});
    }
    std::sort(axes.begin(), axes.end(),
              [](const IndexAxis& a, const IndexAxis& b) { return std::abs(a.move.y) > std::abs(b.move.y); });
    run_ = element_;
    while (!axes.empty() && axes.back().identity && axes.back().move.x == run_ && axes.back().move.y == run_) {
      run_ *= axes.back().move.size;
      axes.pop_back();
    }
    if (axes.empty()) axes.push_back({{1, run_, run_}, {0}, true});
    line_ = axes.back().move;
    plan_line(axes.back().index);
    plan_frame(axes.back().index);
    axes.pop_back();
    stage_ = stream_ && line_.y == run_ && line_.size * run_ <= kStage / 4;
    for (const IndexAxis& axis : axes) {
      outer_.push_back({axis.move.size, 0, axis.move.y});
      offsets_.emplace_back();
      for (int64_t index : axis.index) offsets_.back().push_back(index < 0 ? kNowhere : index * axis.move.x);
    }
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const int64_t lines = count_of(outer_);
    if (behind_ > before_) return run_framed(launch, lines);
    const int tasks = tasks_for(schedule_, *launch.executor, lines, bytes_, element_);
    for_each_range(*launch.executor, lines, tasks, [&](int64_t begin, int64_t end) {
      Walk walk(outer_, begin);
      // Short lines are put together in L1 and leave it as one long row.
      alignas(64) std::byte stage[kStage];
      std::byte* staged = nullptr;  // where the staged bytes belong
      int64_t filled = 0;
      for (int64_t i = begin; i < end; ++i, walk.next()) {
        int64_t from = 0;
        for (size_t axis = 0; axis < outer_.size() && from != kNowhere; ++axis) {
          const int64_t offset = offsets_[axis][static_cast<size_t>(walk.index(axis))];
          from = offset == kNowhere ? kNowhere : from + offset;
        }
        std::byte* y = launch.outputs[0] + walk.y;
        std::byte* to = y;
        if (stage_) {
          if (filled + line_.size * run_ > kStage || staged + filled != y) {
            if (filled > 0) rows_.stream({stage, staged, 1, 0, 0, filled});
            staged = y, filled = 0;
          }
          to = stage + filled;
          filled += line_.size * run_;
        }
        if (from == kNowhere) {
          fill(to, line_.size);
        } else {
          run_line(launch.inputs[0] + from, to);
        }
      }
      if (filled > 0) rows_.stream({stage, staged, 1, 0, 0, filled});
      if (stream_) rows_.finish();
    });
  }

 private:
  static constexpr int64_t kStage = 8192;

  void plan_line(const std::vector<int64_t>& index) {
    const bool constant = std::find_if(index.begin(), index.end(), [](int64_t i) { return i < 0; }) != index.end();
    segments_ = segments_of(index);
    // Short segments are not worth their overhead: each run is then picked on its own.
    if (constant || index.size() >= 4 * segments_.size()) return;
    for (int64_t i : index) picks_.push_back(i * line_.x);
    if (run_ != element_ || line_.x != run_ || line_.y != run_) return;
    for (int64_t times = 2; times <= kMostTimes; ++times) {
      bool all = line_.size % times == 0;
      for (size_t i = 0; i < index.size() && all; ++i) all = index[i] == static_cast<int64_t>(i) / times;
      if (all) times_ = times;
    }
  }

  // One stretch of neighbours and few elements beside it: what padding and windows of planes are.
  void plan_frame(const std::vector<int64_t>& index) {
    constexpr int64_t kLeastStretch = 8, kMostBeside = 32;
    if (stream_ || run_ != element_ || line_.x != run_ || line_.y != run_) return;
    for (const Segment& s : segments_) {
      if (s.from < 0 || s.step != 1 || s.count < kLeastStretch || line_.size - s.count > kMostBeside) continue;
      before_ = s.out, behind_ = s.out + s.count, places_ = index;
    }
  }

  // Stretches of the innermost outer axis, each in one call.
  void run_framed(const CpuLaunch& launch, int64_t lines) const {
    const int64_t size = outer_.empty() ? 1 : outer_.back().size, here = 0;
    const int tasks = tasks_for(schedule_, *launch.executor, lines, bytes_, element_);
    for_each_range(*launch.executor, lines, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        const int64_t count = std::min(end - at, size - at % size);
        const Walk walk(outer_, at);
        int64_t from = 0;
        for (size_t axis = 0; axis + 1 < outer_.size() && from != kNowhere; ++axis) {
          const int64_t offset = offsets_[axis][static_cast<size_t>(walk.index(axis))];
          from = offset == kNowhere ? kNowhere : from + offset;
        }
        std::byte* y = launch.outputs[0] + walk.y;
        if (from == kNowhere) {
          for (int64_t i = 0; i < count; ++i) fill(y + i * outer_.back().y, line_.size);
        } else {
          const int64_t* offsets = outer_.empty() ? &here : offsets_.back().data() + walk.index(outer_.size() - 1);
          rows_.framed({launch.inputs[0] + from, offsets, y, count, outer_.empty() ? 0 : outer_.back().y, element_,
                        places_.data(), line_.size, before_, behind_, pattern_});
        }
        at += count;
      }
    });
  }

  void fill(std::byte* y, int64_t count) const {
    const auto function = stream_ && !stage_ ? rows_.stream_fill : rows_.fill;
    if (line_.y == run_) return function(y, pattern_, count * run_);
    for (int64_t i = 0; i < count; ++i) function(y + i * line_.y, pattern_, run_);
  }

  void run_line(const std::byte* x, std::byte* y) const {
    if (times_ > 1) return magnify_({x, y, 1, 0, 0, 1, line_.size / times_, times_, run_});
    if (!picks_.empty()) return rows_.pick(x, picks_.data(), y, line_.size, line_.y, run_);
    for (const Segment& s : segments_) {
      std::byte* to = y + s.out * line_.y;
      if (s.from < 0) {
        fill(to, s.count);
        continue;
      }
      const bool whole = s.step == 1 && line_.x == run_ && line_.y == run_;
      const RowsArguments rows = whole ? RowsArguments{x + s.from * line_.x, to, 1, 0, 0, s.count * run_}
                                       : RowsArguments{x + s.from * line_.x, to, s.count, s.step * line_.x, line_.y, run_};
      (stream_ && !stage_ ? rows_.stream : rows_.copy)(rows);
    }
  }

  LoopSchedule schedule_;
  const RowMoves& rows_;
  MagnifyFunction magnify_;
  int64_t element_, bytes_;
  uint64_t pattern_ = 0;
  bool stream_ = false, stage_ = false;
  int64_t run_ = 0;                // bytes that move together
  MoveAxis line_;                  // the innermost indexed axis
  std::vector<Segment> segments_;  // how a line is made
  std::vector<int64_t> picks_;     // or: where each run of a line comes from
  int64_t times_ = 1;              // or: each element this many times in a row
  std::vector<int64_t> places_;    // or: all places, of which [before_, behind_) follow each other
  int64_t before_ = 0, behind_ = 0;
  std::vector<MoveAxis> outer_;
  std::vector<std::vector<int64_t>> offsets_;  // per outer axis and index: bytes into x
};

}  // namespace

CpuKernelPtr make_indexed(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows,
                          std::vector<IndexedAxis> axes, double value) {
  return std::make_unique<IndexedKernel>(stage, schedule, device, rows, std::move(axes), value);
}

}  // namespace sparkle::cpu
