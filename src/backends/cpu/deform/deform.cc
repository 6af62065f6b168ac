// The deform family on the CPU: the variant "columns". A task samples the taps of a block of pixels into columns [pixel][group]
// [tap][channel], small enough for L2, and multiplies them by the packed filters with the micro-kernel of the gemm family: no
// im2col buffer of the whole image exists. Filters: [group][panel][tap][channel][filters of the panel].
#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/packing_kernel.h"
#include "backends/cpu/sample/weighted_rows.h"
#include "base/round_up.h"
#include "families/deform/deform.h"
#include "families/loops/grain.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kMostTasks = 64;
constexpr int64_t kColumnFloats = 49152;  // of a task: 192 KB, half of the smallest L2 that matters
constexpr int64_t kMostRows = 48;

class DeformKernel final : public PackingKernel {
 public:
  DeformKernel(const Stage& stage, int64_t grain, const TileKernels& tiles, WeightedRowsFunction sum, bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<DeformParams>(stage.params)),
        grain_(grain),
        tiles_(tiles),
        sum_(sum) {
    const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
    taps_ = params_.filter[0] * params_.filter[1];
    inner_ = x[1] / params_.groups, filters_ = y[1] / params_.groups;
    depth_ = taps_ * inner_;
    width_ = tiles.max_vectors * tiles.lanes;
    padded_ = rounded_up(filters_, tiles.lanes);
    pixels_ = y[0] * y[2] * y[3];
    rows_ = std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(1, params_.groups * depth_) / kMaxTileRows * kMaxTileRows,
                                kMaxTileRows, kMostRows);
    blocks_ = (pixels_ + rows_ - 1) / rows_;
    slots_ = std::clamp<int64_t>(blocks_, 1, kMostTasks);
    size_workspace(4 * slots_ * slot_floats() + 64, 4 * params_.groups * padded_ * depth_);
  }

  void run(const CpuLaunch& launch) const override {
    if (pixels_ == 0 || filters_ == 0) return;
    float* workspace = reinterpret_cast<float*>(launch.workspace);
    const float* packed = reinterpret_cast<const float*>(packed_weights(launch));
    const int64_t elements = stage_.outputs[0].elements(), most = std::min(blocks_, slots_);
    const auto tasks = static_cast<int>(tasks_of(grain_, elements, most, launch.executor->width()));
    parallel_for(*launch.executor, tasks, [&](int task, int) {
      float* columns = workspace + task * slot_floats();
      const auto [begin, end] = task_range(blocks_, tasks, task);
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * rows_, count = std::min(rows_, pixels_ - first);
        for (int64_t i = 0; i < count; ++i) sample_pixel(launch, first + i, columns + i * params_.groups * depth_);
        multiply(launch, packed, first, count, columns);
      }
    });
  }

 private:
  int64_t slot_floats() const { return rounded_up(rows_ * params_.groups * depth_, 16); }

  std::string weights_key() const override {
    return "deform lanes=" + std::to_string(tiles_.lanes) + " groups=" + std::to_string(params_.groups) + " " +
           weights_place(stage_.inputs[1]);
  }
  void write_weights(const std::byte* weights, std::byte* to_bytes, Executor& executor) const override {
    const auto* w = reinterpret_cast<const float*>(weights);
    auto* packed = reinterpret_cast<float*>(to_bytes);
    const Dims& strides = stage_.inputs[1].layout.strides;
    const int64_t panels = (filters_ + width_ - 1) / width_;
    parallel_for(executor, static_cast<int>(params_.groups * panels), [&](int task, int) {
      const int64_t group = task / panels, panel = task % panels, width = std::min(width_, padded_ - panel * width_);
      const int64_t count = std::min(width_, filters_ - panel * width_);
      const float* from = w + (group * filters_ + panel * width_) * strides[0];
      float* to = packed + (group * padded_ + panel * width_) * depth_;
      for (int64_t tap = 0; tap < taps_; ++tap)
        for (int64_t c = 0; c < inner_; ++c, to += width) {
          const float* at = from + c * strides[1] + tap / params_.filter[1] * strides[2] + tap % params_.filter[1] * strides[3];
          for (int64_t j = 0; j < count; ++j) to[j] = at[j * strides[0]];
          std::fill(to + count, to + width, 0.0f);
        }
    });
  }

  void sample_pixel(const CpuLaunch& launch, int64_t pixel, float* columns) const {
    const TensorDesc &x = stage_.inputs[0], &offset = stage_.inputs[2];
    const Dims& y = stage_.outputs[0].shape;
    const int64_t column = pixel % y[3], row = pixel / y[3] % y[2], n = pixel / y[3] / y[2];
    const auto at_pixel = [&](const TensorDesc& desc) {
      return n * desc.layout.strides[0] + row * desc.layout.strides[2] + column * desc.layout.strides[3];
    };
    const float* image = reinterpret_cast<const float*>(launch.inputs[0]) + n * x.layout.strides[0];
    const float* offsets = reinterpret_cast<const float*>(launch.inputs[2]) + at_pixel(offset);
    const size_t mask_at = 3u + params_.bias;
    const float* mask =
        params_.mask ? reinterpret_cast<const float*>(launch.inputs[mask_at]) + at_pixel(stage_.inputs[mask_at]) : nullptr;
    const int64_t together = x.shape[1] / params_.offset_groups;  // channels that share offsets
    for (int64_t group = 0; group < params_.offset_groups; ++group)
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const int64_t index = group * taps_ + tap, r = tap / params_.filter[1], s = tap % params_.filter[1];
        const float h = static_cast<float>(row * params_.stride[0] + r * params_.dilation[0] - params_.pad_begin[0]) +
                        offsets[2 * index * offset.layout.strides[1]];
        const float w = static_cast<float>(column * params_.stride[1] + s * params_.dilation[1] - params_.pad_begin[1]) +
                        offsets[(2 * index + 1) * offset.layout.strides[1]];
        DeformTaps taps = deform_taps(h, w, x.shape[2], x.shape[3]);
        int64_t at[4];
        for (size_t i = 0; i < static_cast<size_t>(taps.count); ++i) {
          at[i] = taps.h[i] * x.layout.strides[2] + taps.w[i] * x.layout.strides[3];
          if (mask) taps.weight[i] *= mask[index * stage_.inputs[mask_at].layout.strides[1]];
        }
        // Offset groups and groups cut the channels each in their own way.
        for (int64_t c = group * together; c < (group + 1) * together;) {
          const int64_t end = std::min((group + 1) * together, (c / inner_ + 1) * inner_);
          float* to = columns + c / inner_ * depth_ + tap * inner_ + c % inner_;
          sum_({image + c, at, taps.weight.data(), taps.count, end - c, to});
          c = end;
        }
      }
  }

  void multiply(const CpuLaunch& launch, const float* packed, int64_t first, int64_t count, const float* columns) const {
    const TensorDesc& y = stage_.outputs[0];
    alignas(64) float sums[kMaxTileRows * kMaxTileVectors * kMaxLanes];
    const GemmRun run{0, 0, depth_};
    TileCall call{};
    call.runs = &run, call.run_count = 1;
    call.begin_at_zero = true;
    call.partial = sums;
    const float* bias = params_.bias ? reinterpret_cast<const float*>(launch.inputs[3]) : nullptr;
    const int64_t bias_stride = params_.bias ? stage_.inputs[3].layout.strides[0] : 0;
    for (int64_t group = 0; group < params_.groups; ++group)
      for (int64_t panel = 0; panel < padded_; panel += width_) {
        const int64_t width = std::min(width_, padded_ - panel), filters = std::min(width_, filters_ - panel);
        call.b = packed + (group * padded_ + panel) * depth_;
        call.prefetch = reinterpret_cast<const char*>(call.b);
        for (int64_t r = 0; r < count; r += kMaxTileRows) {
          const int64_t rows = std::min<int64_t>(kMaxTileRows, count - r);
          for (int64_t i = 0; i < rows; ++i) call.a[i] = columns + ((r + i) * params_.groups + group) * depth_;
          tiles_.at(false, rows, width / tiles_.lanes, std::min(width_, padded_) / tiles_.lanes)(call);
          for (int64_t i = 0; i < rows; ++i) {
            const int64_t pixel = first + r + i, k = group * filters_ + panel;
            float* to = reinterpret_cast<float*>(launch.outputs[0]) + pixel % y.shape[3] * y.layout.strides[3] +
                        pixel / y.shape[3] % y.shape[2] * y.layout.strides[2] +
                        pixel / y.shape[3] / y.shape[2] * y.layout.strides[0] + k;
            for (int64_t j = 0; j < filters; ++j) to[j] = sums[i * width + j] + (bias ? bias[(k + j) * bias_stride] : 0.0f);
          }
        }
      }
  }

  DeformParams params_;
  int64_t grain_;
  const TileKernels& tiles_;
  WeightedRowsFunction sum_;
  int64_t taps_ = 1, inner_ = 0, filters_ = 0, depth_ = 0, width_ = 0, padded_ = 0;
  int64_t pixels_ = 0, rows_ = 0, blocks_ = 0, slots_ = 1;
};

}  // namespace

