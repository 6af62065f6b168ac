// The register tiles with single numbers in the place of vectors, in a unit's instructions; see scalar_tile.cc.
#pragma once

#include "backends/cpu/gemm/gemm_tile.h"

namespace sparkle::cpu {

// nullptr where this build has none for the unit.
const TileKernels* scalar_kernels_of(std::string_view unit);

}  // namespace sparkle::cpu
