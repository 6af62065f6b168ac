// make_grouped: a grouped convolution compiled for the CPU. A task takes some rows of outputs, some columns and one vector of
// filters: input rows go, spread over the lanes or as they are, into a ring that holds as many as the filter is high.
// Workspace: scale and bias padded to whole vectors, weights that are not constant.
#include <algorithm>

#include "backends/cpu/channel_epilogue.h"
#include "backends/cpu/grouped/grouped_rows.h"
#include "backends/cpu/packing_kernel.h"
#include "base/round_up.h"
#include "families/loops/grain.h"
#include "families/grouped/grouped.h"

namespace sparkle::cpu {
namespace {

constexpr int64_t kRingFloats = 16 * 1024;

class GroupedKernel final : public PackingKernel {
 public:
  GroupedKernel(const Stage& stage, const GroupedSchedule& schedule, const GroupedKernels& kernels, const TileKernels& tiles,
                bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<GroupedParams>(stage_.params)),
        kernels_(kernels),
        tiles_(tiles),
        x_(feature_map(stage_.inputs[0])),
        y_(feature_map(stage_.outputs[0])),
        w_(feature_map(stage_.inputs[1])),
        blocks_(divided(y_.c, kernels_.lanes)),
        epilogue_(stage_, params_.epilogue, blocks_ * kernels_.lanes),
        fast_(epilogue_.clamps() && !epilogue_.scales() && epilogue_.residuals() == 0) {
    const Window& w = params_.window;
    depth_ = x_.c / params_.groups;
    columns_ = std::clamp<int64_t>(schedule.columns, 1, std::max<int64_t>(1, y_.w));
    rows_ = schedule.rows > 0 ? schedule.rows : std::max<int64_t>(1, y_.h);
    grain_ = schedule.grain;
    ring_ = w.span(1, 1);
    span_ = w.span(2, columns_);
    permutes_ = schedule.variant == "permute";
    pixel_ = depth_ * kernels_.lanes;
    column_ = permutes_ ? kernels_.lanes : pixel_;
    for (int64_t j = 0; j < depth_; ++j)
      for (int64_t l = 0; l < kernels_.lanes; ++l) lane_table_.push_back(static_cast<int32_t>(l / depth_ * depth_ + j));
    size_workspace(epilogue_.workspace_bytes(), packed_floats() * 4);
  }

  bool fits_ring() const { return ring_ <= kMostGroupedRing && ring_ * span_ * column_ <= kRingFloats; }

  void run(const CpuLaunch& launch) const override {
    if (y_.n * y_.h * y_.w * y_.c == 0) return;
    Operands o;
    o.x = reinterpret_cast<const float*>(launch.inputs[0]), o.y = reinterpret_cast<float*>(launch.outputs[0]);
    o.weights = reinterpret_cast<const float*>(packed_weights(launch));
    o.epilogue = epilogue_.prepare(launch, 0);

    const int64_t column_blocks = divided(y_.w, columns_), row_blocks = divided(y_.h, rows_);
    const int64_t total = y_.n * row_blocks * blocks_ * column_blocks;
    const int64_t tasks = tasks_of(grain_, y_.n * y_.pixels() * y_.c, total, launch.executor->width());
    for_each_range(*launch.executor, total, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % column_blocks, block = i / column_blocks % blocks_,
                      row = i / column_blocks / blocks_ % row_blocks, n = i / column_blocks / blocks_ / row_blocks;
        part(o, n, block, row * rows_, std::min(y_.h, (row + 1) * rows_), column * columns_,
             std::min(y_.w, (column + 1) * columns_));
      }
    });
  }

 private:
  struct Operands {
    const float* x = nullptr;
    const float* weights = nullptr;  // packed
    EpilogueOperands epilogue;
    float* y = nullptr;
  };

