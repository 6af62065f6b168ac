#include "backends/cuda/stages/rows/rows.h"

#include <algorithm>

#include "backends/cuda/stages/moves/moves.h"
#include "families/loops/row_groups.h"

namespace sparkle::cuda {

static_assert(kRowsThreads == kRowThreads);

namespace {

const TensorDesc& operand_of(const Stage& stage, int number) {
  const auto i = static_cast<size_t>(number);
  return i < stage.inputs.size() ? stage.inputs[i] : stage.outputs[i - stage.inputs.size()];
}

}  // namespace

Result<RowsRecord> rows_of(const Stage& stage, const std::array<int, 4>& operands, uint32_t within, bool parts) {
  const TensorDesc& x = stage.inputs[0];
  for (const auto* list : {&stage.inputs, &stage.outputs})
    for (const TensorDesc& d : *list)
      if (extent(d.shape, d.layout) > INT32_MAX || d.elements() > INT32_MAX) return too_far("row");
  RowsRecord r;
  const RowGroups g = row_groups(x, within, parts);
  r.rows = static_cast<uint32_t>(g.rows), r.elements = static_cast<uint32_t>(g.elements);
  r.lanes = static_cast<uint32_t>(g.lanes), r.depth = static_cast<uint32_t>(g.depth), r.lanes_first = g.lanes_first;
  r.parts = static_cast<uint32_t>(g.parts), r.part_length = static_cast<uint32_t>(g.part_length);
  for (int which = 0; which < 2; ++which) {
    std::vector<int> axes;
    for (int i = 0; i < x.shape.size(); ++i)
      if (static_cast<int>(within >> i & 1) == which && x.shape[i] != 1) axes.push_back(i);
    // The innermost in memory last.
    std::stable_sort(axes.begin(), axes.end(),
                     [&](int a, int b) { return std::abs(x.layout.strides[a]) > std::abs(x.layout.strides[b]); });
    r.axes[which] = static_cast<int32_t>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      r.size[which][i] = divisor_of(x.shape[axes[i]]);
      for (size_t o = 0; o < 4; ++o)
        if (operands[o] >= 0)
          r.strides[which][i][o] = static_cast<int32_t>(operand_of(stage, operands[o]).layout.strides[axes[i]]);
    }
  }
  for (size_t o = 0; o < 4; ++o)
    if (operands[o] >= 0) r.type[o] = static_cast<uint8_t>(operand_of(stage, operands[o]).dtype);
  return r;
}

Result<KernelLaunch> rows_launch(const std::string& kernel, const RowsRecord& record, const std::array<int, 4>& operands,
                                 const Workshop& shop) {
  std::array<unsigned, 3> grid = blocks_for(record.rows, record.lanes);
  grid[1] = record.parts;
  SPARKLE_TRY(launch, launch_of(shop, kernel, record, grid, kRowsThreads, 8 * kRowsThreads));
  constexpr size_t kPlaces[] = {offsetof(RowsRecord, x), offsetof(RowsRecord, scale), offsetof(RowsRecord, bias),
                                offsetof(RowsRecord, y)};
  for (size_t o = 0; o < 4; ++o)
    if (operands[o] >= 0) launch.addresses.push_back({kPlaces[o], operands[o], 0});
  if (record.parts > 1) launch.addresses.push_back({offsetof(RowsRecord, work), kWorkspace, 0});
  return launch;
}

Result<CudaKernelPtr> rows_kernel(const Stage& stage, const std::string& kernel, const RowsRecord& record,
                                  const std::array<int, 4>& operands, const Workshop& shop) {
  auto made = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return made;
  SPARKLE_TRY(launch, rows_launch(kernel, record, operands, shop));
  made->launches.push_back(std::move(launch));
  return made;
}

}  // namespace sparkle::cuda
