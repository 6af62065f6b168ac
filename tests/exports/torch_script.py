"""Networks in the forms of torch.onnx's first exporter, which traces or scripts: constants as nodes, shapes computed by
nodes."""
import math

import numpy as np
from onnx import TensorProto, numpy_helper

from net import exported

INT, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def norm(n, x, c, **more):
    return n.BatchNormalization(x, n.positive(c), n.w(c), n.w(c, spread=0.1), n.positive(c), epsilon=1e-5, momentum=0.9, **more)


def conv(n, x, c, k, size, stride=1, group=1, bias=True, pad=None):
    pad = size // 2 if pad is None else pad
    return n.Conv(x, n.w(k, c // group, size, size), *([n.w(k)] if bias else []), dilations=[1, 1], group=group,
                  kernel_shape=[size, size], pads=[pad] * 4, strides=[stride, stride])


def tensor_of(value, dtype=np.int64):
    return numpy_helper.from_array(np.array(value, dtype))


def size_of(n, x, axis):
    """x.size(axis): Shape, Gather."""
    return n.Gather(n.Shape(x), n.constant(np.array(axis, np.int64)), axis=0)


def as_list(n, *sizes):
    """Sizes, computed or known, as the operand of Reshape: Unsqueeze each, Concat."""
    parts = []
    for size in sizes:
        size = size if isinstance(size, str) else n.constant(np.array(size, np.int64))
        parts.append(n.Unsqueeze(size, axes=[0]) if n.opset < 13 else n.Unsqueeze(size, [0]))
    return n.Concat(*parts, axis=0)


def mean(n, x, axes, keep):
    return n.ReduceMean(x, axes=axes, keepdims=keep) if n.opset < 18 else n.ReduceMean(x, axes, keepdims=keep)


@exported(9, "pytorch", nodes=True, ir=4)
def residual_block(n):
    x = n.input("input.1", n.N, 8, 14, 14)
    y = n.Relu(norm(n, conv(n, x, 8, 8, 3, bias=False), 8))
    y = n.Relu(n.Add(norm(n, conv(n, y, 8, 8, 3, bias=False), 8), x))
    y = n.Flatten(n.GlobalAveragePool(y), axis=1)
    return n.Gemm(y, n.w(10, 8), n.w(10), alpha=1.0, beta=1.0, transB=1)


@exported(10, "pytorch", nodes=True, ir=4)
def inverted_residual_clip_attributes(n):
    x = n.input("input", n.N, 8, 16, 16)
    y = n.Clip(norm(n, conv(n, x, 8, 24, 1, bias=False), 24), min=0.0, max=6.0)
    y = n.Clip(norm(n, conv(n, y, 24, 24, 3, stride=1, group=24, bias=False), 24), min=0.0, max=6.0)
    y = n.Add(x, norm(n, conv(n, y, 24, 8, 1, bias=False), 8))
    return n.Gemm(n.ReduceMean(y, axes=[2, 3], keepdims=0), n.w(10, 8), n.w(10), transB=1)


@exported(11, "pytorch", nodes=True)
def view_of_computed_sizes(n):
    x = n.input("x", n.N, 3, "H", "W")
    y = n.MaxPool(n.Relu(conv(n, x, 3, 8, 3)), kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4, ceil_mode=0)
    flat = n.Reshape(y, as_list(n, size_of(n, y, 0), size_of(n, y, 1), -1))
    low = n.Clip(flat, 0.0, 6.0)
    return n.Reshape(low, as_list(n, size_of(n, y, 0), size_of(n, y, 1), size_of(n, y, 2), size_of(n, y, 3)))


@exported(13, "pytorch", nodes=True, named=True)
def focus_and_silu(n):
    x = n.input("images", n.N, 3, 32, 32)
    parts = []
    for row in (0, 1):
        for column in (0, 1):
            part = n.Slice(x, [row], [9223372036854775807], [2], [2])
            parts.append(n.Slice(part, [column], [9223372036854775807], [3], [2]))
    y = conv(n, n.Concat(*parts, axis=1), 12, 16, 3)
    y = n.Mul(y, n.Sigmoid(y))
    a, b = n.Split(y, [8, 8], outputs=2, axis=1)
    a = conv(n, a, 8, 8, 3)
    return n.Concat(n.Add(b, n.Mul(a, n.Sigmoid(a))), b, axis=1)


@exported(11, "pytorch", nodes=True)
def hard_swish_decomposed(n):
    x = n.input("x", n.N, 3, 20, 20)
    y = norm(n, conv(n, x, 3, 16, 3, stride=2, bias=False), 16)
    y = n.Mul(y, n.Div(n.Clip(n.Add(y, 3.0), 0.0, 6.0), 6.0))
    s = n.Relu(conv(n, n.GlobalAveragePool(y), 16, 4, 1))
    s = n.Div(n.Clip(n.Add(conv(n, s, 4, 16, 1), 3.0), 0.0, 6.0), 6.0)
    return n.Mul(s, y)


@exported(14, "pytorch", nodes=True, named=True)
def hard_swish_native(n):
    x = n.input("x", n.N, 3, 20, 20)
    y = n.HardSwish(norm(n, conv(n, x, 3, 16, 3, stride=2, bias=False), 16))
    s = n.Relu(conv(n, n.GlobalAveragePool(y), 16, 4, 1))
    return n.Mul(n.HardSigmoid(conv(n, s, 4, 16, 1), alpha=0.1666666716337204), y)


@exported(14, "pytorch", nodes=True, named=True)
def attention_with_class_token(n):
    """ViT: patches, class token by expand (ConstantOfShape, Mul, Equal, Where), decomposed LayerNorm, qkv by one product,
    GELU."""
    c, heads, tokens = 24, 3, 17
    x = n.input("pixel_values", n.N, 3, 16, 16)
    y = n.Conv(x, n.w(c, 3, 4, 4), n.w(c), kernel_shape=[4, 4], strides=[4, 4])
    batch = size_of(n, y, 0)
    y = n.Transpose(n.Reshape(y, as_list(n, batch, c, -1)), perm=[0, 2, 1])
    want = n.Reshape(as_list(n, batch, -1, -1), [-1])
    ones = n.ConstantOfShape(n.Shape(want), value=tensor_of([1]))
    want = n.Where(n.Equal(want, n.Mul(ones, -1)), ones, want)
    y = n.Add(n.Concat(n.Expand(n.w(1, 1, c, spread=1), want), y, axis=1), n.w(1, tokens, c))
    z = decomposed_layer_norm(n, y, c)
    qkv = n.Add(n.MatMul(z, n.w(c, 3 * c, spread=0.3)), n.w(3 * c))
    qkv = n.Reshape(qkv, as_list(n, size_of(n, z, 0), size_of(n, z, 1), 3, heads, c // heads))
    qkv = n.Transpose(qkv, perm=[2, 0, 3, 1, 4])
    q, k, v = (n.Gather(qkv, n.constant(np.array(i, np.int64)), axis=0) for i in range(3))
    p = n.Softmax(n.Mul(n.MatMul(q, n.Transpose(k, perm=[0, 1, 3, 2])), (c // heads) ** -0.5), axis=-1)
    z = n.Reshape(n.Transpose(n.MatMul(p, v), perm=[0, 2, 1, 3]), as_list(n, size_of(n, z, 0), size_of(n, z, 1), c))
    y = n.Add(y, n.Add(n.MatMul(z, n.w(c, c, spread=0.2)), n.w(c)))
    z = n.Add(n.MatMul(decomposed_layer_norm(n, y, c), n.w(c, 2 * c, spread=0.2)), n.w(2 * c))
    z = n.Mul(n.Mul(z, n.Add(n.Erf(n.Div(z, math.sqrt(2))), 1.0)), 0.5)
    y = n.Add(y, n.Add(n.MatMul(z, n.w(2 * c, c, spread=0.2)), n.w(c)))
    return n.Gather(y, 0, axis=1)


def decomposed_layer_norm(n, x, c):
    centred = n.Sub(x, mean(n, x, [-1], 1))
    variance = mean(n, n.Pow(centred, 2.0), [-1], 1)
    return n.Add(n.Mul(n.Div(centred, n.Sqrt(n.Add(variance, 1e-5))), n.positive(c)), n.w(c))


@exported(17, "pytorch", nodes=True, named=True)
def convnext_block(n):
    c = 16
    x = n.input("x", n.N, c, 12, 12)
    y = n.Transpose(conv(n, x, c, c, 7, group=c), perm=[0, 2, 3, 1])
    y = n.LayerNormalization(y, n.positive(c), n.w(c), axis=-1, epsilon=1e-6)
    y = n.Add(n.MatMul(y, n.w(c, 4 * c, spread=0.25)), n.w(4 * c))
    inner = n.Mul(n.Add(y, n.Mul(n.Pow(y, 3.0), 0.044714998453855515)), 0.7978845834732056)
    y = n.Mul(n.Mul(y, 0.5), n.Add(n.Tanh(inner), 1.0))
    y = n.Add(n.MatMul(y, n.w(4 * c, c, spread=0.12)), n.w(c))
    return n.Add(x, n.Mul(n.Transpose(y, perm=[0, 3, 1, 2]), n.w(c, 1, 1, spread=1)))


@exported(11, "pytorch", nodes=True)
def feature_pyramid_interpolate(n):
    """F.interpolate to another map's size: sizes by Shape, Slice, Cast, Concat."""
    x = n.input("x", n.N, 3, "H", "W")
    fine = n.Relu(conv(n, x, 3, 8, 3))
    coarse = n.Relu(conv(n, fine, 8, 8, 3, stride=2))
    sizes = n.Cast(as_list(n, size_of(n, fine, 2), size_of(n, fine, 3)), to=INT)
    whole = n.Concat(n.Slice(n.Shape(coarse), [0], [2], [0]), sizes, axis=0)
    empty = n.constant(np.zeros(0, np.float32))
    wide = n.Resize(coarse, empty, empty, whole, coordinate_transformation_mode="asymmetric", cubic_coeff_a=-0.75,
                    mode="nearest",
                    nearest_mode="floor")
    smooth = n.Resize(coarse, empty, empty, whole, coordinate_transformation_mode="pytorch_half_pixel", cubic_coeff_a=-0.75,
                      mode="linear",
                      nearest_mode="floor")
    corners = n.Resize(coarse, empty, empty, whole, coordinate_transformation_mode="align_corners", mode="linear")
    return conv(n, n.Add(n.Add(fine, wide), n.Add(smooth, corners)), 8, 4, 3)


@exported(9, "pytorch", nodes=True, ir=4)
def upsample_of_opset_9(n):
    x = n.input("x", n.N, 4, 10, 12)
    y = n.Upsample(n.LeakyRelu(conv(n, x, 4, 8, 3), alpha=0.1), [1.0, 1.0, 2.0, 2.0], mode="nearest")
    return n.Tanh(conv(n, n.Concat(y, n.Upsample(x, [1.0, 1.0, 2.0, 2.0], mode="nearest"), axis=1), 12, 3, 3))


@exported(11, "pytorch", nodes=True)
def pixel_shuffles(n):
    x = n.input("lr", n.N, 3, "H", "W")
    y = conv(n, n.Relu(conv(n, x, 3, 8, 3)), 8, 12, 3)
    native = n.DepthToSpace(y, blocksize=2, mode="CRD")
    six = n.Reshape(y, as_list(n, size_of(n, y, 0), 3, 2, 2, size_of(n, y, 2), size_of(n, y, 3)))
    moved = n.Transpose(six, perm=[0, 1, 4, 2, 5, 3])
    rows, columns = n.Mul(size_of(n, y, 2), 2), n.Mul(size_of(n, y, 3), 2)
    return n.Add(native, n.Reshape(moved, as_list(n, size_of(n, y, 0), 3, rows, columns)))


@exported(11, "pytorch", nodes=True)
def channel_shuffle(n):
    x = n.input("x", n.N, 16, 9, 9)
    kept, y = n.Split(x, outputs=2, axis=1, split=[8, 8])
    y = n.Relu(norm(n, conv(n, y, 8, 8, 3, group=8, bias=False), 8))
    y = n.Concat(kept, n.Relu(conv(n, y, 8, 8, 1)), axis=1)
    rows, columns = size_of(n, y, 2), size_of(n, y, 3)
    y = n.Transpose(n.Reshape(y, as_list(n, size_of(n, y, 0), 2, 8, rows, columns)), perm=[0, 2, 1, 3, 4])
    return n.Reshape(y, as_list(n, size_of(n, x, 0), -1, rows, columns))


@exported(11, "pytorch", nodes=True)
def pad_of_computed_amounts(n):
    """F.pad as opset 11 has it: torch's order is turned round by ConstantOfShape, Concat, Reshape, Slice, Transpose."""
    x = n.input("x", n.N, 3, "H", "W")
    given = [1, 2, 0, 3]
    zeros = n.ConstantOfShape([4], value=tensor_of([0]))
    pairs = n.Slice(n.Reshape(n.Concat(given, zeros, axis=0), [-1, 2]), [-1], [-9223372036854775807], [0], [-1])
    pads = n.Cast(n.Reshape(n.Transpose(pairs, perm=[1, 0]), [-1]), to=INT)
    y = n.Pad(x, pads, 0.25, mode="constant")
    return n.Relu(n.Conv(n.Pad(y, pads, mode="reflect"), n.w(6, 3, 3, 3), n.w(6), kernel_shape=[3, 3]))


@exported(11, "pytorch", nodes=True)
def squeeze_behind_a_question(n):
    """x.squeeze(2) of a scripted model: If its size is 1, Squeeze, else Identity."""
    x = n.input("x", n.N, 4, 6, 10)
    y = n.ReduceMax(n.Relu(conv(n, x, 4, 8, 3)), axes=[2], keepdims=1)
    one = n.Equal(size_of(n, y, 2), 1)
    then = n.body("then", [], lambda s: [(s.Squeeze(y, axes=[2]), FLOAT)])
    other = n.body("other", [], lambda s: [(s.Identity(y), FLOAT)])
    z = n.If(one, then_branch=then, else_branch=other)
    return n.MatMul(n.Transpose(z, perm=[0, 2, 1]), n.w(8, 5, spread=0.4))


@exported(12, "pytorch", nodes=True)
def dropout_and_linear_norm(n):
    x = n.input("x", n.N, 12)
    y = n.Gemm(x, n.w(16, 12), n.w(16), alpha=1.0, beta=1.0, transB=1)
    y = n.Relu(norm(n, y, 16))
    y = n.Dropout(y, 0.5, n.constant(np.array(False)))
    return n.LogSoftmax(n.Gemm(y, n.w(7, 16), n.w(7), transB=1), axis=1)


@exported(11, "pytorch", nodes=True)
def unit_length_embedding(n):
    x = n.input("x", n.N, 3, 16, 16)
    y = n.PRelu(conv(n, x, 3, 8, 3, stride=2), n.positive(8, 1, 1))
    y = n.Gemm(n.Flatten(n.AveragePool(y, kernel_shape=[4, 4], strides=[4, 4])), n.w(16, 32), n.w(16), transB=1)
    length = n.Clip(n.ReduceL2(y, axes=[1], keepdims=1), n.constant(np.array(1e-12, np.float32)))
    return n.Div(y, n.Expand(length, n.Shape(y)))


@exported(12, "pytorch", nodes=True)
def group_norm_by_instance_norm(n):
    x = n.input("x", n.N, 8, 10, 10)
    y = conv(n, x, 8, 8, 3)
    flat = n.InstanceNormalization(n.Reshape(y, [0, 4, -1]), n.constant(np.ones(4, np.float32)),
                                   n.constant(np.zeros(4, np.float32)), epsilon=1e-5)
    y = n.Add(n.Mul(n.Reshape(flat, n.Shape(y)), n.positive(8, 1, 1)), n.w(8, 1, 1, spread=0.3))
    return n.Mul(y, n.Tanh(n.Softplus(y)))


@exported(11, "pytorch", nodes=True)
def generator_of_pictures(n):
    x = n.input("x", n.N, 3, 16, 16)
    y = n.Conv(n.Pad(x, [0, 0, 3, 3, 0, 0, 3, 3], mode="reflect"), n.w(8, 3, 7, 7), n.w(8), kernel_shape=[7, 7])
    y = n.Relu(n.InstanceNormalization(y, n.constant(np.ones(8, np.float32)), n.constant(np.zeros(8, np.float32)),
                                       epsilon=1e-5))
    y = n.LeakyRelu(conv(n, y, 8, 12, 3, stride=2), alpha=0.2)
    y = n.ConvTranspose(y, n.w(12, 8, 3, 3, spread=0.1), n.w(8), kernel_shape=[3, 3], output_padding=[1, 1], pads=[1] * 4,
                        strides=[2, 2])
    return n.Tanh(conv(n, n.Elu(y), 8, 3, 3))
