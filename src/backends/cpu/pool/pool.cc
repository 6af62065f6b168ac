// The pool family on CPUs: checks a Stage, prepares the borders, cuts the output into tasks.
#include <algorithm>
#include <vector>

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/pool/pool_call.h"
#include "families/loops/grain.h"
#include "families/pool/pool.h"

namespace sparkle::cpu {
namespace {

class PoolKernel final : public CpuKernel {
 public:
  PoolKernel(const Stage& stage, const LoopSchedule& schedule, const Device& device, PoolLoop loop, bool separable)
      : schedule_(schedule), loop_(loop), separable_(separable), workers_(std::max(device.cores, 1)) {
    const auto& p = get<PoolParams>(stage.params);
    call_.mx = feature_map(stage.inputs[0]), call_.my = feature_map(stage.outputs[0]);
    call_.kind = p.kind, call_.count_pad = p.count_pad, call_.squares = p.p == 2;
    call_.window = p.window;
    const int64_t in[3] = {call_.mx.d, call_.mx.h, call_.mx.w}, out[3] = {call_.my.d, call_.my.h, call_.my.w};
    for (size_t i = 0; i < 3; ++i)
      call_.axes[i] = {in[i], out[i], p.window.filter[i], p.window.stride[i], p.window.dilation[i], p.window.pad_begin[i]};
    columns_ = tap_ranges(call_.axes[2]);
    for (int64_t q = 0; q < out[2]; ++q)
      counted_columns_.push_back(static_cast<float>(counted(call_.axes[2], p.window.pad_end[2], p.count_pad, q)));
    // The strip between the two passes stays in L1: half of 32 KB, but at least two cache lines a pixel.
    const int64_t pixels = std::max<int64_t>(kPoolRowsPerBlock * call_.mx.w, 1);
    call_.channels_per_block = std::clamp<int64_t>(4096 / pixels / 32 * 32, 32, std::max<int64_t>(call_.my.c, 32));
  }

  int64_t workspace_bytes() const override { return separable_ ? scratch_floats() * 4 * strips() : 0; }

  void run(const CpuLaunch& launch) const override {
    PoolCall call = call_;
    call.columns = columns_, call.counted_columns = counted_columns_;
    call.x = reinterpret_cast<const float*>(launch.inputs[0]);
    call.y = reinterpret_cast<float*>(launch.outputs[0]);
    if (call.my.n * call.my.c * call.my.pixels() == 0) return;
    auto* scratch = reinterpret_cast<float*>(launch.workspace);

    int64_t items = call.my.n * call.my.d * call.my.h;
    if (separable_)
      items = call.my.n * call.my.d * ((call.my.h + kPoolRowsPerBlock - 1) / kPoolRowsPerBlock) *
              ((call.my.c + call.channels_per_block - 1) / call.channels_per_block);
    // Strips of the workspace belong to tasks' workers: a pool with more workers than strips gets no more tasks than there are
    // strips.
    const int64_t width = launch.executor->width();
    const int64_t most = separable_ && width > strips() ? std::min(items, strips()) : items;
    const int64_t tasks = tasks_of(schedule_.grain, call.my.n * call.my.pixels() * call.my.c, most, width);
    parallel_for(*launch.executor, static_cast<int>(tasks), [&](int task, int worker) {
      const int64_t strip = width > strips() ? task : worker;
      const auto [begin, end] = task_range(items, tasks, task);
      loop_(call, begin, end, separable_ ? scratch + strip * scratch_floats() : nullptr);
    });
  }

 private:
  int64_t scratch_floats() const { return kPoolRowsPerBlock * call_.mx.w * call_.channels_per_block; }
  int64_t strips() const { return workers_; }

  LoopSchedule schedule_;
  PoolLoop loop_;
  bool separable_;
  int64_t workers_;
  PoolCall call_;
  std::vector<TapRange> columns_;
  std::vector<float> counted_columns_;
};

}  // namespace

Result<CpuKernelPtr> make_pool(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* s = get_if<LoopSchedule>(&schedule);
  if (!s) return Error{Reason::internal, "The pool kernel got a schedule of another family: " + to_text(schedule) + "."};
  const auto& p = get<PoolParams>(stage.params);
  const auto lacks = [&](Reason reason, const std::string& why) {
    return Error{reason, "Pool variant '" + s->variant + "' on unit '" + s->unit + "' " + why + "."};
  };
  if (stage.inputs[0].dtype != DType::f32 || stage.outputs[0].dtype != DType::f32)
    return lacks(Reason::type_not_served, "supports f32 only");
  if (stage.outputs.size() > 1)
    return lacks(Reason::operator_not_served, "gives no positions of the maxima; use variant 'plain'");
  if (p.kind == PoolKind::lp && p.p != 1 && p.p != 2)
    return lacks(Reason::operator_not_served, "supports powers 1 and 2, not " + std::to_string(p.p) + "; use variant 'plain'");
  if (!channels_innermost(stage.inputs[0]) || !channels_innermost(stage.outputs[0]))
    return lacks(Reason::layout_not_served, "needs the channels of input and output side by side (NHWC)");
  PoolLoop loop = nullptr;
  const bool separable = s->variant == "separable";
  if (separable) {
    const Window& w = p.window;
    if (p.kind != PoolKind::max) return lacks(Reason::operator_not_served, "supports maxima only");
    if (w.filter[0] != 1 || w.stride[1] != 1 || w.stride[2] != 1 || w.dilation[1] != 1 || w.dilation[2] != 1)
      return lacks(Reason::filter_not_served, "supports two-dimensional windows at stride 1 without dilation");
    loop = pool_separable_blocks(s->unit);
  } else if (s->variant == "window") {
    loop = pool_window_rows(s->unit);
  }
  if (!loop) return lacks(Reason::backend_lacks_variant, "has no kernel in this build");
  return CpuKernelPtr(std::make_unique<PoolKernel>(stage, *s, device, loop, separable));
}

}  // namespace sparkle::cpu
