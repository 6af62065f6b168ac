#include "backends/cuda/stages/products/gemm_few.h"

#include <algorithm>

#include "backends/cuda/stages/products/channel_operand.h"
#include "backends/cuda/stages/products/gemm_record.h"
#include "families/gemm/gemm.h"

namespace sparkle::cuda {
namespace {

static_assert(kFewThreads == sparkle::kFewThreads && kFewMostChunks == kFewRows);

// Below 2^31 by what the last block of a grid may reach beyond the last element.
constexpr int64_t kMostElements = (int64_t{1} << 31) - (int64_t{1} << 24);

int32_t small(int64_t v) { return static_cast<int32_t>(v); }

}  // namespace

std::string few_kernel_name(const FewTile& t) {
  return "sparkle_gemm_few_" +
         (t.walks > 0 ? "rows_" + std::to_string(t.in_rows - t.rows + 1) : std::to_string(t.kernel.steps)) + "x" +
         std::to_string(t.kernel.tiles);
}

FewRecord few_record(const Stage& stage, const FewTile& t) {
  const auto& p = get<GemmParams>(stage.params);
  const FeatureMap x = feature_map(stage.inputs[0]), w = feature_map(stage.inputs[1]), y = feature_map(stage.outputs[0]);
  FewRecord r;
  r.in_fp16 = stage.inputs[0].dtype == DType::f16;
  r.items = small(y.n * t.bands), r.bands_by = divisor_of(t.bands);
  r.rows = small(t.rows), r.all_rows = small(y.h), r.columns = small(y.w), r.pairs_by = divisor_of(divided(y.w, 2));
  r.walks = small(t.walks), r.walk_rows = small(t.walk_rows);
  r.y_image = small(y.image_stride), r.y_map = small(y.channel_stride), r.y_row = small(y.row_stride);
  const auto even = [](int64_t v) { return v % 2 == 0; };
  const bool pairs = even(y.w) && even(stage.outputs[0].layout.offset) && (y.n == 1 || even(y.image_stride)) &&
                     (y.c == 1 || even(y.channel_stride)) && (y.h == 1 || even(y.row_stride));
  r.y_stores = !pairs ? FewStores::apart : r.in_fp16 ? FewStores::fp16_pairs : FewStores::fp32_pairs;
  r.height = small(x.h), r.width = small(x.w), r.channels = small(x.c);
  r.pad_h = small(p.window.pad_begin[1]), r.pad_w = small(p.window.pad_begin[2]);
  r.x_image = small(x.image_stride), r.x_channel = small(x.channel_stride), r.x_row = small(x.row_stride);
  r.by_copies = t.by_copies;
  r.in_rows = small(t.in_rows), r.plane_bytes = small(t.plane_bytes);
  r.image_bytes = small(t.image_bytes), r.staged_bytes = small(t.staged_bytes);
  r.words_by = divisor_of(t.words), r.in_rows_by = divisor_of(t.in_rows);
  r.filters = small(y.c), r.filter_rows = small(p.window.filter[1]), r.filter_columns = small(p.window.filter[2]);
  r.w_map = small(w.image_stride), r.w_channel = small(w.channel_stride);
  r.w_row = small(w.row_stride), r.w_column = small(w.pixel_stride);
  for (int64_t c = 0; c < x.c; ++c)
    for (int64_t row = 0; row < p.window.filter[1]; ++row)
      r.chunks[c * p.window.filter[1] + row] = small(c * t.plane_bytes + row * t.words * 4);
  const Epilogue& e = p.epilogue;
  r.alpha = static_cast<float>(e.alpha), r.a = static_cast<float>(e.a), r.b = static_cast<float>(e.b);
  r.activation = static_cast<int32_t>(e.activation);
  return r;
}

Result<CudaKernelPtr> make_few(const Stage& stage, const Workshop& shop, uint32_t constants) {
  Reason why = Reason::none;
  const auto tile = few_tile(stage, why);
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (!tile && stage.outputs[0].elements() == 0) return kernel;
  if (!tile) return Error{why, "the CUDA gemm variant 'few' does not run this layer: " + std::string(sentence_of(why))};
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > kMostElements)
        return Error{Reason::layout_not_served,
                     "The CUDA kernels count elements in 31 bits, and an operand spans more; split the batch."};
  const FewRecord r = few_record(stage, *tile);
  const Device& device = shop.context->device().description;
  const MemoryLevel* shared = device.level("shared");
  // Persistent: as many blocks as run at once go through all bands.
  const int64_t at_once =
      std::max(1, device.cores) * tile->blocks_a_core(shared ? shared->bytes : device.limits.shared_bytes_per_group);
  KernelLaunch product;
  product.threads = kFewThreads;
  product.shared_bytes = static_cast<unsigned>(tile->shared_bytes());
  product.grid = {static_cast<unsigned>(std::min<int64_t>(r.items, std::max<int64_t>(1, at_once / tile->groups))),
                  static_cast<unsigned>(tile->groups), 1};
  SPARKLE_TRY(function, shop.functions->get(few_kernel_name(*tile), product.shared_bytes));
  product.function = function;
  product.addresses = {{offsetof(FewRecord, x), 0, 0},
                       {offsetof(FewRecord, w), 1, 0},
                       {offsetof(FewRecord, y), static_cast<int>(stage.inputs.size()), 0}};
  const EpiloguePlaces places = epilogue_places(get<GemmParams>(stage.params).epilogue);
  int64_t workspace = 0;
  if (places.scale >= 0)
    SPARKLE_CHECK(add_channel_operand(*kernel, product, shop, places.scale, offsetof(FewRecord, scale),
                                      constants >> places.scale & 1, workspace));
  if (places.bias >= 0)
    SPARKLE_CHECK(add_channel_operand(*kernel, product, shop, places.bias, offsetof(FewRecord, bias),
                                      constants >> places.bias & 1, workspace));
  product.set(r);
  kernel->workspace = workspace;
  kernel->launches.push_back(std::move(product));
  return kernel;
}

}  // namespace sparkle::cuda
