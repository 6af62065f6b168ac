"""NVIDIA's libraries where a machine keeps them: wheels of its Python (nvidia/*/lib, torch/lib), then what the loader finds,
then a toolkit's folders. SPARKLE_PEER_LIBRARIES, a folder, is all there is where it is set: stand-ins of a dry run."""

import ctypes
import os
import pathlib
import site
import sys

NAMES = {
    "cuda": ("libcuda.so.1",),
    "cudnn": ("libcudnn.so.9",),
    "cublaslt": ("libcublasLt.so.13", "libcublasLt.so.12"),
    "nvrtc": ("libnvrtc.so.13", "libnvrtc.so.12"),
}
TOOLKITS = ("/usr/local/cuda/lib64", "/usr/local/cuda-1[0-9]*/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")


class PeerError(Exception):
    """One sentence: what, where, what came of it."""


class Absent(PeerError):
    """A library that is not on this machine."""


class NotAsked(PeerError):
    """What this peer is not asked to compute: no failure."""


def package_folders():
    """Folders of libraries in the Python packages of this interpreter."""
    roots = [*sys.path, *site.getsitepackages(), site.getusersitepackages()]
    found = []
    for root in dict.fromkeys(filter(None, roots)):
        found += sorted(pathlib.Path(root).glob("nvidia/*/lib"))
        found += [path for path in (pathlib.Path(root) / "torch" / "lib",) if path.is_dir()]
    return [*found, pathlib.Path(sys.prefix) / "lib"]  # the latter is where conda has them


def in_packages(name):
    """Paths of a library in Python packages, the newest version first."""
    folders = package_folders()
    return [folder / file for file in NAMES[name] for folder in folders if (folder / file).exists()]


def candidates(name):
    """Where the library may be, best first: paths, and names for the loader."""
    only = os.environ.get("SPARKLE_PEER_LIBRARIES")
    if only:
        return [str(pathlib.Path(only) / file) for file in NAMES[name] if (pathlib.Path(only) / file).exists()]
    packages = [] if name == "cuda" else [str(path) for path in in_packages(name)]
    toolkits = [folder for pattern in TOOLKITS for folder in sorted(pathlib.Path("/").glob(pattern[1:]))]
    return [*packages, *NAMES[name], *(str(folder / file) for folder in toolkits for file in NAMES[name])]


def open_library(name):
    """The library, as ctypes has it, and its path. Errors: PeerError."""
    reasons = []
    for path in candidates(name):
        try:
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL), path
        except OSError as error:
            reasons.append(str(error))
    raise Absent(f"{NAMES[name][0]} cannot be opened: {reasons[0] if reasons else 'it is in none of the known places'}.")


def preload(*names):
    """Opens what another library will ask the loader for by name alone; what is not there is not asked for."""
    for name in names:
        try:
            open_library(name)
        except PeerError:
            pass


def declare(library, table, error):
    """Gives each function of a table (name -> result, arguments) its types. `error`: what a missing one raises."""
    for name, (result, *arguments) in table.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise error(f"'{name}' is not in the library; another version is installed.") from None
        function.restype, function.argtypes = result, arguments
