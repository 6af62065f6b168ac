// sum (x - x_zero)(w - w_zero) = sum x (w - w_zero) - x_zero * sum (w - w_zero): weights less their zero point are packed as 16
// bits, the last term is a correction per channel, and padding is read from a line of zero points.
#include "backends/cpu/depthwise/integer_depthwise.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backends/cpu/depthwise/integer_rows.h"
#include "base/system/per_worker.h"
#include "families/depthwise/depthwise.h"
#include "families/loops/grain.h"
#include "families/integers/integers.h"

namespace sparkle::cpu {
namespace {

int32_t integer_at(const std::byte* from, DType type, int64_t i) {
  if (type == DType::u8) return static_cast<int32_t>(static_cast<uint8_t>(from[i]));
  if (type == DType::i8) return static_cast<int8_t>(from[i]);
  int16_t wide;
  std::memcpy(&wide, from + 2 * i, 2);
  return wide;
}
int64_t list_stride(const TensorDesc& desc) {
  return desc.shape.empty() || desc.shape.back() == 1 ? 0 : desc.layout.strides.back();
}

class IntegerDepthwise final : public CpuKernel {
 public:
  IntegerDepthwise(const Stage& stage, int64_t grain, IntegerRowKernel kernel, bool constant_weights)
      : stage_(stage),
        grain_(grain),
        params_(get<DepthwiseParams>(stage_.params)),
        kernel_(kernel),
        // Bytes depend on a zero point that only a run knows.
        packs_ahead_(constant_weights && stage.inputs[1].dtype == DType::i16),
        at_(integer_operands(params_.epilogue)),
        x_(feature_map(stage.inputs[0])),
        y_(feature_map(stage.outputs[0])) {
    groups_ = (params_.window.taps() + kTapGroup - 1) / kTapGroup;
    channels_ = (y_.c + kernel_.block - 1) / kernel_.block * kernel_.block;
    workspace_bytes_ = packs_ahead_ ? 0 : packed_size();
  }

  int64_t workspace_bytes() const override { return workspace_bytes_ + 64; }
  int64_t packed_bytes(int input) const override { return input == 1 && packs_ahead_ ? packed_size() : 0; }
  std::string packed_key(int input) const override {
    if (packed_bytes(input) == 0) return {};
    return "integer depthwise with sums block=" + std::to_string(kernel_.block) +
           " taps=" + std::to_string(params_.window.taps()) + " k=" + std::to_string(y_.c);
  }
  void pack(int, const std::byte* from, std::byte* to, Executor&) const override {
    const TensorDesc row{stage_.inputs[1].dtype, stage_.inputs[1].shape, row_major(stage_.inputs[1].shape)};
    pack_weights(feature_map(row), from, [](int64_t) { return 0; }, to);
  }

  void run(const CpuLaunch& launch) const override {
    if (y_.n * y_.c * y_.pixels() == 0) return;
    IntegerRowCall call{};
    const bool single = params_.window.taps() % kTapGroup == 1;
    call.groups = groups_ - single, call.single = single, call.taps_stride = groups_ * kTapGroup;
    call.channels = y_.c, call.columns = y_.w;
    call.weights = reinterpret_cast<const int16_t*>(packed_weights(launch));
    const auto* x = reinterpret_cast<const uint8_t*>(launch.inputs[0]);
    const int64_t y_bytes = size_of(stage_.outputs[0].dtype), rows = y_.n * y_.d * y_.h;
    call.y_stride = y_.pixel_stride * y_bytes;
    const int64_t tasks = tasks_of(grain_, y_.n * y_.pixels() * y_.c, rows, launch.executor->width());
    PerWorker<Lists> all(*launch.executor);
    parallel_for(*launch.executor, static_cast<int>(tasks), [&](int task, int worker) {
      Lists& own = all.of(worker, [&](Lists& lists) { prepare(launch, call, lists); });
      const auto [begin, end] = task_range(rows, tasks, task);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t h = row % y_.h, d = row / y_.h % y_.d, n = row / y_.h / y_.d;
        find_taps(x + n * x_.image_stride, d, h, own.line, own.taps);
        own.call.y = launch.outputs[0] + (n * y_.image_stride + d * y_.plane_stride + h * y_.row_stride) * y_bytes;
        kernel_.run(own.call);
      }
    });
  }

 private:
  // What belongs to channels, as a worker keeps it, and the call that points at it.
  struct Lists {
    std::unique_ptr<std::byte[]> room;  // of all that follow
    IntegerRowCall call;
    const uint8_t* line;   // a pixel of the padding
    const uint8_t** taps;  // of a row
  };

