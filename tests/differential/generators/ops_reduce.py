"""Cases of reductions, running sums and searches along an axis."""
import numpy as np

from case import covers
from draw import FLOATS, INTEGERS

REDUCTIONS = ("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum "
              "ReduceLogSumExp").split()


@covers(*REDUCTIONS)
def reduction(d, op):
    dtype = d.type_for(op, allowed=FLOATS + (INTEGERS if op not in (
        "ReduceLogSum", "ReduceLogSumExp", "ReduceL2", "ReduceMean") else ()) + (
        ("bool",) if op in ("ReduceMax", "ReduceMin") else ()))
    smooth = dtype in ("float", "double")
    shape = d.shape(0 if smooth else 1, 5, empty=op in ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare"))
    d.edges = op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean") and d.chance(0.2)
    x = d.values(dtype, shape, "positive" if op == "ReduceLogSum" else "unit" if op == "ReduceProd" else "")
    rank = len(shape)
    at = d.dice.sample(range(rank), d.whole(1, rank)) if rank and d.chance(0.8) else []
    axes = [a - rank if d.chance(0.4) and d.opset >= 11 else a for a in at] or None
    inputs, attributes = [d.either(x, 0.15)], {"keepdims": d.pick(None, 0, 1)}
    newer = d.opset >= (13 if op == "ReduceSum" else 18)
    if newer:
        if axes:
            inputs.append(d.either(d.ints(*axes), 0.8))
        elif d.chance(0.3):
            attributes["noop_with_empty_axes"] = 1
            if d.chance(0.5):
                inputs.append(d.constant(d.ints()))
    else:
        attributes["axes"] = axes
    return [d.node(op, inputs, **attributes)]


@covers("ArgMax", "ArgMin")
def arg(d, op):
    shape = d.shape(1, 4, empty=False)
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    x = d.values(dtype, shape, "small")  # equal elements
    axis = d.axis(len(shape)) if d.opset >= 11 else d.whole(0, len(shape) - 1)
    return [d.node(op, [d.feed(x)], axis=d.pick(None, axis), keepdims=d.pick(None, 0, 1),
                   select_last_index=d.pick(None, 0, 1) if d.opset >= 12 else None)]


@covers("Hardmax")
def hardmax(d, op):
    shape = d.shape(1, 4, empty=False)
    dtype = d.type_for(op, allowed=FLOATS)
    axis = d.axis(len(shape)) if d.opset >= 11 else d.whole(0, len(shape) - 1)
    x = d.feed(d.values(dtype, shape, "small"))  # equal elements
    return [d.node(op, [x], axis=d.pick(axis, None) if len(shape) > 1 or d.opset >= 13 else 0)]


@covers("TopK")
def top_k(d, op):
    shape = d.shape(1, 4, empty=False)
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    x = d.values(dtype, shape, "distinct" if np.prod(shape) < 100 else "small")
    axis = d.axis(len(shape)) if d.opset >= 11 else d.whole(0, len(shape) - 1)
    k = d.whole(0 if d.chance(0.1) else 1, shape[axis])
    attributes = {"axis": axis}
    if d.opset >= 11:
        attributes["largest"] = d.pick(None, 0, 1)
    if d.opset < 10:
        return d.node(op, [d.feed(x)], outputs=2, k=max(k, 1), **attributes)
    return d.node(op, [d.feed(x), d.either(d.ints(k), 0.7)], outputs=2, **attributes)


@covers("CumSum", lowest=11)
def cum_sum(d, op):
    shape = d.shape(1, 4)
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    axis = np.array(d.axis(len(shape)), d.pick(np.int32, np.int64))
    return [d.node(op, [d.feed(d.values(dtype, shape)), d.constant(axis)], exclusive=d.pick(None, 1), reverse=d.pick(None, 1))]
