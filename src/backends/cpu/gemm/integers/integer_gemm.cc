// A gemm stage on 8-bit integers compiled for the CPU's units of dot products. What is added to their sums beside the products:
// integer_columns.h.
#include "backends/cpu/gemm/integers/integer_gemm.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "backends/cpu/gemm/integers/integer_columns.h"
#include "backends/cpu/gemm/integers/integer_matrix.h"
#include "backends/cpu/gemm/integers/integer_pack.h"
#include "backends/cpu/gemm/integers/integer_tile.h"
#include "backends/cpu/gemm/row_cursor.h"
#include "backends/cpu/packing_kernel.h"
#include "base/system/per_worker.h"
#include "families/gemm/gemm.h"
#include "families/integers/integers.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kRowsThatStay = int64_t{128} << 10;  // half of the smallest L2

class IntegerGemm final : public PackingKernel {
 public:
  IntegerGemm(const Stage& stage, const GemmSchedule& schedule, IntegerGeometry geometry, const IntegerTileKernels& tiles,
              bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<GemmParams>(stage_.params)),
        schedule_(schedule),
        g_(std::move(geometry)),
        tiles_(tiles) {
    size_workspace(aligned(g_.copied_bytes), aligned(g_.packed_bytes()));
    for (const RowClass& rows : g_.gemm.classes) {
      std::vector<GemmRun>& joined = joined_.emplace_back();
      for (const GemmRun& run : rows.chunks[0]) {
        if (!joined.empty() && joined.back().k + joined.back().length == run.k) {
          joined.back().length += run.length;
        } else {
          joined.push_back(run);
        }
      }
    }
  }

  void run(const CpuLaunch& launch) const override {
    if (g_.gemm.n == 0 || g_.gemm.tiles == 0 || g_.gemm.instances.empty()) return;
    loop(launch, integer_factors(g_, launch, packed_weights(launch)));
  }

 private:
  // What a worker keeps: what belongs to columns, and its rows of a tile.
  struct Lists : IntegerColumns {
    std::unique_ptr<int16_t[]> wide;
  };

  std::string weights_key() const override {
    return "integer gemm lanes=" + std::to_string(tiles_.lanes) + " nr=" + std::to_string(schedule_.nr) +
           " group=" + std::to_string(tiles_.group) + " groups=" + std::to_string(params_.groups) +
           " loader=" + std::string(name_of(params_.loader)) + " type=" + std::string(name_of(stage_.inputs[1].dtype)) + " " +
           weights_place(stage_.inputs[1]);
  }
  void write_weights(const std::byte* from, std::byte* to, Executor& executor) const override {
    pack_weights(g_, tiles_.lanes, tiles_.group, reinterpret_cast<const uint8_t*>(from), to, executor);
  }

  void prepare(const CpuLaunch& launch, const IntegerFactors& operands, Lists& lists) const {
    if (tiles_.widen) lists.wide = std::make_unique_for_overwrite<int16_t[]>(static_cast<size_t>(schedule_.mr * g_.gemm.k));
    prepare_columns(stage_, g_, tiles_.signed_left, launch, operands.b, lists);
  }

  void loop(const CpuLaunch& launch, const IntegerFactors& operands) const {
    const GemmGeometry& g = g_.gemm;
    Executor& executor = *launch.executor;
    PerWorker<Lists> all(executor);
    const int64_t instances = static_cast<int64_t>(g.instances.size()), panels = static_cast<int64_t>(g.panels.size());
    const int64_t wanted = tasks_of(schedule_.grain, g.outputs, g.outputs, executor.width());
    const int64_t each = (wanted + instances - 1) / instances;
    // Weights that are swept once per block go to one thread each, where the rows stay in any L2.
    const bool columns_first = schedule_.order == GemmOrder::columns && g.tiles * schedule_.mr * g.k <= kRowsThatStay;
    int64_t row_blocks = std::min(g.tiles, each), column_blocks = std::min(panels, (each + row_blocks - 1) / row_blocks);
    if (columns_first) {
      column_blocks = std::min(panels, each), row_blocks = std::min(g.tiles, (each + column_blocks - 1) / column_blocks);
      // As many for each worker, where that takes no more than twice as many.
      const int64_t width = executor.width(), step = width / std::gcd(width, column_blocks);
      const int64_t even = (row_blocks + step - 1) / step * step;
      if (each > 1 && even <= std::min(g.tiles, 2 * row_blocks)) row_blocks = even;
    }
    const int64_t blocks = row_blocks * column_blocks, total = instances * blocks;
    const int64_t tasks = instances >= wanted ? wanted : total;
    parallel_for(executor, static_cast<int>(tasks), [&](int task, int worker) {
      const Lists& lists = all.of(worker, [&](Lists& own) { prepare(launch, operands, own); });
      const auto [begin, end] = task_range(total, tasks, task);
      for (int64_t i = begin; i < end; ++i) {
        const GemmInstance& instance = g.instances[static_cast<size_t>(i / blocks)];
        const int64_t row = i % blocks / column_blocks, column = i % column_blocks;
        const int64_t t0 = row * g.tiles / row_blocks, t1 = (row + 1) * g.tiles / row_blocks;
        const int64_t p0 = column * panels / column_blocks, p1 = (column + 1) * panels / column_blocks;
        if (schedule_.order == GemmOrder::rows) {
          sweep(operands, lists, instance, t0, t1, p0, p1);
        } else {
          for (int64_t p = p0; p < p1; ++p) sweep(operands, lists, instance, t0, t1, p, p + 1);
        }
      }
    });
  }

