#include "plan/lower/limits.h"

#include "graph/composed/compose.h"

namespace sparkle {
namespace {

// Of a filter, whose rank tells, or the operator's own list.
int spatial_axes(const Graph& graph, const Op& op) {
  if (const auto* pool = std::get_if<PoolOp>(&op.params)) return pool->kernel.size();
  const auto* conv = std::get_if<ConvOp>(&op.params);
  if (conv == nullptr) return 0;
  const GraphTensor& filter = graph.tensor(op.inputs[1]);
  return filter.constant || filter.known ? filter.shape.size() - 2 : conv->kernel.size();
}

// The value of a constant of one integer or several.
std::vector<int64_t> integers(const Graph& graph, const Op& op, size_t input) {
  if (input >= op.inputs.size() || op.inputs[input] == kAbsent) return {};
  const auto& value = graph.tensor(op.inputs[input]).constant;
  if (!value || value->dtype != DType::i64 || !value->bytes) return {};
  return {value->data<int64_t>(), value->data<int64_t>() + value->elements()};
}

}  // namespace

std::string too_many_axes(int spatial) {
  return std::to_string(spatial) + " spatial dimensions are not supported, only 1 to " + std::to_string(kMostSpatialAxes);
}

std::optional<std::string> beyond_limits(const Graph& graph, const Op& op) {
  if (const int spatial = spatial_axes(graph, op); spatial > kMostSpatialAxes) return too_many_axes(spatial);
  const auto* composed = std::get_if<ComposedOp>(&op.params);
  if (composed == nullptr) return std::nullopt;
  if (std::holds_alternative<ColumnsToImageOp>(composed->form)) {
    const size_t axes = integers(graph, op, 1).size();
    return axes > static_cast<size_t>(kMostSpatialAxes) ? std::optional(image_of_too_many_axes(axes)) : std::nullopt;
  }
  if (const auto* stft = std::get_if<StftOp>(&composed->form)) {
    const std::vector<int64_t> length = integers(graph, op, 3);
    // Of real numbers, the fewest that there may be.
    return length.size() == 1 ? frames_beyond_limits(length[0], 1, stft->one_sided) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sparkle
