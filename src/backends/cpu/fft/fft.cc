// make_fft: a convolution by transforms compiled for the CPU. A strip of tiles goes from input to output inside the L2: rows
// are transformed and parted, each line is transformed, multiplied and transformed back while it lies in the L1, rows are
// joined, transformed back and finished. Workspace: scale and bias padded to whole vectors, a scratch per thread, packed
// weights that are not constant.
#include <algorithm>

#include "backends/cpu/channel_epilogue.h"
#include "backends/cpu/fft/fft_geometry.h"
#include "backends/cpu/packing_kernel.h"
#include "families/fft/fft.h"

namespace sparkle::cpu {
namespace {

// Operands of a launch in terms of the kernel.
struct Operands {
  const float* x = nullptr;
  const float* weights = nullptr;  // packed
  EpilogueOperands epilogue;
  float* y = nullptr;
};

class FftKernel final : public PackingKernel {
 public:
  FftKernel(const Stage& stage, FftSchedule schedule, FftGeometry geometry, const FftKernels& lines, const TileKernels& tiles,
            int threads, bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<FftParams>(stage_.params)),
        schedule_(std::move(schedule)),
        g_(std::move(geometry)),
        lines_(lines),
        tiles_(tiles),
        // Vectors of channels may begin anywhere.
        padded_k_((g_.y.c + 2 * g_.lanes - 1) / g_.lanes * g_.lanes),
        epilogue_(stage_, params_.epilogue, padded_k_),
        fast_(epilogue_.clamps() && params_.epilogue.residuals_after == 0 &&
              (epilogue_.residuals() == 0 || (!g_.tiled && epilogue_.dense_residuals()))) {
    slots_ = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, g_.strips * g_.parts));
    // The general epilogue takes a few rows of sums.
    sums_floats_ = kMaxCallRows * padded_k_;
    scratch_at_ = epilogue_.workspace_bytes();
    scratch_bytes_ = aligned((g_.scratch_floats + sums_floats_) * 4);
    size_workspace(scratch_at_ + slots_ * scratch_bytes_, aligned(g_.packed_floats * 4));
  }

  void run(const CpuLaunch& launch) const override {
    if (g_.y.n * g_.y.pixels() * g_.y.c == 0) return;
    const auto input = [&](int i) { return reinterpret_cast<const float*>(launch.inputs[static_cast<size_t>(i)]); };
    const auto workspace = [&](int64_t at) { return reinterpret_cast<float*>(launch.workspace + at); };
    Executor& executor = *launch.executor;
    Operands o;
    o.x = input(0), o.y = reinterpret_cast<float*>(launch.outputs[0]);
    o.weights = reinterpret_cast<const float*>(packed_weights(launch));
    o.epilogue = epilogue_.prepare(launch, 0);

    const int64_t total = g_.strips * g_.parts;
    // A scratch per worker, or per task where the executor is wider than the device that was planned for.
    const bool by_worker = executor.width() <= slots_;
    const int64_t tasks = by_worker ? total : std::min(total, slots_);
    parallel_for(executor, static_cast<int>(tasks), [&](int task, int worker) {
      float* scratch = workspace(scratch_at_ + (by_worker ? worker : task) * scratch_bytes_);
      const auto [begin, end] = task_range(total, tasks, task);
      for (int64_t i = begin; i < end; ++i) strip(o, i % g_.strips, i / g_.strips, scratch);
    });
  }

 private:
  std::string weights_key() const override {
    const auto axis = [](const FftAxis& a) {
      return std::to_string(a.points) + "/" + std::to_string(a.first) + "/" + std::to_string(a.filter) + "/" +
             std::to_string(a.dilation);
    };
    return "fft " + schedule_.variant + " groups=" + std::to_string(g_.groups) + " lanes=" + std::to_string(g_.lanes) +
           " registers=" + std::to_string(lines_.registers) + " height=" + axis(g_.height) + " width=" + axis(g_.width) + " " +
           weights_place(stage_.inputs[1]);
  }
  void write_weights(const std::byte* from, std::byte* to, Executor& executor) const override {
    pack_fft_filters(g_, reinterpret_cast<const float*>(from), reinterpret_cast<float*>(to), executor);
  }

