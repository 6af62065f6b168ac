"""Cases of operators that move elements or give them another shape, and of those about shapes and constants."""
import numpy as np
from onnx import helper, numpy_helper

from case import covers
from draw import DTYPES, FLOATS, INTEGERS, NARROW


def data(d, op, shape, index=0):
    return d.feed(d.values(d.type_for(op, index), shape))


@covers("Concat", lowest=4)
def concat(d, op):
    dtype = d.type_for(op)
    shape = d.shape(1, 5, 512)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.whole(0, len(shape) - 1)
    parts = []
    for _ in range(d.whole(1, 4)):
        part = list(shape)
        part[axis] = d.pick(1, 2, 3, 5, 0 if d.chance(0.1) else 4)
        parts.append(d.either(d.values(dtype, part), 0.2))
    if not d.feeds:
        parts.append(d.feed(d.values(dtype, shape)))
    return [d.node(op, parts, axis=axis)]


@covers("Split", lowest=2)
def split(d, op):
    dtype = d.type_for(op)
    shape = list(d.shape(1, 4, 512, empty=False))
    axis = d.axis(len(shape)) if d.opset >= 11 else d.whole(0, len(shape) - 1)
    parts = [d.pick(1, 2, 3, 4) for _ in range(d.whole(1, 4))]
    equal = d.chance(0.4)
    if equal:
        parts = [parts[0]] * len(parts)
    shape[axis] = sum(parts)
    attributes, inputs = {"axis": axis}, [d.feed(d.values(dtype, shape))]
    if not equal or (d.opset < 18 and d.chance(0.5)):
        if d.opset >= 13:
            inputs.append(d.constant(d.ints(*parts)))
        else:
            attributes["split"] = parts
    elif d.opset >= 18:
        attributes["num_outputs"] = len(parts)
        if len(parts) > 1 and d.chance(0.4) and parts[0] > 1:  # the last part is smaller
            shape[axis] -= d.whole(1, parts[0] - 1)
            inputs = [d.feed(d.values(dtype, shape))]
            d.feeds.pop(next(iter(d.feeds)))
    made = d.node(op, inputs, outputs=len(parts), **attributes)
    return made if len(parts) > 1 else [made]


@covers("Slice")
def slice_(d, op):
    shape = d.shape(1, 4)
    x = data(d, op, shape)
    axes = sorted(d.dice.sample(range(len(shape)), d.whole(1, len(shape))))
    stepped = d.opset >= 10
    starts, ends, steps = [], [], []
    for a in axes:
        n, step = shape[a], d.pick(1, 1, 1, 2, 3, -1, -2) if stepped else 1
        low, high = sorted((d.whole(0, n), d.whole(0, n)))
        start, end = (low, high) if step > 0 else (high - 1 if high else 0, low - 1)
        if step > 0:
            end = d.pick(end, 2**31 - 1, 1 << 40) if d.chance(0.2) else end
            start = start - n if n and d.chance(0.3) and 0 <= start < n else start
            end = end - n if n and d.chance(0.3) and 0 < end < n else end
        else:
            end = -(1 << 40) if end < 0 else end
        starts.append(start), ends.append(end), steps.append(step)
    named = [a - len(shape) if stepped and d.chance(0.3) else a for a in axes]
    if not stepped:
        return [d.node(op, [x], starts=starts, ends=ends, axes=named)]
    lists = [d.constant(np.array(v, np.int64)) for v in (starts, ends, named, steps)]
    return [d.node(op, [x, *lists])]


def factors(d, count):
    """A shape of as many elements."""
    shape = []
    while count > 1:
        part = d.dice.choice([f for f in range(1, count + 1) if count % f == 0])
        shape.append(part)
        count //= part
        if len(shape) == 5:
            shape[-1] *= count
            break
    return shape or [1]


