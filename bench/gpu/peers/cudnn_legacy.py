"""cuDNN's older calls, for what its graph API refuses: cudnnFindConvolutionForwardAlgorithmEx times the algorithms, and bias
and ReLU are in the one call there is for them."""

import ctypes

from . import cudnn_api as api
from .layers import parts_of, sizes_of
from .libraries import PeerError, declare

MOST_ALGORITHMS, FIND_WORKSPACE = 10, 256 << 20
MATH = {"f32": api.CUDNN_FMA_MATH, "tf32": api.CUDNN_TENSOR_OP_MATH, "f16": api.CUDNN_TENSOR_OP_MATH,
        "bf16": api.CUDNN_TENSOR_OP_MATH}


class Call:
    """One algorithm on these tensors."""

    def __init__(self, convolution, algorithm, bytes_, fused):
        self.convolution, self.algorithm, self.bytes, self.fused = convolution, algorithm, bytes_, fused
        self.name = f"algorithm {algorithm}"

    def __call__(self):
        self.convolution.run(self)


class Convolution:
    """Descriptors of a layer, which live as long as its calls."""

    def __init__(self, peer, layer, way, tensors, sizes, kind):
        self.peer, self.tensors, self.made = peer, tensors, []
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self.one, self.zero = ctypes.byref(one), ctypes.byref(zero)
        self.keep = (one, zero)
        nhwc = api.CUDNN_TENSOR_NHWC
        self.x, self.y, self.bias = (self.create("Tensor") for _ in range(3))
        for descriptor, name in ((self.x, "x"), (self.y, "y"), (self.bias, "bias")):
            self.call("cudnnSetTensor4dDescriptor", descriptor, nhwc, kind, *sizes[name])
        self.w, self.what, self.activation = self.create("Filter"), self.create("Convolution"), self.create("Activation")
        self.call("cudnnSetFilter4dDescriptor", self.w, kind, nhwc, *sizes["w"])
        self.call("cudnnSetConvolution2dDescriptor", self.what, *layer["pad"], *layer["stride"], *layer["dilation"],
                  api.CUDNN_CROSS_CORRELATION, api.CUDNN_DATA_FLOAT)
        self.call("cudnnSetConvolutionGroupCount", self.what, layer["groups"])
        self.call("cudnnSetConvolutionMathType", self.what, MATH[parts_of(way)[1]])
        relu = api.CUDNN_ACTIVATION_RELU if way.endswith("_fused") else api.CUDNN_ACTIVATION_IDENTITY
        self.call("cudnnSetActivationDescriptor", self.activation, relu, api.CUDNN_NOT_PROPAGATE_NAN, 0.0)

    def create(self, what):
        made = ctypes.c_void_p()
        self.call(f"cudnnCreate{what}Descriptor", made)
        self.made.append((what, made))
        return made

    def __del__(self):
        for what, made in self.made:
            getattr(self.peer.library.functions, f"cudnnDestroy{what}Descriptor")(made)

    def call(self, name, *arguments):
        self.peer.library.call(name, *arguments)

    def find(self):
        """Algorithms, fastest first by the library's own search."""
        found, count = (api.AlgoPerf * MOST_ALGORITHMS)(), ctypes.c_int()
        x, w, y = (self.tensors[name].address for name in ("x", "w", "y"))
        space = self.peer.workspace(FIND_WORKSPACE)
        self.call("cudnnFindConvolutionForwardAlgorithmEx", self.peer.handle, self.x, x, self.w, w, self.what, self.y, y,
                  MOST_ALGORITHMS, count, found, space, FIND_WORKSPACE)
        return [one.algo for one in found[: count.value] if one.status == 0]

    def workspace_size(self, algorithm):
        size = ctypes.c_size_t()
        self.call("cudnnGetConvolutionForwardWorkspaceSize", self.peer.handle, self.x, self.w, self.what, self.y, algorithm,
                  size)
        return size.value

    def run(self, call):
        x, w, y = (self.tensors[name].address for name in ("x", "w", "y"))
        space = self.peer.workspace(call.bytes)
        left = (self.peer.handle, self.one, self.x, x, self.w, w, self.what, call.algorithm, space, call.bytes, self.zero)
        if not call.fused:
            self.call("cudnnConvolutionForward", *left, self.y, y)
            return
        self.call("cudnnConvolutionBiasActivationForward", *left, self.y, y, self.bias, self.tensors["bias"].address,
                  self.activation, self.y, y)


class Legacy:
    def __init__(self, peer):
        self.peer = peer

    def calls(self, layer, way, tensors):
        from .cudnn import TYPES  # which knows this module

        declare(self.peer.library.functions, api.LEGACY, PeerError)
        kind, _, how = parts_of(way)
        made = Convolution(self.peer, layer, way, tensors, sizes_of(layer), TYPES[kind])
        algorithms = made.find()
        # The identity is taken with one algorithm alone.
        if how == "":
            algorithms = [one for one in algorithms if one == api.CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM]
        for algorithm in algorithms:
            yield Call(made, algorithm, made.workspace_size(algorithm), how != "alone")
