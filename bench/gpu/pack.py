"""What scripts/gpu takes along: the command, stripped, scripts, layer lists, test vectors, our own network and the program that
makes others - nothing that has to be built where it runs. That program holds most of the library and is needed for seconds: it
travels compressed."""

import lzma
import pathlib
import shutil
import subprocess
import sys

MIB = 1 << 20
MOST_BINARY, MOST_ALL = 40 * MIB, 64 * MIB
FILES = ("scripts/gpu", "scripts/gpu_peers.py", "tests/disputed_vectors.tsv")
FOLDERS = ("bench/gpu", "tests/conformance", "tests/vectors", "shapes", "devices", "models")
PACKED_TOOL = "make_network.xz"


class TooLarge(Exception):
    """One sentence: what, how large, and what to do."""


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def pack(root, sparkle, to, strip="strip"):
    """Bytes of the folder and of the command in it. Errors: TooLarge, OSError, CalledProcessError."""
    root, to = pathlib.Path(root), pathlib.Path(to)
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in FILES:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, to / name)
    for name in FOLDERS:
        shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([strip, "-o", to / "sparkle", sparkle], check=True)
    if b"libcpp-httplib" in (to / "sparkle").read_bytes():
        print("note: this command links libcpp-httplib, which the machine with the GPU needs too (Debian: libcpp-httplib0.11); "
              "built with -DSPARKLE_SERVE=OFF it needs the C library alone", file=sys.stderr)
    tool = pathlib.Path(sparkle).parent / "bench" / "make_network"
    if tool.exists():
        subprocess.run([strip, "-o", to / "make_network", tool], check=True)
        (to / PACKED_TOOL).write_bytes(lzma.compress((to / "make_network").read_bytes(), preset=3))
        (to / "make_network").unlink()
    loader = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    for line in loader.splitlines():
        if line.strip().startswith("libvulkan.so.1 "):
            shutil.copy2(pathlib.Path(line.split("=>")[1].strip()).resolve(), to / "libvulkan.so.1")
            break
    size = (to / "sparkle").stat().st_size
    if size > MOST_BINARY:
        raise TooLarge(
            f"The command takes {size / MIB:.1f} MiB stripped, and {MOST_BINARY // MIB} may travel; build it with fewer units."
        )
    if bytes_of(to) > MOST_ALL:
        raise TooLarge(
            f"'{to}' holds {bytes_of(to) / MIB:.1f} MiB, and {MOST_ALL // MIB} may travel; leave out what is largest."
        )
    return bytes_of(to), size


def unpack(root, to):
    """The program that makes networks, as TO. Errors: OSError, LZMAError."""
    to = pathlib.Path(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(lzma.decompress((pathlib.Path(root) / PACKED_TOOL).read_bytes()))
    to.chmod(0o755)