@covers("Reshape")
def reshape(d, op):
    shape = d.shape(0, 5, empty=False)
    x = data(d, op, shape)
    target = factors(d, int(np.prod(shape, dtype=int)))
    if d.chance(0.5):
        target[d.whole(0, len(target) - 1)] = -1
    for i in range(min(len(target), len(shape))):
        if target[i] == shape[i] and d.chance(0.5):
            target[i] = 0
    if d.opset < 5:
        return [d.node(op, [x], shape=target)]
    return [d.node(op, [x, d.either(d.ints(*target), 0.7)])]


@covers("Flatten")
def flatten(d, op):
    shape = d.shape(1, 4)
    return [d.node(op, [data(d, op, shape)], axis=d.pick(None, d.whole(0 if d.opset < 11 else -len(shape), len(shape))))]


@covers("Squeeze", "Unsqueeze")
def squeeze(d, op):
    shape = list(d.shape(1, 3))
    axes = sorted(d.dice.sample(range(len(shape) + 2), 2))
    wide = list(shape)
    for a in axes:
        wide.insert(a, 1)
    x = data(d, op, wide if op == "Squeeze" else shape)
    named = [a - len(wide) if d.opset >= 11 and d.chance(0.4) else a for a in axes]
    if op == "Squeeze" and d.chance(0.2):
        return [d.node(op, [x])]
    if d.opset < 13:
        return [d.node(op, [x], axes=named)]
    return [d.node(op, [x, d.either(d.ints(*named), 0.7)])]


@covers("Transpose")
def transpose(d, op):
    shape = d.shape(0, 6)
    order = d.dice.sample(range(len(shape)), len(shape))
    return [d.node(op, [data(d, op, shape)], perm=order if d.chance(0.8) and order else None)]


@covers("Expand", lowest=8)
def expand(d, op):
    whole = d.shape(1, 5)
    shape = tuple(1 if d.chance(0.4) else s for s in whole)[d.whole(0, len(whole)) if d.chance(0.3) else 0:]
    target = [1 if s == t and d.chance(0.3) else t for s, t in zip((1,) * (len(whole) - len(shape)) + shape, whole)]
    return [d.node(op, [data(d, op, shape), d.either(d.ints(*target), 0.7)])]


@covers("Tile", lowest=6)
def tile(d, op):
    shape = d.shape(1, 4, 256)
    return [d.node(op, [data(d, op, shape), d.either(d.ints(*(d.pick(1, 1, 2, 3, 0 if d.chance(0.1) else 1) for _ in shape)),
                                                     0.7)])]


@covers("Pad")
def pad(d, op):
    shape = d.shape(1, 4, 512, empty=False)
    mode = d.pick("constant", "constant", "reflect", "edge", "wrap" if d.opset >= 19 else "edge")
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS + ("bool",) + NARROW)
    x = d.feed(d.values(dtype, shape))
    most = [s - 1 if mode == "reflect" else s if mode == "wrap" else 4 for s in shape]
    pads = [d.whole(0, max(0, min(m, 4))) for m in most * 2]
    if mode == "constant" and d.chance(0.2):  # negative pads cut
        at = d.whole(0, len(shape) - 1)
        if shape[at] > 1:
            pads[at] = -1
    if d.opset < 11:
        value = round(d.dice.uniform(-2, 2), 2) if mode == "constant" else None
        return [d.node(op, [x], mode=mode if mode != "constant" or d.chance(0.5) else None, value=d.pick(value, None),
                       **{"paddings" if d.opset < 2 else "pads": pads})]
    inputs = [x, d.either(d.ints(*pads), 0.7)]
    if mode == "constant" and d.chance(0.6):
        inputs.append(d.either(d.values(dtype, ())))
    if d.opset >= 18 and d.chance(0.3) and len(shape) > 1:
        axes = sorted(d.dice.sample(range(len(shape)), d.whole(1, len(shape))))
        half = len(shape)
        inputs[1] = d.constant(d.ints(*(pads[a] for a in axes), *(pads[half + a] for a in axes)))
        inputs += [""] * (3 - len(inputs))
        inputs.append(d.constant(d.ints(*(a - half if d.chance(0.4) else a for a in axes))))
    return [d.node(op, inputs, mode=mode)]


