"""Cases of generate.py: comparison, logic, casts, constants and the operators about shapes, and the normalisations that are
made of other operators."""
import numpy as np
from generate import Case, Const, ints
from onnx import TensorProto, helper, numpy_helper


def add(make):
    comparison(make)
    casts(make)
    constants(make)
    normalisation(make)
    others(make)


def bools(*shape):
    return lambda m: m.rng.random(shape) < 0.5


def coarse(*shape):
    """Few different values, so that equality happens."""
    return lambda m: m.rng.integers(-2, 3, shape).astype(np.float32) / 2


def comparison(make):
    for op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"):
        old = 12 if op.endswith("OrEqual") else 7 if op != "Equal" else 11
        for name, a, b, opset in [("same", (3, 7), (3, 7), old), ("channel", (2, 3, 5, 3), (3, 1, 1), 13),
                                  ("both", (2, 1, 5, 1), (1, 3, 1, 7), 16)]:
            make.op(f"{op.lower()}_{name}", op, [coarse(*a), coarse(*b)], opset=opset)
        make.op(f"{op.lower()}_constant", op, [coarse(1, 5, 3), Const(np.float32(0.5))], opset=16)
    for op in ("And", "Or", "Xor"):
        for name, a, b, opset in [("same", (3, 7), (3, 7), 7), ("row", (2, 3, 5), (5,), 13), ("both", (3, 1, 5), (7, 1), 7)]:
            make.op(f"{op.lower()}_{name}", op, [bools(*a), bools(*b)], opset=opset)
    for name, shape in (("1d", (7,)), ("3d", (3, 1, 5)), ("4d", (2, 3, 5, 7))):
        make.op(f"not_{name}", "Not", [bools(*shape)], opset=7)

    def holes(*shape):
        def values(m):
            data = m.normal(*shape)
            data[m.rng.random(shape) < 0.3] = np.nan
            data[..., 0] = np.inf
            return data
        return values

    make.op("isnan_1d", "IsNaN", [holes(19)], opset=9)
    make.op("isnan_3d", "IsNaN", [holes(2, 3, 7)], opset=13)
    make.op("isnan_4d", "IsNaN", [holes(1, 3, 5, 3)], opset=20)


def casts(make):
    whole = lambda dtype, low, high, *shape: (lambda m: m.rng.integers(low, high, shape).astype(dtype))
    for name, x, to, opset in [
            ("bool_to_float", bools(2, 3, 5), TensorProto.FLOAT, 9), ("float_to_bool", coarse(3, 7), TensorProto.BOOL, 13),
            ("int64_to_float", whole(np.int64, -99, 99, 3, 5), TensorProto.FLOAT, 6),
            ("int32_to_float", whole(np.int32, -99, 99, 7), TensorProto.FLOAT, 13),
            ("uint8_to_float", whole(np.uint8, 0, 256, 1, 5, 3, 3), TensorProto.FLOAT, 19),
            ("float_to_int64", lambda m: m.uniform(-9, 9, 3, 7), TensorProto.INT64, 13),
            ("float_to_int32", lambda m: m.uniform(-9, 9, 2, 1, 5), TensorProto.INT32, 9),
            ("float_to_float", (3, 5), TensorProto.FLOAT, 13)]:
        make.op(f"cast_{name}", "Cast", [x], opset=opset, to=to)
    make.op("castlike_bool", "CastLike", [coarse(3, 7), bools(2)], opset=15)
    make.op("castlike_float", "CastLike", [bools(2, 3, 5), (1,)], opset=15)
    make.op("castlike_same", "CastLike", [(3, 1, 7), (5, 3)], opset=19)
    make.op("castlike_int64_to_float", "CastLike", [whole(np.int64, -9, 9, 2, 3, 5), (1,)], opset=15)
    make.op("castlike_int32", "CastLike", [lambda m: m.uniform(-9, 9, 5, 3), Const(np.array([1], dtype=np.int32))], opset=19)


def graph(make, name, nodes, feeds, outputs, opset=13):
    make.cases.append(Case(name, nodes, feeds, outputs, opset, single=True))


