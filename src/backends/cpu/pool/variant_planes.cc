// The variant "planes" of the pool family: columns of a row side by side, which spares the copies around a pool between tensors
// that lie plane by plane. Checks a Stage, prepares the borders, cuts the rows of the output into tasks.
#include <algorithm>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/pool/pool_call.h"
#include "backends/cpu/pool/pool_planes.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kStripFloats = 4096;   // of a row at once: 16 KB
constexpr int64_t kStripsFloats = 2048;  // of all rows at once, where several are: 8 KB
constexpr int64_t kMostRows = 16;

class PlaneKernel final : public CpuKernel {
 public:
  PlaneKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, PlaneLoop loop)
      : loop_(loop), grain_(schedule.grain), workers_(std::max(device.cores, 1)) {
    const auto& p = get<PoolParams>(stage.params);
    pool_.mx = feature_map(stage.inputs[0]), pool_.my = feature_map(stage.outputs[0]);
    pool_.kind = p.kind, pool_.squares = p.p == 2, pool_.window = p.window;
    planes_ = taps_along(p, 0, pool_.mx.d, pool_.my.d, pool_.mx.plane_stride);
    rows_ = taps_along(p, 1, pool_.mx.h, pool_.my.h, pool_.mx.row_stride);
    if (p.kind == PoolKind::average) {
      for (const PlaneTaps& column : taps_along(p, 2, pool_.mx.w, pool_.my.w, 1)) shares_.push_back(column.share);
      shares_.resize(shares_.size() + kWidestVector);
    }
    const int64_t reach = (p.window.filter[2] - 1) * p.window.dilation[2] + 1, stride = p.window.stride[2];
    pool_.columns = std::min(pool_.my.w, std::max(kWidestVector, (kStripFloats - reach) / stride));
    pool_.strip = (std::max(pool_.columns, kWidestVector) * stride + reach + kWidestVector + 15) / 16 * 16;
    pool_.strips = std::clamp<int64_t>(kStripsFloats / pool_.strip, 1, kMostRows);
  }

  int64_t workspace_bytes() const override { return scratch_floats() * 4 * workers_; }

  void run(const CpuLaunch& launch) const override {
    PlanePool pool = pool_;
    pool.planes = planes_, pool.rows = rows_, pool.shares = shares_;
    pool.x = reinterpret_cast<const float*>(launch.inputs[0]);
    pool.y = reinterpret_cast<float*>(launch.outputs[0]);
    const int64_t rows = pool.my.n * pool.my.c * pool.my.d * pool.my.h;
    if (rows * pool.my.w == 0) return;
    auto* scratch = reinterpret_cast<float*>(launch.workspace);
    // Scratch belongs to tasks' workers: with more workers than parts of it there are no more tasks than parts.
    const int64_t width = launch.executor->width(), most = width > workers_ ? std::min(rows, workers_) : rows;
    const int64_t tasks = tasks_of(grain_, rows * pool.my.w, most, width);
    parallel_for(*launch.executor, static_cast<int>(tasks), [&](int task, int worker) {
      const auto [begin, end] = task_range(rows, tasks, task);
      loop_(pool, begin, end, scratch + (width > workers_ ? task : worker) * scratch_floats());
    });
  }

 private:
  static std::vector<PlaneTaps> taps_along(const PoolParams& p, size_t axis, int64_t in, int64_t out, int64_t step) {
    const Window& w = p.window;
    const Axis a{in, out, w.filter[axis], w.stride[axis], w.dilation[axis], w.pad_begin[axis]};
    std::vector<PlaneTaps> list;
    for (int64_t o = 0; o < out; ++o) {
      const Taps taps = taps_at(a, o);
      const int64_t first = o * a.stride - a.pad + taps.begin * a.dilation;
      list.push_back({first * step, taps.size(), 1 / static_cast<float>(counted(a, w.pad_end[axis], p.count_pad, o))});
    }
    return list;
  }
  int64_t scratch_floats() const { return pool_.strips * pool_.strip; }

  PlanePool pool_;
  PlaneLoop loop_;
  int64_t grain_, workers_;
  std::vector<PlaneTaps> planes_, rows_;
  std::vector<float> shares_;
};

}  // namespace

Result<CpuKernelPtr> make_pool_planes(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t) {
  const auto* s = get_if<LoopSchedule>(&schedule);
  if (!s) return Error{Reason::internal, "The pool kernel got a schedule of another family: " + to_text(schedule) + "."};
  const auto lacks = [&](Reason reason, const std::string& why) {
    return Error{reason, "Pool variant '" + s->variant + "' on unit '" + s->unit + "' " + why + "."};
  };
  const auto& p = get<PoolParams>(stage.params);
  if (stage.inputs[0].dtype != DType::f32 || stage.outputs[0].dtype != DType::f32)
    return lacks(Reason::type_not_served, "supports f32 only");
  if (stage.outputs.size() > 1 || (p.kind == PoolKind::lp && p.p != 1 && p.p != 2))
    return lacks(Reason::operator_not_served, "supports maxima without their positions, means, and powers 1 and 2");
  if (!columns_innermost(stage.inputs[0]) || !columns_innermost(stage.outputs[0]))
    return lacks(Reason::layout_not_served, "needs the columns of input and output side by side (NCHW)");
  const PlaneLoop loop = pool_plane_rows(s->unit);
  if (!loop) return lacks(Reason::backend_lacks_variant, "has no kernel in this build");
  return CpuKernelPtr(std::make_unique<PlaneKernel>(stage, *s, device, loop));
}

}  // namespace sparkle::cpu
