"""onnxruntime's interface, so that a program changes engines by changing an import:

    import sparkle.ort as ort
    session = ort.InferenceSession("model.onnx", providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    session.run(None, {session.get_inputs()[0].name: image})

Of the providers that a program lists the first whose device is here runs the model: CUDA's and TensorRT's are "cuda",
DirectML's and WebGPU's "vulkan", those of CPUs "cpu". What was passed over, and the CPU where none is here, a warning of the
logger "sparkle" tells. Options that change results or files and are not followed are warned of once.
"""
from sparkle._model_meta import ModelMetadata
from sparkle.ort._binding import IOBinding, SessionIOBinding
from sparkle.ort._devices import (OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtDeviceVendorId,
                                  OrtHardwareDeviceType, OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType)
from sparkle.ort._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from sparkle.ort._process import (create_and_register_allocator, create_and_register_allocator_v2, cuda_version,
                                  disable_telemetry_events, enable_telemetry_events, get_build_info, get_version_string,
                                  has_collective_ops, package_name, preload_dlls, print_debug_info, set_default_logger_severity,
                                  set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed, version)
from sparkle.ort._providers import get_all_providers, get_available_providers, get_device
from sparkle.ort._session import InferenceSession, NodeArg
from sparkle.ort._values import OrtValue, copy_tensors
from sparkle.ort import capi

InferenceSession.__module__ = __name__  # sparkle.InferenceSession is the same class
__version__ = version
import_capi_exception = None  # what kept onnxruntime's library from loading
__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata",
           "NodeArg", "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId",
           "OrtHardwareDeviceType", "OrtMemType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtValue", "RunOptions",
           "SessionIOBinding", "SessionOptions", "capi", "copy_tensors", "create_and_register_allocator",
           "create_and_register_allocator_v2", "cuda_version", "disable_telemetry_events", "enable_telemetry_events",
           "get_all_providers", "get_available_providers", "get_build_info", "get_device", "get_version_string",
           "has_collective_ops", "package_name", "preload_dlls", "print_debug_info", "set_default_logger_severity",
           "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed"]
