#include "backends/cpu/gemm/gemm_nest.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm_cut.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/gemm/row_cursor.h"
#include "families/gemm/gemm.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

struct Nest {
  const GemmGeometry& g;
  const GemmSchedule& schedule;
  const Epilogue& epilogue;
  const TileKernels& tiles;
  const GemmOperands& operands;
  bool fast;  // the micro-kernel's own epilogue serves (whole panels)
  TileCall defaults{};
  FinishCall finish_defaults{};

  // Tiles of an instance in order, class after class.
  class TileWalk {
   public:
    TileWalk(const Nest& nest, const GemmInstance& instance, int64_t tile) : nest_(nest), instance_(instance) {
      const auto& classes = nest.g.classes;
      while (tile >= classes[class_].first_tile + classes[class_].tiles) ++class_;
      tile_ = tile - classes[class_].first_tile;
      start();
    }
    const RowClass& rows() const { return nest_.g.classes[class_]; }
    // Sets the row pointers of a call and steps to the next tile; takes two tiles at once where `pair` allows it and their
    // rows lie at one stride.
    int take(TileCall& call, bool pair) {
      const GemmOperands& o = nest_.operands;
      const RowAxis& axis = rows().axes[3];
      int64_t end = row_ + size_of_tile(tile_);
      taken_ = 1;
      if (pair && tile_ + 1 < rows().tiles) {
        const int64_t both = end + size_of_tile(tile_ + 1);
        if (both - row_ <= cursor_.straight()) end = both, taken_ = 2;
      }
      call.a_stride = axis.a;
      const int count = static_cast<int>(end - row_);
      row_ = end;
      tile_ += taken_;
      if (one_axis_) {  // no counters, no branches: as many pointers as there is room for
        const float* a = o.a + (instance_.a + cursor_.a);
        float* y = o.y + (instance_.y + cursor_.y);
        for (int i = 0; i < kMaxTileRows; ++i) call.a[i] = a + i * axis.a, call.y[i] = y + i * axis.y;
        if (count > kMaxTileRows)
          for (int i = kMaxTileRows; i < kMaxCallRows; ++i) call.a[i] = a + i * axis.a, call.y[i] = y + i * axis.y;
        cursor_.slide(count);
        return count;
      }
      for (int first = 0; first < count;) {
        const int part = static_cast<int>(std::min<int64_t>(count - first, cursor_.straight()));
        const float* a = o.a + (instance_.a + cursor_.a);
        float* y = o.y + (instance_.y + cursor_.y);
        for (int i = 0; i < part; ++i) call.a[first + i] = a + i * axis.a, call.y[first + i] = y + i * axis.y;
        for (int r = 0; r < nest_.defaults.residuals; ++r) {
          const float* from = o.residual[r] + (instance_.residual[r] + cursor_.residual[r]);
          for (int i = 0; i < part; ++i) call.residual[r][first + i] = from + i * axis.residual[r];
        }
        cursor_.advance(part);
        first += part;
      }
      return count;
    }
    // Tiles of the last call.
    int64_t taken() const { return taken_; }
    // Enters the next class once this one is done; false at the end.
    bool settle() {
      if (tile_ < rows().tiles) return true;
      do {
        if (++class_ >= nest_.g.classes.size()) return false;
      } while (rows().tiles == 0);
      tile_ = 0;
      start();
      return true;
    }

   private:
    // Rows as even as they can be, one more in the first tiles; sums instead of a division per tile, which short sums would
    // feel.
    int64_t size_of_tile(int64_t tile) const { return least_ + (tile < longer_); }
    void start() {
      least_ = rows().rows / rows().tiles, longer_ = rows().rows % rows().tiles;
      row_ = tile_ * least_ + std::min(tile_, longer_);
      cursor_.seek(rows(), row_);
      const auto& axes = rows().axes;
      one_axis_ = axes[0].count * axes[1].count * axes[2].count == 1 && nest_.defaults.residuals == 0;
    }
    const Nest& nest_;
    const GemmInstance& instance_;
    size_t class_ = 0;
    int64_t tile_ = 0, row_ = 0, taken_ = 1;
    int64_t least_ = 0, longer_ = 0;
    bool one_axis_ = false;
    RowCursor cursor_;
  };