  int64_t weights_size() const { return channels_ * groups_ * kTapGroup * 2; }
  int64_t packed_size() const { return weights_size() + channels_ * 4; }  // weights, then their sums by [block][sum j][lane]

  // The input pixel under each tap of each pixel of one output row.
  void find_taps(const uint8_t* x, int64_t d, int64_t h, const uint8_t* line, const uint8_t** taps) const {
    const Window& w = params_.window;
    const auto inside = [](int64_t at, int64_t size) { return at >= 0 && at < size; };
    int64_t tap = 0;
    for (int64_t t = 0; t < w.filter[0]; ++t)
      for (int64_t r = 0; r < w.filter[1]; ++r) {
        const int64_t from_d = d * w.stride[0] - w.pad_begin[0] + t * w.dilation[0];
        const int64_t from_h = h * w.stride[1] - w.pad_begin[1] + r * w.dilation[1];
        const bool row_inside = inside(from_d, x_.d) && inside(from_h, x_.h);
        const uint8_t* row = row_inside ? x + (from_d * x_.plane_stride + from_h * x_.row_stride) : nullptr;
        for (int64_t s = 0; s < w.filter[2]; ++s, ++tap) {
          // Pixels [begin, end) of the output see this tap inside the row.
          const int64_t start = s * w.dilation[2] - w.pad_begin[2], stride = w.stride[2];
          const int64_t begin = std::min(y_.w, start >= 0 ? 0 : (stride - 1 - start) / stride);
          const int64_t end = row && start < x_.w ? std::clamp((x_.w - 1 - start) / stride + 1, begin, y_.w) : begin;
          const int64_t step = groups_ * kTapGroup;
          const uint8_t** to = taps + tap;
          for (int64_t q = 0; q < begin; ++q) to[q * step] = line;
          const uint8_t* from = row ? row + (begin * stride + start) * x_.pixel_stride : nullptr;
          for (int64_t q = begin; q < end; ++q, from += stride * x_.pixel_stride) to[q * step] = from;
          for (int64_t q = end; q < y_.w; ++q) to[q * step] = line;
        }
      }
  }

  // zero(k): the zero point of filter k.
  template <class Zero>
  void pack_weights(const FeatureMap& w, const std::byte* from, Zero zero, std::byte* to) const {
    const Window& f = params_.window;
    const DType type = stage_.inputs[1].dtype;
    const int64_t lanes = kernel_.block / 4;
    std::memset(to, 0, static_cast<size_t>(packed_size()));
    auto* packed = reinterpret_cast<int16_t*>(to);
    auto* sums = reinterpret_cast<uint32_t*>(to + weights_size());
    for (int64_t i = 0; i < channels_; ++i) {
      const int64_t index = i / kernel_.block, sum = i % kernel_.block / lanes, lane = i % lanes;
      const int64_t k = kernel_.first_channel(index, y_.c) + kernel_.block_channel(sum, lane);
      if (k >= y_.c) continue;
      const int32_t offset = zero(k);
      int16_t* block = packed + index * groups_ * kTapGroup * kernel_.block + sum * 4 * lanes + lane * 2;
      int64_t tap = 0;
      for (int64_t t = 0; t < f.filter[0]; ++t)
        for (int64_t r = 0; r < f.filter[1]; ++r)
          for (int64_t s = 0; s < f.filter[2]; ++s, ++tap) {
            const int64_t at = k * w.image_stride + t * w.plane_stride + r * w.row_stride + s * w.pixel_stride;
            // Of a group of four: even taps as pairs, then odd taps.
            int16_t* place = block + tap / 4 * kTapGroup * kernel_.block + tap % 2 * 2 * lanes + tap % 4 / 2;
            *place = static_cast<int16_t>(integer_at(from, type, at) - offset);
            sums[i] += static_cast<uint32_t>(int32_t{*place});
          }
    }
  }

  const std::byte* packed_weights(const CpuLaunch& launch) const {
    if (packs_ahead_) return launch.inputs[1];
    const size_t at = static_cast<size_t>(at_.b_zero);
    const int64_t stride = list_stride(stage_.inputs[at]);
    const auto zero = [&](int64_t k) { return integer_at(launch.inputs[at], stage_.inputs[at].dtype, k * stride); };
    pack_weights(feature_map(stage_.inputs[1]), launch.inputs[1], zero, launch.workspace);
    return launch.workspace;
  }