  // Outputs [p0, p1) x [q0, q1) of one block of filters.
  void part(const Operands& o, int64_t n, int64_t block, int64_t p0, int64_t p1, int64_t q0, int64_t q1) const {
    alignas(64) float ring[kRingFloats];
    const Window& w = params_.window;
    const int64_t lanes = kernels_.lanes, taps = w.filter[2], row_floats = span_ * column_, channel = block * lanes;
    const int64_t left = q0 * w.stride[2] - w.pad_begin[2];
    const int64_t span = (q1 - q0 - 1) * w.stride[2] + (taps - 1) * w.dilation[2] + 1;
    SpreadCall spread{};
    spread.x_stride = x_.pixel_stride, spread.depth = depth_;
    spread.channels = std::min(lanes, x_.c - channel);
    spread.before = std::clamp<int64_t>(-left, 0, span);
    spread.columns = std::clamp<int64_t>(x_.w - std::max<int64_t>(left, 0), 0, span - spread.before);
    spread.after = span - spread.before - spread.columns;
    const float* first = o.x + n * x_.image_stride + std::max<int64_t>(left, 0) * x_.pixel_stride + channel;
    int64_t held[kMostGroupedRing];  // which input row lies in each place of the ring
    std::fill_n(held, ring_, -1);
    GroupedCall call{};
    call.taps = taps, call.depth = depth_;
    call.x_pixel = w.stride[2] * column_, call.x_tap = w.dilation[2] * column_;
    call.lanes = lane_table_.data();
    const float* weights = o.weights + block * w.taps() * pixel_;
    for (int64_t p = p0; p < p1; ++p) {
      const int64_t top = p * w.stride[1] - w.pad_begin[1];
      call.rows = 0;
      for (int64_t r = 0; r < w.filter[1]; ++r) {
        const int64_t h = top + r * w.dilation[1];
        if (h < 0 || h >= x_.h) continue;
        if (held[h % ring_] != h) {
          held[h % ring_] = h;
          spread.x = first + h * x_.row_stride;
          spread.ahead = h + w.stride[1] < x_.h ? w.stride[1] * x_.row_stride : 0;
          spread.to = ring + h % ring_ * row_floats;
          (permutes_ ? kernels_.copy : kernels_.spread)(spread);
        }
        call.x[call.rows] = ring + h % ring_ * row_floats;
        call.weights[call.rows++] = weights + r * taps * pixel_;
      }
      row(o, call, n, block, p, q0, q1);
    }
  }

