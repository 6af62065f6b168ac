"""Resize, Upsample and DeformConv in double precision: the evaluator of the onnx package places their samples in single
precision, fails on Resize of opset 10 and knows Upsample with nearest alone."""
import itertools

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

from attributes import attributes_of


def position(mode, at, scale, size, out):
    """Where output element `at` lies in the input."""
    length = scale * size
    if mode == "align_corners":
        return at * (size - 1) / (length - 1) if length != 1 else 0.0
    if mode == "asymmetric":
        return at / scale
    if mode == "pytorch_half_pixel" and length <= 1:
        return 0.0
    half = (at + 0.5) / scale - 0.5
    return half + (size / 2 * (1 - out / length) if mode == "half_pixel_symmetric" else 0)


def nearest(rule, place):
    below = np.floor(place)
    return {"floor": below, "ceil": np.ceil(place), "round_prefer_floor": below + (place - below > 0.5),
            "round_prefer_ceil": below + (place - below >= 0.5)}[rule]


def cubic(distance, a):
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d ** 3 - (a + 3) * d * d + 1
    return a * d ** 3 - 5 * a * d * d + 8 * a * d - 4 * a if d < 2 else 0.0


def matrix(a, mode, coordinates, scale, size, out):
    """Output elements by input elements: the weights of one axis."""
    weights = np.zeros((out, size))
    for at in range(out):
        place = position(coordinates, at, scale, size, out)
        if mode == "nearest":
            weights[at, int(np.clip(nearest(a.get("nearest_mode", b"round_prefer_floor").decode(), place), 0, size - 1))] = 1
            continue
        below = int(np.floor(place))
        taps = [(below, below + 1 - place), (below + 1, place - below)] if mode == "linear" else [
            (i, cubic(place - i, a.get("cubic_coeff_a", -0.75))) for i in range(below - 1, below + 3)]
        if a.get("exclude_outside", 0):
            taps = [(i, w) for i, w in taps if 0 <= i < size]
            total = sum(w for _, w in taps)
            taps = [(i, w / total) for i, w in taps] if total else taps
        for i, w in taps:
            weights[at, min(max(i, 0), size - 1)] += w
    return weights


def resize(node, opset, arrays):
    a, x = attributes_of(node), arrays[0]
    mode = a.get("mode", b"nearest").decode()
    unusual = a.get("antialias", 0) or "axes" in a or a.get("keep_aspect_ratio_policy", b"stretch") != b"stretch"
    if unusual or a.get("coordinate_transformation_mode", b"") == b"tf_crop_and_resize":
        return NotImplemented
    mode = {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    old = node.op_type == "Upsample" or opset < 11
    given = [v if v is not None and np.size(v) else None for v in arrays[1:]]
    if old:
        scales = list(given[0] if given and given[0] is not None else a["scales"])
        sizes = [int(np.floor(s * n)) for s, n in zip(scales, x.shape)]
    elif len(given) > 2 and given[2] is not None:
        sizes = [int(v) for v in given[2]]
        scales = [s / n for s, n in zip(sizes, x.shape)]
    else:
        scales = [float(s) for s in given[1]]
        sizes = [int(np.floor(s * n)) for s, n in zip(scales, x.shape)]
    coordinates = "asymmetric" if old else a.get("coordinate_transformation_mode", b"half_pixel").decode()
    if x.dtype != np.float64:
        return NotImplemented
    for axis, (scale, size, out) in enumerate(zip(scales, x.shape, sizes)):
        if scale == 1:
            continue
        how = a if not old else {"nearest_mode": b"ceil" if scale < 1 else b"floor"}
        x = np.moveaxis(np.tensordot(matrix(how, mode, coordinates, float(scale), size, out), x, (1, axis)), 0, axis)
    return [x]


def deform_conv(node, opset, arrays):
    a = attributes_of(node)
    x, w, offset = arrays[:3]
    bias = arrays[3] if len(arrays) > 3 else None
    mask = arrays[4] if len(arrays) > 4 else None
    kernel = w.shape[2:]
    strides, dilations, pads = a.get("strides", [1, 1]), a.get("dilations", [1, 1]), a.get("pads", [0] * 4)
    parts, groups = a.get("offset_group", 1), a.get("group", 1)
    batch, channels, height, width = x.shape
    rows, columns = offset.shape[2:]
    offset = offset.reshape(batch, parts, *kernel, 2, rows, columns)
    sampled = np.zeros((batch, channels, *kernel, rows, columns))
    for n, part, r, s in itertools.product(range(batch), range(parts), *map(range, kernel)):
        h = np.arange(rows)[:, None] * strides[0] - pads[0] + r * dilations[0] + offset[n, part, r, s, 0]
        v = np.arange(columns) * strides[1] - pads[1] + s * dilations[1] + offset[n, part, r, s, 1]
        of = slice(part * channels // parts, (part + 1) * channels // parts)
        value = 0
        for i, j in itertools.product((0, 1), repeat=2):
            y, z = np.floor(h).astype(int) + i, np.floor(v).astype(int) + j
            weight = (1 - np.abs(h - y)) * (1 - np.abs(v - z)) * ((y >= 0) & (y < height) & (z >= 0) & (z < width))
            value = value + weight * x[n, of][:, np.clip(y, 0, height - 1), np.clip(z, 0, width - 1)]
        if mask is not None:
            value = value * mask.reshape(batch, parts, *kernel, rows, columns)[n, part, r, s]
        sampled[n, of, r, s] = value
    each, filters = channels // groups, w.shape[0] // groups
    y = np.concatenate([np.einsum("ncrsij,kcrs->nkij", sampled[:, g * each:(g + 1) * each], w[g * filters:(g + 1) * filters])
                        for g in range(groups)], 1)
    return [y if bias is None else y + bias.reshape(-1, 1, 1)]


def grid_sample(node, opset, arrays):
    """It knows the names of modes since opset 20 alone."""
    if opset >= 20:
        return NotImplemented
    a = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes_of(node).items()}
    a["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(a.get("mode", "bilinear"), a.get("mode"))
    newer = helper.make_node("GridSample", ["x", "grid"], ["y"], **a)
    return ReferenceEvaluator(newer, opsets={"": 20}).run(None, {"x": arrays[0], "grid": arrays[1]})


FUNCTIONS = {"GridSample": grid_sample, "Resize": resize, "Upsample": resize, "DeformConv": deform_conv}
