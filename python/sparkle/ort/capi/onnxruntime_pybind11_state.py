"""Exceptions that scripts take from here, and the names that are sparkle.ort's too."""
from sparkle.ort._devices import (OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtHardwareDeviceType,
                                  OrtMemoryInfo, OrtMemoryInfoDeviceType, OrtMemType)
from sparkle.ort._errors import (EPFail, EngineError, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                                 ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented,
                                 RuntimeException)
from sparkle.ort._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from sparkle.ort._process import (create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                                  enable_telemetry_events, get_build_info, get_version_string, has_collective_ops,
                                  set_default_logger_severity, set_default_logger_verbosity, set_global_thread_pool_sizes,
                                  set_seed)
from sparkle.ort._binding import IOBinding, SessionIOBinding
from sparkle.ort._providers import get_all_providers, get_available_providers, get_device
from sparkle.ort._session import InferenceSession, NodeArg
from sparkle.ort._values import OrtValue, copy_tensors
from sparkle._model_meta import ModelMetadata

__all__ = [
    "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "IOBinding",
    "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "ModelLoadCanceled", "ModelLoaded",
    "ModelMetadata", "ModelRequiresCompilation", "NoModel", "NoSuchFile", "NodeArg", "NotFound", "NotImplemented",
    "OrtAllocatorType", "OrtArenaCfg", "OrtDevice", "OrtDeviceMemoryType", "OrtHardwareDeviceType", "OrtMemType",
    "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtValue", "RunOptions", "RuntimeException", "SessionIOBinding",
    "SessionOptions", "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2",
    "disable_telemetry_events", "enable_telemetry_events", "get_all_providers", "get_available_providers", "get_build_info",
    "get_device", "get_version_string", "has_collective_ops", "set_default_logger_severity", "set_default_logger_verbosity",
    "set_global_thread_pool_sizes", "set_seed"]
