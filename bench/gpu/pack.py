"""What scripts/gpu takes along: the command, stripped, scripts, layer lists, test vectors, our own network and the program that
makes others - nothing that has to be built where it runs. Both programs travel compressed; to a machine that has the working
tree they travel alone."""

import lzma
import os
import pathlib
import shutil
import subprocess
import tempfile

MIB = 1 << 20
MOST_BINARY, MOST_ALL = 40 * MIB, 64 * MIB
FILES = ("scripts/gpu", "scripts/gpu_peers.py", "tests/disputed_vectors.tsv")
FOLDERS = ("bench/gpu", "tests/conformance", "tests/vectors", "shapes", "devices", "models")
PACKED_COMMAND, PACKED_TOOL = "sparkle.xz", "make_network.xz"
PRESET = 3  # of xz: higher ones take minutes for a tenth less
# What a machine with python3 has: the C library and the C++ runtime.
EVERYWHERE = ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "ld-linux", "libstdc++.", "libgcc_s.")


class CannotTravel(Exception):
    """One sentence: what, why, and what to do."""


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def more_libraries(program, readelf="readelf"):
    """What the program links and not every machine has. Errors: OSError."""
    # Of what is no ELF file readelf lists nothing.
    said = subprocess.run([readelf, "-d", program], capture_output=True, text=True, check=False).stdout
    names = [line.split("[")[1].split("]")[0] for line in said.splitlines() if "(NEEDED)" in line and "[" in line]
    return [name for name in names if not name.startswith(EVERYWHERE)]


def compress(program, to, strip):
    """Bytes of the stripped program, which is left at TO compressed. Errors: OSError, CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "stripped"
        subprocess.run([strip, "-o", stripped, program], check=True)
        content = stripped.read_bytes()
    to.write_bytes(lzma.compress(content, preset=PRESET))
    return len(content)


def programs(sparkle, to, strip, readelf, with_libraries):
    """The command and the program that makes networks into TO, compressed; bytes of the command."""
    more = more_libraries(sparkle, readelf)
    if more and not with_libraries:
        raise CannotTravel(
            f"'{sparkle}' links {', '.join(more)}, which the machine with the GPU may lack; build it with "
            "-DSPARKLE_SERVE=OFF, or give --with-libraries if that machine has them."
        )
    to.mkdir(parents=True, exist_ok=True)
    size = compress(sparkle, to / PACKED_COMMAND, strip)
    if size > MOST_BINARY:
        raise CannotTravel(
            f"The command takes {size / MIB:.1f} MiB stripped, and {MOST_BINARY // MIB} may travel; build it with fewer units."
        )
    tool = pathlib.Path(sparkle).parent / "bench" / "make_network"
    if tool.exists():
        compress(tool, to / PACKED_TOOL, strip)
    return size


def pack(root, sparkle, to, strip="strip", readelf="readelf", with_libraries=False, alone=False):
    """Bytes of the folder and of the command in it; `alone`: nothing but the two programs. Errors: CannotTravel, OSError,
    CalledProcessError."""
    root, to = pathlib.Path(root), pathlib.Path(to)
    shutil.rmtree(to, ignore_errors=True)
    size = programs(sparkle, to, strip, readelf, with_libraries)
    if alone:
        return bytes_of(to), size
    for name in FILES:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, to / name)
    for name in FOLDERS:
        shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    loader = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    for line in loader.splitlines():
        if line.strip().startswith("libvulkan.so.1 "):
            shutil.copy2(pathlib.Path(line.split("=>")[1].strip()).resolve(), to / "libvulkan.so.1")
            break
    if bytes_of(to) > MOST_ALL:
        raise CannotTravel(
            f"'{to}' holds {bytes_of(to) / MIB:.1f} MiB, and {MOST_ALL // MIB} may travel; leave out what is largest."
        )
    return bytes_of(to), size


def packed(root, name):
    """Where a compressed program lies: in what was packed, or beside a working tree's build; None: nowhere."""
    places = (pathlib.Path(root) / name, pathlib.Path(root) / "build" / "gpu" / name)
    return next((place for place in places if place.exists()), None)


def unpack(file, to):
    """A program, as TO, which appears whole. Errors: OSError, LZMAError."""
    to = pathlib.Path(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    part = to.with_name(f".{to.name}.{os.getpid()}")  # another phase may be running the one that is there
    part.write_bytes(lzma.decompress(pathlib.Path(file).read_bytes()))
    part.chmod(0o755)
    os.replace(part, to)
