"""A script as it is written for onnxruntime, after its import alone was changed; and what a session is beside run()."""
import asyncio
import logging
import pathlib
import pickle
import queue
import warnings

import numpy as np
import pytest

import sparkle

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODEL = ROOT / "models" / "upscale2x.onnx"

# What tutorials and repositories set and call.
SCRIPT = """
import sys
import numpy as np
import onnxruntime as ort

options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
options.intra_op_num_threads = 1
options.inter_op_num_threads = 1
options.enable_mem_pattern = False
options.log_severity_level = 3
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
providers = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in ort.get_available_providers()]
session = ort.InferenceSession(MODEL, sess_options=options, providers=providers[-1:], provider_options=[{}])
meta = session.get_modelmeta()
assert isinstance(meta.custom_metadata_map, dict) and meta.graph_name
name, output = session.get_inputs()[0].name, session.get_outputs()[0].name
assert session.get_inputs()[0].type == "tensor(float)" and session.get_providers() == ["CPUExecutionProvider"]
image = np.linspace(0, 1, 3 * 5 * 6, dtype=np.float32).reshape(1, 3, 5, 6)
run_options = ort.RunOptions()
run_options.log_severity_level = 3
first = session.run([output], {name: image}, run_options)[0]
binding = session.io_binding()
binding.bind_cpu_input(name, image)
binding.bind_output(output)
session.run_with_iobinding(binding)
second = binding.copy_outputs_to_cpu()[0]
place = ort.OrtValue.ortvalue_from_shape_and_type(first.shape, np.float32, "cpu", 0)
binding = session.io_binding()
binding.bind_input(name=name, device_type="cpu", device_id=0, element_type=np.float32, shape=image.shape,
                   buffer_ptr=image.ctypes.data)
binding.bind_ortvalue_output(output, place)
session.run_with_iobinding(binding)
third = place.numpy()
results = [first, second, third, binding.get_outputs()[0].numpy()]
"""


@pytest.fixture(autouse=True)
def what_is_logged_stays():
    """log_severity_level is the process's, as in onnxruntime."""
    logger = logging.getLogger("sparkle")
    level = logger.level
    yield
    logger.setLevel(level)


def test_a_script_runs_after_its_import_alone_is_changed():
    answers = {}
    for engine in ("onnxruntime", "sparkle.ort"):
        if engine == "onnxruntime":
            pytest.importorskip("onnxruntime")
        scope = {"MODEL": str(MODEL)}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(SCRIPT.replace("import onnxruntime as ort", f"import {engine} as ort"), scope)
        answers[engine] = scope["results"]
    for theirs, ours in zip(answers["onnxruntime"], answers["sparkle.ort"]):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_options_are_followed_or_warned_about_once():
    ort = sparkle.ort
    options = ort.SessionOptions()
    with pytest.warns(UserWarning, match="enable_profiling is not followed: .*report") as noted:
        options.enable_profiling = True
        ort.SessionOptions().enable_profiling = True
    assert len(noted) == 1 and noted[0].filename == __file__
    session = ort.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    run_options = ort.RunOptions()
    run_options.terminate = True
    with pytest.raises(sparkle.BadInput, match="terminate is set"):
        session.run(None, {}, run_options)
    with pytest.raises(sparkle.BadInput, match="The SessionOptions's intra_op_num_threads is '2', of type str; give a whole"):
        options.intra_op_num_threads = "2"
    with pytest.raises(AttributeError, match="no option 'whatever'"):
        run_options.whatever = 1
    with pytest.raises(sparkle.NotServed, match="no libraries of operators"):
        options.register_custom_ops_library("ops.so")
    with pytest.raises(sparkle.BadInput, match="no input 'nobody'"):
        session.io_binding().bind_cpu_input("nobody", np.zeros(1))
    assert "CPUExecutionProvider" in ort.get_available_providers() and ort.get_device() in ("CPU", "GPU")
    told: queue.Queue = queue.Queue()
    x = np.zeros((1, 3, 4, 4), np.float32)
    session.run_async(None, {"image": x}, lambda *said: told.put(said), "mine")
    results, mine, error = told.get(timeout=60)
    assert results[0].shape == (1, 3, 8, 8) and mine == "mine" and error == ""
    session.run_async(None, {"picture": x}, lambda *said: told.put(said))
    assert "no input 'picture'" in told.get(timeout=60)[2]
    again = pickle.loads(pickle.dumps(session))
    np.testing.assert_array_equal(again.run(None, {"image": x})[0], results[0])


