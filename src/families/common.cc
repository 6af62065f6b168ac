#include "families/common.h"

#include <algorithm>
#include <array>

#include "families/family.h"
#include "families/loops/grain.h"
#include "families/type_set.h"

namespace sparkle {

// Units with kernels, widest first. Measured rates do not decide: the units of a core differ less in their peaks than in how
// near the kernels come to them (wider ones need fewer instructions and have more registers), and a probe taken while the
// machine was busy, once kept, would pick the wrong unit for good.
constexpr std::array<std::string_view, 4> kCpuUnits = {"avx512", "avx2", "sve", "neon"};
constexpr std::array<std::string_view, 1> kGpuUnits = {"fma-f32"};
// Units of GPUs that only stages on 16-bit operands use: matrix units of whatever size (gemm_tiles.h), and fma-f16, which
// tells that kernels may read and write such tensors.
constexpr std::array<std::string_view, 2> kGpuFp16Units = {"coopmat-f16", "fma-f16"};
// Tensor Cores by mma.sync and by wgmma, of CUDA's product kernels.
constexpr std::array<std::string_view, 10> kTensorCoreUnits = {"mma-f16",    "mma-bf16",   "mma-tf32",   "mma-i8",
                                                               "wgmma-f16",  "wgmma-bf16", "wgmma-tf32", "wgmma-i8",
                                                               "wgmma-e4m3", "wgmma-e5m2"};
// Units that only stages on 8-bit integers use.
constexpr std::array<std::string_view, 5> kIntegerUnits = {"amx-int8", "avx512-vnni", "avx-vnni", "avx2-int16", "neon-dot"};
// And those that only products of operands that are bf16 in the model use.
constexpr std::array<std::string_view, 1> kBf16Units = {"amx-bf16"};
constexpr std::array<std::string_view, 1> kGpuIntegerUnits = {"dot-i8"};

// What tells that kernels may read and write bytes, and that they may compute in double precision.
constexpr std::array<std::string_view, 2> kGpuTypeUnits = {"alu-i8", "alu-f64"};

bool has_kernels(const Device& device, const MathUnit& unit) {
  const auto listed = [&](const auto& list) { return std::find(list.begin(), list.end(), unit.name) != list.end(); };
  if (!device.has_workgroups()) return listed(kCpuUnits) || listed(kIntegerUnits) || listed(kBf16Units);
  return listed(kGpuUnits) || listed(kGpuIntegerUnits) || listed(kGpuTypeUnits) || listed(kTensorCoreUnits) ||
         std::any_of(kGpuFp16Units.begin(), kGpuFp16Units.end(),
                     [&](std::string_view name) { return unit.name.starts_with(name); });
}

std::vector<const MathUnit*> vector_units(const Device& device) {
  std::vector<const MathUnit*> units;
  const auto add = [&](std::string_view name) {
    if (const MathUnit* unit = device.unit(name); unit && has_kernels(device, *unit)) units.push_back(unit);
  };
  for (std::string_view name : kCpuUnits) add(name);
  for (std::string_view name : kGpuUnits) add(name);
  return units;
}

int registers_of(const MathUnit& unit) { return unit.registers > 0 ? unit.registers : unit.name == "avx2" ? 16 : 32; }

const MathUnit* best_vector_unit(const Device& device) {
  const std::vector<const MathUnit*> units = vector_units(device);
  return units.empty() ? nullptr : units.front();
}

bool stores_reals(const Variant& variant, const Device& device, DType type) {
  if (type == DType::f32) return true;
  if (!variant.for_workgroups() || !variant.runs_on(device)) return false;
  // Devices that multiply bf16 by mma.sync are CUDA's, whose kernels store it.
  return (type == DType::f16 && device.unit("fma-f16")) || (type == DType::bf16 && device.unit("mma-bf16"));
}

bool stores_reals(const Variant& variant, const Device& device, const Stage& stage) {
  const DType type = stage.outputs[0].dtype;
  const auto same = [&](const TensorDesc& desc) { return desc.dtype == type; };
  return stores_reals(variant, device, type) && std::all_of(stage.inputs.begin(), stage.inputs.end(), same) &&
         std::all_of(stage.outputs.begin(), stage.outputs.end(), same);
}

bool computes_numbers(const Variant& variant, const Device& device, DType type) {
  if (!variant.for_workgroups() || !variant.runs_on(device)) return false;
  return stores_reals(variant, device, type) || kIntegers.has(type) || (type == DType::f64 && device.unit("alu-f64"));
}

std::vector<double> bytes_per_level(const Device& device, double bytes_moved, double working_set) {
  std::vector<double> bytes(device.memory.size(), 0.0);
  double inner = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    // What passes through once does not pass through memory that kernels fill themselves.
    if (device.memory[i].filled_by_hand) continue;
    if (inner == 0 || working_set > inner) bytes[i] = bytes_moved;
    inner = static_cast<double>(device.memory[i].bytes);
  }
  return bytes;
}

double activation_flops(Activation activation, double outputs, const Device& device) {
  return device.has_workgroups() ? 0 : outputs * flops_of(activation);
}

Footprint streaming_footprint(const Stage& stage, const Device& device, double flops) {
  double total = 0;
  for (const TensorDesc& desc : stage.inputs) {
    // Axes of stride 0 are read once.
    double bytes = static_cast<double>(size_of(desc.dtype));
    for (int i = 0; i < desc.shape.size(); ++i)
      if (desc.layout.strides[i] != 0) bytes *= static_cast<double>(desc.shape[i]);
    total += bytes;
  }
  double written = 0;
  for (const TensorDesc& desc : stage.outputs) written += static_cast<double>(desc.bytes());
  total += written;
  Footprint footprint;
  footprint.nominal_flops = footprint.executed_flops = flops;
  footprint.bytes = bytes_per_level(device, total, total);
  // A task of at least 16 KB of output is worth a thread's attention.
  footprint.parallel_items = std::max(1.0, written / 16384);
  return footprint;
}

std::vector<Schedule> loop_schedules(const Stage& stage, const Variant& variant, const Device& device, Reason& why_not,
                                     double least) {
  if (!variant.runs_on(device)) {
    why_not = Reason::backend_lacks_variant;
    return {};
  }
  LoopSchedule schedule;
  schedule.variant = variant.name;
  if (variant.name != "plain") {
    const MathUnit* unit = best_vector_unit(device);
    if (!unit) {
      why_not = Reason::unit_missing;
      return {};
    }
    schedule.unit = unit->name;
  }
  if (!device.has_workgroups()) {
    const TensorDesc& y = stage.outputs[0];
    // Plain loops take long enough for each element to share any stage among the cores.
    constexpr int64_t kLeastPlain = 64;
    const int64_t plain = y.elements() < kLeastPlain ? 1 : std::max(1, device.cores);
    if (least == 0) least = kLeastBytes / static_cast<double>(size_of(y.dtype));
    const int64_t tasks = variant.name == "plain" ? plain : planned_tasks(static_cast<double>(y.elements()), least, 4, device);
    schedule.grain = grain_of(y.elements(), tasks);
  }
  return {schedule};
}

void cut_into(std::vector<Schedule>& schedules, const Device& device, int64_t elements, int64_t tasks) {
  for (Schedule& schedule : schedules)
    if (auto* loop = get_if<LoopSchedule>(&schedule); loop && !device.has_workgroups() && loop->variant != "plain")
      loop->grain = grain_of(elements, tasks);
}

}  // namespace sparkle
