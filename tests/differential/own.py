"""Definitions of operators where the evaluator of the onnx package errs or has none; each says what is wrong there. Written
from the operators' texts, in double precision."""
import numpy as np

import own_pointwise
import own_sampling
from attributes import attributes_of


def softmax(node, opset, arrays):
    """Before opset 13 the input is taken as a matrix, which the evaluator does not do; its logarithm is that of a zero where a
    share underflows."""
    x = arrays[0]
    axis = attributes_of(node).get("axis", 1 if opset < 13 else -1) % max(x.ndim, 1)
    if opset >= 13:
        x = np.moveaxis(x, axis, -1)
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1) if opset < 13 else x.reshape(-1, x.shape[-1])
    with np.errstate(all="ignore"):
        shifted = flat - flat.max(1, keepdims=True)
        total = np.exp(shifted).sum(1, keepdims=True)
        y = shifted - np.log(total) if node.op_type == "LogSoftmax" else np.exp(shifted) / total
    y = y.reshape(x.shape)
    return [np.moveaxis(y, -1, axis) if opset >= 13 else y]


def gemm(node, opset, arrays):
    """Of integers it computes in double."""
    if arrays[0].dtype.kind not in "iu":
        return NotImplemented
    a = attributes_of(node)
    left, right = (v.T if a.get(f, 0) else v for v, f in zip(arrays, ("transA", "transB")))
    kind = left.dtype.type
    y = (left @ right) * kind(a.get("alpha", 1))
    return [y + arrays[2] * kind(a.get("beta", 1)) if len(arrays) > 2 and arrays[2] is not None else y]


def batch_normalization(node, opset, arrays):
    """Before opset 14 the evaluator computes the training form, or fails."""
    x, scale, bias, mean, variance = arrays[:5]
    column = [-1] + [1] * (x.ndim - 2)
    scale, bias, mean, variance = (v.reshape(column) for v in (scale, bias, mean, variance))
    return [(x - mean) / np.sqrt(variance + attributes_of(node).get("epsilon", float(np.float32(1e-5)))) * scale + bias]


def whole_pool(node, opset, arrays):
    """GlobalLpPool is missing there, GlobalMaxPool takes the last two axes whatever the rank."""
    x = arrays[0]
    axes = tuple(range(2, x.ndim))
    if node.op_type == "GlobalMaxPool":
        return [x.max(axes, keepdims=True)]
    p = attributes_of(node).get("p", 2)
    return [(np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p)]


def local_response(node, opset, arrays):
    """It treats as many channels as there are images."""
    a = attributes_of(node)
    x, size = arrays[0], a["size"]
    squares = np.zeros_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - (size - 1) // 2), min(x.shape[1], c + size // 2 + 1)
        squares[:, c] = (x[:, low:high] ** 2).sum(1)
    return [x / (a.get("bias", 1.0) + a.get("alpha", float(np.float32(1e-4))) / size * squares) ** a.get("beta", 0.75)]


def scatter(node, opset, arrays):
    """Scatter is missing."""
    axis = attributes_of(node).get("axis", 0)
    y, index = arrays[0].copy(), arrays[1]
    for at in np.ndindex(*index.shape):
        place = list(at)
        place[axis] = index[at]
        y[tuple(place)] = arrays[2][at]
    return [y]


def lp_normalization(node, opset, arrays):
    """With p = 1 it takes no absolute values; a norm of zero gives zero by the text."""
    a = attributes_of(node)
    x = arrays[0]
    norm = (np.abs(x) ** a.get("p", 2)).sum(a.get("axis", -1), keepdims=True) ** (1 / a.get("p", 2))
    return [np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)]


def squeeze(node, opset, arrays):
    """Before opset 13 it takes axes from an input that is not there."""
    axes = attributes_of(node).get("axes")
    if opset >= 13 or axes is None:
        return NotImplemented
    return [np.squeeze(arrays[0], tuple(axes))]