def test_metadata(tmp_path):
    onnx = pytest.importorskip("onnx")
    from sparkle._model_meta import ModelMetadata, model_metadata
    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "the graph", [info],
                                   [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])], doc_string="of it")
    model = onnx.helper.make_model(graph, producer_name="me", domain="org", model_version=-3, doc_string="a model")
    onnx.helper.set_model_props(model, {"names": "{0: 'cat'}", "stride": "32"})
    expected = ModelMetadata("me", "the graph", "org", "a model", "of it", -3, {"names": "{0: 'cat'}", "stride": "32"})
    assert model_metadata(model.SerializeToString()) == expected
    onnx.save(model, tmp_path / "m.onnx")
    assert sparkle.InferenceSession(tmp_path / "m.onnx").get_modelmeta() == expected
    whole = model.SerializeToString()
    for cut in range(0, len(whole), 7):  # damaged ones say nothing, or less
        assert isinstance(model_metadata(whole[:cut]), ModelMetadata)
    assert model_metadata(b"\x3a\xff\xff\xff\xff\x0f") == ModelMetadata()


def test_sessions_close_and_are_pickled():
    x = np.random.default_rng(2).random((1, 3, 4, 5), dtype=np.float32)
    with sparkle.Session(MODEL, threads=1) as session:
        y = session.run(x)
        copy = pickle.loads(pickle.dumps(session))
        assert repr(copy) == repr(session)
        np.testing.assert_array_equal(copy.run(x)[0], y[0])
    with pytest.raises(sparkle.BadInput, match="upscale2x.onnx' is closed"):
        session.run(x)
    session.close()
    assert ", closed, device" in repr(session)
    with pytest.raises(TypeError, match="of bytes cannot be pickled"):
        pickle.dumps(sparkle.Session(MODEL.read_bytes()))
    with pytest.raises(sparkle.BadInput, match="threads=2 is for a device by name"):
        sparkle.Session(MODEL, sparkle.Device("cpu"), threads=2)
    first = sparkle.devices()[0]
    assert first.name == "cpu" and first.unusable == "" and all(":" in d.name for d in sparkle.devices()[1:])


def test_outputs_by_name_and_in_place():
    session = sparkle.Session(MODEL)
    x = np.random.default_rng(1).random((1, 3, 4, 5), dtype=np.float32)
    name = session.outputs[0].name
    y = session.run(x)
    assert y.names == (name,) and y[name] is y[0] and y.as_dict() == {name: y[0]} and isinstance(y, list)
    with pytest.raises(KeyError, match="nobody"):
        y["nobody"]
    np.testing.assert_array_equal(session.run(x, [name])[0], y[0])
    np.testing.assert_array_equal(session.run(x, name)[name], y[0])
    assert [v.shape for v in pickle.loads(pickle.dumps(y))] == [(1, 3, 8, 10)]
    place = np.full_like(y[0], np.nan)
    for places in (place, [place], {name: place}):
        place.fill(np.nan)
        assert session.run(x, places)[0] is place
        np.testing.assert_array_equal(place, y[0])
    small, other = np.zeros((1, 3, 4, 5), np.float32), np.zeros(place.shape, np.float64)
    frozen = place.copy()
    frozen.flags.writeable = False
    for wrong, why in ((small, "its place is f32 1x3x4x5"), (other, "float64, the output is float32"),
                       (frozen, "may be written"), (place[..., ::-1], "row-major")):
        with pytest.raises(sparkle.BadInput, match=why):
            session.run(x, wrong)
    with pytest.raises(sparkle.BadInput, match="shares memory with an input"):
        session.run(small, [small])
    assert asyncio.run(_both(session, x, y[0]))
    t = session.device.tensor(x)
    assert t.ndim == 4 and t.size == x.size
    np.testing.assert_array_equal(np.from_dlpack(t), x)


async def _both(session, x, y):
    results = await asyncio.gather(session.run_async(x), session.run_async(x))
    return all((r[0] == y).all() for r in results)
