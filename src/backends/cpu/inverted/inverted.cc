// make_inverted: a block of convolutions compiled for the CPU. A task takes some rows of an image's output, `schedule.rows` at
// a time, through all parts: for each panel of wide channels the new wide rows go into a ring, the depthwise part reads the
// ring; then the gemm family's register tile projects. Only the input and the output meet memory beyond the L2. Workspace: a
// row of zeros, biases in whole vectors, ring and depthwise rows per thread, packed weights that are not constant.
#include <algorithm>

#include "backends/cpu/simd/channel_vectors.h"
#include "backends/cpu/gemm/gemm_tile.h"
#include "backends/cpu/inverted/inverted_geometry.h"
#include "backends/cpu/inverted/inverted_rows.h"
#include "backends/cpu/packing_kernel.h"
#include "base/round_up.h"
#include "families/inverted/inverted.h"
#include "families/inverted/inverted_family.h"

namespace sparkle::cpu {
namespace {

int64_t whole_lines(int64_t floats) { return rounded_up(floats, 16); }

// What a run works on.
struct Operands {
  const float* x = nullptr;
  const float *wide = nullptr, *deep = nullptr, *project = nullptr;  // packed weights
  const float *wide_bias = nullptr, *deep_bias = nullptr, *bias = nullptr;
  const float* residual = nullptr;
  const float* zeros = nullptr;
  float* y = nullptr;
};

Bounds bounds_of(const Epilogue& e) {
  Bounds b;
  b.below = e.activation == Activation::relu || e.activation == Activation::clip, b.above = e.activation == Activation::clip;
  b.low = e.activation == Activation::clip ? static_cast<float>(e.a) : 0.0f, b.high = static_cast<float>(e.b);
  return b;
}
// Whether something else than bounds follows the sums.
bool is_curved(const Epilogue& e) {
  return e.activation != Activation::none && e.activation != Activation::relu && e.activation != Activation::clip;
}

class InvertedKernel final : public CpuKernel {
 public:
  InvertedKernel(Stage stage, InvertedSchedule schedule, InvertedGeometry geometry, const InvertedKernels& parts,
                 const TileKernels& products, int threads, uint32_t constants)
      : stage_(std::move(stage)),
        params_(get<InvertedParams>(stage_.params)),
        schedule_(std::move(schedule)),
        at_(inverted_operands(params_)),
        g_(std::move(geometry)),
        parts_(parts),
        products_(products),
        constants_(constants) {
    slots_ = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, g_.y.n * g_.tasks));
    const auto place = [&](int64_t floats) {
      const int64_t at = floats_;
      floats_ += whole_lines(floats);
      return at;
    };
    zeros_at_ = place(g_.plane);
    wide_bias_at_ = place(g_.padded_wide), deep_bias_at_ = place(g_.padded_wide), bias_at_ = place(g_.padded_k);
    for (int i : {at_.wide_weights, at_.deep_weights, at_.weights})
      if (i >= 0 && !constant(i)) weights_at_[slot_of(i)] = place(packed_floats(i));
    scratch_at_ = place(slots_ * whole_lines(g_.scratch_floats()));
    if (at_.residual >= 0) residual_ = feature_map(stage_.inputs[static_cast<size_t>(at_.residual)]);
    const Epilogue& e = params_.project;
    fast_ = !is_curved(e) && e.residuals_after == 0 &&
            (at_.residual < 0 || (residual_.c > 1 ? residual_.channel_stride == 1 : g_.y.c == 1));
  }

  int64_t workspace_bytes() const override { return floats_ * 4; }
  int64_t packed_bytes(int input) const override {
    return is_weights(input) && constant(input) ? std::max<int64_t>(64, packed_floats(input) * 4) : 0;
  }
  std::string packed_key(int input) const override {
    if (packed_bytes(input) == 0) return {};
    const char* parts[] = {"wide", "deep", "project"};
    return "inverted " + std::string(parts[slot_of(input)]) + " lanes=" + std::to_string(parts_.lanes) +
           " nr=" + std::to_string(input == at_.weights ? products_.max_vectors : schedule_.nr) +
           (input == at_.weights && g_.pairs ? " pairs" : "") + " " + weights_place(stage_.inputs[static_cast<size_t>(input)]);
  }
  void pack(int input, const std::byte* from, std::byte* to, Executor&) const override {
    if (!is_weights(input)) return;
    const TensorDesc& w = stage_.inputs[static_cast<size_t>(input)];
    pack_part(input, reinterpret_cast<const float*>(from) + w.layout.offset, reinterpret_cast<float*>(to));
  }

