// Padding: a table of places in x per axis, moved by segments of lines (copy/indexed.h).
#include "backends/cpu/copy/indexed.h"
#include "families/pad/pad.h"

namespace sparkle::cpu {

Result<CpuKernelPtr> make_pad(const Stage& stage, const Schedule& schedule, const Device& device, uint32_t constants) {
  if (variant_of(schedule) == "plain") return make_plain(stage, schedule, device, constants);
  const auto* loop = get_if<LoopSchedule>(&schedule);
  const RowMoves* rows = loop ? row_moves(loop->unit) : nullptr;
  if (!loop || loop->variant != "rows" || !rows)
    return Error{Reason::backend_lacks_variant,
                 "The CPU backend has no pad variant '" + variant_of(schedule) + "' for unit '" + unit_of(schedule) + "'."};
  const PadParams& params = get<PadParams>(stage.params);
  const Dims &x = stage.inputs[0].shape, &y = stage.outputs[0].shape;
  std::vector<IndexedAxis> axes;
  for (int i = 0; i < y.size(); ++i) {
    if (y[i] != x[i] + params.begin[i] + params.end[i])
      return Error{Reason::bad_shape,
                   "Pads of axis " + std::to_string(i) + " do not lead from " + x.to_string() + " to " + y.to_string() + "."};
    IndexedAxis axis;
    axis.identity = params.begin[i] == 0 && params.end[i] == 0;
    for (int64_t out = 0; out < y[i]; ++out)
      axis.index.push_back(pad_source(params.mode, out, params.begin[i], params.end[i], x[i]));
    axes.push_back(std::move(axis));
  }
  return make_indexed(stage, *loop, device, *rows, std::move(axes), params.value);
}

}  // namespace sparkle::cpu
