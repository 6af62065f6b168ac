"""Cases of generate.py: four small networks with seeded weights. Weights are scaled by their fan-in, so that values neither
vanish nor explode on the way and an error anywhere shows in the outputs."""
import ml_dtypes
import numpy as np
from generate import Case, Const
from onnx import helper


class Network:
    """Builds one graph; each method adds a layer behind tensor `x` and returns the new tensor."""

    def __init__(self, make, name, shape):
        make.random(name)
        self.make, self.name, self.nodes, self.count = make, name, [], 0
        self.feeds = {"image": make.normal(*shape)}
        self.channels = {"image": shape[1]}

    def node(self, op, inputs, c, **attributes):
        self.count += 1
        output = f"{op.lower()}_{self.count}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        self.channels[output] = c
        return output

    def constant(self, values):
        name = f"constant_{len(self.feeds)}"
        self.feeds[name] = values if isinstance(values, Const) else Const(values)
        return name

    def conv(self, x, k, size, stride=1, group=1, bias=True, transposed=False):
        c = self.channels[x]
        shape = (c, k, size, size) if transposed else (k, c // group, size, size)
        fan_in = c * (size // stride) ** 2 if transposed else c // group * size * size
        inputs = [x, self.constant(self.make.normal(*shape, scale=np.sqrt(2 / fan_in)))]
        if bias:
            inputs.append(self.constant(self.make.normal(k, scale=0.2)))
        pad = 0 if transposed else size // 2
        return self.node("ConvTranspose" if transposed else "Conv", inputs, k, kernel_shape=[size, size],
                         strides=[stride, stride], pads=[pad] * 4, group=group)

    def norm(self, x):
        c = self.channels[x]
        parts = [self.make.uniform(0.6, 1.4, c), self.make.normal(c, scale=0.3), self.make.normal(c, scale=0.3),
                 self.make.uniform(0.5, 1.5, c)]
        return self.node("BatchNormalization", [x] + [self.constant(p) for p in parts], c, epsilon=1e-3)

    def same(self, op, *x, **attributes):
        return self.node(op, list(x), self.channels[x[0]], **attributes)

    def finish(self, *outputs, opset=13):
        self.make.cases.append(Case(self.name, self.nodes, self.feeds, list(outputs), opset))


def add(make):
    squeeze(make)
    residual(make)
    mixed(make)
    float8(make)


def squeeze(make):
    """Fire modules: a narrow 1x1, then 1x1 and 3x3 side by side, joined by Concat."""
    net = Network(make, "network_squeeze", (1, 3, 47, 53))

    def fire(x, narrow, wide):
        s = net.same("Relu", net.conv(x, narrow, 1))
        parts = [net.same("Relu", net.conv(s, wide, size)) for size in (1, 3)]
        return net.node("Concat", parts, 2 * wide, axis=1)

    x = net.same("Relu", net.conv("image", 24, 3, stride=2))
    x = net.same("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])
    x = fire(fire(x, 8, 24), 8, 24)
    x = net.same("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
    x = net.same("Dropout", fire(fire(x, 12, 32), 12, 32))
    x = net.same("Relu", net.conv(x, 40, 1))
    x = net.same("GlobalAveragePool", x)
    net.finish(net.same("Flatten", x, axis=1))


def residual(make):
    """Residual blocks with BatchNormalization; a 1x1 convolution on the skip where the size changes; batch of two."""
    net = Network(make, "network_residual", (2, 3, 40, 36))

    def block(x, k, stride):
        y = net.same("Relu", net.norm(net.conv(x, k, 3, stride, bias=False)))
        y = net.norm(net.conv(y, k, 3, bias=False))
        skip = x if stride == 1 else net.norm(net.conv(x, k, 1, stride, bias=False))
        return net.same("Relu", net.same("Add", y, skip))

    x = net.same("Relu", net.norm(net.conv("image", 16, 7, 2, bias=False)))
    x = net.same("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for k, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2)):
        x = block(x, k, stride)
    x = net.same("Flatten", net.same("GlobalAveragePool", x), axis=1)
    weights = net.constant(make.normal(10, 64, scale=1 / 8))
    x = net.node("Gemm", [x, weights, net.constant(make.normal(10))], 10, transB=1)
    net.finish(net.same("Softmax", x, axis=-1), opset=15)


def mixed(make):
    """Inverted residuals going down, ConvTranspose, Resize and Concat skips going up, class scores per pixel."""
    net = Network(make, "network_mixed", (1, 3, 48, 64))

    def relu6(x):
        return net.node("Clip", [x, net.constant(np.float32(0)), net.constant(np.float32(6))], net.channels[x])

    def inverted(x, k, stride):
        wide = 3 * net.channels[x]
        y = relu6(net.conv(x, wide, 1))
        y = relu6(net.norm(net.conv(y, wide, 3, stride, group=wide, bias=False)))
        y = net.conv(y, k, 1)
        return net.same("Add", x, y) if stride == 1 and k == net.channels[x] else y

    full = net.same("HardSwish", net.conv("image", 12, 3))
    half = inverted(full, 16, 2)
    half = inverted(half, 16, 1)
    deep = inverted(inverted(half, 20, 2), 20, 1)
    gate = net.same("HardSigmoid", net.conv(net.same("GlobalAveragePool", deep), 20, 1))
    deep = net.same("Mul", deep, gate)
    up = net.same("Relu", net.conv(deep, 16, 2, stride=2, transposed=True))
    x = net.node("Concat", [up, half], 32, axis=1)
    x = net.conv(x, 16, 3)
    x = net.same("Mul", x, net.same("Sigmoid", x))
    scales = net.constant(Const(np.array([1, 1, 2, 2], dtype=np.float32), exact=True))
    x = net.node("Resize", [x, "", scales], 16, mode="linear")
    x = net.same("Relu", net.conv(net.node("Concat", [x, full], 28, axis=1), 16, 3))
    net.finish(net.same("Softmax", net.conv(x, 5, 1), axis=1), deep, opset=14)


def float8(make):
    """Convolutions and a product between floats of 8 bits, as quantisers write them: x in e4m3 with one scale, filters with one
    each; the last product in e5m2."""
    net = Network(make, "network_float8", (2, 32, 12, 11))

    def quantized(x, scale, dtype):
        parts = [net.constant(np.float32(scale)), net.constant(np.zeros((), dtype))]
        return net.same("DequantizeLinear", net.same("QuantizeLinear", x, *parts), *parts)

    def filters(values, axis, largest, dtype):
        others = tuple(i for i in range(values.ndim) if i != axis)
        scales = (np.abs(values).max(others) / largest).astype(np.float32)
        codes = (values / np.expand_dims(scales, others)).astype(dtype)
        parts = [net.constant(codes), net.constant(scales), net.constant(np.zeros(scales.shape, dtype))]
        return net.node("DequantizeLinear", parts, values.shape[axis], axis=axis)

    def conv(x, k, size, stride=1):
        c = net.channels[x]
        w = make.normal(k, c, size, size, scale=np.sqrt(2 / (c * size * size)))
        inputs = [quantized(x, 0.02, ml_dtypes.float8_e4m3fn), filters(w, 0, 448, ml_dtypes.float8_e4m3fn),
                  net.constant(make.normal(k, scale=0.2))]
        return net.node("Conv", inputs, k, kernel_shape=[size, size], strides=[stride] * 2, pads=[size // 2] * 4)

    x = net.same("Relu", conv("image", 48, 3))
    x = net.same("Relu", conv(x, 32, 3, 2))
    x = net.same("Add", x, conv(x, 32, 1))
    x = net.same("Flatten", net.same("GlobalAveragePool", x), axis=1)
    w = filters(make.normal(32, 10, scale=1 / 6), 1, 57344, ml_dtypes.float8_e5m2)
    x = net.node("MatMul", [quantized(x, 0.002, ml_dtypes.float8_e5m2), w], 10)
    net.finish(net.node("Add", [x, net.constant(make.normal(10))], 10), opset=21)
    make.cases[-1].exact, make.cases[-1].ir_version = True, 10
