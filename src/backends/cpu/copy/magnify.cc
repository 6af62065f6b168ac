// A line of x becomes some equal lines of y, which are written together. Lines that bypass the caches are made in L1 first.
#include "backends/cpu/copy/magnify.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "backends/cpu/copy/magnify_rows.h"

namespace sparkle::cpu {
namespace {

// How often each index occurs in a row where that is the same for all of x's; 0: it is not.
int64_t times_of(const std::vector<int64_t>& index, int64_t in) {
  const auto out = static_cast<int64_t>(index.size());
  if (in == 0 || out % in != 0) return 0;
  const int64_t times = out / in;
  for (int64_t i = 0; i < out; ++i)
    if (index[static_cast<size_t>(i)] != i / times) return 0;
  return times;
}

class MagnifyKernel final : public CpuKernel {
 public:
  MagnifyKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows,
                const MagnifyArguments& line, std::vector<MoveAxis> lines)
      : schedule_(schedule),
        rows_(rows),
        magnify_(magnify_rows(schedule.unit)),
        element_(size_of(stage.outputs[0].dtype)),
        bytes_(stage.outputs[0].bytes()),
        line_(line),
        lines_(std::move(lines)) {
    const int64_t row = line.n * line.times * line.bytes;
    stage_ = row >= kLeastStaged && row <= kStage && beyond_caches(device, stage.inputs[0].bytes() + bytes_);
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const int64_t lines = count_of(lines_), size = lines_.back().size;
    const int tasks = tasks_for(schedule_, *launch.executor, lines, bytes_, element_);
    for_each_range(*launch.executor, lines, tasks, [&](int64_t begin, int64_t end) {
      // Stretches of the innermost axis of lines, each in one call.
      for (int64_t at = begin; at < end;) {
        const int64_t count = std::min(end - at, size - at % size);
        const Walk walk(lines_, at);
        MagnifyArguments lines_here = line_;
        lines_here.x = launch.inputs[0] + walk.x, lines_here.y = launch.outputs[0] + walk.y, lines_here.rows = count;
        stage_ ? staged(lines_here) : magnify_(lines_here);
        at += count;
      }
      if (stage_) rows_.finish();
    });
  }

 private:
  static constexpr int64_t kStage = 16384;
  static constexpr int64_t kLeastStaged = 320;  // shorter rows are not streamed

  void staged(const MagnifyArguments& lines) const {
    alignas(64) std::byte buffer[kStage];
    MagnifyArguments one = lines;
    one.rows = one.copies = 1, one.y = buffer;
    const int64_t row = lines.n * lines.times * lines.bytes;
    for (int64_t r = 0; r < lines.rows; ++r, one.x += lines.px) {
      magnify_(one);
      rows_.stream({buffer, lines.y + r * lines.copies * lines.py, lines.copies, 0, lines.py, row});
    }
  }

  LoopSchedule schedule_;
  const RowMoves& rows_;
  MagnifyFunction magnify_;
  int64_t element_, bytes_;
  bool stage_ = false;
  MagnifyArguments line_;        // of one call, but for its place
  std::vector<MoveAxis> lines_;  // of x; y: where their copies begin
};

}  // namespace

CpuKernelPtr make_magnify(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows,
                          const std::vector<IndexedAxis>& tables) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  const int64_t element = size_of(y.dtype);
  struct Axis {
    MoveAxis move;  // size: of x
    int64_t times;
  };
  std::vector<Axis> axes;
  for (int i = 0; i < y.shape.size(); ++i) {
    const int64_t times = times_of(tables[static_cast<size_t>(i)].index, x.shape[i]);
    if (times == 0) return nullptr;
    if (y.shape[i] != 1) axes.push_back({{x.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element}, times});
  }
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return std::abs(a.move.y) > std::abs(b.move.y); });
  int64_t run = element;
  while (!axes.empty() && axes.back().times == 1 && axes.back().move.x == run && axes.back().move.y == run) {
    run *= axes.back().move.size;
    axes.pop_back();
  }
  if (axes.empty()) return nullptr;  // a copy
  const Axis line = axes.back();
  axes.pop_back();
  if (line.move.y != run || (line.move.size > 1 && line.move.x != run)) return nullptr;
  if (run <= 8 && line.times > kMostTimes) return nullptr;
  MagnifyArguments arguments{nullptr, nullptr, 0, 0, 0, 1, line.move.size, line.times, run};
  std::vector<MoveAxis> lines;
  for (const Axis& axis : axes) {
    const bool innermost = &axis == &axes.back();
    if (!innermost && axis.times != 1) return nullptr;
    if (innermost) arguments.copies = axis.times, arguments.py = axis.move.y;
    lines.push_back({axis.move.size, axis.move.x, axis.move.y * axis.times});
  }
  merge_axes(lines);
  if (lines.empty()) lines.push_back({1, 0, 0});
  arguments.px = lines.back().x;
  if (arguments.copies == 1) arguments.py = lines.back().y;
  return std::make_unique<MagnifyKernel>(stage, schedule, device, rows, arguments, std::move(lines));
}

}  // namespace sparkle::cpu
