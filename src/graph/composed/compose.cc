#include "graph/composed/compose.h"

#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

bool by_value(const DftOp&, size_t i) { return i > 0; }
bool by_value(const StftOp&, size_t i) { return i == 1 || i == 3; }
bool by_value(const WindowOp&, size_t) { return true; }
bool by_value(const MelWeightsOp&, size_t) { return true; }
bool by_value(const CumProdOp&, size_t i) { return i == 1; }
bool by_value(const MaxUnpoolOp&, size_t i) { return i == 2; }
bool by_value(const ColumnsToImageOp&, size_t i) { return i > 0; }
bool by_value(const AffineGridOp&, size_t i) { return i == 1; }
template <class Form>
bool by_value(const Form&, size_t) {
  return false;
}

std::optional<DType> type_of(const WindowOp& op) { return op.dtype; }
std::optional<DType> type_of(const MelWeightsOp& op) { return op.dtype; }
std::optional<DType> type_of(const EyeLikeOp& op) { return op.dtype; }
template <class Form>
std::optional<DType> type_of(const Form&) {
  return std::nullopt;
}

}  // namespace

bool decides_by_value(const ComposedOp& op, size_t i) {
  return std::visit([&](const auto& form) { return by_value(form, i); }, op.form);
}
std::optional<DType> result_type(const ComposedOp& op) {
  return std::visit([](const auto& form) { return type_of(form); }, op.form);
}

Error Composition::fail(Reason reason, const std::string& what) const {
  return {reason, "Node '" + op_.name + "' (" + op_.type + "): " + what + "."};
}
Error Composition::wrong_shape(size_t i, const std::string& wanted) const {
  const GraphTensor& t = graph_.tensor(op_.inputs[i]);
  return fail(Reason::bad_shape, "'" + t.name + "' of shape " + t.shape.to_string() + " should have " + wanted);
}
Status Composition::expect_rank(size_t i, int rank) const {
  return shape(i).size() == rank ? ok() : Status(wrong_shape(i, "rank " + std::to_string(rank)));
}
Status Composition::expect_shape(size_t i, const Dims& wanted) const {
  return shape(i) == wanted ? ok() : Status(wrong_shape(i, "the shape " + wanted.to_string()));
}

Result<int> Composition::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    return fail(Reason::bad_shape,
                "axis " + std::to_string(axis) + " does not exist in a tensor of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<double>> Composition::numbers(size_t i, const std::string& what) const {
  constexpr int64_t kMost = 4096;
  const GraphTensor& t = graph_.tensor(op_.inputs[i]);
  if (!t.constant)
    return fail(Reason::operator_not_served,
                "its " + what + " '" + t.name + "' is computed at run time, but only a constant is supported");
  if (t.constant->elements() > kMost || t.shape.size() > 1 || t.constant->elements() == 0)
    return fail(Reason::bad_model,
                "its " + what + " '" + t.name + "' of shape " + t.shape.to_string() + " should be one number or a short list");
  return as_doubles(*t.constant);
}
Result<std::vector<int64_t>> Composition::integers(size_t i, const std::string& what) const {
  SPARKLE_TRY(values, numbers(i, what));
  if (is_float(type(i))) return fail(Reason::bad_model, "its " + what + " should be of integers");
  return as_integers(*graph_.tensor(op_.inputs[i]).constant);
}
Result<int64_t> Composition::integer(size_t i, const std::string& what) const {
  SPARKLE_TRY(values, integers(i, what));
  if (values.size() != 1) return fail(Reason::bad_model, "its " + what + " should be one number");
  return values[0];
}

std::string Composition::next_name() const { return op_.name + "/" + std::to_string(steps_.size()); }

TensorId Composition::add(OpParams params, std::vector<TensorId> inputs) {
  GraphTensor tensor;
  tensor.name = next_name();
  std::string name = tensor.name;
  const TensorId y = graph_.add(std::move(tensor));
  steps_.push_back({std::move(name), op_.type, std::move(params), std::move(inputs), {y}});
  return y;
}
TensorId Composition::constant(HostTensor value) { return graph_.add_constant(next_name() + ":constant", std::move(value)); }
TensorId Composition::constant(DType type, const Dims& shape, const std::vector<double>& values) {
  return constant(from_doubles(type, shape, values));
}
TensorId Composition::zeros(DType type, const Dims& shape) {
  return add(ConstantOfShapeOp{type, 0}, {places({shape.size()}, {shape.begin(), shape.end()})});
}
TensorId Composition::places(const Dims& shape, const std::vector<int64_t>& values) {
  return constant(from_integers(DType::i64, shape, values));
}
TensorId Composition::pointwise(PointwiseOp op, std::vector<TensorId> inputs, double a, double b) {
  return add(PointwiseNode{op, a, b}, std::move(inputs));
}
TensorId Composition::reshape(TensorId x, const Dims& shape) {
  return add(ReshapeOp{ReshapeOp::Form::reshape, shape, true, true}, {x});
}
TensorId Composition::transpose(TensorId x, const Dims& permutation) { return add(TransposeOp{permutation}, {x}); }
TensorId Composition::slice(TensorId x, int axis, int64_t begin, int64_t end) {
  return add(SliceOp{{begin}, {end}, {axis}, {1}}, {x});
}
TensorId Composition::concat(std::vector<TensorId> parts, int axis) {
  return parts.size() == 1 ? parts[0] : add(ConcatOp{axis}, std::move(parts));
}
TensorId Composition::product(TensorId a, TensorId b) { return add(MatMulOp{}, {a, b}); }
TensorId Composition::cast(TensorId x, DType type) { return add(CastOp{type}, {x}); }

void Composition::give(size_t k, TensorId x) {
  if (wanted(k)) steps_.push_back({next_name(), op_.type, PointwiseNode{PointwiseOp::identity}, {x}, {op_.outputs[k]}});
}

Result<std::vector<Op>> expand_composed(Graph& graph, const Op& op) {
  Composition composition(graph, op);
  SPARKLE_CHECK(std::visit([&](const auto& form) { return compose(composition, form); }, std::get<ComposedOp>(op.params).form));
  return composition.take();
}

}  // namespace sparkle
