// The depthwise family on CPUs: checks a Stage, packs weights as [taps][channels], cuts the rows of the output into tasks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/depthwise/depthwise_call.h"
#include "backends/cpu/depthwise/integer_depthwise.h"
#include "backends/cpu/packing_kernel.h"
#include "families/depthwise/depthwise.h"
#include "families/loops/grain.h"
#include "families/integers/integers.h"

namespace sparkle::cpu {
namespace {

// Packed rows of channels are padded to this many floats, so that whole vectors may be read: no vector here is wider.
constexpr int64_t kPadding = 64;
int64_t padded(int64_t channels) { return (channels + 15) / 16 * 16; }

// Whether element [k] of a per-channel operand lies k floats from its start.
bool is_contiguous(const TensorDesc& desc) {
  return desc.shape.empty() || desc.shape.back() <= 1 || desc.layout.strides.back() == 1;
}

class DepthwiseKernel final : public PackingKernel {
 public:
  DepthwiseKernel(const Stage& stage, const DepthwiseSchedule& schedule, bool constant_weights, DepthwiseRows rows,
                  const Device& device)
      : PackingKernel(stage, constant_weights), schedule_(schedule), rows_(rows) {
    const auto& p = get<DepthwiseParams>(stage_.params);
    call_.mx = feature_map(stage_.inputs[0]), call_.my = feature_map(stage_.outputs[0]);
    call_.window = p.window;
    const int64_t in[3] = {call_.mx.d, call_.mx.h, call_.mx.w}, out[3] = {call_.my.d, call_.my.h, call_.my.w};
    for (size_t i = 0; i < 3; ++i)
      call_.axes[i] = {in[i], out[i], p.window.filter[i], p.window.stride[i], p.window.dilation[i], p.window.pad_begin[i]};
    columns_ = tap_ranges(call_.axes[2]);
    call_.k_strides = padded(call_.my.c);
    call_.rows = schedule.rows, call_.columns_per_tile = schedule.columns;
    if (call_.my.c != call_.mx.c) {
      channel_.assign(static_cast<size_t>(call_.k_strides + kPadding), static_cast<int32_t>(call_.mx.c - 1));
      for (int64_t k = 0; k < call_.my.c; ++k)
        channel_[static_cast<size_t>(k)] = static_cast<int32_t>(k / (call_.my.c / call_.mx.c));
    }
    call_.block_channels = block_channels(device);
    read_epilogue(p.epilogue);
    const int64_t vectors = (copy_scale_ ? 1 : 0) + (copy_bias_ ? 1 : 0);
    size_workspace(4 * vectors * call_.k_strides, 4 * packed_floats());
  }

  void run(const CpuLaunch& launch) const override {
    DepthwiseCall call = call_;
    call.columns = columns_;
    if (!channel_.empty()) call.channel = channel_.data();
    call.x = reinterpret_cast<const float*>(launch.inputs[0]);
    call.y = reinterpret_cast<float*>(launch.outputs[0]);
    const int64_t rows = call.my.n * call.my.d * call.my.h, row_elements = call.my.w * call.my.c;
    if (rows * row_elements == 0) return;
    auto* workspace = reinterpret_cast<float*>(launch.workspace);
    call.w = reinterpret_cast<const float*>(packed_weights(launch));
    size_t next = 2;
    const Epilogue& e = get<DepthwiseParams>(stage_.params).epilogue;
    if (e.scale) {
      call.scale = per_channel(launch.inputs[next], stage_.inputs[next], e.alpha, copy_scale_, workspace);
      ++next;
    } else if (copy_scale_) {
      std::fill_n(workspace, call.k_strides, static_cast<float>(e.alpha));
      call.scale = workspace;
      workspace += call.k_strides;
    }
    if (e.bias) {
      call.bias = per_channel(launch.inputs[next], stage_.inputs[next], 1, copy_bias_, workspace);
      ++next;
    }
    for (int i = 0; i < call.residuals_before + call.residuals_after; ++i, ++next)
      call.residuals[i] = {reinterpret_cast<const float*>(launch.inputs[next]), feature_map(stage_.inputs[next])};

    // Whole tiles of rows.
    const int64_t tile = std::max(call.rows, 1);
    const int64_t wanted = tasks_of(schedule_.grain, rows * row_elements, rows, launch.executor->width());
    const int64_t per_task = ((rows + wanted - 1) / wanted + tile - 1) / tile * tile;
    const auto tasks = static_cast<int>((rows + per_task - 1) / per_task);
    parallel_for(*launch.executor, tasks,
                 [&](int task, int) { rows_(call, task * per_task, std::min(rows, (task + 1) * per_task)); });
  }

