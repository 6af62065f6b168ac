"""Bounds of operators that are more than one sum or one function; see errors.py."""
import numpy as np
from onnx import helper

from errors import FUNCTION, REWRITES, finite, moved, rule
from exact import REAL, NoOracle, evaluate


def reduced(call):
    """(axes, number of elements) of a reduction, from input or attribute."""
    x = call.inputs[0].value
    axes = call.attributes.get("axes")
    if len(call.inputs) > 1 and call.inputs[1] is not None:
        axes = list(call.inputs[1].value) or None
    if axes is None:
        axes = [] if call.attributes.get("noop_with_empty_axes", 0) else list(range(x.ndim))
    return tuple(int(a) % max(x.ndim, 1) for a in axes) if x.ndim else (), x


def reduction(call):
    """Products and roots keep a relative error, logarithms turn it into an absolute one."""
    outputs = call.run()
    if call.dtypes[0] not in REAL:
        return outputs, [None]
    axes, x = reduced(call)
    n = int(np.prod([x.shape[a] for a in axes], dtype=int)) + REWRITES
    y, op = outputs[0], call.node.op_type
    relative = np.broadcast_to(n * call.unit, np.shape(y)).astype(float)
    if call.inexact():
        raise NoOracle(f"no rule for the error that {op} makes of its input's")
    size = np.abs(finite(y))
    if op == "ReduceLogSum":
        return outputs, [relative + FUNCTION * call.unit * size]
    if op == "ReduceLogSumExp":
        largest = np.abs(finite(x)).max() if x.size else 0
        return outputs, [relative + FUNCTION * call.unit * (1 + size + largest)]
    return outputs, [(relative + FUNCTION * call.unit) * size]


def softmax(call):
    """exp(x - max) / sum: the difference rounds once, the sum n times."""
    outputs = call.run()
    x, y = finite(call.inputs[0].value), finite(outputs[0])
    old = call.opset < 13
    axis = call.attributes.get("axis", 1 if old else -1) % max(x.ndim, 1)
    flat = x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1) if old else np.moveaxis(x, axis, -1)
    error = call.error(0).reshape(flat.shape) if old else np.moveaxis(call.error(0), axis, -1)
    n = flat.shape[-1]
    top = flat.max(-1, keepdims=True) if n else 0
    moved = 2 * error.max(-1, keepdims=True) if n else 0
    relative = call.unit * (np.abs(flat - top) + 2 * n + 2 * FUNCTION) + moved
    relative = np.expm1(np.minimum(relative, 700))
    if call.node.op_type == "LogSoftmax":
        bound = relative + call.unit * (np.abs(flat) + np.abs(top))
        bound = bound.reshape(x.shape) if old else np.moveaxis(bound, -1, axis)
        return outputs, [bound + FUNCTION * call.unit * np.abs(y)]
    bound = relative.reshape(x.shape) if old else np.moveaxis(relative, -1, axis)
    return outputs, [bound * np.abs(y)]


def statistics_axes(call, x):
    op, a = call.node.op_type, call.attributes
    if op in ("LayerNormalization", "RMSNormalization"):
        return tuple(range(a.get("axis", -1) % x.ndim, x.ndim))
    if op == "MeanVarianceNormalization":
        return tuple(v % x.ndim for v in a.get("axes", [0, 2, 3]))
    if op == "LpNormalization":
        return (a.get("axis", -1) % x.ndim,)
    return tuple(range(2, x.ndim))


