"""Networks in the forms of paddle2onnx: scalars of one element, shapes by Shape, Cast and Slice, sums of many parts,
Identity."""
import numpy as np
from onnx import TensorProto

from net import exported

INT, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def one(n, value, dtype=np.float32):
    return n.constant(np.array([value], dtype))


def conv(n, x, c, k, size, stride=1, group=1):
    y = n.Conv(x, n.w(k, c // group, size, size), dilations=[1, 1], group=group, kernel_shape=[size, size],
               pads=[size // 2] * 4,
               strides=[stride, stride])
    return n.BatchNormalization(y, n.positive(k), n.w(k), n.w(k, spread=0.1), n.positive(k), epsilon=1e-5, momentum=0.9)


def hard_swish(n, x):
    """As paddle2onnx writes it below opset 14."""
    inner = n.Clip(n.Add(x, one(n, 3.0)), 0.0, 6.0)
    return n.Div(n.Mul(x, inner), one(n, 6.0))


@exported(11, "PaddlePaddle", ir=7)
def pp_lcnet(n):
    x = n.input("x", n.N, 3, 24, 24)
    y = hard_swish(n, conv(n, x, 3, 8, 3, stride=2))
    y = hard_swish(n, conv(n, y, 8, 8, 3, group=8))
    s = n.Relu(n.Add(n.Conv(n.GlobalAveragePool(y), n.w(2, 8, 1, 1), kernel_shape=[1, 1]), n.Reshape(n.w(2), [1, 2, 1, 1])))
    s = n.HardSigmoid(n.Conv(s, n.w(8, 2, 1, 1), n.w(8), kernel_shape=[1, 1]), alpha=0.2, beta=0.5)
    y = hard_swish(n, conv(n, n.Mul(y, s), 8, 16, 1))
    y = n.Reshape(n.GlobalAveragePool(y), [-1, 16])
    y = n.Add(n.MatMul(n.Dropout(y), n.w(16, 9, spread=0.3)), n.w(9))
    return n.named_output("softmax_0.tmp_0", n.Softmax(y, axis=-1))


@exported(12, "PaddlePaddle", ir=7)
def pp_yoloe_head(n):
    """Distributions over distances by Softmax and a 1x1 convolution, boxes by Concat, scores transposed."""
    x = n.input("image", n.N, 3, 32, 32)
    scale = n.input("scale_factor", n.N, 2, low=0.5, high=2.0)
    y = conv(n, n.Relu(conv(n, x, 3, 8, 3, stride=2)), 8, 16, 3, stride=2)
    y = n.Mul(y, n.Tanh(n.Softplus(y)))
    up = n.Resize(y, n.constant(np.array([], np.float32)), [1.0, 1.0, 2.0, 2.0], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    y = n.Concat(y, n.MaxPool(up, kernel_shape=[2, 2], strides=[2, 2]), axis=1)
    wide = n.Reshape(n.Conv(y, n.w(4 * 8, 32, 1, 1), n.w(32), kernel_shape=[1, 1]), [0, 4, 8, 64])
    wide = n.Softmax(n.Transpose(wide, perm=[0, 2, 3, 1]), axis=1)
    distance = n.Conv(wide, n.constant(np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1)), kernel_shape=[1, 1])
    distance = n.Squeeze(distance, axes=[1])
    near, far = n.Split(distance, outputs=2, axis=-1, split=[2, 2])
    points = n.constant(np.stack(np.meshgrid(np.arange(8) + 0.5, np.arange(8) + 0.5), -1).reshape(64, 2).astype(np.float32))
    boxes = n.Mul(n.Concat(n.Sub(points, near), n.Add(points, far), axis=-1), one(n, 4.0))
    factor = n.Concat(*(n.Slice(scale, [i], [i + 1],
                                [1]) for i in (1, 0, 1, 0)), axis=-1)
    factor = n.Reshape(factor, [-1, 1, 4])
    scores = n.Reshape(n.Sigmoid(n.Conv(y, n.w(5, 32, 1, 1), n.w(5), kernel_shape=[1, 1])), [0, 5, 64])
    return [n.Div(boxes, factor), scores]


@exported(11, "PaddlePaddle", ir=7)
def pp_ocr_recognizer(n):
    """CRNN: the map's height squeezed away, two LSTMs in both directions, a product with a shape of three axes, Softmax."""
    x = n.input("x", n.N, 3, 8, 40)
    y = n.Relu(conv(n, n.Relu(conv(n, x, 3, 8, 3, stride=2)), 8, 8, 3, stride=2))
    y = n.MaxPool(y, kernel_shape=[2, 1], strides=[2, 1])
    y = n.Transpose(n.Squeeze(y, axes=[2]), perm=[2, 0, 1])
    for size in (8, 12):
        batch = n.Slice(n.Shape(y), [1], [2], [0])
        shape = n.Concat([2], n.Cast(batch, to=INT), [6], axis=0)
        zeros = n.Expand(n.constant(np.zeros((1, 1, 1), np.float32)), shape)
        y, _, _ = n.LSTM(y, n.w(2, 24, size), n.w(2, 24, 6), n.w(2, 48), None, zeros, zeros, outputs=3,
                         direction="bidirectional", hidden_size=6)
        y = n.Reshape(n.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, 12])
    y = n.Add(n.MatMul(n.Transpose(y, perm=[1, 0, 2]), n.w(12, 11, spread=0.3)), n.w(11))
    return n.Softmax(y, axis=2)


@exported(13, "PaddlePaddle", ir=7)
def pp_ocr_detector(n):
    """DB: a pyramid of nearest resizes by sizes, two transposed convolutions, scale and bias as products with [1]."""
    x = n.input("x", n.N, 3, "H", "W")
    a = n.Relu(conv(n, x, 3, 8, 3, stride=2))
    b = n.Relu(conv(n, a, 8, 8, 3, stride=2))
    shape = n.Cast(n.Shape(a), to=INT)
    sizes = n.Slice(shape, [2], [4], [0])
    whole = n.Concat(n.Slice(n.Shape(b), [0], [2], [0]),
                     n.Cast(sizes, to=INT), axis=0)
    up = n.Resize(b, n.constant(np.array([], np.float32)), n.constant(np.array([], np.float32)), whole, mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    y = n.Add(n.Mul(n.Add(a, up), one(n, 0.7)), one(n, 0.1))
    y = n.ConvTranspose(y, n.w(8, 4, 2, 2, spread=0.3), kernel_shape=[2, 2], strides=[2, 2])
    y = n.Add(y, n.Reshape(n.w(4), [1, 4, 1, 1]))
    y = n.Conv(n.Max(y, n.constant(np.zeros((1,), np.float32))), n.w(1, 4, 1, 1), n.w(1), kernel_shape=[1, 1])
    return n.named_output("sigmoid_0.tmp_0", n.Sigmoid(y))


@exported(14, "PaddlePaddle", ir=8)
def pp_liteseg(n):
    """Attention of two maps by means and maxima over channels, pooled contexts, resized to the picture."""
    x = n.input("x", n.N, 3, 32, 32)
    low = n.Relu(conv(n, x, 3, 8, 3, stride=2))
    high = n.Relu(conv(n, low, 8, 8, 3, stride=2))
    up = n.Resize(high, None, [1.0, 1.0, 2.0, 2.0], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    parts = [f for y in (low, up) for f in (n.ReduceMean(y, axes=[1], keepdims=1), n.ReduceMax(y, axes=[1], keepdims=1))]
    gate = n.Sigmoid(conv(n, n.Concat(*parts, axis=1), 4, 1, 3))
    y = n.Sum(n.Mul(low, gate), n.Mul(up, n.Sub(one(n, 1.0), gate)))
    y = n.HardSwish(conv(n, y, 8, 8, 3))
    y = n.Conv(y, n.w(4, 8, 1, 1), kernel_shape=[1, 1])
    y = n.Resize(y, None, [1.0, 1.0, 2.0, 2.0], mode="linear", coordinate_transformation_mode="align_corners")
    return [y, (n.Cast(n.ArgMax(y, axis=1, keepdims=0), to=TensorProto.INT32), TensorProto.INT32)]
