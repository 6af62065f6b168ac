// make_direct: a convolution of few channels compiled for the CPU. A task takes some rows and columns of outputs of an image
// and all maps of a bundle of groups: input rows are laid padded into a ring that holds as many as the filter reaches over,
// unless they can be read where they are. Workspace: scale and bias padded to whole vectors, weights that are not constant.
#include <algorithm>
#include <span>

#include "backends/cpu/channel_epilogue.h"
#include "backends/cpu/direct/direct_rows.h"
#include "backends/cpu/packing_kernel.h"
#include "base/round_up.h"
#include "families/direct/direct_cut.h"
#include "families/loops/grain.h"
#include "families/windows/taps.h"

namespace sparkle::cpu {
namespace {

// Maps that pass over a row of outputs together, and the kernels for their tiles by length - 1; nullptr: there are none.
struct MapBlock : DirectBlock {
  const DirectKernel* kernels = nullptr;
};

class DirectConvolution final : public PackingKernel {
 public:
  DirectConvolution(const Stage& stage, const DirectSchedule& schedule, const DirectKernels& kernels, const TileKernels& tiles,
                    bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<DirectParams>(stage_.params)),
        kernels_(kernels),
        tiles_(tiles),
        w_(feature_map(stage_.inputs[1])),
        cut_(direct_cut(stage_, schedule, kernels_.lanes)),
        x_(cut_.x),
        y_(cut_.y),
        // Whole vectors may be read from the last map on.
        epilogue_(stage_, params_.epilogue, y_.c + kernels_.lanes * kMostMapVectors),
        fast_(epilogue_.clamps() && !epilogue_.scales() && epilogue_.residuals() == 0),
        depth_(cut_.depth),
        bundle_(cut_.bundle),
        columns_(cut_.columns),
        rows_(cut_.rows),
        grain_(schedule.grain),
        fetches_(schedule.prefetch != 0 && cut_.in_place()),
        joins_(cut_.joins && fast_) {
    find_steps();
    find_blocks(schedule);
    size_workspace(epilogue_.workspace_bytes(), weight_floats_ * 4);
  }

  bool fits_scratch() const {
    return cut_.ring <= kMostDirectRing && (cut_.in_place() || cut_.ring * cut_.row.floats <= kDirectScratchFloats);
  }
  // Every width of a strip can be cut into tiles that there are.
  bool has_tiles() const {
    for (const MapBlock& block : blocks_)
      for (const DirectRowCut& cut : block.tiles)
        if (!block.kernels || !block.kernels[cut.length - 1] || (cut.longer < cut.tiles && !block.kernels[cut.length - 2]))
          return false;
    return true;
  }

