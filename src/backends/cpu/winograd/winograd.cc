// make_winograd: a winograd stage compiled for the CPU. A strip of tiles goes from input to output inside the L2: all its
// inputs to points, then panel by panel of filters one matrix product per point (the gemm family's register tile) and back.
// Workspace: a pixel of zeros, scale and bias padded to whole vectors, a scratch per thread, packed weights that are not
// constant.
#include <algorithm>

#include "backends/cpu/channel_epilogue.h"
#include "backends/cpu/packing_kernel.h"
#include "backends/cpu/winograd/winograd_geometry.h"
#include "backends/cpu/winograd/winograd_transform.h"
#include "families/winograd/winograd.h"

namespace sparkle::cpu {
namespace {

// What a run works on; operands of a launch in terms of the kernel.
struct Operands {
  const float* x = nullptr;
  const float* weights = nullptr;  // packed
  const float* zeros = nullptr;    // a pixel outside of the image
  EpilogueOperands epilogue;
  float* y = nullptr;
};

class WinogradKernel final : public PackingKernel {
 public:
  WinogradKernel(const Stage& stage, WinogradSchedule schedule, WinogradGeometry geometry, const TileKernels& products,
                 const WinogradKernels& transforms, int threads, bool constant_weights)
      : PackingKernel(stage, constant_weights),
        params_(get<WinogradParams>(stage_.params)),
        schedule_(std::move(schedule)),
        g_(std::move(geometry)),
        products_(products),
        transforms_(transforms),
        epilogue_(stage_, params_.epilogue, g_.padded_k),
        fast_(epilogue_.clamps() && params_.epilogue.residuals_after == 0 && epilogue_.dense_residuals()) {
    slots_ = std::clamp<int64_t>(threads, 1, std::max<int64_t>(1, g_.strips * static_cast<int64_t>(g_.panels.size())));
    epilogue_at_ = aligned(g_.padded_c * 4);
    scratch_at_ = epilogue_at_ + epilogue_.workspace_bytes();
    size_workspace(scratch_at_ + slots_ * aligned(g_.scratch_floats * 4), aligned(g_.packed_floats() * 4));
  }

  void run(const CpuLaunch& launch) const override {
    if (g_.tiles == 0 || g_.panels.empty()) return;
    const auto input = [&](int i) { return reinterpret_cast<const float*>(launch.inputs[static_cast<size_t>(i)]); };
    const auto workspace = [&](int64_t at) { return reinterpret_cast<float*>(launch.workspace + at); };
    Operands o;
    o.x = input(0), o.y = reinterpret_cast<float*>(launch.outputs[0]);
    o.weights = reinterpret_cast<const float*>(packed_weights(launch));
    std::fill_n(workspace(0), g_.padded_c, 0.0f);
    o.zeros = workspace(0);
    o.epilogue = epilogue_.prepare(launch, epilogue_at_);

    Executor& executor = *launch.executor;
    const int64_t panels = static_cast<int64_t>(g_.panels.size());
    const int64_t ranges = std::clamp<int64_t>(schedule_.ranges, 1, panels), total = g_.strips * ranges;
    // A scratch per worker, or per task where the executor is wider than the device that was planned for.
    const bool by_worker = executor.width() <= slots_;
    const int64_t tasks = by_worker ? total : std::min(total, slots_);
    parallel_for(executor, static_cast<int>(tasks), [&](int task, int worker) {
      float* scratch = workspace(scratch_at_ + (by_worker ? worker : task) * aligned(g_.scratch_floats * 4));
      const auto [begin, end] = task_range(total, tasks, task);
      for (int64_t i = begin; i < end; ++i)
        strip(o, i / ranges, i % ranges * panels / ranges, (i % ranges + 1) * panels / ranges, scratch);
    });
  }

 private:
  void strip(const Operands& o, int64_t index, int64_t p0, int64_t p1, float* scratch) const {
    const int64_t first = g_.first_tile(index), count = g_.first_tile(index + 1) - first;
    float* inputs = scratch;
    float* products = scratch + g_.square() * g_.input_stride;
    for (int64_t i = 0; i < count; ++i) transform_input(o, first + i, inputs + i * g_.padded_c);
    for (int64_t p = p0; p < p1; ++p) {
      const WinogradPanel& panel = g_.panels[static_cast<size_t>(p)];
      multiply(o, panel, inputs, count, products,
               p + 1 < p1 ? nullptr : o.weights + g_.packed_at(g_.panels[static_cast<size_t>(p0)]));
      for (int64_t i = 0; i < count; ++i)
        transform_output(o, first + i, panel, products + i * panel.vectors * transforms_.lanes);
    }
  }