Result<CpuKernelPtr> make_deform(const Stage& stage, const Schedule& schedule, const Device&, uint32_t constants) {
  const LoopSchedule* loop = get_if<LoopSchedule>(&schedule);
  const TileKernels* tiles = loop ? tile_kernels_of(loop->unit) : nullptr;
  if (!tiles || loop->variant != "columns")
    return Error{Reason::backend_lacks_variant, "The CPU backend has no deform variant '" + variant_of(schedule) +
                                                    "' for the unit '" + unit_of(schedule) + "'; choose 'columns' or 'plain'."};
  for (const TensorDesc& desc : stage.inputs)
    if (desc.dtype != DType::f32)
      return Error{Reason::type_not_served,
                   "The deform columns are f32, not " + std::string(name_of(desc.dtype)) + "; choose the variant 'plain'."};
  const auto side_by_side = [](const TensorDesc& desc) { return desc.shape[1] <= 1 || desc.layout.strides[1] == 1; };
  if (!side_by_side(stage.inputs[0]) || !side_by_side(stage.outputs[0]))
    return Error{Reason::layout_not_served, "The deform columns take channels side by side; choose the variant 'plain'."};
  return CpuKernelPtr(
      std::make_unique<DeformKernel>(stage, loop->grain, *tiles, weighted_rows(loop->unit), (constants >> 1 & 1) != 0));
}

}  // namespace sparkle::cpu
