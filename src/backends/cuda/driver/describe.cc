// What the driver says of a device, as a Device for the planner: counts, sizes and clocks are the driver's, operations per
// clock those of NVIDIA's white papers of each architecture. They are data sheet rates until they are measured.
#include <algorithm>
#include <cstdio>

#include "backends/cuda/driver/driver.h"

namespace sparkle::cuda {
namespace {

constexpr int kLeastCapability = 80;  // cp.async and mma.sync of bf16 and TF32

// Operations of a multiprocessor per clock, a multiply-add counted as two. Matrix rates are for sums in fp32, or 32 bits.
struct Rates {
  int capability;
  double fma_f32, fma_f16, mma_f16, mma_i8, wgmma_f16;
  int64_t l1_bytes;  // with shared memory, which is a part of it
  double l2_bytes;   // that the L2 gives a multiprocessor in a clock while all ask
};
// A100 and H100 (SXM), GA102 and AD102: white papers. The data sheet's wgmma rates are for a clock of 1.83 GHz, at which matrix
// units run; mma.sync reaches 62 % of wgmma there (published microbenchmarks). Unknown ones count as the last before them.
// What an L2 gives is estimated from what others measured: 7.2 TB/s on an A100, 5.5 on Hopper, 2.5 on an RTX 3090.
constexpr Rates kRates[] = {
    {80, 128, 512, 2048, 4096, 0, 192 << 10, 47},  {86, 256, 256, 1024, 2048, 0, 128 << 10, 18},
    {89, 256, 256, 1024, 2048, 0, 128 << 10, 18},  {90, 256, 512, 2372, 4744, 3786, 256 << 10, 21},
    {100, 256, 512, 2372, 4744, 0, 256 << 10, 21}, {120, 256, 256, 1024, 2048, 0, 128 << 10, 18},
};

const Rates& rates_of(int capability) {
  const Rates* best = &kRates[0];
  for (const Rates& r : kRates)
    if (r.capability <= capability) best = &r;
  return *best;
}

MathUnit unit(const char* name, UnitKind kind, int m, int n, int k, DType input, DType sums, double per_clock, double clock,
              int cores) {
  MathUnit u;
  u.name = name, u.kind = kind, u.m = m, u.n = n, u.k = k, u.input = input, u.accumulator = sums;
  u.flops_per_second = per_clock * clock;
  u.total_flops_per_second = u.flops_per_second * cores;
  if (kind == UnitKind::vector_fma) u.registers = 255;
  return u;
}

void add_units(Device& d, const Rates& r, int capability, bool consumer) {
  const auto add = [&](const char* name, UnitKind kind, int m, int n, int k, DType input, DType sums, double per_clock) {
    if (per_clock > 0) d.units.push_back(unit(name, kind, m, n, k, input, sums, per_clock, d.clock_hz, d.cores));
  };
  add("fma-f32", UnitKind::vector_fma, 1, 32, 1, DType::f32, DType::f32, r.fma_f32);
  add("fma-f16", UnitKind::vector_fma, 1, 32, 2, DType::f16, DType::f16, r.fma_f16);
  const double wgmma = capability == 90 ? r.wgmma_f16 : 0;
  add("wgmma-f16", UnitKind::matrix, 64, 256, 16, DType::f16, DType::f32, wgmma);
  add("wgmma-bf16", UnitKind::matrix, 64, 256, 16, DType::bf16, DType::f32, wgmma);
  add("wgmma-tf32", UnitKind::matrix, 64, 256, 8, DType::f32, DType::f32, wgmma / 2);
  add("wgmma-i8", UnitKind::matrix, 64, 256, 32, DType::i8, DType::i32, 2 * wgmma);
  add("wgmma-e4m3", UnitKind::matrix, 64, 128, 32, DType::f8e4m3fn, DType::f32, 2 * wgmma);
  add("wgmma-e5m2", UnitKind::matrix, 64, 128, 32, DType::f8e5m2, DType::f32, 2 * wgmma);
  // GeForce cards halve products with sums in fp32.
  const double mma = consumer ? r.mma_f16 / 2 : r.mma_f16;
  add("mma-f16", UnitKind::matrix, 16, 8, 16, DType::f16, DType::f32, mma);
  add("mma-bf16", UnitKind::matrix, 16, 8, 16, DType::bf16, DType::f32, mma);
  add("mma-tf32", UnitKind::matrix, 16, 8, 8, DType::f32, DType::f32, mma / 2);
  add("mma-i8", UnitKind::matrix, 16, 8, 32, DType::i8, DType::i32, r.mma_i8);
}

void add_memory(Device& d, const Rates& r, int64_t shared, int64_t l2, int64_t dram, double bandwidth) {
  const auto add = [&](const char* name, int64_t bytes, double one, double all, int shared_by) {
    MemoryLevel level;
    level.name = name, level.bytes = bytes, level.shared_by = shared_by;
    level.bytes_per_second = one, level.total_bytes_per_second = all;
    level.filled_by_hand = level.name == "shared";
    d.memory.push_back(level);
  };
  // A multiprocessor reads 128 bytes per clock of shared memory or L1 and 64 of the L2 where it is alone.
  const double near = 128 * d.clock_hz, far = 64 * d.clock_hz;
  add("shared", shared, near, near * d.cores, 1);
  add("L1", r.l1_bytes, near, near * d.cores, 1);
  add("L2", l2, far, r.l2_bytes * d.clock_hz * d.cores, d.cores);
  add("DRAM", dram, std::min(far, bandwidth), bandwidth, d.cores);
}

}  // namespace

Status describe(const Driver& driver, DeviceInfo& device) {
  char name[256] = {};
  SPARKLE_CU(driver, driver.device_name(name, sizeof name - 1, device.handle), "cuDeviceGetName");
  device.name = name;
  CuUuid uuid;
  SPARKLE_CU(driver, driver.device_uuid(&uuid, device.handle), "cuDeviceGetUuid");
  for (const char byte : uuid.bytes) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(byte));
    device.id += hex;
  }
  device.id += "_" + std::to_string(driver.version());
  size_t memory = 0;
  SPARKLE_CU(driver, driver.device_memory(&memory, device.handle), "cuDeviceTotalMem");
  Status failed = ok();
  const auto ask = [&](CuDeviceAttribute attribute) {
    int value = 0;
    const CuResult r = driver.device_attribute(&value, attribute, device.handle);
    if (r != CuResult::success && failed.ok()) failed = driver.error_of(r, "cuDeviceGetAttribute");
    return value;
  };
  using A = CuDeviceAttribute;
  device.capability = 10 * ask(A::compute_capability_major) + ask(A::compute_capability_minor);
  Device& d = device.description;
  d.kind = DeviceKind::cuda;
  d.name = device.name, d.vendor = "NVIDIA", d.driver = device.driver;
  d.architecture = "sm" + std::to_string(device.capability);
  d.cores = std::max(1, ask(A::multiprocessor_count));
  d.clock_hz = 1e3 * ask(A::clock_rate);
  d.launch_seconds = 4e-6;  // as devices/*.json of these cards say
  d.limits.max_threads_per_group = ask(A::max_threads_per_block);
  d.limits.shared_bytes_per_group = ask(A::max_shared_memory_per_block_optin);
  d.limits.subgroup_size = ask(A::warp_size);
  d.limits.registers_per_thread = 255;
  d.limits.schedulers_per_core = 4;
  d.limits.max_buffer_bytes = static_cast<int64_t>(memory);
  const Rates& rates = rates_of(device.capability);
  const double bandwidth = 2e3 * ask(A::memory_clock_rate) * ask(A::global_memory_bus_width) / 8;
  add_memory(d, rates, ask(A::max_shared_memory_per_multiprocessor), ask(A::l2_cache_size), static_cast<int64_t>(memory),
             bandwidth);
  add_units(d, rates, device.capability, device.name.find("GeForce") != std::string::npos);
  if (device.capability < kLeastCapability)
    device.unusable = "its compute capability is " + std::to_string(device.capability / 10) + "." +
                      std::to_string(device.capability % 10) + ", and kernels need 8.0 or later";
  else if (!ask(A::unified_addressing)) device.unusable = "it has no addresses in common with the host";
  else if (ask(A::compute_mode) == 2) device.unusable = "its compute mode is 'prohibited'; nvidia-smi -c 0 allows computing";
  return failed;
}

}  // namespace sparkle::cuda
