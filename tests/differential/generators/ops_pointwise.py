"""Cases of element-wise operators: broadcasting, all types, edge values."""
import numpy as np

from case import covers
from draw import DTYPES, FLOATS, INTEGERS, NARROW, elem_type

UNARY = ("Identity Neg Abs Sign Reciprocal Sqrt Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Floor Ceil "
         "Round IsNaN Not Relu Sigmoid Tanh Softplus Softsign Mish HardSwish").split()
POSITIVE = ("Log", "Sqrt", "Acosh")
UNIT = ("Asin", "Acos", "Atanh")


def style_of(op):
    return "positive" if op in POSITIVE else "unit" if op in UNIT else ""


@covers(*UNARY)
def unary(d, op):
    d.edges = d.chance(0.3)
    x = d.values(d.type_for(op), d.shape(0, 5), style_of(op))
    if op == "Acosh":
        x = (x + np.asarray(1, x.dtype)).astype(x.dtype)
    return [d.node(op, [d.feed(x)])]


@covers("LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "HardSigmoid", "Selu", "Gelu", "Swish")
def parametric(d, op):
    d.edges = d.chance(0.3)
    x = d.feed(d.values(d.type_for(op, allowed=FLOATS), d.shape(0, 5)))
    given = d.chance(0.7)
    alpha = round(d.dice.uniform(0.05, 2), 3) * (d.pick(1, -1) if op in ("LeakyRelu", "Elu") else 1) if given else None
    if op == "Gelu":
        return [d.node(op, [x], approximate=d.pick("none", "tanh", None))]
    beta = round(d.dice.uniform(-1, 1), 3) if given and op == "HardSigmoid" else None
    gamma = round(d.dice.uniform(0.5, 2), 3) if given and op == "Selu" else None
    return [d.node(op, [x], alpha=alpha, beta=beta, gamma=gamma)]


def broadcast_shapes(d, count=2, high=5):
    """Shapes that broadcast to one: each may lack leading axes and have 1 where the whole has more."""
    whole = d.shape(0, high)
    shapes = [tuple(1 if d.chance(0.25) else s for s in whole[d.whole(0, len(whole)) if d.chance(0.3) else 0:])
              for _ in range(count)]
    shapes[d.whole(0, count - 1)] = whole
    return shapes


@covers("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual",
        "GreaterOrEqual")
def binary(d, op):
    types = FLOATS + INTEGERS if op in ("Add", "Sub", "Mul", "Div", "Mod", "PRelu", "Pow") else None
    dtype = d.type_for(op, allowed=types and tuple(types))
    a, b = broadcast_shapes(d)
    if op == "PRelu":  # the slope alone broadcasts
        a, b = (a, b) if len(a) >= len(b) and np.broadcast_shapes(a, b) == a else (b, a)
        if np.broadcast_shapes(a, b) != a:
            b = tuple(1 for _ in b)
    attributes = {}
    if d.opset < 7 and op not in ("Mod", "LessOrEqual", "GreaterOrEqual"):
        a = b = d.shape(1, 4)
        if op == "PRelu":
            b = (1,)
        elif len(a) > 1 and d.chance(0.6):  # the old way: a run of axes from 'axis' on
            axis = d.whole(0, len(a) - 1)
            b = a[axis:d.whole(axis + 1, len(a))]
            attributes = {"broadcast": 1, "axis": axis}
    d.edges = d.chance(0.3) and op not in ("Mod", "Pow")
    x, y = d.values(dtype, a), d.values(dtype, b)
    if op in ("Div", "Mod") and dtype in INTEGERS:  # a division by zero ends other engines
        y = np.where((y == 0) | (y == np.array(-1).astype(y.dtype)), np.array(3, y.dtype), y)
    if op == "Mod":
        attributes["fmod"] = 1 if dtype in FLOATS else d.pick(0, 1)
        if dtype in FLOATS:  # whole numbers: a quotient near a whole number is a cliff
            x, y = d.values(dtype, a, "small"), (d.values(dtype, b, "small") * 2 + 1).astype(DTYPES[dtype])
    if op == "Pow":
        if dtype in FLOATS:
            x = np.abs(x).astype(x.dtype) + np.asarray(0.1, x.dtype)
            y = d.values(dtype, b, "unit") if d.chance(0.5) else d.values(dtype, b, "small")
        else:
            x, y = d.values(dtype, a, "small"), np.abs(d.values(dtype, b, "small")) % 4
            y = y.astype(DTYPES[dtype])
    if op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal") and dtype in FLOATS and not d.edges:
        x, y = np.round(x), np.round(y)
    if op == "PRelu" and d.opset < 7:
        return [d.node(op, [d.feed(x), d.constant(y)])]
    return [d.node(op, [d.either(x, 0.3) if np.prod(b) else d.feed(x), d.feed(y)], **attributes)]


@covers("Sum", "Max", "Min", "Mean")
def variadic(d, op):
    d.edges = d.chance(0.3)
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    count = d.whole(1, 4)
    shapes = broadcast_shapes(d, count) if d.opset >= 8 else [d.shape(1, 4)] * count
    return [d.node(op, [d.feed(d.values(dtype, s)) for s in shapes])]


@covers("Where", lowest=9)
def where(d, op):
    d.edges = d.chance(0.3)
    dtype = d.type_for(op, 1)
    c, x, y = broadcast_shapes(d, 3)
    return [d.node(op, [d.feed(d.values("bool", c)), d.feed(d.values(dtype, x)), d.either(d.values(dtype, y))])]


@covers("Clip")
def clip(d, op):
    d.edges = d.chance(0.3)
    dtype = d.type_for(op, allowed=FLOATS + INTEGERS)
    x = d.feed(d.values(dtype, d.shape(0, 5)))
    low, high = sorted(d.whole(0, 5) - (2 if not dtype.startswith("u") else 0) for _ in range(2))
    if d.opset < 11:
        return [d.node(op, [x], min=d.pick(None, float(low)), max=d.pick(None, float(high)))]
    bounds = [d.either(np.array(v, DTYPES[dtype])) if d.chance(0.8) else "" for v in (low, high)]
    return [d.node(op, [x, *bounds])]


@covers("Cast", "CastLike", lowest=6)
def cast(d, op):
    """Within the range of both types: what lies outside is for unit tests, engines differ there."""
    source = d.type_for(op)
    target = d.type_for(op, 1 if op == "CastLike" else 0)
    if d.opset < 19:
        source, target = (t if t not in NARROW else "float" for t in (source, target))
    if op == "Cast" and target == "bfloat16" and d.opset < 13:
        target = "float16"
    shape = d.shape(0, 4)
    both = {source, target}
    if both & set(NARROW):
        x = d.values(source, shape, "small") if source not in NARROW else d.values(source, shape)
        unsigned = target in ("uint4", "uint2", "float8e8m0") or target.startswith("uint")
        if source not in NARROW:
            top = {"int2": 1, "uint2": 3, "float4e2m1": 4, "float8e8m0": 4}.get(target, 4)
            x = np.clip(x.astype(np.float64), 1 if target == "float8e8m0" else 0 if unsigned else -min(top, 2), top)
            x = x.astype(DTYPES[source])
        elif unsigned or target in ("int2",):
            x = np.clip(x.astype(np.float32), 1 if target == "float8e8m0" else 0, 1).astype(DTYPES[source])
    elif target in FLOATS:
        d.edges = source in FLOATS and d.chance(0.3)
        x = d.values(source, shape)
    elif source in FLOATS:
        x = d.values(source, shape) * np.asarray(3, DTYPES[source])
        x = np.abs(x).astype(DTYPES[source]) if target.startswith("u") else x
    else:
        x = d.values(source, shape)
    if op == "CastLike":
        return [d.node(op, [d.feed(x), d.either(d.values(target, (1,)))])]
    return [d.node(op, [d.feed(x)], to=elem_type(DTYPES[target]))]
