"""Stand-ins for NVIDIA's libraries and for PyTorch, for dry runs and tests: tests/fake_peers/gpu, compiled where a C compiler
is, and a small `torch` over NumPy."""

import os
import pathlib
import shutil
import subprocess

LIBRARIES = {
    "libcuda.so.1": ("cuda.c",),
    "libcudnn.so.9": ("cudnn.c", "cudnn_legacy.c"),
    "libcublasLt.so.13": ("cublaslt.c",),
}


def compile_all(root, folder):
    """Why the libraries are not in FOLDER; empty: they are."""
    sources, folder = pathlib.Path(root) / "tests" / "fake_peers" / "gpu", pathlib.Path(folder)
    if not sources.is_dir():
        return "the stand-ins for the peers do not travel"
    compilers = [name for name in (os.environ.get("CC"), "cc", "clang", "clang-19", "gcc") if name and shutil.which(name)]
    if not compilers:
        return "there is no C compiler for the stand-ins"
    folder.mkdir(parents=True, exist_ok=True)
    for library, files in LIBRARIES.items():
        command = [compilers[0], "-std=c11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", folder / library]
        done = subprocess.run([*command, *(sources / file for file in files)], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"'{compilers[0]}' cannot compile {library}: {done.stderr.strip().splitlines()[0]}"
    return ""


def python_with_numpy(root, python):
    """An interpreter that has NumPy: this one, or that of the tests; empty: there is none."""
    for path in (python, pathlib.Path(root) / "build" / "venv-python" / "bin" / "python"):
        try:
            if subprocess.run([path, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
                return str(path)
        except OSError:
            continue
    return ""