  // Tiles [t0, t1) by panels [p0, p1), tiles outside.
  void sweep(const IntegerFactors& operands, const Lists& lists, const GemmInstance& instance, int64_t t0, int64_t t1,
             int64_t p0, int64_t p1) const {
    const GemmGeometry& g = g_.gemm;
    IntegerTileCall tile{};
    tile.wide = lists.wide.get(), tile.wide_stride = g.k;
    tile.low = lists.common.low, tile.high = lists.common.high, tile.y_zero = lists.common.y_zero;
    const int64_t y_bytes = size_of(stage_.outputs[0].dtype), columns = g.weights.matrices * g.padded_n;
    for (size_t c = 0; c < g.classes.size(); ++c) {
      const RowClass& rows = g.classes[c];
      const int64_t first = std::max(t0, rows.first_tile) - rows.first_tile;
      const int64_t last = std::min(t1, rows.first_tile + rows.tiles) - rows.first_tile;
      if (first >= last) continue;
      // The sum of a row as the tiles see it: the padding of its channels counts as nothing.
      const int64_t depth = rows.steps[0] / g_.padded_depth * g_.depth;
      const auto moved = static_cast<int32_t>(tiles_.signed_left ? 128 * depth : 0);
      const std::vector<GemmRun>& runs = rows.chunks[0];
      RowCursor cursor;
      int64_t row = first * rows.rows / rows.tiles;
      cursor.seek(rows, row);
      for (int64_t t = first; t < last; ++t) {
        const int64_t end = (t + 1) * rows.rows / rows.tiles;
        const int count = static_cast<int>(end - row);
        std::byte* y[kMaxTileRows];
        for (int r = 0; r < count; ++r, cursor.advance(1)) {
          tile.a[r] = operands.a + (instance.a + cursor.a);
          y[r] = operands.y + (instance.y + cursor.y) * y_bytes;
        }
        tile.runs = runs.data(), tile.run_count = static_cast<int64_t>(runs.size());
        if (lists.wants_row_sums()) {
          tiles_.row_sums(tile, count);
          for (int r = 0; r < count; ++r) {
            const auto sum = static_cast<uint32_t>(tile.row_sum[r] -= moved);
            if (!lists.b_zero)
              tile.row_correction[r] = static_cast<int32_t>(0u - sum * static_cast<uint32_t>(lists.common.b_zero));
          }
        }
        if (tiles_.widen) {
          tiles_.widen(tile, count, lists.wide.get());
          tile.runs = joined_[c].data(), tile.run_count = static_cast<int64_t>(joined_[c].size());
        }
        row = end;
        for (int64_t p = p0; p < p1; ++p) {
          const GemmPanel& panel = g.panels[static_cast<size_t>(p)];
          const int64_t column = instance.weights * g.padded_n + panel.column;
          tile.b = reinterpret_cast<const int8_t*>(operands.b) + column * g.k;
          tile.correction = lists.corrections.get() + static_cast<int64_t>(c) * columns + column;
          tile.b_zero = lists.b_zero ? lists.b_zero.get() + column : nullptr;
          tile.scale = lists.scale ? lists.scale.get() + column : nullptr;
          tile.columns = panel.columns;
          for (int r = 0; r < count; ++r) tile.y[r] = y[r] + panel.column * y_bytes;
          tiles_.tile[count - 1][panel.vectors - 1](tile);
        }
      }
    }
  }

  GemmParams params_;
  GemmSchedule schedule_;
  IntegerGeometry g_;
  const IntegerTileKernels& tiles_;
  std::vector<std::vector<GemmRun>>
      joined_;  // per class the runs of rows that were widened: they end where the weights' gaps are
};

}  // namespace

Result<CpuKernelPtr> make_integer_gemm(const Stage& stage, const GemmSchedule& schedule, bool constant_weights) {
  const auto& params = get<GemmParams>(stage.params);
  SPARKLE_CHECK(check_integer_stage(stage.inputs, stage.outputs[0], params.epilogue));
  if (const IntegerMatrixKernels* kernels = integer_matrix_kernels_of(schedule.unit))
    return make_integer_matrix(stage, schedule, *kernels, constant_weights);
  const IntegerTileKernels* tiles = integer_tile_kernels_of(schedule.unit);
  if (!tiles)
    return Error{Reason::backend_lacks_variant,
                 "The CPU's gemm kernels have no tile of 8-bit integers for the unit '" + schedule.unit + "'."};
  if (schedule.mr < 1 || schedule.mr > tiles->max_rows || schedule.nr < 1 || schedule.nr > tiles->max_vectors)
    return Error{Reason::backend_lacks_variant, "The CPU's gemm kernels have no tile of " + std::to_string(schedule.mr) +
                                                    " rows by " + std::to_string(schedule.nr) +
                                                    " vectors of 8-bit integers for "
                                                    "the unit '" +
                                                    schedule.unit + "'."};
  SPARKLE_TRY(geometry, integer_geometry(stage, schedule, tiles->lanes));
  return CpuKernelPtr(std::make_unique<IntegerGemm>(stage, schedule, std::move(geometry), *tiles, constant_weights));
}

}  // namespace sparkle::cpu
