// GridSample and DeformConv: pixels are read with their channels side by side.
#include "families/deform/deform.h"
#include "plan/lower/lower.h"

namespace sparkle {
namespace {

int sampled(Lowering& l, const Group& group, const StageParams& params, std::vector<int> inputs) {
  Draft& d = l.draft;
  inputs[0] = d.channels_innermost(inputs[0]);
  const GraphTensor& result = l.result(group);
  const int out = d.make(result.name, l.computed_type(result.dtype), result.shape, order_channels_last(result.shape.size()));
  d.step(l.op(group).name, l.nodes(group), params, std::move(inputs), {out});
  return out;
}

}  // namespace

Result<bool> lower_sample(Lowering& l, const Group& group) {
  const Op& op = l.op(group);
  if (const auto* grid = std::get_if<GridSampleOp>(&op.params)) {
    l.set(group.output, sampled(l, group, grid->params, {l.computed(op.inputs[0]), l.computed(op.inputs[1])}));
  } else if (const auto* deform = std::get_if<DeformConvOp>(&op.params)) {
    DeformParams params;
    for (size_t i = 0; i < 2; ++i) {
      const int axis = static_cast<int>(i);
      params.filter[i] = deform->kernel[axis], params.stride[i] = deform->strides[axis];
      params.dilation[i] = deform->dilations[axis], params.pad_begin[i] = deform->pads_begin[axis];
    }
    params.groups = deform->groups, params.offset_groups = deform->offset_groups;
    std::vector<int> inputs;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == kAbsent) continue;
      params.bias |= i == 3, params.mask |= i == 4;
      inputs.push_back(l.computed(op.inputs[i]));
    }
    l.set(group.output, sampled(l, group, params, std::move(inputs)));
  } else {
    return false;
  }
  return true;
}

}  // namespace sparkle
