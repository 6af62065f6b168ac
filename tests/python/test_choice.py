"""The device that is the fastest for a model, where there is one to choose: the functional model of CUDA's devices stands for a
card."""
import multiprocessing
import os
import pathlib
import re

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sparkle
import sparkle.ray
from serving import Server, needs_serve

CUDA_MODEL = pathlib.Path(__file__).resolve().parents[2] / "build/release/tests/cuda_model/driver/libcuda_model.so"


def chain(path, rows, width=64, layers=1, columns=None):
    weights = np.random.default_rng(0).standard_normal((width, width)).astype(np.float32) / width ** 0.5
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"t{i}", "w"], [f"t{i + 1}" if i < layers - 1 else "y"])
             for i in range(layers)]
    shape = [rows, *([columns] if columns else []), width]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return str(path)


@pytest.fixture
def card(monkeypatch, tmp_path):
    if not CUDA_MODEL.exists():
        pytest.skip("the release build has no functional model of CUDA's devices")
    monkeypatch.setenv("SPARKLE_CUDA_DRIVER", str(CUDA_MODEL))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if "cuda:0" not in [d.name for d in sparkle.devices() if not d.unusable]:
        pytest.skip("this package has no CUDA backend")


def test_a_choice_is_made_once_and_remembered(card, tmp_path):
    model = chain(tmp_path / "m.onnx", "n")
    first = sparkle.choose_device(model, rows=3, threads=1)
    rows = {row["device"]: row for row in first.rows}
    assert {"cpu", "cuda:0"} <= set(rows) and rows[first.device]["why"] == "chosen"
    assert first.why.startswith(first.device + ": ") and all(row["why"] for row in first.rows)
    for name, row in rows.items():  # Mesa's, which has the CPU's cores
        if row["why"] == "a software device, whose cores are the CPU's":
            assert name.startswith("vulkan") and name != first.device
    again = sparkle.choose_device(model, rows=3, threads=1)
    assert (again.device, again.rows) == (first.device, []) and "chosen for this model before" in again.why
    assert sparkle.choose_device(model, rows=4, threads=1).rows  # another question


def test_without_a_gpu_nothing_is_asked(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARKLE_CUDA_DRIVER", raising=False)
    if any(re.match(r"renderD|nvidiactl", f) for d in ("/dev/dri", "/dev") if os.path.isdir(d) for f in os.listdir(d)):
        pytest.skip("a GPU is here")
    choice = sparkle.choose_device(chain(tmp_path / "m.onnx", "n"))
    assert (choice.device, choice.why, choice.rows) == ("cpu", "cpu: no GPU is here", [])
    predictor = sparkle.ray.Predictor(chain(tmp_path / "m.onnx", "n"), threads=1)
    predictor({"x": np.zeros((2, 64), np.float32)})
    assert predictor.session.device.name == "cpu"


def test_sizes_that_nobody_told_are_asked_for(card, tmp_path):
    model = chain(tmp_path / "m.onnx", "n", columns="m")
    with pytest.raises(sparkle.BadInput, match="leaves sizes of input 'x'"):
        sparkle.choose_device(model)
    with pytest.raises(sparkle.BadInput, match="no input 'z'"):
        sparkle.choose_device(model, shapes={"x": (1, 2, 64), "z": (1,)})
    with pytest.raises(sparkle.FileUnreadable):
        sparkle.choose_device(tmp_path / "none.onnx")
    choice = sparkle.choose_device(model, shapes={"x": (3, 2, 64)}, threads=1)
    assert choice.rows
    # The predictor tells them by its first batch: the same question, which is remembered.
    predictor = sparkle.ray.Predictor(model, threads=1, inputs={"x": "pixels"})
    predictor({"pixels": np.zeros((3, 2, 64), np.float32), "id": np.arange(3)})
    assert predictor.session.device.name == choice.device


def test_a_compiled_file_goes_where_it_was_compiled_for(card, tmp_path):
    model = chain(tmp_path / "m.onnx", 4)
    for name in ("cpu", "cuda:0"):
        compiled = str(tmp_path / f"{name[:3]}.sparkle")
        sparkle.compile(model, compiled, sparkle.Device(name, threads=1))
        choice = sparkle.choose_device(compiled, threads=1)
        assert (choice.device, choice.why) == (name, f"{name}: the model is compiled for it")
        assert sparkle.ray.Predictor(compiled, threads=1).session.device.name == name


def opened(predictor):
    x = np.random.default_rng(1).standard_normal((4, 64), dtype=np.float32)
    return predictor({"x": x})["y"], predictor.session.device.name, predictor._given[-1]


def test_each_worker_takes_what_its_node_has(card, tmp_path):
    """A file whose choice is remembered to be the card: workers take it, one without a card the CPU, with equal answers."""
    model = chain(tmp_path / "m.onnx", "n")
    sparkle.choose_device(model, rows=4, threads=1)
    (kept,) = (tmp_path / "cache/sparkle/choices").iterdir()
    kept.write_text(re.sub(r'"device":"[^"]*"', '"device":"cuda:0"', kept.read_text()))
    predictor = sparkle.ray.Predictor(model, threads=1)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        on_card, name, _ = pool.apply(opened, (predictor,))
    assert name == "cuda:0"
    os.environ["SPARKLE_CUDA_DRIVER"] = "/nowhere/libcuda.so.1"
    on_cpu, name, _ = opened(predictor)
    assert name == "cpu"
    np.testing.assert_allclose(on_card, on_cpu, rtol=1e-3, atol=1e-3)


def test_the_server_chooses_for_each_model(card, tmp_path):
    needs_serve()
    http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    models = [chain(tmp_path / f"{name}.onnx", "n") for name in ("one", "other")]

    def notes(server):
        log = "\n".join(server.log())
        found = [re.search(rf"sparkle: of '{re.escape(m)}' --device auto is (\S+): (.*)", log) for m in models]
        assert all(found), log
        return [f.groups() for f in found]

    server = Server(*models, "--threads", 1, "--max-batch", 4)
    for _, why in notes(server):
        assert re.match("predicted|measured", why)
    server.end()
    for kept in (tmp_path / "cache/sparkle/choices").iterdir():
        if models[1] in kept.read_text():
            kept.write_text(re.sub(r'"device":"[^"]*"', '"device":"cuda:0"', kept.read_text()))
    server = Server(*models, "--threads", 1, "--max-batch", 4)
    assert notes(server)[1] == ("cuda:0", "chosen for this model before, on these devices and drivers")
    x = np.random.default_rng(1).standard_normal((3, 64), dtype=np.float32)
    given = http.InferInput("x", x.shape, "FP32")
    given.set_data_from_numpy(x)
    with http.InferenceServerClient(server.address, network_timeout=120) as client:
        one, other = (client.infer(name, [given]).as_numpy("y") for name in ("one", "other"))
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    server.end()
