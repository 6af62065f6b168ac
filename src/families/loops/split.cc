#include "families/loops/split.h"

#include <algorithm>

#include "families/copy/copy.h"
#include "families/gemm/gemm.h"
#include "families/normalize/normalize.h"
#include "families/pool/pool.h"
#include "families/reduce/reduce.h"
#include "families/resize/resize.h"
#include "families/softmax/softmax.h"

namespace sparkle {
namespace {

// Every operand cut along the same axis.
SplitAxes together(const Stage& stage, int axis) {
  SplitAxes split;
  split.size = stage.outputs[0].shape[axis];
  split.inputs.assign(stage.inputs.size(), axis);
  split.outputs.assign(stage.outputs.size(), axis);
  return split;
}

// The longest axis of the output for which `free` holds.
template <class F>
SplitAxes longest(const Stage& stage, F&& free) {
  const Dims& shape = stage.outputs[0].shape;
  int best = -1;
  for (int i = 0; i < shape.size(); ++i)
    if (free(i) && (best < 0 || shape[i] > shape[best])) best = i;
  return best < 0 ? SplitAxes{} : together(stage, best);
}

bool among(const Dims& axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

// Operands of an epilogue: a vector over the output's axis `channel`, or a residual of the output's rank.
void cut_epilogue(const Stage& stage, int axis, int channel, SplitAxes& split) {
  const int rank = stage.outputs[0].shape.size();
  for (size_t i = 2; i < stage.inputs.size(); ++i) {
    const Dims& shape = stage.inputs[i].shape;
    int cut = shape.size() == 1 ? (axis == channel ? 0 : -1) : axis - (rank - shape.size());
    if (cut >= 0 && shape[cut] == 1) cut = -1;
    split.inputs[i] = cut;
  }
}

SplitAxes split_gemm(const Stage& stage, const GemmParams& p) {
  const TensorDesc& y = stage.outputs[0];
  const int rank = y.shape.size();
  SplitAxes split;
  split.inputs.assign(stage.inputs.size(), -1);
  if (p.loader == Loader::window) {
    // Filters; with groups they belong to different channels, so images then.
    const int axis = p.groups == 1 ? 1 : 0;
    split.size = y.shape[axis], split.outputs = {axis};
    split.inputs[axis == 1 ? 1 : 0] = 0;
    cut_epilogue(stage, axis, 1, split);
    return split;
  }
  const bool rows = y.shape[rank - 2] >= y.shape[rank - 1];
  const int axis = rows ? rank - 2 : rank - 1;
  split.size = y.shape[axis], split.outputs = {axis};
  const size_t operand = rows ? 0 : 1;
  split.inputs[operand] = stage.inputs[operand].shape.size() - (rank - axis);
  cut_epilogue(stage, axis, rank - 1, split);
  return split;
}

}  // namespace

SplitAxes split_axes(const Stage& stage) {
  if (const auto* p = get_if<GemmParams>(&stage.params)) return split_gemm(stage, *p);
  // Positions of maxima count from the start of the whole input.
  if (holds<PoolParams>(stage.params) && stage.outputs.size() == 1) return longest(stage, [](int axis) { return axis < 2; });
  if (const auto* p = get_if<ReduceParams>(&stage.params))
    return longest(stage, [&](int axis) { return !among(p->axes, axis); });
  if (const auto* p = get_if<SoftmaxParams>(&stage.params))
    return longest(stage, [&](int axis) { return axis < p->first_axis || axis > p->last_axis; });
  if (const auto* p = get_if<NormalizeParams>(&stage.params))
    return longest(stage, [&](int axis) { return !among(p->axes, axis); });
  if (const auto* p = get_if<ResizeParams>(&stage.params))
    return longest(stage, [&](int axis) {
      return axis < 2 && stage.inputs[0].shape[axis] == stage.outputs[0].shape[axis] &&
             p->scales[static_cast<size_t>(axis)] == 1 && p->coordinates != ResizeCoordinates::tf_crop;
    });
  if (holds<PointwiseParams>(stage.params) || holds<CopyParams>(stage.params)) return longest(stage, [](int) { return true; });
  return {};
}

TensorView part_of(const TensorView& view, int axis, int64_t begin, int64_t end) {
  if (axis < 0) return view;
  TensorView part = view;
  part.desc.shape[axis] = end - begin;
  part.desc.layout.offset += begin * part.desc.layout.strides[axis];
  return part;
}

}  // namespace sparkle