  void multiply(const GemmInstance& instance, const RowClass& rows, int chunk, const GemmPanel& panel, int count,
                float* partial, TileCall& call) const {
    const auto& runs = rows.chunks[static_cast<size_t>(chunk)];
    const int64_t width = panel.vectors * tiles.lanes;
    call.runs = runs.data();
    call.run_count = static_cast<int64_t>(runs.size());
    call.b = static_cast<const std::byte*>(operands.b) + panel_at(g, tiles, instance.weights, panel);
    // A null address would walk the page table at every step: 5 % of the time (Zen 4, 2026-11).
    if (call.prefetch_step == 0) call.prefetch = static_cast<const char*>(call.b);
    call.partial = partial;
    call.begin_at_zero = chunk == 0;
    const bool last = chunk == g.chunks - 1;
    call.finish = last && fast && panel.columns == width;
    call.spacing = last && schedule.prefetch != 0 ? std::max<int64_t>(1, rows.steps[static_cast<size_t>(chunk)] / count) : 0;
    const int64_t column = instance.column + panel.column;
    call.scale = operands.scale ? operands.scale + column : nullptr;
    call.bias = operands.bias + column;
    call.column = panel.column;
    tiles.at(schedule.prefetch == 2, count, panel.vectors, g.widest)(call);
    if (last && !call.finish) finish(call, panel, count);
  }

  void finish(const TileCall& call, const GemmPanel& panel, int count) const {
    FinishCall finish = finish_defaults;
    finish.sums = call.partial;
    finish.sums_stride = panel.vectors * tiles.lanes;
    finish.rows = count;
    finish.columns = panel.columns;
    finish.scale = call.scale;
    finish.bias = call.bias;
    for (int i = 0; i < count; ++i) {
      finish.y[i] = call.y[i] + panel.column;
      for (int r = 0; r < call.residuals; ++r)
        finish.residual[r][i] = call.residual[r][i] + panel.column * g.residual_strides[r];
    }
    tiles.finish(finish);
  }

  // Two tiles a call: half the fixed cost of a tile, half the loads of weights. Partial sums have places for single ones. A
  // schedule of single rows asks for no tile.
  bool in_pairs() const { return schedule.mr > 1 && g.chunks == 1 && g.widest <= tiles.tall_vectors; }

  // Rows outside: a tile's pixels stay in L1 while the weights stream from L2. Fetched meanwhile: what the next tile reads
  // beyond this one's, which is one tile's worth of pixels of its last run.
  void rows_outside(const GemmInstance& instance, int64_t t0, int64_t t1, int64_t p0, int64_t p1, float* partial) const {
    const int64_t tile_floats = partial_floats(tiles.lanes);
    TileCall call = defaults;
    int64_t fetched_rows = 0, step = 0;
    const RowClass* fetched_class = nullptr;
    const bool pairs = in_pairs();
    for (int chunk = 0; chunk < g.chunks; ++chunk) {
      TileWalk walk(*this, instance, t0);
      fetched_class = nullptr;
      for (int64_t t = t0; t < t1; t += walk.taken()) {
        walk.settle();
        const RowClass& rows = walk.rows();
        const int count = walk.take(call, pairs && t + 1 < t1);
        const auto& runs = rows.chunks[static_cast<size_t>(chunk)];
        const int64_t steps = rows.steps[static_cast<size_t>(chunk)], pixel = rows.axes[3].a;
        const char* ahead = static_cast<const char*>(operands.b);
        call.prefetch_step = 0;
        if (schedule.prefetch && steps > 0) {
          const GemmRun& run = runs.back();
          ahead = reinterpret_cast<const char*>(call.a[count - 1] + pixel + run.a + run.length - std::min(pixel, run.length));
          if (count != fetched_rows || &rows != fetched_class) {
            fetched_rows = count, fetched_class = &rows;
            step = std::max<int64_t>(1, count * pixel * 4 / (steps * (p1 - p0)));
          }
          call.prefetch_step = step;
        }
        for (int64_t p = p0; p < p1; ++p) {
          call.prefetch = ahead + (p - p0) * call.prefetch_step * steps;
          const int64_t at = g.chunks > 1 ? ((t - t0) * (p1 - p0) + p - p0) * tile_floats : 0;
          multiply(instance, rows, chunk, g.panels[static_cast<size_t>(p)], count, partial + at, call);
        }
      }
    }
  }

