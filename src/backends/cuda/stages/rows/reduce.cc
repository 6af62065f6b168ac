// The reduce family on CUDA: floats in fp32, doubles in theirs, integers in 64 bits.
#include "families/reduce/reduce.h"

#include "backends/cuda/stages/rows/rows.h"
#include "families/type_set.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_reduce(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no reduce variant '" + variant_of(schedule) + "'"};
  const auto& p = get<ReduceParams>(stage.params);
  uint32_t within = 0;
  for (const int64_t axis : p.axes) within |= 1u << axis;
  const std::array<int, 4> operands{0, -1, -1, 1};
  SPARKLE_TRY(record, rows_of(stage, operands, within));
  record.kind = static_cast<uint8_t>(p.kind);
  const DType type = stage.inputs[0].dtype;
  const std::string kernel = kSignedIntegers.has(type)                               ? "i64"
                             : kUnsignedIntegers.has(type) || type == DType::boolean ? "u64"
                             : type == DType::f64                                    ? "f64"
                                                                                     : "f32";
  return rows_kernel(stage, "sparkle_reduce_rows_" + kernel, record, operands, shop);
}

}  // namespace sparkle::cuda
