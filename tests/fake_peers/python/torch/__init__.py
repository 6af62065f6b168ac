"""As much of PyTorch as scripts/gpu_peers.py asks for, by plain NumPy: for dry runs, where no card is. Tensors know of a
device only that they are 'on' it; bfloat16 is kept in float32. What PyTorch refuses, this does where a peer could get it
wrong."""

import time

import numpy as np

from . import nn
from .tensor import Tensor, wrapped

__version__ = "stand-in"
float32, float16, bfloat16, float64, int64 = np.float32, np.float16, np.float32, np.float64, np.int64
channels_last = "channels last"


class version:
    cuda = "stand-in"


class Generator:
    def __init__(self, device):
        self.random = None

    def manual_seed(self, seed):
        self.random = np.random.default_rng(seed)
        return self


def randn(*shape, generator=None, device, dtype=float32):
    random = generator.random if generator else np.random.default_rng(0)
    return wrapped(random.standard_normal(shape).astype(dtype))


def arange(begin, end, dtype, device):
    return wrapped(np.arange(begin, end, dtype=dtype))


def cat(parts, axis=0):
    return wrapped(np.concatenate(parts, axis))


def mm(a, b):
    if a.dim() != 2 or b.dim() != 2:
        raise RuntimeError("mm takes two matrices")
    return wrapped(a @ b)


def cudnn_convolution_relu(x, w, bias, stride, padding, dilation, groups):
    if bias is None:
        raise TypeError("cudnn_convolution_relu wants a bias here")
    return nn.functional.relu(nn.functional.conv2d(x, w, bias, stride, padding, dilation, groups))


class inference_mode:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class cuda:
    capturing = False

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def get_device_name():
        return "stand-in"

    @staticmethod
    def synchronize():
        if cuda.capturing:
            raise RuntimeError("nothing waits while a graph is captured")

    class Event:
        def __init__(self, enable_timing):
            if not enable_timing:
                raise RuntimeError("this event is to be without times")
            self.at = None

        def record(self):
            self.at = time.perf_counter()

        def synchronize(self):
            cuda.synchronize()

        def elapsed_time(self, end):
            return (end.at - self.at) * 1e3

    class CUDAGraph:
        ready = False

        def replay(self):
            if not self.ready:
                raise RuntimeError("a graph that was not captured cannot be replayed")

    class graph:
        def __init__(self, captured):
            self.captured = captured

        def __enter__(self):
            cuda.capturing = True

        def __exit__(self, *_):
            cuda.capturing, self.captured.ready = False, True
            return False


class backends:
    class cudnn:
        benchmark = allow_tf32 = False

        @staticmethod
        def version():
            return 0

    class cuda:
        class matmul:
            allow_tf32 = False