def normalization(call):
    """(x - mean) / deviation * scale + bias: the mean errs by n units of the mean magnitude, the variance, a sum of squares of
    differences, by n units of itself and by the square of the mean's error."""
    outputs = call.run()
    x, op = call.inputs[0].value, call.node.op_type
    shape = x.shape
    if op == "GroupNormalization":
        x = x.reshape(shape[0], call.attributes["num_groups"], -1)
        axes = (2,)
    else:
        axes = statistics_axes(call, x)
    centred = op not in ("RMSNormalization", "LpNormalization")
    n = int(np.prod([x.shape[a] for a in axes], dtype=int))
    epsilon = {"MeanVarianceNormalization": 1e-9, "LpNormalization": 0.0}.get(op, call.attributes.get("epsilon", 1e-5))
    e = call.error(0).reshape(x.shape)
    mean = x.mean(axes, keepdims=True) if centred else 0
    mean_error = (n * call.unit * np.abs(x).mean(axes, keepdims=True) + e.mean(axes, keepdims=True)) if centred else 0
    d = x - mean
    d_error = e + mean_error + call.unit * (np.abs(x) + np.abs(mean))
    variance = (d * d).mean(axes, keepdims=True) + epsilon
    deviation = np.sqrt(variance)
    v_error = (2 * np.abs(d) * d_error + d_error ** 2).mean(axes, keepdims=True) + n * call.unit * variance
    with np.errstate(all="ignore"):
        relative = np.minimum(v_error / variance, 1e300)
        left = np.maximum(1 - relative, 0)
        stretch = 1 / np.sqrt(left) - 1 + FUNCTION * call.unit
        y_error = d_error / deviation * (1 + stretch) + np.abs(d) / deviation * stretch
        if op == "LpNormalization":
            total = (np.abs(x) ** call.attributes.get("p", 2)).sum(axes, keepdims=True) ** (1 / call.attributes.get("p", 2))
            y_error = np.where(total > 0, np.abs(x) / np.where(total > 0, total, 1) * (n + FUNCTION) * call.unit, 0)
    y_error = np.where(np.isnan(y_error), np.inf, y_error).reshape(shape)
    scale = call.inputs[1].value if len(call.inputs) > 1 else np.ones(())
    if op in ("InstanceNormalization", "GroupNormalization"):
        if scale.size != shape[1]:
            scale = np.repeat(scale, shape[1] // scale.size)
        scale = scale.reshape(-1, *[1] * (len(shape) - 2))
    size = np.abs(finite(outputs[0]))
    bias = np.abs(call.inputs[2].value).max(initial=0) if len(call.inputs) > 2 and call.inputs[2] is not None else 0
    bounds = [y_error * np.abs(scale) + REWRITES * call.unit * (2 * size + 2 * bias)]
    if len(outputs) > 1:
        bounds += [np.broadcast_to(mean_error, outputs[1].shape),
                   np.broadcast_to((stretch + FUNCTION * call.unit) / deviation, outputs[2].shape)]
    return outputs, bounds


def batch_normalization(call):
    """A factor and a term per channel, folded in single precision: each may lose to cancellation."""
    outputs = call.run()
    x, scale, bias, mean, variance = (v.value for v in call.inputs[:5])
    column = [-1] + [1] * (x.ndim - 2)
    factor = np.abs(scale / np.sqrt(variance + call.attributes.get("epsilon", 1e-5))).reshape(column)
    size = factor * (np.abs(finite(x)) + np.abs(mean).reshape(column)) + np.abs(bias).reshape(column)
    return outputs, [(2 * REWRITES * call.unit + call.stored) * size + factor * call.error(0) * (1 + 1e-6)]


def local_response(call):
    outputs = call.run()
    return outputs, [(call.attributes["size"] + 4 * FUNCTION) * call.unit * np.abs(outputs[0]) + (
        np.inf if call.inexact() else 0)]


def power_mean(call):
    outputs = call.run()
    n = int(np.prod(call.attributes.get("kernel_shape", call.inputs[0].value.shape[2:]), dtype=int))
    return outputs, [(n + 2 * FUNCTION) * call.unit * np.abs(outputs[0]) + (np.inf if call.inexact() else 0)]


def attention(call):
    """Scores are sums of products, their exponentials' errors relative, the last sum weighs magnitudes of values."""
    q, k, v = (call.inputs[i].value for i in range(3))
    outputs = call.run()
    heads = call.attributes.get("q_num_heads")
    size = q.shape[-1] // heads if heads else q.shape[-1]
    n, largest = k.shape[-2], lambda a: np.abs(finite(a)).max(initial=0)
    scale = call.attributes.get("scale", 1 / np.sqrt(size))
    score = size * largest(q) * largest(k) * abs(scale)
    mask = largest(call.inputs[3].value.astype(float)) if len(call.inputs) > 3 and call.inputs[3] is not None and \
        call.inputs[3].real else 0
    unit = max(call.unit, 2.0 ** -24)  # softmax_precision is open: the evaluator takes single precision for doubles too
    relative = 2 * ((size + FUNCTION) * unit * score + unit * mask) + (2 * n + 3 * FUNCTION) * unit
    return outputs, [np.full(outputs[0].shape, np.expm1(min(relative, 700)) * 2 * largest(v))]


def rotary(call):
    outputs = call.run()
    x, cosine, sine = (np.abs(call.inputs[i].value).max(initial=0) for i in range(3))
    return outputs, [np.full(outputs[0].shape, REWRITES * call.unit * x * (cosine + sine))]


def sampled(call):
    """Positions are computed in single precision; what an element of position is worth is at most the range of the values
    times the steepness of the kernel (1 linear, 2 cubic, per axis); nearest takes elements as they are."""
    mode = call.attributes.get("mode", b"nearest" if call.node.op_type != "GridSample" else b"linear").decode()
    if mode == "nearest":
        return moved(call, places=(1, 2, 3))
    outputs = call.run()
    x = finite(call.inputs[0].value)
    largest = np.abs(x).max(initial=0)
    axes = x.ndim - 2
    steep = {"linear": 1.0, "bilinear": 1.0}.get(mode, 2.0)
    # The evaluator's GridSample places in single precision whatever the type.
    unit = max(call.unit, 2.0 ** -24) if call.node.op_type == "GridSample" else call.unit
    position = REWRITES * unit * (max((*x.shape, *outputs[0].shape)) + 2) * 2  # of a coordinate, in elements
    weights = {"linear": 1.0, "bilinear": 1.0}.get(mode, 2.0) ** axes
    bound = (axes * position * steep * 2 + (4 ** axes + REWRITES) * call.unit) * weights * largest
    if call.attributes.get("exclude_outside", 0) or call.attributes.get("antialias", 0):
        bound *= 16  # divided by the sum of the remaining weights
    if call.inexact():
        bound = bound + weights * (16 if bound is not None and call.attributes.get("antialias", 0) else 1) * \
            call.error(0).max(initial=0)
    return outputs, [np.full(outputs[0].shape, bound)]


def deformed(call):
    outputs = call.run()
    x, w = (np.abs(call.inputs[i].value) for i in range(2))
    n = int(np.prod(w.shape[1:]))
    reach = np.abs(call.inputs[2].value).max(initial=0) + max(x.shape)
    each = (8 * REWRITES * call.unit * reach + n * call.unit) * x.max(initial=0) * w.max(initial=0)
    return outputs, [np.full(outputs[0].shape, n * each + FUNCTION * call.unit * np.abs(outputs[0]).max(initial=0))]


def scattered(call):
    if call.attributes.get("reduction", b"none") == b"none" or call.dtypes[0] not in REAL:
        return moved(call)
    outputs = call.run()
    data, update = call.inputs[0].value, call.inputs[2].value
    sizes = evaluate(call.node, call.opset, [np.abs(data), call.inputs[1].value, np.abs(update)])[0]
    return outputs, [(update.size + 1) * max(call.unit, REAL[call.dtypes[0]][1]) * np.abs(sizes)]


def cast(call):
    """To a narrower type: rounds once, and what was in doubt may round to either neighbour."""
    to = call.dtypes[0]
    source = call.inputs[0]
    if to in REAL and source.real:
        return [source.value], [source.error]
    if source.real:
        array = source.value.astype(source.dtype)
        return evaluate(call.node, call.opset, [array, *call.arrays()[1:]]), [None]
    outputs = call.run()
    return outputs, [None]


def quantize(call):
    """By the text the quotient is computed in the scale's type and rounded once: the cases keep away from ties that a last bit
    decides, a graph's inexact values may fall to either side."""
    types = [None if v is None else v.value.astype(v.dtype) if v.real else v.value for v in call.inputs]
    outputs = evaluate(call.node, call.opset, types)
    if not call.inexact():
        return outputs, [None]
    low, high = types[:], types[:]
    x = call.inputs[0]
    low[0] = np.maximum(x.value - x.error, -3e38).astype(x.dtype)
    high[0] = np.minimum(x.value + x.error, 3e38).astype(x.dtype)
    ends = [evaluate(call.node, call.opset, a)[0].astype(np.float64) for a in (low, high)]
    middle = outputs[0].astype(np.float64)
    return outputs, [np.maximum(np.abs(ends[0] - middle), np.abs(ends[1] - middle))]


def dequantize(call):
    """(q - zero) * scale: one product; steps of an uncertain q count the scale."""
    types = [None if v is None else v.value.astype(v.dtype) if v.real else v.value for v in call.inputs]
    outputs = evaluate(call.node, call.opset, types)
    outputs = [np.asarray(outputs[0]).astype(np.float64)]
    bound = 2 * call.unit * np.abs(outputs[0])
    if np.any(call.error(0)):
        scale = call.inputs[1].value
        if scale.ndim and scale.size > 1:
            scale = scale.reshape([-1 if i == call.attributes.get("axis", 1) % outputs[0].ndim else 1
                                   for i in range(outputs[0].ndim)])
        bound = bound + call.error(0) * np.abs(scale)
    return outputs, [bound]


def requantized(call, real, scale, origin):
    """Integers of a real value in double: those that its error in single precision could round to."""
    dtype = call.dtypes[0]
    info = np.iinfo(dtype)
    quotient = real / scale
    slack = np.abs(quotient) * REWRITES * 2.0 ** -24
    ends = [np.clip(np.round(quotient + s * slack) + origin, info.min, info.max) for s in (0, -1, 1)]
    return [ends[0].astype(dtype)], [np.maximum(np.abs(ends[1] - ends[0]), np.abs(ends[2] - ends[0]))]


def real_of(call, at, axis=None):
    """Operand at..at+2 as real numbers: (q - zero) * scale, per filter along `axis`."""
    q, scale, origin = (call.inputs[at + i].value for i in range(3))
    form = [1] * q.ndim
    if axis is not None and scale.size > 1:
        form[axis] = -1
        scale = scale.reshape(form)
    if axis is not None and origin.size > 1:
        origin = origin.reshape([-1 if i == axis else 1 for i in range(q.ndim)])
    return (q.astype(np.float64) - origin.astype(np.float64)) * scale.astype(np.float64)


def linear_product(call):
    x, w = real_of(call, 0), real_of(call, 3, 0 if call.node.op_type == "QLinearConv" else -1)
    if call.node.op_type == "QLinearConv":
        node = helper.make_node("Conv", ["x", "w"], ["y"], **call.attributes)
        real = evaluate(node, 13, [x, w])[0]
        if len(call.inputs) > 8:
            factor = call.inputs[1].value.astype(np.float64) * call.inputs[4].value.astype(np.float64)
            real = real + (call.inputs[8].value * factor).reshape(-1, *[1] * (x.ndim - 2))
    else:
        real = x @ w
    return requantized(call, real, call.inputs[6].value.astype(np.float64), call.inputs[7].value.astype(np.float64))


def linear_add(call):
    real = real_of(call, 0) + real_of(call, 3)
    return requantized(call, real, call.inputs[6].value.astype(np.float64), call.inputs[7].value.astype(np.float64))


def linear_average(call):
    x = real_of(call, 0)
    real = x.mean(tuple(range(2, x.ndim)), keepdims=True)
    return requantized(call, real, call.inputs[3].value.astype(np.float64), call.inputs[4].value.astype(np.float64))


def dynamic(call):
    """In single precision, as the text writes it; the scale rounds once more."""
    x = call.inputs[0].value.astype(np.float32)
    outputs = evaluate(call.node, call.opset, [x])
    scale = np.asarray(outputs[1], np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(x / scale - np.round(x / scale))
    unsure = (np.abs(near - 0.5) < 1e-4).astype(float)  # the cases seldom have any: their scale is a whole number
    return [outputs[0], scale, outputs[2]], [unsure, 2 * call.unit * np.abs(scale), None]


rule(reduction, "ReduceProd", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
rule(softmax, "Softmax", "LogSoftmax")
rule(normalization, "InstanceNormalization", "LayerNormalization", "RMSNormalization", "GroupNormalization",
     "MeanVarianceNormalization", "LpNormalization")
rule(batch_normalization, "BatchNormalization")
rule(local_response, "LRN")
rule(power_mean, "LpPool", "GlobalLpPool")
rule(attention, "Attention")
rule(rotary, "RotaryEmbedding")
rule(sampled, "Resize", "Upsample", "GridSample")
rule(deformed, "DeformConv")
rule(scattered, "Scatter", "ScatterElements", "ScatterND")
rule(cast, "Cast", "CastLike")
rule(quantize, "QuantizeLinear")
rule(dequantize, "DequantizeLinear")
rule(linear_product, "QLinearConv", "QLinearMatMul")
rule(linear_add, "QLinearAdd")
rule(linear_average, "QLinearGlobalAveragePool")
rule(dynamic, "DynamicQuantizeLinear")
