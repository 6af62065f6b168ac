"""Cases of quantised operators. Integers come out exactly, so both engines must agree in every bit; the operators of
com.microsoft are onnxruntime's own."""
import numpy as np

from generate import Case, Const
from onnx import helper


def real(*values):
    return Const(np.array(values if len(values) > 1 else values[0], dtype=np.float32), exact=True)


def whole(dtype, *values):
    return Const(np.array(values if len(values) > 1 else values[0], dtype=dtype))


def drawn(dtype, *shape, constant=False):
    """All values of the type, the extreme ones included."""
    info = np.iinfo(dtype)
    return lambda m: (Const if constant else np.asarray)(m.rng.integers(info.min, info.max + 1, shape).astype(dtype))


def linear(make):
    x = lambda *s: (lambda m: m.uniform(-9, 9, *s))
    u8, i8, i16, i32 = np.uint8, np.int8, np.int16, np.int32
    make.op("quantizelinear_u8", "QuantizeLinear", [x(2, 3, 5, 7), real(0.07), whole(u8, 121)], opset=10, single=True)
    make.op("quantizelinear_channels", "QuantizeLinear", [x(2, 3, 5), real(0.05, 0.11, 0.07), whole(i8, -3, 5, 0)],
            single=True)
    make.op("quantizelinear_i16", "QuantizeLinear", [x(3, 17), real(0.0003), whole(i16, 7)], opset=21, single=True)
    make.op("quantizelinear_no_zero", "QuantizeLinear", [x(3, 5, 3), real(0.031)], opset=13, single=True)
    make.op("dequantizelinear_u8", "DequantizeLinear",
            [drawn(u8, 2, 3, 5, 7), real(0.07), whole(u8, 121)], opset=21, single=True)
    make.op("dequantizelinear_channels", "DequantizeLinear",
            [drawn(i8, 2, 5, 3), real(0.05, 0.11, 0.07), whole(i8, -3, 5, 0)], opset=19, single=True, axis=-1)
    make.op("dequantizelinear_i32", "DequantizeLinear",
            [lambda m: m.rng.integers(-9999, 9999, (5, 7)).astype(i32), real(0.013)], opset=21, single=True)
    for name, data in [("2d", x(5, 17)), ("4d", x(1, 3, 7, 5)), ("positive", lambda m: m.uniform(2, 3, 31))]:
        make.op(f"dynamicquantizelinear_{name}", "DynamicQuantizeLinear", [data], opset=11, outputs=3, single=True)


def sums(make):
    u8, i8, i32 = np.uint8, np.int8, np.int32
    make.op("convinteger_plain", "ConvInteger", [drawn(u8, 2, 5, 7, 6), drawn(u8, 3, 5, 3, 3, constant=True)], opset=10)
    make.op("convinteger_padded", "ConvInteger",
            [drawn(u8, 1, 4, 9, 5), drawn(i8, 17, 4, 3, 3, constant=True), whole(u8, 131), whole(i8, 0)], opset=10,
            pads=[1, 1, 1, 1], strides=[2, 1])
    make.op("convinteger_zeros", "ConvInteger",
            [drawn(u8, 1, 3, 6, 6), drawn(u8, 4, 3, 2, 2, constant=True), whole(u8, 7), whole(u8, 99)], opset=10,
            pads=[1, 0, 0, 1])
    make.op("matmulinteger_2d", "MatMulInteger", [drawn(u8, 7, 19), drawn(i8, 19, 21, constant=True)], opset=10)
    make.op("matmulinteger_zeros", "MatMulInteger",
            [drawn(u8, 5, 33), drawn(u8, 33, 3), whole(u8, 200), whole(u8, 77)], opset=10)
    make.op("matmulinteger_3d", "MatMulInteger", [drawn(u8, 2, 3, 8), drawn(i8, 8, 5), whole(u8, 9)], opset=10)

    # Zero points by row of a, by matrix of b.
    for name, a, b, za, zb in [
            ("rows", (5, 9), (9, 3), (5,), ()), ("rows_and_columns", (4, 7), (7, 6), (4,), (6,)),
            ("matrices", (2, 3, 8), (2, 8, 5), (2, 3, 1), (2, 1, 5))]:
        name = f"matmulinteger_{name}"
        make.random(name)
        draw = lambda dtype, *s: drawn(dtype, *s)(make)
        feeds = {"x": draw(u8, *a), "w": draw(i8, *b), "za": Const(np.asarray(draw(u8, *za))),
                 "zb": Const(np.asarray(draw(i8, *zb)))}
        case = Case(name, [helper.make_node("MatMulInteger", ["x", "w", "za", "zb"], ["y"], name=name)], feeds, ["y"], 10)
        node = helper.make_node
        last = [node("Constant", [], ["one"], value_ints=[1]), node("Unsqueeze", ["zai", "one"], ["zar"])]
        case.like = [*(node("Cast", [i], [f"{i}i"], to=6) for i in ("x", "w", "za", "zb")),
                     *(last if len(za) == 1 else [node("Identity", ["zai"], ["zar"])]),
                     node("Sub", ["xi", "zar"], ["a"]), node("Sub", ["wi", "zbi"], ["b"]), node("MatMul", ["a", "b"], ["y"])]
        make.cases.append(case)

    def conv(name, x, w, wz, xz, ws, ys, yz, bias=True, **attributes):
        inputs = [x, real(0.02), xz, w, real(*ws) if len(ws) > 1 else real(ws[0]), wz, real(ys), yz]
        filters = attributes.pop("filters")
        if bias:
            inputs.append(lambda m: Const(m.rng.integers(-3000, 3000, filters).astype(i32)))
        make.op(f"qlinearconv_{name}", "QLinearConv", inputs, opset=10, **attributes)
    conv("pointwise", drawn(u8, 2, 16, 5, 7), drawn(i8, 24, 16, 1, 1, constant=True), whole(i8, 0), whole(u8, 113), [0.01],
         0.31, whole(u8, 131), filters=24)
    conv("padded_channels", drawn(u8, 1, 3, 9, 8), drawn(i8, 5, 3, 3, 3, constant=True), whole(i8, 0, 0, 0, 0, 0),
         whole(u8, 99), [0.01, 0.02, 0.015, 0.013, 0.007], 0.21, whole(u8, 131), filters=5, pads=[1, 1, 1, 1], strides=[2, 2])
    conv("depthwise", drawn(u8, 1, 12, 7, 6), drawn(u8, 12, 1, 3, 3, constant=True), whole(u8, 118), whole(u8, 3), [0.01], 0.21,
         whole(u8, 120), filters=12, group=12, pads=[1, 1, 1, 1])
    conv("groups", drawn(u8, 1, 6, 5, 5), drawn(u8, 4, 3, 2, 3, constant=True), whole(u8, 128), whole(u8, 128), [0.01], 0.21,
         whole(u8, 120), bias=False, filters=4, group=2)
    for name, a, b, kinds in [("2d", (5, 19), (19, 7), (u8, u8)), ("3d", (2, 5, 8), (2, 8, 3), (u8, u8)),
                              ("signed_weights", (3, 64), (64, 17), (u8, i8))]:
        make.op(f"qlinearmatmul_{name}", "QLinearMatMul",
                [drawn(kinds[0], *a), real(0.02), whole(kinds[0], 113), drawn(kinds[1], *b, constant=True), real(0.01),
                 whole(kinds[1], 17), real(0.31), whole(u8, 120)], opset=10)


