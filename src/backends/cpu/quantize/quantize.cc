// make_quantize: the variant "vectors" of the quantize family, for 8-bit integers. Scales along an axis: where its elements are
// neighbours, lines of all channels; else runs of one channel each.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/copy/moves.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/quantize/loops.h"
#include "families/family.h"
#include "families/loops/grain.h"
#include "families/integers/integers.h"
#include "families/quantize/channels.h"
#include "families/quantize/quantize.h"

namespace sparkle::cpu {
namespace {

float real_at(const std::byte* from) {
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
int32_t zero_at(const std::byte* from, DType type) {
  return type == DType::u8 ? static_cast<int32_t>(static_cast<uint8_t>(*from)) : static_cast<int8_t>(*from);
}

class QuantizeKernel final : public CpuKernel {
 public:
  QuantizeKernel(const Stage& stage, int64_t grain, const QuantizeLoops& loops)
      : stage_(stage), params_(get<QuantizeParams>(stage.params)), grain_(grain), loops_(loops) {
    if (params_.kind == QuantizeKind::average)
      workspace_bytes_ = feature_map(stage_.inputs[0]).c * 4 * feature_map(stage_.inputs[0]).n;
    if (params_.kind == QuantizeKind::quantize || params_.kind == QuantizeKind::dequantize) {
      runs_ = *channel_runs(stage_);
      if (runs_.axis >= 0) workspace_bytes_ = runs_.channels * 16;
      lines_ = move_axes(stage_.outputs[0].shape, stage_.inputs[0].layout, stage_.outputs[0].layout, 1);
      merge_axes(lines_);
      line_ = take_run(lines_, 1);
    }
  }
  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const CpuLaunch& launch) const override {
    const auto input = [&](size_t i) { return reinterpret_cast<const uint8_t*>(launch.inputs[i]); };
    auto* y = reinterpret_cast<uint8_t*>(launch.outputs[0]);
    const bool signed_x = type(0) == DType::i8;
    switch (params_.kind) {
      case QuantizeKind::quantize: {
        if (runs_.axis >= 0) return quantize_channels(launch);
        const Rounding r = rounding(real_at(launch.inputs[1]), zero_at(launch.inputs[2], type(2)));
        const auto* x = reinterpret_cast<const float*>(launch.inputs[0]);
        return lines(launch, [&](int64_t from, int64_t to, int64_t n) { loops_.quantize(x + from, n, r, y + to); });
      }
      case QuantizeKind::dequantize: {
        if (runs_.axis >= 0) return dequantize_channels(launch);
        const Linear l = linear(launch, 1);
        auto* real = reinterpret_cast<float*>(launch.outputs[0]);
        return lines(launch, [&](int64_t from, int64_t to, int64_t n) {
          loops_.dequantize[signed_x](input(0) + from, n, l, real + to);
        });
      }
      case QuantizeKind::dynamic: return dynamic(launch);
      case QuantizeKind::add: {
        const Linear a = linear(launch, 1), b = linear(launch, 4);
        const Rounding r = rounding(real_at(launch.inputs[6]), zero_at(launch.inputs[7], type(7)));
        const auto loop = loops_.add[signed_x][type(3) == DType::i8];
        return split(launch, [&](int64_t begin, int64_t end) {
          loop(input(0) + begin, a, input(3) + begin, b, end - begin, r, y + begin);
        });
      }
      case QuantizeKind::average: return average(launch);
      case QuantizeKind::factor: return;
    }
  }

 private:
  DType type(size_t i) const { return stage_.inputs[i].dtype; }
  Linear linear(const CpuLaunch& launch, size_t scale) const {
    return {real_at(launch.inputs[scale]), zero_at(launch.inputs[scale + 1], type(scale + 1))};
  }
  Rounding rounding(float scale, int32_t zero) const {
    const IntegerRange range = output_range(stage_.outputs[0].dtype, params_);
    return {scale, static_cast<float>(range.low - zero), static_cast<float>(range.high - zero), zero};
  }
  // body(begin, end) over `count` groups of elements.
  template <class Body>
  void split(const CpuLaunch& launch, int64_t count, const Body& body) const {
    const int64_t tasks = tasks_of(grain_, stage_.outputs[0].elements(), count, launch.executor->width());
    for_each_range(*launch.executor, count, tasks, body);
  }
  template <class Body>
  void split(const CpuLaunch& launch, Body&& body) const {
    split(launch, stage_.outputs[0].elements(), body);
  }

  // body(place in x, place in y, count) over lines of neighbours in both; a tensor that is one line is cut.
  template <class Body>
  void lines(const CpuLaunch& launch, const Body& body) const {
    if (lines_.empty()) return split(launch, [&](int64_t begin, int64_t end) { body(begin, begin, end - begin); });
    split(launch, count_of(lines_), [&](int64_t begin, int64_t end) {
      Walk walk(lines_, begin);
      for (int64_t line = begin; line < end; ++line, walk.next()) body(walk.x, walk.y, line_);
    });
  }

  // What each channel is scaled by, in the workspace.
  Channels channels(const CpuLaunch& launch) const {
    const int64_t count = runs_.channels;
    auto* scale = reinterpret_cast<float*>(launch.workspace);
    float *low = scale + count, *high = low + count;
    auto* zero = reinterpret_cast<int32_t*>(high + count);
    const auto at = static_cast<int>(runs_.axis);
    const int64_t scale_stride = stage_.inputs[1].shape[at] > 1 ? stage_.inputs[1].layout.strides[at] : 0;
    const int64_t zero_stride = stage_.inputs[2].shape[at] > 1 ? stage_.inputs[2].layout.strides[at] : 0;
    for (int64_t c = 0; c < count; ++c) {
      zero[c] = zero_at(launch.inputs[2] + c * zero_stride, type(2));
      const Rounding r = rounding(real_at(launch.inputs[1] + c * scale_stride * 4), zero[c]);
      scale[c] = r.scale, low[c] = r.low, high[c] = r.high;
    }
    return {scale, low, high, zero, count};
  }

  void quantize_channels(const CpuLaunch& launch) const {
    const Channels ch = channels(launch);
    const auto* x = reinterpret_cast<const float*>(launch.inputs[0]);
    auto* y = reinterpret_cast<uint8_t*>(launch.outputs[0]);
    const int64_t inner = runs_.inner;
    if (inner == 1)
      return split(launch, runs_.outer, [&](int64_t begin, int64_t end) {
        loops_.quantize_lines(x + begin * ch.count, end - begin, ch, y + begin * ch.count);
      });
    split(launch, runs_.outer * ch.count, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) {
        const int64_t c = run % ch.count;
        loops_.quantize(x + run * inner, inner, {ch.scale[c], ch.low[c], ch.high[c], ch.zero[c]}, y + run * inner);
      }
    });
  }

