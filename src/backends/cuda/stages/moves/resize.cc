// Sampling at other sizes on CUDA: the nearest element by tables of places, linear and cubic filters by tables of taps.
#include "families/resize/resize.h"

#include "backends/cuda/stages/moves/indexed.h"
#include "backends/cuda/stages/moves/moves.h"
#include "families/resize/resize_taps.h"

namespace sparkle::cuda {
namespace {

std::vector<ResizeTaps> taps_of(const Stage& stage) {
  std::vector<ResizeTaps> taps;
  const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
  for (int i = 0; i < y.size(); ++i) taps.push_back(resize_taps(get<ResizeParams>(stage.params), i, x[i], y[i]));
  return taps;
}

Result<CudaKernelPtr> make_nearest(const Stage& stage, const Workshop& shop) {
  std::vector<IndexedAxis> axes;
  for (ResizeTaps& t : taps_of(stage)) {
    IndexedAxis axis;
    axis.identity = t.identity;
    if (!t.identity) axis.index = std::move(t.index);
    for (size_t i = 0; i < t.outside.size(); ++i)
      if (t.outside[i]) axis.index[i] = -1;
    axes.push_back(std::move(axis));
  }
  return make_indexed(stage, shop, axes, get<ResizeParams>(stage.params).extrapolation);
}

Result<CudaKernelPtr> make_taps(const Stage& stage, const Workshop& shop) {
  const TensorDesc &x = stage.inputs[0], &y = stage.outputs[0];
  if (x.dtype != y.dtype || (x.dtype != DType::f32 && x.dtype != DType::f16 && x.dtype != DType::bf16))
    return Error{Reason::type_not_served, "the CUDA resize kernels filter f32, f16 and bf16"};
  auto kernel = std::make_unique<CudaKernel>(stage);
  const std::vector<ResizeTaps> taps = taps_of(stage);
  const int64_t element = size_of(y.dtype);
  std::vector<ChunkAxis> all;
  for (int i = 0; i < y.shape.size(); ++i)
    all.push_back({y.shape[i], x.layout.strides[i] * element, y.layout.strides[i] * element, 0,
                   taps[static_cast<size_t>(i)].identity ? -1 : i});
  const ChunkMove move = chunk_move(std::move(all), element, x.layout.offset * element, y.layout.offset * element, element);
  if (!move.fits_31_bits() || extent(x.shape, x.layout) > INT32_MAX) return too_far("resize");
  TapsRecord r;
  r.count = static_cast<uint32_t>(move.count());
  r.axes = move_axes(move.axes);
  r.outside = static_cast<float>(get<ResizeParams>(stage.params).extrapolation);
  r.type = static_cast<uint8_t>(y.dtype);
  std::vector<int32_t> places{0};  // of axes without taps
  std::vector<float> weights{1};
  int slots = 0;
  for (size_t i = 0; i < move.axes.size(); ++i) {
    const ChunkAxis& a = move.axes[i];
    r.slot[i] = -1;
    if (a.axis < 0) continue;
    if (slots == kTapAxes)
      return Error{Reason::filter_not_served,
                   "the CUDA resize kernels filter up to three axes; resize the others in a step of their own"};
    const ResizeTaps& t = taps[static_cast<size_t>(a.axis)];
    if (static_cast<int64_t>(places.size()) + t.count * a.size > INT32_MAX) return too_far("resize");
    r.slot[i] = slots;
    r.start[slots] = static_cast<int32_t>(places.size());
    r.taps[slots] = static_cast<int32_t>(t.count);
    ++slots;
    for (size_t k = 0; k < t.index.size(); ++k) {
      const bool outside = !t.outside.empty() && t.outside[k / static_cast<size_t>(t.count)];
      places.push_back(outside ? kNowhere : static_cast<int32_t>(t.index[k] * a.x));
      weights.push_back(static_cast<float>(t.weight[k]));
    }
  }
  SPARKLE_TRY(places_there, shop.upload(places.data(), static_cast<int64_t>(places.size()) * 4));
  SPARKLE_TRY(weights_there, shop.upload(weights.data(), static_cast<int64_t>(weights.size()) * 4));
  r.places = reinterpret_cast<const int32_t*>(static_cast<uintptr_t>(places_there->address()));
  r.weights = reinterpret_cast<const float*>(static_cast<uintptr_t>(weights_there->address()));
  kernel->tables = {std::move(places_there), std::move(weights_there)};
  SPARKLE_TRY(launch, launch_of(shop, "sparkle_resize_taps", r, blocks_for(move.count(), kMoveThreads), kMoveThreads));
  launch.addresses = {{offsetof(TapsRecord, x), 0, 0}, {offsetof(TapsRecord, y), 1, 0}};
  kernel->launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace

Result<CudaKernelPtr> make_resize(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  const std::string& variant = variant_of(schedule);
  const bool nearest = get<ResizeParams>(stage.params).mode == ResizeMode::nearest;
  if (variant != (nearest ? "units" : "taps"))
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no resize variant '" + variant + "' for this mode"};
  if (stage.inputs[0].elements() == 0 || stage.outputs[0].elements() == 0)
    return Result<CudaKernelPtr>(std::make_unique<CudaKernel>(stage));
  return nearest ? make_nearest(stage, shop) : make_taps(stage, shop);
}

}  // namespace sparkle::cuda
