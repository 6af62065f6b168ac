// The gemm family on CUDA: every sum of products, in strict fp32 on CUDA cores or on Tensor Cores, by the tiles of
// families/gemm/cuda/cuda_tiles.h. Filters lie as rows of k: packed once where they never change, else laid out anew before
// each product.
#include <cstring>

#include "backends/cuda/kernels/moves/copy_record.h"
#include "backends/cuda/kernels/fill_record.h"
#include "backends/cuda/kernels/gemm_halo_record.h"
#include "backends/cuda/kernels/gemm_tma_record.h"
#include "backends/cuda/stages/products/channel_operand.h"
#include "backends/cuda/stages/products/gemm_few.h"
#include "backends/cuda/stages/products/gemm_maps.h"
#include "backends/cuda/stages/products/gemm_one_output.h"
#include "backends/cuda/stages/products/gemm_record.h"
#include "backends/cuda/stages/products/integers.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/gemm/cuda/cuda_tiles.h"
#include "families/values/element.h"

namespace sparkle::cuda {
namespace {

static_assert(kHaloM == kCudaHaloColumns && kHaloN == kCudaHaloFilters && kHaloSlotPixels == kCudaHaloPixels &&
              kHaloSlots == kCudaHaloSlots && kHaloTaps == kCudaHaloTaps);

void round_to_tf32(std::byte* element) {
  float value;
  std::memcpy(&value, element, sizeof value);
  value = static_cast<float>(rounded_to(OperandType::tf32, static_cast<double>(value)));
  std::memcpy(element, &value, sizeof value);
}

// Filters as rows of k, zeros behind each; `tf32`: rounded to it.
struct PackedFilters {
  GemmSetup setup;
  int64_t offset, size;
  bool tf32;

  void operator()(const std::byte* from, std::byte* to, Executor& executor) const {
    const FilterStrides& f = setup.filters;
    const GemmRecord& g = setup.record;
    std::memset(to, 0, static_cast<size_t>(setup.w_elements * size));
    const int64_t matrices = f.matrices[0] * f.matrices[1] * f.matrices[2] * f.matrices[3];
    parallel_for(executor, static_cast<int>(matrices), [&](int matrix, int) {
      int64_t origin = offset, left = matrix;
      for (int i = 3; i >= 0; --i) {
        if (f.matrices[i] == 1) continue;
        origin += left % f.matrices[i] * f.instance[i];
        left /= f.matrices[i];
      }
      for (int64_t n = 0; n < g.n; ++n) {
        std::byte* row = to + (matrix * int64_t{g.n} + n) * g.w_stride * size;
        for (int64_t t = 0; t < f.size[0]; ++t)
          for (int64_t r = 0; r < f.size[1]; ++r)
            for (int64_t s = 0; s < f.size[2]; ++s)
              for (int64_t c = 0; c < f.size[3]; ++c, row += size) {
                const int64_t at =
                    origin + n * f.filter + t * f.strides[0] + r * f.strides[1] + s * f.strides[2] + c * f.strides[3];
                std::memcpy(row, from + at * size, static_cast<size_t>(size));
                if (tf32) round_to_tf32(row);
              }
      }
    });
  }
};

std::string packing_key(const GemmSetup& setup, const TensorDesc& w, Loader loader, bool tf32) {
  const FilterStrides& f = setup.filters;
  std::string key = "cuda.gemm:" + std::to_string(setup.record.w_stride) + ":" + w.shape.to_string() + "@" +
                    w.layout.strides.to_string() + "+" + std::to_string(w.layout.offset) + ":";
  for (int i = 0; i < 4; ++i) key += std::to_string(f.matrices[i]) + "x" + std::to_string(f.instance[i]) + ",";
  return key + (loader == Loader::dense ? "dense" : "window") + (tf32 ? "_tf32" : "");
}

// Whether the operand lies as kernels read it already.
bool lies_right(const GemmSetup& setup, const TensorDesc& w) {
  const FilterStrides& f = setup.filters;
  const int64_t run = 16 / size_of(w.dtype);
  int64_t dense = 1;
  for (int i = 3; i >= 0; --i) {
    if (f.size[i] > 1 && f.strides[i] != dense) return false;
    dense *= f.size[i];
  }
  if (dense % run != 0 || w.layout.offset % run != 0) return false;
  if (setup.record.n > 1 && (f.filter % run != 0 || f.filter <= 0)) return false;  // maps count upwards
  for (int i = 0; i < 4; ++i)
    if (f.matrices[i] > 1 && f.instance[i] % run != 0) return false;
  return true;
}

// Lays the right operand out anew in the workspace, from `at` on.
Status lay_out(CudaKernel& kernel, const GemmSetup& setup, const TensorDesc& w, int64_t at, const Workshop& shop) {
  const FilterStrides& f = setup.filters;
  const int64_t size = size_of(w.dtype);
  const GemmRecord& g = setup.record;
  if (g.k != g.w_stride) {
    FillRecord fill;
    fill.count = static_cast<uint64_t>(divided(setup.w_elements * size, 4));
    SPARKLE_TRY(launch, launch_of(shop, "sparkle_fill_words", fill,
                                  blocks_for(std::min<int64_t>(static_cast<int64_t>(fill.count), 1 << 20), kFillThreads),
                                  kFillThreads));
    launch.addresses = {{offsetof(FillRecord, to), kWorkspace, at}};
    kernel.launches.push_back(std::move(launch));
  }
  std::vector<ChunkAxis> axes;
  for (int i = 0; i < 4; ++i)
    if (f.matrices[i] > 1) axes.push_back({f.matrices[i], f.instance[i] * size, g.w_instance[i] * size});
  axes.push_back({g.n, f.filter * size, g.w_stride * size});
  int64_t dense = 1;
  std::vector<ChunkAxis> inner;
  for (int i = 3; i >= 0; --i) {
    if (f.size[i] > 1) inner.push_back({f.size[i], f.strides[i] * size, dense * size});
    dense *= f.size[i];
  }
  axes.insert(axes.end(), inner.rbegin(), inner.rend());
  if (axes.size() > static_cast<size_t>(kMoveAxes)) return too_far("gemm");
  const ChunkMove move = chunk_move(std::move(axes), size, w.layout.offset * size, 0);
  if (!move.fits_31_bits()) return too_far("gemm");
  CopyRecord r;
  r.count = static_cast<uint32_t>(move.count());
  r.axes = move_axes(move.axes);
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_copy_chunks_" + std::to_string(move.bytes), r,
                                blocks_for(move.count(), kMoveThreads * kMoveSteps), kMoveThreads));
  launch.addresses = {{offsetof(CopyRecord, x), 1, 0}, {offsetof(CopyRecord, y), kWorkspace, at}};
  kernel.launches.push_back(std::move(launch));
  return ok();
}