  struct TilePlace {
    int64_t n, row, column;  // of the image, of its tiles
  };
  TilePlace place(int64_t tile) const {
    const int64_t of_image = g_.tiles_h * g_.tiles_w, rest = tile % of_image;
    return {tile / of_image, rest / g_.tiles_w * g_.tile, rest % g_.tiles_w * g_.tile};
  }

  void transform_input(const Operands& o, int64_t tile, float* to) const {
    const TilePlace at = place(tile);
    const float* pixels[kMostTilePoints];
    const int64_t top = at.row - g_.pad_h, left = at.column - g_.pad_w;
    for (int r = 0; r < g_.points; ++r)
      for (int s = 0; s < g_.points; ++s) {
        const int64_t h = top + r, w = left + s;
        const bool inside = h >= 0 && h < g_.x.h && w >= 0 && w < g_.x.w;
        pixels[r * g_.points + s] =
            inside ? o.x + at.n * g_.x.image_stride + h * g_.x.row_stride + w * g_.x.pixel_stride : o.zeros;
      }
    transforms_.input[g_.tile / 2 - 1]({pixels, g_.x.c, to, g_.input_stride});
  }

  // For each point: tiles x channels times channels x filters of the panel. Fetched meanwhile: the weights of the next point
  // or panel, which follow in memory, and behind the last one those that the next strip begins with.
  void multiply(const Operands& o, const WinogradPanel& panel, const float* inputs, int64_t count, float* products,
                const float* begin) const {
    const int64_t width = panel.vectors * products_.lanes, panel_floats = g_.x.c * width;
    const float* weights = o.weights + g_.packed_at(panel);
    const int64_t rows = std::min<int64_t>(schedule_.mr, kMaxTileRows), row_tiles = (count + rows - 1) / rows;
    const GemmRun run{0, 0, g_.x.c};
    TileCall call{};
    call.runs = &run;
    call.run_count = 1;
    call.begin_at_zero = true;
    const int64_t share = panel_floats * 4 / row_tiles,
                  step = schedule_.prefetch ? std::max<int64_t>(1, share / std::max<int64_t>(1, g_.x.c)) : 0;
    for (int64_t point = 0; point < g_.square(); ++point) {
      call.b = weights + point * panel_floats;
      const float* next = weights + (point + 1) * panel_floats;
      if (begin && point + 1 == g_.square()) next = begin;
      const float* a = inputs + point * g_.input_stride;
      float* to = products + point * g_.product_stride;
      for (int64_t t = 0; t < row_tiles; ++t) {
        const int64_t r0 = t * count / row_tiles, r1 = (t + 1) * count / row_tiles;
        for (int64_t r = r0; r < r1; ++r) call.a[r - r0] = a + r * g_.padded_c;
        call.partial = to + r0 * width;
        call.prefetch = reinterpret_cast<const char*>(step ? next : call.b) + t * share;
        call.prefetch_step = step;
        products_.at(schedule_.prefetch == 2, r1 - r0, panel.vectors, g_.panels[0].vectors)(call);
      }
    }
  }

  void transform_output(const Operands& o, int64_t tile, const WinogradPanel& panel, const float* products) const {
    const TilePlace at = place(tile);
    TileOutputCall call{};
    call.products = products;
    call.point_stride = g_.product_stride;
    call.vectors = panel.vectors;
    call.rows = std::min<int64_t>(g_.tile, g_.y.h - at.row), call.columns = std::min<int64_t>(g_.tile, g_.y.w - at.column);
    float* y = o.y + at.n * g_.y.image_stride + at.row * g_.y.row_stride + at.column * g_.y.pixel_stride + panel.column;
    if (fast_ && panel.columns == panel.vectors * products_.lanes) {
      call.finish = true;
      call.y = y, call.y_row = g_.y.row_stride, call.y_column = g_.y.pixel_stride;
      call.scale = o.epilogue.scale ? o.epilogue.scale + panel.column : nullptr;
      call.bias = o.epilogue.bias + panel.column;
      call.residuals = epilogue_.residuals();
      for (int i = 0; i < call.residuals; ++i) {
        const FeatureMap& map = epilogue_.residual_map(i);
        call.residual[i] = epilogue_.residual(o.epilogue, i, {at.n, at.row, at.column, at.column, panel.column, panel.columns});
        call.residual_row[i] = map.h > 1 ? map.row_stride : 0;
        call.residual_column[i] = map.w > 1 ? map.pixel_stride : 0;
      }
      const Clamp clamp = epilogue_.clamp();
      call.clamp_below = clamp.below, call.clamp_above = clamp.above, call.low = clamp.low, call.high = clamp.high;
      return transforms_.output[g_.tile / 2 - 1](call);
    }
    // Sums to a square of their own, then the general epilogue, a row of outputs at a time.
    alignas(64) float sums[6 * 6 * kMaxTileVectors * kMaxLanes];
    const int64_t width = panel.vectors * products_.lanes;
    call.y = sums, call.y_row = g_.tile * width, call.y_column = width;
    transforms_.output[g_.tile / 2 - 1](call);
    for (int64_t row = 0; row < call.rows; ++row)
      epilogue_.finish(products_, o.epilogue,
                       {at.n, at.row + row, at.column, at.column + call.columns, panel.column, panel.columns},
                       sums + row * g_.tile * width, width, g_.y, o.y);
  }

