// The table that people ask for: the same model in each precision.
#pragma once

#include "check/rules.h"

namespace sparkle {

// fp32, tf32, fp16 as it is, fp16 with all sizes padded, bf16, int8; `subjects`: one per row of the verdict.
std::vector<PrecisionRow> precisions_of(const Verdict& verdict, const std::vector<Subject>& subjects);

}  // namespace sparkle