// Whether eight outputs side by side are whole loads and stores of 16 bytes, of residuals too.
bool in_vectors(const Stage& stage, const GemmRecord& g, const EpiloguePlaces& places) {
  const auto whole = [&](const TensorDesc& d, const int32_t(&strides)[4], const int32_t(&instance)[4], int32_t channel) {
    if (channel != 1 || d.layout.offset % 8 != 0) return false;
    for (int i = 0; i < 4; ++i)
      if (strides[i] % 8 != 0 || instance[i] % 8 != 0) return false;
    return true;
  };
  if (g.n % 8 != 0 || !whole(stage.outputs[0], g.y_strides, g.y_instance, g.y_channel)) return false;
  for (int i = 0; i < 2; ++i)
    if (places.residual[i] >= 0 && !whole(stage.inputs[static_cast<size_t>(places.residual[i])], g.residual_strides[i],
                                          g.residual_instance[i], g.residual_channel[i]))
      return false;
  return true;
}

}  // namespace

Result<CudaKernelPtr> make_gemm(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t constants) {
  const auto* s = get_if<TileSchedule>(&schedule);
  if (s && s->variant == "bytes_naive") return make_integer_sums(stage, shop);
  if (s && s->variant == "one_output") return make_gemm_one_output(stage, shop, constants);
  if (s && s->variant == kCudaFew) return make_few(stage, shop, constants);
  const CudaTile* tile = s ? cuda_tile(*s) : nullptr;
  if (!tile)
    return Error{Reason::backend_lacks_variant,
                 "the CUDA backend has no gemm variant '" + variant_of(schedule) + "', or no such tile of it"};
  const bool plain = tile->variant == kCudaWmma, fp16 = multiplies_fp16(stage);
  const std::string_view operand = !plain ? cuda_operand(stage) : fp16 ? name_of(stage.inputs[0].dtype) : "";
  const bool elements = plain || tile->variant.ends_with("_elements"), engine = tile->variant.starts_with("wgmma"),
             widened = tile->variant == kCudaWidened, integers = operand == "i8",
             tf32 = operand == "tf32" && !engine;  // the engine rounds by itself
  if (operand.empty() || (!plain && (operand == "f32" || widened) != tile->variant.starts_with("fma")))
    return Error{Reason::type_not_served,
                 "the CUDA gemm kernels of variant '" + s->variant + "' do not multiply such operands"};
  if (tile->variant == kCudaHalo && !halo_tile(stage))
    return Error{Reason::filter_not_served,
                 "the CUDA gemm variant 'wgmma_halo' is for windows of stride 1 that shared memory holds"};
  if (engine && !in_columns(stage))
    return Error{Reason::layout_not_served,
                 "the CUDA gemm variant '" + s->variant +
                     "' needs channels in runs of 16 bytes and windows of two dimensions; use 'mma'"};
  if (!elements && !in_chunks(stage))
    return Error{Reason::layout_not_served, "the CUDA gemm variant '" + s->variant +
                                                "' needs channels in runs of 16 bytes; use '" + s->variant + "_elements'"};
  const auto& params = get<GemmParams>(stage.params);
  if (params.epilogue.has_post_op())
    return Error{Reason::tail_not_served, "the CUDA gemm kernels have no place for a program behind their sums"};
  const TensorDesc& w = stage.inputs[1];
  const int64_t size = size_of(w.dtype);
  SPARKLE_TRY(setup, gemm_setup(stage, 1, size));
  GemmRecord& g = setup.record;
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (g.m == 0 || g.n == 0 || stage.outputs[0].elements() == 0) return kernel;

  const Epilogue& e = params.epilogue;
  const EpiloguePlaces places = integers ? EpiloguePlaces() : epilogue_places(e);
  g.y_type = element_of(stage.outputs[0].dtype);
  g.vectors = in_vectors(stage, g, places);
  const int cluster = tile->cluster;
  const auto halo = tile->variant == kCudaHalo ? halo_tile(stage) : std::nullopt;
  g.tiles_m = static_cast<int32_t>(halo ? halo->all : rounded_up(divided(g.m, tile->m), cluster));
  g.tiles_n = static_cast<int32_t>(divided(g.n, tile->n));
  g.swath = std::min(g.tiles_n, 8);  // columns of tiles whose filters stay in the L2 while rows pass
  const int64_t channels = g.channels_by.size, channel_steps = divided(channels, s->k);
  const int64_t all_steps = std::max<int64_t>(1, engine ? params.window.taps() * channel_steps : divided(g.k, s->k));
  g.w_unrounded = tf32;
  g.all_k = static_cast<int32_t>(engine ? params.window.taps() * channels : all_steps * s->k);
  g.splits = 1;
  if (s->split > 1) {
    g.split_steps = static_cast<int32_t>(divided(all_steps, s->split));
    g.splits = static_cast<int32_t>(divided(all_steps, g.split_steps));
  }
  if (setup.instances > 65535)
    return Error{Reason::layout_not_served, "the CUDA gemm kernels support 65535 products at once; split the batch"};

  KernelLaunch product;
  product.threads = static_cast<unsigned>(tile->threads);
  const int64_t tiles = int64_t{g.tiles_m} * g.tiles_n;
  if (engine) {
    // Persistent: as many blocks as there are multiprocessors share all work.
    const int64_t works = tiles / cluster * g.splits * setup.instances, cores = shop.context->device().description.cores;
    product.grid = {static_cast<unsigned>(cluster * std::min(works, std::max<int64_t>(1, cores / cluster))), 1, 1};
    product.cluster = {static_cast<unsigned>(cluster), 1, 1};
  } else {
    product.grid = {static_cast<unsigned>(tiles), static_cast<unsigned>(g.splits), static_cast<unsigned>(setup.instances)};
  }
  product.shared_bytes = static_cast<unsigned>(sparkle::shared_bytes(*tile));
  const std::string size_of_tile = std::to_string(tile->m) + "x" + std::to_string(tile->n);
  const std::string name = "sparkle_gemm_" +
                           (plain              ? std::string("wmma")
                            : operand == "f32" ? "fma_" + size_of_tile
                            : widened          ? "fma_widened_" + size_of_tile
                            : halo             ? std::string("halo")
                            : engine           ? "wgmma_" + size_of_tile + "x" + std::to_string(cluster)
                                               : "mma_" + size_of_tile) +
                           (elements && !plain                    ? "_elements_"
                            : tile->variant.ends_with("_in_turn") ? "_in_turn_"
                                                                  : "_") +
                           std::string(engine && stage.inputs[0].dtype == DType::u8 ? "u8" : operand);
  SPARKLE_TRY(function, shop.functions->get(name, product.shared_bytes));
  product.function = function, product.kernel = name;
  // Where the record of a product begins within what is launched.
  const size_t at = halo ? offsetof(GemmHaloRecord, gemm) : engine ? offsetof(GemmTmaRecord, gemm) : 0;
  product.addresses = {{at + offsetof(GemmRecord, x), 0, 0},
                       {at + offsetof(GemmRecord, y), static_cast<int>(stage.inputs.size()), 0}};

  int64_t workspace = 0;
  if (g.splits > 1) {
    const int64_t all_tiles = tiles * setup.instances;
    product.addresses.push_back({at + offsetof(GemmRecord, partial), kWorkspace, 0});
    workspace = rounded_up(all_tiles * g.splits * tile->m * tile->n * 4, 256);
    // Zero before each launch, and behind it again.
    const std::vector<uint32_t> zeros(static_cast<size_t>(all_tiles));
    SPARKLE_TRY(counters, shop.upload(zeros.data(), all_tiles * 4));
    g.counters = reinterpret_cast<uint32_t*>(static_cast<uintptr_t>(counters->address()));
    kernel->tables.push_back(std::move(counters));
  }
  if (integers) {
    SPARKLE_CHECK(add_integer_operands(*kernel, product, setup, at, engine, shop, constants, workspace));
  } else if (constants >> 1 & 1) {
    g.w_unrounded = 0;
    kernel->packings.push_back({1, setup.w_elements * size, packing_key(setup, w, params.loader, tf32),
                                PackedFilters{setup, w.layout.offset, size, tf32}});
    product.addresses.push_back({at + offsetof(GemmRecord, w), 1, 0});
  } else if (lies_right(setup, w)) {
    g.w_stride = static_cast<int32_t>(setup.filters.filter);
    for (int i = 0; i < 4; ++i) g.w_instance[i] = static_cast<int32_t>(setup.filters.instance[i]);
    product.addresses.push_back({at + offsetof(GemmRecord, w), 1, 0});
  } else {
    SPARKLE_CHECK(lay_out(*kernel, setup, w, workspace, shop));
    product.addresses.push_back({at + offsetof(GemmRecord, w), kWorkspace, workspace});
    workspace += rounded_up(setup.w_elements * size, 256);
  }
  if (places.scale >= 0)
    SPARKLE_CHECK(add_channel_operand(*kernel, product, shop, places.scale, at + offsetof(GemmRecord, scale),
                                      constants >> places.scale & 1, workspace));
  if (places.bias >= 0)
    SPARKLE_CHECK(add_channel_operand(*kernel, product, shop, places.bias, at + offsetof(GemmRecord, bias),
                                      constants >> places.bias & 1, workspace));
  for (int i = 0; i < 2; ++i)
    if (places.residual[i] >= 0)
      product.addresses.push_back(
          {at + offsetof(GemmRecord, residual) + static_cast<size_t>(i) * sizeof(void*), places.residual[i], 0});
  if (halo) {
    GemmHaloRecord r;
    r.gemm = g;
    r.channel_steps = static_cast<int32_t>(channel_steps);
    r.x_instance = static_cast<int32_t>(channels), r.w_instance = g.n;
    r.rows = static_cast<int32_t>(halo->rows), r.box_rows = static_cast<int32_t>(halo->box_rows);
    r.width_by = divisor_of(halo->width), r.tiles_of_image = divisor_of(halo->of_image);
    product.set(r);
    map_halo(product, shop, stage, setup, *tile, *halo);
  } else if (engine) {
    GemmTmaRecord r;
    r.gemm = g;
    r.channel_steps = static_cast<int32_t>(channel_steps);
    r.x_instance = static_cast<int32_t>(channels), r.w_instance = g.n;
    const auto boxes = boxes_of(stage, setup, *tile, places);
    r.boxes = boxes.has_value();
    product.set(r);
    map_operands(product, shop, stage, setup, *tile, cluster, boxes);
  } else {
    product.set(g);
  }
  kernel->workspace = workspace;
  kernel->launches.push_back(std::move(product));
  return kernel;
}

}  // namespace sparkle::cuda
