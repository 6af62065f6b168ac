"""The Python package: results, arrays without copies, errors, threads, the onnxruntime-like call."""
import json
import pathlib
import pickle
import re
import threading
import warnings

import numpy as np
import pytest

import sparkle
from sparkle.ort import InferenceSession, SessionOptions

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models" / "upscale2x.onnx"


def picture(h, w, seed=0):
    return np.random.default_rng(seed).random((1, 3, h, w), dtype=np.float32)


@pytest.fixture(scope="module")
def session():
    return sparkle.Session(MODEL)


def test_equals_the_reference_device(session):
    x = picture(9, 12)
    (y,) = session.run(x)
    assert y.shape == (1, 3, 18, 24) and y.dtype == np.float32
    (expected,) = sparkle.Session(MODEL, device="reference").run(x)
    np.testing.assert_allclose(y, expected, atol=1e-5)


def test_all_ways_to_give_inputs(session):
    x = picture(5, 6)
    y = session.run(x)[0]
    for inputs in ([x], (x,), {"image": x}, {"image": x.tolist()}, [x.tolist()]):
        np.testing.assert_array_equal(session.run(inputs)[0], y)
    np.testing.assert_array_equal(session(x)[0], y)
    np.testing.assert_array_equal(session.run(np.asfortranarray(x))[0], y)
    np.testing.assert_array_equal(session.run(x.astype(">f4"))[0], y)


def test_outputs_own_their_memory(session):
    x = picture(4, 4)
    y = session.run(x)[0]
    kept = y.copy()
    for _ in range(5):
        session.run(picture(4, 4, seed=9))
    np.testing.assert_array_equal(y, kept)
    assert y.flags.writeable or not y.flags.owndata


def test_dlpack(session):
    class Foreign:  # an array of another library: DLPack and nothing else
        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    x = picture(6, 4)
    y = session.run(Foreign(x))[0]
    np.testing.assert_array_equal(np.from_dlpack(y), session.run(x)[0])


def test_model_from_bytes(session):
    x = picture(4, 7)
    np.testing.assert_array_equal(sparkle.Session(MODEL.read_bytes()).run(x)[0], session.run(x)[0])


def test_compiled_model(session, tmp_path):
    file = tmp_path / "upscale.sparkle"
    with pytest.raises(sparkle.Error, match="sizes of input 'image' open"):
        sparkle.compile(MODEL, file)
    sparkle.compile(MODEL, file, shapes=[(1, 3, 8, 12)])
    x = picture(8, 12)
    for model in (file, file.read_bytes()):
        compiled = sparkle.Session(model)
        assert compiled.inputs[0].shape == (1, 3, 8, 12)
        np.testing.assert_array_equal(compiled.run(x)[0], session.run(x)[0])
        with pytest.raises(sparkle.Error, match="compile the model for this shape"):
            compiled.run(picture(9, 12))
    for fusion in ("none", "inverted"):
        fused = tmp_path / f"{fusion}.sparkle"
        sparkle.compile(MODEL, fused, shapes=[(1, 3, 8, 12)], fusion=fusion)
        np.testing.assert_array_equal(sparkle.Session(fused, fusion=fusion).run(x)[0], sparkle.Session(fused).run(x)[0])
        with pytest.raises(sparkle.Error, match=f"was compiled with the fusion '{fusion}'"):
            sparkle.Session(fused, fusion="inverted" if fusion == "none" else "none")
    with pytest.raises(sparkle.Error, match="fusion is 'inverted' or 'none', not 'all'"):
        sparkle.Session(MODEL, fusion="all")
    with pytest.raises(sparkle.Error, match="was compiled with the algorithm"):
        sparkle.Session(file, algorithm="gemm")
    file.write_bytes(file.read_bytes()[:5000])
    with pytest.raises(sparkle.Error, match="cut short"):
        sparkle.Session(file)


def test_fixed_model(session, tmp_path):
    image = np.random.default_rng(3).random((1, 3, 12, 16), dtype=np.float32)
    fixed = sparkle.fix(MODEL, tmp_path / "fp16.onnx", target="h200", precision="fp16", samples=[image, 0.5 * image])
    assert fixed.report["rewrites"]["pad_channels"]
    assert fixed.outputs[0]["samples"] == 2 and fixed.outputs[0]["cosine"] > 0.999
    assert "cosine" in repr(fixed) and fixed.kept_wide == {}
    view = fixed._repr_html_()
    assert "<table>" in view and "pad_channels" in view and "the given samples" in view
    assert np.allclose(sparkle.Session(fixed.path).run(image)[0], session.run(image)[0], atol=0.02)
    with pytest.raises(sparkle.Error, match="int8"):
        sparkle.fix(MODEL, tmp_path / "int9.onnx", precision="int9", samples=[image])