  void dequantize_channels(const CpuLaunch& launch) const {
    const Channels ch = channels(launch);
    const auto* x = reinterpret_cast<const uint8_t*>(launch.inputs[0]);
    auto* y = reinterpret_cast<float*>(launch.outputs[0]);
    const bool is_signed = type(0) == DType::i8;
    const int64_t inner = runs_.inner;
    if (inner == 1)
      return split(launch, runs_.outer, [&](int64_t begin, int64_t end) {
        loops_.dequantize_lines[is_signed](x + begin * ch.count, end - begin, ch, y + begin * ch.count);
      });
    split(launch, runs_.outer * ch.count, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run)
        loops_.dequantize[is_signed](x + run * inner, inner, {ch.scale[run % ch.count], ch.zero[run % ch.count]},
                                     y + run * inner);
    });
  }

  void dynamic(const CpuLaunch& launch) const {
    const auto* x = reinterpret_cast<const float*>(launch.inputs[0]);
    float least = 0, most = 0;
    loops_.least_and_most(x, stage_.inputs[0].elements(), least, most);
    const DynamicScale found = dynamic_scale(least, most);
    const Rounding r = rounding(found.scale, found.zero);
    auto* y = reinterpret_cast<uint8_t*>(launch.outputs[0]);
    split(launch, [&](int64_t begin, int64_t end) { loops_.quantize(x + begin, end - begin, r, y + begin); });
    std::memcpy(launch.outputs[1], &found.scale, sizeof found.scale);
    std::memcpy(launch.outputs[2], &found.zero, sizeof found.zero);
  }

  void average(const CpuLaunch& launch) const {
    const FeatureMap x = feature_map(stage_.inputs[0]), y = feature_map(stage_.outputs[0]);
    const Linear from = linear(launch, 1);
    const int32_t zero = zero_at(launch.inputs[4], type(4));
    const auto pixels = static_cast<int32_t>(x.pixels());
    const float factor = from.scale / (static_cast<float>(pixels) * real_at(launch.inputs[3]));
    const IntegerRange range = output_range(stage_.outputs[0].dtype, params_);
    const auto sum = loops_.sum[type(0) == DType::i8];
    parallel_for(*launch.executor, static_cast<int>(x.n), [&](int n, int) {
      int32_t* sums = reinterpret_cast<int32_t*>(launch.workspace) + n * x.c;
      std::fill(sums, sums + x.c, -pixels * from.zero);
      const auto* image = reinterpret_cast<const uint8_t*>(launch.inputs[0]) + n * x.image_stride;
      for (int64_t d = 0; d < x.d; ++d)
        for (int64_t h = 0; h < x.h; ++h) sum(image + d * x.plane_stride + h * x.row_stride, x.w, x.pixel_stride, x.c, sums);
      for (int64_t c = 0; c < x.c; ++c)
        launch.outputs[0][n * y.image_stride + c * y.channel_stride] =
            static_cast<std::byte>(static_cast<uint8_t>(requantized(sums[c], factor, zero, range)));
    });
  }

  Stage stage_;
  QuantizeParams params_;
  int64_t grain_;
  const QuantizeLoops& loops_;
  ChannelRuns runs_;
  std::vector<MoveAxis> lines_;  // quantize, dequantize with one scale: axes around the lines
  int64_t line_ = 0;
  int64_t workspace_bytes_ = 0;
};

}  // namespace

Result<CpuKernelPtr> make_quantize(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t) {
  const auto* loop = get_if<LoopSchedule>(&schedule);
  if (!loop || loop->variant != "vectors")
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no quantize variant '" + variant_of(schedule) + "'; choose 'vectors' or 'plain'."};
  Reason why_not = Reason::none;
  const auto& variants = quantize_info().variants;
  const auto vectors = std::find_if(variants.begin(), variants.end(), [](const Variant& v) { return v.name == "vectors"; });
  if (quantize_info().schedules(stage, *vectors, device, why_not).empty())
    return Error{why_not, "The quantize variant 'vectors' does not support this stage; choose 'plain'."};
  return CpuKernelPtr(std::make_unique<QuantizeKernel>(stage, loop->grain, quantize_loops_of(loop->unit)));
}

}  // namespace sparkle::cpu