  // The outputs [q0, q1) of row p.
  void row(const Operands& o, GroupedCall& call, int64_t n, int64_t block, int64_t p, int64_t q0, int64_t q1) const {
    const Clamp clamp = epilogue_.clamp();
    const int64_t lanes = kernels_.lanes, channel = block * lanes, channels = std::min(lanes, y_.c - channel);
    float* y = o.y + n * y_.image_stride + p * y_.row_stride + channel;
    alignas(64) float sums[kMostGroupedPixels * kMaxLanes];
    const bool fast = fast_ && channels == lanes;
    call.finish = fast;
    call.clamp_below = clamp.below, call.clamp_above = clamp.above, call.low = clamp.low, call.high = clamp.high;
    call.bias = o.epilogue.bias + channel;
    const int64_t tiles = divided(q1 - q0, permutes_ ? kernels_.most_permuted : kMostGroupedPixels);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t begin = q0 + t * (q1 - q0) / tiles, end = q0 + (t + 1) * (q1 - q0) / tiles;
      call.y = fast ? y + begin * y_.pixel_stride : sums;
      call.y_stride = fast ? y_.pixel_stride : lanes;
      (permutes_ ? kernels_.permuted : kernels_.sums)[end - begin - 1](call);
      for (int r = 0; r < call.rows; ++r) call.x[r] += (end - begin) * call.x_pixel;
      if (!fast) epilogue_.finish(tiles_, o.epilogue, {n, p, begin, end, channel, channels}, sums, lanes, y_, o.y);
    }
  }

  int64_t packed_floats() const { return blocks_ * params_.window.taps() * pixel_; }
  std::string weights_key() const override {
    return "grouped lanes=" + std::to_string(kernels_.lanes) + " " + weights_place(stage_.inputs[1]);
  }
  // [block][row][tap][channel of the group][lane], zeros in lanes that no filter has.
  void write_weights(const std::byte* from, std::byte* packed, Executor&) const override {
    const auto* weights = reinterpret_cast<const float*>(from);
    auto* to = reinterpret_cast<float*>(packed);
    for (int64_t block = 0; block < blocks_; ++block)
      for (int64_t r = 0; r < params_.window.filter[1]; ++r)
        for (int64_t s = 0; s < params_.window.filter[2]; ++s)
          for (int64_t j = 0; j < depth_; ++j)
            for (int64_t l = 0; l < kernels_.lanes; ++l) {
              const int64_t k = block * kernels_.lanes + l;
              *to++ = k < y_.c ? weights[k * w_.image_stride + j * w_.channel_stride + r * w_.row_stride + s * w_.pixel_stride]
                               : 0.0f;
            }
  }

  GroupedParams params_;
  const GroupedKernels& kernels_;
  const TileKernels& tiles_;
  bool permutes_ = false;
  FeatureMap x_, y_, w_;
  int64_t blocks_;
  ChannelEpilogue epilogue_;
  bool fast_;  // sums are finished by a bias and bounds
  int64_t depth_ = 1, columns_ = 1, rows_ = 1, grain_ = 0;
  int64_t ring_ = 1, span_ = 1;      // rows of the ring; columns of a row
  int64_t pixel_ = 1, column_ = 1;   // floats: weights of a tap; a column of the ring
  std::vector<int32_t> lane_table_;  // [channel of the group][lane]
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's grouped kernels " + std::move(what) + "."}; }

}  // namespace

Result<CpuKernelPtr> make_grouped(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  const auto* s = get_if<GroupedSchedule>(&schedule);
  if (!s) return lacks("do not run the schedule '" + to_text(schedule) + "'");
  if (s->variant != "spread" && s->variant != "permute") return lacks("have no variant '" + s->variant + "'");
  const GroupedKernels* kernels = device.unit(s->unit) ? grouped_kernels_of(s->unit) : nullptr;
  const TileKernels* tiles = tile_kernels_of(s->unit);
  if (!kernels || !tiles) return lacks("cannot use the unit '" + s->unit + "', which this device or build does not have");
  const auto* params = get_if<GroupedParams>(&stage.params);
  if (!params || stage.outputs.size() != 1 || stage.inputs.size() != static_cast<size_t>(2 + params->epilogue.operands()))
    return Error{Reason::internal, "A grouped stage has two operands, those of its epilogue and one output."};
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  const int64_t depth = params->groups > 0 ? x.c / params->groups : 0;
  if (x.c != y.c || depth < 1 || depth > 16 || kernels->lanes % depth != 0)
    return Error{Reason::groups_not_served,
                 "The CPU's grouped kernels support as many filters as channels, in groups that fill a vector."};
  if ((x.c > 1 && x.channel_stride != 1) || (y.c > 1 && y.channel_stride != 1))
    return Error{Reason::layout_not_served, "The CPU's grouped kernels read and write channels that lie next to each other."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list)
      if (desc.dtype != DType::f32)
        return Error{Reason::type_not_served, "The CPU's grouped kernels compute in f32, not " +
                                                  std::string(name_of(desc.dtype)) + "; convert the operand."};
  auto kernel = std::make_unique<GroupedKernel>(stage, *s, *kernels, *tiles, (constants >> 1 & 1) != 0);
  if (x.d != 1 || params->window.filter[0] != 1 || params->window.filter[1] > kMostGroupedRows || !kernel->fits_ring())
    return Error{Reason::filter_not_served,
                 "The CPU's grouped kernels support flat filters of few rows whose inputs fit their ring."};
  return CpuKernelPtr(std::move(kernel));
}

}  // namespace sparkle::cpu
