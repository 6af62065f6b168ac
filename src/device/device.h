// A machine as plain data: what the planner knows about it. Probes fill it, devices/*.json store it, nothing in here calls
// a driver. Zero means unknown; the planner must survive unknowns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace sparkle {

enum class DeviceKind : uint8_t { cpu, vulkan, cuda };
enum class UnitKind : uint8_t { vector_fma, dot_product, matrix };

// One level of memory, innermost first. Rates are for one core or compute unit reading alone.
struct MemoryLevel {
  std::string name;                   // "L1", "L2", "L3", "DRAM", "shared", "registers"
  int64_t bytes = 0;                  // capacity of one instance
  double bytes_per_second = 0;        // read rate of one core
  double total_bytes_per_second = 0;  // read rate of all cores together
  int shared_by = 1;                  // cores that share one instance
  bool filled_by_hand = false;        // true for a GPU's shared memory
  double copy_bytes_per_second = 0;   // all cores copying from this level to itself, bytes read plus bytes written

  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

// One math unit: what a core can multiply at once.
struct MathUnit {
  std::string name;  // "avx512", "avx2", "neon", "amx-int8", "wgmma-f16" ...; kernels name the unit they need
  UnitKind kind = UnitKind::vector_fma;
  int m = 1, n = 1, k = 1;  // shape of one instruction; a vector unit is 1 x lanes x 1
  DType input = DType::f32;
  DType accumulator = DType::f32;
  double flops_per_second = 0;        // peak of one core, multiply and add counted as two; measured where calibrated
  int registers = 0;                  // vector or tile registers a kernel can name
  double total_flops_per_second = 0;  // peak of all cores together; clocks fall when all are busy

  friend bool operator==(const MathUnit&, const MathUnit&) = default;
};

// What a kernel takes on this machine of what its arithmetic alone is predicted to: units of one name differ in latencies,
// ports and queues, which no peak tells. Measured where calibrated.
struct KernelPace {
  std::string name;  // "gemm tile6x2": family and variant
  std::string unit;
  double ratio = 1;  // above 1: slower than predicted

  friend bool operator==(const KernelPace&, const KernelPace&) = default;
};

struct DeviceLimits {
  int max_threads_per_group = 0;
  int64_t shared_bytes_per_group = 0;
  int subgroup_size = 0;
  int matrix_subgroup_size = 0;  // what its matrix units multiply in alone; 0: any that it has
  int registers_per_thread = 0;
  int schedulers_per_core = 0;  // subgroups that a GPU's core computes at once
  int64_t max_buffer_bytes = 0;

  friend bool operator==(const DeviceLimits&, const DeviceLimits&) = default;
};

struct Device {
  std::string name;  // "AMD EPYC 9R14", "NVIDIA H200"
  DeviceKind kind = DeviceKind::cpu;
  std::string vendor;
  std::string architecture;  // "zen4", "sapphire-rapids", "rdna3", "sm90"
  std::string driver;        // GPU driver version; empty on a CPU
  int cores = 1;             // CPU cores or GPU compute units usable by this process
  double clock_hz = 0;
  double launch_seconds = 0;  // fixed cost of one launch; of a GPU: one more dispatch behind a barrier in a command buffer
  // Transfers between the host's memory and the device's: their rate, and what each takes beside its bytes - handing it over
  // and hearing of its end. 0: unknown, or there is no link.
  double link_bytes_per_second = 0, link_seconds = 0;
  bool calibrated = false;  // rates were measured on this machine, not copied from a data sheet
  bool compiles = false;    // programs that come with a model are compiled there: NVRTC is at hand
  std::vector<MemoryLevel> memory;
  std::vector<MathUnit> units;
  std::vector<KernelPace> paces;
  DeviceLimits limits;
  std::string denylist;     // variants that failed on this driver: "gemm/implicit pool/shader"
  std::string thread_note;  // why `cores` is what it is: "2 (affinity 2, cgroup unlimited)"

  const MathUnit* unit(std::string_view unit_name) const;
  // Level by name or nullptr.
  const MemoryLevel* level(std::string_view level_name) const;
  bool denies(std::string_view family, std::string_view variant) const;
  // KernelPace::ratio of a variant; 1 where it was not measured.
  double pace(std::string_view family, std::string_view variant, std::string_view unit) const;
  // Whether kernels are launched as workgroups of threads that share memory (GPUs); else a few threads run loops (CPUs).
  bool has_workgroups() const { return limits.max_threads_per_group > 0; }
  // Whether it is a GPU's interface on the host's own cores.
  bool is_software() const;

  friend bool operator==(const Device&, const Device&) = default;
};

// What a transfer of so many bytes between the host's memory and the device's takes; of an unknown link PCI Express 3 x16.
double transfer_seconds(const Device& device, double bytes);

// Whether two descriptions are of machines of one make, whatever their rates, cores in use and drivers are.
bool same_machine(const Device& a, const Device& b);

std::string_view name_of(DeviceKind kind);
std::string_view name_of(UnitKind kind);

}  // namespace sparkle
