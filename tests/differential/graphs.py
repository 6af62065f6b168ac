"""Random graphs like those of convolutional networks: each node takes tensors that are there, shapes are known because every
node is evaluated as it is added; two or three outputs at most, some tensors used more than once."""
import numpy as np

from case import Case
from draw import DTYPES, Draw
from exact import evaluate, widened

ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Clip", "Gelu", "Softplus", "PRelu",
               "Mish", "Swish", "Selu", "Celu")


class Growing:
    """The graph so far: names with their values, in double precision."""

    def __init__(self, d, dtype):
        self.d, self.dtype, self.values, self.open = d, dtype, {}, []

    def feed(self, shape):
        name = self.d.feed(self.d.values(self.dtype, shape))
        self.values[name] = widened(self.d.feeds[name])
        self.open.append(name)
        return name

    def constant(self, shape, scale=1.0, style=""):
        array = (self.d.values(self.dtype, shape, style).astype(np.float64) * scale).astype(DTYPES[self.dtype])
        return self.whole(array)

    def whole(self, array):
        name = self.d.constant(array)
        self.values[name] = widened(self.d.constants[name])
        return name

    def add(self, op, inputs, outputs=1, **attributes):
        made = self.d.node(op, inputs, outputs, **attributes)
        names = [made] if outputs == 1 else made
        results = evaluate(self.d.nodes[-1], self.d.opset, [self.values[n] if n else None for n in inputs])
        self.values.update(zip(names, map(widened, results)))
        self.open += names
        return made

    def shape(self, name):
        return self.values[name].shape

    def of_rank(self, rank):
        return [n for n in self.open if self.values[n].ndim == rank and self.values[n].size]


