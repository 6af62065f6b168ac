// Padding on CUDA: a table of places in x for each axis that is padded.
#include "families/pad/pad.h"

#include "backends/cuda/stages/moves/indexed.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_pad(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "units")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no pad variant '" + variant_of(schedule) + "'"};
  const PadParams& p = get<PadParams>(stage.params);
  const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
  std::vector<IndexedAxis> axes;
  for (int i = 0; i < y.size(); ++i) {
    if (y[i] != x[i] + p.begin[i] + p.end[i])
      return Error{Reason::bad_shape,
                   "Pads of axis " + std::to_string(i) + " do not lead from " + x.to_string() + " to " + y.to_string() + "."};
    IndexedAxis axis;
    axis.identity = p.begin[i] == 0 && p.end[i] == 0;
    for (int64_t out = 0; !axis.identity && out < y[i]; ++out)
      axis.index.push_back(pad_source(p.mode, out, p.begin[i], p.end[i], x[i]));
    axes.push_back(std::move(axis));
  }
  return make_indexed(stage, shop, axes, p.value);
}

}  // namespace sparkle::cuda
