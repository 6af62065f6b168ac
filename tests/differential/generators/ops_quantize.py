"""Cases of quantised operators. Scales are powers of two where a quotient would else be a matter of one rounding."""
import numpy as np

from case import covers
from draw import DTYPES, elem_type
from generators.ops_windows import channels, sizes, window

BYTES = ("int8", "uint8")


def scale(d, shape=()):
    return (2.0 ** d.numbers.integers(-6, 0, shape)).astype(np.float32) * np.float32(d.pick(1, 1, 1.25))


def zero(d, dtype, shape=()):
    info = np.iinfo(DTYPES[dtype])
    return d.numbers.integers(max(info.min, -20), min(info.max, 20), shape).astype(DTYPES[dtype])


def rounded(d, shape, reach=100):
    """Values that lie a quarter from each half: their quotients round the same way whatever the last bit."""
    return d.numbers.integers(-reach, reach, shape)


@covers("QuantizeLinear", "DequantizeLinear", lowest=10)
def quantize(d, op):
    shape = d.shape(1, 4, 1024)
    axis = d.axis(len(shape))
    per_axis = d.opset >= 13 and d.chance(0.5)
    size = shape[axis:axis + 1] if axis != -1 else shape[-1:]
    size = size if per_axis else ()
    types = list(BYTES) + (["int16", "uint16", "float8e4m3fn", "float8e5m2", "int4", "uint4"] if d.opset >= 21 else [])
    target = d.dice.choice(types if d.chance(0.5) else list(BYTES))
    real = d.pick("float", "float", "float", "float16", "bfloat16") if d.opset >= 21 else "float"
    factor = (2.0 ** d.numbers.integers(-6, 0, size)).astype(DTYPES[real])
    narrow = target.startswith("float")
    plain = target in BYTES + ("int16", "uint16")
    attributes = {"axis": axis} if per_axis else {}
    inputs = []
    if op == "QuantizeLinear":
        spread = factor.astype(np.float64).reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))] if size
                                                   else ())
        x = (rounded(d, shape, 300 if plain else 6) + d.pick(0, 0.25, 0.5)) * spread
        inputs = [d.feed(x.astype(DTYPES[real]))]
    else:
        inputs = [d.feed(d.values(target, shape))]
    inputs.append(d.either(factor, 0.8))
    if d.chance(0.7) or target not in ("uint8",):
        origin = np.zeros(size, DTYPES[target]) if narrow or not plain else zero(d, target, size)
        if op == "QuantizeLinear" and d.opset >= 21 and not origin.any() and d.chance(0.3):
            attributes["output_dtype"] = int(elem_type(DTYPES[target]))
        else:
            inputs.append(d.either(origin, 0.8))
    return [d.node(op, inputs, **attributes)]


@covers("DynamicQuantizeLinear", lowest=11)
def dynamic(d, op):
    x = rounded(d, d.shape(1, 3, 500, empty=False)).astype(np.float32)
    x.reshape(-1)[0] = 255 - max(0, x.max())  # the range is often 255: the scale is exact
    if x.size > 1 and d.chance(0.7):
        x = np.clip(np.abs(x), 0, 255).astype(np.float32)
        x.reshape(-1)[:2] = (0, 255)
    return d.node(op, [d.feed(x)], outputs=3)


def windows(d):
    axes = d.pick(1, 2, 2)
    size = sizes(d, axes)
    groups, inner, outer = channels(d)
    kernel, attributes = window(d, axes, size)
    return ((d.pick(1, 2), groups * inner, *size), (groups * outer, inner, *kernel),
            {**attributes, "kernel_shape": kernel, "group": groups})


@covers("ConvInteger", "MatMulInteger", lowest=10)
def integer_products(d, op):
    left, right = d.pick("uint8", "int8"), d.pick("uint8", "int8")
    if op == "ConvInteger":
        a, b, attributes = windows(d)
    else:
        m, n, k = d.pick(1, 3, 8, 17), d.pick(1, 4, 16, 33), d.pick(1, 2, 5, 16, 64)
        a, b, attributes = (*d.shape(0, 2, 6, empty=False), m, k), (k, n), {}
    inputs = [d.feed(full(d, left, a)), d.either(full(d, right, b), 0.8)]
    if d.chance(0.7):
        inputs.append(d.either(zero(d, left), 0.8))
        if d.chance(0.7):
            per_filter = (b[0] if op == "ConvInteger" else b[-1],) if d.chance(0.3) else ()
            inputs.append(d.either(zero(d, right, per_filter), 0.8))
    return [d.node(op, inputs, **attributes)]


def full(d, dtype, shape):
    """Over the type's whole range."""
    info = np.iinfo(DTYPES[dtype])
    return d.numbers.integers(info.min, info.max, shape, dtype=DTYPES[dtype], endpoint=True)


@covers("QLinearConv", "QLinearMatMul", lowest=10)
def linear_products(d, op):
    left = d.pick("uint8", "int8")
    right = "int8" if left == "int8" else d.pick("int8", "uint8")
    if op == "QLinearConv":
        a, b, attributes = windows(d)
    else:
        m, n, k = d.pick(1, 3, 8, 17), d.pick(1, 4, 16, 33), d.pick(1, 2, 5, 16, 64)
        batch = d.shape(0, 2, 6, empty=False)
        a, b, attributes = (*batch, m, k), (*batch, k, n), {}
    per_filter = (b[0],) if op == "QLinearConv" and d.chance(0.5) else ()
    out_zero = zero(d, left)
    inputs = [d.feed(full(d, left, a)), d.constant(scale(d)), d.constant(zero(d, left)),
              d.either(full(d, right, b), 0.9), d.constant(scale(d, per_filter)),
              d.constant(zero(d, right, per_filter) if right == "uint8" and not per_filter else
                         np.zeros(per_filter, DTYPES[right])),
              d.constant(scale(d) * np.float32(64)), d.constant(out_zero)]
    if op == "QLinearConv" and d.chance(0.6):
        inputs.append(d.constant(d.numbers.integers(-5000, 5000, b[:1]).astype(np.int32)))
    return [d.node(op, inputs, **attributes)]


@covers("com.microsoft.QLinearAdd", "com.microsoft.QLinearGlobalAveragePool", lowest=13)
def extensions(d, op):
    name, dtype = op.split(".")[-1], d.pick("uint8", "int8")
    shape = (d.pick(1, 2), d.pick(1, 3, 8, 16), d.pick(1, 3, 7), d.pick(1, 4, 5))
    if name == "QLinearAdd":
        other = shape if d.chance(0.6) else (1, shape[1], 1, 1)
        operands = [v for s in (shape, other) for v in (
            d.feed(full(d, dtype, s)), d.constant(scale(d)), d.constant(zero(d, dtype)))]
        made = d.node(name, [*operands, d.constant(scale(d)), d.constant(zero(d, dtype))], domain="com.microsoft")
    else:
        made = d.node(name, [d.feed(full(d, dtype, shape)), d.constant(scale(d)), d.constant(zero(d, dtype)),
                             d.constant(scale(d)), d.constant(zero(d, dtype))], domain="com.microsoft", channels_last=0)
    return [d.typed(made, dtype)]
