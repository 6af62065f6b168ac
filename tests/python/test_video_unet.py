"""The large network by plain loops in double precision, its weights by the counter, beside what the command computes."""

import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

import video_unet  # noqa: E402

COMMAND = pathlib.Path(os.environ.get("SPARKLE_COMMAND", ROOT / "build" / "release" / "sparkle"))
MAKE = COMMAND.parent / "bench" / "make_network"
BATCH, BASE, SIZE = 1, 16, 32
needs_command = pytest.mark.skipif(not (COMMAND.exists() and MAKE.exists()), reason=f"'{COMMAND}' or '{MAKE}' is not there")


class PlainOps:
    """What the network's operators mean, in double precision."""

    def wide(self, x):
        return x.astype(np.float64)

    def kept(self, x):
        return x.astype(np.float32).astype(np.float64)

    def conv(self, x, w, b):
        side = w.shape[-1] // 2
        padded = np.pad(x, ((0, 0), (0, 0), (side, side), (side, side)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))
        return np.einsum("nchwrs,kcrs->nkhw", windows, w, optimize=True) + b.reshape(1, -1, 1, 1)

    def silu(self, x):
        return x / (1 + np.exp(-x))

    def pool(self, x):
        n, c, h, w = x.shape
        return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))

    def up(self, x):
        """Between the middles of pixels, the outermost going on."""
        for axis in (2, 3):
            last = x.shape[axis] - 1
            at = np.clip((np.arange(2 * last + 2) + 0.5) / 2 - 0.5, 0, last)
            low = np.floor(at).astype(int)
            share = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
            x = np.take(x, low, axis) * (1 - share) + np.take(x, np.minimum(low + 1, last), axis) * share
        return x

    def concat(self, parts):
        return np.concatenate(parts, 1)

    def dense(self, x, w, b):
        return x @ w + b

    def norm(self, x, scale, bias):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + video_unet.EPSILON) * scale + bias

    def gelu(self, x):
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))

    def attention(self, *qkv):
        n, pixels, c = qkv[0].shape
        q, k, v = (x.reshape(n, pixels, video_unet.HEADS, -1).transpose(0, 2, 1, 3) for x in qkv)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(c // video_unet.HEADS)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        return (shares / shares.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(n, pixels, c)

    def tokens(self, x):
        return x.reshape(*x.shape[:2], -1).transpose(0, 2, 1)

    def channels(self, x, side):
        return x.transpose(0, 2, 1).reshape(x.shape[0], x.shape[2], -1, side)


def weights():
    return video_unet.Weights(
        lambda begin, end: np.arange(begin, end, dtype=np.int64), lambda x: x.astype(np.float32), np.concatenate
    )


def network(ops):
    return video_unet.Network(weights(), ops, BASE)


def test_weights_are_what_the_counter_says():
    """The same numbers one by one, with Python's own integers; in parts as at once."""
    made = weights()
    made.most = 7
    made.normal((3,), 1.0)
    values = made.normal((5, 4), 0.5, 1.0)
    keep = (1 << 64) - 1

    def mixed(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & keep
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & keep
        return z ^ (z >> 31)

    key = mixed((mixed((1 + 0x9E3779B97F4A7C15) & keep) + 2) & keep)
    for i, value in enumerate(values.reshape(-1)):
        words = [mixed((key + 2 * i + j) & keep) for j in (0, 1)]
        total = sum((word >> shift) & 0xFFFF for word in words for shift in (0, 16, 32, 48)) - 4 * 65535
        assert abs(value - (1 + 0.5 * total / (65536 * (8 / 12) ** 0.5))) < 1e-6
    large = weights().normal((100000,), 2.0)
    assert abs(large.mean()) < 0.03 and abs(large.std() - 2) < 0.03


class Shape:
    """An array's shape without its values, which arithmetic leaves as it is: the first operand's where there are two."""

    def __init__(self, shape):
        self.shape = shape

    def same(self, *_):
        return self

    __add__ = __sub__ = __mul__ = __truediv__ = __pow__ = reshape = same


def test_the_whole_network_has_its_parameters():
    class Shapes:
        count = 0

        def normal(self, shape, deviation, mean=0.0):
            return Shape(shape)

        def wide(self, x):
            return x

        def kept(self, x):
            self.count += math.prod(x.shape)

    shapes = Shapes()
    video_unet.Network(shapes, shapes, 192)
    folded = 2 * sum(block_filters(192))  # scale and shift of each normalisation
    assert shapes.count + folded == 880_258_653


def block_filters(base):
    """Filters of all normalised convolutions."""
    blocks = []
    for b in (base, base // 2):
        blocks += [b, 2 * b, 4 * b, 8 * b, 16 * b, 8 * b, 4 * b, 2 * b, b, b]
    return [filters for filters in (*blocks, base, video_unet.FRAME) for _ in range(4)]


@needs_command
def test_the_command_computes_what_plain_loops_do(tmp_path):
    random = np.random.default_rng(3)
    shape = (BATCH, video_unet.FRAME, SIZE, SIZE)
    inputs = {"frame": shape, "previous": shape, "time": (1, 1, 1, 1)}
    values = {name: random.standard_normal(size).astype(np.float32) for name, size in inputs.items()}
    for name, value in values.items():
        np.save(tmp_path / f"{name}.npy", value)
    plane = np.broadcast_to(values["time"].astype(np.float64), (BATCH, 1, SIZE, SIZE))
    wanted = network(PlainOps()).forward(values["frame"].astype(np.float64), values["previous"].astype(np.float64), plane)
    for more in ([], ["--batchnorm"]):
        model = tmp_path / "network.onnx"
        sizes = ["--batch", str(BATCH), "--base", str(BASE), "--size", str(SIZE)]
        subprocess.run([MAKE, "video_unet", model, *sizes, *more], check=True)
        out = tmp_path / "out"
        files = [tmp_path / f"{name}.npy" for name in inputs]
        subprocess.run([COMMAND, "run", model, *files, "--output", out], check=True, capture_output=True)
        found = np.load(next(out.glob("*.npy")))
        assert found.std() > 0.1
        assert np.abs(found - wanted).max() < 2e-5 * np.abs(wanted).max()


def test_what_the_loops_check_would_show():
    """A weight's place or a stream out of its order changes the output."""
    random = np.random.default_rng(3)
    frame = random.standard_normal((1, 3, 16, 16))
    plane = np.ones((1, 1, 16, 16))
    right = network(PlainOps()).forward(frame, frame, plane)

    class Turned(PlainOps):
        def attention(self, q, k, v):
            return super().attention(k, q, v)

    shifted = weights()
    shifted.stream = 1
    for wrong in (network(Turned()), video_unet.Network(shifted, PlainOps(), BASE)):
        assert np.abs(wrong.forward(frame, frame, plane) - right).max() > 1e-3 * np.abs(right).max()


class Tensor(np.ndarray):
    """An array with the methods of PyTorch's that the network uses."""

    def to(self, dtype):
        return self.astype(dtype).view(Tensor)

    def contiguous(self, memory_format=None):
        return self

    def dim(self):
        return self.ndim

    def t(self):
        return np.swapaxes(self, 0, 1)

    def transpose(self, a, b):
        return np.swapaxes(self, a, b)

    def flatten(self, begin):
        return self.reshape(*self.shape[:begin], -1)

    def expand(self, *shape):
        return np.broadcast_to(self, shape, subok=True)


class Functional:
    """PyTorch's functions by the plain loops."""

    plain = PlainOps()

    def conv2d(self, x, w, b, padding):
        assert padding == w.shape[-1] // 2
        return self.plain.conv(np.asarray(x), np.asarray(w), np.asarray(b)).view(Tensor)

    def silu(self, x):
        return self.plain.silu(x)

    def gelu(self, x):
        return self.plain.gelu(np.asarray(x)).view(Tensor)

    def max_pool2d(self, x, size):
        assert size == 2
        return self.plain.pool(x)

    def interpolate(self, x, scale_factor, mode, align_corners):
        assert (scale_factor, mode, align_corners) == (2, "bilinear", False)
        return self.plain.up(x)

    def linear(self, x, w, b):
        return x @ np.swapaxes(w, 0, 1) + b

    def layer_norm(self, x, shape, scale, bias, epsilon):
        assert shape == scale.shape == x.shape[-1:] and epsilon == video_unet.EPSILON
        return self.plain.norm(x, scale, bias)

    def scaled_dot_product_attention(self, q, k, v):
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        return shares / shares.sum(-1, keepdims=True) @ v


class FakeTorch:
    """As much of the module as the network asks for; numbers stay in double precision."""

    int64, float32, float64, channels_last = np.int64, np.float32, np.float64, "channels last"

    class nn:
        functional = Functional()

    class Generator:
        def __init__(self, device):
            self.random = None

        def manual_seed(self, seed):
            self.random = np.random.default_rng(seed)
            return self

    def arange(self, begin, end, dtype, device):
        return np.arange(begin, end, dtype=dtype).view(Tensor)

    def randn(self, *shape, generator, device, dtype):
        return generator.random.standard_normal(shape).astype(dtype).view(Tensor)

    def cat(self, parts, axis=0):
        return np.concatenate(parts, axis).view(Tensor)


def test_what_pytorch_is_told_is_the_same_network():
    call, inputs = video_unet.peer(FakeTorch(), "cuda", np.float64, 2, BASE, 16)
    frame, previous, time = (np.asarray(inputs[name], dtype=np.float64) for name in ("frame", "previous", "time"))
    assert frame.shape == previous.shape == (2, video_unet.FRAME, 16, 16) and time.shape == (1, 1, 1, 1)
    plane = np.broadcast_to(time, (2, 1, 16, 16))
    wanted = network(PlainOps()).forward(frame, previous, plane)
    assert np.abs(np.asarray(call()) - wanted).max() < 1e-9 * np.abs(wanted).max()


def test_outputs_of_two_engines_are_compared(tmp_path):
    wanted = np.linspace(-1, 2, 12).reshape(3, 4)
    for name, array in (("wanted", wanted), ("near", wanted + 1e-3), ("far", wanted + 3e-3), ("turned", wanted.T)):
        np.save(tmp_path / f"{name}.npy", array)
    script = [sys.executable, ROOT / "scripts" / "gpu_peers.py", "same"]
    for name, status in (("near", 0), ("far", 1), ("turned", 1)):
        done = subprocess.run([*script, tmp_path / f"{name}.npy", tmp_path / "wanted.npy"], capture_output=True, check=False)
        assert done.returncode == status, done.stderr
