// The loops around the micro-kernel of a matrix unit: tiles of 32 rows by panels of 32 columns. Rows that lie evenly in memory
// with whole steps of k are read where they are; others are gathered first, once for all panels of a block:
// [step of k][32 rows][64 bytes], zero behind each run of k, so that it does not matter what the weights hold there.
#include "backends/cpu/gemm/integers/integer_matrix.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/gemm/integers/integer_columns.h"
#include "backends/cpu/gemm/integers/integer_pack.h"
#include "backends/cpu/gemm/matrix/matrix_rows.h"
#include "backends/cpu/gemm/row_cursor.h"
#include "backends/cpu/packing_kernel.h"
#include "base/system/per_worker.h"
#include "families/integers/integers.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

class IntegerMatrix final : public PackingKernel {
 public:
  IntegerMatrix(const Stage& stage, const GemmSchedule& schedule, IntegerGeometry geometry, const IntegerMatrixKernels& kernels,
                bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<GemmParams>(stage_.params)),
        schedule_(schedule),
        g_(std::move(geometry)),
        kernels_(kernels),
        signed_left_(stage_.inputs[0].dtype == DType::i8) {
    size_workspace(aligned(g_.copied_bytes), aligned(g_.packed_bytes() + kMatrixOverread));
    for (const RowClass& rows : g_.gemm.classes) {
      rows_.emplace_back(rows.chunks[0], kTileBytes);
      lines_of_tile_ = std::max(lines_of_tile_, rows_.back().lines());
    }
    block_tiles_ = matrix_block_tiles(schedule_, g_.gemm);
  }

  void run(const CpuLaunch& launch) const override {
    const GemmGeometry& g = g_.gemm;
    if (g.n == 0 || g.tiles == 0 || g.instances.empty()) return;
    const IntegerFactors operands = integer_factors(g_, launch, packed_weights(launch));
    Executor& executor = *launch.executor;
    PerWorker<Own> all(executor);
    const MatrixCut cut(g, schedule_, executor.width());
    parallel_for(executor, static_cast<int>(cut.tasks), [&](int task, int worker) {
      Own& own = all.of(worker, [&](Own& made) { prepare(launch, operands, made); });
      kernels_.begin();
      const auto [begin, end] = task_range(cut.total(), cut.tasks, task);
      for (int64_t i = begin; i < end; ++i) block(operands, own, cut.block(i));
      kernels_.end();
    });
  }

 private:
  // What a worker keeps: lists of columns, gathered rows of a block's tiles, and a call for each of these.
  struct Own : IntegerColumns {
    std::unique_ptr<MatrixLine[]> gathered;
    std::vector<std::pair<size_t, IntegerMatrixCall>> tiles;  // class of rows
  };

  std::string weights_key() const override {
    return "integer matrix nr=" + std::to_string(schedule_.nr) + " groups=" + std::to_string(params_.groups) +
           " loader=" + std::string(name_of(params_.loader)) + " type=" + std::string(name_of(stage_.inputs[1].dtype)) + " " +
           weights_place(stage_.inputs[1]);
  }
  void write_weights(const std::byte* from, std::byte* to, Executor& executor) const override {
    pack_weights(g_, kMatrixLanes, 4, reinterpret_cast<const uint8_t*>(from), to, executor);
    std::memset(to + g_.packed_bytes(), 0, static_cast<size_t>(kMatrixOverread));
  }

  void prepare(const CpuLaunch& launch, const IntegerFactors& operands, Own& own) const {
    prepare_columns(stage_, g_, false, launch, operands.b, own);
    own.gathered = std::make_unique_for_overwrite<MatrixLine[]>(static_cast<size_t>(block_tiles_ * lines_of_tile_));
    own.tiles.resize(static_cast<size_t>(block_tiles_));
    for (auto& [row_class, tile] : own.tiles) {
      tile.low = own.common.low, tile.high = own.common.high, tile.y_zero = own.common.y_zero;
    }
  }