  // A tile of one image: what it reads and writes.
  struct Tile {
    bool exists = false;
    int64_t n = 0, p = 0, q = 0;  // image, first output
    FftAxis::Part height, width;
  };
  // The tiles of a slot, real parts before imaginary ones; their rows of points that hold inputs, and of outputs.
  struct Range {
    int64_t begin = 0, end = 0;
  };
  struct Slot {
    Tile tiles[2 * kMaxLanes];
    Range rows;
    int64_t outputs = 0;
  };
  void find_slot(int64_t index, Slot& slot) const {
    slot.rows = {g_.line_points, 0}, slot.outputs = 0;
    for (int64_t i = 0; i < g_.slot_tiles; ++i) {
      const Tile& tile = slot.tiles[i] = tile_at(index * g_.slot_tiles + i);
      if (!tile.exists) continue;
      slot.rows.begin = std::min(slot.rows.begin, tile.height.begin), slot.rows.end = std::max(slot.rows.end, tile.height.end);
      slot.outputs = std::max(slot.outputs, tile.height.outputs);
    }
    if (slot.rows.begin >= slot.rows.end) slot.rows = {};
  }
  Tile tile_at(int64_t index) const {
    if (index >= g_.tiles) return {};
    const FftGeometry::Place at = g_.place(index);
    return {true, at.n, at.row * g_.height.tile, at.column * g_.width.tile, g_.height.part(at.row), g_.width.part(at.column)};
  }
  // Channels of a slot: the first and how many of a vector's lanes (one where lanes are tiles).
  struct Channels {
    int64_t first = 0, count = 0;
  };
  Channels channels(int64_t part, int64_t slot, int64_t of_group) const {
    if (g_.tiled) return {part * of_group + slot, 1};
    if (g_.single) return {part * g_.lanes, std::min(g_.lanes, g_.y.c - part * g_.lanes)};
    return {part * of_group + slot * g_.lanes, std::min(g_.lanes, of_group - slot * g_.lanes)};
  }

  void strip(const Operands& o, int64_t index, int64_t part, float* scratch) const {
    const int64_t first = index * g_.strip, count = std::min(g_.strip, g_.slots - first);
    float* row = scratch;
    float* x = row + 2 * g_.lanes * g_.row.points;
    float* y = g_.single ? x : x + g_.strip * g_.in_slots * g_.plane_stride;
    float* sums = scratch + g_.scratch_floats;
    Slot slot;
    Range rows[kMostStrip];
    for (int64_t t = 0; t < count; ++t) {
      find_slot(first + t, slot);
      rows[t] = slot.rows;
      for (int64_t c = 0; c < g_.in_slots; ++c)
        read(o, slot, channels(part, c, g_.depth), row, x + (t * g_.in_slots + c) * g_.plane_stride);
    }
    for (int64_t l = 0; l < g_.lines; ++l) {
      for (int64_t i = 0; i < count * g_.in_slots; ++i) {
        float* line = x + i * g_.plane_stride + l * g_.line_stride;
        if (!g_.flat) clear_outside(line, rows[i / g_.in_slots], g_.line_points);
        lines_.forward(g_.line, line);
      }
      multiply(o, part, l, x, y, count);
      for (int64_t i = 0; i < count * g_.out_slots; ++i) lines_.inverse(g_.line, y + i * g_.plane_stride + l * g_.line_stride);
    }
    for (int64_t t = 0; t < count; ++t) {
      if (count > 1) find_slot(first + t, slot);
      for (int64_t k = 0; k < g_.out_slots; ++k)
        write(o, slot, channels(part, k, g_.filters), y + (t * g_.out_slots + k) * g_.plane_stride, row, sums);
      if (g_.tiled && !fast_) finish_tiles(o, slot, part, sums);
    }
  }

  // Zeros in all points but [begin, end).
  void clear_outside(float* line, Range kept, int64_t points) const {
    const int64_t point = 2 * g_.lanes;
    std::fill(line, line + kept.begin * point, 0.0f);
    std::fill(line + kept.end * point, line + points * point, 0.0f);
  }

