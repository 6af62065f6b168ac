"""Networks in the forms of older exporters (MXNet, Caffe2), of converters to fp16, and of ONNX Runtime's tools: quantised in
three ways, optimised with operators of its own."""
import numpy as np
from onnx import TensorProto

from net import exported

INT, FLOAT, HALF = TensorProto.INT64, TensorProto.FLOAT, TensorProto.FLOAT16
MICROSOFT = "com.microsoft"


@exported(8, "mxnet", ir=3)
def mxnet_resnet(n):
    """Constants listed as inputs, BatchNormalization with `spatial`, flattening Softmax of old opsets."""
    x = n.input("data", n.N, 3, 16, 16)
    y = n.BatchNormalization(x, n.positive(3), n.w(3), n.w(3), n.positive(3), epsilon=2e-5, momentum=0.9)
    y = n.Conv(y, n.w(8, 3, 3, 3), kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1], dilations=[1, 1], group=1)
    y = n.Relu(n.BatchNormalization(y, n.positive(8), n.w(8), n.w(8), n.positive(8), epsilon=2e-5, momentum=0.9))
    y = n.MaxPool(y, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    y = n.Add(n.Relu(n.Conv(y, n.w(8, 8, 3, 3), n.w(8), kernel_shape=[3, 3], pads=[1] * 4)), y)
    y = n.LRN(y, alpha=1e-4, beta=0.75, bias=2.0, size=5)
    y = n.Gemm(n.Flatten(n.GlobalAveragePool(y)), n.w(10, 8), n.w(10), alpha=1.0, beta=1.0, transA=0, transB=1)
    return n.Softmax(y, axis=1)


@exported(7, "caffe2", ir=3)
def caffe2_squeezenet(n):
    """Opset 7: Dropout with a mask, concatenated branches, pooling with pads at one end."""
    x = n.input("data_0", n.N, 3, 23, 23)
    y = n.Relu(n.Conv(x, n.w(8, 3, 3, 3), n.w(8), kernel_shape=[3, 3], strides=[2, 2]))
    y = n.MaxPool(y, kernel_shape=[3, 3], pads=[0, 0, 1, 1], strides=[2, 2])
    s = n.Relu(n.Conv(y, n.w(4, 8, 1, 1), n.w(4), kernel_shape=[1, 1]))
    y = n.Concat(n.Relu(n.Conv(s, n.w(8, 4, 1, 1), n.w(8), kernel_shape=[1, 1])),
                 n.Relu(n.Conv(s, n.w(8, 4, 3, 3), n.w(8), kernel_shape=[3, 3], pads=[1] * 4)), axis=1)
    y, _ = n.Dropout(y, outputs=2, ratio=0.5)
    y = n.GlobalAveragePool(n.Relu(n.Conv(y, n.w(10, 16, 1, 1), n.w(10), kernel_shape=[1, 1])))
    return n.named_output("softmaxout_1", n.Softmax(y))


@exported(13, "onnxconverter-common", tolerance=0.005)
def converted_to_fp16(n):
    """Weights and operators in fp16, float32 at both ends by Cast, one operator kept in float32 between two Casts."""
    x = n.input("input", n.N, 3, 16, 16)
    y = n.Cast(x, to=HALF)
    y = n.Relu(n.Conv(y, n.w(16, 3, 3, 3, dtype=np.float16), n.w(16, dtype=np.float16), kernel_shape=[3, 3], pads=[1] * 4))
    wide = n.Resize(n.Cast(y, to=FLOAT), None, [1.0, 1.0, 2.0, 2.0], mode="nearest",
                    coordinate_transformation_mode="asymmetric",
                    nearest_mode="floor")
    y = n.Conv(n.Cast(wide, to=HALF), n.w(16, 16, 3, 3, dtype=np.float16), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    y = n.Reshape(n.GlobalAveragePool(n.Add(y, n.constant(np.full((1, 16, 1, 1), 0.5, np.float16)))), [-1, 16])
    return n.Cast(n.Gemm(y, n.w(5, 16, dtype=np.float16), n.w(5, dtype=np.float16), transB=1), to=FLOAT)


def step_of(n, scale, zero, dtype=np.uint8):
    return n.constant(np.array(scale, np.float32)), n.constant(np.array(zero, dtype))


@exported(13, "onnx.quantize", step=3 / 255)
def quantized_operators(n):
    """quantize_static in the form of operators: QLinearConv, QLinearAdd, QLinearGlobalAveragePool, QLinearMatMul."""
    n.domains[MICROSOFT] = 1
    x = n.input("x", n.N, 3, 16, 16)

    def layer(y, given, c, k, made):
        w = n.constant(n.rng.integers(-63, 64, (k, c, 3, 3)).astype(np.int8))
        steps = n.constant((n.rng.uniform(0.5, 1.5, k) / 63 / np.sqrt(c * 9)).astype(np.float32))
        return n.QLinearConv(y, *given, w, steps, n.constant(np.zeros(k, np.int8)), *made,
                             n.constant(n.rng.integers(-300, 300, k).astype(np.int32)),
                             kernel_shape=[3, 3], pads=[1] * 4)
    at, inner, total = step_of(n, 2 / 255, 128), step_of(n, 1.5 / 255, 0), step_of(n, 3 / 255, 110)
    y = layer(n.QuantizeLinear(x, *at), at, 3, 8, inner)
    z = layer(y, inner, 8, 8, at)
    y = n.QLinearAdd(y, *inner, z, *at, *total, domain=MICROSOFT)
    pooled = step_of(n, 2 / 255, 100)
    y = n.QLinearGlobalAveragePool(y, *total, *pooled, domain=MICROSOFT, channels_last=0)
    y = n.Reshape(y, [-1, 8])
    w = n.constant(n.rng.integers(-63, 64, (8, 5)).astype(np.int8))
    y = n.QLinearMatMul(y, *pooled, w, *step_of(n, 0.01, 0, np.int8), *step_of(n, 3 / 255, 128))
    return n.DequantizeLinear(y, *step_of(n, 3 / 255, 128))


@exported(13, "onnx.quantize", step=2 / 255)
def quantized_by_pairs(n):
    """quantize_static in the form of QuantizeLinear and DequantizeLinear round each operator, residual and pooling included."""
    x = n.input("x", n.N, 3, 16, 16)

    def pair(y, scale, zero):
        at = step_of(n, scale, zero)
        return n.DequantizeLinear(n.QuantizeLinear(y, *at), *at)

    def layer(y, c, k):
        w = n.constant(n.rng.integers(-63, 64, (k, c, 3, 3)).astype(np.int8))
        steps = n.constant((n.rng.uniform(0.5, 1.5, k) / 63 / np.sqrt(c * 9)).astype(np.float32))
        return n.Conv(y, n.DequantizeLinear(w, steps, n.constant(np.zeros(k, np.int8)), axis=0), n.w(k, spread=0.1),
                      kernel_shape=[3, 3], pads=[1] * 4)
    y = pair(n.Relu(layer(pair(x, 2 / 255, 128), 3, 8)), 1.5 / 255, 0)
    y = pair(n.Add(pair(layer(y, 8, 8), 2 / 255, 128), y), 3 / 255, 100)
    y = pair(n.MaxPool(y, kernel_shape=[2, 2], strides=[2, 2]), 3 / 255, 100)
    y = pair(n.GlobalAveragePool(y), 2 / 255, 100)
    w = n.constant(n.rng.integers(-63, 64, (8, 5)).astype(np.int8))
    return pair(n.MatMul(n.Reshape(y, [-1, 8]), n.DequantizeLinear(w, *step_of(n, 0.003, 0, np.int8))), 2 / 255, 128)


@exported(11, "onnx.quantize", tolerance=0.02)
def quantized_as_it_runs(n):
    """quantize_dynamic: DynamicQuantizeLinear, ConvInteger and MatMulInteger, Cast, Mul, Add."""
    x = n.input("x", n.N, 3, 12, 12)

    def scaled(y, step, own):
        return n.Mul(n.Cast(y, to=FLOAT), n.Mul(step, n.constant(np.array(own, np.float32))))
    q, step, zero = n.DynamicQuantizeLinear(x, outputs=3)
    w = n.constant(n.rng.integers(96, 161, (8, 3, 3, 3)).astype(np.uint8))
    y = n.ConvInteger(q, w, zero, n.constant(np.array(128, np.uint8)), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    y = n.Relu(n.Add(scaled(y, step, 0.01), n.w(1, 8, 1, 1)))
    q, step, zero = n.DynamicQuantizeLinear(n.Reshape(y, [-1, 288]), outputs=3)
    w = n.constant(n.rng.integers(-63, 64, (288, 6)).astype(np.int8))
    return n.Add(scaled(n.MatMulInteger(q, w, zero, n.constant(np.array(0, np.int8))), step, 0.001), n.w(6))


@exported(14, "onnxruntime", refused=("FusedConv", "Gelu", "FusedMatMul", "SkipLayerNormalization", "FusedGemm"))
def optimized_by_onnxruntime(n):
    """A model that ONNX Runtime has saved optimised: FusedConv, FusedMatMul, FusedGemm, its Gelu and SkipLayerNormalization."""
    n.domains[MICROSOFT] = 1
    x = n.input("x", n.N, 3, 12, 12)
    y = n.FusedConv(x, n.w(8, 3, 3, 3), n.w(8), domain=MICROSOFT, activation="Relu", kernel_shape=[3, 3], pads=[1] * 4)
    flat = n.Transpose(n.Reshape(y, [0, 8, 144]), perm=[0, 2, 1])
    z = n.Gelu(n.MatMul(flat, n.w(8, 8, spread=0.4)), domain=MICROSOFT)
    z = n.FusedMatMul(z, n.w(8, 8, spread=0.4), domain=MICROSOFT, transB=1, alpha=0.5)
    z = n.SkipLayerNormalization(flat, z, n.positive(8), n.w(8), domain=MICROSOFT, epsilon=1e-5)
    return n.FusedGemm(n.ReduceMean(z, axes=[1], keepdims=0), n.w(5, 8), n.w(5), domain=MICROSOFT, transB=1, activation="Relu")


@exported(12, "darknet2onnx", nodes=True)
def darknet_upsample(n):
    """pytorch-YOLOv4's Upsample for exports: a view of six axes, Expand, a view back."""
    x = n.input("input", n.N, 3, 16, 16)
    y = n.Conv(x, n.w(8, 3, 3, 3), n.w(8), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    y = n.Mul(y, n.Tanh(n.Log(n.Add(n.Exp(y), 1.0))))
    batch = n.Unsqueeze(n.Gather(n.Shape(y), 0), axes=[0])
    six = n.Reshape(y, n.Concat(batch, [8, 8, 1, 8, 1], axis=0))
    wide = n.Reshape(n.Expand(six, n.Concat(batch, [8, 8, 2, 8, 2], axis=0)), n.Concat(batch, [8, 16, 16], axis=0))
    return n.Concat(wide, x, axis=1)


@exported(17, "optimum", nodes=True, named=True)
def text_encoder(n):
    """A transformer's encoder as Optimum exports it: tables of words and places, a mask of numbers, GELU, the pooled first
    token."""
    c, heads = 16, 2
    words = n.input("input_ids", n.N, "T", dtype=np.int64, low=0, high=30)
    mask = n.input("attention_mask", n.N, "T", dtype=np.int64, low=1, high=1)
    time = n.Gather(n.Shape(words), 1, axis=0)
    places = n.Slice(n.constant(np.arange(16)[None].astype(np.int64)), [0], n.Unsqueeze(time, [0]), [1], [1])
    y = n.Add(n.Gather(n.w(31, c, spread=1), words), n.Gather(n.w(16, c, spread=1), places))
    y = n.LayerNormalization(y, n.positive(c), n.w(c), axis=-1, epsilon=1e-12)
    wide = n.Cast(n.Unsqueeze(n.Unsqueeze(mask, [1]), [2]), to=FLOAT)
    bias = n.Mul(n.Sub(1.0, wide), n.constant(np.array(np.finfo(np.float32).min, np.float32)))
    shape = n.Concat(n.Unsqueeze(n.Gather(n.Shape(y), 0, axis=0), [0]), n.Unsqueeze(time, [0]), [heads], [c // heads], axis=0)
    q, k, v = (n.Transpose(n.Reshape(n.Add(n.w(c), n.MatMul(y, n.w(c, c, spread=0.3))), shape), perm=perm)
               for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    p = n.Softmax(n.Add(n.Div(n.MatMul(q, k), n.Sqrt(n.Cast(n.constant(np.array(c // heads, np.int64)), to=FLOAT))), bias),
                  axis=-1)
    z = n.Transpose(n.MatMul(p, v), perm=[0, 2, 1, 3])
    z = n.Reshape(z, n.Concat(n.Slice(n.Shape(z), [0], [2], [0]), [c], axis=0))
    y = n.LayerNormalization(n.Add(n.MatMul(z, n.w(c, c, spread=0.3)), y), n.positive(c), n.w(c), axis=-1)
    return [y, n.Tanh(n.Gemm(n.Gather(y, 0, axis=1), n.w(c, c), n.w(c), transB=1))]
