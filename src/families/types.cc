#include "families/types.h"

#include <algorithm>

#include "families/common.h"

namespace sparkle {

const TypeRow& type_row(const StageParams& params) {
  const FamilyInfo& family = info(params.family());
  return family.types[family.type_form ? family.type_form(params) : 0];
}

bool keeps(Family family, const Device& device, DType type) {
  const FamilyInfo& of = info(family);
  if (!device.has_workgroups() || !of.gpu_16_bits) return false;
  if (type == DType::f16) return device.unit("fma-f16") != nullptr;
  return type == DType::bf16 && std::any_of(of.variants.begin(), of.variants.end(),
                                            [&](const Variant& variant) { return stores_reals(variant, device, type); });
}

std::string type_table() {
  std::string text =
      "# Element types\n\n"
      "Printed from the rows of the families in `src/families` (`SPARKLE_UPDATE_DOCS=1` and the test "
      "`Types.TheDocumentedTableIsThisOne`).\n\n"
      "Arithmetic on f16 and bf16 is done in f32 and rounded to nearest even where a tensor is stored in 16 bits; between two "
      "steps\n"
      "that both compute in f32 it stays f32. GPUs that store f16 exchange it as it is between the families so marked, and by "
      "CUDA\n"
      "bf16 too. f64 is computed in double. Integers are computed in their own type, exactly, and wrap\n"
      "around; a quotient is truncated, a division by zero gives 0. Cast truncates floats towards zero and saturates where "
      "the\n"
      "integer ends (NaN gives 0), integers wrap.\n\n"
      "The types below 16 bits from f8e4m3fn on (ONNX: FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT8E8M0,\n"
      "FLOAT4E2M1, INT4, UINT4, INT2, UINT2) are moved and converted; nothing is computed in them, but for convolutions and\n"
      "matrix products between DequantizeLinears of f8e4m3fn or f8e5m2 without zero points, whose factors NVIDIA's Hopper\n"
      "multiplies as they are, with sums in f32 ([decisions/0041](decisions/0041-cuda-kernels.md)). In memory and in the "
      "interfaces\n"
      "each element is a byte, 4- and 2-bit elements in its low bits; ONNX files pack them. Cast to an 8-bit float rounds to\n"
      "nearest even and obeys `saturate`, to f8e8m0 `round_mode` too (negative numbers give NaN); to f4e2m1 it saturates and "
      "NaN\n"
      "gives 0; to integers of 4 and 2 bits it truncates floats and keeps the low bits.\n\n"
      "The last column says in which types Vulkan devices compute beside f32 and f16: in f64 where their driver does.\n\n"
      "| family | form | operators | element types | other than f32 | f16 stays on GPUs | GPUs "
      "|\n|---|---|---|---|---|---|---|\n";
  for (int i = 0; i < kFamilies; ++i) {
    const FamilyInfo& family = info(static_cast<Family>(i));
    for (const TypeRow& row : family.types) {
      text += "| " + std::string(family.name) + " | " + std::string(row.form) + " | " + std::string(row.operators) + " | " +
              to_text(row.types) + " | " + std::string(row.how) + " | " + (family.gpu_16_bits ? "yes" : "") + " | " +
              std::string(row.gpus) + " |\n";
    }
  }
  return text;
}

}  // namespace sparkle