def test_options_of_fix(tmp_path):
    file, shapes = tmp_path / "out.onnx", {"image": (1, 3, 8, 8)}
    with pytest.raises(sparkle.BadInput, match="sizes of its input .image. open"):
        sparkle.fix(MODEL, file)
    kept = sparkle.fix(MODEL, file, precision="fp16", keep_wide="/head/Conv", shapes=shapes)
    assert kept.kept_wide == {"/head/Conv": "asked for"} and kept.report["random_samples"]
    assert "kept wide: /head/Conv" in repr(kept) and "<td>/head/Conv</td>" in kept._repr_html_()
    with pytest.raises(sparkle.BadInput, match="no layer 'nobody'"):
        sparkle.fix(MODEL, file, precision="fp16", keep_wide=["nobody"], shapes=shapes)
    onnx = pytest.importorskip("onnx")
    f32, weights = onnx.TensorProto.FLOAT, np.ones((129, 67, 3, 3), np.float32)
    odd = onnx.helper.make_graph(
        [onnx.helper.make_node("Conv", ["a", "w"], ["y"], "conv", pads=[1, 1, 1, 1])], "odd",
        [onnx.helper.make_tensor_value_info("a", f32, [1, 67, 64, 64])],
        [onnx.helper.make_tensor_value_info("y", f32, [1, 129, 64, 64])], [onnx.numpy_helper.from_array(weights, "w")])
    odd = onnx.helper.make_model(odd, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(odd, tmp_path / "odd.onnx")
    padded = [sparkle.fix(tmp_path / "odd.onnx", file, target="a100", max_extra=extra, proof="none").rewrites
              for extra in (0, 300)]
    assert "limit" in str(padded[0]) and "67 -> 72" not in str(padded[0]) and "67 -> 72" in str(padded[1])
    assert sparkle.fix(MODEL, file, proof="none", shapes=shapes).outputs == []
    assert "not proved" in repr(sparkle.fix(MODEL, file, proof="none", precision="fp16", shapes=shapes))
    # Every layer in its own type answers to the bit; whether the cosine is 1 then, or a rounding less and refused, differs.
    try:
        exact = sparkle.fix(MODEL, tmp_path / "exact.onnx", precision="bf16", min_cosine=1, shapes=shapes)
        assert all(output["same_bits"] for output in exact.outputs) and len(exact.kept_wide) == 9
    except sparkle.NotServed as refused:
        assert "cosine" in str(refused) and not (tmp_path / "exact.onnx").exists()
    for wrong in ({"percentile": 20}, {"min_agreement": 101}, {"multiple": 300}, {"calibration": "guess"}):
        with pytest.raises(sparkle.BadInput, match=next(iter(wrong))):
            sparkle.fix(MODEL, file, shapes=shapes, **wrong)
    eight = sparkle.fix(MODEL, file, precision="int8", calibration="percentile", percentile=99, shapes=shapes, min_cosine=0.5)
    assert eight.integer_share > 0 and "integers" in repr(eight) and "integers" in eight._repr_html_()


def test_exact_nonfinite_keeps_out_transforms(tmp_path):
    x = picture(64, 64)
    assert "winograd" in sparkle.Session(MODEL, algorithm="winograd2").plan(x)
    exact = sparkle.Session(MODEL, nonfinite="exact", accuracy=1e-2)
    assert "winograd" not in exact.plan(x)
    with pytest.raises(sparkle.Error, match="finite values"):
        sparkle.Session(MODEL, nonfinite="exact", algorithm="winograd2").run(x)
    with pytest.raises(sparkle.Error, match="'fast' or 'exact'"):
        sparkle.Session(MODEL, nonfinite="maybe")
    file = tmp_path / "exact.sparkle"
    sparkle.compile(MODEL, file, shapes=[x.shape], nonfinite="exact")
    np.testing.assert_array_equal(sparkle.Session(file, nonfinite="exact").run(x)[0], sparkle.Session(file).run(x)[0])


def test_events_tell_what_fell_back(monkeypatch):
    monkeypatch.setenv("SPARKLE_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    with pytest.raises(sparkle.Error) as missing:
        sparkle.Session(MODEL, "cuda")
    assert missing.value.code == "device_unusable"
    instead = sparkle.Session(MODEL, "cuda", fallback="allow", variant="plain")
    assert [(e.what, e.from_, e.reason) for e in instead.events] == [("device", "cuda", "device_unusable")]
    instead.run(picture(9, 13))
    layers = instead.events[1:]
    assert layers and all(e.what == "operator" and e.layer and e.cost > 0 for e in layers)
    with pytest.raises(sparkle.NotServed, match=layers[0].layer):
        sparkle.Session(MODEL, variant="plain", fallback="forbid").run(picture(9, 13))
    with pytest.raises(sparkle.BadInput, match="never"):
        sparkle.Session(MODEL, fallback="never")


def test_moves_to_another_device(session):
    x = picture(9, 13)
    moving = sparkle.Session(MODEL, "reference")
    before = moving.run(x)[0]
    moving.move_to(session.device)
    assert moving.device is session.device
    np.testing.assert_array_equal(moving.run(x)[0], session.run(x)[0])
    np.testing.assert_allclose(moving.run(x)[0], before, atol=1e-5)


def test_describes(session):
    (i,), (o,) = session.inputs, session.outputs
    assert i.name == "image" and i.dtype == "float32" and i.shape[1] == 3 and isinstance(i.shape[2], str)
    assert o.dtype == "float32"
    assert sparkle.Device().describe()["memory"]
    assert sparkle.__version__


def test_plans_and_reports(tmp_path):
    session = sparkle.Session(MODEL)
    with pytest.raises(sparkle.BadInput, match="sizes open"):
        session.explain()
    session.run(picture(8, 8))
    assert "predicted ms" in session.explain() and "bound by:" in session.explain()
    assert session.explain(as_json=True)["steps"]
    report = session.report()
    assert report.outputs_checked and "of plain loops, 3 times" in report.check and report.check in repr(report)
    quick = session.report(runs=1, check="never")
    assert quick["runs"] == 1 and not quick.outputs_checked and "not compared" in quick.check
    with pytest.raises(sparkle.BadInput, match="check is 'auto'"):
        session.report(check="perhaps")
    given = sparkle.Session(MODEL.read_bytes())
    assert "given in memory" in given.report(picture(8, 8), runs=1).check
    assert report["measured_ms"] > 0 and len(report["steps"]) > 3
    step = max(report.steps, key=lambda s: s.measured_ms)
    assert len(report.steps) == len(report["steps"]) and step.percent_of_roof > 0 and step.reason
    assert "% of its roof" in repr(step) and step.name in repr(report)
    assert report._repr_html_().startswith("<iframe srcdoc=") and "Memory over time" in report.page
    report.save(tmp_path / "page.html")
    report.save_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert session.peak_bytes() > 3 * 64 * 4
    plan = session.plan()
    assert plan.startswith("sparkle-plan 1\n") and "name=head.weight" in plan
    assert session.plan(picture(8, 9)) != plan


# A run that is refused does not become what explain() and the others speak of.
def test_refused_runs_are_not_remembered():
    session = sparkle.Session(MODEL)
    for refused in (np.zeros((1, 4, 8, 8), np.float32), np.zeros((1, 3, 8), np.float32)):
        with pytest.raises(sparkle.BadInput):
            session.run(refused)
        with pytest.raises(sparkle.BadInput, match="sizes open"):  # not what the refused run said
            session.explain()
    session.run(picture(8, 9))
    plan = session.plan()
    for refused in (np.zeros((1, 4, 8, 8), np.float32), np.zeros((2, 2), np.float32)):
        for call in (session.run, session.explain, session.plan, session.report, session.peak_bytes):
            with pytest.raises(sparkle.BadInput):
                call(refused)
        assert session.plan() == plan == session.plan(picture(8, 9))
        assert session.explain() and session.report()["steps"] and session.peak_bytes() > 0
    session.plan(picture(5, 5))
    assert session.plan() != plan
    with pytest.raises(sparkle.BadInput):
        session.run(session.device.tensor(np.zeros((1, 4, 8, 8), np.float32)))
    assert session.plan() == session.plan(picture(5, 5))


def test_reprs(session):
    assert re.fullmatch(r"sparkle\.Session\('.*upscale2x\.onnx', device='auto', inputs=\['image' float32 \(N, 3, H, W\)\], "
                        r"outputs=\['.*' float32 .*\]\)", repr(session))
    assert repr(sparkle.Session(MODEL.read_bytes())).startswith(f"sparkle.Session('<{MODEL.stat().st_size} bytes>'")
    device = sparkle.Device("cpu", threads=1)
    assert re.fullmatch(r"sparkle\.Device\('cpu': .+, 1 cores?\)", repr(device))
    assert repr(device.empty((2, 3))) == "sparkle.DeviceTensor(shape=(2, 3), dtype='float32', device='cpu')"
    other = InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])
    assert repr(other).startswith("sparkle.InferenceSession('")
    assert repr(other.get_inputs()[0]).startswith("NodeArg(name='image', type='tensor(float)', shape=['N', 3, ")


