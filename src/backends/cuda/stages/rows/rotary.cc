// The rotary family on CUDA: pairs of a row by neighbouring threads.
#include "families/rotary/rotary.h"

#include "backends/cuda/stages/rows/rows.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_rotary(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no rotary variant '" + variant_of(schedule) + "'"};
  const std::array<int, 4> operands{0, 1, 2, 3};
  SPARKLE_TRY(record, rows_of(stage, operands, 1u << (stage.inputs[0].shape.size() - 1)));
  record.own[0] = static_cast<uint32_t>(stage.inputs[1].shape.back());
  record.flags = get<RotaryParams>(stage.params).interleaved;
  return rows_kernel(stage, "sparkle_rotary_rows", record, operands, shop);
}

}  // namespace sparkle::cuda