 private:
  void read_epilogue(const Epilogue& e) {
    call_.residuals_before = e.residuals_before, call_.residuals_after = e.residuals_after;
    call_.activation = e.activation, call_.a = static_cast<float>(e.a), call_.b = static_cast<float>(e.b);
    const bool residuals = e.residuals_before + e.residuals_after > 0;
    const bool limit = e.activation == Activation::relu || e.activation == Activation::clip;
    call_.clamp = limit && e.residuals_before == 0;
    call_.low = e.activation == Activation::relu ? 0 : call_.a;
    call_.high = e.activation == Activation::relu ? std::numeric_limits<float>::infinity() : call_.b;
    if (call_.clamp) call_.activation = Activation::none;
    call_.strip = residuals || call_.activation != Activation::none;
    copy_scale_ = e.alpha != 1 || (e.scale && !is_contiguous(stage_.inputs[2]));
    copy_bias_ = e.bias && !is_contiguous(stage_.inputs[e.scale ? 3 : 2]);
  }
  // Going down a column of tiles, the input rows that two tiles share should still be in L1. Measured on a Zen 4 (32 KB,
  // 2026-11-20): blocks of 256 channels and none lie within noise of each other; blocks of 32 and 64 lose up to 20 % at
  // 14x14x576, because long streams count as much as what stays in L1 (docs/performance.md).
  int64_t block_channels(const Device& device) const {
    const MemoryLevel* l1 = device.level("L1");
    const int64_t bytes = l1 && l1->bytes > 0 ? l1->bytes : 32768;
    return std::max<int64_t>(64, bytes / 128 / 64 * 64);
  }
  int64_t packed_floats() const { return call_.window.taps() * call_.k_strides + kPadding; }

  std::string weights_key() const override {
    return "depthwise taps=" + std::to_string(call_.window.taps()) + " k=" + std::to_string(call_.my.c) + " " +
           weights_place(stage_.inputs[1]);
  }
  void write_weights(const std::byte* weights, std::byte* packed, Executor&) const override {
    const FeatureMap map = feature_map(stage_.inputs[1]);
    const auto* from = reinterpret_cast<const float*>(weights);
    auto* to = reinterpret_cast<float*>(packed);
    const Triple& filter = call_.window.filter;
    for (int64_t t = 0; t < filter[0]; ++t)
      for (int64_t r = 0; r < filter[1]; ++r)
        for (int64_t s = 0; s < filter[2]; ++s) {
          const float* tap = from + t * map.plane_stride + r * map.row_stride + s * map.pixel_stride;
          for (int64_t k = 0; k < call_.my.c; ++k) to[k] = tap[k * map.image_stride];
          std::fill(to + call_.my.c, to + call_.k_strides, 0.0f);
          to += call_.k_strides;
        }
    std::fill_n(to, kPadding, 0.0f);
  }

  // The operand itself where it lies without gaps, else a copy in the workspace, times `factor`.
  const float* per_channel(const std::byte* data, const TensorDesc& desc, double factor, bool copy, float*& workspace) const {
    const auto* from = reinterpret_cast<const float*>(data);
    if (!copy) return from;
    float* to = workspace;
    workspace += call_.k_strides;
    const int64_t stride = desc.shape.empty() ? 0 : desc.layout.strides.back();
    for (int64_t k = 0; k < call_.my.c; ++k) to[k] = static_cast<float>(factor * static_cast<double>(from[k * stride]));
    return to;
  }

  DepthwiseSchedule schedule_;
  DepthwiseRows rows_;
  DepthwiseCall call_;
  std::vector<TapRange> columns_;
  std::vector<int32_t> channel_;
  bool copy_scale_ = false, copy_bias_ = false;
};

}  // namespace

Result<CpuKernelPtr> make_depthwise(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* s = get_if<DepthwiseSchedule>(&schedule);
  if (!s) return Error{Reason::internal, "The depthwise kernel got a schedule of another family: " + to_text(schedule) + "."};
  if (is_integer(stage.inputs)) return make_integer_depthwise(stage, *s, constants);
  const auto& p = get<DepthwiseParams>(stage.params);
  const auto lacks = [&](Reason reason, const std::string& why) {
    return Error{reason, "Depthwise variant '" + s->variant + "' on unit '" + s->unit + "' " + why + "."};
  };
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32) return lacks(Reason::type_not_served, "supports f32 only");
  if (stage.outputs[0].dtype != DType::f32) return lacks(Reason::type_not_served, "supports f32 only");
  const size_t residuals = 2 + static_cast<size_t>(p.epilogue.scale + p.epilogue.bias);
  for (size_t i = 0; i < stage.inputs.size(); ++i)
    if ((i == 0 || i >= residuals) && !channels_innermost(stage.inputs[i]))
      return lacks(Reason::layout_not_served, "needs the channels of input " + std::to_string(i) + " side by side (NHWC)");
  if (!channels_innermost(stage.outputs[0]))
    return lacks(Reason::layout_not_served, "needs the channels of its output side by side (NHWC)");
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (x.c == 0 || y.c % x.c != 0) return lacks(Reason::groups_not_served, "needs a whole number of filters per channel");

  DepthwiseRows rows = nullptr;
  if (s->variant == "window") {
    rows = depthwise_window_rows(s->unit);
  } else if (s->variant == "tile1x7" || s->variant == "tile2x7") {
    const Window& w = p.window;
    if (w.filter[0] != 1 || w.filter[1] != w.filter[2] || w.stride[1] != w.stride[2] || w.dilation[1] != 1 ||
        w.dilation[2] != 1)
      return lacks(Reason::filter_not_served, "supports square two-dimensional filters without dilation");
    if (x.c != y.c) return lacks(Reason::groups_not_served, "supports one filter per channel");
    rows = depthwise_tile_rows(s->unit, w.filter[2], w.stride[2]);
  }
  if (!rows) return lacks(Reason::backend_lacks_variant, "has no kernel for this filter in this build");
  return CpuKernelPtr(std::make_unique<DepthwiseKernel>(stage, *s, (constants & 2u) != 0, rows, device));
}

}  // namespace sparkle::cpu
