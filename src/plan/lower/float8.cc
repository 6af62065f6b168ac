#include "plan/lower/float8.h"

#include <algorithm>

#include "families/gemm/gemm.h"
#include "families/registry.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

bool is_multiplied(const Stage& stage, const Device& device) {
  for (const Variant& variant : info(Family::gemm).variants) {
    if (variant.unit != UnitKind::matrix || !variant.runs_on(device)) continue;
    Reason why = Reason::none;
    if (!info(Family::gemm).schedules(stage, variant, device, why).empty()) return true;
  }
  return false;
}

}  // namespace

Float8Products::Float8Products(const Graph& graph, const Device& device) : graph_(graph), device_(device) {
  if (!device.unit("wgmma-e4m3")) return;
  producers_.assign(graph.tensors.size(), -1);
  for (size_t i = 0; i < graph.ops.size(); ++i)
    for (const TensorId id : graph.ops[i].outputs)
      if (id != kAbsent) producers_[static_cast<size_t>(id)] = static_cast<int>(i);
  std::vector<bool> read(graph.tensors.size());
  for (const TensorId id : graph.outputs) read[static_cast<size_t>(id)] = true;
  for (const Op& op : graph.ops) {
    const size_t taken = factors_of(op) ? 2 : 0;
    for (size_t i = taken; i < op.inputs.size(); ++i)
      if (op.inputs[i] != kAbsent) read[static_cast<size_t>(op.inputs[i])] = true;
  }
  dropped_.resize(graph.ops.size());
  for (size_t i = 0; i < dropped_.size(); ++i)
    dropped_[i] =
        std::holds_alternative<DequantizeOp>(graph.ops[i].params) && !read[static_cast<size_t>(graph.ops[i].outputs[0])];
}

std::optional<Float8Products::Dequantized> Float8Products::dequantized(TensorId id) const {
  const int producer = producers_[static_cast<size_t>(id)];
  const Op* op = producer < 0 ? nullptr : &graph_.ops[static_cast<size_t>(producer)];
  const auto* dequantize = op ? std::get_if<DequantizeOp>(&op->params) : nullptr;
  if (!dequantize || dequantize->block != 0 || graph_.tensor(id).dtype != DType::f32) return std::nullopt;
  const DType type = graph_.tensor(op->inputs[0]).dtype;
  if (type != DType::f8e4m3fn && type != DType::f8e5m2) return std::nullopt;
  const auto& scale = graph_.tensor(op->inputs[1]).constant;
  if (!scale || scale->dtype != DType::f32) return std::nullopt;
  if (op->inputs.size() > 2 && op->inputs[2] != kAbsent) {
    const auto& zero = graph_.tensor(op->inputs[2]).constant;
    if (!zero) return std::nullopt;
    for (const double v : as_doubles(*zero))
      if (v != 0) return std::nullopt;
  }
  return Dequantized{op->inputs[0], &*scale, dequantize->axis};
}

Stage Float8Products::bare_stage(const Op& op, DType type) const {
  const Dims &x = graph_.tensor(op.inputs[0]).shape, &w = graph_.tensor(op.inputs[1]).shape,
             &y = graph_.tensor(op.outputs[0]).shape;
  GemmParams p;
  p.epilogue.scale = true;
  Stage stage;
  if (const auto* conv = std::get_if<ConvOp>(&op.params)) {
    p.groups = conv->groups;
    for (int i = 0; i < x.size() - 2; ++i) {
      const auto s = static_cast<size_t>(5 - x.size() + i);
      p.window.filter[s] = w[2 + i], p.window.stride[s] = conv->strides[i], p.window.dilation[s] = conv->dilations[i];
      p.window.pad_begin[s] = conv->pads_begin[i], p.window.pad_end[s] = conv->pads_end[i];
    }
    stage.inputs = {{type, x, channels_last(x)}, {type, w, row_major(w)}, {DType::f32, {y[1]}, row_major({y[1]})}};
    stage.outputs = {{DType::f32, y, channels_last(y)}};
  } else {
    const int64_t k = x.back(), n = y.back(), rows = x.product() / std::max<int64_t>(1, k);
    p.loader = Loader::dense;
    stage.inputs = {
        {type, {rows, k}, row_major({rows, k})}, {type, {k, n}, row_major({k, n})}, {DType::f32, {n}, row_major({n})}};
    stage.outputs = {{DType::f32, {rows, n}, row_major({rows, n})}};
  }
  stage.params = p;
  return stage;
}

std::optional<Float8Factors> Float8Products::factors_of(const Op& op) const {
  if (producers_.empty()) return std::nullopt;
  const auto* conv = std::get_if<ConvOp>(&op.params);
  const auto* matmul = std::get_if<MatMulOp>(&op.params);
  if (!(conv && !conv->transposed) && !(matmul && !matmul->transpose_a)) return std::nullopt;
  const auto x = dequantized(op.inputs[0]), w = dequantized(op.inputs[1]);
  if (!x || !w || x->scale->elements() != 1 || !graph_.tensor(w->x).constant) return std::nullopt;
  const DType type = graph_.tensor(x->x).dtype;
  const Dims &of_x = graph_.tensor(x->x).shape, &of_w = graph_.tensor(w->x).shape;
  if (graph_.tensor(w->x).dtype != type || of_x.product() == 0) return std::nullopt;
  if (matmul && (of_w.size() != 2 || of_x.size() < 2)) return std::nullopt;
  // One scale for all filters, or one each.
  const int channel = conv ? 0 : matmul->transpose_b ? 0 : 1;
  const int64_t axis = w->axis < 0 ? w->axis + of_w.size() : w->axis, channels = of_w[channel];
  if (w->scale->elements() != 1 && (axis != channel || w->scale->elements() != channels)) return std::nullopt;
  if (!is_multiplied(bare_stage(op, type), device_)) return std::nullopt;
  Float8Factors f{x->x, w->x, HostTensor::uninitialized(DType::f32, {channels})};
  const double of_pixels = as_doubles(*x->scale)[0];
  const std::vector<double> of_filters = as_doubles(*w->scale);
  for (int64_t i = 0; i < channels; ++i)
    f.scales.data<float>()[i] = static_cast<float>(of_pixels * of_filters[of_filters.size() == 1 ? 0 : static_cast<size_t>(i)]);
  return f;
}

}  // namespace sparkle
