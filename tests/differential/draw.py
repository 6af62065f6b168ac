"""Random choices of a case, all from one seed, and the model under construction: inputs, constants and nodes."""
import functools
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper

NEWEST_OPSET = 24
# ONNX's names of element types (as schemas write them) and NumPy's.
DTYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
          "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32, "uint32": np.uint32,
          "int64": np.int64, "uint64": np.uint64, "bool": np.bool_,
          "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
          "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
          "float8e8m0": ml_dtypes.float8_e8m0fnu, "float4e2m1": ml_dtypes.float4_e2m1fn,
          "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2}
FLOATS = ("float", "double", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NARROW = tuple(t for t in DTYPES if t not in FLOATS + INTEGERS + ("bool",))
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)
EDGES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1e-30, 0.5, -0.5, 1.5, 2.5)


def onnx_name(dtype):
    return next(name for name, type_ in DTYPES.items() if np.dtype(type_) == np.dtype(dtype))


@functools.cache
def versions_of():
    """(domain, operator) -> the opsets that gave it a new version."""
    versions = {}
    for schema in defs.get_all_schemas_with_history():
        versions.setdefault((schema.domain, schema.name), set()).add(schema.since_version)
    return versions


def elem_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


class Draw:
    """One case's dice and its model. `opset` is set by the case before its first node."""

    def __init__(self, seed):
        self.seed, self.dice, self.numbers = seed, random.Random(seed), np.random.default_rng(seed)
        self.opset, self.edges = NEWEST_OPSET, False
        self.nodes, self.feeds, self.constants, self.types, self.count = [], {}, {}, {}, 0

    # -- dice
    def chance(self, probability):
        return self.dice.random() < probability

    def pick(self, *options):
        return self.dice.choice(options)

    def whole(self, low, high):
        return self.dice.randint(low, high)

    def shape(self, low=1, high=4, most=4096, empty=True):
        """Some axes of size 1, seldom one of size 0."""
        sizes = [self.dice.choice(SIZES) for _ in range(self.whole(low, high))]
        while np.prod(sizes, dtype=int) > most:
            sizes[self.dice.randrange(len(sizes))] = self.pick(1, 2, 3)
        if sizes and empty and self.chance(0.03):
            sizes[self.dice.randrange(len(sizes))] = 0
        return tuple(sizes)

    def axis(self, rank):
        """In either way of counting."""
        at = self.whole(0, rank - 1)
        return at - rank if self.chance(0.5) else at

    def opset_for(self, op, lowest=1, domain=""):
        """Each version of the operator is as probable as the others, then any opset of that version."""
        versions = sorted(v for v in versions_of().get((domain, op), ()) if v <= NEWEST_OPSET)
        if not versions:
            self.opset = self.whole(max(lowest, 13), NEWEST_OPSET)
            return self.opset
        at = self.dice.randrange(len(versions))
        last = versions[at + 1] - 1 if at + 1 < len(versions) else NEWEST_OPSET
        self.opset = max(lowest, self.whole(versions[at], last))
        return self.opset

    def type_for(self, op, index=0, allowed=None):
        """An element type that the operator's version takes at this input; float32 is half of them."""
        schema = defs.get_schema(op, self.opset, "")
        given = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        types = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == given), [given])
        names = [t[7:-1] for t in types if t.startswith("tensor(") and t[7:-1] in DTYPES]
        names = [n for n in names if allowed is None or n in allowed]
        if "float" in names and self.chance(0.5):
            return "float"
        return self.dice.choice(sorted(names))

    def values(self, dtype, shape, style=""):
        """Random elements: normal numbers; 'positive', 'unit' (within -1..1), 'small' (whole and few), 'distinct'. With
        self.edges NaN, infinities, denormals and zeros among them."""
        shape = tuple(shape)
        count = int(np.prod(shape, dtype=int))
        if dtype == "bool":
            return self.numbers.integers(0, 2, shape).astype(bool)
        type_ = DTYPES[dtype]
        if style == "distinct":
            return self.numbers.permutation(count).reshape(shape).astype(type_)
        if dtype in INTEGERS:
            info = np.iinfo(type_)
            low, high = (info.min, info.max) if style == "" and self.chance(0.2) else (max(info.min, -9), 9)
            low = 1 if style == "positive" else low
            return self.numbers.integers(low, high, shape, dtype=type_, endpoint=True)
        if dtype in ("int4", "uint4", "int2", "uint2"):
            info = ml_dtypes.iinfo(type_)
            return self.numbers.integers(int(info.min), int(info.max) + 1, shape).astype(np.int8).astype(type_)
        if dtype in NARROW:
            numbers = self.numbers.normal(size=shape)
            numbers = np.abs(numbers) if dtype == "float8e8m0" else numbers
            return (numbers * 2.0 + (dtype == "float8e8m0")).astype(np.float32).astype(type_)
        numbers = self.numbers.normal(size=shape) * self.pick(1, 1, 1, 3, 0.1)
        if style == "small":
            numbers = self.numbers.integers(-4, 5, shape).astype(np.float64)
        elif style == "unit":
            numbers = self.numbers.uniform(-1, 1, shape)
        elif style == "positive":
            numbers = np.abs(numbers) + 0.1
        numbers = np.asarray(numbers, dtype=np.float64)
        if self.edges and count:
            flat = numbers.reshape(-1)
            for at in self.numbers.integers(0, count, min(count, 6)):
                flat[at] = self.dice.choice(EDGES)
            numbers = flat.reshape(shape)
        with np.errstate(over="ignore"):
            return numbers.astype(type_)

    # -- the model
    def name(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def feed(self, array):
        name = self.name("x")
        self.feeds[name] = np.asarray(array)
        return name

    def constant(self, array):
        name = self.name("c")
        self.constants[name] = np.asarray(array)
        return name

    def either(self, array, constant=0.5):
        return self.constant(array) if self.chance(constant) else self.feed(array)

    def ints(self, *values):
        return np.array(values, dtype=np.int64)

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        """Appends a node; its output's name, or the list of them."""
        names = [self.name("t") for _ in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, list(inputs), names, name=self.name("n"), domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def typed(self, name, dtype):
        """Says the type of a tensor that onnx's inference does not know."""
        self.types[name] = elem_type(DTYPES[dtype])
        return name

    def model(self, outputs, open_sizes=False):
        """Declared types come from onnx's own inference; with `open_sizes` all sizes of inputs are open."""
        def info(name, type_, shape):
            return helper.make_tensor_value_info(name, type_, shape)
        inputs = [info(n, elem_type(a.dtype), [f"{n}_{i}" for i in range(a.ndim)] if open_sizes else a.shape)
                  for n, a in self.feeds.items()]
        constants = [numpy_helper.from_array(a, n) for n, a in self.constants.items()]
        if self.opset < 4:  # initializers were inputs as well
            inputs += [info(n, elem_type(a.dtype), a.shape) for n, a in self.constants.items()]
        imports = [helper.make_opsetid("", self.opset)]
        if any(n.domain == "com.microsoft" for n in self.nodes):
            imports.append(helper.make_opsetid("com.microsoft", 1))
        bare = [onnx.ValueInfoProto(name=n) for n in outputs]
        graph = helper.make_graph(self.nodes, "case", inputs, bare, constants)
        narrow = any(np.dtype(a.dtype).name in ("float8_e8m0fnu", "float4_e2m1fn", "int2", "uint2")
                     for a in [*self.feeds.values(), *self.constants.values()])
        model = helper.make_model(graph, opset_imports=imports, ir_version=13 if narrow else 10)
        known = inferred_types(model)
        known.update(self.types)
        del model.graph.output[:]
        for name in outputs:
            type_ = known.get(name, TensorProto.UNDEFINED)
            if type_ == TensorProto.UNDEFINED:
                raise ValueError(f"onnx's inference knows no type of '{name}'")
            value = onnx.ValueInfoProto(name=name)
            value.type.tensor_type.elem_type = type_
            model.graph.output.append(value)
        return model


def inferred_types(model):
    """Element type of every tensor, by onnx's inference."""
    known = {}
    inferred = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
    for value in [*inferred.graph.value_info, *inferred.graph.output, *inferred.graph.input]:
        known[value.name] = value.type.tensor_type.elem_type
    known.update({c.name: c.data_type for c in model.graph.initializer})
    for node in model.graph.node:
        for at, name in enumerate(node.output):
            if not known.get(name):
                known[name] = type_by_schema(node, at, model.opset_import[0].version, known)
    return known


def type_by_schema(node, at, opset, known):
    """Of an output whose operator had no inference then: the type of the input that shares its type parameter."""
    if node.domain or not defs.has(node.op_type):
        return TensorProto.UNDEFINED
    schema = defs.get_schema(node.op_type, opset, "")
    wanted = schema.outputs[min(at, len(schema.outputs) - 1)].type_str
    if wanted.startswith("tensor("):
        return elem_type(DTYPES[wanted[7:-1]])
    for i, name in enumerate(node.input):
        if schema.inputs[min(i, len(schema.inputs) - 1)].type_str == wanted and known.get(name):
            return known[name]
    to = [a.i for a in node.attribute if a.name == "to"]
    return to[0] if to else TensorProto.UNDEFINED
