#include "plan/lower/lower.h"

#include <algorithm>

#include "base/half_floats.h"
#include "families/copy/copy.h"
#include "families/types.h"
#include "graph/evaluate/values.h"
#include "plan/lower/supported.h"
#include "plan/lower/view.h"

namespace sparkle {

namespace {

// A step that converts a whole value; its result lies in memory as the value does.
int converted(Lowering& l, int v, DType type) {
  const PointwiseParams program{1, {{PointwiseOp::identity, 0, 0, 0, 0, 0}}};
  const std::string name = l.draft.value(v).name + "/" + std::string(name_of(type));
  return pointwise_step(l, name, {}, program, {v}, type, l.draft.desc(v).shape);
}

HostTensor widened(const HostTensor& x) {
  HostTensor y = HostTensor::uninitialized(DType::f32, x.shape);
  const uint16_t* from = x.data<uint16_t>();
  for (int64_t i = 0; i < x.elements(); ++i)
    y.data<float>()[i] = x.dtype == DType::f16 ? half_to_float(from[i]) : bfloat16_to_float(from[i]);
  return y;
}

}  // namespace

int Lowering::value(TensorId id) {
  int& v = value_of[static_cast<size_t>(id)];
  if (v < 0) {
    const GraphTensor& t = graph.tensor(id);
    if (t.constant) {
      v = draft.constant(t.name, *t.constant);
      draft.buffer_of(v).fit = t.fit;
    } else if (const int wide = wide_of[static_cast<size_t>(id)]; wide >= 0) {
      v = converted(*this, wide, t.dtype);
    }
  }
  return v;
}

int Lowering::computed(TensorId id) {
  const GraphTensor& t = graph.tensor(id);
  if (computed_type(t.dtype) == t.dtype) return value(id);
  int& v = wide_of[static_cast<size_t>(id)];
  if (v < 0 && t.constant) {
    v = draft.constant(t.name + "/f32", widened(*t.constant));
    draft.buffer_of(v).fit = t.fit;
  } else if (v < 0) {
    v = converted(*this, value(id), DType::f32);
  }
  return v;
}

bool Lowering::has_own(TensorId id) const {
  return value_of[static_cast<size_t>(id)] >= 0 || graph.tensor(id).constant.has_value() ||
         wide_of[static_cast<size_t>(id)] < 0;
}

DType Lowering::computed_type(DType type) const { return type == kept ? type : computed_in(type); }

bool Lowering::in_16_bits(Family family, const std::vector<TensorId>& ids, DType result) const {
  return keeps(family, device, result) && std::any_of(ids.begin(), ids.end(), [&](TensorId id) {
           return id != kAbsent && !graph.tensor(id).constant && graph.tensor(id).dtype == result && has_own(id);
         });
}

bool Lowering::is_output(TensorId id) const {
  return std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
}

void Lowering::set(TensorId id, int v) {
  const bool own = draft.desc(v).dtype == graph.tensor(id).dtype;
  (own ? value_of : wide_of)[static_cast<size_t>(id)] = v;
}

std::vector<std::string> Lowering::nodes(const Group& group) const {
  std::vector<std::string> names;
  for (int i : group.ops) names.push_back(graph.ops[static_cast<size_t>(i)].name);
  return names;
}

namespace {

// The family that computes an operator on floats; convolutions with a filter per channel have one of their own. None where
// several steps do whose values between them f16 may not hold, or not well.
std::optional<Family> family_of(const Graph& graph, const Op& op) {
  if (std::holds_alternative<LocalResponseOp>(op.params)) return std::nullopt;
  if (const auto* resize = std::get_if<ResizeOp>(&op.params); resize && resize->antialias) return std::nullopt;
  if (const auto* conv = std::get_if<ConvOp>(&op.params))
    if (!conv->transposed && conv->groups > 1 && conv->groups == graph.tensor(op.inputs[0]).shape[1]) return Family::depthwise;
  const StageParams params = stage_params(op.params);
  return params.type() ? std::optional(params.family()) : std::nullopt;
}

// The type of 16 bits that the group's kernels take on this device and that all of its floats have; f32: none.
DType kept_type(const Lowering& l, const Group& group) {
  const Op& op = group.anchor >= 0 ? l.graph.ops[static_cast<size_t>(group.anchor)] : l.op(group);
  const auto family = family_of(l.graph, op);
  for (const DType type : {DType::f16, DType::bf16}) {
    if (!family || !keeps(*family, l.device, type)) continue;
    const auto fits = [&](TensorId id) {
      return id == kAbsent || !is_float(l.graph.tensor(id).dtype) || l.graph.tensor(id).dtype == type;
    };
    if (std::all_of(op.inputs.begin(), op.inputs.end(), fits) && std::all_of(op.outputs.begin(), op.outputs.end(), fits) &&
        std::all_of(group.residuals.begin(), group.residuals.end(), fits))
      return type;
  }
  return DType::f32;
}

Status lower_group(Lowering& l, const Group& group) {
  for (int i : group.ops) SPARKLE_CHECK(check_types(l.graph, l.graph.ops[static_cast<size_t>(i)]));
  l.kept = kept_type(l, group);
  if (group.anchor >= 0) return lower_anchor(l, group);
  if (!group.program.program.empty()) return lower_pointwise(l, group);
  for (auto* theme :
       {lower_view, lower_movement, lower_window, lower_normal, lower_quantize, lower_index, lower_attention, lower_sample}) {
    SPARKLE_TRY(supported, theme(l, group));
    if (supported) return ok();
  }
  const Op& op = l.op(group);
  return Error{Reason::operator_not_served, "Node '" + op.name + "': operator " + op.type + " is not supported."};
}

}  // namespace

void lower_outputs(Lowering& l) {
  Draft& d = l.draft;
  for (size_t i = 0; i < l.graph.outputs.size(); ++i) {
    const GraphTensor& t = l.graph.tensor(l.graph.outputs[i]);
    int v = l.value(l.graph.outputs[i]);
    TensorDesc desc = d.desc(v);
    DraftBuffer& buffer = d.buffer_of(v);
    const bool in_place = buffer.kind == PlaceKind::arena && is_row_major(desc.shape, desc.layout) && desc.layout.offset == 0 &&
                          buffer.elements == desc.elements() && desc.elements() > 0;
    if (in_place) {
      buffer.kind = PlaceKind::output;
      buffer.index = static_cast<int>(i);
    } else {
      const int out = d.make(t.name, t.dtype, t.shape, order_row_major(t.shape.size()));
      d.buffer_of(out).kind = PlaceKind::output;
      d.buffer_of(out).index = static_cast<int>(i);
      d.step(t.name + "/output", {}, StageParams(CopyParams{"output"}), {v}, {out});
      v = out;
    }
    TensorDesc plain = d.desc(v);
    plain.layout = row_major(plain.shape);
    d.outputs.push_back(d.view(v, plain));
  }
}

Result<Draft> lower(const Graph& graph, const std::vector<Group>& groups, const Device& device) {
  const std::vector<int> none(graph.tensors.size(), -1);
  Lowering l{graph, {}, none, none, device, Float8Products(graph, device)};
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphTensor& t = graph.tensor(graph.inputs[i]);
    const int v = l.draft.make(t.name, t.dtype, t.shape, order_row_major(t.shape.size()));
    DraftBuffer& buffer = l.draft.buffer_of(v);
    buffer.kind = PlaceKind::input, buffer.index = static_cast<int>(i), buffer.fixed = true;
    // An input whose value was bound has become a constant; its place stays so that the caller's list keeps its order.
    if (!t.constant) l.set(graph.inputs[i], v);
    l.draft.inputs.push_back(v);
  }
  for (const Group& group : groups) {
    if (group.anchor < 0 && group.ops.size() == 1 && l.float8.drops(group.ops[0])) continue;
    SPARKLE_CHECK(lower_group(l, group));
  }
  lower_outputs(l);
  return std::move(l.draft);
}

}  // namespace sparkle
