// What the gemm family offers: its variants table and functions.
#include "families/common.h"
#include "families/gemm/gemm_family.h"

namespace sparkle {
namespace {

constexpr TypeSet kMatrices = kFloats | TypeSet{DType::i32, DType::u32, DType::i64, DType::u64};

constexpr TypeRow kTypeRows[] = {
    {"window", "Conv, ConvTranspose", kFloats, kInF32},
    {"dense", "MatMul, Gemm", kMatrices, "f16 and bf16 converted to f32 before it, f64 and integers by the variant plain"},
};

size_t type_form(const StageParams& params) { return get<GemmParams>(params).loader == Loader::dense; }

}  // namespace

const FamilyInfo& gemm_info() {
  static constexpr Variant kVariants[] = {
#include "families/gemm/variants.inc"
  };
  static const FamilyInfo info = {
      .params = ParamsType::of<GemmParams>,
      .variants = kVariants,
      .types = kTypeRows,
      .type_form = type_form,
      .gpu_f16 = true,
      .reference = gemm_reference,
      .footprint = gemm_footprint,
      .schedules = gemm_schedules,
      .cpu_schedule = &ScheduleType::of<GemmSchedule>,
      .gpu_schedule = &ScheduleType::of<TileSchedule>,
  };
  return info;
}

}  // namespace sparkle
