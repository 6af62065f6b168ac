// --unit: a CPU as if it had one vector unit alone, so that the kernels of each unit can be planned, run and measured on any
// machine that has more.
#pragma once

#include <string>

#include "base/result.h"
#include "device/device.h"

namespace sparkle {

// Takes all units out of `device` but `unit` and those that it is used with: the vector unit of its level for a unit of dot
// products, and for a vector unit the dot products that every CPU of its level has. "avx512" so means no VNNI, "avx512-vnni"
// the same with it, and "amx-int8" both with tiles beside them. SVE keeps NEON, for families that have no kernels of SVE.
// Errors: bad_usage naming the units that `device` has, device_unusable where it is no CPU.
Status force_unit(Device& device, const std::string& unit);

}  // namespace sparkle
