// A CPU with AVX-512 whose caches are told and whose bandwidths are not.
#pragma once

#include "device/device.h"

namespace sparkle::testing {

inline Device avx512_machine(int cores) {
  Device device;
  device.cores = cores;
  device.memory = {{"L1", 32768, 0, 0, 1, false}, {"L2", 1 << 20, 0, 0, 1, false}, {"DRAM", 0, 0, 0, 2, false}};
  MathUnit unit;
  unit.name = "avx512", unit.n = 16, unit.registers = 32, unit.flops_per_second = 1e11;
  device.units = {unit};
  return device;
}

}  // namespace sparkle::testing
