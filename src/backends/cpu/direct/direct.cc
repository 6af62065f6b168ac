// make_direct: a convolution of few channels compiled for the CPU. A task takes some rows and columns of outputs of an image
// and all maps of a bundle of groups: input rows are laid padded into a ring that holds as many as the filter reaches over,
// unless they can be read where they are. Workspace: scale and bias padded to whole vectors, weights that are not constant.
#include <algorithm>
#include <span>

#include "backends/cpu/channel_epilogue.h"
#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/direct/direct_rows.h"
#include "families/direct/direct.h"
#include "families/direct/direct_layout.h"
#include "families/grain.h"
#include "families/taps.h"

namespace sparkle::cpu {
namespace {

int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

enum class Way : uint8_t { pixels, slide, maps };

// A row of outputs cut into tiles of nearly equal length, the longer ones first.
struct RowCut {
  int64_t length = 0, longer = 0, tiles = 0;
};

// Maps that pass over a row of outputs together.
struct MapBlock {
  int64_t group = 0;
  int64_t first = 0;       // map
  int64_t maps = 0;        // that exist
  int64_t vectors = 0;     // of maps; pixels in the lanes: maps
  int64_t weights = 0;     // floats before its packed weights
  int64_t row_floats = 0;  // of packed weights of a row of the filter
  int64_t most = 0;        // longest tile along the row
  RowCut cut[2];           // of a strip as wide as most, of the last one
  const DirectKernel* kernels = nullptr;
};

class DirectConvolution final : public CpuKernel {
 public:
  DirectConvolution(Stage stage, const DirectSchedule& schedule, Way way, const DirectKernels& kernels,
                    const TileKernels& tiles, bool constant_weights)
      : stage_(std::move(stage)),
        params_(get<DirectParams>(stage_.params)),
        way_(way),
        kernels_(kernels),
        tiles_(tiles),
        constant_weights_(constant_weights),
        x_(feature_map(stage_.inputs[0])),
        y_(feature_map(stage_.outputs[0])),
        w_(feature_map(stage_.inputs[1])),
        // Whole vectors may be read from the last map on.
        epilogue_(stage_, params_.epilogue, y_.c + kernels_.lanes * kMostMapVectors),
        fast_(epilogue_.clamps() && !epilogue_.scales() && epilogue_.residuals() == 0) {
    const Window& w = params_.window;
    columns_ = std::clamp<int64_t>(schedule.columns, 1, std::max<int64_t>(1, y_.w));
    depth_ = x_.c / params_.groups, maps_ = y_.c / params_.groups;
    bundle_ = direct_bundle(params_.groups, depth_);
    rows_ = schedule.rows > 0 ? schedule.rows : std::max<int64_t>(1, y_.h);
    grain_ = schedule.grain;
    ring_ = (w.filter[1] - 1) * w.dilation[1] + 1;
    in_place_ = direct_reading(stage_, schedule.variant, columns_, kernels_.lanes) == DirectReading::in_place;
    planes_ = way_ == Way::pixels || (x_.c > 1 && x_.pitch_c != 1);
    row_ = direct_row(w, bundle_ * depth_, columns_, kernels_.lanes, way_ == Way::pixels ? w.stride[2] : 1, planes_);
    find_steps();
    find_blocks(schedule);
    weights_at_ = epilogue_.workspace_bytes();
    workspace_bytes_ = weights_at_ + (constant_weights_ ? 0 : packed_floats_ * 4);
  }

  bool fits_scratch() const { return ring_ <= kMostDirectRing && (in_place_ || ring_ * row_.floats <= kDirectScratchFloats); }
  // Every width of a strip can be cut into tiles that there are.
  bool has_tiles() const {
    for (const MapBlock& block : blocks_)
      for (const RowCut& cut : block.cut)
        if (block.most < 1 || !block.kernels[cut.length - 1] || (cut.longer < cut.tiles && !block.kernels[cut.length - 2]))
          return false;
    return true;
  }
  int64_t workspace_bytes() const override { return workspace_bytes_; }
  int64_t packed_bytes(int input) const override {
    return input == 1 && constant_weights_ ? std::max<int64_t>(64, packed_floats_ * 4) : 0;
  }
  std::string packed_key(int input) const override {
    if (packed_bytes(input) == 0) return {};
    const TensorDesc& w = stage_.inputs[1];
    std::string key = "direct way=" + std::to_string(static_cast<int>(way_)) + " lanes=" + std::to_string(kernels_.lanes) +
                      " groups=" + std::to_string(params_.groups) + " blocks=" + std::to_string(blocks_.size()) +
                      " shape=" + w.shape.to_string() + " offset=" + std::to_string(w.layout.offset) + " pitch=";
    for (int64_t pitch : w.layout.pitch) key += std::to_string(pitch) + ",";
    return key;
  }
  void pack(int input, const std::byte* from, std::byte* to, Executor&) const override {
    if (input == 1)
      pack_filters(reinterpret_cast<const float*>(from) + stage_.inputs[1].layout.offset, reinterpret_cast<float*>(to));
  }