def group_normalization(node, opset, arrays):
    """A function whose body needs types; scale and bias belong to groups before opset 21, to channels since."""
    a = attributes_of(node)
    x, groups = arrays[0], a["num_groups"]
    flat = x.reshape(x.shape[0], groups, -1)
    y = (flat - flat.mean(-1, keepdims=True)) / np.sqrt(flat.var(-1, keepdims=True) + a.get("epsilon", float(np.float32(1e-5))))
    scale, bias = (v if v.size == x.shape[1] else np.repeat(v, x.shape[1] // groups) for v in arrays[1:3])
    form = [-1] + [1] * (x.ndim - 2)
    return [y.reshape(x.shape) * scale.reshape(form) + bias.reshape(form)]


def instance_normalization(node, opset, arrays):
    """Before opset 6 an attribute is in its way."""
    x = arrays[0]
    axes, form = tuple(range(2, x.ndim)), [-1] + [1] * (x.ndim - 2)
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + attributes_of(node).get(
        "epsilon", float(np.float32(1e-5))))
    return [y * arrays[1].reshape(form) + arrays[2].reshape(form)]


def one_hot(node, opset, arrays):
    """It fails on some axes; indices outside of the depth turn nothing on."""
    index, depth, (off, on) = arrays[0], int(np.ravel(arrays[1])[0]), arrays[2]
    axis = attributes_of(node).get("axis", -1)
    axis += index.ndim + 1 if axis < 0 else 0
    form = [1] * (index.ndim + 1)
    form[axis] = depth
    inside = (index >= -depth) & (index < depth)
    hit = (np.expand_dims(np.where(inside, index % depth, -1), axis) == np.arange(depth).reshape(form))
    return [np.where(hit, on, off).astype(arrays[2].dtype)]


def pad(node, opset, arrays):
    """Before opset 2 the attribute had another name; negative pads are refused."""
    a, x = attributes_of(node), arrays[0]
    mode = a.get("mode", b"constant").decode()
    pads = list(a.get("pads", a.get("paddings", []))) if opset < 11 else [int(v) for v in arrays[1]]
    value = a.get("value", 0.0) if opset < 11 else arrays[2] if len(arrays) > 2 and arrays[2] is not None else 0
    axes = [int(v) % x.ndim for v in arrays[3]] if len(arrays) > 3 and arrays[3] is not None else list(range(x.ndim))
    whole = [(0, 0)] * x.ndim
    for at, axis in enumerate(axes):
        low, high = pads[at], pads[len(axes) + at]
        x = x[tuple(slice(max(0, -low), x.shape[axis] - max(0, -high)) if i == axis else slice(None) for i in range(x.ndim))]
        whole[axis] = (max(0, low), max(0, high))
    if mode == "constant":
        return [np.pad(x, whole, constant_values=np.asarray(value, x.dtype))]
    return [np.pad(x, whole, mode=mode)]


def mean_variance(node, opset, arrays):
    """A function whose body names float32, and takes the mean's square from the mean of squares: of a small deviation next to a
    large mean nothing would be left."""
    x = arrays[0]
    axes = tuple(attributes_of(node).get("axes", [0, 2, 3]))
    centred = x - x.mean(axes, keepdims=True)
    return [centred / (np.sqrt((centred * centred).mean(axes, keepdims=True)) + 1e-9)]


def hardmax(node, opset, arrays):
    """One at the first of the largest elements; before opset 13 of all axes from `axis` on together."""
    x = arrays[0]
    axis = attributes_of(node).get("axis", -1 if opset >= 13 else 1) % x.ndim
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1) if opset < 13 else np.moveaxis(x, axis, -1)
    ones = np.zeros_like(flat)
    np.put_along_axis(ones, flat.argmax(-1)[..., None], 1, -1)
    return [ones.reshape(x.shape) if opset < 13 else np.moveaxis(ones, -1, axis)]


def dropout(node, opset, arrays):
    """The inference form, whose attributes are in its way in old opsets."""
    return [arrays[0]]


