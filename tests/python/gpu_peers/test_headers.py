"""What scripts/gpu_peers.py believes of NVIDIA's libraries, held to their headers and to the libraries themselves, where they
are. No card is needed: what has no handle can be finalised without one."""

import ctypes
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

from peers import cublaslt, cudnn, cudnn_api, driver, libraries  # noqa: E402

HEADERS = {"cudnn.h": (cudnn_api.GRAPH, cudnn_api.LEGACY), "cublasLt.h": (cublaslt.FUNCTIONS,), "cuda.h": (driver.FUNCTIONS,)}
FOLDERS = [*sorted(pathlib.Path("/usr/local").glob("cuda*/include"), reverse=True), pathlib.Path("/usr/include")]
COMPILER = shutil.which("c++") or shutil.which("clang++") or shutil.which("clang++-19")
CODES = {
    ctypes.c_void_p: "p", ctypes.c_char_p: "p", ctypes.c_int: "i", ctypes.c_uint: "i", ctypes.c_size_t: "l",
    ctypes.c_int64: "l", ctypes.c_uint64: "l", ctypes.c_ulonglong: "l", ctypes.c_float: "f", ctypes.c_double: "d",
    ctypes.c_ubyte: "b", None: "v",
}
PROGRAM = """
#include <%s>
#include <cstddef>
#include <type_traits>
template <class T> constexpr char code() {
  if (std::is_void_v<T>) return 'v';
  if (std::is_pointer_v<T>) return 'p';
  if constexpr (!std::is_void_v<T>) {
    if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? 'f' : 'd';
    return sizeof(T) == 8 ? 'l' : sizeof(T) == 4 ? 'i' : 'b';
  }
}
template <class R, class... A> constexpr bool has(R (*)(A...), const char* text) {
  const char codes[] = {code<R>(), code<A>()..., 0};
  for (int i = 0; i <= int(sizeof...(A)) + 1; ++i)
    if (codes[i] != text[i]) return false;
  return true;
}
"""


def folder_of(header):
    return next((folder for folder in FOLDERS if (folder / header).exists()), None)


def compiled(header, lines):
    """What the compiler says of assertions behind a header; skips where there is no such header, or it cannot be compiled."""
    folder = folder_of(header)
    if not folder or not COMPILER:
        pytest.skip(f"SKIP: there is no {header} here, or no C++ compiler")
    command = [COMPILER, "-std=c++17", f"-I{folder}", "-Wno-deprecated-declarations", "-fsyntax-only", "-x", "c++", "-"]

    def run(text):
        return subprocess.run(command, input=PROGRAM % header + text, capture_output=True, text=True, check=False)

    if run("").returncode:
        pytest.skip(f"SKIP: {folder / header} cannot be compiled here")
    return run("\n".join(lines)).stderr


def constants(module, prefixes):
    return {name: value for name, value in vars(module).items() if name.startswith(prefixes) and isinstance(value, int)}


def code_of(kind):
    return CODES[kind] if kind in CODES else "p"  # the rest are pointers to something


@pytest.mark.parametrize("header", HEADERS)
def test_functions_are_what_the_header_declares(header):
    lines = []
    for table in HEADERS[header]:
        for name, kinds in table.items():
            lines.append(f'static_assert(has(&{name}, "{"".join(map(code_of, kinds))}"), "{name}");')
    said = compiled(header, lines)
    assert not said, said
    name = next(iter(HEADERS[header][0]))
    assert "wrong" in compiled(header, [f'static_assert(has(&{name}, "iffff"), "wrong");'])


@pytest.mark.parametrize(("header", "module", "prefixes"), [("cudnn.h", cudnn_api, ("CUDNN_",)),
                                                            ("cublasLt.h", cublaslt, ("CUDA_R", "CUBLAS"))])
def test_constants_are_the_headers(header, module, prefixes):
    found = constants(module, prefixes)
    assert len(found) > 10
    said = compiled(header, [f'static_assert(int({name}) == {value}, "{name}");' for name, value in found.items()])
    assert not said, said
    name, value = next(iter(found.items()))
    assert "wrong" in compiled(header, [f'static_assert(int({name}) == {value + 1}, "wrong");'])


STRUCTURES = [
    ("cudnn.h", "cudnnConvolutionFwdAlgoPerf_t", cudnn_api.AlgoPerf),
    ("cublasLt.h", "cublasLtMatmulHeuristicResult_t", cublaslt.Heuristic),
]


