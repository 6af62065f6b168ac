"""Files of `sparkle fix` before others' eyes: onnx's checker, ONNX Runtime for fp16 and int8, onnx's evaluator for bf16."""
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import numpy_helper, shape_inference  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from onnx.reference.ops import load_op  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT.parent / "shared" / "data" / "models"
COMMAND = pathlib.Path(os.environ.get("SPARKLE_COMMAND", ROOT / "build" / "release" / "sparkle"))
# Networks whose sums are short enough to be added up in bf16, as the reference evaluator does.
SMALL = ("mnist-8", "mnist-cnn", "emnist-autoencoder", "mnist-diffusion-vit", "resnet20-cifar10", "ultraface-rfb-320-boxes")
# What devices add up in f32 and round once.
SUMS = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Softmax", "ReduceMean", "GlobalAveragePool", "AveragePool",
        "InstanceNormalization", "LayerNormalization")

pytestmark = pytest.mark.skipif(not (MODELS.is_dir() and COMMAND.is_file()), reason="../shared/data or the command is not here")


def names():
    return sorted(path.name for path in MODELS.iterdir()) if MODELS.is_dir() else []


def load(path):
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(proto)


def samples(name, inputs):
    for folder in sorted((MODELS / name).glob("test_data_set_*")):
        yield {input_name: load(folder / f"input_{i}.pb") for i, input_name in enumerate(inputs)}


def inputs_of(model):
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in constants]


def fixed(name, precision, folder):
    file = folder / f"{name}.{precision}.onnx"
    multiple = "16" if precision == "int8" else "8"
    words = [MODELS / name / f"{name}.onnx", MODELS / name, "-o", file, "--precision", precision, "--multiple", multiple]
    subprocess.run([COMMAND, "fix", *words], check=True, capture_output=True, text=True, timeout=300)
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    return file, model


def cosine(a, b):
    a, b = (np.asarray(x, dtype=np.float64).ravel() for x in (a, b))
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norm) if norm else float(np.array_equal(a, b))


def check(wanted, found, bound, of_classes):
    """Outputs that are classes keep their first one, all others a cosine of ``bound``."""
    assert len(wanted) == len(found)
    for a, b in zip(wanted, found):
        if a.ndim >= 2 and a.shape[1] > 2 and a.size == a.shape[0] * a.shape[1]:
            assert np.array_equal(np.argmax(a, axis=1), np.argmax(b, axis=1))
            assert cosine(a, b) >= of_classes
        else:
            assert cosine(a, b) >= bound


@pytest.mark.parametrize("precision, bound, of_classes", [("fp16", 0.999, 0.999), ("int8", 0.99, 0.98)])
@pytest.mark.parametrize("name", names())
def test_onnx_runtime_gives_the_same(name, precision, bound, of_classes, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    if precision == "int8" and not re.search(r"\b(avx_vnni|avx512_vnni|asimddp)\b", pathlib.Path("/proc/cpuinfo").read_text()):
        pytest.skip("without VNNI ONNX Runtime adds products of bytes in pairs of 16 bits, which saturate")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    file, model = fixed(name, precision, tmp_path)
    original = runtime.InferenceSession(MODELS / name / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    other = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    before = onnx.load(MODELS / name / f"{name}.onnx")
    assert [value.name for value in model.graph.output] == [value.name for value in before.graph.output]
    assert inputs_of(model) == inputs_of(before)
    for feed in samples(name, inputs_of(model)):
        check(original.run(None, feed), other.run(None, feed), bound, of_classes)


def summed_in_f32(operator):
    """The evaluator's own operator of opset 22, for bf16 by way of f32."""
    own = load_op("", operator, 22)

    def run(self, *inputs, **attributes):
        wide = [x.astype(np.float32) if x is not None and str(x.dtype) == "bfloat16" else x for x in inputs]
        return tuple(np.asarray(y).astype(inputs[0].dtype) for y in own._run(self, *wide, **attributes))

    return type(operator, (own,), {"_run": run, "op_domain": ""})


@pytest.mark.parametrize("name", names())
def test_bf16_is_of_an_opset_that_has_it(name, tmp_path):
    _, model = fixed(name, "bf16", tmp_path)
    types = {tensor.data_type for tensor in model.graph.initializer}
    if onnx.TensorProto.BFLOAT16 not in types:
        assert any(node.op_type.startswith(("QLinear", "QuantizeLinear")) for node in model.graph.node)
        return
    assert {o.domain: o.version for o in model.opset_import}[""] == 22
    shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    original = runtime.InferenceSession(MODELS / name / f"{name}.onnx", options, providers=["CPUExecutionProvider"])
    feed = next(samples(name, inputs_of(model)))
    wanted = original.run(None, feed)
    evaluators = [ReferenceEvaluator(model, new_ops=[summed_in_f32(operator) for operator in SUMS])]
    if name in SMALL:
        evaluators.append(ReferenceEvaluator(model))
    for evaluator in evaluators:
        check(wanted, evaluator.run(None, feed), bound=0.999, of_classes=0.998)