  // A slot's inputs to its lines.
  void read(const Operands& o, const Slot& slot, Channels channels, float* row, float* lines) const {
    if (g_.flat) return g_.tiled ? read_lanes(o, slot, channels, 0, lines) : read_pair(o, slot, channels, lines);
    for (int64_t r = slot.rows.begin; r < slot.rows.end; r += 2) {
      if (g_.tiled) {
        read_lanes(o, slot, channels, r, row);
      } else {
        const Tile& tile = slot.tiles[0];
        clear_outside(row, {tile.width.begin, tile.width.end}, g_.row.points);
        for (int64_t i = 0; i < 2; ++i) read_row(o, tile, r + i, channels, row + i * g_.lanes);
      }
      lines_.forward(g_.row, row);
      lines_.split({row, &g_.row, lines + r * 2 * g_.lanes, g_.line_stride, 2 * g_.lanes});
    }
  }
  // Two tiles as one transform.
  void read_pair(const Operands& o, const Slot& slot, Channels channels, float* line) const {
    std::fill_n(line, g_.line_points * 2 * g_.lanes, 0.0f);
    for (int64_t i = 0; i < 2; ++i)
      if (slot.tiles[i].exists) read_row(o, slot.tiles[i], 0, channels, line + i * g_.lanes);
  }
  // Row `r` of a tile's points to a part; zeros where it is padding.
  void read_row(const Operands& o, const Tile& tile, int64_t r, Channels channels, float* to) const {
    const FftAxis::Part& w = tile.width;
    to += w.begin * 2 * g_.lanes;
    if (r < tile.height.begin || r >= tile.height.end) {
      for (int64_t i = w.begin; i < w.end; ++i, to += 2 * g_.lanes) std::fill_n(to, g_.lanes, 0.0f);
      return;
    }
    const float* from = o.x + tile.n * g_.x.image_stride + (tile.height.origin + r) * g_.x.row_stride +
                        (w.origin + w.begin) * g_.x.pixel_stride + channels.first;
    lines_.load({from, g_.x.pixel_stride, w.end - w.begin, channels.count, to});
  }
  // One channel of as many tiles as there are lanes, real and imaginary parts: two tiles each, or rows r and r + 1. In pieces
  // that stay in the L1 while all lanes write them.
  void read_lanes(const Operands& o, const Slot& slot, Channels channels, int64_t r, float* line) const {
    const int64_t point = 2 * g_.lanes;
    const float* from[2 * kMaxLanes];
    Range kept[2 * kMaxLanes];
    for (int64_t i = 0; i < point; ++i) {
      const Tile& tile = slot.tiles[g_.flat || i < g_.lanes ? i : i - g_.lanes];
      const int64_t row = g_.flat ? 0 : r + (i >= g_.lanes);
      const bool inside = tile.exists && row >= tile.height.begin && row < tile.height.end;
      kept[i] = inside ? Range{tile.width.begin, tile.width.end} : Range{};
      from[i] = o.x + (inside ? tile.n * g_.x.image_stride + (tile.height.origin + row) * g_.x.row_stride +
                                    tile.width.origin * g_.x.pixel_stride + channels.first
                              : 0);
    }
    constexpr int64_t kPiece = 64;
    for (int64_t begin = 0; begin < g_.row.points; begin += kPiece) {
      const int64_t end = std::min(g_.row.points, begin + kPiece);
      std::fill(line + begin * point, line + end * point, 0.0f);
      for (int64_t i = 0; i < point; ++i)
        for (int64_t j = std::max(begin, kept[i].begin); j < std::min(end, kept[i].end); ++j)
          line[j * point + i] = from[i][j * g_.x.pixel_stride];
    }
  }

  void multiply(const Operands& o, int64_t part, int64_t l, float* x, float* y, int64_t count) const {
    const float* weights = o.weights + g_.packed_at(part, l, 0);
    if (g_.single) return lines_.multiply(x + l * g_.line_stride, weights, g_.line_points);
    FftProductCall call{};
    call.x_channel = g_.plane_stride, call.y_filter = g_.plane_stride;
    call.x_tile = g_.in_slots * g_.plane_stride, call.y_tile = g_.out_slots * g_.plane_stride;
    call.depth = g_.depth, call.count = g_.line_points, call.tiles = count;
    call.x = x + l * g_.line_stride, call.y = y + l * g_.line_stride, call.weights = weights;
    call.filters = g_.out_slots;
    if (g_.tiled) {
      lines_.product_tiles(call);
    } else {
      lines_.product_channels(call);
    }
  }