@covers("DepthToSpace", "SpaceToDepth")
def blocks(d, op):
    block = d.pick(1, 2, 2, 3)
    n, c, h, w = d.pick(1, 2), d.pick(1, 2, 3, 8), d.pick(1, 2, 5), d.pick(1, 3, 4)
    shape = (n, c * block * block, h, w) if op == "DepthToSpace" else (n, c, h * block, w * block)
    mode = d.pick(None, "DCR", "CRD") if op == "DepthToSpace" and d.opset >= 11 else None
    return [d.node(op, [data(d, op, shape)], blocksize=block, mode=mode)]


@covers("Dropout")
def dropout(d, op):
    dtype = d.type_for(op, allowed=FLOATS)
    x = d.feed(d.values(dtype, d.shape(1, 4)))
    return [d.node(op, [x], is_test=1 if d.opset < 7 else None, ratio=0.3 if d.opset < 12 and d.chance(0.5) else None)]


@covers("Trilu", lowest=14)
def trilu(d, op):
    shape = (*d.shape(0, 2, 12), d.pick(1, 2, 3, 7), d.pick(1, 2, 5, 8))
    x = data(d, op, shape)
    offset = [d.either(np.array(d.whole(-4, 4), np.int64), 0.7)] if d.chance(0.6) else []
    return [d.node(op, [x, *offset], upper=d.pick(None, 0, 1))]


@covers("CenterCropPad", lowest=18)
def center(d, op):
    shape = d.shape(1, 4, 512, empty=False)
    axes = sorted(d.dice.sample(range(len(shape)), d.whole(1, len(shape))))
    target = d.constant(d.ints(*(d.whole(1, 9) for _ in axes)))
    return [d.node(op, [data(d, op, shape), target], axes=[a - len(shape) if d.chance(0.3) else a for a in axes])]


@covers("Constant", "ConstantOfShape", lowest=9)
def constants(d, op):
    """A constant meets a run-time tensor: one alone would be no computation."""
    dtype = d.pick("float", "float", "int64", "int32", "double")
    if op == "ConstantOfShape":
        value = numpy_helper.from_array(d.values(dtype, (1,)), "value") if d.chance(0.7) else None
        dtype = dtype if value else "float"
        made = d.node(op, [d.either(d.ints(*d.shape(1, 3)), 0.5)], value=value)
    elif dtype in ("float", "int64") and d.opset >= 12 and d.chance(0.6):
        word = {"float": "value_float", "int64": "value_int"}[dtype]
        single = float(round(d.dice.uniform(-2, 2), 2)) if dtype == "float" else d.whole(-5, 5)
        made = d.node(op, [], **({word: single} if d.chance(0.5) else {word + "s": [single, single]}))
    else:
        made = d.node(op, [], value=numpy_helper.from_array(d.values(dtype, d.shape(0, 2, empty=False)), "value"))
    if op == "Constant":
        return [d.node("Add", [made, d.feed(d.values(dtype, (1,)))])]
    return [made]


@covers("Shape", "Size")
def shapes(d, op):
    x = data(d, op, d.shape(0, 5))
    limits = {"start": d.pick(None, 0, 1, -2), "end": d.pick(None, 2, -1, 9)} if op == "Shape" and d.opset >= 15 else {}
    return [d.node(op, [x], **limits)]


@covers("Range", lowest=11)
def range_(d, op):
    dtype = d.pick("int32", "int64", "float", "double")
    start, step, count = d.whole(-5, 5), d.pick(1, 2, 3, -1, -2), d.whole(0, 9)
    limits = [np.array(v, DTYPES[dtype]) for v in (start, start + step * count, step)]
    name = d.node(op, [d.either(v) for v in limits])
    return [name if d.feeds else d.node("Add", [name, d.feed(d.values(dtype, (1,)))])]