  std::string weights_key() const override {
    return "winograd tile=" + std::to_string(g_.tile) + " lanes=" + std::to_string(transforms_.lanes) +
           " nr=" + std::to_string(schedule_.nr) + " " + weights_place(stage_.inputs[1]);
  }
  void write_weights(const std::byte* from, std::byte* packed, Executor& executor) const override {
    const auto* weights = reinterpret_cast<const float*>(from);
    auto* to = reinterpret_cast<float*>(packed);
    const WinogradTransform& transform = winograd_transform(g_.tile);
    parallel_for(executor, static_cast<int>(g_.panels.size()), [&](int i, int) {
      const WinogradPanel& panel = g_.panels[static_cast<size_t>(i)];
      transforms_.filter(
          transform, {weights + panel.column * g_.w.image_stride, g_.w.image_stride, g_.w.channel_stride, g_.w.row_stride,
                      g_.w.pixel_stride, panel.columns, panel.vectors * transforms_.lanes, g_.x.c, to + g_.packed_at(panel)});
    });
  }

  WinogradParams params_;
  WinogradSchedule schedule_;
  WinogradGeometry g_;
  const TileKernels& products_;
  const WinogradKernels& transforms_;
  ChannelEpilogue epilogue_;
  bool fast_;  // sums are finished without a buffer
  int64_t slots_ = 1;
  int64_t epilogue_at_ = 0, scratch_at_ = 0;
};

Error lacks(std::string what) { return {Reason::backend_lacks_variant, "The CPU's winograd kernels " + std::move(what) + "."}; }

}  // namespace

Result<CpuKernelPtr> make_winograd(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  const auto* s = get_if<WinogradSchedule>(&schedule);
  if (!s) return lacks("run strips of tiles, not the schedule '" + to_text(schedule) + "'");
  const TileKernels* products = device.unit(s->unit) ? tile_kernels_of(s->unit) : nullptr;
  const WinogradKernels* transforms = winograd_kernels_of(s->unit);
  if (!products || !transforms) return lacks("cannot use the unit '" + s->unit + "', which this device or build does not have");
  if (s->mr < 1 || s->mr > kMaxTileRows || s->nr < 1 || s->nr > products->max_vectors)
    return lacks("have no tile of " + std::to_string(s->mr) + " rows by " + std::to_string(s->nr) + " vectors for the unit '" +
                 s->unit + "'");
  const auto* params = get_if<WinogradParams>(&stage.params);
  if (!params || stage.outputs.size() != 1 || stage.inputs.size() != static_cast<size_t>(2 + params->epilogue.operands()))
    return Error{Reason::internal, "A winograd stage has two operands, those of its epilogue and one output."};
  if (params->tile != 2 && params->tile != 4 && params->tile != 6)
    return lacks("have tiles of 2, 4 and 6, not " + std::to_string(params->tile));
  if (params->window.filter != Triple{1, 3, 3} || params->window.stride != Triple{1, 1, 1} ||
      params->window.dilation != Triple{1, 1, 1})
    return Error{Reason::filter_not_served, "The CPU's winograd kernels support filters of 3x3 without stride or dilation."};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& desc : *list)
      if (desc.dtype != DType::f32)
        return Error{Reason::type_not_served, "The CPU's winograd kernels compute in f32, not " +
                                                  std::string(name_of(desc.dtype)) + "; convert the operand."};
  SPARKLE_TRY(geometry, winograd_geometry(stage, *s, transforms->lanes));
  return CpuKernelPtr(std::make_unique<WinogradKernel>(stage, *s, std::move(geometry), *products, *transforms, device.cores,
                                                       (constants >> 1 & 1) != 0));
}

}  // namespace sparkle::cpu