def constants(make):
    def constant(name, opset, shape, **value):
        make.random(name)
        nodes = [helper.make_node("Constant", [], ["c"], name="constant", **value),
                 helper.make_node("Mul", ["x", "c"], ["y"], name="product")]
        graph(make, name, nodes, {"x": make.normal(*shape)}, ["y"], opset)

    constant("constant_float", 13, (2, 3, 5), value_float=0.75)
    constant("constant_floats", 13, (3, 5), value_floats=[0.5, -1.25, 3.0, 0.0, 2.0])
    make.random("constant_tensor_value")
    constant("constant_tensor", 9, (2, 3, 5, 7), value=numpy_helper.from_array(make.normal(3, 1, 1)))
    nodes = [helper.make_node("Constant", [], ["shape"], name="constant", value_ints=[5, -1]),
             helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshaped")]
    make.random("constant_ints")
    graph(make, "constant_ints", nodes, {"x": make.normal(3, 5, 7)}, ["y"])

    def of_shape(name, x, value, opset, start=None, like=True):
        """The values added to a tensor (`like`), or an output of their own."""
        make.random(name)
        extra = {} if value is None else {"value": helper.make_tensor("value", helper.np_dtype_to_tensor_dtype(value.dtype),
                                                                      [1], value)}
        nodes = [helper.make_node("Shape", ["x"], ["shape"], name="shape", **({} if start is None else {"start": start})),
                 helper.make_node("ConstantOfShape", ["shape"], ["filled"], name="filled", **extra)]
        if like:
            nodes.append(helper.make_node("Add", ["x", "filled"], ["y"], name="sum"))
        graph(make, name, nodes, {"x": make.normal(*x)}, ["y" if like else "filled"], opset)

    of_shape("constantofshape_half", (2, 3, 5), np.array([0.5], dtype=np.float32), 13)
    of_shape("constantofshape_zero", (3, 1, 5, 7), None, 9)
    of_shape("constantofshape_int64", (3, 7), np.array([-3], dtype=np.int64), 13, like=False)
    of_shape("constantofshape_inner", (3, 5, 7), np.array([2.25], dtype=np.float32), 15, start=1)

    for name, shape, opset, attributes in [("all", (2, 3, 5, 7), 7, {}), ("from", (2, 3, 5, 7), 15, {"start": 1}),
                                           ("between", (2, 3, 5, 7), 19, {"start": -3, "end": -1}), ("rank1", (7,), 13, {})]:
        make.op(f"shape_{name}", "Shape", [shape], opset=opset, **attributes)
    for name, shape, opset in [("4d", (2, 3, 5, 7), 7), ("1d", (5,), 13), ("one", (1, 1, 1), 19)]:
        make.op(f"size_{name}", "Size", [shape], opset=opset)

    def ranged(name, dtype, start, limit, delta, opset=11):
        make.op(f"range_{name}", "Range", [Const(np.array(v, dtype=dtype)) for v in (start, limit, delta)], opset=opset)

    ranged("int64", np.int64, 3, 20, 3)
    ranged("int32_down", np.int32, 9, -4, -2)
    ranged("empty", np.int64, 5, 5, 1)
    ranged("float", np.float32, 0.5, 4, 0.75)
    # Positions of a sequence, added to it: the limit is known only with the shape.
    make.random("range_positions")
    nodes = [helper.make_node("Shape", ["x"], ["shape"], name="shape"),
             helper.make_node("Gather", ["shape", "one"], ["length"], name="length"),
             helper.make_node("Range", ["zero", "length", "one"], ["positions"], name="positions"),
             helper.make_node("Cast", ["positions"], ["cast"], name="cast", to=TensorProto.FLOAT),
             helper.make_node("Add", ["x", "cast"], ["y"], name="sum")]
    whole = {"zero": Const(np.array(0, dtype=np.int64)), "one": Const(np.array(1, dtype=np.int64))}
    graph(make, "range_positions", nodes, {"x": make.normal(3, 11), **whole}, ["y"])


def normalisation(make):
    for name, shape, opset, attributes in [("default", (2, 3, 5, 7), 9, {}), ("all", (2, 3, 5), 13, {"axes": [0, 1, 2]}),
                                           ("spatial", (1, 5, 3, 7), 13, {"axes": [2, 3]})]:
        make.op(f"meanvariancenormalization_{name}", "MeanVarianceNormalization", [shape], opset=opset, single=True,
                **attributes)
    for name, shape, attributes in [("last", (3, 5, 7), {}), ("channel", (2, 7, 3, 5), {"axis": 1}),
                                    ("absolute", (3, 11), {"axis": -1, "p": 1}), ("first", (5, 3), {"axis": 0, "p": 2})]:
        make.op(f"lpnormalization_{name}", "LpNormalization", [shape], opset=7, **attributes)
    for name, shape, axis in [("last", (2, 3, 11), None), ("axis1", (2, 3, 5, 7), 1), ("axis2", (3, 1, 7, 5), -2)]:
        scale = lambda m, s=shape[-1 if axis is None else axis:]: Const(m.uniform(0.3, 2, *s))
        make.op(f"rmsnormalization_{name}", "RMSNormalization", [shape, scale], opset=23,
                **({} if axis is None else {"axis": axis, "epsilon": 1e-3}))


def others(make):
    for name, shape, opset, attributes in [("2d", (2, 7, 5, 6), 7, {}), ("1d_absolute", (1, 3, 17), 13, {"p": 1}),
                                           ("3d", (1, 5, 3, 2, 5), 13, {"p": 2})]:
        make.op(f"globallppool_{name}", "GlobalLpPool", [shape], opset=opset, **attributes)
    signed = lambda *s: (lambda m: m.uniform(-9, 9, *s))
    away = lambda *s: (lambda m: m.uniform(0.5, 3, *s) * np.where(m.rng.random(s) < 0.5, -1, 1).astype(np.float32))
    make.op("mod_same", "Mod", [signed(3, 7), away(3, 7)], opset=10, fmod=1)
    make.op("mod_channel", "Mod", [signed(2, 3, 5, 3), away(3, 1, 1)], opset=13, fmod=1)
    make.op("mod_constant", "Mod", [signed(2, 5, 3), Const(np.float32(1.5))], opset=13, fmod=1)
    make.op("swish_default", "Swish", [(2, 3, 5)], opset=24)
    make.op("swish_1d", "Swish", [lambda m: m.uniform(-20, 20, 19)], opset=24, alpha=1.0)
    make.op("swish_scaled", "Swish", [(1, 5, 3, 7)], opset=24, alpha=1.7)
    scales = lambda *v: Const(np.array(v, dtype=np.float32), exact=True)
    make.op("upsample_nearest", "Upsample", [(1, 3, 5, 7), scales(1, 1, 2, 3)], opset=9, mode="nearest")
    make.op("upsample_linear", "Upsample", [(2, 3, 3, 5), scales(1, 1, 2, 2)], opset=9, mode="linear")
    make.op("upsample_attribute", "Upsample", [(1, 5, 3, 3)], opset=7, mode="nearest", scales=[1.0, 1.0, 3.0, 2.0])
