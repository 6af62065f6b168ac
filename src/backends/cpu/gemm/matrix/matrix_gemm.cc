// A gemm stage on tiles of bf16. Rows are rounded as they are gathered, once for all panels of a block: [step of k][32 rows][32
// elements]. Weights are packed [k / 2][column][2], the channels of each tap rounded up to pairs. Sums pass through a buffer on
// the stack to the general epilogue of the vector unit's kernels.
#include "backends/cpu/gemm/matrix/matrix_gemm.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "backends/cpu/conversions.h"
#include "backends/cpu/gemm/gemm_nest.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/gemm/matrix/matrix_rows.h"
#include "backends/cpu/gemm/row_cursor.h"
#include "backends/cpu/packing_kernel.h"
#include "base/round_up.h"
#include "base/system/per_worker.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kStep = kTileBytes / 2;  // elements of k

// Runs in terms of packed weights: each tap's channels in pairs, so that a run of several taps ends where the first does if
// they are odd.
std::vector<GemmRun> paired_runs(const std::vector<GemmRun>& runs, int64_t depth) {
  if (depth % 2 == 0) return runs;
  std::vector<GemmRun> result;
  for (const GemmRun& run : runs)
    for (int64_t i = 0; i < run.length; i += depth) {
      const int64_t tap = (run.k + i) / depth;
      result.push_back({run.a + i, tap * (depth + 1), std::min(depth, run.length - i)});
    }
  return result;
}

class MatrixGemm final : public PackingKernel {
 public:
  MatrixGemm(const Stage& stage, GemmSchedule schedule, GemmGeometry geometry, const MatrixKernels& kernels,
             const TileKernels& finishing, Conversions rounding, bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<GemmParams>(stage_.params)),
        schedule_(std::move(schedule)),
        g_(std::move(geometry)),
        kernels_(kernels),
        finish_(finishing.finish),
        rounding_(rounding) {
    workspace_ = gemm_workspace(params_, g_);
    depth_ = g_.weights.k_count[3];
    packed_k_ = g_.k / std::max<int64_t>(1, depth_) * rounded_up(depth_, 2);
    size_workspace(workspace_.bytes, aligned(packed_weights_bytes() + kMatrixOverread));
    for (const RowClass& rows : g_.classes) {
      rows_.emplace_back(paired_runs(rows.chunks[0], depth_), kStep, 2);
      lines_of_tile_ = std::max(lines_of_tile_, rows_.back().lines());
    }
    block_tiles_ = matrix_block_tiles(schedule_, g_);
  }

  void run(const CpuLaunch& launch) const override {
    if (g_.n == 0 || g_.tiles == 0 || g_.instances.empty()) return;
    const GemmOperands operands = gemm_operands(stage_, g_, workspace_, launch, packed_weights(launch));
    Executor& executor = *launch.executor;
    PerWorker<Own> all(executor);
    const MatrixCut cut(g_, schedule_, executor.width());
    parallel_for(executor, static_cast<int>(cut.tasks), [&](int task, int worker) {
      Own& own = all.of(worker, [&](Own& made) {
        made.gathered = std::make_unique_for_overwrite<MatrixLine[]>(static_cast<size_t>(block_tiles_ * lines_of_tile_));
        made.tiles.resize(static_cast<size_t>(block_tiles_));
      });
      kernels_.begin();
      const auto [begin, end] = task_range(cut.total(), cut.tasks, task);
      for (int64_t i = begin; i < end; ++i) block(operands, own, cut.block(i));
      kernels_.end();
    });
  }

 private:
  struct Tile {
    MatrixOperands operands;
    int rows = 0;
    float* y[kMatrixRows];
    const float* residual[2][kMatrixRows];
  };
  struct Own {
    std::unique_ptr<MatrixLine[]> gathered;
    std::vector<Tile> tiles;
  };

  int64_t packed_weights_bytes() const { return g_.weights.matrices * g_.padded_n * packed_k_ * 2; }

