// Folding of operators that move elements, whatever their type: by element size.
#include <cstring>

#include "graph/evaluate/evaluate.h"
#include "graph/evaluate/values.h"

namespace sparkle {
namespace {

template <class T>
void copy_strided(const T* x, T* y, const Dims& shape, const Dims& strides) {
  const int rank = shape.size();
  const int64_t inner = rank ? shape.back() : 1, step = rank ? strides.back() : 0;
  const int64_t rows = inner ? shape.product() / inner : 0;
  Dims at = Dims::filled(rank, 0);
  int64_t from = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < inner; ++i) *y++ = x[from + i * step];
    for (int axis = rank - 2; axis >= 0; --axis) {
      from += strides[axis];
      if (++at[axis] < shape[axis]) break;
      from -= shape[axis] * strides[axis];
      at[axis] = 0;
    }
  }
}

Dims strides_of(const Dims& shape) { return row_major(shape).strides; }

int64_t product(const Dims& shape, int first, int last) {
  int64_t p = 1;
  for (int i = first; i < last; ++i) p *= shape[i];
  return p;
}

Values one(HostTensor t) {
  Values values;
  values.push_back(std::move(t));
  return values;
}

}  // namespace

HostTensor strided(const HostTensor& x, const Dims& shape, const Dims& strides, int64_t offset) {
  HostTensor y = HostTensor::zeros(x.dtype, shape);
  if (shape.product() == 0) return y;
  switch (size_of(x.dtype)) {
    case 1: copy_strided(x.data<uint8_t>() + offset, y.data<uint8_t>(), shape, strides); break;
    case 2: copy_strided(x.data<uint16_t>() + offset, y.data<uint16_t>(), shape, strides); break;
    case 4: copy_strided(x.data<uint32_t>() + offset, y.data<uint32_t>(), shape, strides); break;
    default: copy_strided(x.data<uint64_t>() + offset, y.data<uint64_t>(), shape, strides); break;
  }
  return y;
}

Result<Values> evaluate_concat(const EvaluateContext& c, const ConcatOp& op) {
  const Dims& shape = c.outputs[0].second;
  HostTensor y = HostTensor::zeros(c.outputs[0].first, shape);
  const int axis = static_cast<int>(op.axis);
  const int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, shape.size()) * size_of(y.dtype);
  std::byte* to = y.bytes.get();
  for (int64_t o = 0; o < outer; ++o)
    for (const HostTensor* x : c.inputs) {
      const int64_t bytes = x->shape[axis] * inner;
      std::memcpy(to, x->bytes.get() + o * bytes, static_cast<size_t>(bytes));
      to += bytes;
    }
  return one(std::move(y));
}

Result<Values> evaluate_split(const EvaluateContext& c, const SplitOp& op) {
  Values values;
  const HostTensor& x = c.in(0);
  const Dims strides = strides_of(x.shape);
  int64_t offset = 0;
  for (const auto& [type, shape] : c.outputs) {
    values.push_back(strided(x, shape, strides, offset));
    offset += shape[static_cast<int>(op.axis)] * strides[static_cast<int>(op.axis)];
  }
  return values;
}

Result<Values> evaluate_slice(const EvaluateContext& c, const SliceOp& op) {
  const HostTensor& x = c.in(0);
  Dims strides = strides_of(x.shape);
  int64_t offset = 0;
  for (int i = 0; i < strides.size(); ++i) {
    offset += op.starts[i] * strides[i];
    strides[i] = c.outputs[0].second[i] > 1 ? strides[i] * op.steps[i] : 0;
  }
  return one(strided(x, c.outputs[0].second, strides, offset));
}

Result<Values> evaluate_transpose(const EvaluateContext& c, const TransposeOp& op) {
  const Dims from = strides_of(c.in(0).shape);
  Dims strides;
  for (int64_t p : op.permutation) strides.push_back(from[static_cast<int>(p)]);
  return one(strided(c.in(0), c.outputs[0].second, strides, 0));
}

Result<Values> evaluate_expand(const EvaluateContext& c) {
  const HostTensor& x = c.in(0);
  const Dims& shape = c.outputs[0].second;
  const Dims from = strides_of(x.shape);
  Dims strides = Dims::filled(shape.size(), 0);
  for (int i = 0; i < x.shape.size(); ++i)
    if (x.shape[i] != 1) strides[i + shape.size() - x.shape.size()] = from[i];
  return one(strided(x, shape, strides, 0));
}

Result<Values> evaluate_tile(const EvaluateContext& c) {
  const HostTensor& x = c.in(0);
  HostTensor y = HostTensor::zeros(x.dtype, c.outputs[0].second);
  const int64_t size = size_of(x.dtype), count = y.elements();
  const Dims to = strides_of(y.shape), from = strides_of(x.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t source = 0;
    for (int axis = 0; axis < to.size(); ++axis) source += i / to[axis] % y.shape[axis] % x.shape[axis] * from[axis];
    std::memcpy(y.bytes.get() + i * size, x.bytes.get() + source * size, static_cast<size_t>(size));
  }
  return one(std::move(y));
}

Result<Values> evaluate_pad(const EvaluateContext& c, const PadOp& op) {
  if (op.mode != PadMode::constant) return c.unsupported();
  const HostTensor& x = c.in(0);
  const Dims& shape = c.outputs[0].second;
  const HostTensor value = one_value(x.dtype, op.value);
  HostTensor y = strided(value, shape, Dims::filled(shape.size(), 0), 0);
  const int64_t size = size_of(x.dtype), count = x.elements();
  const Dims to = strides_of(shape), from = strides_of(x.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    bool inside = true;
    for (int axis = 0; axis < to.size(); ++axis) {
      const int64_t at = i / from[axis] % x.shape[axis] + op.begin[axis];
      inside = inside && at >= 0 && at < shape[axis];
      place += at * to[axis];
    }
    if (inside) std::memcpy(y.bytes.get() + place * size, x.bytes.get() + i * size, static_cast<size_t>(size));
  }
  return one(std::move(y));
}

Result<Values> evaluate_gather(const EvaluateContext& c, const GatherOp& op) {
  const HostTensor& x = c.in(0);
  const int axis = static_cast<int>(op.axis);
  const std::vector<int64_t> indices = as_integers(c.in(1));
  HostTensor y = HostTensor::zeros(x.dtype, c.outputs[0].second);
  const int64_t outer = product(x.shape, 0, axis), size = x.shape[axis];
  const int64_t bytes = product(x.shape, axis + 1, x.shape.size()) * size_of(x.dtype);
  std::byte* to = y.bytes.get();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t index : indices) {
      if (index < -size || index >= size)
        return c.fail(Reason::bad_model, "index " + std::to_string(index) + " lies outside of axis " + std::to_string(axis) +
                                             " of size " + std::to_string(size));
      std::memcpy(to, x.bytes.get() + (o * size + (index < 0 ? index + size : index)) * bytes, static_cast<size_t>(bytes));
      to += bytes;
    }
  return one(std::move(y));
}

}  // namespace sparkle
