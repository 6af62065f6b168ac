#!/usr/bin/env python3
"""Writes the test vectors beside it: DIR/model.onnx, DIR/test_data_set_0/{input_I,output_I}.pb for each case of
operators.py, windows.py, shapes.py, values.py, places.py, attention.py, quantized.py, networks.py, element_types.py,
narrow_types.py, control.py and composed.py.
Expected outputs: the reference evaluator of the onnx package in double precision, rounded to float32 once. Each float32
case must agree with onnxruntime; PEER_IS_RIGHT lists the cases where the evaluator errs. Needs bench/requirements.txt
(scripts/setup bench); run as build/venv/bin/python tests/vectors/generate.py [NAME...]."""
import pathlib
import shutil
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).resolve().parent
IR_VERSION = 8
# Cases where the reference evaluator errs; the specification sides with onnxruntime, whose output is stored. A case of one
# operator says so itself (Maker.op).
BATCH_9 = "its BatchNormalization before opset 14 is the training form, or fails"
LRN = "it treats as many channels as there are images"
SOFTMAX_11 = "it does not flatten to two dimensions as opset 11 asks"
GLOBAL_MAX = "it reduces the last two axes whatever the rank"
RESIZE_10 = "its Resize of opset 10 fails"
UPSAMPLE = "its Upsample knows nearest with scales as an input alone"
GLOBAL_LP = "it has no GlobalLpPool"
GRID_16 = "its GridSample knows the names of modes since opset 20 alone"
SCATTER = "it has no Scatter"
PEER_IS_RIGHT = {
    "batchnormalization_2d": BATCH_9, "batchnormalization_opset7": BATCH_9, "lrn_default": LRN, "lrn_five": LRN,
    "lrn_alexnet": LRN, "lrn_wider_than_c": LRN,
    "convtranspose_groups": "it fails on groups of several filters", "globalmaxpool_1x3x17": GLOBAL_MAX,
    "convtranspose_output_shape": "it fails on output_shape", "globalmaxpool_1x4x3x2x5": GLOBAL_MAX,
    "resize_nearest_opset10": RESIZE_10, "resize_linear_opset10": RESIZE_10, "pad_crop": "it refuses negative pads",
    "upsample_linear": UPSAMPLE, "upsample_attribute": UPSAMPLE, "globallppool_2d": GLOBAL_LP,
    "globallppool_1d_absolute": GLOBAL_LP, "globallppool_3d": GLOBAL_LP,
    "types_maxpool_int8": "its MaxPool pads with NaN", "types_maxpool_uint8": "its MaxPool pads with NaN",
    "gridsample_linear_border": GRID_16, "lpnormalization_absolute": "its norm with p = 1 takes no absolute values",
    "scatter_rows": SCATTER, "scatter_columns": SCATTER, "scatter_last": SCATTER,
    "qlinearconv_depthwise": "it errs on padded groups of unsigned weights",
}
# Deprecated since, so the checker refuses it; models of that opset exist all the same.
UNCHECKED = {"groupnormalization_opset18"}


class Const:
    """An input that the model carries as an initializer. `exact`: stays float32 where the case is evaluated in double."""

    def __init__(self, values, exact=False):
        self.values, self.exact = np.asarray(values), exact

    @staticmethod
    def onnx_type(dtype):
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def ints(*values):
    return Const(np.array(values, dtype=np.int64))