  // Tiles [t0, t1) by panels [p0, p1) of an instance, as many tiles at a time as the schedule says: their rows first.
  void block(const IntegerFactors& operands, Own& own, const MatrixBlock& b) const {
    const GemmGeometry& g = g_.gemm;
    const GemmInstance& instance = g.instances[static_cast<size_t>(b.instance)];
    const int64_t columns = g.weights.matrices * g.padded_n, y_bytes = size_of(stage_.outputs[0].dtype);
    for (int64_t t = b.t0; t < b.t1; t += block_tiles_) {
      const int64_t count = std::min(block_tiles_, b.t1 - t);
      for (int64_t i = 0; i < count; ++i) set_rows(operands, own, instance, t + i, i);
      for (int64_t p = b.p0; p < b.p1; ++p) {
        const GemmPanel& panel = g.panels[static_cast<size_t>(p)];
        const int64_t column = instance.weights * g.padded_n + panel.column;
        for (int64_t i = 0; i < count; ++i) {
          auto& [row_class, tile] = own.tiles[static_cast<size_t>(i)];
          tile.operands.b = operands.b + column * g.k;
          tile.correction = own.corrections.get() + static_cast<int64_t>(row_class) * columns + column;
          tile.b_zero = own.b_zero ? own.b_zero.get() + column : nullptr;
          tile.scale = own.scale ? own.scale.get() + column : nullptr;
          tile.columns = panel.columns;
          tile.y_bytes = panel.column * y_bytes;
          kernels_.tile[signed_left_][tile.rows > kTileRows][panel.vectors - 1](tile);
        }
      }
    }
  }

  // The rows of tile t, to call number `slot`.
  void set_rows(const IntegerFactors& operands, Own& own, const GemmInstance& instance, int64_t t, int64_t slot) const {
    auto& [c, tile] = own.tiles[static_cast<size_t>(slot)];
    c = class_of_tile(g_.gemm, t);
    const RowClass& rows = g_.gemm.classes[c];
    const int64_t begin = (t - rows.first_tile) * kMatrixRows;
    tile.rows = static_cast<int>(std::min<int64_t>(kMatrixRows, rows.rows - begin));
    RowCursor cursor;
    cursor.seek(rows, begin);
    const bool in_place = rows_[c].whole_steps() && tile.rows % kTileRows == 0 && cursor.straight() >= tile.rows;
    const uint8_t* a[kMatrixRows];
    const int64_t y_bytes = size_of(stage_.outputs[0].dtype);
    for (int r = 0; r < tile.rows; ++r, cursor.advance(1)) {
      a[r] = operands.a + (instance.a + cursor.a);
      tile.y[r] = operands.y + (instance.y + cursor.y) * y_bytes;
    }
    if (in_place) {
      rows_[c].read_in_place(reinterpret_cast<const std::byte*>(a[0]), tile.rows, rows.axes[3].a, tile.operands);
    } else {
      MatrixLine* to = own.gathered.get() + slot * lines_of_tile_;
      rows_[c].gather(a, tile.rows, to, tile.operands, [](const uint8_t* from, std::byte* line, int64_t count) {
        if (count == kTileBytes) {  // a copy of known length is no call
          std::memcpy(line, from, kTileBytes);
        } else {
          std::memcpy(line, from, static_cast<size_t>(count));
        }
      });
    }
    if (!own.wants_row_sums()) return;
    for (int r = 0; r < tile.rows; ++r) {
      const auto sum = static_cast<uint32_t>(tile.row_sum[r] = sum_of_row(a[r], rows.chunks[0]));
      tile.row_correction[r] = own.b_zero ? 0 : static_cast<int32_t>(0u - sum * static_cast<uint32_t>(own.common.b_zero));
    }
  }

  int32_t sum_of_row(const uint8_t* a, const std::vector<GemmRun>& runs) const {
    int32_t sum = 0;
    for (const GemmRun& run : runs) {
      const uint8_t* from = a + run.a;
      if (signed_left_) {
        for (int64_t i = 0; i < run.length; ++i) sum += static_cast<int8_t>(from[i]);
      } else {
        for (int64_t i = 0; i < run.length; ++i) sum += from[i];
      }
    }
    return sum;
  }

  GemmParams params_;
  GemmSchedule schedule_;
  IntegerGeometry g_;
  const IntegerMatrixKernels& kernels_;
  bool signed_left_;
  std::vector<MatrixRows> rows_;  // per class
  int64_t block_tiles_ = 1, lines_of_tile_ = kMatrixRows;
};

}  // namespace

Result<CpuKernelPtr> make_integer_matrix(const Stage& stage, const GemmSchedule& schedule, const IntegerMatrixKernels& kernels,
                                         bool constant_weights) {
  SPARKLE_CHECK(check_integer_stage(stage.inputs, stage.outputs[0], get<GemmParams>(stage.params).epilogue));
  if (stage.inputs[1].dtype == DType::i16)
    return Error{Reason::type_not_served, "The CPU's gemm kernels multiply by 8-bit integers, not i16."};
  SPARKLE_CHECK(check_matrix_schedule(schedule));
  SPARKLE_TRY(geometry, integer_geometry(stage, schedule, kMatrixLanes, /*signed_left=*/true));
  return CpuKernelPtr(std::make_unique<IntegerMatrix>(stage, schedule, std::move(geometry), kernels, constant_weights));
}

}  // namespace sparkle::cpu
