"""Cases of generate.py: activations, other element-wise operators with broadcasting, normalisation, reductions, softmax,
products of matrices."""
import numpy as np
from generate import SOFTMAX_11, Case, Const, ints
from onnx import helper

SHAPES = [(7,), (2, 3, 5, 7), (1, 2, 3, 2, 5)]
LARGE = np.array([-88, -40, -20.5, -3, -1, -1e-4, 0, 1e-4, 1, 3, 20.5, 40, 80], dtype=np.float32)

# operator: (oldest opset served, newest opset, low, high) of uniform data
UNARY = {
    "Relu": (6, 14, -4, 4), "Sigmoid": (6, 13, -8, 8), "Tanh": (6, 13, -5, 5), "Softplus": (1, 22, -9, 9),
    "Softsign": (1, 22, -9, 9), "HardSwish": (14, 22, -6, 6), "Mish": (18, 22, -6, 6), "Erf": (9, 13, -4, 4),
    "Exp": (6, 13, -10, 10), "Log": (6, 13, 1e-3, 50), "Sqrt": (6, 13, 0, 50), "Abs": (6, 13, -5, 5), "Neg": (6, 13, -5, 5),
    "Sign": (9, 13, -5, 5), "Reciprocal": (6, 13, 0.2, 8), "Floor": (6, 13, -9, 9), "Ceil": (6, 13, -9, 9),
    "Round": (11, 22, -9, 9), "Sin": (7, 22, -9, 9), "Cos": (7, 22, -9, 9), "Tan": (7, 22, -1.4, 1.4),
    "Asin": (7, 22, -1, 1), "Acos": (7, 22, -1, 1), "Atan": (7, 22, -9, 9), "Sinh": (9, 22, -4, 4), "Cosh": (9, 22, -4, 4),
    "Asinh": (9, 22, -9, 9), "Acosh": (9, 22, 1.01, 40), "Atanh": (9, 22, -0.97, 0.97), "Identity": (1, 16, -5, 5),
}
# operator: (opset, attributes, whether large arguments are finite)
PARAMETRIC = {
    "LeakyRelu": [(6, {}), (16, {"alpha": 0.2}), (13, {"alpha": -0.5}), (16, {"alpha": 1.5})],
    "Elu": [(6, {}), (13, {"alpha": 0.3}), (22, {"alpha": 2.0})],
    "Selu": [(6, {}), (13, {"alpha": 1.2, "gamma": 0.7}), (22, {"alpha": 2.0, "gamma": 3.0})],
    "Celu": [(12, {}), (13, {"alpha": 0.5}), (18, {"alpha": 3.0})],
    "HardSigmoid": [(6, {}), (13, {"alpha": 0.1, "beta": 0.4}), (22, {"alpha": 0.5, "beta": -0.25})],
    "ThresholdedRelu": [(10, {}), (13, {"alpha": 0.5}), (22, {"alpha": -0.5})],
    "Gelu": [(20, {}), (20, {"approximate": "tanh"}), (22, {"approximate": "none"})],
}
BINARY_SHAPES = [  # name, a, b, opset
    ("same", (2, 3, 4, 5), (2, 3, 4, 5), 7), ("scalar", (2, 3, 4, 5), (), 13), ("channel", (2, 3, 4, 5), (3, 1, 1), 14),
    ("both", (2, 1, 4, 1), (1, 3, 1, 5), 13), ("row", (3, 1, 5), (1, 2, 3, 4, 5), 13), ("rank1", (7,), (1,), 7),
]
REDUCE = ["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"]


def add(make):
    unary(make)
    elementwise(make)
    normalisation(make)
    reductions(make)
    products(make)


