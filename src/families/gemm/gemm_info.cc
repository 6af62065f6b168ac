// What the gemm family offers: its variants table and functions.
#include "families/common.h"
#include "families/gemm/gemm_family.h"

namespace sparkle {

const FamilyInfo& gemm_info() {
  static constexpr Variant kVariants[] = {
#include "families/gemm/variants.inc"
  };
  static const FamilyInfo info{"gemm", kVariants, gemm_reference, gemm_footprint, gemm_schedules};
  return info;
}

}  // namespace sparkle
