// Copies between layouts: axes are merged and the move becomes rows, a transposition in tiles, or interleaving of a few planes.
#include <algorithm>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/copy/tiles.h"
#include "backends/cpu/cpu_kernel.h"

namespace sparkle::cpu {
namespace {

class CopyKernel final : public CpuKernel {
 public:
  CopyKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, const RowMoves& rows)
      : schedule_(schedule), rows_(rows), element_(size_of(stage.outputs[0].dtype)), bytes_(stage.outputs[0].bytes()) {
    const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
    stream_ = beyond_caches(device, 2 * bytes_);
    axes_ = move_axes(y.shape, x.layout, y.layout, element_);
    merge_axes(axes_);
    run_ = take_run(axes_, element_);
    if (!plan_tiles() && !plan_picks() && !axes_.empty()) {
      inner_ = axes_.back();
      axes_.pop_back();
      every_second_ = takes_every_second(inner_);
      repeat_ = repeats(inner_);
    }
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const int64_t blocks = tile_ ? blocks_a_ * blocks_b_ : picks_.empty() ? parts_ : blocks_b_;
    const int64_t items = count_of(axes_) * blocks;
    const int tasks = tasks_for(schedule_, *launch.executor, items, bytes_, element_);
    for_each_range(*launch.executor, items, tasks, [&](int64_t begin, int64_t end) {
      Walk walk(axes_, begin / blocks);
      for (int64_t item = begin; item < end; ++item) {
        const std::byte* x = launch.inputs[0] + walk.x;
        std::byte* y = launch.outputs[0] + walk.y;
        if (tile_) {
          run_tile(x, y, item % blocks);
        } else if (!picks_.empty()) {
          run_picks(x, y, item % blocks);
        } else {
          run_rows(x, y, item % blocks);
        }
        if (item % blocks == blocks - 1) walk.next();
      }
      if (stream_) rows_.finish();
    });
  }

 private:
  // Looks for an axis contiguous in x and another contiguous in y, for elements that a register tile can hold.
  bool plan_tiles() {
    if (run_ != 1 && run_ != 2 && run_ != 4 && run_ != 8) return plan_parts();
    const auto contiguous = [&](int64_t MoveAxis::* stride) {
      return std::find_if(axes_.begin(), axes_.end(), [&](const MoveAxis& axis) { return axis.*stride == run_; });
    };
    const auto in_x = contiguous(&MoveAxis::x), in_y = contiguous(&MoveAxis::y);
    if (in_x == axes_.end() || in_y == axes_.end() || in_x == in_y) return plan_parts();
    a_ = *in_x, b_ = *in_y;
    if (a_.y == b_.size * run_) tile_ = interleave(schedule_.unit, run_, b_.size);
    if (!tile_ && b_.x == a_.size * run_) tile_ = deinterleave(schedule_.unit, run_, a_.size);
    const bool planes = tile_ != nullptr;
    // Planes that go on elsewhere after a few elements are not worth a call each.
    if (planes && std::max(a_.size, b_.size) < kFew && plan_picks()) return tile_ = nullptr, true;
    if (!tile_ && std::min(a_.size, b_.size) * run_ >= 16) tile_ = transpose_tiles(schedule_.unit, run_);
    if (!tile_) return plan_parts();
    std::erase_if(
        axes_, [&](const MoveAxis& axis) { return (axis.x == a_.x && axis.y == a_.y) || (axis.x == b_.x && axis.y == b_.y); });
    // A line of 16 elements in b reads 16 rows of x, so those rows (1 KB each for f32) stay in L1 while they are used up, and
    // are long enough for the hardware to fetch ahead. Planes are long and thin.
    block_a_ = planes ? 4096 : 256;
    block_b_ = planes ? 4096 : 512 / run_;
    // Rows of y that do not fill whole lines but follow each other are put together in L1 and leave it as one long row.
    stage_ = stream_ && !planes && a_.y == b_.size * run_ && a_.y % 64 != 0 && a_.y * 16 <= kStage;
    if (stage_) {
      block_b_ = b_.size;
      block_a_ = kStage / a_.y / 16 * 16;
    }
    blocks_a_ = (a_.size + block_a_ - 1) / block_a_;
    blocks_b_ = (b_.size + block_b_ - 1) / block_b_;
    return true;
  }

  bool takes_every_second(const MoveAxis& inner) const {
    return inner.x == 2 * run_ && inner.y == run_ && (run_ == 1 || run_ == 2 || run_ == 4);
  }
  bool repeats(const MoveAxis& inner) const {
    return inner.x == 0 && inner.y == run_ && (run_ == 1 || run_ == 2 || run_ == 4 || run_ == 8);
  }

