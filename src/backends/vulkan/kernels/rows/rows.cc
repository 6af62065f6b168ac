#include "backends/vulkan/kernels/rows/rows.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace sparkle::vulkan {
namespace {

struct Axis {
  int64_t size = 1;
  std::array<int64_t, 4> strides{};
};

// Outermost first in x's memory, neighbours merged where all operands pass from one to the next without a jump.
void merge(std::vector<Axis>& axes) {
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    const auto key = [](const Axis& axis) { return std::pair(std::abs(axis.strides[0]), std::abs(axis.strides[3])); };
    return key(a) > key(b);
  });
  for (size_t i = axes.size(); i-- > 1;) {
    Axis &outer = axes[i - 1], &inner = axes[i];
    bool whole = true;
    for (size_t k = 0; k < 4; ++k) whole = whole && outer.strides[k] == inner.strides[k] * inner.size;
    if (!whole) continue;
    inner.size *= outer.size;
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
}

}  // namespace

std::array<uint32_t, 3> divisor_of(uint32_t by) {
  const auto shift = static_cast<uint32_t>(std::bit_width(by - 1));
  return {by, static_cast<uint32_t>((((uint64_t{1} << shift) - by) << 32) / by + 1), shift};
}

Result<RowsRecord> rows_of(const std::array<const TensorDesc*, 4>& operands, uint32_t within, bool parts) {
  const TensorDesc& x = *operands[0];
  std::vector<Axis> nests[2];
  int64_t count[2] = {1, 1};
  for (int i = 0; i < x.shape.size(); ++i) {
    const size_t nest = within >> i & 1;
    count[nest] *= x.shape[i];
    if (x.shape[i] == 1) continue;
    Axis axis{x.shape[i], {}};
    for (size_t k = 0; k < 4; ++k) axis.strides[k] = operands[k] ? operands[k]->layout.strides[i] : 0;
    nests[nest].push_back(axis);
  }
  for (const TensorDesc* d : operands)
    if (d && (extent(d->shape, d->layout) > INT32_MAX || d->elements() > INT32_MAX))
      return Error{Reason::layout_not_served,
                   "the Vulkan kernels count elements in 31 bits, and an operand spans more; split the batch"};
  RowsRecord r;
  r.rows = static_cast<uint32_t>(count[0]);
  r.elements = static_cast<uint32_t>(count[1]);
  for (size_t nest = 0; nest < 2; ++nest) {
    std::vector<Axis>& axes = nests[nest];
    merge(axes);
    r.axes[nest] = static_cast<uint32_t>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      const Axis& axis = axes[axes.size() - 1 - i];
      const auto divisor = divisor_of(static_cast<uint32_t>(std::max<int64_t>(1, axis.size)));
      std::copy(divisor.begin(), divisor.end(), r.divide[nest][i]);
      for (size_t k = 0; k < 4; ++k) r.strides[nest][i][k] = static_cast<int32_t>(axis.strides[k]);
    }
  }
  const RowGroups groups = row_groups(x, within, parts);
  r.lanes_first = groups.lanes_first;
  r.lanes = static_cast<uint32_t>(groups.lanes);
  r.depth = static_cast<uint32_t>(groups.depth);
  r.parts = static_cast<uint32_t>(groups.parts);
  r.part_length = static_cast<uint32_t>(groups.part_length);
  return r;
}

std::array<uint32_t, 3> groups_of(const RowsRecord& r) {
  constexpr uint32_t kMost = 32768;
  const uint32_t groups = (r.rows + r.lanes - 1) / r.lanes;
  return {std::min(groups, kMost), (groups + kMost - 1) / kMost, r.parts};
}

Result<Dispatch> rows_dispatch(const Workshop& shop, std::string_view shader, std::span<const uint32_t> constants,
                               const std::array<int, 4>& operands, const RowsRecord& record, VkDeviceAddress at) {
  PipelineRequest request;
  request.shader = shader;
  request.constants = {kRowThreads, 1, 1};
  request.constants.insert(request.constants.end(), constants.begin(), constants.end());
  SPARKLE_TRY(pipeline, shop.pipelines->get(request));
  Dispatch d;
  d.pipeline = pipeline;
  d.groups = groups_of(record);
  for (const int operand : operands) d.addresses.push_back({operand < 0 ? operands[0] : operand});
  d.addresses.push_back({record.parts > 1 ? kWorkspace : operands[0]});
  d.push(at);
  return d;
}

}  // namespace sparkle::vulkan
