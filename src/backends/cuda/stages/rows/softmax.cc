// The softmax family on CUDA.
#include "families/softmax/softmax.h"

#include "backends/cuda/stages/rows/rows.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_softmax(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no softmax variant '" + variant_of(schedule) + "'"};
  const auto& p = get<SoftmaxParams>(stage.params);
  uint32_t within = 0;
  for (int axis = p.first_axis; axis <= p.last_axis; ++axis) within |= 1u << axis;
  const std::array<int, 4> operands{0, -1, -1, 1};
  SPARKLE_TRY(record, rows_of(stage, operands, within));
  record.flags = p.logarithm;
  return rows_kernel(stage, "sparkle_softmax_rows", record, operands, shop);
}

}  // namespace sparkle::cuda
