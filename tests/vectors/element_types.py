"""Cases of generate.py in other element types: float16 and bfloat16 wherever a convolutional network has them, and the
integers, double and bool of element-wise operators, reductions, pooling and products."""
import ml_dtypes
import numpy as np
from generate import Const, ints

HALVES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def add(make):
    for name, dtype in HALVES.items():
        halves(make, name, dtype)
    integers(make)


def halves(make, name, dtype):
    def op(case, *arguments, **attributes):
        make.op(f"{name}_{case}", *arguments, **attributes)
        make.cases[-1].stored = dtype

    image, weights = (1, 6, 9, 8), make.weights
    op("conv_3x3", "Conv", [image, weights(8, 6, 3, 3), weights(8, scale=1)], opset=22, pads=[1, 1, 1, 1])
    op("conv_1x1_stride", "Conv", [image, weights(5, 6, 1, 1)], opset=22, strides=[2, 2])
    op("conv_depthwise", "Conv", [image, weights(6, 1, 3, 3), weights(6, scale=1)], opset=22, group=6, pads=[1, 1, 1, 1])
    op("conv_groups_inputs", "Conv", [image, (4, 3, 3, 3), (4,)], opset=22, group=2)
    op("conv_1d_dilated", "Conv", [(2, 4, 19), weights(3, 4, 3)], opset=22, dilations=[2])
    op("convtranspose", "ConvTranspose", [image, weights(6, 4, 2, 2), weights(4, scale=1)], opset=22, strides=[2, 2])
    op("gemm", "Gemm", [(3, 17), weights(9, 17), weights(9, scale=1)], opset=13, transB=1, alpha=0.5)
    op("matmul", "MatMul", [(2, 3, 17), (2, 17, 5)], opset=13)
    op("matmul_constant", "MatMul", [(3, 17), weights(17, 5)], opset=13)
    op("maxpool", "MaxPool", [image], opset=22, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    op("averagepool", "AveragePool", [image], opset=22, kernel_shape=[2, 3])
    op("globalaveragepool", "GlobalAveragePool", [image], opset=22)
    op("globalmaxpool", "GlobalMaxPool", [image], opset=22)
    positive = lambda *s: (lambda m: Const(m.uniform(0.3, 2, *s)))
    op("batchnormalization", "BatchNormalization",
       [image, weights(6, scale=1), weights(6, scale=1), weights(6, scale=1), positive(6)], opset=15)
    op("batchnormalization_inputs", "BatchNormalization",
       [image, (6,), (6,), (6,), lambda m: m.uniform(0.3, 2, 6)], opset=15)
    op("instancenormalization", "InstanceNormalization", [image, weights(6, scale=1), weights(6, scale=1)], opset=22)
    op("layernormalization", "LayerNormalization", [(2, 5, 16), weights(16, scale=1), weights(16, scale=1)], opset=17)
    op("groupnormalization", "GroupNormalization", [image, weights(6, scale=1), weights(6, scale=1)], opset=21, num_groups=3)
    op("lrn", "LRN", [(2, 6, 5, 4)], opset=13, size=3)
    op("softmax", "Softmax", [(2, 5, 33)], opset=13)
    op("logsoftmax", "LogSoftmax", [(2, 5, 7)], opset=13, axis=1)
    for activation, opset in (("Relu", 14), ("Sigmoid", 13), ("Tanh", 13), ("LeakyRelu", 16), ("HardSwish", 22), ("Gelu", 20),
                              ("Elu", 22), ("Softplus", 22), ("HardSigmoid", 22), ("Mish", 22), ("Exp", 13)):
        op(activation.lower(), activation, [(2, 3, 45)], opset=opset)
    op("prelu", "PRelu", [image, weights(6, 1, 1, scale=1)], opset=16)
    op("clip", "Clip", [image, Const(np.float32(0)), Const(np.float32(1.5))], opset=13)
    op("add_channel", "Add", [image, weights(6, 1, 1, scale=1)], opset=14)
    op("mul_gate", "Mul", [image, (1, 6, 1, 1)], opset=14)
    op("sub_same", "Sub", [(3, 37), (3, 37)], opset=14)
    op("div_row", "Div", [(3, 37), lambda m: m.uniform(0.5, 3, 37)], opset=14)
    op("pow", "Pow", [lambda m: m.uniform(0.2, 3, 3, 7), lambda m: m.uniform(-1, 2, 7)], opset=15)
    op("max_three", "Max", [(3, 7), (7,), (3, 1)], opset=13)
    op("where", "Where", [lambda m: m.rng.random((3, 7)) < 0.5, (3, 7), (7,)], opset=16)
    op("less", "Less", [(3, 7), (3, 7)], opset=13)
    op("concat", "Concat", [image, (1, 3, 9, 8)], opset=13, axis=1)
    op("transpose", "Transpose", [image], opset=21, perm=[0, 2, 3, 1])
    op("pad", "Pad", [image, ints(0, 0, 1, 2, 0, 0, 2, 1), Const(np.float32(0.5))], opset=21)
    op("slice", "Slice", [image, ints(1, 2), ints(5, 8), ints(1, 2)], opset=13)
    op("depthtospace", "DepthToSpace", [(1, 8, 3, 4)], opset=13, blocksize=2)
    scales = Const(np.array([1, 1, 2, 2], dtype=np.float32), exact=True)
    op("resize_nearest", "Resize", [image, None, scales], opset=19)
    op("resize_linear", "Resize", [image, None, scales], opset=19, mode="linear")
    op("attention", "Attention", [(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)], opset=23)
    op("gridsample", "GridSample", [image, lambda m: m.uniform(-1, 1, 1, 4, 5, 2)], opset=22)
    for reduction in ("Mean", "Sum", "Max", "L2"):
        axes = [ints(1, 2)] if reduction != "L2" else []
        op(f"reduce{reduction.lower()}", f"Reduce{reduction}", [(2, 5, 33)] + axes, opset=18)


def integers(make):
    def op(case, *arguments, **attributes):
        make.op(f"types_{case}", *arguments, **attributes)
        make.cases[-1].exact = True

    def whole(dtype, *shape):
        """Numbers over the whole range of the type, its ends among them."""
        def values(m):
            info = np.iinfo(dtype)
            x = m.rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
            x.flat[0], x.flat[-1] = info.min, info.max
            return x
        return values

    def small(dtype, low, high, *shape):
        return lambda m: m.rng.integers(low, high, shape, endpoint=True).astype(dtype)

    every = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
    for dtype in every:
        t = np.dtype(dtype).name
        for name in ("Add", "Sub", "Mul"):
            op(f"{name.lower()}_{t}", name, [whole(dtype, 3, 67), whole(dtype, 67)], opset=14)
        for name in ("Max", "Min"):
            op(f"{name.lower()}_{t}", name, [whole(dtype, 3, 67), whole(dtype, 3, 1)], opset=13)
        for name in ("Equal", "Less", "GreaterOrEqual"):
            opset = 19 if name == "Equal" else 13
            op(f"{name.lower()}_{t}", name, [small(dtype, 0, 3, 3, 7), small(dtype, 0, 3, 7)], opset=opset)
        op(f"div_{t}", "Div", [small(dtype, 0, 100, 3, 7), small(dtype, 1, 9, 7)], opset=14)
        op(f"mod_{t}", "Mod", [whole(dtype, 3, 67), small(dtype, 1, 9, 67)], opset=13)
        op(f"where_{t}", "Where", [lambda m: m.rng.random((3, 7)) < 0.5, whole(dtype, 3, 7), whole(dtype, 7)], opset=16)
        op(f"cast_{t}_to_int16", "Cast", [whole(dtype, 3, 67)], opset=13, to=5)
        op(f"cast_{t}_to_double", "Cast", [small(dtype, 0, 100, 3, 7)], opset=13, to=11)
        op(f"cast_float_to_{t}", "Cast", [lambda m: m.uniform(0, 100, 3, 67)], opset=13, to=int(Const.onnx_type(dtype)))
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        t = np.dtype(dtype).name
        op(f"floor_mod_{t}", "Mod", [small(dtype, -100, 100, 3, 67), small(dtype, -9, -1, 67)], opset=13)
        op(f"fmod_{t}", "Mod", [small(dtype, -100, 100, 3, 67), small(dtype, -9, -1, 67)], opset=13, fmod=1)
        op(f"neg_abs_{t}", "Abs", [small(dtype, -100, 100, 3, 67)], opset=13)
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        t = np.dtype(dtype).name
        op(f"matmul_{t}", "MatMul", [small(dtype, 0, 9, 2, 3, 5), small(dtype, 0, 9, 5, 4)], opset=13)
        op(f"gemm_{t}", "Gemm", [small(dtype, 0, 9, 3, 5), small(dtype, 0, 9, 5, 4), small(dtype, 0, 9, 4)], opset=13)
        op(f"reducesum_{t}", "ReduceSum", [whole(dtype, 3, 7), ints(1)], opset=13)
        op(f"reducemax_{t}", "ReduceMax", [whole(dtype, 3, 7), ints(0)], opset=18)
    for dtype in (np.int8, np.uint8):
        t = np.dtype(dtype).name
        op(f"maxpool_{t}", "MaxPool", [whole(dtype, 1, 3, 7, 6)], opset=12, kernel_shape=[3, 2])
        op(f"reducemin_{t}", "ReduceMin", [whole(dtype, 3, 7), ints(1)], opset=18, keepdims=0)
    clip = [whole(np.int64, 3, 7), Const(np.int64(-2**62 - 1)), Const(np.int64(2**62 + 1))]
    op("clip_int64", "Clip", clip, opset=13)
    op("clip_int8", "Clip", [whole(np.int8, 3, 7), Const(np.int8(-5))], opset=13)
    op("cast_bool_to_int64", "Cast", [lambda m: m.rng.random((3, 7)) < 0.5], opset=13, to=7)
    op("cast_int8_to_bool", "Cast", [small(np.int8, -1, 1, 3, 7)], opset=13, to=9)
    op("equal_bool", "Equal", [lambda m: m.rng.random((3, 7)) < 0.5, lambda m: m.rng.random((3, 7)) < 0.5], opset=19)
    op("where_bool", "Where", [lambda m: m.rng.random((3, 7)) < 0.5, lambda m: m.rng.random((3, 7)) < 0.5,
       lambda m: m.rng.random((3, 7)) < 0.5], opset=16)
    double = lambda *s: (lambda m: m.rng.standard_normal(s))
    op("double_add", "Add", [double(3, 67), double(67)], opset=14)
    op("double_sigmoid", "Sigmoid", [double(3, 67)], opset=13)
    op("double_matmul", "MatMul", [double(3, 17), double(17, 5)], opset=13)
    op("double_conv", "Conv", [double(1, 3, 7, 6), double(4, 3, 3, 3), double(4)], opset=11, pads=[1, 1, 1, 1])
    op("double_softmax", "Softmax", [double(3, 17)], opset=13)
    op("double_maxpool", "MaxPool", [double(1, 3, 7, 6)], opset=12, kernel_shape=[2, 2])
    op("double_reducelogsumexp", "ReduceLogSumExp", [double(3, 17)], opset=18)
    op("double_to_bfloat16", "Cast", [double(3, 67)], opset=13, to=16)
    op("float_to_bfloat16", "Cast", [(3, 67)], opset=13, to=16, single=True)
    op("float_to_float16", "Cast", [(3, 67)], opset=13, to=10, single=True)
