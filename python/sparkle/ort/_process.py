"""What onnxruntime sets and says of the whole process."""
import logging
import os
import platform
from typing import Any, Optional

from sparkle._core import version as _version
from sparkle._device import devices
from sparkle.ort._options import warn_once
from sparkle.ort._providers import get_available_providers

version = _version()
package_name = "sparkle-cnn"
cuda_version = ""  # of a toolkit that it was built with: none is needed


def get_version_string() -> str:
    """Sparkle's version."""
    return version


def get_build_info() -> str:
    """Sparkle's version, and that it is Sparkle."""
    return f"Sparkle {version}"


def has_collective_ops() -> bool:
    """False: there are no operators over several processes."""
    return False


def print_debug_info() -> None:
    """Prints versions and devices."""
    print(f"{get_build_info()}, Python {platform.python_version()}, {platform.platform()}")
    print(f"providers: {', '.join(get_available_providers())}")
    for device in devices():
        print(f"  {device.name}: {device.unusable or device.device or 'the CPU'}")


def set_default_logger_severity(level: int) -> None:
    """3 (errors) and above silence what Sparkle warns of, which goes to the logger "sparkle"."""
    logging.getLogger("sparkle").setLevel([logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR,
                                           logging.CRITICAL][min(max(int(level), 0), 4)])


def set_default_logger_verbosity(level: int) -> None:
    """Nothing here is more verbose."""


def set_seed(seed: int) -> None:
    """Nothing here is random."""


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Not followed, which is warned of once: sessions have threads of their own."""
    if intra_op_num_threads or inter_op_num_threads:
        warn_once("set_global_thread_pool_sizes is not followed: SessionOptions.intra_op_num_threads is.")


def disable_telemetry_events() -> None:
    """Nothing here is told to anybody."""


def enable_telemetry_events() -> None:
    """Nothing here is told to anybody, now neither."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True,
                 directory: Optional[os.PathLike] = None) -> None:
    """Nothing here needs libraries of CUDA or cuDNN but NVIDIA's driver, which is opened when it is asked for."""


def create_and_register_allocator(mem_info: Any, arena_cfg: Any) -> None:
    """Sessions share no allocator here; nothing is kept."""


def create_and_register_allocator_v2(provider_type: str, mem_info: Any, options: Any, arena_cfg: Any) -> None:
    """The same."""