def conv_transpose(node, opset, arrays):
    """It errs on groups of several filters, output_padding and output_shape. Each input element adds its filter's taps."""
    a = attributes_of(node)
    x, w = arrays[:2]
    axes, groups = x.ndim - 2, a.get("group", 1)
    kernel, size = w.shape[2:], x.shape[2:]
    strides, dilations = a.get("strides", [1] * axes), a.get("dilations", [1] * axes)
    more = a.get("output_padding", [0] * axes)
    pads = list(a.get("pads", [0] * 2 * axes))
    whole = [(size[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + more[i] for i in range(axes)]
    outer = w.shape[1]
    y = np.zeros((x.shape[0], groups * outer, *whole))
    for g in range(groups):
        part = x[:, g * w.shape[0] // groups:(g + 1) * w.shape[0] // groups]
        filters = w[g * w.shape[0] // groups:(g + 1) * w.shape[0] // groups]
        for tap in np.ndindex(*kernel):
            at = tuple(slice(t * r, t * r + (n - 1) * s + 1, s) for t, r, n, s in zip(tap, dilations, size, strides))
            y[(slice(None), slice(g * outer, (g + 1) * outer), *at)] += np.einsum(
                "nc...,ck->nk...", part, filters[(slice(None), slice(None), *tap)])
    cut = tuple(slice(pads[i], whole[i] - pads[axes + i]) for i in range(axes))
    y = y[(slice(None), slice(None), *cut)]
    if len(arrays) > 2 and arrays[2] is not None:
        y = y + arrays[2].reshape(-1, *[1] * axes)
    return [y]


def windows(node, size):
    """kernel, strides, dilations, pads before and behind, with auto_pad resolved."""
    a = attributes_of(node)
    axes = len(size)
    kernel = list(a["kernel_shape"])
    strides, dilations = list(a.get("strides", [1] * axes)), list(a.get("dilations", [1] * axes))
    pads = list(a.get("pads", [0] * 2 * axes))
    auto = a.get("auto_pad", b"NOTSET")
    auto = auto.decode() if isinstance(auto, bytes) else auto
    spans = [(k - 1) * r + 1 for k, r in zip(kernel, dilations)]
    if auto == "VALID":
        pads = [0] * 2 * axes
    if auto.startswith("SAME"):
        for i in range(axes):
            total = max(0, (-(-size[i] // strides[i]) - 1) * strides[i] + spans[i] - size[i])
            first = total // 2 if auto == "SAME_UPPER" else total - total // 2
            pads[i], pads[axes + i] = first, total - first
    return kernel, strides, dilations, pads, spans


def gathered(node, x):
    """Per output element its window: values (0 outside), whether they lie inside, and whether inside of what is padded; the
    window's taps are the last axis."""
    a = attributes_of(node)
    size, axes = x.shape[2:], x.ndim - 2
    kernel, strides, dilations, pads, spans = windows(node, size)
    out = []
    for i in range(axes):
        reach = size[i] + pads[i] + pads[axes + i] - spans[i]
        count = -(-reach // strides[i]) + 1 if a.get("ceil_mode", 0) else reach // strides[i] + 1
        if a.get("ceil_mode", 0) and (count - 1) * strides[i] >= size[i] + pads[i]:
            count -= 1
        out.append(count)
    inside, padded, index = True, True, 0
    for i in range(axes):
        at = (np.arange(out[i]) * strides[i] - pads[i])[:, None] + np.arange(kernel[i]) * dilations[i]
        form = [1] * (2 * axes)
        form[i], form[axes + i] = out[i], kernel[i]
        inside = inside & ((at >= 0) & (at < size[i])).reshape(form)
        padded = padded & (at < size[i] + pads[axes + i]).reshape(form)
        index = index * size[i] + np.clip(at, 0, size[i] - 1).reshape(form)
    inside, padded, index = (np.broadcast_to(v, (*out, *kernel)).reshape(*out, -1) for v in (inside, padded, index))
    return x.reshape(*x.shape[:2], -1)[:, :, index], inside, padded, index


def pool(node, opset, arrays):
    """MaxPool pads integers with NaN, pools of ceil_mode and auto_pad err in several versions, LpPool ends in float32."""
    x, a = arrays[0], attributes_of(node)
    taps, inside, padded, index = gathered(node, x)
    if node.op_type == "MaxPool":
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        found = np.where(inside, taps, np.asarray(lowest, x.dtype))
        if len(node.output) < 2:
            return [found.max(-1)]
        at = np.take_along_axis(np.broadcast_to(index, found.shape), found.argmax(-1)[..., None], -1)[..., 0]
        if a.get("storage_order", 0):
            at = np.ravel_multi_index(np.unravel_index(at, x.shape[2:])[::-1], x.shape[:1:-1])
        base = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * (x.ndim - 2)) * int(np.prod(x.shape[2:]))
        return [found.max(-1), at + base]
    kept = np.where(inside, taps, 0)
    if node.op_type == "LpPool":
        p = a.get("p", 2)
        return [(np.abs(kept) ** p).sum(-1) ** (1 / p)]
    count = padded if a.get("count_include_pad", 0) else inside
    with np.errstate(all="ignore"):
        return [kept.sum(-1) / count.sum(-1)]


FUNCTIONS = {**own_pointwise.FUNCTIONS, **own_sampling.FUNCTIONS, "Gemm": gemm, "GroupNormalization": group_normalization,
             "OneHot": one_hot, "Pad": pad, "MeanVarianceNormalization": mean_variance, "Dropout": dropout, "Hardmax": hardmax,
             "ConvTranspose": conv_transpose, "Squeeze": squeeze, "InstanceNormalization": instance_normalization,
             "Softmax": softmax, "LogSoftmax": softmax, "BatchNormalization": batch_normalization,
             "GlobalLpPool": whole_pool, "GlobalMaxPool": whole_pool, "LRN": local_response, "Scatter": scatter,
             "LpNormalization": lp_normalization, "MaxPool": pool, "AveragePool": pool, "LpPool": pool}