  void run(const CpuLaunch& launch) const override {
    if (g_.y.n * g_.y.h * g_.y.w * g_.y.c == 0) return;
    auto* workspace = reinterpret_cast<float*>(launch.workspace);
    const auto input = [&](int i) { return reinterpret_cast<const float*>(launch.inputs[static_cast<size_t>(i)]); };
    const auto weights = [&](int i) {
      if (i < 0 || constant(i)) return i < 0 ? nullptr : input(i);
      float* packed = workspace + weights_at_[slot_of(i)];
      pack_part(i, input(i), packed);
      return static_cast<const float*>(packed);
    };
    const auto bias = [&](int i, int64_t channels, int64_t padded, int64_t at) {
      pad_channels(i < 0 ? nullptr : &stage_.inputs[static_cast<size_t>(i)], i < 0 ? nullptr : input(i), i < 0 ? 0.0f : 1.0f, 1,
                   channels, padded, workspace + at);
      std::fill(workspace + at + channels, workspace + at + padded, 0.0f);  // channels that do not exist stay zero
      return static_cast<const float*>(workspace + at);
    };
    Operands o;
    o.x = input(0), o.y = reinterpret_cast<float*>(launch.outputs[0]);
    o.wide = weights(at_.wide_weights), o.deep = weights(at_.deep_weights), o.project = weights(at_.weights);
    o.wide_bias = bias(at_.wide_bias, g_.wide, g_.padded_wide, wide_bias_at_);
    o.deep_bias = bias(at_.deep_bias, g_.wide, g_.padded_wide, deep_bias_at_);
    o.bias = bias(at_.bias, g_.y.c, g_.padded_k, bias_at_);
    if (at_.residual >= 0) o.residual = input(at_.residual);
    std::fill_n(workspace + zeros_at_, g_.plane, 0.0f);
    o.zeros = workspace + zeros_at_;

    // A scratch per worker, or per task where the executor is wider than the device that was planned for.
    Executor& executor = *launch.executor;
    const int64_t total = g_.y.n * g_.tasks;
    const bool by_worker = executor.width() <= slots_;
    const int64_t calls = by_worker ? total : std::min(total, slots_);
    parallel_for(executor, static_cast<int>(calls), [&](int task, int worker) {
      float* scratch = workspace + scratch_at_ + (by_worker ? worker : task) * whole_lines(g_.scratch_floats());
      const auto [begin, end] = task_range(total, calls, task);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i % g_.tasks;
        rows(o, i / g_.tasks, part * g_.y.h / g_.tasks, (part + 1) * g_.y.h / g_.tasks, scratch);
      }
    });
  }

 private:
  bool constant(int input) const { return input < 32 && (constants_ >> input & 1) != 0; }
  bool is_weights(int i) const { return i >= 0 && (i == at_.wide_weights || i == at_.deep_weights || i == at_.weights); }
  size_t slot_of(int input) const { return input == at_.weights ? 2 : input == at_.deep_weights ? 1 : 0; }
  int64_t packed_floats(int input) const {
    if (input == at_.weights) return (g_.pairs ? g_.padded_wide : g_.wide) * g_.padded_k;
    return (input == at_.deep_weights ? params_.window.taps() : g_.x.c) * g_.padded_wide;
  }
  void pack_part(int input, const float* from, float* to) const {
    const FeatureMap w = feature_map(stage_.inputs[static_cast<size_t>(input)]);
    if (input == at_.deep_weights) {
      pack_taps(w, from, g_.wide, parts_.lanes, to);
    } else if (input == at_.weights && g_.pairs) {
      pack_pairs(w, from, g_.y.c, g_.wide, parts_.lanes, to);
    } else if (input == at_.weights) {
      pack_panels(w, from, g_.y.c, g_.wide, products_.max_vectors * parts_.lanes, parts_.lanes, to);
    } else {
      pack_panels(w, from, g_.wide, g_.x.c, schedule_.nr * parts_.lanes, parts_.lanes, to);
    }
  }

  // Output rows [p0, p1) of an image.
  void rows(const Operands& o, int64_t n, int64_t p0, int64_t p1, float* scratch) const {
    float *ring = scratch, *deep = scratch + g_.ring_floats();
    // Columns outside of the image, once.
    for (int64_t i = 0; i < g_.slots * g_.vectors; ++i) {
      std::fill_n(ring + i * g_.plane, g_.inside_at, 0.0f);
      std::fill(ring + i * g_.plane + g_.inside_at + g_.inside * parts_.lanes, ring + (i + 1) * g_.plane, 0.0f);
    }
    const float* x = o.x + n * g_.x.image_stride;
    int64_t done = 0;  // wide rows before this one have been made
    for (int64_t p = p0; p < p1; p += g_.rows) {
      const int64_t count = std::min(g_.rows, p1 - p), first = p * g_.stride, last = (p + count - 1) * g_.stride + g_.filter;
      WideRow fresh[kMostWideRows];
      int64_t fresh_count = 0;
      const float* reach[kMostWideRows];
      for (int64_t i = first; i < last; ++i) {
        const int64_t h = i - g_.pad_h;
        const bool inside = h >= 0 && h < g_.x.h;
        float* row = ring + i % g_.slots * g_.slot_stride;
        reach[i - first] = inside ? row : nullptr;
        if (inside && (i >= done || p == p0)) fresh[fresh_count++] = {x + h * g_.x.row_stride, row + g_.inside_at};
      }
      done = last;
      for (int64_t v = 0; v < g_.vectors; v += schedule_.nr) {
        const int64_t end = std::min<int64_t>(v + schedule_.nr, g_.vectors);
        if (g_.inside > 0) make_wide(o, fresh, fresh_count, v, end);
        for (int64_t i = v; i < end; ++i) make_deep(o, reach, last - first, count, i, deep);
      }
      if (is_curved(params_.deep)) activate(params_.deep, deep, g_.deep_rows(count) * g_.y.w * g_.deep_stride);
      g_.pairs ? project_pairs(o, n, p, count, deep) : project(o, n, p, count, deep);
    }
  }

  void activate(const Epilogue& e, float* values, int64_t count) const {
    parts_.activate(e.activation, static_cast<float>(e.a), static_cast<float>(e.b), values, static_cast<size_t>(count));
  }

  // Vectors [v, end) of the wide rows that have not been made yet.
  void make_wide(const Operands& o, const WideRow* fresh, int64_t count, int64_t v, int64_t end) const {
    const int64_t lanes = parts_.lanes;
    if (!params_.expand) {
      for (; v < end; ++v)
        parts_.spread(
            {fresh, count, g_.inside, v * lanes, v * g_.plane, g_.x.pixel_stride, std::min(lanes, g_.wide - v * lanes)});
      return;
    }
    ExpandCall call{};
    call.rows = fresh, call.row_count = count, call.columns = g_.inside;
    call.y_offset = v * g_.plane;
    call.x_stride = g_.x.pixel_stride, call.vector_stride = g_.plane;
    call.channels = g_.x.c;
    call.weights = o.wide + v * lanes * g_.x.c;
    call.bias = o.wide_bias + v * lanes;
    call.bounds = bounds_of(params_.wide);
    // Meanwhile the next panel comes, a share per tile.
    const int64_t panel_bytes = (end - v) * lanes * g_.x.c * 4, tiles = (count * g_.inside + schedule_.mr - 1) / schedule_.mr;
    const bool more = end < g_.vectors;
    call.prefetch = reinterpret_cast<const char*>(more ? call.weights + (end - v) * lanes * g_.x.c : call.weights);
    call.prefetch_step = more && tiles > 0 ? panel_bytes / (tiles * g_.x.c) : 0;
    parts_.expand[end - v - 1](call);
    if (!is_curved(params_.wide)) return;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = v; j < end; ++j) activate(params_.wide, fresh[i].y + j * g_.plane, g_.inside * lanes);
  }

  void make_deep(const Operands& o, const float* const* reach, int64_t reach_count, int64_t count, int64_t v,
                 float* deep) const {
    const float* wide[kMostWideRows];
    for (int64_t i = 0; i < reach_count; ++i) wide[i] = reach[i] ? reach[i] + v * g_.plane : o.zeros;
    DeepCall call{};
    call.rows = wide, call.row_count = count, call.columns = g_.y.w, call.most_columns = 7;
    call.weights = o.deep + v * params_.window.taps() * parts_.lanes;
    call.bias = o.deep_bias + v * parts_.lanes;
    call.bounds = bounds_of(params_.deep);
    call.pairs = g_.pairs;
    call.y = deep + v * parts_.lanes * (g_.pairs ? 2 : 1), call.y_row = g_.y.w * g_.deep_stride, call.y_column = g_.deep_stride;
    parts_.deep[g_.filter == 5][g_.stride - 1](call);
  }

  // Output rows [p, p + count): products of the depthwise rows.
  void project(const Operands& o, int64_t n, int64_t p, int64_t count, const float* deep) const {
    const Epilogue& e = params_.project;
    const Bounds bounds = bounds_of(e);
    const int64_t pixels = count * g_.y.w, width = products_.max_vectors * parts_.lanes,
                  widest = (std::min(width, g_.y.c) + parts_.lanes - 1) / parts_.lanes;
    alignas(64) float sums[kMaxCallRows * kMaxTileVectors * kMaxLanes];
    const GemmRun run{0, 0, g_.wide};
    TileCall call{};
    call.runs = &run, call.run_count = 1;
    call.begin_at_zero = true;
    call.partial = sums;
    call.a_stride = g_.deep_stride;
    call.clamp_below = bounds.below, call.clamp_above = bounds.above, call.low = bounds.low, call.high = bounds.high;
    call.residuals = at_.residual >= 0 ? 1 : 0;
    for (int64_t column = 0; column < g_.y.c; column += width) {
      const int64_t columns = std::min(width, g_.y.c - column), vectors = (columns + parts_.lanes - 1) / parts_.lanes;
      const int64_t most = vectors <= products_.tall_vectors ? kMaxCallRows : kMaxTileRows, tiles = (pixels + most - 1) / most;
      call.b = o.project + column * g_.wide;
      // Meanwhile the next panel comes, a share per tile.
      const int64_t share = column + width < g_.y.c ? vectors * parts_.lanes * g_.wide * 4 / tiles : 0;
      call.bias = o.bias + column;
      call.column = column;
      call.finish = fast_ && columns == vectors * parts_.lanes;
      int64_t row = p, q = 0;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t r0 = tile * pixels / tiles, r1 = (tile + 1) * pixels / tiles;
        for (int64_t r = r0; r < r1; ++r) {
          call.a[r - r0] = deep + r * g_.deep_stride;
          call.y[r - r0] = o.y + n * g_.y.image_stride + row * g_.y.row_stride + q * g_.y.pixel_stride;
          if (o.residual) call.residual[0][r - r0] = o.residual + offset(residual_, n, row, q);
          if (++q == g_.y.w) q = 0, ++row;
        }
        call.prefetch =
            reinterpret_cast<const char*>(call.b) + (share > 0 ? vectors * parts_.lanes * g_.wide * 4 + tile * share : 0);
        call.prefetch_step = share / g_.wide;
        products_.at(false, r1 - r0, vectors, widest)(call);
        if (!call.finish) finish(call, columns, vectors, static_cast<int>(r1 - r0));
      }
    }
  }

  // The same in pairs of rows.
  void project_pairs(const Operands& o, int64_t n, int64_t p, int64_t count, const float* deep) const {
    const int64_t full = g_.y.c / parts_.lanes, width = (full + 1) * parts_.lanes;
    alignas(64) float sums[2 * kMostPairs * (kMostPairVectors + 1) * kMaxLanes];
    FinishCall finish = general_epilogue();
    finish.sums_stride = 2 * width, finish.columns = g_.y.c, finish.bias = o.bias;
    PairsCall call{};
    call.stride = g_.deep_stride, call.channels = g_.padded_wide;
    call.weights = o.project, call.sums = sums;
    for (int64_t row = p; row < p + count; row += 2)
      for (int64_t q = 0; q < g_.y.w; q += call.pairs) {
        call.a = deep + ((row - p) / 2 * g_.y.w + q) * g_.deep_stride;
        call.pairs = std::min<int64_t>(kMostPairs, g_.y.w - q);
        parts_.pairs[full - 1](call);
        finish.rows = static_cast<int>(call.pairs);
        for (int64_t half = 0; half < std::min<int64_t>(2, p + count - row); ++half) {
          finish.sums = sums + half * width;
          for (int64_t i = 0; i < call.pairs; ++i) {
            finish.y[i] = o.y + n * g_.y.image_stride + (row + half) * g_.y.row_stride + (q + i) * g_.y.pixel_stride;
            if (o.residual) finish.residual[0][i] = o.residual + offset(residual_, n, row + half, q + i);
          }
          products_.finish(finish);
        }
      }
  }

  FinishCall general_epilogue() const {
    const Epilogue& e = params_.project;
    FinishCall finish{};
    finish.residuals_before = e.residuals_before, finish.residuals_after = e.residuals_after;
    finish.activation = e.activation;
    finish.activation_a = static_cast<float>(e.a), finish.activation_b = static_cast<float>(e.b);
    finish.residual_strides[0] = residual_.c > 1 ? residual_.channel_stride : 0;
    return finish;
  }

  void finish(const TileCall& call, int64_t columns, int64_t vectors, int count) const {
    FinishCall finish = general_epilogue();
    finish.sums = call.partial, finish.sums_stride = vectors * parts_.lanes;
    finish.rows = count, finish.columns = columns;
    finish.bias = call.bias;
    for (int i = 0; i < count; ++i) {
      finish.y[i] = call.y[i] + call.column;
      if (call.residuals) finish.residual[0][i] = call.residual[0][i] + call.column * finish.residual_strides[0];
    }
    products_.finish(finish);
  }

  // Axes of size 1 broadcast whatever their stride.
  static int64_t offset(const FeatureMap& map, int64_t n, int64_t h, int64_t w) {
    return (map.n > 1 ? n * map.image_stride : 0) + (map.h > 1 ? h * map.row_stride : 0) +
           (map.w > 1 ? w * map.pixel_stride : 0);
  }

  Stage stage_;
  InvertedParams params_;
  InvertedSchedule schedule_;
  InvertedOperands at_;
  InvertedGeometry g_;
  const InvertedKernels& parts_;
  const TileKernels& products_;
  uint32_t constants_;
  bool fast_ = false;
  FeatureMap residual_;
  int64_t slots_ = 1;
  // In floats of the workspace.
  int64_t floats_ = 0, zeros_at_ = 0, wide_bias_at_ = 0, deep_bias_at_ = 0, bias_at_ = 0, scratch_at_ = 0;
  int64_t weights_at_[3] = {0, 0, 0};
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's inverted kernels " + std::move(what) + "."}; }

}  // namespace