  // A slot's lines to its outputs.
  void write(const Operands& o, const Slot& slot, Channels channels, float* lines, float* row, float* sums) const {
    if (g_.flat) {
      if (g_.tiled) return write_lanes(o, slot, channels, 0, lines);
      for (int64_t i = 0; i < 2; ++i)
        if (slot.tiles[i].exists) write_row(o, slot.tiles[i], 0, channels, lines + i * g_.lanes, sums);
      return;
    }
    const int64_t step = g_.height.stride * 2 * g_.lanes;
    for (int64_t p = 0; p < slot.outputs; p += 2) {
      const bool pair = p + 1 < slot.outputs;
      lines_.merge({row, &g_.row, lines + p * step, g_.line_stride, pair ? step : 0});
      lines_.inverse(g_.row, row);
      if (g_.tiled) {
        write_lanes(o, slot, channels, p, row);
      } else {
        for (int64_t i = 0; i < 1 + pair; ++i) write_row(o, slot.tiles[0], p + i, channels, row + i * g_.lanes, sums);
      }
    }
  }
  // Output row `p` of a tile from a part of the points.
  void write_row(const Operands& o, const Tile& tile, int64_t p, Channels channels, const float* from, float* sums) const {
    const int64_t step = g_.width.stride * 2 * g_.lanes, pixels = tile.width.outputs;
    float* y = o.y + tile.n * g_.y.image_stride + (tile.p + p) * g_.y.row_stride + tile.q * g_.y.pixel_stride + channels.first;
    if (!fast_) {
      for (int64_t q = 0; q < pixels; q += kMaxCallRows) {
        const int64_t rows = std::min<int64_t>(kMaxCallRows, pixels - q);
        for (int64_t i = 0; i < rows; ++i) std::copy_n(from + (q + i) * step, g_.lanes, sums + i * g_.lanes);
        finish(o, tile, p, q, rows, channels, sums, g_.lanes);
      }
      return;
    }
    FftStoreCall call{};
    call.from = from, call.step = step, call.pixels = pixels, call.channels = channels.count;
    call.y = y, call.y_stride = g_.y.pixel_stride;
    call.scale = o.epilogue.scale ? o.epilogue.scale + channels.first : nullptr;
    call.bias = o.epilogue.bias + channels.first;
    call.residuals = epilogue_.residuals();
    for (int i = 0; i < call.residuals; ++i) {
      const FeatureMap& map = epilogue_.residual_map(i);
      call.residual[i] =
          epilogue_.residual(o.epilogue, i, {tile.n, tile.p + p, tile.q, tile.q, channels.first, channels.count});
      call.residual_strides[i] = map.w > 1 ? map.pixel_stride : 0;
    }
    const Clamp clamp = epilogue_.clamp();
    call.clamp_below = clamp.below, call.clamp_above = clamp.above, call.low = clamp.low, call.high = clamp.high;
    lines_.store(call);
  }

  // The general epilogue for `rows` pixels from column q of row p on, whose sums lie in `sums`.
  void finish(const Operands& o, const Tile& tile, int64_t p, int64_t q, int64_t rows, Channels channels, float* sums,
              int64_t stride) const {
    const int64_t first = tile.q + q;
    epilogue_.finish(tiles_, o.epilogue, {tile.n, tile.p + p, first, first + rows, channels.first, channels.count}, sums,
                     stride, g_.y, o.y);
  }

