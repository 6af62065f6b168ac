"""Cases of convolutions and pools: odd strides, dilations, paddings and groups, one to three spatial axes, all opsets."""
import numpy as np

from case import covers
from draw import FLOATS

MOST = 200_000  # products of a case


def window(d, axes, size, dilated=True):
    """kernel_shape, strides, dilations, pads or auto_pad, such that at least one output remains."""
    kernel = [d.pick(1, 1, 2, 3, 3, 3, 4, 5, 7) for _ in range(axes)]
    dilations = [d.pick(1, 1, 1, 2, 3) if dilated else 1 for _ in range(axes)]
    kernel = [min(k, size[i]) for i, k in enumerate(kernel)]
    dilations = [r if (k - 1) * r + 1 <= size[i] else 1 for i, (k, r) in enumerate(zip(kernel, dilations))]
    attributes = {"strides": [d.pick(1, 1, 1, 2, 3) for _ in range(axes)] if d.chance(0.6) else None,
                  "dilations": dilations if dilated and any(r > 1 for r in dilations) else None}
    way = d.whole(0, 9)
    if way < 6:
        attributes["pads"] = [d.whole(0, (k - 1) * r) if k > 1 else 0 for k, r in zip(kernel * 2, dilations * 2)]
        if d.chance(0.4):
            attributes["pads"] = [(k - 1) * r // 2 for k, r in zip(kernel, dilations)] * 2
    elif way < 8:
        attributes["auto_pad"] = d.pick("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET")
    return kernel, attributes


def sizes(d, axes):
    return [d.pick(1, 2, 3, 5, 6, 7, 8, 9, 12, 14, 17, 24) if axes < 3 else d.pick(1, 2, 3, 4, 6) for _ in range(axes)]


def channels(d):
    """Groups, input channels and filters per group: plain, grouped and one channel a group (times a multiplier)."""
    way = d.whole(0, 9)
    if way < 5:
        return 1, d.pick(1, 2, 3, 4, 5, 8, 16, 17, 32), d.pick(1, 2, 3, 4, 7, 8, 16, 24)
    if way < 7:
        return d.pick(2, 3, 4, 8), d.pick(1, 2, 3, 4, 8), d.pick(1, 2, 3, 4, 8)
    return d.pick(1, 3, 8, 16, 17, 32), 1, d.pick(1, 1, 1, 2)


@covers("Conv", "ConvTranspose")
def convolution(d, op):
    axes = d.pick(1, 2, 2, 2, 2, 3)
    size = sizes(d, axes)
    groups, inner, outer = channels(d)
    transposed = op == "ConvTranspose"
    kernel, attributes = window(d, axes, [9] * axes if transposed else size)
    if transposed:
        pads = attributes.pop("pads", None)
        attributes.pop("auto_pad", None)
        if pads:
            attributes["pads"] = [min(p, (k - 1) // 2) for p, k in zip(pads, kernel * 2)]
        strides = attributes["strides"] or [1] * axes
        if d.chance(0.3):
            attributes["output_padding"] = [d.whole(0, s - 1) for s in strides]
    batch = d.pick(1, 1, 2, 3)
    dtype = d.type_for(op, allowed=FLOATS)
    x = d.values(dtype, (batch, groups * inner, *size))
    w = d.values(dtype, (groups * inner, outer, *kernel) if transposed else (groups * outer, inner, *kernel))
    bias = [d.either(d.values(dtype, (groups * outer,)), 0.8)] if d.chance(0.5) else []
    return [d.node(op, [d.feed(x), d.either(w, 0.8), *bias], kernel_shape=kernel if d.chance(0.7) else None,
                   group=groups if groups > 1 or d.chance(0.5) else None, **attributes)]


@covers("MaxPool", "AveragePool", "LpPool")
def pool(d, op):
    axes = d.pick(1, 2, 2, 2, 3)
    size = sizes(d, axes)
    dilated = (op == "MaxPool" and d.opset >= 10) or (op == "LpPool" and d.opset >= 18) or (
        op == "AveragePool" and d.opset >= 19)
    kernel, attributes = window(d, axes, size, dilated)
    if "pads" in attributes:  # a window has at least one element of the input
        attributes["pads"] = [min(p, (k - 1) // 2) for p, k in zip(attributes["pads"], kernel * 2)]
    dtype = d.type_for(op, allowed=FLOATS + ("int8", "uint8"))
    x = d.values(dtype, (d.pick(1, 2), d.pick(1, 2, 3, 8, 17), *size))
    if op == "LpPool":
        attributes["p"] = d.pick(1, 2, 2, 3, None)
        if d.opset < 2:
            attributes["p"] = attributes["p"] and float(attributes["p"])
    if d.chance(0.3) and "auto_pad" not in attributes and d.opset >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[op]:
        attributes["ceil_mode"] = 1
    if op == "AveragePool" and d.opset >= 7 and d.chance(0.5):
        attributes["count_include_pad"] = d.pick(0, 1)
    outputs = 2 if op == "MaxPool" and d.opset >= 8 and dtype in ("float", "double") and d.chance(0.2) else 1
    if outputs == 2:
        x = d.values(dtype, x.shape, "distinct")  # equal elements leave the place open
        if d.chance(0.3) and axes > 1:
            attributes["storage_order"] = 1
    made = d.node(op, [d.feed(x)], outputs=outputs, kernel_shape=kernel, **attributes)
    return made if outputs == 2 else [made]


@covers("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def whole_pool(d, op):
    dtype = d.type_for(op, allowed=FLOATS)
    x = d.values(dtype, (d.pick(1, 2), d.pick(1, 3, 8, 17), *sizes(d, d.pick(1, 2, 2, 3))))
    return [d.node(op, [d.feed(x)], p=d.pick(1, 2, 3, None) if op == "GlobalLpPool" and d.opset >= 2 else None)]


@covers("DeformConv", lowest=19)
def deformed(d, op):
    size = [d.pick(3, 5, 6, 8), d.pick(3, 5, 7)]
    kernel = [d.pick(1, 2, 3), d.pick(1, 2, 3)]
    strides, dilations = [d.pick(1, 2), d.pick(1, 2)], [1, d.pick(1, 1, 2)]
    pads = [d.pick(0, 1) for _ in range(4)]
    groups, offset_groups, inner, outer = d.pick(1, 2), d.pick(1, 2), d.pick(2, 4), d.pick(1, 2, 3)
    out = [(size[i] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(2)]
    if min(out) < 1:
        pads, dilations = [1, 1, 1, 1], [1, 1]
        out = [(size[i] + 2 - kernel[i]) // strides[i] + 1 for i in range(2)]
    dtype = d.type_for(op, allowed=FLOATS)
    taps = kernel[0] * kernel[1]
    inputs = [d.feed(d.values(dtype, (2, groups * inner, *size))),
              d.either(d.values(dtype, (groups * outer, inner, *kernel))),
              d.feed(d.values(dtype, (2, offset_groups * taps * 2, *out)))]
    if d.chance(0.6):
        inputs.append(d.either(d.values(dtype, (groups * outer,))) if d.chance(0.5) else "")
        if d.chance(0.6):
            inputs.append(d.feed(d.values(dtype, (2, offset_groups * taps, *out), "unit")))
    return [d.node(op, inputs, kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=groups,
                   offset_group=offset_groups)]
