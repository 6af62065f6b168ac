// The declarations of cu.h beside those of cuda.h, where a toolkit is there.
#include "backends/cuda/driver/cu.h"

#include <gtest/gtest.h>

#include <cstddef>

#if __has_include(<cuda.h>)
#include <cuda.h>

namespace sparkle::cuda {

#define SAME_NUMBER(own, theirs) static_assert(static_cast<int>(own) == static_cast<int>(theirs))
SAME_NUMBER(CuResult::invalid_value, CUDA_ERROR_INVALID_VALUE);
SAME_NUMBER(CuResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(CuResult::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
SAME_NUMBER(CuResult::no_device, CUDA_ERROR_NO_DEVICE);
SAME_NUMBER(CuResult::invalid_image, CUDA_ERROR_INVALID_IMAGE);
SAME_NUMBER(CuResult::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
SAME_NUMBER(CuResult::no_binary_for_gpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_NUMBER(CuResult::ecc_uncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME_NUMBER(CuResult::invalid_ptx, CUDA_ERROR_INVALID_PTX);
SAME_NUMBER(CuResult::jit_compiler_not_found, CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
SAME_NUMBER(CuResult::unsupported_ptx_version, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME_NUMBER(CuResult::jit_compilation_disabled, CUDA_ERROR_JIT_COMPILATION_DISABLED);
SAME_NUMBER(CuResult::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
SAME_NUMBER(CuResult::not_found, CUDA_ERROR_NOT_FOUND);
SAME_NUMBER(CuResult::not_ready, CUDA_ERROR_NOT_READY);
SAME_NUMBER(CuResult::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_NUMBER(CuResult::launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME_NUMBER(CuResult::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_NUMBER(CuResult::assert_failed, CUDA_ERROR_ASSERT);
SAME_NUMBER(CuResult::hardware_stack_error, CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_NUMBER(CuResult::illegal_instruction, CUDA_ERROR_ILLEGAL_INSTRUCTION);
SAME_NUMBER(CuResult::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
SAME_NUMBER(CuResult::invalid_address_space, CUDA_ERROR_INVALID_ADDRESS_SPACE);
SAME_NUMBER(CuResult::invalid_pc, CUDA_ERROR_INVALID_PC);
SAME_NUMBER(CuResult::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
SAME_NUMBER(CuResult::nvlink_uncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME_NUMBER(CuResult::contained, CUDA_ERROR_CONTAINED);
SAME_NUMBER(CuResult::context_is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_NUMBER(CuResult::tensor_memory_leak, CUDA_ERROR_TENSOR_MEMORY_LEAK);
SAME_NUMBER(CuResult::mps_client_terminated, CUDA_ERROR_MPS_CLIENT_TERMINATED);
SAME_NUMBER(CuResult::external_device, CUDA_ERROR_EXTERNAL_DEVICE);
SAME_NUMBER(CuResult::not_supported, CUDA_ERROR_NOT_SUPPORTED);
SAME_NUMBER(CuResult::unknown, CUDA_ERROR_UNKNOWN);

using A = CuDeviceAttribute;
SAME_NUMBER(A::max_threads_per_block, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_NUMBER(A::warp_size, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME_NUMBER(A::clock_rate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_NUMBER(A::multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_NUMBER(A::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME_NUMBER(A::compute_mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME_NUMBER(A::pci_bus_id, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME_NUMBER(A::memory_clock_rate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME_NUMBER(A::global_memory_bus_width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME_NUMBER(A::l2_cache_size, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_NUMBER(A::max_threads_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME_NUMBER(A::async_engine_count, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME_NUMBER(A::unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME_NUMBER(A::compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_NUMBER(A::compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_NUMBER(A::max_shared_memory_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_NUMBER(A::max_registers_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME_NUMBER(A::max_shared_memory_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_NUMBER(A::reserved_shared_memory_per_block, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);

SAME_NUMBER(CuFunctionAttribute::max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_NUMBER(CuFunctionAttribute::shared_size_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_NUMBER(CuFunctionAttribute::local_size_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_NUMBER(CuFunctionAttribute::num_regs, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_NUMBER(CuFunctionAttribute::max_dynamic_shared_size_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_NUMBER(CuFunctionAttribute::non_portable_cluster_size_allowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME_NUMBER(CuPointerAttribute::context, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME_NUMBER(CuPointerAttribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_NUMBER(CuPointerAttribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_NUMBER(kMemoryOfDevice, CU_MEMORYTYPE_DEVICE);
SAME_NUMBER(CuLaunchAttributeId::cluster_dimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_NUMBER(CuLaunchAttributeId::programmatic_stream_serialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_NUMBER(kPortProgrammatic, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
SAME_NUMBER(kPortLaunchOrder, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
SAME_NUMBER(kEdgeProgrammatic, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
SAME_NUMBER(CuTensorType::u8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME_NUMBER(CuTensorType::f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME_NUMBER(CuTensorType::f32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME_NUMBER(CuTensorType::bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME_NUMBER(CuTensorType::tf32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME_NUMBER(CuTensorSwizzle::none, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME_NUMBER(CuTensorSwizzle::bytes_128, CU_TENSOR_MAP_SWIZZLE_128B);
SAME_NUMBER(CuTensorPromotion::none, CU_TENSOR_MAP_L2_PROMOTION_NONE);
SAME_NUMBER(CuTensorPromotion::bytes_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(sizeof(CuTensorMap) == sizeof(CUtensorMap) && alignof(CuTensorMap) >= alignof(CUtensorMap));
SAME_NUMBER(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(kEventBlockingSync, CU_EVENT_BLOCKING_SYNC);
SAME_NUMBER(kEventNoTiming, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(kHostAllocPortable, CU_MEMHOSTALLOC_PORTABLE);

static_assert(sizeof(CuDevice) == sizeof(CUdevice) && sizeof(CuAddress) == sizeof(CUdeviceptr));
static_assert(sizeof(CuUuid) == sizeof(CUuuid));
#define SAME_PLACE(own, member, theirs, their_member) static_assert(offsetof(own, member) == offsetof(theirs, their_member))
static_assert(sizeof(CuLaunchAttributeValue) == sizeof(CUlaunchAttributeValue));
static_assert(sizeof(CuLaunchAttribute) == sizeof(CUlaunchAttribute));
SAME_PLACE(CuLaunchAttribute, value, CUlaunchAttribute, value);
static_assert(sizeof(CuLaunchConfig) == sizeof(CUlaunchConfig));
SAME_PLACE(CuLaunchConfig, block, CUlaunchConfig, blockDimX);
SAME_PLACE(CuLaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(CuLaunchConfig, stream, CUlaunchConfig, hStream);
SAME_PLACE(CuLaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_PLACE(CuLaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
static_assert(sizeof(CuGraphEdge) == sizeof(CUgraphEdgeData));
SAME_PLACE(CuGraphEdge, from_port, CUgraphEdgeData, from_port);
SAME_PLACE(CuGraphEdge, to_port, CUgraphEdgeData, to_port);
SAME_PLACE(CuGraphEdge, type, CUgraphEdgeData, type);
static_assert(sizeof(CuKernelNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
SAME_PLACE(CuKernelNodeParams, grid, CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
SAME_PLACE(CuKernelNodeParams, block, CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
SAME_PLACE(CuKernelNodeParams, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_PLACE(CuKernelNodeParams, params, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_PLACE(CuKernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_PLACE(CuKernelNodeParams, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);

TEST(Cu, IsWhatTheToolkitSays) { SUCCEED() << "compared while this was compiled, with CUDA " << CUDA_VERSION; }

}  // namespace sparkle::cuda

#else

TEST(Cu, IsWhatTheToolkitSays) { GTEST_SKIP() << "SKIP: no cuda.h here"; }

#endif