def microsoft(make):
    u8, i8 = np.uint8, np.int8
    for name, a, b, kind, zeros in [("u8", (2, 5, 3, 7), (2, 5, 3, 7), u8, (113, 7, 99)),
                                    ("i8", (3, 33), (3, 33), i8, (-3, 7, 11)),
                                    ("channel", (2, 5, 3, 7), (5, 1, 1), u8, (1, 255, 131))]:
        make.op(f"qlinearadd_{name}", "QLinearAdd",
                [drawn(kind, *a), real(0.021), whole(kind, zeros[0]), drawn(kind, *b), real(0.013), whole(kind, zeros[1]),
                 real(0.027), whole(kind, zeros[2])], domain="com.microsoft")
    for name, shape, attributes in [("7x7", (1, 20, 7, 7), {}), ("batch", (3, 5, 4, 6), {}),
                                    ("channels_last", (2, 5, 6, 7), {"channels_last": 1})]:
        make.op(f"qlinearglobalaveragepool_{name}", "QLinearGlobalAveragePool",
                [drawn(u8, *shape), real(0.021), whole(u8, 113), real(0.011), whole(u8, 7)], domain="com.microsoft",
                **attributes)


def pools(make):
    """DequantizeLinear, MaxPool, QuantizeLinear: on integers where the scales are the same, on floats where they are not."""
    for name, kind, shape, out, attributes in [
            ("same", np.uint8, (1, 20, 9, 7), (0.07, 121), {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]}),
            ("signed", np.int8, (2, 67, 5, 6), (0.07, 121), {"kernel_shape": [2, 2], "dilations": [2, 1]}),
            ("other_scale", np.uint8, (1, 5, 6, 6), (0.05, 99), {"kernel_shape": [2, 3]})]:
        name = f"qdqmaxpool_{name}"
        make.random(name)
        feeds = {"x": drawn(kind, *shape)(make), "scale": real(0.07), "zero": whole(kind, 121), "y_scale": real(out[0]),
                 "y_zero": whole(kind, out[1])}
        nodes = [helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["real"], name=name + "_from"),
                 helper.make_node("MaxPool", ["real"], ["pooled"], name=name, **attributes),
                 helper.make_node("QuantizeLinear", ["pooled", "y_scale", "y_zero"], ["y"], name=name + "_to")]
        make.cases.append(Case(name, nodes, feeds, ["y"], 21, single=True))


def add(make):
    linear(make)
    pools(make)
    sums(make)
    microsoft(make)