  // Columns outside: a chunk of a panel stays in L2 while all tiles pass. Fetched meanwhile: the next chunk, a share per tile.
  // `onward`: the block after this one begins with panel p1.
  void columns_outside(const GemmInstance& instance, int64_t t0, int64_t t1, int64_t p0, int64_t p1, bool onward,
                       float* partial) const {
    const int64_t tile_floats = partial_floats(tiles.lanes);
    TileCall call = defaults;
    const bool pairs = in_pairs();
    for (int64_t p = p0; p < p1; ++p) {
      const GemmPanel& panel = g.panels[static_cast<size_t>(p)];
      const int64_t row_bytes = panel.vectors * tiles.lanes * tiles.weight_bytes;
      for (int chunk = 0; chunk < g.chunks; ++chunk) {
        // Chunks of a panel and panels of a matrix follow each other in memory.
        const char* next = static_cast<const char*>(operands.b) + panel_at(g, tiles, instance.weights, panel) +
                           std::min(g.k, (chunk + 1) * g.kc) * row_bytes;
        const bool fetch = schedule.prefetch && t1 - t0 > 3 && (chunk + 1 < g.chunks || p + 1 < p1 || onward);
        const int64_t share = std::min(g.kc, g.k) * row_bytes / (t1 - t0);
        TileWalk walk(*this, instance, t0);
        for (int64_t t = t0; t < t1; t += walk.taken()) {
          walk.settle();
          const RowClass& rows = walk.rows();
          const int count = walk.take(call, pairs && t + 1 < t1);
          const int64_t steps = std::max<int64_t>(1, rows.steps[static_cast<size_t>(chunk)]);
          call.prefetch = next + (t - t0) * share;
          call.prefetch_step = fetch ? std::max<int64_t>(1, walk.taken() * share / steps) : 0;
          const int64_t at = g.chunks > 1 ? (t - t0) * tile_floats : 0;
          multiply(instance, rows, chunk, panel, count, partial + at, call);
        }
      }
    }
  }

  void block(const GemmBlock& b) const {
    alignas(64) float partial[kPartialFloats];
    const GemmInstance& instance = g.instances[static_cast<size_t>(b.instance)];
    if (schedule.order == GemmOrder::rows) {
      rows_outside(instance, b.t0, b.t1, b.p0, b.p1, partial);
    } else {
      columns_outside(instance, b.t0, b.t1, b.p0, b.p1, b.onward, partial);
    }
  }
};

}  // namespace

void run_gemm(const GemmGeometry& g, const GemmSchedule& schedule, const Epilogue& e, const TileKernels& tiles,
              const GemmOperands& operands, Executor& executor) {
  const bool clamps = e.activation == Activation::none || e.activation == Activation::relu || e.activation == Activation::clip;
  const bool strides =
      (e.residuals_before < 1 || g.residual_strides[0] == 1) && (e.residuals_before < 2 || g.residual_strides[1] == 1);
  Nest nest{g, schedule, e, tiles, operands, clamps && strides && e.residuals_after == 0};
  nest.defaults.column_stride = g.k;
  nest.defaults.clamp_below = e.activation == Activation::relu || e.activation == Activation::clip;
  nest.defaults.clamp_above = e.activation == Activation::clip;
  nest.defaults.low = e.activation == Activation::clip ? static_cast<float>(e.a) : 0.0f;
  nest.defaults.high = static_cast<float>(e.b);
  nest.defaults.residuals = e.residuals_before + e.residuals_after;
  FinishCall& finish = nest.finish_defaults;
  finish.residuals_before = e.residuals_before, finish.residuals_after = e.residuals_after;
  finish.residual_strides[0] = g.residual_strides[0], finish.residual_strides[1] = g.residual_strides[1];
  finish.activation = e.activation;
  finish.activation_a = static_cast<float>(e.a), finish.activation_b = static_cast<float>(e.b);

  const int64_t most = executor.width() == 1 ? 1 : 4 * executor.width();
  const int64_t wanted = tasks_of(schedule.grain, g.outputs, g.outputs, executor.width());
  const GemmCut cut = gemm_cut(g, schedule, tiles.lanes, wanted, executor.width());
  // Many small blocks are handed out several at a time, a quarter of a task where there are enough for all workers.
  const int64_t total = cut.blocks();
  const int64_t tasks = std::min(total, 4 * wanted < 3 * most ? wanted : 4 * wanted);
  for_each_range(executor, total, tasks, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) nest.block(cut.block(i));
  });
}

}  // namespace sparkle::cpu
