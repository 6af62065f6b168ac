#include "run/parts/sequences.h"

#include <algorithm>
#include <cstring>

#include "graph/evaluate/values.h"
#include "graph/parts/host_values.h"

namespace sparkle {
namespace {

std::string named(const Op& op) { return "Node '" + op.name + "' (" + op.type + "): "; }
Error wrong(const Op& op, const std::string& what) { return {Reason::bad_input, named(op) + what + "."}; }

// Bytes of one step along the axes behind `axis`, and steps before it.
struct Runs {
  size_t outer = 1, inner = 1;
};
Runs runs(const HostTensor& x, int axis) {
  Runs r;
  r.inner = static_cast<size_t>(size_of(x.dtype));
  for (int a = 0; a < axis; ++a) r.outer *= static_cast<size_t>(x.shape[a]);
  for (int a = axis + 1; a < x.shape.size(); ++a) r.inner *= static_cast<size_t>(x.shape[a]);
  return r;
}

Result<int64_t> position(const Op& op, const PartValue& value, int64_t most) {
  if (value.sequence || value.items[0].elements() != 1 || is_float(value.items[0].dtype))
    return wrong(op, "its position should be one integer");
  int64_t at = as_integers(value.items[0])[0];
  const int64_t asked = at;
  if (at < 0) at += most;
  if (at < 0 || at >= most)
    return wrong(
        op, "position " + std::to_string(asked) + " does not exist in a sequence with " + std::to_string(most) + " places");
  return at;
}

Result<PartValue> split(const Op& op, const std::vector<PartValue>& inputs) {
  const auto& p = std::get<HostOp>(op.params);
  const HostTensor& x = inputs[0].items[0];
  if (inputs[0].sequence) return wrong(op, "it splits a tensor, not a sequence");
  SPARKLE_TRY(axis, checked_axis(*p.axis, x.shape.size(), named(op)));
  const int64_t size = x.shape[axis];
  std::vector<int64_t> sizes;
  if (inputs.size() > 1 && inputs[1].given) {
    const HostTensor& list = inputs[1].items[0];
    if (inputs[1].sequence || is_float(list.dtype)) return wrong(op, "its sizes should be integers");
    const std::vector<int64_t> values = as_integers(list);
    int64_t sum = 0;
    for (int64_t v : values) {
      if (v < 0 || v > size || (list.shape.empty() && v == 0))
        return wrong(op, "a part of size " + std::to_string(v) + " is none");
      sum += v;
    }
    if (list.shape.empty()) {
      for (int64_t at = 0; at < size; at += values[0]) sizes.push_back(std::min(values[0], size - at));
    } else if (sum == size) {
      sizes = values;
    } else {
      return wrong(op, "its sizes add up to " + std::to_string(sum) + ", the axis has " + std::to_string(size));
    }
  } else {
    sizes.assign(static_cast<size_t>(size), 1);
  }
  std::vector<HostTensor> parts;
  int64_t at = 0;
  for (int64_t count : sizes) {
    SPARKLE_TRY(part, sliced(x, axis, at, count, !p.keep_axis, named(op)));
    parts.push_back(std::move(part));
    at += count;
  }
  return PartValue::of(std::move(parts), x.dtype);
}

}  // namespace

Result<int> checked_axis(int64_t axis, int rank, const std::string& what) {
  if (axis < -rank || axis >= rank)
    return Error{Reason::bad_shape,
                 what + "axis " + std::to_string(axis) + " does not exist in a tensor of rank " + std::to_string(rank) + "."};
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<HostTensor> sliced(const HostTensor& x, int axis, int64_t first, int64_t count, bool drop, const std::string& what) {
  Dims shape;
  for (int a = 0; a < x.shape.size(); ++a)
    if (a != axis) shape.push_back(x.shape[a]);
    else if (!drop) shape.push_back(count);
  SPARKLE_TRY(y, new_tensor(x.dtype, shape, what + "a slice"));
  const Runs r = runs(x, axis);
  const size_t row = r.inner * static_cast<size_t>(x.shape[axis]), bytes = r.inner * static_cast<size_t>(count);
  for (size_t o = 0; bytes > 0 && o < r.outer; ++o)
    std::memcpy(y.bytes.get() + o * bytes, x.bytes.get() + o * row + static_cast<size_t>(first) * r.inner, bytes);
  return y;
}

Result<HostTensor> joined(const std::vector<HostTensor>& parts, int64_t asked, bool new_axis, const std::string& what) {
  if (parts.empty()) return Error{Reason::bad_input, what + "nothing is there to be joined."};
  const int rank = parts[0].shape.size() + (new_axis ? 1 : 0);
  if (rank > kMaxRank)
    return Error{Reason::operator_not_served, what + "the result would have more than " + std::to_string(kMaxRank) + " axes."};
  SPARKLE_TRY(axis, checked_axis(asked, rank, what));
  const auto with_axis = [&](const HostTensor& x) {
    if (!new_axis) return x;
    HostTensor y = x;
    y.shape = {};
    for (int a = 0, from = 0; a < rank; ++a) y.shape.push_back(a == axis ? 1 : x.shape[from++]);
    return y;
  };
  Dims shape = with_axis(parts[0]).shape;
  int64_t size = 0;
  for (const HostTensor& part : parts) {
    const HostTensor x = with_axis(part);
    bool fits = x.dtype == parts[0].dtype && x.shape.size() == rank;
    for (int a = 0; fits && a < rank; ++a) fits = a == axis || x.shape[a] == shape[a];
    if (!fits)
      return Error{Reason::bad_shape, what + "a tensor of shape " + part.shape.to_string() +
                                          " cannot be joined to one of shape " + parts[0].shape.to_string() + "."};
    size += x.shape[axis];
  }
  shape[axis] = size;
  SPARKLE_TRY(y, new_tensor(parts[0].dtype, shape, what + "the result"));
  const Runs r = runs(y, axis);
  const size_t row = r.inner * static_cast<size_t>(size);
  size_t at = 0;
  for (const HostTensor& part : parts) {
    const size_t bytes = r.inner * static_cast<size_t>(with_axis(part).shape[axis]);
    for (size_t o = 0; bytes > 0 && o < r.outer; ++o)
      std::memcpy(y.bytes.get() + o * row + at, part.bytes.get() + o * bytes, bytes);
    at += bytes;
  }
  return y;
}

Result<PartValue> sequence_value(const Op& op, const std::vector<PartValue>& inputs) {
  const auto& p = std::get<HostOp>(op.params);
  if (p.kind == HostKind::sequence_empty) return PartValue::of({}, p.dtype);
  if (inputs.empty() || !inputs[0].given) return wrong(op, "its first input is missing");
  if (p.kind == HostKind::split_to_sequence) return split(op, inputs);
  if (p.kind == HostKind::sequence_construct) {
    std::vector<HostTensor> items;
    for (const PartValue& value : inputs) {
      if (!value.given || value.sequence) return wrong(op, "each of its inputs should be a tensor");
      if (value.items[0].dtype != inputs[0].items[0].dtype) return wrong(op, "its tensors should have one type");
      items.push_back(value.items[0]);
    }
    return PartValue::of(std::move(items), inputs[0].items[0].dtype);
  }
  if (!inputs[0].sequence) return wrong(op, "its first input should be a sequence");
  const std::vector<HostTensor>& items = inputs[0].items;
  const auto length = static_cast<int64_t>(items.size());
  const auto given = [&](size_t i) { return inputs.size() > i && inputs[i].given; };
  switch (p.kind) {
    case HostKind::sequence_length: return PartValue::of(HostTensor::of(DType::i64, {}, std::vector<int64_t>{length}));
    case HostKind::sequence_at: {
      if (!given(1)) return wrong(op, "its position is missing");
      SPARKLE_TRY(at, position(op, inputs[1], length));
      return PartValue::of(items[static_cast<size_t>(at)]);
    }
    case HostKind::sequence_insert: {
      if (!given(1) || inputs[1].sequence) return wrong(op, "it inserts a tensor");
      if (inputs[1].items[0].dtype != inputs[0].dtype)
        return wrong(op, "a tensor of " + std::string(name_of(inputs[1].items[0].dtype)) +
                             " does not belong in a sequence of " + std::string(name_of(inputs[0].dtype)));
      int64_t at = length;
      if (given(2)) {
        SPARKLE_TRY(place, position(op, inputs[2], length + 1));
        // Negative positions count from the last item, not from behind it.
        at = as_integers(inputs[2].items[0])[0] < 0 ? place - 1 : place;
        if (at < 0) return wrong(op, "its position lies before the sequence");
      }
      PartValue result = inputs[0];
      result.items.insert(result.items.begin() + at, inputs[1].items[0]);
      return result;
    }
    case HostKind::sequence_erase: {
      int64_t at = length - 1;
      if (given(1)) {
        SPARKLE_TRY(place, position(op, inputs[1], length));
        at = place;
      }
      if (at < 0) return wrong(op, "the sequence is empty");
      PartValue result = inputs[0];
      result.items.erase(result.items.begin() + at);
      return result;
    }
    case HostKind::concat_from_sequence: {
      SPARKLE_TRY(y, joined(items, *p.axis, !p.keep_axis, named(op)));
      return PartValue::of(std::move(y));
    }
    default: return wrong(op, "it is no operator of sequences");
  }
}

}  // namespace sparkle
