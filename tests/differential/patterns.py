"""Groups of operators that Sparkle rewrites into one, with variations that it must leave alone or take into account."""
import numpy as np

from case import Case
from draw import DTYPES, Draw, elem_type
from graphs import Growing, activation, batch_normalization

PATTERNS = {}


def pattern(function):
    PATTERNS[function.__name__] = function
    return function


def scalar(g, value):
    return g.whole(np.array(value, DTYPES[g.dtype]) if g.d.chance(0.5) else np.array([value], DTYPES[g.dtype]))


def image(g):
    d = g.d
    return g.feed((d.pick(1, 2), d.pick(1, 3, 8, 16), d.pick(1, 3, 5, 8, 14), d.pick(1, 4, 7, 12)))


def conv(g, x, filters, kernel, depthwise=False, bias=None, stride=1):
    c = g.shape(x)[1]
    inner = 1 if depthwise else c
    w = g.constant((filters, inner, kernel, kernel), 1 / np.sqrt(inner * kernel * kernel))
    inputs = [x, w] + ([g.constant((filters,))] if (g.d.chance(0.5) if bias is None else bias) else [])
    return g.add("Conv", inputs, pads=[kernel // 2] * 4, strides=[stride] * 2, group=c if depthwise else 1)


@pattern
def conv_norm_activation(g):
    d, x = g.d, image(g)
    y = conv(g, x, d.pick(1, 4, 8, 17), d.pick(1, 3, 5))
    if d.chance(0.7):
        y = batch_normalization(g, y)
    elif d.chance(0.5):
        c = g.shape(y)[1]
        y = g.add("Add", [g.add("Mul", [y, g.constant((c, 1, 1))]), g.constant((1, c, 1, 1))])
    y = activation(g, y)
    return [y] + ([g.open[-2]] if d.chance(0.15) else [])


@pattern
def norm_before_conv(g):
    x = batch_normalization(g, image(g))
    if g.d.chance(0.3):
        x = g.add("Relu", [x])
    return [conv(g, x, g.d.pick(1, 4, 8), g.d.pick(1, 3))]


@pattern
def inverted_block(g):
    d, x = g.d, image(g)
    c = g.shape(x)[1]
    wide = c * d.pick(2, 4, 6)
    kind = d.pick("Relu", "Clip", "HardSwish" if d.opset >= 14 else "Relu")

    def act(t):
        if kind == "Clip":
            return g.add("Clip", [t, g.whole(np.array(0, DTYPES[g.dtype])), g.whole(np.array(6, DTYPES[g.dtype]))])
        return g.add(kind, [t])
    y = act(conv(g, x, wide, 1))
    y = act(conv(g, y, wide, d.pick(3, 3, 5), True, stride=d.pick(1, 1, 2)))
    y = conv(g, y, c if d.chance(0.7) else d.pick(4, 8, 16), 1)
    if g.shape(y) == g.shape(x) and d.chance(0.8):
        y = g.add("Add", [y, x] if d.chance(0.5) else [x, y])
    return [y]


@pattern
def gelu(g):
    d, x = g.d, g.feed(g.d.shape(2, 4, 2000, empty=False))
    root = d.pick(np.sqrt(2), np.sqrt(2), 1.5)
    inner = g.add("Div", [x, scalar(g, root)]) if d.chance(0.6) else g.add("Mul", [x, scalar(g, 1 / root)])
    one_more = g.add("Add", [g.add("Erf", [inner]), scalar(g, d.pick(1.0, 1.0, 2.0))])
    form = d.whole(0, 2)
    if form == 0:
        return [g.add("Mul", [g.add("Mul", [x, one_more]), scalar(g, 0.5)])]
    if form == 1:
        return [g.add("Mul", [g.add("Mul", [x, scalar(g, 0.5)]), one_more])]
    return [g.add("Mul", [x, g.add("Mul", [one_more, scalar(g, 0.5)])])]


@pattern
def gelu_tanh(g):
    x = g.feed(g.d.shape(2, 4, 2000, empty=False))
    cube = g.add("Pow", [x, scalar(g, 3.0)]) if g.d.chance(0.5) else g.add("Mul", [g.add("Mul", [x, x]), x])
    inner = g.add("Add", [x, g.add("Mul", [cube, scalar(g, 0.044715)])])
    turned = g.add("Tanh", [g.add("Mul", [inner, scalar(g, np.sqrt(2 / np.pi))])])
    return [g.add("Mul", [g.add("Mul", [x, scalar(g, 0.5)]), g.add("Add", [turned, scalar(g, 1.0)])])]


@pattern
def products_with_gates(g):
    """x * sigmoid(x) and its like."""
    x, d = image(g), g.d
    if d.chance(0.5):
        x = conv(g, x, d.pick(4, 8), d.pick(1, 3))
    gate = d.pick("Sigmoid", "HardSigmoid", "Tanh")
    inner = g.add("Softplus", [x]) if gate == "Tanh" else x
    attributes = {"alpha": d.pick(1 / 6, 0.2), "beta": 0.5} if gate == "HardSigmoid" else {}
    return [g.add("Mul", [x, g.add(gate, [inner], **attributes)])]


@pattern
def relu6_by_hand(g):
    d, x = g.d, image(g)
    y = g.add("Clip", [g.add("Add", [x, scalar(g, 3.0)]), g.whole(np.array(0, DTYPES[g.dtype])),
                       g.whole(np.array(6, DTYPES[g.dtype]))])
    y = g.add("Div", [y, scalar(g, 6.0)]) if d.chance(0.5) else g.add("Mul", [y, scalar(g, 1 / 6)])
    return [g.add("Mul", [x, y])]


@pattern
def clips(g):
    d, x = g.d, image(g)
    for _ in range(d.whole(1, 3)):
        if d.chance(0.4):
            x = g.add("Relu", [x])
        else:
            low, high = sorted((d.pick(-1.0, 0.0, 0.5), d.pick(0.25, 1.0, 6.0)))
            low_name, high_name = (g.whole(np.array(v, DTYPES[g.dtype])) for v in (low, high))
            x = g.add(*d.pick(("Clip", [x, low_name, high_name]), ("Max", [x, low_name]), ("Min", [x, high_name])))
    return [x]


@pattern
def layer_normalization(g):
    d, x = g.d, g.feed(g.d.shape(2, 4, 2000, empty=False))
    axes = [-1] if d.chance(0.7) or len(g.shape(x)) < 3 else [-2, -1]

    def mean(t):
        if d.opset >= 18:
            return g.add("ReduceMean", [t, g.whole(d.ints(*axes))], keepdims=1)
        return g.add("ReduceMean", [t], axes=axes, keepdims=1)
    centred = g.add("Sub", [x, mean(x)])
    square = g.add("Pow", [centred, scalar(g, 2.0)]) if d.chance(0.6) else g.add("Mul", [centred, centred])
    root = g.add("Sqrt", [g.add("Add", [mean(square), scalar(g, d.pick(1e-5, 1e-3))])])
    y = g.add("Div", [centred, root])
    inner = g.shape(x)[-len(axes):]
    if d.chance(0.8):
        y = g.add("Mul", [y, g.constant(inner)])
        if d.chance(0.8):
            y = g.add("Add", [y, g.constant(inner)])
    return [y]


@pattern
def group_normalization(g):
    d, x = g.d, image(g)
    n, c, h, w = g.shape(x)
    groups = d.pick(*[k for k in (1, 2, 4, 8) if c % k == 0])
    flat = g.add("Reshape", [x, g.whole(d.ints(0, groups, -1))])
    y = g.add("InstanceNormalization", [flat, g.constant((groups,)) if d.chance(0.3) else g.whole(
        np.ones(groups, DTYPES[g.dtype])), g.whole(np.zeros(groups, DTYPES[g.dtype]))], epsilon=1e-3)
    y = g.add("Reshape", [y, g.whole(d.ints(n, c, h, w))])
    return [g.add("Add", [g.add("Mul", [y, g.constant((c, 1, 1))]), g.constant((c, 1, 1))])]


@pattern
def attention(g):
    d = g.d
    batch, heads, rows, columns, size = d.pick(1, 2), d.pick(1, 2, 4), d.pick(1, 3, 8), d.pick(1, 4, 9), d.pick(2, 4, 8)
    q, k, v = g.feed((batch, heads, rows, size)), g.feed((batch, heads, columns, size)), g.feed((batch, heads, columns, size))
    if d.chance(0.2):
        q = g.add("Mul", [q, scalar(g, 0.5)])
    scores = g.add("MatMul", [q, g.add("Transpose", [k], perm=[0, 1, 3, 2])])
    scale = 1 / np.sqrt(size)
    way = d.whole(0, 3)
    if way < 2:
        scores = g.add(*((("Mul", [scores, scalar(g, scale)])) if way else ("Div", [scores, scalar(g, 1 / scale)])))
    if d.chance(0.5):
        shape = d.pick((rows, columns), (1, 1, rows, columns), (batch, 1, 1, columns), (batch, heads, rows, columns))
        mask = d.values(g.dtype, shape)
        scores = g.add("Add", [scores, g.whole(mask)])
    weights = g.add("Softmax", [scores], axis=d.pick(-1, -1, 3))
    y = g.add("MatMul", [weights, v])
    if d.chance(0.3):
        y = g.add("Transpose", [y], perm=[0, 2, 1, 3])
    return [y]


@pattern
def matmul_bias(g):
    d = g.d
    x = g.feed((*d.shape(0, 2, 6, empty=False), d.pick(1, 4, 9), d.pick(2, 8, 17)))
    n = d.pick(1, 4, 16, 33)
    y = g.add("MatMul", [x, g.constant((g.shape(x)[-1], n), 0.3)])
    bias = d.pick((n,), (1, n), (1,), (), (g.shape(x)[-2], n))
    y = g.add("Add", [y, g.constant(bias)] if d.chance(0.5) else [g.constant(bias), y])
    return [activation(g, y) if d.chance(0.5) else y]


@pattern
def pad_and_window(g):
    d, x = g.d, image(g)
    pads = [0, 0, d.whole(0, 2), d.whole(0, 2), 0, 0, d.whole(0, 2), d.whole(0, 2)]
    if d.chance(0.1):
        pads[1] = 1
    value = [scalar(g, d.pick(0.0, 0.0, 1.0))] if d.chance(0.5) else []
    value = [g.whole(np.reshape(g.d.constants[value[0]], ()))] if value else []
    y = g.add("Pad", [x, g.whole(d.ints(*pads)), *value], mode="constant")
    if d.chance(0.6):
        return [conv(g, y, d.pick(1, 4, 8), d.pick(1, 3))]
    kernel = [min(3, s) for s in g.shape(y)[2:]]
    return [g.add(d.pick("MaxPool", "AveragePool"), [y], kernel_shape=kernel)]


@pattern
def transposes(g):
    d, x = g.d, image(g)
    x = g.add("Transpose", [x], perm=[0, 2, 3, 1])
    if d.chance(0.5):
        x = activation(g, x) if d.chance(0.5) else g.add("Add", [x, g.constant(g.shape(x)[-1:])])
    y = g.add("Transpose", [x], perm=d.pick([0, 3, 1, 2], [0, 3, 1, 2], [0, 3, 2, 1]))
    return [conv(g, y, 4, d.pick(1, 3)) if d.chance(0.5) else y]


@pattern
def constant_expressions(g):
    """Weights and limits that are computed from constants: they are folded when the model is opened."""
    d, x = g.d, image(g)
    c = g.shape(x)[1]
    raw = g.constant((c, 4, 1, 1))
    w = g.add("Transpose", [raw], perm=[1, 0, 2, 3])
    if d.chance(0.5):
        w = g.add(d.pick("Mul", "Div"), [w, g.constant((4, 1, 1, 1), 1.0, "positive")])
    if d.chance(0.3):
        w = g.add(d.pick("Tanh", "Exp", "Abs"), [w])
    y = g.add("Conv", [x, w])
    kind = d.pick("ReduceMean", "ReduceSum", "ReduceL2", "ReduceMax")
    folded = g.add(kind, [g.constant((4, 3)), *([g.whole(d.ints(1))] if kind == "ReduceSum" or d.opset >= 18 else [])],
                   keepdims=1, **({} if kind == "ReduceSum" or d.opset >= 18 else {"axes": [1]}))
    return [g.add("Add", [y, g.add("Reshape", [folded, g.whole(d.ints(4, 1, 1))])])]


@pattern
def shuffle(g):
    d = g.d
    x = g.feed((d.pick(1, 2), d.pick(4, 8, 12), d.pick(1, 4, 5), d.pick(3, 4)))
    n, c, h, w = g.shape(x)
    y = g.add("Reshape", [x, g.whole(d.ints(n, 2, c // 2, h, w))])
    y = g.add("Reshape", [g.add("Transpose", [y], perm=[0, 2, 1, 3, 4]), g.whole(d.ints(n, c, h, w))])
    halves = g.add("Split", [y, g.whole(d.ints(c // 2, c // 2))], outputs=2, axis=1)
    return [g.add("Concat", [conv(g, halves[0], c // 2, 1), halves[1]], axis=1)]


@pattern
def quantized(g):
    """DequantizeLinear, operator, QuantizeLinear, which become one step on integers where that is exact."""
    d = g.d
    g.dtype = "float"
    byte = d.pick("uint8", "int8")

    def zero(name, shape=()):
        info = np.iinfo(DTYPES[name])
        return d.numbers.integers(max(info.min, -10), min(info.max, 11), shape).astype(DTYPES[name])

    def scale(low=-5, high=-2, shape=()):
        return (2.0 ** d.numbers.integers(low, high, shape)).astype(np.float32)

    def dequantized(x, s, z, **attributes):
        return g.add("DequantizeLinear", [x, g.whole(s)] + ([g.whole(z)] if z is not None else []), **attributes)
    kind = d.pick("Conv", "Conv", "MatMul", "Add", "Mul", "MaxPool", "GlobalAveragePool", "Relu")
    shape = (d.pick(1, 2), d.pick(1, 3, 8, 16), d.pick(1, 5, 8), d.pick(3, 6, 7)) if kind != "MatMul" else (d.pick(1, 5), 16)
    info = np.iinfo(DTYPES[byte])

    def operand():
        name = d.feed(d.numbers.integers(info.min, info.max, shape, dtype=DTYPES[byte], endpoint=True))
        g.values[name] = d.feeds[name]
        none = byte == "uint8" and d.chance(0.2)
        return dequantized(name, scale(), None if none else zero(byte))
    x = operand()
    if kind in ("Conv", "MatMul"):
        n = d.pick(1, 4, 8, 17)
        form = (n, shape[1], d.pick(1, 3), 3) if kind == "Conv" else (16, n)
        per = d.chance(0.5)
        axis = 0 if kind == "Conv" else 1
        q = d.numbers.integers(-127, 128, form).astype(np.int8)
        size = (n,) if per else ()
        w = dequantized(g.whole(q), scale(-8, -5, size), np.zeros(size, np.int8) if d.chance(0.7) else None,
                        **({"axis": axis} if per else {}))
        inputs = [x, w]
        if kind == "Conv" and d.chance(0.5):
            inputs.append(g.constant((n,)))
        y = g.add(kind, inputs, **({"pads": [form[2] // 2, 1] * 2} if kind == "Conv" else {}))
        if d.chance(0.4):
            y = g.add("Relu", [y])
    elif kind in ("Add", "Mul"):
        y = g.add(kind, [x, operand()])
        if d.chance(0.3):
            y = g.add("Relu", [y])
    elif kind == "MaxPool":
        y = g.add(kind, [x], kernel_shape=[1, 3])
    else:
        y = g.add(kind, [x])
    s = g.whole(scale(-4, 0))
    target = d.pick("uint8", "int8")
    if d.opset >= 21 and d.chance(0.3):
        z = g.add("QuantizeLinear", [y, s], output_dtype=elem_type(DTYPES[target]))
    elif target == "uint8" and d.chance(0.3):
        z = g.add("QuantizeLinear", [y, s])
    else:
        z = g.add("QuantizeLinear", [y, s, g.whole(zero(target))])
    if d.chance(0.6):
        return [g.add("DequantizeLinear", [z, s, g.whole(np.zeros((), g.values[z].dtype))])]
    return [z]


@pattern
def casts(g):
    """A part of a network in another type of float."""
    d, x = g.d, image(g)
    other = d.pick("float16", "double", "float16")
    name = g.add("Cast", [x], to=elem_type(DTYPES[other]))
    before, g.dtype = g.dtype, other
    y = activation(g, conv(g, name, d.pick(4, 8), d.pick(1, 3)) if d.chance(0.6) else name)
    g.dtype = before
    return [g.add("Cast", [y], to=elem_type(DTYPES[before]))]


def pattern_case(seed, name=None):
    d = Draw(seed)
    d.opset = d.whole(13, 24)
    g = Growing(d, d.pick("float", "float", "float", "float", "double", "float16"))
    name = name or d.dice.choice(sorted(PATTERNS))
    outputs = PATTERNS[name](g)
    return Case(seed, "pattern", name, d.model(list(dict.fromkeys(outputs)), d.chance(0.25)), [d.feeds])