def unary(make):
    for op, (old, new, low, high) in UNARY.items():
        for shape, opset in zip(SHAPES, (old, max(old, 13), new)):
            make.op(f"{op.lower()}_{len(shape)}d", op, [lambda m, s=shape: m.uniform(low, high, *s)], opset=max(opset, 7))
    for op in ("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "HardSwish", "Erf", "Sign", "Floor", "Ceil"):
        make.op(f"{op.lower()}_large", op, [LARGE], opset=14)
    make.op("mish_large", "Mish", [LARGE], opset=18)
    make.op("exp_large", "Exp", [LARGE], opset=13)
    make.op("round_halves", "Round", [np.arange(-8, 9, dtype=np.float32) / 2], opset=11)
    make.op("sigmoid_empty_rank", "Sigmoid", [np.array(0.75, dtype=np.float32)], opset=13)
    for op, forms in PARAMETRIC.items():
        for i, ((opset, attributes), shape) in enumerate(zip(forms, SHAPES + SHAPES)):
            make.op(f"{op.lower()}_{i}", op, [lambda m, s=shape: m.normal(*s, scale=2)], opset=max(opset, 7), **attributes)
        make.op(f"{op.lower()}_large", op, [LARGE], opset=max(forms[-1][0], 13))
    make.op("prelu_channel", "PRelu", [(2, 3, 4, 5), make.weights(3, 1, 1, scale=1)], opset=9)
    make.op("prelu_shared", "PRelu", [(1, 4, 5, 3), make.weights(1, scale=1)], opset=16)
    make.op("prelu_full", "PRelu", [(3, 4, 5), make.weights(3, 4, 5, scale=1)], opset=13)
    make.op("clip_attributes", "Clip", [lambda m: m.normal(2, 3, 4, 5, scale=4)], opset=7, min=-1.5, max=2.0)
    make.op("clip_constants", "Clip", [lambda m: m.normal(1, 5, 3, 3, scale=4), Const(np.float32(0)), Const(np.float32(6))])
    make.op("clip_min_only", "Clip", [(3, 7), Const(np.float32(-0.5))], opset=11)
    make.op("clip_max_only", "Clip", [(3, 7), None, Const(np.float32(0.5))], opset=12)
    make.op("clip_none", "Clip", [(3, 7)], opset=13)
    for opset in (7, 10, 12, 13):
        make.op(f"dropout_{opset}", "Dropout", [(2, 3, 4)], opset=opset, **({"ratio": 0.3} if opset < 12 else {}))


def elementwise(make):
    for op in ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max"):
        for name, a, b, opset in BINARY_SHAPES:
            if op in ("Min", "Max"):
                opset = max(opset, 8)
            first = (lambda m, s=a: m.uniform(0.2, 3, *s)) if op == "Pow" else a
            second = (lambda m, s=b: m.uniform(0.5, 3, *s)) if op == "Div" else b
            make.op(f"{op.lower()}_{name}", op, [first, second], opset=opset)
        constant = make.weights(4, 1, 1, scale=1)
        if op == "Div":
            constant = lambda m: Const(m.uniform(0.5, 2, 4, 1, 1))
        make.op(f"{op.lower()}_constant", op, [lambda m: m.uniform(0.2, 3, 2, 4, 3, 5), constant], opset=14)
    make.op("sub_constant_first", "Sub", [lambda m: Const(np.float32(1)), (2, 3, 5)], opset=14)
    make.op("div_constant_first", "Div", [lambda m: Const(np.float32(1)), lambda m: m.uniform(0.5, 4, 2, 3, 5)], opset=14)
    make.op("pow_square", "Pow", [(2, 3, 5), Const(np.float32(2))], opset=13)
    make.op("pow_cube", "Pow", [(2, 3, 5), Const(np.float32(3))], opset=15)
    make.op("pow_root", "Pow", [lambda m: m.uniform(0, 9, 2, 3, 5), Const(np.float32(0.5))], opset=15)
    make.op("add_self_shape", "Add", [(1, 8, 6, 6), (1, 8, 1, 1)], opset=14)
    make.op("mul_gate", "Mul", [(2, 8, 5, 4), (2, 8, 1, 1)], opset=14)
    for op in ("Sum", "Mean", "Min", "Max"):
        make.op(f"{op.lower()}_one", op, [(3, 5)], opset=8)
        make.op(f"{op.lower()}_three", op, [(2, 3, 4), (3, 4), (4,)], opset=13)
        make.op(f"{op.lower()}_four", op, [(1, 3, 4, 4)] * 4, opset=8)
    mask = lambda *s: (lambda m: m.rng.random(s) < 0.5)
    make.op("where_same", "Where", [mask(2, 3, 4), (2, 3, 4), (2, 3, 4)], opset=9)
    make.op("where_mask_row", "Where", [mask(4), (2, 3, 4), (3, 1)], opset=16)
    make.op("where_scalar", "Where", [mask(2, 1, 3, 4), (1, 5, 3, 4), Const(np.float32(-1e4))], opset=16)


def normalisation(make):
    positive = lambda *s: (lambda m: Const(m.uniform(0.3, 2, *s)))
    for name, shape, opset, attributes in [
            ("2d", (2, 5, 4, 3), 9, {}), ("rank2", (4, 6), 15, {"epsilon": 1e-3}), ("1d", (2, 3, 9), 14, {"epsilon": 1e-2}),
            ("3d", (1, 4, 3, 2, 5), 15, {}), ("opset7", (1, 3, 6, 6), 7, {"epsilon": 1e-4})]:
        c = shape[1]
        make.op(f"batchnormalization_{name}", "BatchNormalization",
                [shape, positive(c), make.weights(c, scale=1), make.weights(c, scale=1), positive(c)], opset=opset,
                **attributes)
    for name, shape, opset, attributes in [
            ("2d", (2, 5, 7, 3), 7, {}), ("1d", (2, 3, 11), 22, {"epsilon": 1e-2}), ("3d", (1, 4, 3, 4, 5), 13, {}),
            ("offset", (1, 3, 8, 8), 13, {})]:
        c = shape[1]
        x = (lambda m, s=shape: m.normal(*s) + np.float32(100)) if name == "offset" else shape
        make.op(f"instancenormalization_{name}", "InstanceNormalization", [x, positive(c), make.weights(c, scale=1)],
                opset=opset, **attributes)
    for name, shape, axis, bias in [("last", (2, 3, 10), -1, True), ("axis1", (2, 3, 4, 5), 1, True),
                                    ("axis2", (3, 2, 5, 4), 2, False),
                                    ("default", (4, 33), None, True)]:
        start = axis if axis is not None else -1
        tail = shape[start:]
        inputs = [shape, positive(*tail)] + ([make.weights(*tail, scale=1)] if bias else [])
        make.op(f"layernormalization_{name}", "LayerNormalization", inputs, opset=17,
                **({} if axis is None else {"axis": axis, "epsilon": 1e-3}))
    # Far from zero: a variance computed as mean(x * x) - mean(x) ** 2 would lose its digits.
    make.op("layernormalization_statistics", "LayerNormalization",
            [lambda m: m.normal(2, 3, 4, 5) + np.float32(100), positive(4, 5), make.weights(4, 5, scale=1)], opset=17,
            outputs=3, axis=2)
    # The rank of what is normalised is known with the shapes alone.
    for name, axis in [("axis1", 1), ("axis0", 0)]:
        name = f"layernormalization_statistics_{name}"
        make.random(name)
        shape = (3, 2, 5)
        nodes = [helper.make_node("Relu", ["x"], ["r"]),
                 helper.make_node("LayerNormalization", ["r", "scale"], ["y", "mean", "deviation"], name=name, axis=axis)]
        make.cases.append(Case(name, nodes, {"x": make.normal(*shape), "scale": Const(make.uniform(0.5, 2, *shape[axis:]))},
                               ["y", "mean", "deviation"], 17))
    for name, shape, groups, opset in [("two", (2, 6, 4, 3), 2, 21), ("one", (1, 5, 7), 1, 21), ("each", (2, 4, 3, 3), 4, 21),
                                       ("epsilon", (1, 8, 5, 5), 4, 21)]:
        c = shape[1]
        make.op(f"groupnormalization_{name}", "GroupNormalization", [shape, positive(c), make.weights(c, scale=1)], opset=opset,
                num_groups=groups, **({"epsilon": 0.05} if name == "epsilon" else {}))
    make.op("groupnormalization_opset18", "GroupNormalization", [(2, 6, 3, 5), positive(3), make.weights(3, scale=1)], opset=18,
            num_groups=3)
    make.op("lrn_default", "LRN", [(1, 7, 4, 3)], opset=7, size=3)
    make.op("lrn_alexnet", "LRN", [lambda m: m.normal(2, 11, 3, 3, scale=20)], size=5, alpha=2e-4, beta=0.75, bias=2.0)
    make.op("lrn_five", "LRN", [(1, 6, 5, 2)], size=5, alpha=0.5, beta=0.5)
    make.op("lrn_wider_than_c", "LRN", [(1, 3, 4, 4)], size=9, alpha=0.3)


def reductions(make):
    for kind in REDUCE:
        op, positive = "Reduce" + kind, kind in ("LogSum",)
        data = lambda *s: (lambda m: m.uniform(0.2, 2, *s)) if positive else s
        if kind == "Prod":
            data = lambda *s: (lambda m: m.uniform(-1.5, 1.5, *s))
        axes = lambda old, *a: ({"axes": list(a)}, []) if old else ({}, [ints(*a)])
        for name, shape, which, keep, opset in [
                ("one", (3, 4, 5), (1,), 1, 11), ("spatial", (2, 5, 4, 3), (2, 3), 1, 13), ("last", (2, 3, 17), (-1,), 0, 18),
                ("outer", (4, 3, 5), (0,), 0, 13), ("channel", (1, 6, 4, 4), (1,), 1, 18),
                ("odd", (2, 3, 2, 5), (0, 2), 0, 18)]:
            attributes, extra = axes(opset < (13 if kind == "Sum" else 18), *which)
            make.op(f"reduce{kind.lower()}_{name}", op, [data(*shape)] + extra, opset=opset, keepdims=keep, **attributes)
        make.op(f"reduce{kind.lower()}_all", op, [data(3, 2, 4)], opset=18, keepdims=0)
    make.op("reducesum_noop", "ReduceSum", [(3, 4), ints()], opset=13, noop_with_empty_axes=1)
    make.op("reducelogsumexp_large", "ReduceLogSumExp", [lambda m: m.normal(3, 9, scale=60)], opset=13, axes=[1])
    for op in ("Softmax", "LogSoftmax"):
        for name, shape, axis, opset in [("last", (3, 10), -1, 13), ("channel", (2, 5, 3, 4), 1, 13), ("first", (4, 3), 0, 13),
                                         ("middle", (2, 3, 7, 2), 2, 13), ("flat", (2, 3, 4), 1, 11), ("flat0", (3, 4), 0, 11)]:
            make.op(f"{op.lower()}_{name}", op, [lambda m, s=shape: m.normal(*s, scale=3)], opset=opset, axis=axis,
                    peer_is_right=SOFTMAX_11 if opset < 13 else None)
        make.op(f"{op.lower()}_large", op, [lambda m: m.normal(4, 6, scale=90)], opset=13)


def products(make):
    for name, a, b, opset in [("2d", (5, 7), (7, 3), 7), ("batch", (2, 3, 4, 6), (2, 3, 6, 5), 9),
                              ("broadcast", (2, 1, 4, 5), (3, 5, 6), 13),
                              ("vector_right", (3, 4, 6), (6,), 13), ("vector_left", (6,), (2, 6, 3), 13),
                              ("dot", (9,), (9,), 13),
                              ("long", (3, 257), (257, 2), 13), ("wide", (1, 33), (33, 70), 13)]:
        make.op(f"matmul_{name}", "MatMul", [a, b], opset=opset)
    make.op("matmul_constant", "MatMul", [(2, 9, 16), make.weights(16, 24)], opset=13)
    make.op("gemm_plain", "Gemm", [(3, 5), (5, 4), (4,)], opset=7)
    make.op("gemm_transposed", "Gemm", [(5, 3), make.weights(4, 5), (3, 4)], opset=9, transA=1, transB=1)
    make.op("gemm_scaled", "Gemm", [(3, 6), make.weights(4, 6), make.weights(1, 4)], opset=11, transB=1, alpha=0.5, beta=2.0)
    make.op("gemm_no_c", "Gemm", [(4, 9), make.weights(9, 7)], opset=13)
    make.op("gemm_column_c", "Gemm", [(4, 9), make.weights(9, 7), make.weights(4, 1)], opset=13, beta=0.25)
    make.op("gemm_scalar_c", "Gemm", [(1, 65), make.weights(10, 65), Const(np.float32(0.5))], opset=13, transB=1)
    make.op("gemm_classifier", "Gemm", [(1, 128), make.weights(50, 128), make.weights(50, scale=1)], opset=13, transB=1)