  void prepare(const CpuLaunch& launch, const IntegerRowCall& common, Lists& lists) const {
    const auto operand = [&](int i) { return launch.inputs[static_cast<size_t>(i)]; };
    const auto desc = [&](int i) -> const TensorDesc& { return stage_.inputs[static_cast<size_t>(i)]; };
    IntegerRowCall& call = lists.call;
    call = common;
    // Zero points are moved with their tensor; the padding is flipped like any pixel.
    const bool moved = desc(0).dtype == DType::i8;
    call.flip = moved ? 0x80 : 0;
    const int32_t x_zero = integer_at(operand(at_.a_zero), desc(at_.a_zero).dtype, 0);
    const auto taps = static_cast<size_t>(y_.w * groups_ * kTapGroup), channels = static_cast<size_t>(channels_);
    lists.room = std::make_unique_for_overwrite<std::byte[]>(taps * sizeof(void*) + 8 * channels + static_cast<size_t>(x_.c));
    lists.taps = reinterpret_cast<const uint8_t**>(lists.room.get());
    auto* correction = reinterpret_cast<uint32_t*>(lists.taps + taps);
    auto* scale = reinterpret_cast<float*>(correction + channels);
    lists.line = reinterpret_cast<uint8_t*>(scale + channels);
    std::memset(scale + channels, x_zero, static_cast<size_t>(x_.c));
    std::fill_n(lists.taps, taps, lists.line);
    call.taps = lists.taps, call.correction = reinterpret_cast<const int32_t*>(correction);
    const auto moved_zero = static_cast<uint32_t>(x_zero + (moved ? 128 : 0));

    const auto* bias = at_.bias >= 0 ? reinterpret_cast<const int32_t*>(operand(at_.bias)) : nullptr;
    const auto* scales = at_.scale >= 0 ? reinterpret_cast<const float*>(operand(at_.scale)) : nullptr;
    const int64_t bias_stride = bias ? list_stride(desc(at_.bias)) : 0,
                  scale_stride = scales ? list_stride(desc(at_.scale)) : 0;
    const auto* sums = reinterpret_cast<const uint32_t*>(reinterpret_cast<const std::byte*>(call.weights) + weights_size());
    // Four channels side by side at a time, as lanes hold them.
    for (int64_t i = 0; i < channels_; i += 4) {
      const int64_t lanes = kernel_.block / 4, sum = i % kernel_.block / lanes;
      const int64_t first = kernel_.first_channel(i / kernel_.block, y_.c) + kernel_.block_channel(sum, i % lanes);
      for (int64_t j = i; j < i + 4; ++j) {
        const int64_t k = std::min(first + j - i, y_.c - 1);
        correction[j] = (bias ? static_cast<uint32_t>(bias[k * bias_stride]) : 0) - moved_zero * sums[j];
        scale[j] = scales ? scales[k * scale_stride] : 0;
      }
    }
    if (!scales) return;
    call.scale = scale;
    const IntegerRange range = output_range(stage_.outputs[0].dtype, params_.epilogue);
    call.y_zero = integer_at(operand(at_.y_zero), desc(at_.y_zero).dtype, 0);
    call.is_signed = stage_.outputs[0].dtype == DType::i8;
    call.low = static_cast<float>(range.low - call.y_zero), call.high = static_cast<float>(range.high - call.y_zero);
  }

  Stage stage_;
  int64_t grain_;
  const DepthwiseParams& params_;
  IntegerRowKernel kernel_;
  bool packs_ahead_;
  IntegerOperands at_;
  FeatureMap x_, y_;
  int64_t groups_ = 0, channels_ = 0, workspace_bytes_ = 0;
};

}  // namespace

Result<CpuKernelPtr> make_integer_depthwise(const Stage& stage, const DepthwiseSchedule& schedule, uint32_t constants) {
  const auto& params = get<DepthwiseParams>(stage.params);
  SPARKLE_CHECK(check_integer_stage(stage.inputs, stage.outputs[0], params.epilogue));
  const auto lacks = [&](Reason reason, const std::string& why) {
    return Error{reason, "Depthwise variant '" + schedule.variant + "' on unit '" + schedule.unit + "' " + why + "."};
  };
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const IntegerRowKernel kernel = integer_row_kernel_of(schedule.unit, y.c);
  if (!kernel.run) return lacks(Reason::backend_lacks_variant, "is not compiled into this build");
  if (x.c != y.c) return lacks(Reason::groups_not_served, "needs one filter per channel");
  if ((x.c > 1 && x.channel_stride != 1) || (y.c > 1 && y.channel_stride != 1))
    return lacks(Reason::layout_not_served, "needs channels side by side (NHWC)");
  return CpuKernelPtr(std::make_unique<IntegerDepthwise>(stage, schedule.grain, kernel, (constants >> 1 & 1) != 0));
}

}  // namespace sparkle::cpu