def convolution(g, x):
    d, (_, channels, *size) = g.d, g.shape(x)
    way = d.whole(0, 9)
    groups, filters = 1, d.pick(1, 3, 4, 8, 16, 24)
    if way >= 6:
        groups = filters = channels
    elif way == 5 and channels % 2 == 0:
        groups, filters = 2, 2 * d.pick(1, 2, 4)
    kernel = [min(d.pick(1, 1, 3, 3, 3, 5), s + 2) for s in size]
    pads = [k // 2 for k in kernel] * 2 if d.chance(0.7) else [min(1, k - 1) for k in kernel] * 2
    weights = g.constant((filters, channels // groups, *kernel), 1 / np.sqrt(channels // groups * np.prod(kernel)))
    bias = [g.constant((filters,))] if d.chance(0.5) else []
    strides = [d.pick(1, 1, 1, 2)] * len(size)
    return g.add("Conv", [x, weights, *bias], group=groups, pads=pads, strides=strides)


def batch_normalization(g, x):
    c = g.shape(x)[1]
    return g.add("BatchNormalization", [x, *(g.constant((c,), 1.0, s) for s in ("", "", "", "positive"))])


def activation(g, x):
    d = g.d
    op = d.dice.choice([a for a in ACTIVATIONS if (a != "Gelu" or d.opset >= 20) and (a != "Swish" or d.opset >= 24) and
                        (a not in ("HardSwish",) or d.opset >= 14) and (a != "Mish" or d.opset >= 18)])
    if op == "Clip":
        return g.add(op, [x, g.whole(np.array(0, DTYPES[g.dtype])), g.whole(np.array(d.pick(1, 6), DTYPES[g.dtype]))])
    if op == "PRelu":
        rank = len(g.shape(x))
        return g.add(op, [x, g.constant((g.shape(x)[1], *[1] * (rank - 2)) if rank > 2 else (1,))])
    return g.add(op, [x])


def arithmetic(g, x):
    d, shape = g.d, g.shape(x)
    partners = [n for n in g.open if g.shape(n) == shape]
    op = d.pick("Add", "Add", "Mul", "Sub", "Max", "Min")
    if len(partners) > 1 and d.chance(0.6):
        return g.add(op, [x, d.dice.choice(partners)])
    other = g.constant(tuple(s if d.chance(0.5) else 1 for s in shape)[d.whole(0, len(shape)):])
    return g.add(op, [x, other] if d.chance(0.5) else [other, x])


def concatenation(g, x):
    shape = g.shape(x)
    axis = g.d.whole(0 if len(shape) < 3 else 1, len(shape) - 1)
    same = [n for n in g.open if len(g.shape(n)) == len(shape) and
            all(a == b for i, (a, b) in enumerate(zip(g.shape(n), shape)) if i != axis)]
    return g.add("Concat", [x, *g.d.dice.choices(same, k=g.d.whole(1, 2))], axis=axis)


def pooling(g, x):
    d, size = g.d, g.shape(x)[2:]
    if d.chance(0.25):
        return g.add("GlobalAveragePool", [x])
    kernel = [min(d.pick(2, 3), s) for s in size]
    pads = [1 if k == 3 and d.chance(0.5) else 0 for k in kernel] * 2
    return g.add(d.pick("MaxPool", "AveragePool"), [x], kernel_shape=kernel, pads=pads, strides=[d.pick(1, 2)] * len(size))


def resizing(g, x):
    scales = g.whole(np.array([1, 1, *[2.0] * (len(g.shape(x)) - 2)], np.float32))
    roi = g.whole(np.zeros(0, np.float32))
    return g.add("Resize", [x, roi, scales], mode=g.d.pick("nearest", "linear"),
                 coordinate_transformation_mode=g.d.pick("asymmetric", "half_pixel"))


def moving(g, x):
    d, shape = g.d, g.shape(x)
    way = d.whole(0, 4)
    if way == 0:
        return g.add("Transpose", [x], perm=d.dice.sample(range(len(shape)), len(shape)))
    if way == 1:
        axis = d.whole(0, len(shape) - 1)
        low = d.whole(0, shape[axis] - 1)
        limits = [g.whole(d.ints(v)) for v in (low, d.whole(low + 1, shape[axis]), axis)]
        return g.add("Slice", [x, *limits])
    if way == 2:
        pads = [d.whole(0, 1) for _ in range(2 * len(shape))]
        return g.add("Pad", [x, g.whole(d.ints(*pads))], mode=d.pick("constant", "edge"))
    if way == 3:
        return g.add("Reshape", [x, g.whole(d.ints(shape[0], -1))])
    if shape[-1] % 2 == 0:
        parts = g.whole(d.ints(shape[-1] // 2, shape[-1] // 2))
        return g.add("Split", [x, parts], outputs=2, axis=len(shape) - 1)[0]
    return g.add("Identity", [x])


def product(g, x):
    d, shape = g.d, g.shape(x)
    w = g.constant((shape[-1], d.pick(1, 4, 8, 16)), 1 / np.sqrt(shape[-1]))
    y = g.add("MatMul", [x, w])
    return g.add("Add", [y, g.constant(g.shape(y)[-1:])]) if d.chance(0.5) else y


def normalizing(g, x):
    d, shape = g.d, g.shape(x)
    if d.chance(0.5) and d.opset >= 17:
        return g.add("LayerNormalization", [x, g.constant(shape[-1:]), g.constant(shape[-1:])], axis=-1)
    if d.chance(0.5):
        return g.add("Softmax", [x], axis=-1)
    axes = [d.whole(1, len(shape) - 1)]
    return g.add("ReduceMean", [x, g.whole(d.ints(*axes))] if d.opset >= 18 else [x],
                 **({} if d.opset >= 18 else {"axes": axes}), keepdims=d.pick(0, 1))


def gating(g, x):
    """Squeeze and excitation."""
    c = g.shape(x)[1]
    pooled = g.add("GlobalAveragePool", [x])
    narrow = g.add("Conv", [pooled, g.constant((max(1, c // 2), c, *[1] * (len(g.shape(x)) - 2)), 1 / np.sqrt(c))])
    wide = g.add("Conv", [g.add("Relu", [narrow]), g.constant((c, max(1, c // 2), *[1] * (len(g.shape(x)) - 2)))])
    return g.add("Mul", [x, g.add("Sigmoid", [wide])])


IMAGES = (convolution, convolution, convolution, batch_normalization, activation, activation, arithmetic, concatenation,
          pooling, resizing, moving, gating)
OTHERS = (product, activation, arithmetic, concatenation, moving, normalizing)


def graph_case(seed):
    d = Draw(seed)
    d.opset = d.whole(13, 24)
    dtype = d.pick("float", "float", "float", "float", "double", "float16")
    g = Growing(d, dtype)
    axes = d.pick(1, 2, 2, 2, 2, 3)
    size = [d.pick(1, 3, 5, 7, 8, 12, 16) if axes < 3 else d.pick(1, 3, 5) for _ in range(axes)]
    g.feed((d.pick(1, 1, 2), d.pick(1, 3, 4, 8, 16), *size))
    if d.chance(0.3):
        g.feed(g.shape(g.open[0]))
    for _ in range(d.whole(2, 9)):
        x = g.open[-1] if d.chance(0.7) else d.dice.choice(g.open)
        if not g.values[x].size or g.values[x].size > 50_000 or not g.shape(x):
            continue
        steps = IMAGES if len(g.shape(x)) == axes + 2 else OTHERS
        step = d.dice.choice(steps if len(g.shape(x)) > 1 else (activation,))
        if step is resizing and g.values[x].size > 5000:
            continue
        step(g, x)
    outputs = [g.open[-1]]
    if not d.nodes:
        return None
    if d.chance(0.25):
        outputs += [n for n in d.dice.sample(g.open, 1) if n not in d.feeds and n not in outputs]
    return Case(seed, "graph", "graph", d.model(outputs, d.chance(0.3)), [d.feeds])
