#include "backends/cpu/gemm/matrix/matrix_rows.h"

#include <algorithm>
#include <string>

#include "base/round_up.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {

MatrixRows::MatrixRows(const std::vector<GemmRun>& runs, int64_t step, int64_t group) : element_(kTileBytes / step) {
  int64_t length = 0;  // of the gathered run so far, which goes on where the weights do
  int64_t next = -1;
  const auto end_run = [&] {
    if (gathered_.empty()) return;
    MatrixRun& run = gathered_.back();
    run.steps = divided(length, step);
    lines_ += run.steps * kMatrixRows;
    const int64_t at = length % step * element_;
    if (at != 0) rests_.push_back({lines_ - kMatrixRows, at, kTileBytes - at});
  };
  for (const GemmRun& run : runs) {
    whole_ = whole_ && run.length % step == 0;
    in_place_.push_back({run.a * element_, run.k * element_, run.length / step});
    if (run.k != next) {
      end_run();
      gathered_.push_back({lines_ * kTileBytes, run.k * element_, 0});
      length = 0;
    }
    next = run.k + rounded_up(run.length, group);
    for (int64_t i = 0; i < run.length;) {
      const int64_t at = length % step, count = std::min(run.length - i, step - at);
      pieces_.push_back({run.a + i, lines_ + length / step * kMatrixRows, at * element_, count});
      i += count, length += count;
    }
    if (const int64_t zeros = rounded_up(length, group) - length; zeros > 0) {
      rests_.push_back({lines_ + length / step * kMatrixRows, length % step * element_, zeros * element_});
      length += zeros;
    }
  }
  end_run();
}

void MatrixRows::read_in_place(const std::byte* a, int rows, int64_t stride, MatrixOperands& operands) const {
  operands.a[0] = a;
  operands.a[1] = rows > kTileRows ? a + kTileRows * stride * element_ : a;
  operands.a_stride = stride * element_, operands.a_step = kTileBytes;
  operands.runs = in_place_.data(), operands.run_count = static_cast<int64_t>(in_place_.size());
}

MatrixCut::MatrixCut(const GemmGeometry& g, const GemmSchedule& schedule, int64_t width)
    : instances_(static_cast<int64_t>(g.instances.size())), tiles_(g.tiles), panels_(static_cast<int64_t>(g.panels.size())) {
  const int64_t wanted = tasks_of(schedule.grain, g.outputs, g.outputs, width);
  const int64_t each = divided(wanted, instances_);
  row_blocks_ = std::min(schedule.order == GemmOrder::rows ? tiles_ : divided(tiles_, matrix_block_tiles(schedule, g)), each);
  column_blocks_ = std::min(panels_, divided(each, row_blocks_));
  if (row_blocks_ * column_blocks_ < each) row_blocks_ = std::min(tiles_, divided(each, column_blocks_));
  tasks = instances_ >= wanted ? wanted : total();
}

MatrixBlock MatrixCut::block(int64_t i) const {
  const int64_t blocks = row_blocks_ * column_blocks_, row = i % blocks / column_blocks_, column = i % column_blocks_;
  return {i / blocks, row * tiles_ / row_blocks_, (row + 1) * tiles_ / row_blocks_, column * panels_ / column_blocks_,
          (column + 1) * panels_ / column_blocks_};
}

size_t class_of_tile(const GemmGeometry& g, int64_t tile) {
  size_t c = 0;
  while (tile >= g.classes[c].first_tile + g.classes[c].tiles) ++c;
  return c;
}

int64_t matrix_block_tiles(const GemmSchedule& schedule, const GemmGeometry& g) {
  if (schedule.order == GemmOrder::rows) return 1;
  const int64_t tiles = schedule.mc > 0 ? divided(schedule.mc, kMatrixRows) : g.tiles;
  return std::clamp<int64_t>(tiles, 1, std::max<int64_t>(1, g.tiles));
}

Status check_matrix_schedule(const GemmSchedule& s) {
  if (s.mr == kMatrixRows && s.nr >= 1 && s.nr <= 2) return ok();
  return Error{Reason::backend_lacks_variant, "The CPU's gemm kernels have no tile of " + std::to_string(s.mr) + " rows by " +
                                                  std::to_string(s.nr) + " vectors for the unit '" + s.unit + "'."};
}

}  // namespace sparkle::cpu
