"""Networks in the forms of tf2onnx and keras (keras.export, keras2onnx): channels last with transpositions round convolutions,
padding of SAME, shapes by Shape and Slice with Squeeze, constants as initializers."""
import numpy as np
from onnx import TensorProto

from net import exported

INT, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def first(n, x):
    return n.Transpose(x, perm=[0, 3, 1, 2])


def last(n, x):
    return n.Transpose(x, perm=[0, 2, 3, 1])


def conv(n, x, c, k, size, stride=1, group=1, same="SAME_UPPER"):
    return n.Conv(x, n.w(k, c // group, size, size), auto_pad=same, dilations=[1, 1], group=group, kernel_shape=[size, size],
                  strides=[stride, stride])


@exported(13, "tf2onnx")
def keras_mobilenet(n):
    """MobileNet: SAME by auto_pad, normalisation folded to a product and a sum, ReLU6 as Min and Max, means over spatial
    axes."""
    x = n.input("input_1", n.N, 16, 16, 3)
    y = conv(n, first(n, x), 3, 8, 3, stride=2)
    y = n.Add(n.Mul(y, n.positive(1, 8, 1, 1)), n.w(1, 8, 1, 1))
    y = n.Min(n.Max(y, 0.0), 6.0)
    y = n.Relu(n.Add(conv(n, y, 8, 8, 3, group=8), n.w(1, 8, 1, 1)))
    y = last(n, conv(n, y, 8, 16, 1))
    y = n.ReduceMean(y, axes=[1, 2], keepdims=0)
    y = n.Add(n.MatMul(y, n.w(16, 10, spread=0.3)), n.w(10))
    return n.named_output("predictions", n.Softmax(y, axis=-1))


@exported(9, "tf2onnx", ir=4)
def frozen_graph_of_tensorflow_1(n):
    x = n.input("input:0", n.N, 14, 14, 4)
    y = n.BatchNormalization(first(n, n.Pad(x, pads=[0, 1, 1, 0, 0, 1, 1, 0])), n.positive(4), n.w(4), n.w(4), n.positive(4),
                             epsilon=1e-3)
    y = n.Relu(n.Conv(y, n.w(8, 4, 3, 3), n.w(8), kernel_shape=[3, 3], strides=[2, 2]))
    y = last(n, n.MaxPool(y, kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID"))
    y = n.Reshape(y, [-1, 72])
    return n.Softmax(n.Add(n.MatMul(y, n.w(72, 6, spread=0.2)), n.w(6)), axis=1)


@exported(15, "tf2onnx")
def efficientnet_block(n):
    """Squeeze and excite over channels last, swish by Sigmoid and Mul, stochastic depth gone, a residual."""
    x = n.input("input", n.N, 12, 12, 8)
    y = conv(n, first(n, x), 8, 24, 1)
    y = n.Mul(y, n.Sigmoid(y))
    y = conv(n, y, 24, 24, 5, group=24)
    y = n.Mul(y, n.Sigmoid(y))
    s = n.Reshape(n.ReduceMean(last(n, y), axes=[1, 2], keepdims=0), [-1, 1, 1, 24])
    s = conv(n, first(n, s), 24, 6, 1)
    s = n.Sigmoid(n.Add(conv(n, n.Mul(s, n.Sigmoid(s)), 6, 24, 1), n.w(1, 24, 1, 1)))
    return n.Add(last(n, conv(n, n.Mul(y, s), 24, 8, 1)), x)


@exported(13, "tf2onnx")
def resize_to_computed_sizes(n):
    """tf.image.resize to twice the size: Shape, Cast, Slice, Squeeze, Mul, Concat, Resize between transpositions."""
    x = n.input("image", n.N, "H", "W", 3)
    y = last(n, n.Relu(conv(n, first(n, x), 3, 4, 3, stride=2)))
    shape = n.Cast(n.Shape(y), to=INT)
    size = n.Mul(n.Slice(shape, [1], [3], [0]), [2, 2])
    whole = n.Concat(n.Slice(n.Shape(first(n, y)), [0], [2], [0]), size, axis=0)
    wide = n.Resize(first(n, y), None, None, whole, coordinate_transformation_mode="half_pixel", mode="linear",
                    nearest_mode="floor")
    near = n.Resize(first(n, y), None, None, whole, coordinate_transformation_mode="asymmetric", mode="nearest",
                    nearest_mode="floor")
    return n.Concat(last(n, wide), last(n, near), axis=-1)


@exported(12, "tf2onnx")
def keras_lstm(n):
    """A sequence's last state by strided_slice: Slice and Squeeze."""
    x = n.input("lstm_input", n.N, "T", 5)
    y, _, _ = n.LSTM(n.Transpose(x, perm=[1, 0, 2]), n.w(1, 16, 5), n.w(1, 16, 4), n.w(1, 32), outputs=3, hidden_size=4,
                     direction="forward")
    y = n.Transpose(n.Squeeze(y, axes=[1]), perm=[1, 0, 2])
    y = n.Slice(y, n.constant(np.array([0, -1, 0], np.int32)), n.constant(np.array([2147483647] * 3, np.int32)),
                n.constant(np.array([0, 1, 2], np.int32)), n.constant(np.array([1, 1, 1], np.int32)))
    return n.Add(n.MatMul(n.Squeeze(y, axes=[1]), n.w(4, 3)), n.w(3))


@exported(11, "tf2onnx")
def atrous_by_space_to_batch(n):
    """A dilated convolution as TensorFlow splits it: pad, space to batch, convolve, batch to space, crop."""
    x = n.input("x", n.N, 4, 12, 12)
    y = n.Pad(x, [0, 0, 2, 2, 0, 0, 2, 2])
    y = n.Transpose(n.Reshape(y, [-1, 4, 8, 2, 8, 2]), perm=[3, 5, 0, 1, 2, 4])
    y = n.Conv(n.Reshape(y, [-1, 4, 8, 8]), n.w(6, 4, 3, 3), auto_pad="VALID", kernel_shape=[3, 3])
    y = n.Transpose(n.Reshape(y, [2, 2, -1, 6, 6, 6]), perm=[2, 3, 4, 0, 5, 1])
    y = n.Reshape(y, [-1, 6, 12, 12])
    return n.Relu(n.Add(y, n.w(1, 6, 1, 1)))


@exported(13, "tf2onnx")
def transposed_convolution_cropped(n):
    """Conv2DTranspose: the batch's size into its output shape, cropped by Slice; classes by ArgMax, OneHot."""
    x = n.input("x", n.N, 6, 6, 4)
    y = n.ConvTranspose(first(n, x), n.w(4, 5, 3, 3, spread=0.2), kernel_shape=[3, 3], strides=[2, 2], pads=[0] * 4)
    size = n.Mul(n.Slice(n.Shape(x), [1], [3], [0]), [2, 2])
    y = n.Slice(y, [0, 0], size, [2, 3])
    y = last(n, n.Add(y, n.w(1, 5, 1, 1)))
    classes = n.ArgMax(y, axis=-1, keepdims=0)
    hot = n.OneHot(classes, [5], n.constant(np.array([0.0, 1.0], np.float32)), axis=-1)
    return [n.Mul(y, hot), (n.Cast(classes, to=TensorProto.INT32), TensorProto.INT32)]


@exported(13, "tf2onnx", step=1 / 127)
def quantized_tflite(n):
    """TFLite's integers as QuantizeLinear and DequantizeLinear: int8 weights per channel, biases of int32."""
    def through(y, scale, zero):
        step, at = n.constant(np.array(scale, np.float32)), n.constant(np.array(zero, np.int8))
        return n.DequantizeLinear(n.QuantizeLinear(y, step, at), step, at)

    def layer(y, c, k, scale):
        weights = n.constant(n.rng.integers(-63, 64, (k, c, 3, 3)).astype(np.int8))
        steps = (n.rng.uniform(0.5, 1.5, k) / 63 / np.sqrt(c * 9)).astype(np.float32)
        w = n.DequantizeLinear(weights, n.constant(steps), n.constant(np.zeros(k, np.int8)), axis=0)
        b = n.DequantizeLinear(n.constant(n.rng.integers(-200, 200, k).astype(np.int32)),
                               n.constant((steps * scale).astype(np.float32)),
                               n.constant(np.zeros(k, np.int32)), axis=0)
        return n.Conv(y, w, b, auto_pad="SAME_UPPER", kernel_shape=[3, 3], strides=[2, 2])
    x = n.input("serving_default_input", n.N, 16, 16, 3)
    y = first(n, through(x, 1 / 127, 0))
    y = through(n.Relu(layer(y, 3, 8, 1 / 127)), 2 / 255, -128)
    y = through(layer(y, 8, 8, 2 / 255), 2 / 127, 3)
    return through(n.ReduceMean(last(n, y), axes=[1, 2], keepdims=0), 1 / 127, 0)


@exported(10, "keras2onnx", ir=5)
def keras2onnx_separable(n):
    """Each layer with Transpose round it, BatchNormalization on channels first, flattened from channels last, Dense."""
    x = n.input("input_1", n.N, 10, 10, 3)
    y = n.Conv(first(n, x), n.w(3, 1, 3, 3), auto_pad="SAME_LOWER", group=3, kernel_shape=[3, 3])
    y = n.Conv(y, n.w(8, 3, 1, 1), n.w(8), auto_pad="VALID", kernel_shape=[1, 1])
    y = n.BatchNormalization(first(n, last(n, y)), n.positive(8), n.w(8), n.w(8), n.positive(8), epsilon=1e-3, momentum=0.99)
    y = n.AveragePool(n.LeakyRelu(y, alpha=0.3), auto_pad="SAME_UPPER", kernel_shape=[3, 3], strides=[2, 2])
    y = n.Reshape(n.Identity(last(n, y)), [-1, 200])
    y = n.ThresholdedRelu(n.Add(n.MatMul(y, n.w(200, 12, spread=0.1)), n.w(12)), alpha=0.1)
    return n.Softmax(n.Add(n.MatMul(y, n.w(12, 4, spread=0.4)), n.w(4)), axis=-1)


@exported(17, "keras")
def keras_3_export(n):
    """keras.export: names of scopes, Einsum of attention, LayerNormalization as a variance by moments."""
    c, heads = 12, 3
    x = n.input("keras_tensor", n.N, "T", c)
    mean = n.ReduceMean(x, axes=[-1], keepdims=1)
    spread = n.Sub(x, mean)
    variance = n.ReduceMean(n.Mul(spread, spread), axes=[-1], keepdims=1)
    scale = n.Mul(n.Reciprocal(n.Sqrt(n.Add(variance, n.constant(np.array([1e-3], np.float32))))), n.positive(c))
    y = n.Add(n.Mul(x, scale), n.Sub(n.w(c), n.Mul(mean, scale)))
    q, k, v = (n.Add(n.Einsum(y, n.w(c, heads, 4, spread=0.3), equation="abc,cde->abde"), n.w(heads, 4)) for _ in range(3))
    p = n.Softmax(n.Einsum(k, n.Mul(q, 0.5), equation="aecd,abcd->acbe"), axis=-1)
    y = n.Einsum(n.Einsum(p, v, equation="acbe,aecd->abcd"), n.w(heads, 4, c, spread=0.3), equation="abcd,cde->abe")
    return n.Add(n.Add(y, n.w(c)), x)


@exported(11, "keras2onnx")
def keras_gru_time_distributed(n):
    """TimeDistributed convolution by folding time into the batch, a GRU behind it, its last output."""
    x = n.input("frames", n.N, 4, 8, 8, 2)
    y = n.Conv(first(n, n.Reshape(x, [-1, 8, 8, 2])), n.w(3, 2, 3, 3), n.w(3), kernel_shape=[3, 3], strides=[2, 2])
    y = n.Reshape(last(n, n.Relu(y)), [-1, 4, 27])
    _, h = n.GRU(n.Transpose(y, perm=[1, 0, 2]), n.w(1, 15, 27), n.w(1, 15, 5), n.w(1, 30), outputs=2, hidden_size=5,
                 linear_before_reset=1,
                 activations=["Sigmoid", "Tanh"])
    return n.Sigmoid(n.Add(n.MatMul(n.Squeeze(h, axes=[0]), n.w(5, 2)), n.w(2)))