  // One filter's outputs of as many tiles as there are lanes: finished where that is a matter of clamping, else as sums.
  void write_lanes(const Operands& o, const Slot& slot, Channels channels, int64_t p, const float* from) const {
    const Clamp clamp = epilogue_.clamp();
    const int64_t point = 2 * g_.lanes, step = g_.width.stride * point;
    const bool below = fast_ && clamp.below, above = fast_ && clamp.above;
    const float low = clamp.low, high = clamp.high, bias = fast_ ? o.epilogue.bias[channels.first] : 0.0f,
                scale = fast_ && o.epilogue.scale ? o.epilogue.scale[channels.first] : 1.0f;
    float* to[2 * kMaxLanes];
    int64_t outputs[2 * kMaxLanes], most = 0;
    for (int64_t i = 0; i < point; ++i) {
      const Tile& tile = slot.tiles[g_.flat || i < g_.lanes ? i : i - g_.lanes];
      const int64_t row = g_.flat ? 0 : p + (i >= g_.lanes);
      outputs[i] = tile.exists && row < tile.height.outputs ? tile.width.outputs : 0;
      most = std::max(most, outputs[i]);
      to[i] = o.y + (outputs[i] == 0 ? 0
                                     : tile.n * g_.y.image_stride + (tile.p + row) * g_.y.row_stride +
                                           tile.q * g_.y.pixel_stride + channels.first);
    }
    constexpr int64_t kPiece = 64;
    for (int64_t begin = 0; begin < most; begin += kPiece)
      for (int64_t i = 0; i < point; ++i)
        for (int64_t q = begin; q < std::min(begin + kPiece, outputs[i]); ++q) {
          float v = from[q * step + i] * scale + bias;
          if (below && !(v > low)) v = v != v ? v : low;
          if (above && v > high) v = high;
          to[i][q * g_.y.pixel_stride] = v;
        }
  }
  // The general epilogue for sums that lie in the output.
  void finish_tiles(const Operands& o, const Slot& slot, int64_t part, float* sums) const {
    const Channels all{part * g_.filters, g_.filters};
    const int64_t stride = (g_.filters + g_.lanes - 1) / g_.lanes * g_.lanes;
    for (int64_t i = 0; i < g_.slot_tiles; ++i) {
      const Tile& tile = slot.tiles[i];
      if (!tile.exists) break;
      for (int64_t p = 0; p < tile.height.outputs; ++p)
        for (int64_t q = 0; q < tile.width.outputs; q += kMaxCallRows) {
          const int64_t rows = std::min<int64_t>(kMaxCallRows, tile.width.outputs - q);
          for (int64_t j = 0; j < rows; ++j) {
            const float* y =
                o.y + tile.n * g_.y.image_stride + (tile.p + p) * g_.y.row_stride + (tile.q + q + j) * g_.y.pixel_stride;
            std::fill(std::copy_n(y + all.first, all.count, sums + j * stride), sums + (j + 1) * stride, 0.0f);
          }
          finish(o, tile, p, q, rows, all, sums, stride);
        }
    }
  }

  FftParams params_;
  FftSchedule schedule_;
  FftGeometry g_;
  const FftKernels& lines_;
  const TileKernels& tiles_;
  int64_t padded_k_;
  ChannelEpilogue epilogue_;
  bool fast_;  // sums are finished where they are written
  int64_t slots_ = 1, sums_floats_ = 0;
  int64_t scratch_at_ = 0, scratch_bytes_ = 0;
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's fft kernels " + std::move(what) + "."}; }

}  // namespace

Result<CpuKernelPtr> make_fft(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  const auto* s = get_if<FftSchedule>(&schedule);
  if (!s || (s->variant != "channels" && s->variant != "tiles"))
    return lacks("hold channels or tiles in their lanes and do not run the schedule '" + to_text(schedule) + "'");
  const FftKernels* lines = device.unit(s->unit) ? fft_kernels_of(s->unit) : nullptr;
  const TileKernels* tiles = tile_kernels_of(s->unit);
  if (!lines || !tiles) return lacks("cannot use the unit '" + s->unit + "', which this device or build does not have");
  const auto* params = get_if<FftParams>(&stage.params);
  if (!params || stage.outputs.size() != 1 || stage.inputs.size() != static_cast<size_t>(2 + params->epilogue.operands()))
    return Error{Reason::internal, "An fft stage has two operands, those of its epilogue and one output."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list)
      if (desc.dtype != DType::f32)
        return Error{Reason::type_not_served, "The CPU's fft kernels compute in f32, not " + std::string(name_of(desc.dtype)) +
                                                  "; convert the operand."};
  SPARKLE_TRY(geometry, fft_geometry(stage, *s, *lines));
  return CpuKernelPtr(
      std::make_unique<FftKernel>(stage, *s, std::move(geometry), *lines, *tiles, device.cores, (constants >> 1 & 1) != 0));
}

}  // namespace sparkle::cpu
