"""Single operators as models of their own, as users have them: channels first, each family in two sizes, seeded values.
OPERATORS: {name: (nodes, inputs, weights)}; model_of(name) -> (ONNX bytes, inputs as arrays)."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPERATORS = {}
SEED = 7


def floats(*shape, scale=1.0):
    return (np.random.default_rng([SEED, *shape]).standard_normal(shape) * scale).astype(np.float32)


def add(name, nodes, inputs, weights=None):
    """nodes: (operator, inputs, output, attributes); the last one's output is the model's. Inputs and weights by name."""
    OPERATORS[name] = (nodes, inputs, weights or {})


def ints(*values):
    return np.array(values, np.int64)


def convolution(name, c, k, size, filter_sizes, behind=(), **attributes):
    rank = len(size)
    pads = [f // 2 for f in filter_sizes]
    attributes.setdefault("pads", pads * 2)
    taps = int(np.prod(filter_sizes))
    weights = {"w": floats(k, c // attributes.get("group", 1), *filter_sizes, scale=(c * taps) ** -0.5), "b": floats(k)}
    assert rank == len(filter_sizes)
    add(name, [("Conv", ["x", "w", "b"], "c" if behind else "y", attributes), *behind], {"x": floats(1, c, *size)}, weights)


SILU = (("Sigmoid", ["c"], "s", {}), ("Mul", ["c", "s"], "y", {}))
GELU = (("Gelu", ["c"], "y", {}),)
GELU_TANH = (("Gelu", ["c"], "y", {"approximate": "tanh"}),)
PLANES = ((64, 112), (256, 28))  # channels, height and width


def convolutions():
    for c, k, hw in ((96, 384, 56), (384, 64, 28)):
        convolution(f"conv 1x1 {c}-{k} {hw}", c, k, (hw, hw), (1, 1))
        convolution(f"conv 1x1 {c}-{k} {hw}, GELU", c, k, (hw, hw), (1, 1), GELU)
        convolution(f"conv 1x1 {c}-{k} {hw}, SiLU", c, k, (hw, hw), (1, 1), SILU)
    convolution("conv 1x1 96-384 56, GELU by tanh", 96, 384, (56, 56), (1, 1), GELU_TANH)
    for c, k, hw in ((64, 64, 56), (256, 256, 14)):
        convolution(f"conv 3x3 {c}-{k} {hw}", c, k, (hw, hw), (3, 3))
    for c, k, hw in ((64, 128, 112), (3, 48, 224)):
        convolution(f"conv 3x3/2 {c}-{k} {hw}", c, k, (hw, hw), (3, 3), strides=[2, 2])
    for c, hw, f, stride in ((144, 56, 3, 1), (144, 56, 3, 2), (96, 56, 7, 1), (384, 14, 5, 1)):
        convolution(f"depthwise {f}x{f}/{stride} {c} {hw}", c, c, (hw, hw), (f, f), group=c, strides=[stride, stride])
    for c, hw in ((128, 56), (512, 14)):
        convolution(f"conv 3x3 32 groups {c} {hw}", c, c, (hw, hw), (3, 3), group=32)
    convolution("conv 1-D k 9 64-64 4096", 64, 64, (4096,), (9,))
    convolution("conv 3-D 3x3x3 16-32 16x56x56", 16, 32, (16, 56, 56), (3, 3, 3))
    for c, k, hw, f in ((64, 32, 112, 2), (128, 64, 28, 4)):
        add(f"ConvTranspose {f}x{f}/2 {c}-{k} {hw}", [("ConvTranspose", ["x", "w"], "y", {
            "strides": [2, 2], "pads": [(f - 2) // 2] * 4})], {"x": floats(1, c, hw, hw)}, {"w": floats(c, k, f, f, scale=0.1)})


def planes():
    for c, hw in PLANES:
        x, at = {"x": floats(1, c, hw, hw)}, f"{c} {hw}"
        each = {"g": floats(c), "b": floats(c), "m": floats(c), "v": np.abs(floats(c)) + 1}
        add(f"MaxPool 3x3/2 {at}", [("MaxPool", ["x"], "y", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4})], x)
        add(f"AveragePool 3x3 {at}", [("AveragePool", ["x"], "y", {"kernel_shape": [3, 3], "pads": [1] * 4})], x)
        add(f"GlobalAveragePool {at}", [("GlobalAveragePool", ["x"], "y", {})], x)
        add(f"BatchNormalization {at}", [("BatchNormalization", ["x", "g", "b", "m", "v"], "y", {})], x, each)
        add(f"InstanceNormalization {at}", [("InstanceNormalization", ["x", "g", "b"], "y", {})], x,
            {n: each[n] for n in "gb"})
        add(f"Add {at}", [("Add", ["x", "z"], "y", {})], {**x, "z": floats(1, c, hw, hw)})
        add(f"Add of a channel vector {at}", [("Add", ["x", "z"], "y", {})], x, {"z": floats(1, c, 1, 1)})
        add(f"Mul of a gate {at}", [("Mul", ["x", "z"], "y", {})], {**x, "z": floats(1, c, 1, 1)})
        for how in ("nearest", "linear"):
            add(f"Resize {how} 2x {at}", [("Resize", ["x", "", "s"], "y", {
                "mode": how, "coordinate_transformation_mode": "asymmetric" if how == "nearest" else "half_pixel",
                **({"nearest_mode": "floor"} if how == "nearest" else {})})], x, {"s": np.array([1, 1, 2, 2], np.float32)})
        add(f"Concat {at}", [("Concat", ["x", "z"], "y", {"axis": 1})], {**x, "z": floats(1, c, hw, hw)})
        add(f"Slice {at}", [("Slice", ["x", "from", "to", "axes"], "y", {})], x,
            {"from": ints(c // 4), "to": ints(3 * c // 4), "axes": ints(1)})
        add(f"Pad reflect {at}", [("Pad", ["x", "p"], "y", {"mode": "reflect"})], x, {"p": ints(0, 0, 1, 1, 0, 0, 1, 1)})
        add(f"Transpose to channels last {at}", [("Transpose", ["x"], "y", {"perm": [0, 2, 3, 1]})], x)
        add(f"ReduceMean over C {at}", [("ReduceMean", ["x", "a"], "y", {})], x, {"a": ints(1)})
        add(f"DepthToSpace {at}", [("DepthToSpace", ["x"], "y", {"blocksize": 2, "mode": "CRD"})], x)
        add(f"Softmax over C {at}", [("Softmax", ["x"], "y", {"axis": 1})], x)
        add(f"Cast to f16 {at}", [("Cast", ["x"], "y", {"to": TensorProto.FLOAT16})], x)
        add(f"QuantizeLinear {at}", [("QuantizeLinear", ["x", "s", "z"], "y", {})], x,
            {"s": np.array(0.05, np.float32), "z": np.array(128, np.uint8)})


def functions():
    x = {"x": floats(1, 64, 112, 112)}
    for name, attributes in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Erf", {}), ("Exp", {}), ("Gelu", {}),
                             ("Softplus", {}),
                             ("HardSwish", {}), ("LeakyRelu", {}), ("Elu", {})):
        add(name, [(name, ["x"], "y", attributes)], x)
    add("Gelu by tanh", [("Gelu", ["x"], "y", {"approximate": "tanh"})], x)
    add("SiLU", [("Sigmoid", ["x"], "s", {}), ("Mul", ["x", "s"], "y", {})], x)
    add("Clip 0 to 6", [("Clip", ["x", "l", "h"], "y", {})], x, {"l": np.array(0, np.float32), "h": np.array(6, np.float32)})
    add("Where", [("Greater", ["x", "l"], "c", {}), ("Where", ["c", "x", "l"], "y", {})], x, {"l": np.array(0.1, np.float32)})


def rows():
    for m, n in ((196, 384), (3136, 96)):
        add(f"LayerNormalization {m}x{n}", [("LayerNormalization", ["x", "g", "b"], "y", {})], {"x": floats(1, m, n)},
            {"g": floats(n), "b": floats(n)})
    for m, n in ((4096, 192), (768, 196), (256, 1000)):
        add(f"Softmax {m} rows of {n}", [("Softmax", ["x"], "y", {})], {"x": floats(m, n)})
    for m, k, n in ((196, 192, 768), (512, 512, 512), (1, 1280, 1000), (49, 768, 3072)):
        add(f"MatMul {m}x{k}x{n}", [("MatMul", ["x", "w"], "y", {})], {"x": floats(1, m, k)},
            {"w": floats(k, n, scale=k ** -0.5)})
    for heads, length, depth in ((4, 196, 48), (12, 197, 64)):
        a, b = (floats(1, heads, length, depth, scale=s) for s in (1, 0.9))
        add(f"attention {heads} heads {length}x{depth}", [
            ("Transpose", ["k"], "kt", {"perm": [0, 1, 3, 2]}), ("MatMul", ["q", "kt"], "s", {}), ("Mul", ["s", "f"], "t", {}),
            ("Softmax", ["t"], "p", {"axis": -1}), ("MatMul", ["p", "v"], "y", {})],
            {"q": a, "k": b, "v": floats(1, heads, length, depth, scale=0.8)}, {"f": np.array(depth ** -0.5, np.float32)})
    add("Transpose of heads 196x4x48", [("Transpose", ["x"], "y", {"perm": [0, 2, 1, 3]})], {"x": floats(1, 196, 4, 48)})
    add("Gather of rows 3136x96", [("Gather", ["x", "i"], "y", {"axis": 0})], {"x": floats(3136, 96)},
        {"i": np.random.default_rng(SEED).integers(0, 3136, 4096)})
    add("TopK 100 of 8400", [("TopK", ["x", "k"], "y", {})], {"x": floats(1, 8400)}, {"k": ints(100)})
    add("ArgMax over C 21 257", [("ArgMax", ["x"], "y", {"axis": 1})], {"x": floats(1, 21, 257, 257)})


for family in (convolutions, planes, functions, rows):
    family()


def value_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def model_of(name):
    nodes, inputs, weights = OPERATORS[name]
    made = []
    for kind, reads, result, attributes in nodes:
        results = [result, result + "_indices"] if kind == "TopK" else [result]
        made.append(helper.make_node(kind, list(reads), results, **attributes))
    graph = helper.make_graph(made, "operator", [value_info(n, a) for n, a in inputs.items()],
                              [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(value, n) for n, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return model.SerializeToString(), list(inputs.values())
