// The part of CUDA's driver interface that Sparkle calls, declared anew: programs are built where there is no toolkit, and
// start where there is no driver. cu_test.cc compares it with cuda.h where that is there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sparkle::cuda {

using CuDevice = int;
using CuAddress = unsigned long long;  // of device memory, or of pinned memory as devices see it
using CuContext = struct CuContextHandle*;
using CuModule = struct CuModuleHandle*;
using CuFunction = struct CuFunctionHandle*;
using CuStream = struct CuStreamHandle*;
using CuEvent = struct CuEventHandle*;
using CuGraph = struct CuGraphHandle*;
using CuGraphNode = struct CuGraphNodeHandle*;
using CuGraphExec = struct CuGraphExecHandle*;

// What calls return. Results that are not named here are errors like any other.
enum class CuResult : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  ecc_uncorrectable = 214,
  invalid_ptx = 218,
  nvlink_uncorrectable = 220,
  jit_compiler_not_found = 221,
  unsupported_ptx_version = 222,
  jit_compilation_disabled = 223,
  contained = 226,  // an error that is kept from other processes, and ends this one's use of the device
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  context_is_destroyed = 709,
  assert_failed = 710,
  hardware_stack_error = 714,
  illegal_instruction = 715,
  misaligned_address = 716,
  invalid_address_space = 717,
  invalid_pc = 718,
  launch_failed = 719,
  tensor_memory_leak = 721,
  not_supported = 801,
  mps_client_terminated = 810,
  external_device = 911,
  unknown = 999,
};

enum class CuDeviceAttribute : int {
  max_threads_per_block = 1,
  warp_size = 10,
  clock_rate = 13,  // kHz
  multiprocessor_count = 16,
  integrated = 18,
  compute_mode = 20,
  pci_bus_id = 33,
  memory_clock_rate = 36,  // kHz
  global_memory_bus_width = 37,
  l2_cache_size = 38,
  max_threads_per_multiprocessor = 39,
  async_engine_count = 40,
  unified_addressing = 41,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_memory_per_multiprocessor = 81,
  max_registers_per_multiprocessor = 82,
  max_shared_memory_per_block_optin = 97,
  reserved_shared_memory_per_block = 111,
};

enum class CuFunctionAttribute : int {
  max_threads_per_block = 0,
  shared_size_bytes = 1,
  local_size_bytes = 3,
  num_regs = 4,
  max_dynamic_shared_size_bytes = 8,
  non_portable_cluster_size_allowed = 14,
};

enum class CuPointerAttribute : int { context = 1, memory_type = 2, device_ordinal = 9 };
inline constexpr unsigned kMemoryOfDevice = 2;  // CU_MEMORYTYPE_DEVICE

enum class CuLaunchAttributeId : int { ignore = 0, cluster_dimension = 4, programmatic_stream_serialization = 6 };

union CuLaunchAttributeValue {
  char pad[64];
  struct {
    unsigned x, y, z;
  } cluster;
  int programmatic_stream_serialization;
};
struct CuLaunchAttribute {
  CuLaunchAttributeId id = CuLaunchAttributeId::ignore;
  char pad[4] = {};
  CuLaunchAttributeValue value = {};
};

struct CuLaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  CuStream stream = nullptr;
  CuLaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

struct CuKernelNodeParams {
  CuFunction function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** params = nullptr;
  void** extra = nullptr;
  void* kernel = nullptr;
  CuContext context = nullptr;
};

// When what an edge of a graph leads to may begin; zeros: when what it comes from is over.
struct CuGraphEdge {
  unsigned char from_port = 0, to_port = 0, type = 0;
  unsigned char reserved[5] = {};
};
// The port that opens once all blocks have called launch_dependents or are over; edges from it are of a type of their own.
inline constexpr unsigned char kPortProgrammatic = 1, kPortLaunchOrder = 2, kEdgeProgrammatic = 1;

struct CuUuid {
  char bytes[16] = {};
};

// A map of a tensor for the copying engine of sm_90, in the device's own form.
struct alignas(128) CuTensorMap {
  uint64_t words[16] = {};
};
enum class CuTensorType : int { u8 = 0, f16 = 6, f32 = 7, bf16 = 9, tf32 = 11 };
enum class CuTensorSwizzle : int { none = 0, bytes_128 = 3 };
enum class CuTensorPromotion : int { none = 0, bytes_256 = 3 };

inline constexpr unsigned kStreamNonBlocking = 1;  // of the default stream, which others may use
inline constexpr unsigned kEventBlockingSync = 1;  // who waits sleeps
inline constexpr unsigned kEventNoTiming = 2;
inline constexpr unsigned kHostAllocPortable = 1;  // pinned for all contexts

// Whether a result says that the context is gone for good: no call on it succeeds any more. Those of which cuda.h says that the
// process must be started anew, and uncorrectable errors of memory and links.
constexpr bool is_lost(CuResult r) {
  switch (r) {
    case CuResult::ecc_uncorrectable:
    case CuResult::nvlink_uncorrectable:
    case CuResult::contained:
    case CuResult::illegal_address:
    case CuResult::launch_timeout:
    case CuResult::context_is_destroyed:
    case CuResult::assert_failed:
    case CuResult::hardware_stack_error:
    case CuResult::illegal_instruction:
    case CuResult::misaligned_address:
    case CuResult::invalid_address_space:
    case CuResult::invalid_pc:
    case CuResult::launch_failed:
    case CuResult::tensor_memory_leak:
    case CuResult::mps_client_terminated:
    case CuResult::external_device: return true;
    default: return false;
  }
}

// Whether a result says that the driver does not take a module's code, which says nothing of other modules.
constexpr bool is_refused(CuResult r) {
  return r == CuResult::invalid_image || r == CuResult::no_binary_for_gpu || r == CuResult::invalid_ptx ||
         r == CuResult::jit_compiler_not_found || r == CuResult::unsupported_ptx_version ||
         r == CuResult::jit_compilation_disabled;
}

}  // namespace sparkle::cuda
