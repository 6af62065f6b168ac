// CumSum: lines side by side, so that the sums of neighbouring columns advance together.
#include <algorithm>
#include <array>
#include <memory>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "families/scan/scan.h"
#include "families/values/typed.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kColumns = 128;  // 1 KB of sums

struct Lines {
  int64_t n, inner, blocks;  // blocks of columns per outer index
  bool exclusive, reverse;
};
using LinesFunction = void (*)(const Lines&, int64_t begin, int64_t end, const std::byte* x, std::byte* y);

template <class T>
void scan_lines(const Lines& l, int64_t begin, int64_t end, const std::byte* from, std::byte* to) {
  using Sum = std::conditional_t<is_float_type<T>, double, T>;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t outer = at / l.blocks, column = at % l.blocks * kColumns;
    const auto columns = static_cast<size_t>(std::min(kColumns, l.inner - column));
    const int64_t first = outer * l.n * l.inner + column;
    std::array<Sum, kColumns> sum{};
    for (int64_t i = 0; i < l.n; ++i) {
      const int64_t place = first + (l.reverse ? l.n - 1 - i : i) * l.inner;
      const T* x = reinterpret_cast<const T*>(from) + place;
      T* y = reinterpret_cast<T*>(to) + place;
      for (size_t c = 0; c < columns; ++c) {
        const Sum with = wrapped_sum(sum[c], static_cast<Sum>(to_computed(x[c])));
        y[c] = from_computed<T>(l.exclusive ? sum[c] : with);
        sum[c] = with;
      }
    }
  }
}

class ScanKernel final : public CpuKernel {
 public:
  ScanKernel(const Stage& stage, const LoopSchedule& schedule)
      : schedule_(schedule), bytes_(stage.outputs[0].bytes()), element_(size_of(stage.outputs[0].dtype)) {
    const auto& p = get<ScanParams>(stage.params);
    const Dims& x = stage.inputs[0].shape;
    lines_ = {x[p.axis], 1, 1, p.exclusive, p.reverse};
    for (int i = 0; i < p.axis; ++i) outer_ *= x[i];
    for (int i = p.axis + 1; i < x.size(); ++i) lines_.inner *= x[i];
    lines_.blocks = (lines_.inner + kColumns - 1) / kColumns;
    visit_type(stage.inputs[0].dtype, [&]<class T>(T) { scan_ = scan_lines<T>; });
  }

  void run(const CpuLaunch& launch) const override {
    if (bytes_ == 0) return;
    const int64_t items = outer_ * lines_.blocks;
    const int tasks = tasks_for(schedule_, *launch.executor, items, bytes_, element_);
    for_each_range(*launch.executor, items, tasks,
                   [&](int64_t begin, int64_t end) { scan_(lines_, begin, end, launch.inputs[0], launch.outputs[0]); });
  }

 private:
  LoopSchedule schedule_;
  int64_t bytes_, element_, outer_ = 1;
  Lines lines_{};
  LinesFunction scan_ = nullptr;
};

}  // namespace

Result<CpuKernelPtr> make_scan(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (!loop || loop->variant != "columns")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no scan variant '" + variant_of(schedule) + "'."};
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (!is_row_major(x.shape, x.layout) || !is_row_major(y.shape, y.layout))
    return Error{Reason::layout_not_served, "CumSum takes row-major operands."};
  return CpuKernelPtr(std::make_unique<ScanKernel>(stage, *loop));
}

}  // namespace sparkle::cpu
