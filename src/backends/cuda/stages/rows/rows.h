// What the stages that make something of whole rows share: how axes are cut into rows, and the launch.
#pragma once

#include "backends/cuda/cuda_kernel.h"
#include "backends/cuda/kernels/rows/rows_record.h"

namespace sparkle::cuda {

// `operands`: x, scale, bias, y by number, -1 where there is none; `within`: bit i tells that axis i runs within a row;
// `parts`: whether rows may be cut, where there are few. Errors: layout_not_served where an operand spans more than 2^31
// elements.
Result<RowsRecord> rows_of(const Stage& stage, const std::array<int, 4>& operands, uint32_t within, bool parts = false);
// A launch of the kernel over all rows, a grid's row of blocks for each part; the workspace's address where rows have parts.
Result<KernelLaunch> rows_launch(const std::string& kernel, const RowsRecord& record, const std::array<int, 4>& operands,
                                 const Workshop& shop);
// A kernel of one launch.
Result<CudaKernelPtr> rows_kernel(const Stage& stage, const std::string& kernel, const RowsRecord& record,
                                  const std::array<int, 4>& operands, const Workshop& shop);

}  // namespace sparkle::cuda
