"""cuDNN, opened at run time: a convolution as a graph of operations, for which the library's heuristics list engines; each is
tried and timed, and the best is kept. What the graph API refuses goes by the older calls (cudnn_legacy.py)."""

import ctypes
import itertools

from . import cudnn_api as api
from .cudnn_legacy import Legacy
from .driver import Tensor
from .layers import check_convolution, flops_of, parts_of, sizes_of, strides_of
from .libraries import NotAsked, PeerError, declare, open_library, preload
from .search import best

TYPES = {"f32": api.CUDNN_DATA_FLOAT, "f16": api.CUDNN_DATA_HALF, "bf16": api.CUDNN_DATA_BFLOAT16}
MODES = (api.CUDNN_HEUR_MODE_A, api.CUDNN_HEUR_MODE_B, api.CUDNN_HEUR_MODE_FALLBACK)
MOST_WORKSPACE, MOST_NOTES = 2 << 30, 10
UID = {"x": 1, "w": 2, "bias": 3, "y": 4, "sum": 5, "biased": 6}


class Library:
    """Functions of libcudnn with their types; statuses become errors. Errors: PeerError."""

    def __init__(self):
        preload("nvrtc", "cublaslt")
        self.functions, self.path = open_library("cudnn")
        declare(self.functions, api.GRAPH, PeerError)
        self.version = self.functions.cudnnGetVersion()

    def call(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status:
            text = ctypes.create_string_buffer(1024)
            self.functions.cudnnGetLastErrorString(text, len(text))
            said = " ".join(text.value.decode(errors="replace").split())
            what = self.functions.cudnnGetErrorString(status)
            raise PeerError(f"{name} answers {(what or b'an error').decode()} ({status}){': ' + said if said else ''}.")


class Descriptor:
    """A descriptor of the graph API, with those that it names: they must live as long."""

    def __init__(self, library, kind):
        self.library, self.pointer, self.keeps = library, ctypes.c_void_p(), []
        library.call("cudnnBackendCreateDescriptor", kind, self.pointer)

    def __del__(self):
        if self.pointer.value:
            self.library.functions.cudnnBackendDestroyDescriptor(self.pointer)

    def set(self, name, kind, values, ctype):
        array = (ctype * len(values))(*values)
        self.library.call("cudnnBackendSetAttribute", self.pointer, name, kind, len(values), array)

    def integers(self, name, *values):
        self.set(name, api.CUDNN_TYPE_INT64, values, ctypes.c_int64)

    def number(self, name, kind, value):
        self.set(name, kind, [value], ctypes.c_int)

    def descriptors(self, name, *others):
        self.keeps += others
        self.set(name, api.CUDNN_TYPE_BACKEND_DESCRIPTOR, [other.pointer.value for other in others], ctypes.c_void_p)

    def get(self, name, kind, array):
        """How many elements it has written to the array."""
        count = ctypes.c_int64()
        self.library.call("cudnnBackendGetAttribute", self.pointer, name, kind, len(array), count, array)
        return count.value

    def finish(self):
        self.library.call("cudnnBackendFinalize", self.pointer)
        return self


def tensor(library, name, kind, sizes, planes=False, virtual=False):
    """N, C, H, W, in memory with channels last or plane by plane."""
    made = Descriptor(library, api.CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    made.number(api.CUDNN_ATTR_TENSOR_DATA_TYPE, api.CUDNN_TYPE_DATA_TYPE, kind)
    made.integers(api.CUDNN_ATTR_TENSOR_DIMENSIONS, *sizes)
    made.integers(api.CUDNN_ATTR_TENSOR_STRIDES, *strides_of(sizes, planes))
    made.integers(api.CUDNN_ATTR_TENSOR_UNIQUE_ID, UID[name])
    made.integers(api.CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16)
    if virtual:
        made.set(api.CUDNN_ATTR_TENSOR_IS_VIRTUAL, api.CUDNN_TYPE_BOOLEAN, [True], ctypes.c_bool)
    return made.finish()


def pointwise(library, mode, x, y, b=None):
    what = Descriptor(library, api.CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
    what.number(api.CUDNN_ATTR_POINTWISE_MODE, api.CUDNN_TYPE_POINTWISE_MODE, mode)
    what.number(api.CUDNN_ATTR_POINTWISE_MATH_PREC, api.CUDNN_TYPE_DATA_TYPE, api.CUDNN_DATA_FLOAT)
    what.finish()
    made = Descriptor(library, api.CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
    made.descriptors(api.CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what)
    made.descriptors(api.CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
    if b:
        made.descriptors(api.CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b)
    made.descriptors(api.CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)
    return made.finish()


def convolution(library, layer, x, w, y):
    what = Descriptor(library, api.CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
    what.number(api.CUDNN_ATTR_CONVOLUTION_COMP_TYPE, api.CUDNN_TYPE_DATA_TYPE, api.CUDNN_DATA_FLOAT)
    what.number(api.CUDNN_ATTR_CONVOLUTION_CONV_MODE, api.CUDNN_TYPE_CONVOLUTION_MODE, api.CUDNN_CROSS_CORRELATION)
    what.integers(api.CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2)
    what.integers(api.CUDNN_ATTR_CONVOLUTION_DILATIONS, *layer["dilation"])
    what.integers(api.CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, *layer["stride"])
    what.integers(api.CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, *layer["pad"])
    what.integers(api.CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, *layer["pad"])
    what.finish()
    made = Descriptor(library, api.CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    made.descriptors(api.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
    made.descriptors(api.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
    made.descriptors(api.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
    made.descriptors(api.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, what)
    made.set(api.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, api.CUDNN_TYPE_FLOAT, [1.0], ctypes.c_float)
    made.set(api.CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, api.CUDNN_TYPE_FLOAT, [0.0], ctypes.c_float)
    return made.finish()


def operations(library, layer, kind, how, handle=None, planes=False):
    """The finalised graph of a convolution, with bias and ReLU where `how` is 'fused', with bias where it is empty."""
    sizes = sizes_of(layer)
    x, w, y = (tensor(library, name, kind, sizes[name], planes) for name in ("x", "w", "y"))
    if how == "alone":
        nodes = [convolution(library, layer, x, w, y)]
    else:
        inner = lambda name: tensor(library, name, api.CUDNN_DATA_FLOAT, sizes["y"], planes, virtual=True)
        bias, products = tensor(library, "bias", kind, sizes["bias"]), inner("sum")
        biased = inner("biased") if how == "fused" else y
        nodes = [convolution(library, layer, x, w, products),
                 pointwise(library, api.CUDNN_POINTWISE_ADD, products, biased, bias)]
        if how == "fused":
            nodes.append(pointwise(library, api.CUDNN_POINTWISE_RELU_FWD, biased, y))
    graph = Descriptor(library, api.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
    if handle:
        graph.set(api.CUDNN_ATTR_OPERATIONGRAPH_HANDLE, api.CUDNN_TYPE_HANDLE, [handle.value], ctypes.c_void_p)
    graph.descriptors(api.CUDNN_ATTR_OPERATIONGRAPH_OPS, *nodes)
    return graph.finish()


def configurations(library, graph):
    """What the heuristics list, best first by their own guess; the first error where none has anything."""
    found, first = [], None
    for mode in MODES:
        heuristics = Descriptor(library, api.CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
        try:
            heuristics.descriptors(api.CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
            heuristics.number(api.CUDNN_ATTR_ENGINEHEUR_MODE, api.CUDNN_TYPE_HEUR_MODE, mode)
            heuristics.finish()
            kind = api.CUDNN_TYPE_BACKEND_DESCRIPTOR
            count = heuristics.get(api.CUDNN_ATTR_ENGINEHEUR_RESULTS, kind, (ctypes.c_void_p * 0)())
            made = [Descriptor(library, api.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) for _ in range(count)]
            array = (ctypes.c_void_p * count)(*(one.pointer.value for one in made))
            made = made[: heuristics.get(api.CUDNN_ATTR_ENGINEHEUR_RESULTS, kind, array)]
            for one in made:
                one.keeps.append(heuristics)
            found += made
        except PeerError as error:
            first = first or error
    if not found:
        raise first or PeerError("cuDNN's heuristics list no engine.")
    return found


def engine_of(library, configuration):
    """Its number and numerical notes."""
    engine = Descriptor(library, api.CUDNN_BACKEND_ENGINE_DESCRIPTOR)
    array = (ctypes.c_void_p * 1)(engine.pointer.value)
    configuration.get(api.CUDNN_ATTR_ENGINECFG_ENGINE, api.CUDNN_TYPE_BACKEND_DESCRIPTOR, array)
    number, notes = (ctypes.c_int64 * 1)(), (ctypes.c_int * MOST_NOTES)()
    engine.get(api.CUDNN_ATTR_ENGINE_GLOBAL_INDEX, api.CUDNN_TYPE_INT64, number)
    count = engine.get(api.CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, api.CUDNN_TYPE_NUMERICAL_NOTE, notes)
    return number[0], set(notes[: min(count, len(notes))])


class Plan:
    """An engine's configuration as it can run on these tensors."""

    def __init__(self, peer, configuration, tensors, engine, planes):
        self.peer, self.planes, self.name = peer, planes, f"engine {engine}{' on planes' if planes else ''}"
        library = peer.library
        self.plan = Descriptor(library, api.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        self.plan.set(api.CUDNN_ATTR_EXECUTION_PLAN_HANDLE, api.CUDNN_TYPE_HANDLE, [peer.handle.value], ctypes.c_void_p)
        self.plan.descriptors(api.CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
        self.plan.finish()
        size = (ctypes.c_int64 * 1)()
        self.plan.get(api.CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, api.CUDNN_TYPE_INT64, size)
        self.pack = Descriptor(library, api.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        self.pack.integers(api.CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, *(UID[name] for name in tensors))
        addresses = [one.address for one in tensors.values()]
        self.pack.set(api.CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, api.CUDNN_TYPE_VOID_PTR, addresses, ctypes.c_void_p)
        workspace = [peer.workspace(size[0])]
        self.pack.set(api.CUDNN_ATTR_VARIANT_PACK_WORKSPACE, api.CUDNN_TYPE_VOID_PTR, workspace, ctypes.c_void_p)
        self.pack.finish()

    def __call__(self):
        self.peer.library.call("cudnnBackendExecute", self.peer.handle, self.plan.pointer, self.pack.pointer)


class Peer:
    """cuDNN on the first device. Errors: PeerError."""

    name = "cudnn"
    ways = ("bf16_fused", "bf16_alone", "f16_fused", "tf32_fused", "f32_fused")

    def __init__(self, driver, seconds=2.0):
        self.driver, self.library, self.seconds = driver, Library(), seconds
        self.about = {"cudnn": self.library.version, "path": self.library.path}
        self.handle, self.space = ctypes.c_void_p(), (0, None)
        self.library.call("cudnnCreate", self.handle)
        self.library.call("cudnnSetStream", self.handle, driver.stream)
        self.legacy = Legacy(self)

    def workspace(self, size):
        """Its address: one for all, whose size grows. A plan made before a larger one keeps what it was given."""
        if size > MOST_WORKSPACE:
            raise PeerError(f"it wants {size >> 20} MiB of workspace.")
        if size > self.space[0] or self.space[1] is None:
            self.space = (size, self.driver.alloc(size))
        return self.space[1]

    def plans(self, layer, way, tensors):
        """Plans one after another, as they are made. Channels are last; wide types, and layers of few channels, lie plane by
        plane too, which some engines are for. A strict f32 leaves out engines that round operands."""
        kind, math, how = parts_of(way)
        found, first = [], None
        for planes in (False, True) if kind == "f32" or layer["c"] < 8 else (False,):
            try:
                graph = operations(self.library, layer, TYPES[kind], how, self.handle, planes)
                found.append([(one, planes) for one in configurations(self.library, graph)])
            except PeerError as error:
                first = first or error
        if not found:
            raise first
        turns = (one for turn in itertools.zip_longest(*found) for one in turn if one)
        for configuration, planes in turns:
            try:
                number, notes = engine_of(self.library, configuration)
                rounds = {api.CUDNN_NUMERICAL_NOTE_TENSOR_CORE, api.CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}
                if math == "f32" and notes & rounds:
                    continue
                yield Plan(self, configuration, tensors, number, planes)
            except PeerError:
                continue  # one that this card or these sizes are not for

    def time(self, layer, way):
        if layer["kind"] == "gemm":
            raise NotAsked("products are not asked of cuDNN.")
        kind, _, how = parts_of(way)
        before = len(self.driver.allocated)
        try:
            sizes = sizes_of(layer)
            names = ("x", "w", *(() if how == "alone" else ("bias",)), "y")
            tensors = {name: self.filled(name, sizes[name], kind) for name in names}
            x, w, bias, y = (tensors.get(name) for name in ("x", "w", "bias", "y"))
            check = lambda call: check_convolution(layer, way, x, w, bias, y, getattr(call, "planes", False))
            search = lambda calls: best(self.driver, calls, tensors["y"], check, self.seconds)
            refused = ""
            try:
                found = search(self.plans(layer, way, tensors))
            except PeerError as error:
                refused = str(error)
                found = self.older(search, layer, way, tensors, refused)
        finally:
            self.space = (0, None)
            self.driver.free_since(before)
        row = {**found, "gflops": flops_of(layer) / found["median_ms"] * 1e-6, "api": "legacy" if refused else "graph"}
        return {**row, **({"graph_refused": refused} if refused else {})}

    def older(self, search, layer, way, tensors, refused):
        try:
            return search(self.legacy.calls(layer, way, tensors))
        except PeerError as error:
            raise PeerError(f"{refused} And by the older calls {error}") from None

    def filled(self, name, sizes, kind):
        count = sizes[0] * sizes[1] * sizes[2] * sizes[3]
        if name == "y":
            return Tensor(self.driver, count, kind)
        seeds, inside = {"x": 1, "w": 2, "bias": 3}, sizes[1] * sizes[2] * sizes[3]
        return Tensor(self.driver, count, kind, seeds[name], inside**-0.5 if name == "w" else 1.0)

    def close(self):
        self.library.call("cudnnDestroy", self.handle)
