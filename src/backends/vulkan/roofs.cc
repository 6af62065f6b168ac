#include "backends/vulkan/roofs.h"

#include <algorithm>

#include "backends/vulkan/shaders/gemm_constants.h"
#include "backends/vulkan/roof_runs.h"
#include "backends/vulkan/roofs_memory.h"
#include "base/log.h"
#include "families/copy/copy.h"
#include "families/gemm/gemm_tiles.h"

namespace sparkle::vulkan {
namespace {

constexpr int kThreads = 256;
constexpr double kProbeSeconds = 2e-3;
// Until matrix units are measured: so many times the fp32 lanes at least (data sheets: RDNA3 2, Ampere 2, Ada 2, Xe 8).
constexpr double kMatrixTimes = 2;

// `shader`: roof_copy, or roof_read, which writes nothing.
Result<std::unique_ptr<VulkanKernel>> moving_kernel(const Workshop& shop, const char* shader, uint32_t groups, int64_t bytes,
                                                    int rounds) {
  return bare_kernel(shop, {shader, {kThreads, 1, 1}, 0}, groups, 2, {static_cast<int>(bytes / 16), rounds});
}

// Seconds that one more dispatch costs which waits for the one before: a row of empty ones, less what a single one takes.
Result<double> measure_launch(VulkanBackend& backend, const Workshop& shop, std::span<Buffer* const> buffers) {
  constexpr int kDispatches = 65, kRepeats = 7;
  SPARKLE_TRY(one, moving_kernel(shop, "roof_copy", 1, 0, 1));
  SPARKLE_TRY(many, moving_kernel(shop, "roof_copy", 1, 0, 1));
  for (int i = 1; i < kDispatches; ++i) many->dispatches.push_back(many->dispatches[0]);
  std::vector<const Kernel*> kernels;
  for (int i = 0; i < kRepeats; ++i) kernels.insert(kernels.end(), {one.get(), many.get()});
  SPARKLE_TRY(seconds, timed(backend, kernels, buffers));
  std::vector<double> costs;
  for (size_t i = 0; i < seconds.size(); i += 2) costs.push_back((seconds[i + 1] - seconds[i]) / (kDispatches - 1));
  std::sort(costs.begin(), costs.end());
  return std::max(0.0, costs[kRepeats / 2]);
}

}  // namespace

Result<double> measure_flops(VulkanBackend& backend, const Workshop& shop, std::string_view name) {
  const Device device = backend.device();
  const MathUnit* unit = device.unit(name);
  PipelineRequest request;
  request.constants = {kThreads, 1, 1};
  double numbers = 1;  // multiply-adds of a thread in the place of one
  const bool fragments = name.starts_with(kFragmentUnit) && name != kGroupUnit && !is_emulated(name);
  if (!unit) return 0.0;
  if (name == "fma-f32") {
    request.shader = "roof_fma_f32";
  } else if (name == "fma-f16") {
    request.shader = "roof_fma_f16", numbers = 2;
  } else if (name == "dot-i8") {
    request.shader = "roof_dot_i8", numbers = 4;
  } else if (fragments && device.limits.subgroup_size > 0) {
    const int demanded = device.limits.matrix_subgroup_size, lanes = demanded > 0 ? demanded : device.limits.subgroup_size;
    request.shader = "roof_fragments", request.subgroup = static_cast<uint32_t>(lanes);
    using enum GemmConstant;
    set(request, {{kSubgroup, lanes}, {kFragmentM, unit->m}, {kFragmentN, unit->n}, {kFragmentK, unit->k}});
    numbers = static_cast<double>(unit->m) * unit->n * unit->k / lanes;
  } else {
    return 0.0;
  }
  // Where the number of cores is unknown there are enough groups for a large device.
  const uint32_t groups = device.cores > 1 ? groups_of(device) : 2048;
  SPARKLE_TRY(buffer, backend.allocate(64, MemoryKind::device));
  Buffer* const buffers[] = {buffer.get()};
  SPARKLE_TRY(seconds, seconds_of_round(backend, buffers, 16, kProbeSeconds,
                                        [&](int rounds) { return bare_kernel(shop, request, groups, 1, {rounds}); }));
  return seconds > 0 ? 128.0 * numbers * groups * kThreads / seconds : 0.0;
}

Result<double> measure_bandwidth(VulkanBackend& backend, const Workshop& shop, double working_set) {
  constexpr double kLeast = 1 << 16, kMost = 1 << 29;  // a share of every core; beyond any cache
  const Device device = backend.device();
  const double most = std::clamp(static_cast<double>(device.memory.back().bytes / 8), kLeast, kMost);
  const auto bytes = static_cast<int64_t>(std::clamp(working_set, kLeast, most)) / 32 * 32;
  SPARKLE_TRY(from, backend.allocate(bytes, MemoryKind::device));
  SPARKLE_TRY(to, backend.allocate(bytes, MemoryKind::device));
  Buffer* const buffers[] = {from.get(), to.get()};
  double best = 0;
  for (const bool copies : {false, true}) {
    // Of a copy, half are reads of what then is the working set.
    const int64_t read = copies ? bytes / 2 : bytes;
    SPARKLE_TRY(seconds, seconds_of_round(backend, buffers, 1, kProbeSeconds, [&](int rounds) {
                  return moving_kernel(shop, copies ? "roof_copy" : "roof_read", groups_of(device), read, rounds);
                }));
    if (seconds <= 0) return 0.0;
    best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return best;
}

Status measure_roofs(VulkanBackend& backend, const Workshop& shop, Device& device) {
  const double cores = std::max(1, device.cores);
  for (MathUnit& unit : device.units) {
    double flops = 0;
    if (const MathUnit* lanes = device.unit("fma-f32"); lanes && unit.kind == UnitKind::matrix) {
      flops = kMatrixTimes * lanes->total_flops_per_second;
    } else {
      SPARKLE_TRY(measured, measure_flops(backend, shop, unit.name));
      flops = measured;
    }
    unit.total_flops_per_second = flops;
    unit.flops_per_second = flops / cores;
  }
  // Copies beyond any cache; half of the reads and writes each.
  MemoryLevel& dram = device.memory.back();
  const bool software = is_software(device);
  const int64_t bytes =
      std::min<int64_t>(software ? int64_t{64} << 20 : int64_t{512} << 20, std::max<int64_t>(dram.bytes / 8, 1 << 20));
  SPARKLE_TRY(from, backend.allocate(bytes, MemoryKind::device));
  SPARKLE_TRY(to, backend.allocate(bytes, MemoryKind::device));
  Buffer* const buffers[] = {from.get(), to.get()};
  SPARKLE_TRY(copy, moving_kernel(shop, "roof_copy", software ? 16 : 4096, bytes, 1));
  const Kernel* const kernels[] = {copy.get(), copy.get(), copy.get()};
  SPARKLE_TRY(seconds, timed(backend, kernels, buffers));
  const double best = std::min(seconds[1], seconds[2]);
  if (best <= 0)
    return Error{Reason::device_unusable, "The Vulkan device '" + device.name + "' keeps no time; its rates stay unknown."};
  dram.copy_bytes_per_second = dram.total_bytes_per_second = 2 * static_cast<double>(bytes) / best;
  dram.bytes_per_second = dram.total_bytes_per_second / cores;
  // Without caches and shared memory the other rates are worth keeping: unknown levels cost what their neighbours do.
  if (const Status memory = measure_memory(backend, shop, device); !memory.ok()) {
    if (backend.lost()) return memory;
    log(LogLevel::warning, "The caches of '" + device.name + "' could not be measured: " + memory.error().message);
  }
  SPARKLE_TRY(launch, measure_launch(backend, shop, buffers));
  device.launch_seconds = launch;
  device.calibrated = true;
  return ok();
}

Status measure_matrix_unit(VulkanBackend& backend, const Workshop& shop, Device& device, std::string_view name) {
  const auto unit = std::find_if(device.units.begin(), device.units.end(), [&](const MathUnit& u) { return u.name == name; });
  if (unit == device.units.end() || unit->kind != UnitKind::matrix) return ok();
  SPARKLE_TRY(measured, measure_flops(backend, shop, name));
  double flops = measured;
  // Matrices of whole workgroups run on the units of the subgroups, which are measured before.
  if (name == kGroupUnit)
    for (const MathUnit& u : device.units)
      if (u.kind == UnitKind::matrix) flops = std::max(flops, u.total_flops_per_second);
  if (flops <= 0) return ok();
  unit->total_flops_per_second = flops, unit->flops_per_second = flops / std::max(1, device.cores);
  return ok();
}

}  // namespace sparkle::vulkan
