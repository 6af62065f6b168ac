"""Cases of operators that read or write at places which are data."""
import numpy as np

from case import covers
from draw import DTYPES, FLOATS, INTEGERS


def places(d, high, shape):
    """Indices below `high`, counted from either end where the opset allows it."""
    low = -high if d.opset >= 11 and d.chance(0.4) else 0
    return d.numbers.integers(low, high, shape).astype(d.pick(np.int64, np.int64, np.int32))


@covers("Gather")
def gather(d, op):
    shape = d.shape(1, 4, empty=False)
    axis = d.axis(len(shape))
    index = places(d, shape[axis], d.shape(0, 2, 30))
    x = d.feed(d.values(d.type_for(op), shape))
    return [d.node(op, [x, d.either(index)], axis=axis if axis or d.chance(0.5) else None)]


@covers("GatherElements", lowest=11)
def gather_elements(d, op):
    shape = d.shape(1, 4, empty=False)
    axis = d.axis(len(shape))
    wanted = [d.whole(1, s) for s in shape]
    wanted[axis] = d.whole(1, 5)
    return [d.node(op, [d.feed(d.values(d.type_for(op), shape)), d.either(places(d, shape[axis], wanted))], axis=axis)]


def nd_places(d, shape, batch, depth, rows):
    index = np.stack([d.numbers.integers(-s if d.chance(0.3) else 0, s, (*shape[:batch], *rows))
                      for s in shape[batch:batch + depth]], -1)
    return index.astype(np.int64)


@covers("GatherND", lowest=11)
def gather_nd(d, op):
    shape = d.shape(1, 4, empty=False)
    batch = d.whole(0, len(shape) - 1) if d.opset >= 12 and d.chance(0.4) else 0
    depth = d.whole(1, len(shape) - batch)
    index = nd_places(d, shape, batch, depth, d.shape(0, 2, 12))
    return [d.node(op, [d.feed(d.values(d.type_for(op), shape)), d.either(index)], batch_dims=batch or None)]


@covers("Scatter", "ScatterElements")
def scatter_elements(d, op):
    d.opset = d.whole(9, 10) if op == "Scatter" else max(d.opset, 11)
    shape = d.shape(1, 3, 200, empty=False)
    axis = d.axis(len(shape)) if op != "Scatter" else d.whole(0, len(shape) - 1)
    reductions = ["none"] + (["add", "mul"] if d.opset >= 16 else []) + (["max", "min"] if d.opset >= 18 else [])
    reduction = d.dice.choice(reductions) if op != "Scatter" else "none"
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    wanted = [d.whole(1, s) for s in shape]
    if reduction == "none":  # each place once: which of several updates remains is open
        order = np.argsort(d.numbers.random(shape), axis=axis)
        index = order[tuple(slice(0, w) for w in wanted)]
    else:
        wanted[axis] = d.whole(1, 6)
        index = d.numbers.integers(0, shape[axis], wanted)
    update = d.values(dtype, wanted, "unit" if reduction == "mul" else "")
    return [d.node(op, [d.feed(d.values(dtype, shape)), d.either(index.astype(d.pick(np.int64, np.int32))), d.feed(update)],
                   axis=axis, reduction=reduction if reduction != "none" else None)]


@covers("ScatterND", lowest=11)
def scatter_nd(d, op):
    shape = d.shape(1, 3, 200, empty=False)
    depth = d.whole(1, len(shape))
    reductions = ["none"] + (["add", "mul"] if d.opset >= 16 else []) + (["max", "min"] if d.opset >= 18 else [])
    reduction = d.dice.choice(reductions)
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    every = np.stack(np.unravel_index(d.numbers.permutation(int(np.prod(shape[:depth]))), shape[:depth]), -1)
    index = every[:d.whole(1, min(6, len(every)))]
    if reduction != "none":
        index = np.concatenate([index, index[:2]])
    update = d.values(dtype, (len(index), *shape[depth:]), "unit" if reduction == "mul" else "")
    return [d.node(op, [d.feed(d.values(dtype, shape)), d.either(index.astype(np.int64)), d.feed(update)],
                   reduction=reduction if reduction != "none" else None)]


@covers("OneHot", lowest=9)
def one_hot(d, op):
    depth = d.whole(1, 9)
    low = -depth if d.opset >= 11 else 0
    index = d.numbers.integers(low, depth, d.shape(1, 3, 60))
    if d.chance(0.2) and index.size:
        index.reshape(-1)[0] = depth + 3  # outside: no element is on
    dtype = d.pick("float", "float", "int64", "int32")
    return [d.node(op, [d.feed(index.astype(np.int64)), d.constant(d.ints(depth)), d.either(d.values(dtype, (2,)))],
                   axis=d.pick(None, d.whole(-index.ndim - 1, index.ndim)))]


@covers("NonMaxSuppression", lowest=10)
def non_max(d, op):
    batch, count, classes = d.pick(1, 2), d.pick(1, 5, 12, 30), d.pick(1, 2, 3)
    centres = d.chance(0.4)
    # Whole numbers of sixteenths: overlaps that hit the threshold exactly are avoided by an odd threshold.
    corner, size = d.numbers.integers(0, 24, (batch, count, 2)) / 16, d.numbers.integers(4, 20, (batch, count, 2)) / 16
    boxes = np.concatenate([corner, size if centres else corner + size], -1).astype(np.float32)
    scores = (d.numbers.permutation(batch * classes * count) / 512).reshape(batch, classes, count).astype(np.float32)
    inputs = [d.feed(boxes), d.feed(scores)]
    if d.chance(0.8):
        inputs += [d.constant(d.ints(d.pick(1, 3, 10))), d.constant(np.array([d.pick(0.4637, 0.7137)], np.float32))]
        if d.chance(0.6):
            inputs.append(d.constant(np.array([0.0301], np.float32)))
    return [d.node(op, inputs, center_point_box=1 if centres else None)]
