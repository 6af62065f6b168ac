"""cuBLASLt, opened at run time: products, and convolutions that are one, by the algorithms that its heuristics list, each
timed.

Matrices are column by column there: a tensor with channels last is C x pixels, weights are C x K, so that the result, K x
pixels, is weights transposed times tensor, and a bias is one number a row."""

import ctypes
import random

from .driver import Tensor
from .layers import check_convolution, check_sample, flops_of, is_product, parts_of
from .libraries import NotAsked, PeerError, declare, open_library
from .search import best

Pointer, Int, Size, U64, I64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int64
Out = ctypes.POINTER

CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF = 0, 2, 14
CUBLAS_OP_N, CUBLAS_OP_T = 0, 1
CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 = 68, 77
CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB = 3, 4
CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_BIAS_POINTER = 7, 8
CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS = 4, 6
CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 5, 6
CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1

TYPES = {"f32": CUDA_R_32F, "f16": CUDA_R_16F, "bf16": CUDA_R_16BF}
MOST_ALGORITHMS, WORKSPACE = 32, 64 << 20


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t, whose algorithm is opaque."""

    _fields_ = [("algo", U64 * 8), ("workspaceSize", Size), ("state", Int), ("wavesCount", ctypes.c_float),
                ("reserved", Int * 4)]


FUNCTIONS = {
    "cublasLtGetVersion": (Size,),
    "cublasLtGetStatusName": (ctypes.c_char_p, Int),
    "cublasLtCreate": (Int, Out(Pointer)),
    "cublasLtDestroy": (Int, Pointer),
    "cublasLtMatmulDescCreate": (Int, Out(Pointer), Int, Int),
    "cublasLtMatmulDescSetAttribute": (Int, Pointer, Int, Pointer, Size),
    "cublasLtMatmulDescDestroy": (Int, Pointer),
    "cublasLtMatrixLayoutCreate": (Int, Out(Pointer), Int, U64, U64, I64),
    "cublasLtMatrixLayoutSetAttribute": (Int, Pointer, Int, Pointer, Size),
    "cublasLtMatrixLayoutDestroy": (Int, Pointer),
    "cublasLtMatmulPreferenceCreate": (Int, Out(Pointer)),
    "cublasLtMatmulPreferenceSetAttribute": (Int, Pointer, Int, Pointer, Size),
    "cublasLtMatmulPreferenceDestroy": (Int, Pointer),
    "cublasLtMatmulAlgoGetHeuristic": (
        Int, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Int, Out(Heuristic), Out(Int),
    ),
    "cublasLtMatmul": (
        Int, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer, Pointer,
        Out(U64), Pointer, Size, Pointer,
    ),
}


class Library:
    """Functions of libcublasLt with their types; statuses become errors. Errors: PeerError."""

    def __init__(self):
        self.functions, self.path = open_library("cublaslt")
        declare(self.functions, FUNCTIONS, PeerError)
        self.version = self.functions.cublasLtGetVersion()

    def call(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status:
            what = self.functions.cublasLtGetStatusName(status)
            raise PeerError(f"{name} answers {(what or b'an error').decode()} ({status}).")


class Made:
    """Descriptors that go with their product."""

    def __init__(self, library):
        self.library, self.all = library, []

    def create(self, what, *arguments):
        pointer = Pointer()
        self.library.call(f"cublasLt{what}Create", pointer, *arguments)
        self.all.append((what, pointer))
        return pointer

    def set(self, what, pointer, name, value):
        self.library.call(f"cublasLt{what}SetAttribute", pointer, name, ctypes.byref(value), ctypes.sizeof(value))

    def __del__(self):
        for what, pointer in self.all:
            getattr(self.library.functions, f"cublasLt{what}Destroy")(pointer)


class Product(Made):
    """D = op(A) B and what follows, `batch` times: A rows x inner (transposed in memory where `turned`), B inner x columns."""

    def __init__(self, peer, way, rows, columns, inner, turned, batch, a, b, d, bias=None):
        super().__init__(peer.library)
        self.peer, self.a, self.b, self.d = peer, a, b, d
        kind, math, how = parts_of(way)
        compute = CUBLAS_COMPUTE_32F_FAST_TF32 if math == "tf32" else CUBLAS_COMPUTE_32F
        self.what = self.create("MatmulDesc", compute, CUDA_R_32F)
        self.set("MatmulDesc", self.what, CUBLASLT_MATMUL_DESC_TRANSA, Int(CUBLAS_OP_T if turned else CUBLAS_OP_N))
        self.set("MatmulDesc", self.what, CUBLASLT_MATMUL_DESC_TRANSB, Int(CUBLAS_OP_N))
        if bias:
            epilogue = CUBLASLT_EPILOGUE_RELU_BIAS if how == "fused" else CUBLASLT_EPILOGUE_BIAS
            self.set("MatmulDesc", self.what, CUBLASLT_MATMUL_DESC_EPILOGUE, Int(epilogue))
            self.set("MatmulDesc", self.what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, Pointer(bias.address))
        left = (inner, rows) if turned else (rows, inner)
        sizes = (left, (inner, columns), (rows, columns))
        self.layouts = [self.layout(TYPES[kind], *size, batch) for size in sizes]
        self.one, self.zero = ctypes.c_float(1.0), ctypes.c_float(0.0)

    def layout(self, kind, rows, columns, batch):
        made = self.create("MatrixLayout", kind, rows, columns, rows)
        if batch > 1:
            self.set("MatrixLayout", made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, ctypes.c_int32(batch))
            self.set("MatrixLayout", made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, I64(rows * columns))
        return made

    def calls(self):
        """One call for each algorithm that the heuristics list."""
        a, b, d = self.layouts
        preference = self.create("MatmulPreference")
        self.set("MatmulPreference", preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, U64(WORKSPACE))
        found, count = (Heuristic * MOST_ALGORITHMS)(), Int()
        self.library.call("cublasLtMatmulAlgoGetHeuristic", self.peer.handle, self.what, a, b, d, d, preference,
                          MOST_ALGORITHMS, found, count)
        for number in range(count.value):
            if found[number].state == 0:
                yield Call(self, found[number], number)

    def run(self, algorithm):
        a, b, d = self.layouts
        self.library.call("cublasLtMatmul", self.peer.handle, self.what, ctypes.byref(self.one), self.a.address, a,
                          self.b.address, b, ctypes.byref(self.zero), self.d.address, d, self.d.address, d, algorithm.algo,
                          self.peer.space, WORKSPACE, self.peer.driver.stream)


class Call:
    def __init__(self, product, algorithm, number):
        self.product, self.algorithm, self.name = product, algorithm, f"candidate {number}"

    def __call__(self):
        self.product.run(self.algorithm)


class Peer:
    """cuBLASLt on the first device. Errors: PeerError."""

    name = "cublaslt"
    ways = ("bf16_fused", "bf16_alone", "bf16", "f16", "f16_fused", "tf32", "tf32_fused", "f32", "f32_fused")

    def __init__(self, driver, seconds=2.0):
        self.driver, self.library, self.seconds = driver, Library(), seconds
        self.about = {"cublaslt": self.library.version, "path": self.library.path}
        self.handle = Pointer()
        self.library.call("cublasLtCreate", self.handle)
        self.space = driver.alloc(WORKSPACE)

    def time(self, layer, way):
        kind, _, how = parts_of(way)
        before = len(self.driver.allocated)
        try:
            if layer["kind"] == "gemm":
                if how:
                    raise NotAsked("products have no activation here.")
                product, output, check = self.gemm(layer, way, kind)
            elif not is_product(layer):
                raise NotAsked("this convolution is not one product.")
            elif not how:
                raise NotAsked("convolutions are asked for alone or with bias and ReLU.")
            else:
                product, output, check = self.pixels(layer, way, kind, how)
            found = best(self.driver, product.calls(), output, check, self.seconds)
        finally:
            self.driver.free_since(before)
        return {**found, "gflops": flops_of(layer) / found["median_ms"] * 1e-6}

    def gemm(self, layer, way, kind):
        """K x C times C x HW, row by row as Sparkle has them: column by column the factors change places."""
        rows, inner, columns, batch = layer["k"], layer["c"], layer["h"] * layer["w"], layer["n"]
        a = Tensor(self.driver, batch * rows * inner, kind, 1)
        b = Tensor(self.driver, batch * inner * columns, kind, 2, inner**-0.5)
        d = Tensor(self.driver, batch * rows * columns, kind)

        def check(_=None):
            pick = random.Random(7)
            last = (batch - 1, rows - 1, columns - 1)
            for n, i, j in [(0, 0, 0), last, *(tuple(pick.randrange(s) for s in (batch, rows, columns)) for _ in range(4))]:
                at = [(n * rows + i) * inner, n * inner * columns + j]
                products = [a.value(at[0] + c) * b.value(at[1] + c * columns) for c in range(inner)]
                check_sample(d.read((n * rows + i) * columns + j), products, 0.0, way, False, (n, i, j))

        return Product(self, way, columns, rows, inner, False, batch, b, a, d), d, check

    def pixels(self, layer, way, kind, how):
        pixels, inner, filters = layer["n"] * layer["h"] * layer["w"], layer["c"], layer["k"]
        x = Tensor(self.driver, pixels * inner, kind, 1)
        w = Tensor(self.driver, filters * inner, kind, 2, inner**-0.5)
        bias = None if how == "alone" else Tensor(self.driver, filters, kind, 3)
        y = Tensor(self.driver, pixels * filters, kind)
        product = Product(self, way, filters, pixels, inner, True, 1, w, x, y, bias)
        return product, y, lambda _=None: check_convolution(layer, way, x, w, bias, y)

    def close(self):
        self.library.call("cublasLtDestroy", self.handle)
