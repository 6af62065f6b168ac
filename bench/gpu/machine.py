"""What Vulkan's loader and NVRTC need on a machine that has a driver and little else."""

import ctypes
import os
import pathlib
import subprocess

from peers import libraries as known_libraries

KNOWN = ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d")
ELSEWHERE = ("/usr/local/nvidia/share", "/usr/local/share", "/opt")


def libraries():
    done = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in done.stdout.splitlines() if "=>" in line}


def vulkan_environment(root, out):
    """Variables: the loader that was packed where the machine has none, and the file that tells it of NVIDIA's driver, which
    containers often lack."""
    environment, known = {}, libraries()
    if "libvulkan.so.1" not in known and (pathlib.Path(root) / "libvulkan.so.1").exists():
        environment["LD_LIBRARY_PATH"] = f"{root}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    if os.environ.get("VK_DRIVER_FILES") or any(list(pathlib.Path(folder).glob("nvidia*")) for folder in KNOWN):
        return environment
    found = [path for folder in ELSEWHERE for path in pathlib.Path(folder).glob("**/vulkan/icd.d/nvidia*.json")]
    if not found and "libGLX_nvidia.so.0" in known:
        file = pathlib.Path(out) / "nvidia_icd.json"
        file.write_text(
            '{"file_format_version": "1.0.0", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.3.0"}}\n',
            encoding="utf-8",
        )
        found = [file]
    if found:
        environment["VK_DRIVER_FILES"] = environment["VK_ICD_FILENAMES"] = str(found[0])
    return environment


def version_of(library, function, count):
    """What a library's own function says, as `count` numbers; none where it cannot be asked."""
    try:
        numbers = [ctypes.c_int() for _ in range(count)]
        failed = getattr(ctypes.CDLL(str(library)), function)(*map(ctypes.byref, numbers))
    except (OSError, AttributeError):
        return None
    return None if failed else tuple(number.value for number in numbers)


def nvrtc_environment():
    """SPARKLE_NVRTC: the one of this interpreter's packages, where the loader finds none, no newer than the driver reads."""
    names = known_libraries.NAMES["nvrtc"]
    if "SPARKLE_NVRTC" in os.environ or os.environ.get("SPARKLE_CUDA_DRIVER") or set(names) & libraries():
        return {}
    driver = version_of("libcuda.so.1", "cuDriverGetVersion", 1)
    for path in known_libraries.in_packages("nvrtc"):
        version = version_of(path, "nvrtcVersion", 2)
        if version and (driver is None or 1000 * version[0] + 10 * version[1] <= driver[0]):
            return {"SPARKLE_NVRTC": str(path)}
    return {}
