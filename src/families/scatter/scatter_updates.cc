#include "families/scatter/scatter_updates.h"

#include <algorithm>
#include <cstdlib>

#include "families/scatter/scatter.h"
#include "families/values/indices.h"

namespace sparkle {
namespace {

using Axis = ScatterUpdates::Axis;

// Row-major strides of the indices.
Dims order_of(const TensorDesc& indices) {
  Dims order = Dims::filled(indices.shape.size(), 1);
  for (int i = order.size() - 1; i > 0; --i) order[i - 1] = order[i] * std::max<int64_t>(1, indices.shape[i]);
  return order;
}

}  // namespace

ScatterUpdates scatter_updates(const Stage& stage) {
  const auto& p = get<ScatterParams>(stage.params);
  const TensorDesc &indices = stage.inputs[1], &updates = stage.inputs[2], &y = stage.outputs[0];
  const Dims order = order_of(indices);
  ScatterUpdates u;
  if (p.form == ScatterForm::elements) {
    const Dims slots = row_major(y.shape).strides;
    for (int i = 0; i < updates.shape.size(); ++i) {
      const bool along = i == p.axis;
      (along ? u.serial : u.parallel)
          .push_back({indices.shape[i], updates.layout.strides[i], along ? 0 : y.layout.strides[i], indices.layout.strides[i],
                      order[i], along ? 0 : slots[i]});
    }
    u.picked = {{y.shape[p.axis], y.layout.strides[p.axis], slots[p.axis]}};
  } else {
    const int outer = indices.shape.size() - 1;
    const auto tuple = static_cast<int>(indices.shape[outer]);
    for (int i = 0; i < outer; ++i)
      u.serial.push_back({indices.shape[i], updates.layout.strides[i], 0, indices.layout.strides[i], order[i]});
    for (int i = outer; i < updates.shape.size(); ++i)
      u.parallel.push_back({updates.shape[i], updates.layout.strides[i], y.layout.strides[tuple + i - outer]});
    int64_t slot = 1;
    for (int i = tuple - 1; i >= 0; --i) {
      u.picked.insert(u.picked.begin(), {y.shape[i], y.layout.strides[i], slot});
      slot *= y.shape[i];
    }
    u.tuple_stride = indices.layout.strides[outer];
  }
  for (auto* axes : {&u.serial, &u.parallel}) std::erase_if(*axes, [](const Axis& a) { return a.size == 1; });
  // Neighbouring threads write neighbouring elements.
  std::stable_sort(u.parallel.begin(), u.parallel.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.y) > std::abs(b.y); });
  return u;
}

ScatterUpdates without_slices(const ScatterUpdates& updates, const Stage& stage) {
  ScatterUpdates u = updates;
  if (get<ScatterParams>(stage.params).form == ScatterForm::tuples) u.parallel.clear();
  return u;
}

// In the words that the CPU has for the same index.
Error update_outside(const Stage& stage, int64_t number, int64_t value) {
  const auto& p = get<ScatterParams>(stage.params);
  const TensorDesc& indices = stage.inputs[1];
  const Dims order = order_of(indices);
  Dims at;
  for (int i = 0; i < indices.shape.size(); ++i) at.push_back(number / order[i] % std::max<int64_t>(1, indices.shape[i]));
  const int axis = p.form == ScatterForm::tuples ? static_cast<int>(at[at.size() - 1]) : p.axis;
  return index_outside(value, at, axis, stage.outputs[0].shape[axis]);
}

}  // namespace sparkle
