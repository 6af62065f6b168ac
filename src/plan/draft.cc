#include "plan/draft.h"

#include <cstring>

#include "families/copy/copy.h"

namespace sparkle {

Dims order_row_major(int rank) { return row_major(Dims::filled(rank, 1)).order; }
Dims order_channels_last(int rank) { return channels_last(Dims::filled(rank, 1)).order; }

int Draft::make(const std::string& name, DType dtype, const Dims& shape, const Dims& order) {
  DraftBuffer buffer;
  buffer.elements = shape.product();
  buffer.dtype = dtype;
  buffers.push_back(buffer);
  values.push_back({name, static_cast<int>(buffers.size()) - 1, {dtype, shape, dense(shape, order)}});
  return static_cast<int>(values.size()) - 1;
}

int Draft::view(int id, const TensorDesc& desc) {
  if (desc.shape == value(id).desc.shape && desc.layout == value(id).desc.layout) return id;
  values.push_back({value(id).name, value(id).buffer, desc});
  return static_cast<int>(values.size()) - 1;
}

int Draft::constant(const std::string& name, const HostTensor& tensor) {
  DraftBuffer buffer{PlaceKind::constant, static_cast<int>(constants.size()), tensor.elements(), tensor.dtype, {}, true};
  buffers.push_back(buffer);
  constants.push_back({name, tensor});
  values.push_back({name, static_cast<int>(buffers.size()) - 1, dense_desc(tensor.dtype, tensor.shape)});
  return static_cast<int>(values.size()) - 1;
}

const HostTensor* Draft::constant_of(int id) {
  const DraftBuffer& buffer = buffer_of(id);
  return buffer.kind == PlaceKind::constant ? &constants[static_cast<size_t>(buffer.index)].value : nullptr;
}

namespace {

// Elements of a view in the row-major order of `order`ed axes: how a constant is rearranged at planning.
HostTensor rearranged(const HostTensor& source, const TensorDesc& desc, const Dims& order) {
  Dims shape;
  for (int64_t axis : order) shape.push_back(desc.shape[static_cast<int>(axis)]);
  HostTensor result = HostTensor::zeros(source.dtype, shape);
  const auto size = static_cast<size_t>(size_of(source.dtype));
  Dims at = Dims::filled(order.size(), 0);
  for (int64_t i = 0, n = shape.product(); i < n; ++i) {
    int64_t from = desc.layout.offset;
    for (int a = 0; a < order.size(); ++a) from += at[a] * desc.layout.strides[static_cast<int>(order[a])];
    std::memcpy(result.bytes.get() + static_cast<size_t>(i) * size, source.bytes.get() + static_cast<size_t>(from) * size,
                size);
    for (int a = order.size() - 1; a >= 0 && ++at[a] == shape[a]; --a) at[a] = 0;
  }
  return result;
}

}  // namespace

int Draft::in_order(int id, const Dims& order, const std::string& why) {
  const TensorDesc desc = value(id).desc;
  Layout wanted = dense(desc.shape, order);
  wanted.offset = desc.layout.offset;
  bool same = true;
  for (int i = 0; i < desc.shape.size(); ++i) same &= desc.shape[i] <= 1 || desc.layout.strides[i] == wanted.strides[i];
  if (same) {
    TensorDesc renamed = desc;  // the same places under the wanted order: strides of size-1 axes are free
    renamed.layout = wanted;
    return view(id, renamed);
  }
  std::string layout_key;
  for (int64_t axis : order) layout_key += std::to_string(axis) + ",";
  const auto key = std::make_pair(id, layout_key);
  if (const auto found = relaid.find(key); found != relaid.end()) return found->second;
  int result;
  const std::string name = value(id).name + "/" + why;
  if (const HostTensor* tensor = constant_of(id)) {
    result = constant(name, rearranged(*tensor, desc, order));
    value(result).desc = {desc.dtype, desc.shape, dense(desc.shape, order)};
    buffer_of(result).fit = buffer_of(id).fit;
  } else {
    result = make(name, desc.dtype, desc.shape, order);
    step(name, {}, StageParams(CopyParams{why}), {id}, {result});
  }
  relaid[key] = result;
  return result;
}

int Draft::channels_innermost(int id) {
  TensorDesc desc = value(id).desc;
  const int rank = desc.shape.size();
  if (rank < 2) return id;
  bool fits = true;
  for (int i = 0; i < rank; ++i) {
    if (desc.shape[i] <= 1) continue;
    fits &= i == 1 ? desc.layout.strides[i] == 1 : desc.layout.strides[i] > 0;
  }
  if (!fits) return in_order(id, order_channels_last(rank), "layout");
  // Axes of size 1 take the strides of a dense tensor so that kernels need no special case.
  const Layout last = channels_last(desc.shape);
  for (int i = 0; i < rank; ++i)
    if (desc.shape[i] <= 1) desc.layout.strides[i] = i == 1 ? 1 : last.strides[i];
  desc.layout.order = last.order;
  return view(id, desc);
}

void Draft::step(const std::string& name, std::vector<std::string> nodes, std::variant<Problem, StageParams> work,
                 std::vector<int> step_inputs, std::vector<int> step_outputs) {
  steps.push_back({name, std::move(nodes), std::move(work), std::move(step_inputs), std::move(step_outputs), -1});
}

AnchorCall Draft::call_of(const DraftStep& anchor, const Problem& problem) const {
  AnchorCall call{problem, {}, desc(anchor.outputs[0])};
  for (int v : anchor.inputs) call.inputs.push_back(desc(v));
  if (call.inputs.size() > 1) call.fit = buffers[static_cast<size_t>(values[static_cast<size_t>(anchor.inputs[1])].buffer)].fit;
  return call;
}

}  // namespace sparkle
