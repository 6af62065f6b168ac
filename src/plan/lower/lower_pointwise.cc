// Programs of element-wise operators, and the operators that are such programs (Cast, BatchNormalization on its own).
#include <cmath>

#include "families/pointwise/pointwise.h"
#include "families/type_set.h"
#include "plan/lower/lower.h"
#include "plan/lower/view.h"

namespace sparkle {
namespace {

// Small tensors are read by the strided path in no time; larger ones are worth a copy into the common layout.
constexpr int64_t kWorthACopy = 4096;

// The axis order of the largest operand that has the result's shape; row-major where there is none.
Dims order_of_operands(Lowering& l, const std::vector<int>& operands, const Dims& shape) {
  Dims order = order_row_major(shape.size());
  bool found = false;
  for (int v : operands) {
    const TensorDesc& desc = l.draft.desc(v);
    if (!(desc.shape == shape) || desc.layout.order.size() != shape.size()) continue;
    if (found && l.draft.constant_of(v)) continue;
    const bool was_constant = l.draft.constant_of(v) != nullptr;
    if (!found || !was_constant) {
      order = desc.layout.order;
      if (!was_constant) return order;
      found = true;
    }
  }
  return order;
}

}  // namespace

int pointwise_step(Lowering& l, const std::string& name, std::vector<std::string> nodes, const PointwiseParams& program,
                   const std::vector<int>& operands, DType dtype, const Dims& shape) {
  Draft& d = l.draft;
  const Dims order = order_of_operands(l, operands, shape);
  std::vector<int> inputs;
  for (int v : operands) {
    const TensorDesc desc = d.desc(v);
    if (desc.shape == shape && desc.elements() > kWorthACopy && !(desc.layout.order == order))
      v = d.in_order(v, order, "layout");
    inputs.push_back(d.view(v, broadcast_view(d.desc(v), shape)));
  }
  const int out = d.make(name, dtype, shape, order);
  d.step(name, std::move(nodes), StageParams(program), inputs, {out});
  return out;
}

Status lower_pointwise(Lowering& l, const Group& group) {
  std::vector<int> operands;
  bool own = true;
  for (TensorId id : group.operands) own = l.has_own(id) && own, operands.push_back(l.either(id));
  const GraphTensor& result = l.result(group);
  // A result of 16 bits stays f32 between steps that are.
  own = own || l.is_output(group.output) || l.in_16_bits(Family::pointwise, group.operands, result.dtype);
  const DType type = own ? result.dtype : computed_in(result.dtype);
  const int out = pointwise_step(l, result.name, l.nodes(group), group.program, operands, type, result.shape);
  l.draft.steps.back().name = l.op(group).name;
  l.set(group.output, out);
  return ok();
}

}  // namespace sparkle