  void run(const CpuLaunch& launch) const override {
    if (y_.n * y_.h * y_.w * y_.c == 0) return;
    Operands o;
    o.x = reinterpret_cast<const float*>(launch.inputs[0]), o.y = reinterpret_cast<float*>(launch.outputs[0]);
    o.weights = reinterpret_cast<const float*>(launch.inputs[1]);
    if (!constant_weights_) {
      auto* packed = reinterpret_cast<float*>(launch.workspace + weights_at_);
      pack_filters(o.weights, packed);
      o.weights = packed;
    }
    o.epilogue = epilogue_.prepare(launch, 0);

    const int64_t column_blocks = divided(y_.w, columns_), row_blocks = divided(y_.h, rows_);
    const int64_t bundles = params_.groups / bundle_, total = y_.n * row_blocks * bundles * column_blocks;
    const int64_t tasks = tasks_of(grain_, y_.n * y_.pixels() * y_.c, total, launch.executor->width());
    parallel_for(*launch.executor, static_cast<int>(tasks), [&](int task, int) {
      for (int64_t i = task * total / tasks; i < (task + 1) * total / tasks; ++i) {
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
    const int64_t channel = in_place_ ? x_.pitch_c : row_.channel, column = in_place_ ? x_.pitch_w : row_.column;
    const auto place = [&](int64_t c, int64_t s) {
      const int64_t at = s * w.dilation[2];
      return c * channel + (in_place_ || way_ != Way::pixels ? at * column : at % w.stride[2] * row_.phase + at / w.stride[2]);
    };
    for (int64_t begin = 0; begin < (in_place_ ? 1 : ring_); ++begin)
      for (int64_t r = 0; r < w.filter[1]; ++r) {
        const int64_t row = in_place_ ? r * w.dilation[1] * x_.pitch_h : (begin + r * w.dilation[1]) % ring_ * row_.floats;
        const int64_t taps = way_ == Way::slide ? 1 : w.filter[2];
        for (int64_t i = 0; i < taps * depth_; ++i)
          steps_.push_back(row + (way_ == Way::maps ? place(i % depth_, i / depth_) : place(i / taps, i % taps)));
      }
    row_steps_ = static_cast<int64_t>(steps_.size()) / w.filter[1] / (in_place_ ? 1 : ring_);
    x_output_ = way_ == Way::pixels ? 1 : w.stride[2] * column;
    x_pixel_ = way_ == Way::slide ? column : x_output_;
  }

  void find_blocks(const DirectSchedule& schedule) {
    const int64_t lanes = way_ == Way::pixels ? 1 : kernels_.lanes, vectors = divided(maps_, lanes);
    const int64_t widest = way_ == Way::pixels ? kMostPixelMaps : way_ == Way::slide ? 1 : kernels_.map_vectors;
    const int64_t most = std::clamp<int64_t>(schedule.maps, 1, widest), n = divided(vectors, most);
    const Triple& filter = params_.window.filter;
    for (int64_t i = 0; i < params_.groups * n; ++i) {
      MapBlock block;
      block.group = i / n;
      const int64_t b = i % n, begin = b * vectors / n, end = (b + 1) * vectors / n;
      block.first = block.group * maps_ + begin * lanes, block.vectors = end - begin;
      block.maps = std::min(maps_, end * lanes) - begin * lanes;
      block.weights = packed_floats_;
      block.row_floats = filter[2] * depth_ * block.vectors * lanes;
      packed_floats_ += filter[1] * block.row_floats;
      const auto index = static_cast<size_t>(block.vectors - 1);
      if (way_ == Way::pixels) {
        block.kernels = kernels_.pixels[index], block.most = kernels_.pixel_vectors[index];
      } else if (way_ == Way::maps) {
        block.kernels = kernels_.maps[index], block.most = kernels_.map_pixels[index];
      } else {
        for (size_t t = 0; t < std::size(kSlideTaps); ++t)
          if (kSlideTaps[t] == filter[2]) block.kernels = kernels_.slide[t], block.most = kernels_.slide_pixels[t];
      }
      if (block.vectors == most) block.most = std::min<int64_t>(block.most, std::max(1, schedule.pixels));
      const int64_t last = y_.w - (divided(y_.w, columns_) - 1) * columns_;
      block.cut[0] = row_cut(columns_, block.most), block.cut[1] = row_cut(last, block.most);
      blocks_.push_back(block);
    }
  }

  RowCut row_cut(int64_t width, int64_t most) const {
    const int64_t along = divided(width, way_ == Way::pixels ? kernels_.lanes : 1),
                  n = divided(along, std::max<int64_t>(1, most));
    const int64_t length = divided(along, std::max<int64_t>(1, n));
    return {length, along - n * (length - 1), n};
  }

  // Outputs [p0, p1) x [q0, q1) of all maps of a bundle of groups.
  void part(const Operands& o, int64_t bundle, int64_t n, int64_t p0, int64_t p1, int64_t q0, int64_t q1) const {
    alignas(64) float ring[kDirectScratchFloats];
    const Window& w = params_.window;
    const int64_t left = q0 * w.stride[2] - w.pad_begin[2];
    const int64_t span = (q1 - q0 - 1) * w.stride[2] + (w.filter[2] - 1) * w.dilation[2] + 1;
    DirectInputCall lay{};
    lay.x_pixel = x_.pitch_w, lay.x_channel = x_.pitch_c;
    lay.channels = bundle_ * depth_, lay.stride = way_ == Way::pixels ? w.stride[2] : 1;
    lay.before = std::clamp<int64_t>(-left, 0, span);
    lay.columns = std::clamp<int64_t>(x_.w - std::max<int64_t>(left, 0), 0, span - lay.before);
    lay.row = row_;
    const float* image = o.x + n * x_.pitch_n + bundle * lay.channels * x_.pitch_c + std::max<int64_t>(left, 0) * x_.pitch_w;
    const int64_t group = depth_ * (in_place_ ? x_.pitch_c : row_.channel);  // floats between the inputs of groups
    const size_t bundle_blocks = blocks_.size() / static_cast<size_t>(params_.groups / bundle_);
    const auto blocks = std::span(blocks_).subspan(static_cast<size_t>(bundle) * bundle_blocks, bundle_blocks);
    int64_t held[kMostDirectRing];  // which input row lies in each place of the ring
    std::fill_n(held, ring_, -1);
    DirectCall call{};
    call.x_pixel = x_pixel_;
    if (fast_) {
      const Clamp clamp = epilogue_.clamp();
      call.clamp_below = clamp.below, call.clamp_above = clamp.above, call.low = clamp.low, call.high = clamp.high;
    }
    for (int64_t p = p0; p < p1; ++p) {
      // The rows [first, end) of the filter lie inside of the image.
      const int64_t top = p * w.stride[1] - w.pad_begin[1];
      const bool inside = top >= 0 && top + ring_ <= x_.h;
      const Taps taps =
          inside ? Taps{0, w.filter[1]} : taps_at({x_.h, y_.h, w.filter[1], w.stride[1], w.dilation[1], w.pad_begin[1]}, p);
      call.step_count = taps.size() * row_steps_;
      call.steps = steps_.data();
      if (in_place_) {
        call.x = image + (top + taps.begin * w.dilation[1]) * x_.pitch_h;
      } else {
        for (int64_t r = taps.begin; r < taps.end; ++r) {
          const int64_t h = top + r * w.dilation[1];
          if (held[h % ring_] == h) continue;
          held[h % ring_] = h;
          lay.ahead = h + w.stride[1] < x_.h ? w.stride[1] * x_.pitch_h : 0;
          lay.x = image + h * x_.pitch_h, lay.to = ring + h % ring_ * row_.floats;
          (planes_ ? kernels_.lay_planes : kernels_.lay_row)(lay);
        }
        call.x = ring;
        call.steps += ((top % ring_ + ring_) % ring_ * w.filter[1] + taps.begin) * row_steps_;
      }
      const float* x = call.x;
      for (const MapBlock& block : blocks) {
        call.x = x + (block.group - bundle * bundle_) * group;
        row(o, block, taps.begin, call, {n, p, q0, q1});
      }
    }
  }

  // One row of outputs of a block of maps; `first`: the row of the filter that the steps begin with.
  void row(const Operands& o, const MapBlock& block, int64_t first, DirectCall& call, const Place& at) const {
    const int64_t lanes = kernels_.lanes, unit = way_ == Way::pixels ? lanes : 1;  // outputs that a tile grows by
    const RowCut& cut = block.cut[at.q1 - at.q0 == columns_ ? 0 : 1];
    call.weights = o.weights + block.weights + first * block.row_floats;
    if (!fast_) return raw_row(o, block, call, at, cut);
    const int64_t width = at.q1 - at.q0;
    call.y = o.y + at.n * y_.pitch_n + at.p * y_.pitch_h + at.q0 * y_.pitch_w + block.first;
    call.y_pixel = y_.pitch_w;
    call.bias = o.epilogue.bias + block.first;
    call.lanes = block.maps - (block.vectors - 1) * lanes;
    call.outputs = std::min(width, cut.longer * cut.length * unit);
    call.tiles = cut.longer, call.x_tile = cut.length * unit * x_output_;
    block.kernels[cut.length - 1](call);
    if (cut.longer == cut.tiles) return;
    const float* x = call.x;
    call.x += cut.longer * call.x_tile;
    call.y += call.outputs * call.y_pixel;
    call.outputs = width - call.outputs;
    call.tiles = cut.tiles - cut.longer, call.x_tile = (cut.length - 1) * unit * x_output_;
    block.kernels[cut.length - 2](call);
    call.x = x;
  }

  // The same tile by tile, raw sums and then the general epilogue.
  void raw_row(const Operands& o, const MapBlock& block, DirectCall call, const Place& at, const RowCut& cut) const {
    alignas(64) float sums[(kMostMapPixels + 1) * kMaxLanes];
    alignas(64) static constexpr float kNoBias[kMostMapVectors * kMaxLanes] = {};
    const int64_t lanes = kernels_.lanes, unit = way_ == Way::pixels ? lanes : 1;
    call.y = sums;
    call.y_pixel = way_ == Way::pixels ? block.vectors : block.vectors * lanes;
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

  // Pixels: [block][row][channel][tap][map]; slide: [block][row][channel][tap][lane]; maps: [block][row][tap][channel][map of
  // its vectors]; zeros for maps that do not exist.
  void pack_filters(const float* weights, float* to) const {
    const Triple& filter = params_.window.filter;
    for (const MapBlock& block : blocks_) {
      const int64_t maps = block.vectors * (way_ == Way::pixels ? 1 : kernels_.lanes);
      for (int64_t r = 0; r < filter[1]; ++r)
        for (int64_t i = 0; i < filter[2] * depth_; ++i) {
          const int64_t c = way_ == Way::maps ? i % depth_ : i / filter[2], s = way_ == Way::maps ? i / depth_ : i % filter[2];
          for (int64_t k = 0; k < maps; ++k)
            *to++ = k < block.maps ? weights[(block.first + k) * w_.pitch_n + c * w_.pitch_c + r * w_.pitch_h + s * w_.pitch_w]
                                   : 0.0f;
        }
    }
  }
  Stage stage_;
  DirectParams params_;
  Way way_;
  const DirectKernels& kernels_;
  const TileKernels& tiles_;
  bool constant_weights_, in_place_ = false, planes_ = false;
  FeatureMap x_, y_, w_;
  ChannelEpilogue epilogue_;
  bool fast_;  // sums are finished by a bias and bounds
  DirectRow row_;
  std::vector<int64_t> steps_;
  std::vector<MapBlock> blocks_;
  int64_t depth_ = 1, maps_ = 1, bundle_ = 1;  // of a group: channels, maps; groups laid together
  int64_t columns_ = 1, rows_ = 1, ring_ = 1, row_steps_ = 0, grain_ = 0;
  int64_t x_output_ = 1, x_pixel_ = 1;  // floats of input: between outputs of a row, as the kernels want them
  int64_t packed_floats_ = 0, weights_at_ = 0, workspace_bytes_ = 0;
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's direct kernels " + std::move(what) + "."}; }

}  // namespace

Result<CpuKernelPtr> make_direct(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  const auto* s = get_if<DirectSchedule>(&schedule);
  if (!s) return lacks("do not run the schedule '" + to_text(schedule) + "'");
  if (s->variant != "pixels" && s->variant != "slide" && s->variant != "maps")
    return lacks("have no variant '" + s->variant + "'");
  const Way way = s->variant == "pixels" ? Way::pixels : s->variant == "slide" ? Way::slide : Way::maps;
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
  if (y.c > 1 && y.pitch_c != 1)
    return Error{Reason::layout_not_served, "The CPU's direct kernels write channels that lie next to each other."};
  const Window& w = params->window;
  const bool large = w.filter[1] > kMostDirectRows || w.filter[2] > kMostDirectRows || w.dilation[1] > kMostDirectRing ||
                     w.dilation[2] > kMostDirectRing || w.stride[2] > kMostDirectRing ||
                     x.c / params->groups > most_direct_channels(w);
  const Error refused{Reason::filter_not_served,
                      "The CPU's direct kernels serve flat filters of few rows and channels whose inputs fit their scratch."};
  if (x.d != 1 || w.filter[0] != 1 || large) return refused;
  if (params->groups > 1 && way == Way::pixels)
    return Error{Reason::groups_not_served, "The CPU's direct kernels take groups with maps in the lanes only."};
  if (way == Way::slide && (w.stride[2] != 1 || w.dilation[2] != 1)) return refused;
  auto kernel = std::make_unique<DirectConvolution>(stage, *s, way, *kernels, *tiles, (constants >> 1 & 1) != 0);
  if (!kernel->fits_scratch() || !kernel->has_tiles()) return refused;
  return CpuKernelPtr(std::move(kernel));
}

}  // namespace sparkle::cpu
