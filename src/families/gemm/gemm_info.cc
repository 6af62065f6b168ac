// What the gemm family offers: its variants table and functions.
#include "families/gemm/gemm_family.h"

namespace sparkle {

const FamilyInfo& gemm_info() {
  static constexpr Variant kVariants[] = {
#define VARIANT(name, device, unit, rows, vectors, registers, note) \
  {name, DeviceKind::device, UnitKind::unit, rows, vectors, registers, note},
#include "families/gemm/variants.inc"
#undef VARIANT
  };
  static const FamilyInfo info{"gemm", kVariants, gemm_reference, gemm_footprint, gemm_schedules};
  return info;
}

}  // namespace sparkle