  // Single elements in an order that changes every few of them, as depth to space leaves them: a table says where each of a
  // dense stretch of y comes from: 0.33 ns an element on a Zen 5, where a call for each few of them took 1.4.
  bool plan_picks() {
    constexpr int64_t kMost = 2048;  // entries, of 8 bytes in L1
    if (run_ > 8 || axes_.empty() || axes_.back().size >= kFew || takes_every_second(axes_.back()) || repeats(axes_.back()))
      return false;
    std::vector<MoveAxis> outer = axes_, inner;
    int64_t count = 1;
    while (!outer.empty() && outer.back().y == count * run_ && count * outer.back().size <= kMost) {
      count *= outer.back().size;
      inner.insert(inner.begin(), outer.back());
      outer.pop_back();
    }
    along_ = {1, 0, 0}, block_b_ = 1;
    if (!outer.empty() && outer.back().y == count * run_ && kMost / count > 1) {
      along_ = outer.back(), block_b_ = kMost / count;
      outer.pop_back();
      inner.insert(inner.begin(), {block_b_, along_.x, along_.y});
    }
    if (count * block_b_ < kFew) return false;
    Walk walk(inner, 0);
    for (int64_t i = 0; i < count * block_b_; ++i, walk.next()) picks_.push_back(walk.x);
    axes_ = std::move(outer);
    chunk_ = count;
    blocks_b_ = (along_.size + block_b_ - 1) / block_b_;
    return true;
  }

  void run_picks(const std::byte* x, std::byte* y, int64_t block) const {
    const int64_t from = block * block_b_, n = std::min(block_b_, along_.size - from);
    rows_.pick(x + from * along_.x, picks_.data(), y + from * along_.y, n * chunk_, run_, run_);
  }

  // One large row and no axes left: cut into parts so that threads can share it.
  bool plan_parts() {
    constexpr int64_t kPart = 262144;
    if (axes_.empty() && run_ > 2 * kPart) {
      parts_ = (run_ + kPart - 1) / kPart;
      part_bytes_ = kPart;
    }
    return false;
  }

  void run_tile(const std::byte* x, std::byte* y, int64_t block) const {
    const int64_t a = block % blocks_a_ * block_a_, b = block / blocks_a_ * block_b_;
    const int64_t na = std::min(block_a_, a_.size - a), nb = std::min(block_b_, b_.size - b);
    x += a * a_.x + b * b_.x;
    y += a * a_.y + b * b_.y;
    if (!stage_) return tile_({x, y, na, nb, b_.x, a_.y, stream_});
    alignas(64) std::byte stage[kStage];
    tile_({x, stage, na, nb, b_.x, a_.y, false});
    rows_.stream({stage, y, 1, 0, 0, na * a_.y});
  }

  void run_rows(const std::byte* x, std::byte* y, int64_t part) const {
    if (repeat_) return (stream_ ? rows_.stream_fill : rows_.fill)(y, pattern_of(x, run_), inner_.size * run_);
    if (every_second_) return rows_.every_second({x, y, inner_.size, 0, 0, run_});
    const int64_t from = part * part_bytes_, bytes = parts_ == 1 ? run_ : std::min(part_bytes_, run_ - from);
    (stream_ ? rows_.stream : rows_.copy)({x + from, y + from, inner_.size, inner_.x, inner_.y, bytes});
  }

  static constexpr int64_t kStage = 16384;
  static constexpr int64_t kFew = 16;  // elements

  LoopSchedule schedule_;
  const RowMoves& rows_;
  int64_t element_, bytes_;
  bool stream_ = false, stage_ = false;
  std::vector<MoveAxis> axes_;  // outer axes
  int64_t run_ = 0;             // bytes that move together
  MoveAxis inner_;              // rows: the axis of the inner loop
  bool repeat_ = false;         // rows: one element fills the inner axis
  bool every_second_ = false;   // rows: the inner axis is dense in y and takes every second element of x
  int64_t parts_ = 1, part_bytes_ = 0;
  TileFunction tile_ = nullptr;
  MoveAxis a_, b_;  // tiles: contiguous in x, in y
  int64_t block_a_ = 0, block_b_ = 0, blocks_a_ = 1, blocks_b_ = 1;
  std::vector<int64_t> picks_;  // where each element of a stretch of y lies in x; empty: no picks
  MoveAxis along_;              // picks: the axis of which a stretch takes block_b_
  int64_t chunk_ = 0;           // picks: elements of one of these
};

}  // namespace

Result<CpuKernelPtr> make_copy(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  const RowMoves* rows = loop ? row_moves(loop->unit) : nullptr;
  if (!loop || loop->variant != "tiles" || !rows)
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no copy variant '" + variant_of(schedule) + "' for unit '" + unit_of(schedule) + "'."};
  if (stage.inputs[0].shape != stage.outputs[0].shape || stage.inputs[0].dtype != stage.outputs[0].dtype)
    return Error{Reason::bad_shape, "A copy needs one shape and one type, not " + stage.inputs[0].shape.to_string() + " and " +
                                        stage.outputs[0].shape.to_string() + "."};
  return CpuKernelPtr(std::make_unique<CopyKernel>(stage, *loop, device, *rows));
}

}  // namespace sparkle::cpu