  std::string weights_key() const override {
    return "matrix gemm bf16 nr=" + std::to_string(schedule_.nr) + " groups=" + std::to_string(params_.groups) +
           " loader=" + std::string(name_of(params_.loader)) + " " + weights_place(stage_.inputs[1]);
  }

  void write_weights(const std::byte* from, std::byte* to, Executor& executor) const override {
    const int64_t panels = static_cast<int64_t>(g_.panels.size()), total = g_.weights.matrices * panels;
    std::memset(to + packed_weights_bytes(), 0, static_cast<size_t>(kMatrixOverread));
    const int64_t tasks = moving_tasks(packed_weights_bytes(), total, executor.width());
    for_each_range(executor, total, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack_panel(reinterpret_cast<const float*>(from), i / panels, i % panels, to);
    });
  }

  void pack_panel(const float* from, int64_t matrix, int64_t number, std::byte* packed) const {
    const GemmWeights& w = g_.weights;
    const GemmPanel& panel = g_.panels[static_cast<size_t>(number)];
    const int64_t width = panel.vectors * kMatrixLanes;
    from += panel.column * w.n_stride + w.matrix_at(matrix);
    auto* to = reinterpret_cast<uint16_t*>(packed + (matrix * g_.padded_n + panel.column) * packed_k_ * 2);
    float row[2][2 * kMatrixLanes] = {};
    uint16_t rounded[2][2 * kMatrixLanes];
    for_each_tap(w, from, [&](const float* tap) {
      for (int64_t c = 0; c < depth_; c += 2, to += 2 * width) {
        for (int64_t i = 0; i < 2; ++i) {
          for (int64_t n = 0; n < panel.columns; ++n)
            row[i][n] = c + i < depth_ ? tap[(c + i) * w.k_strides[3] + n * w.n_stride] : 0.0f;
          rounding_.store(row[i], width, reinterpret_cast<std::byte*>(rounded[i]));
        }
        for (int64_t n = 0; n < width; ++n) to[2 * n] = rounded[0][n], to[2 * n + 1] = rounded[1][n];
      }
    });
  }

  // Tiles [t0, t1) by panels [p0, p1) of an instance, as many tiles at a time as the schedule says: their rows first.
  void block(const GemmOperands& o, Own& own, const MatrixBlock& b) const {
    const GemmInstance& instance = g_.instances[static_cast<size_t>(b.instance)];
    for (int64_t t = b.t0; t < b.t1; t += block_tiles_) {
      const int64_t count = std::min(block_tiles_, b.t1 - t);
      for (int64_t i = 0; i < count; ++i) set_rows(o, own, instance, t + i, i);
      for (int64_t p = b.p0; p < b.p1; ++p)
        for (int64_t i = 0; i < count; ++i)
          multiply(o, own.tiles[static_cast<size_t>(i)], instance, g_.panels[static_cast<size_t>(p)]);
    }
  }

  // The rows of tile t, to tile number `slot`.
  void set_rows(const GemmOperands& o, Own& own, const GemmInstance& instance, int64_t t, int64_t slot) const {
    const size_t c = class_of_tile(g_, t);
    const RowClass& rows = g_.classes[c];
    Tile& tile = own.tiles[static_cast<size_t>(slot)];
    const int64_t begin = (t - rows.first_tile) * kMatrixRows;
    tile.rows = static_cast<int>(std::min<int64_t>(kMatrixRows, rows.rows - begin));
    RowCursor cursor;
    cursor.seek(rows, begin);
    const float* a[kMatrixRows];
    for (int r = 0; r < tile.rows; ++r, cursor.advance(1)) {
      a[r] = o.a + (instance.a + cursor.a);
      tile.y[r] = o.y + (instance.y + cursor.y);
      for (size_t i = 0; i < 2; ++i)
        tile.residual[i][r] = o.residual[i] ? o.residual[i] + (instance.residual[i] + cursor.residual[i]) : nullptr;
    }
    MatrixLine* to = own.gathered.get() + slot * lines_of_tile_;
    rows_[c].gather(a, tile.rows, to, tile.operands,
                    [&](const float* from, std::byte* line, int64_t count) { rounding_.store(from, count, line); });
  }

  void multiply(const GemmOperands& o, Tile& tile, const GemmInstance& instance, const GemmPanel& panel) const {
    alignas(64) float sums[kMatrixRows * 2 * kMatrixLanes];
    const int64_t width = panel.vectors * kMatrixLanes;
    tile.operands.b = static_cast<const std::byte*>(o.b) + (instance.weights * g_.padded_n + panel.column) * packed_k_ * 2;
    kernels_.tile[tile.rows > kTileRows][panel.vectors - 1](tile.operands, sums);

    const Epilogue& e = params_.epilogue;
    FinishCall call{};
    call.sums_stride = width, call.columns = panel.columns;
    call.scale = o.scale ? o.scale + instance.column + panel.column : nullptr;
    call.bias = o.bias + instance.column + panel.column;
    call.residuals_before = e.residuals_before, call.residuals_after = e.residuals_after;
    call.activation = e.activation;
    call.activation_a = static_cast<float>(e.a), call.activation_b = static_cast<float>(e.b);
    for (size_t i = 0; i < 2; ++i) call.residual_strides[i] = g_.residual_strides[i];
    for (int first = 0; first < tile.rows; first += kMaxCallRows) {
      call.rows = std::min(kMaxCallRows, tile.rows - first);
      call.sums = sums + first * width;
      for (int r = 0; r < call.rows; ++r) {
        call.y[r] = tile.y[first + r] + panel.column;
        for (int i = 0; i < e.residuals(); ++i)
          call.residual[i][r] = tile.residual[i][first + r] + panel.column * g_.residual_strides[i];
      }
      finish_(call);
    }
  }

  GemmParams params_;
  GemmSchedule schedule_;
  GemmGeometry g_;
  const MatrixKernels& kernels_;
  void (*finish_)(const FinishCall& call);
  Conversions rounding_;
  GemmWorkspace workspace_;
  int64_t depth_ = 0, packed_k_ = 0;  // channels of a tap; all of k in the packed weights
  std::vector<MatrixRows> rows_;      // per class
  int64_t block_tiles_ = 1, lines_of_tile_ = kMatrixRows;
};

}  // namespace