class Case:
    """One graph with its inputs. `nodes`: onnx nodes; `feeds`: name -> array or Const; `outputs`: names, in order. `single`:
    evaluated in float32, because its nodes or the evaluator's function bodies name that type. `stored`: the type of float16 or
    bfloat16 that takes the place of float32 in the file, evaluated in double on rounded inputs and rounded once. `exact`: types
    are as given; onnxruntime, which lacks many of them, is not asked. `like`: nodes of opset 13 that compute the same from
    the same feeds, for forms that neither engine has; both are asked for that one. `kinds`: the types of outputs that are not
    float32, where the evaluator cannot tell them."""
    stored, exact, like, ir_version, kinds = None, False, None, IR_VERSION, None

    def __init__(self, name, nodes, feeds, outputs, opset, single=False):
        self.name, self.nodes, self.feeds, self.outputs, self.opset = name, nodes, feeds, outputs, opset
        self.single = single

    def inputs(self):
        return {k: v for k, v in self.feeds.items() if not isinstance(v, Const)}

    def model(self, dtype, shapes=None):
        """The ONNX model with float32 replaced by `dtype`; output shapes as given, unknown otherwise."""
        def cast(values, exact=False):
            return values.astype(dtype) if values.dtype == np.float32 and not exact else values
        float_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        inputs = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(cast(v).dtype), v.shape)
                  for k, v in self.inputs().items()]
        if self.exact:
            float_type = helper.np_dtype_to_tensor_dtype(next(iter(self.inputs().values())).dtype)
        outputs = []
        for name in self.outputs:
            shape, kind = (shapes or {}).get(name, (None, None))
            outputs.append(helper.make_tensor_value_info(name, kind or float_type, shape))
        initializers = [numpy_helper.from_array(cast(v.values, v.exact), k) for k, v in self.feeds.items()
                        if isinstance(v, Const)]
        imports = [helper.make_opsetid("", self.opset)]
        imports += [helper.make_opsetid(domain, 1) for domain in sorted({n.domain for n in self.nodes if n.domain})]
        graph = helper.make_graph(self.nodes, self.name, inputs, outputs, initializers)
        model = helper.make_model(graph, opset_imports=imports, producer_name="sparkle")
        model.ir_version = self.ir_version
        return model


def evaluate(case):
    """Outputs in double precision, floating ones rounded to float32."""
    if case.like:
        other = Case(case.name, case.like, case.feeds, case.outputs, 13)
        return evaluate(other)
    if case.exact:
        return [np.asarray(r) for r in ReferenceEvaluator(case.model(np.float32)).run(None, case.inputs())]
    if case.stored:
        rounded = Case(case.name, case.nodes, {k: narrowed(v, case.stored) for k, v in case.feeds.items()}, case.outputs,
                       case.opset, case.single)
        results = peer(rounded.model(np.float32), rounded.inputs()) if case.name.split("_", 1)[1] in PEER_IS_RIGHT else None
        return [r.astype(case.stored) if r.dtype == np.float32 else r for r in results or evaluate(rounded)]
    dtype = np.float32 if case.single else np.float64
    feeds = {k: v.astype(dtype) if v.dtype == np.float32 else v for k, v in case.inputs().items()}
    results = ReferenceEvaluator(case.model(dtype)).run(None, feeds)
    results = [np.asarray(r) for r in results]
    return [r.astype(np.float32) if r.dtype == np.float64 else r for r in results]


def narrowed(value, dtype):
    """Float32 values rounded to the type."""
    if isinstance(value, Const):
        return Const(narrowed(value.values, dtype), value.exact) if not value.exact else value
    return value.astype(dtype).astype(np.float32) if value.dtype == np.float32 else value