def test_errors_survive_pickling(session):
    with pytest.raises(sparkle.BadInput) as error:
        session.run([])
    copy = pickle.loads(pickle.dumps(error.value))
    assert type(copy) is sparkle.BadInput and copy.code == "bad_input" and str(copy) == str(error.value)


def test_models_that_cannot_run_are_refused_when_opened():
    onnx = pytest.importorskip("onnx")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Foo", ["x"], ["a"], "foo_1"), helper.make_node("Bernoulli", ["a"], ["b"], "det"),
             helper.make_node("Foo", ["b"], ["y"], "foo_2"), helper.make_node("Bar", ["x"], ["unused"], "dead")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", f32, ["n", 3])],
                              [helper.make_tensor_value_info("y", f32, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(sparkle.NotServed, match=r"has 3 nodes that cannot run here \(Foo x2, Bernoulli x1\)") as error:
        sparkle.Session(model)
    assert error.value.details == ["Foo x2: ONNX has no operator of this name: 'foo_1', 'foo_2'",
                                   "Bernoulli x1: this operator is not supported: 'det'"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", f32, [2, 3])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, [2, 3])])
    with pytest.raises(sparkle.BadInput, match="declares this output as f64, but its nodes compute f32"):
        sparkle.Session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    with pytest.raises(sparkle.BadInput, match="The model is a int; give a path"):
        sparkle.Session(3)


def test_options_of_sessions(tmp_path):
    x = picture(6, 6)
    y = sparkle.Session(MODEL).run(x)[0]
    small = sparkle.Session(MODEL, plan_cache_bytes=1)  # keeps the newest plan alone
    for _ in range(2):
        small.run(picture(5, 5))
        np.testing.assert_array_equal(small.run(x)[0], y)
    with pytest.raises(sparkle.BadInput, match="plan_cache_bytes"):
        sparkle.Session(MODEL, plan_cache_bytes=-1)
    store = tmp_path / "store"
    with pytest.raises(sparkle.FileUnreadable, match="tuning store .*store' cannot be read"):
        sparkle.Session(MODEL, tuning=store)
    store.write_text("sparkle-tuning 1 another machine\n")
    with pytest.raises(sparkle.BadInput, match="made for 'sparkle-tuning 1 another machine'"):
        sparkle.Session(MODEL, tuning=store)
    store.write_text("")
    with pytest.raises(sparkle.BadInput, match="is empty") as error:
        sparkle.Session(MODEL, tuning=store)
    header = re.search("first line must be '(.*)'", str(error.value)).group(1).replace("\\x09", "\t")  # as sentences show tabs
    store.write_text(header + "\n")
    np.testing.assert_array_equal(sparkle.Session(MODEL, tuning=str(store)).run(x)[0], y)


def test_errors(session):
    with pytest.raises(ValueError, match="float64 was given; convert it with .astype"):
        session.run(np.zeros((1, 3, 4, 4)))
    with pytest.raises(ValueError, match="no input 'picture'"):
        session.run({"picture": picture(4, 4)})
    with pytest.raises(ValueError, match="takes 1 input, 2 were given; in order: 'image' float32 \\(N, 3, H, W\\)"):
        session.run([picture(4, 4), picture(4, 4)])
    with pytest.raises(ValueError, match="shape"):
        session.run(np.zeros((1, 4, 4, 4), np.float32))
    for nothing in ("abc", "3", None, b"abc", [[1.0], [2.0, 3.0]], object()):
        with pytest.raises(sparkle.BadInput, match="The input 'image' cannot be made an array of float32: .*[^.]\\.$"):
            session.run([nothing])
    with pytest.raises(OSError, match="^'missing.onnx' cannot be read") as error:
        sparkle.Session("missing.onnx")
    assert type(error.value) is sparkle.FileUnreadable and error.value.code == "file_unreadable"
    with pytest.raises(sparkle.BadInput) as error:
        sparkle.Session(b"not a model")
    assert error.value.code in ("bad_format", "bad_model")
    with pytest.raises(MemoryError):
        sparkle.Session(MODEL, memory_budget=1000).run(picture(4, 4))
    with pytest.raises(NotImplementedError):
        sparkle.Session(MODEL, precision="int3")
    with pytest.raises(ValueError):
        sparkle.Device("abacus")


def test_threads_share_a_session(session):
    x = picture(16, 16)
    y = session.run(x)[0]
    wrong = []

    def work(n):
        for k in range(10):
            if not np.array_equal(session.run(x)[0], y):
                wrong.append(n)
            session.run(picture(3 + n, 5 + k % 2))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_like_onnxruntime():
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(MODEL), options, providers=["CPUExecutionProvider"])
    (i,) = session.get_inputs()
    assert i.type == "tensor(float)" and i.shape[1] == 3
    x = picture(4, 5)
    (y,) = session.run(None, {i.name: x})
    (z,) = session.run([session.get_outputs()[0].name], {i.name: x})
    np.testing.assert_array_equal(y, z)
    with pytest.raises(sparkle.BadInput):
        session.run(["nothing"], {i.name: x})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for providers in (None, [], ["CPUExecutionProvider"]):
            InferenceSession(str(MODEL), providers=providers)
    with pytest.raises(AttributeError, match="no option 'graph_optimisation'"):
        options.graph_optimisation = 99


def test_arguments_of_a_wrong_type_are_one_sentence():
    for name, value, advice in (
            ("device", 3, "give a Device or its name."), ("precision", 1, "give a text."), ("algorithm", b"x", "give a text."),
            ("variant", 1, "give a text."), ("fusion", None, "give a text."), ("nonfinite", 0, "give a text."),
            ("fallback", 1, "give a text."), ("tuning", 3, "give a path."),
            ("memory_budget", "1", "give a whole number of bytes."), ("plan_cache_bytes", 2.5, "give a whole number of bytes."),
            ("accuracy", "x", "give a number."),
            ("threads", "2", "give a whole number below 2^31."), ("threads", 1 << 40, "give a whole number below 2^31.")):
        with pytest.raises(sparkle.BadInput) as told:
            sparkle.Session(MODEL, **{name: value})
        said = f"The Session's {name} is {value!r}, of type {type(value).__name__}; {advice}"
        assert str(told.value) == said and told.value.code == "bad_usage"
    with pytest.raises(sparkle.BadInput, match="The Device's calibrate is 'no', of type str; give True or False"):
        sparkle.Device("cpu", calibrate="no")
    with pytest.raises(sparkle.BadInput, match="The compilation's memory_budget is '1'"):
        sparkle.compile(MODEL, "never.sparkle", memory_budget="1")
    assert sparkle.Session(MODEL, threads=np.int64(1), accuracy=np.float32(1e-3), memory_budget=np.int32(0)).inputs


def test_expressions():
    x = np.array([[-1, 0, 1], [2, 3, 4]], np.float32)
    a = np.array([1, 2, 3], np.float32)
    y = sparkle.eval("relu(x) * a + b", x=x, a=a, b=0.5)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.maximum(x, 0) * a + np.float32(0.5))
    device = sparkle.Device("cpu")
    assert sparkle.eval("i * 2", device, i=np.array([1 << 60], np.int64))[0] == 1 << 61
    assert sparkle.eval("x > 0", device, x=x).dtype == np.bool_
    with pytest.raises(sparkle.Error, match="column 5: there is no function 'slu'; did you mean 'silu'"):
        sparkle.eval("x + slu(x)", device, x=x)


def test_warnings_reach_the_logger(caplog):
    """Sizes that a model declares and does not have: once for a session, whose outputs tell the real ones."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "stale",
                              [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])],
                              [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2, 4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = sparkle.Session(model, "cpu")
    assert session.run(np.ones((2, 3), np.float32))[0].shape == (2, 3)
    assert session.outputs[0].shape == (2, 3)
    said = [r.getMessage() for r in caplog.records if r.name == "sparkle" and r.levelname == "WARNING"]
    assert len(said) == 1 and "declares its output 'y' with the shape 2x4, but" in said[0]