@pytest.mark.parametrize(("header", "name", "structure"), STRUCTURES)
def test_structures_lie_as_in_the_headers(header, name, structure):
    lines = [f"static_assert(sizeof({name}) == {ctypes.sizeof(structure)});"]
    for field, _ in structure._fields_:
        lines.append(f"static_assert(offsetof({name}, {field}) == {getattr(structure, field).offset});")
    said = compiled(header, lines)
    assert not said, said


def in_process(text):
    """Real libraries are opened in a process of their own: stand-ins have functions of the same names."""
    begin = f"import sys; sys.path.insert(0, {str(ROOT / 'bench' / 'gpu')!r})\n"
    done = subprocess.run([sys.executable, "-c", begin + text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs(name):
    try:
        ctypes.CDLL(libraries.candidates(name)[0])
    except OSError:
        if not any(pathlib.Path(path).exists() for path in libraries.candidates(name)):
            pytest.skip(f"SKIP: there is no {libraries.NAMES[name][0]} here")


@pytest.mark.parametrize("name", ["cudnn", "cublaslt"])
def test_the_library_has_each_function(name):
    needs(name)
    tables = "api.GRAPH | api.LEGACY" if name == "cudnn" else "cublaslt.FUNCTIONS"
    said = in_process(
        "from peers import cublaslt, cudnn_api as api, libraries\n"
        f"library, path = libraries.open_library({name!r})\n"
        f"libraries.declare(library, {tables}, libraries.PeerError)\n"
        f"print(len({tables}), path)\n"
        "try: libraries.declare(library, {'noSuchFunction': (None,)}, libraries.PeerError)\n"
        "except libraries.PeerError as error: print(error)\n"
    )
    assert "'noSuchFunction' is not in the library" in said


def test_real_graphs_are_finalised_without_a_card():
    needs("cudnn")
    said = in_process("""
from peers import cudnn, layers, libraries
library = cudnn.Library()
if library.version < 91900:
    print("old", library.version)
    raise SystemExit
base = dict(name="x", n=4, c=8, h=14, w=14, k=16, r=3, s=3, stride=(2, 1), pad=(1, 1), dilation=(1, 2), groups=1, kind="conv")
for layer in (base, {**base, "groups": 4}, {**base, "r": 1, "s": 1, "pad": (0, 0)}):
    for kind in cudnn.TYPES.values():
        for how in ("alone", "", "fused"):
            cudnn.operations(library, layer, kind, how)
sizes = cudnn.sizes_of(base)
x, w = (cudnn.tensor(library, name, 9, sizes[name]) for name in ("x", "w"))
wrong = cudnn.tensor(library, "y", 9, (4, 16, 14, 14))
try: cudnn.convolution(library, base, x, w, wrong)
except libraries.PeerError as error: print("refused", error)
""")
    if said.startswith("old"):
        pytest.skip(f"SKIP: {said.strip()} finalises no graph without a handle")
    assert said.startswith("refused"), said


def test_real_descriptors_of_the_older_calls_are_set_without_a_card():
    needs("cudnn")
    said = in_process("""
import types
from peers import cudnn, cudnn_api as api, cudnn_legacy, layers, libraries
library = cudnn.Library()
libraries.declare(library.functions, api.LEGACY, libraries.PeerError)
peer = types.SimpleNamespace(library=library)
base = dict(name="x", n=4, c=8, h=14, w=14, k=16, r=3, s=3, stride=(2, 1), pad=(1, 1), dilation=(1, 2), groups=4, kind="conv")
for way in cudnn.Peer.ways:
    kind = cudnn.TYPES[layers.parts_of(way)[0]]
    made = cudnn_legacy.Convolution(peer, base, way, {}, layers.sizes_of(base), kind)
try: made.call("cudnnSetConvolutionMathType", made.what, 99)
except libraries.PeerError as error: print("refused", error)
""")
    assert said.startswith("refused"), said


def test_real_products_are_described_without_a_card():
    needs("cublaslt")
    said = in_process("""
import ctypes, types
from peers import cublaslt, libraries
peer = types.SimpleNamespace(library=cublaslt.Library(), handle=ctypes.c_void_p())
at = types.SimpleNamespace(address=4096)
for way in cublaslt.Peer.ways:
    made = cublaslt.Product(peer, way, 64, 100, 32, True, 3, at, at, at, at if way.endswith("fused") else None)
preference = made.create("MatmulPreference")
made.set("MatmulPreference", preference, cublaslt.CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, ctypes.c_uint64(1 << 20))
try: made.set("MatmulDesc", made.what, cublaslt.CUBLASLT_MATMUL_DESC_TRANSA, ctypes.c_int64(1))
except libraries.PeerError as error: print("refused", error)
""")
    assert said.startswith("refused"), said
