// What the gemm family offers: its variants table and functions.
#include "families/common.h"
#include "families/gemm/gemm_family.h"

namespace sparkle {

const FamilyInfo& gemm_info() {
  static constexpr Variant kVariants[] = {
#include "families/gemm/variants.inc"
  };
  static const FamilyInfo info = {
      .params = ParamsType::of<GemmParams>,
      .variants = kVariants,
      .reference = gemm_reference,
      .footprint = gemm_footprint,
      .schedules = gemm_schedules,
      .cpu_schedule = &ScheduleType::of<GemmSchedule>,
      .gpu_schedule = &ScheduleType::of<TileSchedule>,
  };
  return info;
}

}  // namespace sparkle