const MatrixKernels* matrix_kernels_of([[maybe_unused]] std::string_view unit) {
#if defined(__x86_64__)
  static const MatrixKernels kernels = make_matrix_kernels_bf16<AmxTiles>();
  if (unit == "amx-bf16") return &kernels;
#endif
  return nullptr;
}

Result<CpuKernelPtr> make_matrix_gemm(const Stage& stage, const GemmSchedule& schedule, const MatrixKernels& kernels,
                                      std::string_view vector_unit, bool constant_weights) {
  SPARKLE_CHECK(check_matrix_schedule(schedule));
  const auto& params = get<GemmParams>(stage.params);
  if (params.operands != OperandType::bf16)
    return Error{Reason::type_not_served, "The CPU's tiles of bf16 round the factors of products, which stay " +
                                              std::string(name_of(params.operands)) + " in this stage."};
  const TileKernels* finishing = tile_kernels_of(vector_unit);
  const Conversions rounding = conversions(vector_unit, DType::bf16);
  if (!finishing || !finishing->finish || !rounding.store || kMatrixLanes % finishing->lanes != 0)
    return Error{Reason::backend_lacks_variant,
                 "The CPU's tiles of bf16 need vectors that finish their sums, not '" + std::string(vector_unit) + "'."};
  GemmSchedule whole = schedule;
  whole.kc = 0;
  SPARKLE_TRY(geometry, gemm_geometry(stage, whole, kMatrixLanes));
  return CpuKernelPtr(
      std::make_unique<MatrixGemm>(stage, schedule, std::move(geometry), kernels, *finishing, rounding, constant_weights));
}

}  // namespace sparkle::cpu
