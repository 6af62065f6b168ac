// The scan family on CUDA: floats in double precision, integers modulo 2^64.
#include "families/scan/scan.h"

#include "backends/cuda/stages/rows/rows.h"
#include "families/type_set.h"

namespace sparkle::cuda {

Result<CudaKernelPtr> make_scan(const Stage& stage, const Schedule& schedule, const Workshop& shop, uint32_t) {
  if (variant_of(schedule) != "rows_gpu")
    return Error{Reason::backend_lacks_variant, "the CUDA backend has no scan variant '" + variant_of(schedule) + "'"};
  const auto& p = get<ScanParams>(stage.params);
  const std::array<int, 4> operands{0, -1, -1, 1};
  auto kernel = std::make_unique<CudaKernel>(stage);
  if (stage.outputs[0].elements() == 0) return kernel;
  SPARKLE_TRY(record, rows_of(stage, operands, 1u << p.axis, true));
  record.flags = static_cast<uint8_t>(p.exclusive | p.reverse << 1);
  const std::string type = is_float(stage.inputs[0].dtype) ? "f64" : "u64";
  if (record.parts > 1) {
    kernel->workspace = int64_t{8} * record.rows * record.parts;
    SPARKLE_TRY(totals, rows_launch("sparkle_scan_totals_" + type, record, operands, shop));
    kernel->launches.push_back(std::move(totals));
  }
  SPARKLE_TRY(sums, rows_launch("sparkle_scan_rows_" + type, record, operands, shop));
  kernel->launches.push_back(std::move(sums));
  return kernel;
}

}  // namespace sparkle::cuda
