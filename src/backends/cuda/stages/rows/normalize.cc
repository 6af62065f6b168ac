// The normalize family on CUDA.
#include "families/normalize/normalize.h"

#include "backends/cuda/stages/rows/rows.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_normalize(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no normalize variant '" + variant_of(schedule) + "'"};
  const auto& p = get<NormalizeParams>(stage.params);
  uint32_t within = 0;
  for (const int64_t axis : p.axes) within |= 1u << axis;
  const int y = static_cast<int>(stage.inputs.size());
  const std::array<int, 4> operands{0, p.scale ? 1 : -1, p.bias ? 1 + p.scale : -1, y};
  SPARKLE_TRY(record, rows_of(stage, operands, within));
  record.kind = static_cast<uint8_t>(p.divisor);
  record.flags = static_cast<uint8_t>((p.center ? 1 : 0) | (p.scale ? 2 : 0) | (p.bias ? 4 : 0));
  record.epsilon = static_cast<float>(p.epsilon);
  return rows_kernel(stage, "sparkle_normalize_rows", record, operands, shop);
}

}  // namespace sparkle::cuda