  void run(const CpuLaunch& launch) const override {
    if (y_.n * y_.h * y_.w * y_.c == 0) return;
    Operands o;
    o.x = reinterpret_cast<const float*>(launch.inputs[0]), o.y = reinterpret_cast<float*>(launch.outputs[0]);
    o.weights = reinterpret_cast<const float*>(packed_weights(launch));
    o.epilogue = epilogue_.prepare(launch, 0);

    const int64_t column_blocks = divided(y_.w, columns_), row_blocks = divided(y_.h, rows_);
    const int64_t bundles = params_.groups / bundle_, total = y_.n * row_blocks * bundles * column_blocks;
    const int64_t tasks = tasks_of(grain_, y_.n * y_.pixels() * y_.c, total, launch.executor->width());
    for_each_range(*launch.executor, total, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % column_blocks, bundle = i / column_blocks % bundles,
                      row = i / column_blocks / bundles % row_blocks, n = i / column_blocks / bundles / row_blocks;
        part(o, bundle, n, row * rows_, std::min(y_.h, (row + 1) * rows_), column * columns_,
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
  struct Place {
    int64_t n, p, q0, q1;  // image, row of outputs, its columns
  };

  // Where the steps of all rows of the filter lie, in the order of the packed weights; in the ring once for each place that the
  // first row may have.
  void find_steps() {
    const Window& w = params_.window;
    const bool in_place = cut_.in_place();
    const auto place = [&](int64_t c, int64_t s) {
      const int64_t at = s * w.dilation[2];
      return c * cut_.channel +
             (in_place || !cut_.pixels ? at * cut_.column : at % w.stride[2] * cut_.row.phase + at / w.stride[2]);
    };
    for (int64_t begin = 0; begin < (in_place ? 1 : cut_.ring); ++begin)
      for (int64_t r = 0; r < w.filter[1]; ++r) {
        const int64_t row =
            in_place ? r * w.dilation[1] * x_.row_stride : (begin + r * w.dilation[1]) % cut_.ring * cut_.row.floats;
        const int64_t taps = cut_.slides ? 1 : w.filter[2];
        for (int64_t i = 0; i < taps * depth_; ++i)
          steps_.push_back(row + (cut_.pixels || cut_.slides ? place(i / taps, i % taps) : place(i % depth_, i / depth_)));
      }
    row_steps_ = static_cast<int64_t>(steps_.size()) / w.filter[1] / (in_place ? 1 : cut_.ring);
    x_output_ = cut_.pixels ? 1 : w.stride[2] * cut_.column;
    x_pixel_ = cut_.slides ? cut_.column : x_output_;
  }

  void find_blocks(const DirectSchedule& schedule) {
    const DirectBlocks all = direct_blocks(stage_, schedule, cut_, kernels_.map_vectors > 2);
    for (const DirectBlock& cut : all.blocks) {
      MapBlock block{cut, nullptr};
      const auto index = static_cast<size_t>(block.vectors - 1);
      if (cut_.pixels) block.kernels = kernels_.pixels[index];
      else if (!cut_.slides) block.kernels = kernels_.maps[index];
      for (size_t t = 0; cut_.slides && t < std::size(kSlideTaps); ++t)
        if (kSlideTaps[t] == params_.window.filter[2]) block.kernels = kernels_.slide[t];
      blocks_.push_back(block);
    }
    weight_floats_ = all.weight_floats;
  }

  // Outputs [p0, p1) x [q0, q1) of all maps of a bundle of groups.
  void part(const Operands& o, int64_t bundle, int64_t n, int64_t p0, int64_t p1, int64_t q0, int64_t q1) const {
    alignas(64) float ring[kDirectScratchFloats];
    const Window& w = params_.window;
    const int64_t left = q0 * w.stride[2] - w.pad_begin[2];
    const int64_t span = w.span(2, q1 - q0);
    DirectInputCall lay{};
    lay.x_pixel = x_.pixel_stride, lay.x_channel = x_.channel_stride;
    lay.channels = bundle_ * depth_, lay.stride = cut_.pixels ? w.stride[2] : 1;
    lay.before = std::clamp<int64_t>(-left, 0, span);
    lay.columns = std::clamp<int64_t>(x_.w - std::max<int64_t>(left, 0), 0, span - lay.before);
    lay.row = cut_.row;
    const float* image =
        o.x + n * x_.image_stride + bundle * lay.channels * x_.channel_stride + std::max<int64_t>(left, 0) * x_.pixel_stride;
    const int64_t group = depth_ * cut_.channel;  // floats between the inputs of groups
    const size_t bundle_blocks = blocks_.size() / static_cast<size_t>(params_.groups / bundle_);
    const auto blocks = std::span(blocks_).subspan(static_cast<size_t>(bundle) * bundle_blocks, bundle_blocks);
    int64_t held[kMostDirectRing];  // which input row lies in each place of the ring
    std::fill_n(held, cut_.ring, -1);
    DirectCall call{};
    call.x_pixel = x_pixel_;
    if (fast_) {
      const Clamp clamp = epilogue_.clamp();
      call.clamp_below = clamp.below, call.clamp_above = clamp.above, call.low = clamp.low, call.high = clamp.high;
    }
    if (joins_ && p1 - p0 > 1 && q0 == 0 && q1 == y_.w)
      return joined_rows(o, blocks, n, p0, p1, call, image + p0 * x_.row_stride, group);
    for (int64_t p = p0; p < p1; ++p) {
      // The rows [first, end) of the filter lie inside of the image.
      const int64_t top = p * w.stride[1] - w.pad_begin[1];
      const bool inside = top >= 0 && top + cut_.ring <= x_.h;
      const Taps taps =
          inside ? Taps{0, w.filter[1]} : taps_at({x_.h, y_.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]}, p);
      call.step_count = taps.size() * row_steps_;
      call.steps = steps_.data();
      if (cut_.in_place()) {
        call.x = image + (top + taps.begin * w.dilation[1]) * x_.row_stride;
      } else {
        for (int64_t r = taps.begin; r < taps.end; ++r) {
          const int64_t h = top + r * w.dilation[1];
          if (held[h % cut_.ring] == h) continue;
          held[h % cut_.ring] = h;
          lay.ahead = h + w.stride[1] < x_.h ? w.stride[1] * x_.row_stride : 0;
          lay.x = image + h * x_.row_stride, lay.to = ring + h % cut_.ring * cut_.row.floats;
          (cut_.planes ? kernels_.lay_planes : kernels_.lay_row)(lay);
        }
        call.x = ring;
        call.steps += ((top % cut_.ring + cut_.ring) % cut_.ring * w.filter[1] + taps.begin) * row_steps_;
      }
      const int64_t next = top + w.stride[1] + cut_.ring - 1;  // the last row of inputs that the next row of outputs reads
      const float* ahead = fetches_ && p + 1 < p1 && next < x_.h ? image + next * x_.row_stride : nullptr;
      const float* x = call.x;
      for (size_t b = 0; b < blocks.size(); ++b) {
        call.x = x + (blocks[b].group - bundle * bundle_) * group;
        row(o, blocks[b], taps.begin, call, {n, p, q0, q1},
            {ahead, static_cast<int64_t>(b), static_cast<int64_t>(blocks.size())});
      }
    }
  }

  // Rows [p0, p1) that follow one another in memory, as one row: longer tiles, fewer calls. `x`: the first pixel.
  void joined_rows(const Operands& o, std::span<const MapBlock> blocks, int64_t n, int64_t p0, int64_t p1, DirectCall& call,
                   const float* x, int64_t group) const {
    const int64_t pixels = (p1 - p0) * y_.w;
    call.step_count = row_steps_, call.steps = steps_.data();
    for (size_t b = 0; b < blocks.size(); ++b) {
      MapBlock block = blocks[b];
      block.tiles[0] = block.tiles[1] = direct_row_cut(cut_, pixels, block.most);
      call.x = x + (block.group - blocks[0].group) * group;
      row(o, block, 0, call, {n, p0, 0, pixels},
          {fetches_ ? x + x_.row_stride : nullptr, static_cast<int64_t>(b), static_cast<int64_t>(blocks.size())});
    }
  }

  // What lies in the row `row` (nullptr: nothing) below a call's tiles, shared out among the blocks that pass over them.
  struct Ahead {
    const float* row;
    int64_t block, blocks;
    void fetch(DirectCall& call, int64_t begin) const {
      constexpr int64_t kLine = 16;  // floats
      const int64_t lines = row ? divided(call.x_tile, kLine) : 0, first = lines * block / blocks;
      call.fetch = row ? row + begin + first * kLine : nullptr;
      call.fetch_lines = lines * (block + 1) / blocks - first;
    }
  };
  // One row of outputs of a block of maps; `first`: the row of the filter that the steps begin with.
  void row(const Operands& o, const MapBlock& block, int64_t first, DirectCall& call, const Place& at,
           const Ahead& ahead) const {
    const int64_t lanes = kernels_.lanes, unit = cut_.unit();  // outputs that a tile grows by
    const DirectRowCut& cut = block.tiles[at.q1 - at.q0 == columns_ ? 0 : 1];
    call.weights = o.weights + block.weights + first * block.row_floats;
    if (!fast_) return raw_row(o, block, call, at, cut);
    const int64_t width = at.q1 - at.q0;
    call.y = o.y + at.n * y_.image_stride + at.p * y_.row_stride + at.q0 * y_.pixel_stride + block.first;
    call.y_pixel = y_.pixel_stride;
    call.bias = o.epilogue.bias + block.first;
    call.lanes = block.maps - (block.vectors - 1) * lanes;
    call.outputs = std::min(width, cut.longer * cut.length * unit);
    call.tiles = cut.longer, call.x_tile = cut.length * unit * x_output_;
    ahead.fetch(call, 0);
    block.kernels[cut.length - 1](call);
    if (cut.longer == cut.tiles) return;
    const float* x = call.x;
    const int64_t done = cut.longer * call.x_tile;
    call.x += done;
    call.y += call.outputs * call.y_pixel;
    call.outputs = width - call.outputs;
    call.tiles = cut.tiles - cut.longer, call.x_tile = (cut.length - 1) * unit * x_output_;
    ahead.fetch(call, done);
    block.kernels[cut.length - 2](call);
    call.x = x;
  }

  // The same tile by tile, raw sums and then the general epilogue.
  void raw_row(const Operands& o, const MapBlock& block, DirectCall call, const Place& at, const DirectRowCut& cut) const {
    alignas(64) float sums[(kMostMapPixels + 1) * kMaxLanes];
    alignas(64) static constexpr float kNoBias[kMostMapVectors * kMaxLanes] = {};
    const int64_t lanes = kernels_.lanes, unit = cut_.unit();
    call.y = sums;
    call.y_pixel = cut_.pixels ? block.vectors : block.vectors * lanes;
    call.bias = kNoBias;
    call.lanes = lanes, call.tiles = 1;
    int64_t q = at.q0;
    for (int64_t t = 0; t < cut.tiles; ++t) {
      const int64_t size = t < cut.longer ? cut.length : cut.length - 1;
      call.outputs = std::min(at.q1 - q, size * unit);
      block.kernels[size - 1](call);
      epilogue_.finish(tiles_, o.epilogue, {at.n, at.p, q, q + call.outputs, block.first, block.maps}, sums, call.y_pixel, y_,
                       o.y);
      call.x += size * unit * x_output_;
      q += call.outputs;
    }
  }

  std::string weights_key() const override {
    return "direct way=" +
           std::to_string(cut_.pixels   ? 0
                          : cut_.slides ? 1
                                        : 2) +
           " lanes=" + std::to_string(kernels_.lanes) + " groups=" + std::to_string(params_.groups) +
           " blocks=" + std::to_string(blocks_.size()) + " " + weights_place(stage_.inputs[1]);
  }
  // Pixels: [block][row][channel][tap][map]; slide: [block][row][channel][tap][lane]; maps: [block][row][tap][channel][map of
  // its vectors]; zeros for maps that do not exist.
  void write_weights(const std::byte* from, std::byte* packed, Executor&) const override {
    const auto* weights = reinterpret_cast<const float*>(from);
    auto* to = reinterpret_cast<float*>(packed);
    const Triple& filter = params_.window.filter;
    for (const MapBlock& block : blocks_) {
      const int64_t maps = block.vectors * (cut_.pixels ? 1 : kernels_.lanes);
      for (int64_t r = 0; r < filter[1]; ++r)
        for (int64_t i = 0; i < filter[2] * depth_; ++i) {
          const bool maps_in_lanes = !cut_.pixels && !cut_.slides;
          const int64_t c = maps_in_lanes ? i % depth_ : i / filter[2], s = maps_in_lanes ? i / depth_ : i % filter[2];
          for (int64_t k = 0; k < maps; ++k)
            *to++ = k < block.maps ? weights[(block.first + k) * w_.image_stride + c * w_.channel_stride + r * w_.row_stride +
                                             s * w_.pixel_stride]
                                   : 0.0f;
        }
    }
  }

  DirectParams params_;
  const DirectKernels& kernels_;
  const TileKernels& tiles_;
  FeatureMap w_;
  DirectCut cut_;
  FeatureMap x_, y_;
  ChannelEpilogue epilogue_;
  bool fast_;                                // sums are finished by a bias and bounds
  int64_t depth_, bundle_, columns_, rows_;  // of the cut
  std::vector<int64_t> steps_;
  std::vector<MapBlock> blocks_;
  int64_t row_steps_ = 0, weight_floats_ = 0, grain_ = 0;
  bool fetches_ = false, joins_ = false;  // joins: rows of a task are one
  int64_t x_output_ = 1, x_pixel_ = 1;    // floats of input: between outputs of a row, as the kernels want them
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's direct kernels " + std::move(what) + "."}; }

}  // namespace

Result<CpuKernelPtr> make_direct(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  const auto* s = get_if<DirectSchedule>(&schedule);
  if (!s) return lacks("do not run the schedule '" + to_text(schedule) + "'");
  if (s->variant != "pixels" && s->variant != "slide" && s->variant != "maps")
    return lacks("have no variant '" + s->variant + "'");
  const DirectKernels* kernels = device.unit(s->unit) ? direct_kernels_of(s->unit) : nullptr;
  const TileKernels* tiles = tile_kernels_of(s->unit);
  if (!kernels || !tiles) return lacks("cannot use the unit '" + s->unit + "', which this device or build does not have");
  const auto* params = get_if<DirectParams>(&stage.params);
  if (!params || stage.outputs.size() != 1 || stage.inputs.size() != static_cast<size_t>(2 + params->epilogue.operands()))
    return Error{Reason::internal, "A direct stage has two operands, those of its epilogue and one output."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list)
      if (desc.dtype != DType::f32)
        return Error{Reason::type_not_served, "The CPU's direct kernels compute in f32, not " +
                                                  std::string(name_of(desc.dtype)) + "; convert the operand."};
  const FeatureMap x = feature_map(stage.inputs[0]), y = feature_map(stage.outputs[0]);
  if (y.c > 1 && y.channel_stride != 1)
    return Error{Reason::layout_not_served, "The CPU's direct kernels write channels that lie next to each other."};
  const Window& w = params->window;
  const bool large = w.filter[1] > kMostDirectRows || w.filter[2] > kMostDirectRows || w.dilation[1] > kMostDirectRing ||
                     w.dilation[2] > kMostDirectRing || w.stride[2] > kMostDirectRing ||
                     x.c / params->groups > most_direct_channels(w);
  const Error refused{Reason::filter_not_served,
                      "The CPU's direct kernels support flat filters of few rows and channels whose inputs fit their scratch."};
  if (x.d != 1 || w.filter[0] != 1 || large) return refused;
  if (params->groups > 1 && s->variant == "pixels")
    return Error{Reason::groups_not_served, "The CPU's direct kernels take groups with maps in the lanes only."};
  if (s->variant == "slide" && (w.stride[2] != 1 || w.dilation[2] != 1)) return refused;
  auto kernel = std::make_unique<DirectConvolution>(stage, *s, *kernels, *tiles, (constants >> 1 & 1) != 0);
  if (!kernel->fits_scratch() || !kernel->has_tiles()) return refused;
  return CpuKernelPtr(std::move(kernel));
}

}  // namespace sparkle::cpu