def peer(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def disagreement(expected, got):
    """None, or a sentence on where the two engines differ."""
    for i, (a, b) in enumerate(zip(expected, got)):
        if a.shape != b.shape:
            return f"output {i}: shape {a.shape}, onnxruntime {b.shape}"
        if not np.isfinite(a).all():
            return f"output {i}: not finite"
        if a.size and a.dtype == np.float32:
            error = np.abs(a.astype(np.float64) - b)
            if (error > 1e-5 * np.abs(a).max() + 1e-3 * np.abs(a)).any():
                return f"output {i}: differs from onnxruntime by {error.max():.3g}, largest value {np.abs(a).max():.3g}"
        elif not np.array_equal(a, b):
            return f"output {i}: differs from onnxruntime"
    return None


def declared(case, expected):
    """Shape and type of each output, for Case.model."""
    return {n: (e.shape, helper.np_dtype_to_tensor_dtype(e.dtype)) for n, e in zip(case.outputs, expected)}


def write(case):
    """Writes the case; a sentence where the engines disagree, and then nothing is written."""
    feeds = case.inputs()
    if case.nodes[0].domain == "com.microsoft":  # onnxruntime's own; the last input is the result's zero point
        kind = helper.np_dtype_to_tensor_dtype(list(case.feeds.values())[-1].values.dtype)
        expected = peer(case.model(np.float32, {n: (None, kind) for n in case.outputs}), feeds)
    elif case.name in PEER_IS_RIGHT:
        kinds = {n: (None, TensorProto.UINT8) for n in case.outputs} if case.name.startswith("qlinear") else case.kinds
        expected = peer(case.model(np.float32, kinds), feeds)
    else:
        expected = evaluate(case)
        if case.stored:
            feeds = {k: v.astype(case.stored) if v.dtype == np.float32 else v for k, v in feeds.items()}
        try:
            if case.exact or case.stored:
                raise StopIteration
            asked = Case(case.name, case.like, case.feeds, case.outputs, 13) if case.like else case
            problem = disagreement(expected, peer(asked.model(np.float32, declared(case, expected)), feeds))
        except StopIteration:
            problem = None
        except Exception as error:  # an operator or form that onnxruntime lacks
            problem = "onnxruntime: " + str(error).splitlines()[0][:150]
        if problem:
            return problem
    model = case.model(case.stored or np.float32, declared(case, expected))
    if case.name not in UNCHECKED:
        onnx.checker.check_model(model, full_check=True)
    folder = HERE / case.name
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for i, (name, values) in enumerate(feeds.items()):
        (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(values, name).SerializeToString())
    for i, (name, values) in enumerate(zip(case.outputs, expected)):
        (data / f"output_{i}.pb").write_bytes(numpy_helper.from_array(values, name).SerializeToString())
    return None


class Maker:
    """Collects cases. Random numbers depend on the case's name alone, so that adding a case changes no other."""

    def __init__(self):
        self.cases = []

    def random(self, name):
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape, scale=1.0):
        return np.asarray(self.rng.standard_normal(shape) * scale, dtype=np.float32)

    def uniform(self, low, high, *shape):
        return np.asarray(self.rng.uniform(low, high, shape), dtype=np.float32)

    def op(self, name, op, inputs, opset=13, outputs=1, single=False, peer_is_right=None, **attributes):
        """One operator. `inputs`: shapes (tuples) become normal data, None a missing optional input. `peer_is_right`: what the
        reference evaluator does wrong, where it does."""
        self.random(name)
        feeds, names = {}, []
        for i, values in enumerate(inputs):
            if callable(values):
                values = values(self)
            if values is None:
                names.append("")
                continue
            if isinstance(values, tuple):
                values = self.normal(*values)
            names.append("xwbsmv"[i] if i < 6 else f"i{i}")
            feeds[names[-1]] = values
        results = ["y"] if outputs == 1 else [f"y{i}" for i in range(outputs)]
        node = helper.make_node(op, names, results, name=name, **attributes)
        self.cases.append(Case(name, [node], feeds, results, opset, single))
        if peer_is_right:
            PEER_IS_RIGHT[name] = peer_is_right

    def weights(self, *shape, scale=None):
        """Constant weights, drawn when the case is made so that they follow its own seed."""
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 1
        return lambda m: Const(m.normal(*shape, scale=scale or 1 / np.sqrt(fan_in)))


def main():
    import attention
    import composed
    import control
    import element_types
    import narrow_types
    import networks
    import operators
    import places
    import quantized
    import shapes
    import values
    import windows
    maker = Maker()
    for module in (operators, windows, shapes, values, places, attention, quantized, networks, element_types,
                   narrow_types, control, composed):
        module.add(maker)
    names = [c.name for c in maker.cases]
    assert len(names) == len(set(names)), "two cases of one name"
    chosen = set(sys.argv[1:])
    if not chosen:
        for folder in HERE.iterdir():
            if (folder / "model.onnx").exists() and folder.name not in names:
                shutil.rmtree(folder)
    failed, count = 0, {}
    for case in maker.cases:
        if chosen and case.name not in chosen:
            continue
        try:
            problem = write(case)
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
        if problem:
            failed += 1
            shutil.rmtree(HERE / case.name, ignore_errors=True)
            print(f"{case.name}: {problem}")
        for op in {n.op_type for n in case.nodes} if not case.name.startswith("network_") else ():
            count[op] = count.get(op, 0) + (not problem)
    size = sum(f.stat().st_size for f in HERE.rglob("*") if f.is_file())
    print(f"{len(maker.cases) if not chosen else len(chosen)} cases, {failed} not written, {size / 1e6:.2f} MB in all, "
          f"{len(count)} operators")
    few = sorted(op for op, n in count.items() if n < 3)
    if few and not chosen:
        print("fewer than three:", " ".join(few))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    sys.modules["generate"] = sys.modules["__main__"]
    main()
