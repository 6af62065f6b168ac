// The context of shape inference: access to inputs, error sentences, checks of sizes.
#include "graph/infer/infer.h"

#include "graph/evaluate/values.h"

namespace sparkle {
namespace {
constexpr WideInt kLargestBytes = WideInt{1} << 47;
constexpr int64_t kLargestList = 4096;  // entries of a constant that holds attributes
}  // namespace

std::optional<int64_t> checked_bytes(DType type, const Dims& shape) {
  WideInt bytes = size_of(type);
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    empty |= size == 0;
    bytes *= std::max<int64_t>(size, 1);
    if (bytes > kLargestBytes) return std::nullopt;
  }
  return empty ? 0 : static_cast<int64_t>(bytes);
}

std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  const int rank = std::max(a.size(), b.size());
  Dims shape = Dims::filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.size()), ib = i - (rank - b.size());
    const int64_t x = ia < 0 ? 1 : a[ia], y = ib < 0 ? 1 : b[ib];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[i] = x == 1 ? y : x;
  }
  return shape;
}

Error InferContext::fail(Reason reason, const std::string& what) const {
  return {reason, "Node '" + op_.name + "' (" + op_.type + "): " + what + "."};
}

std::string InferContext::describe(int i) const {
  if (!given(i)) return "the absent input " + std::to_string(i);
  return "'" + in(i).name + "' of shape " + shape(i).to_string();
}

Status InferContext::expect(int least, int most) const {
  for (int i = 0; i < least; ++i)
    if (!given(i)) return fail(Reason::bad_model, "input " + std::to_string(i) + " is missing");
  if (inputs() > most)
    return fail(Reason::bad_model,
                "it has " + std::to_string(inputs()) + " inputs where at most " + std::to_string(most) + " belong");
  return ok();
}

Status InferContext::expect_rank(int i, int rank) const {
  if (shape(i).size() == rank) return ok();
  return fail(Reason::bad_shape, describe(i) + " should have rank " + std::to_string(rank));
}

Result<const HostTensor*> InferContext::short_list(int i, const char* what) const {
  const HostTensor* value = constant(i);
  if (!value)
    return fail(Reason::operator_not_served,
                "its " + std::string(what) + " '" + in(i).name + "' is computed at run time, but only a constant is supported");
  if (value->elements() > kLargestList || value->shape.size() > 1)
    return fail(Reason::bad_model, "its " + std::string(what) + " " + describe(i) + " should be a short list");
  return value;
}

Result<std::vector<int64_t>> InferContext::integers(int i, const char* what) const {
  SPARKLE_TRY(value, short_list(i, what));
  if (is_float(value->dtype) || is_narrow(value->dtype))
    return fail(Reason::bad_model, "its " + std::string(what) + " '" + in(i).name + "' should hold integers");
  return as_integers(*value);
}

Result<std::vector<double>> InferContext::numbers(int i, const char* what) const {
  SPARKLE_TRY(value, short_list(i, what));
  return as_doubles(*value);
}

Result<Dims> InferContext::dims(int i, const char* what) const {
  SPARKLE_TRY(list, integers(i, what));
  if (list.size() > kMaxRank)
    return fail(Reason::operator_not_served, "its " + std::string(what) + " '" + in(i).name + "' has " +
                                                 std::to_string(list.size()) + " entries, more than " +
                                                 std::to_string(kMaxRank));
  return Dims(std::span<const int64_t>(list));
}

Result<int> InferContext::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    return fail(Reason::bad_shape,
                "axis " + std::to_string(axis) + " does not exist in a tensor of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void InferContext::keep_inputs(int count) {
  if (inputs() > count) op_.inputs.resize(static_cast<size_t>(count));
}

Status InferContext::set(int i, DType type, const Dims& shape) {
  if (i >= static_cast<int>(op_.outputs.size()) || op_.outputs[static_cast<size_t>(i)] == kAbsent) return ok();
  GraphTensor& out = graph_.tensor(op_.outputs[static_cast<size_t>(i)]);
  if (!checked_bytes(type, shape))
    return fail(Reason::size_overflow,
                "its output '" + out.name + "' would have the shape " + shape.to_string() + ", more than can be addressed");
  out.dtype = type;
  out.shape = shape;
  out.known = out.rank_known = true;
  return ok();
}

Result<int64_t> InferContext::size(WideInt value, const std::string& what) const {
  if (value < 0) return fail(Reason::bad_shape, what + " would be negative");
  if (value > kLargestBytes) return fail(Reason::size_overflow, what + " would exceed what can be addressed");
  return static_cast<int64_t>(value);
}

Status infer(InferContext& context) {
  return std::visit([&](auto& params) { return infer_rule(context, params); }, context.op().params);
}

Status infer_rule(InferContext& c, UnknownOp& op) {
  return c.fail(Reason::operator_not_served, op.why.empty() ? "this operator is not supported yet" : op.why);
}

Status infer_rule(InferContext& c, HostOp&) {
  return c.fail(Reason::operator_not_served,
                "only the data tells what comes behind it: a session runs such a model in parts, which is no single plan");
}

Status infer_rule(InferContext& c, ComposedOp&) {
  return c.fail(Reason::operator_not_served,
                "it is written with other operators when shapes are known, and is none of its own");
}

}  // namespace sparkle