Result<CpuKernelPtr> make_inverted(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* s = get_if<InvertedSchedule>(&schedule);
  if (!s) return lacks("run rows through all parts, not the schedule '" + to_text(schedule) + "'");
  const InvertedKernels* parts = device.unit(s->unit) ? inverted_kernels_of(s->unit) : nullptr;
  const TileKernels* products = tile_kernels_of(s->unit);
  if (!parts || !products) return lacks("cannot use the unit '" + s->unit + "', which this device or build does not have");
  if (s->nr < 1 || s->nr > products->max_vectors || s->rows < 1 || s->rows > kMostInvertedRows || s->tasks < 1)
    return lacks("cannot take " + std::to_string(s->rows) + " rows by " + std::to_string(s->nr) + " vectors in " +
                 std::to_string(s->tasks) + " tasks on the unit '" + s->unit + "'");
  const int64_t filters = stage.outputs.empty() ? 0 : feature_map(stage.outputs[0]).c;
  if (s->variant == "pairs6x4" && (!inverted_pairs(filters, parts->lanes) || !parts->pairs[0]))
    return lacks("have no pairs of " + std::to_string(filters) + " filters on the unit '" + s->unit + "'");
  const auto* params = get_if<InvertedParams>(&stage.params);
  if (!params || stage.outputs.size() != 1 || stage.inputs.size() != static_cast<size_t>(inverted_operands(*params).count))
    return Error{Reason::internal, "An inverted stage has its input, the weights and biases of its parts and one output."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list)
      if (desc.dtype != DType::f32)
        return Error{Reason::type_not_served, "The CPU's inverted kernels compute in f32, not " +
                                                  std::string(name_of(desc.dtype)) + "; convert the operand."};
  SPARKLE_TRY(geometry, inverted_geometry(stage, *s, parts->lanes));
  return CpuKernelPtr(
      std::make_unique<InvertedKernel>(stage, *s, std::move(geometry), *parts, *products, device.cores, constants));
}

}  // namespace sparkle::cpu
