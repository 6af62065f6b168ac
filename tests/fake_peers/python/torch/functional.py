"""PyTorch's functions that networks here take."""

import math

import numpy as np

from .tensor import wrapped


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def windows(x, taps, stride, dilation):
    """[n, c, p, q, r, s] of x without padding."""
    seen = [(taps[i] - 1) * dilation[i] + 1 for i in (0, 1)]
    found = np.lib.stride_tricks.sliding_window_view(x, seen, (2, 3))
    return found[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def conv2d(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    stride, padding, dilation = map(pair, (stride, padding, dilation))
    if x.shape[1] != w.shape[1] * groups or x.dtype != w.dtype:
        raise RuntimeError(f"an input of {x.shape} and weights of {w.shape} in {groups} groups, or of two types")
    padded = np.pad(np.asarray(x), ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    parts = zip(np.split(padded, groups, 1), np.split(np.asarray(w), groups, 0), strict=True)
    sums = []
    for part, filters in parts:
        seen = windows(part, filters.shape[2:], stride, dilation)
        sums.append(np.tensordot(seen.astype(np.float64), filters.astype(np.float64), ((1, 4, 5), (1, 2, 3))))
    y = np.concatenate(sums, -1).transpose(0, 3, 1, 2)
    if bias is not None:
        y = y + np.asarray(bias, np.float64).reshape(1, -1, 1, 1)
    return wrapped(y.astype(x.dtype))


def relu(x):
    return wrapped(np.maximum(x, 0))


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return wrapped((x * 0.5 * (1 + np.vectorize(math.erf)(np.asarray(x) / math.sqrt(2)))).astype(x.dtype))


def max_pool2d(x, size, stride=None, padding=0):
    padded = np.pad(np.asarray(x), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=-np.inf)
    return wrapped(windows(padded, pair(size), pair(stride or size), (1, 1)).max((4, 5)))


def interpolate(x, scale_factor, mode, align_corners):
    if (scale_factor, mode, align_corners) != (2, "bilinear", False):
        raise NotImplementedError("only twice, bilinear, between the middles of pixels")
    kind, x = x.dtype, np.asarray(x, np.float64)
    for axis in (2, 3):
        last = x.shape[axis] - 1
        at = np.clip((np.arange(2 * last + 2) + 0.5) / 2 - 0.5, 0, last)
        low = np.floor(at).astype(int)
        share = (at - low).reshape([-1 if i == axis else 1 for i in range(4)])
        x = np.take(x, low, axis) * (1 - share) + np.take(x, np.minimum(low + 1, last), axis) * share
    return wrapped(x.astype(kind))


def linear(x, w, b):
    return wrapped(x @ np.swapaxes(w, 0, 1) + b)


def layer_norm(x, shape, scale, bias, epsilon):
    if tuple(shape) != x.shape[-1:]:
        raise RuntimeError(f"{shape} is not the last axis of {x.shape}")
    wide = np.asarray(x, np.float64)
    wide = wide - wide.mean(-1, keepdims=True)
    wide = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + epsilon)
    return wrapped((wide * np.asarray(scale) + np.asarray(bias)).astype(x.dtype))


def scaled_dot_product_attention(q, k, v):
    scores = np.asarray(q, np.float64) @ np.swapaxes(np.asarray(k, np.float64), -1, -2) / math.sqrt(q.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return wrapped((shares / shares.sum(-1, keepdims=True) @ np.asarray(v, np.float64)).astype(q.dtype))
