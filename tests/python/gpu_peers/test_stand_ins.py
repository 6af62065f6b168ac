"""The peers over stand-ins (tests/fake_peers/gpu) that compute plain sums and refuse wrong use: the best right algorithm is
taken, what the graph API refuses goes by the older calls, and no misuse goes unseen."""

import json
import os
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "gpu"))

import peer_steps  # noqa: E402
import stand_ins  # noqa: E402

PRODUCT = ("f32", "tf32", "f16", "bf16")
FUSED = ("bf16_fused", "f16_fused", "tf32_fused", "f32_fused")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("stand_ins")
    why = stand_ins.compile_all(ROOT, made)
    if why:
        pytest.skip(f"SKIP: {why}")
    return made


@pytest.fixture
def layers(tmp_path):
    path = tmp_path / "layers.csv"
    path.write_text(peer_steps.DRY_LAYERS, encoding="utf-8")
    return path


def environment(folder, **more):
    return {**os.environ, "SPARKLE_PEER_LIBRARIES": str(folder), **more}


def measured(folder, layers, peer, *options, status=0, **more):
    output = layers.parent / "peers.json"
    command = [sys.executable, ROOT / "scripts" / "gpu_peers.py", "time", "--peer", peer, "--layers", layers]
    command += ["--output", output, *options]
    done = subprocess.run(command, env=environment(folder, **more), capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return json.loads(output.read_text(encoding="utf-8")), done.stdout + done.stderr


def test_cudnn_takes_the_best_engine_whose_results_are_right(folder, layers):
    found, _ = measured(folder, layers, "cudnn", "--search-seconds", "0.5")
    assert found["peer"] == "cudnn" and found["device"] == "stand-in" and found["cudnn"] == 91900
    for name in ("square", "strided", "grouped", "pointwise"):
        for way in (*FUSED, "bf16_alone"):
            row = found["layers"][name][way]
            assert row["api"] == "graph" and row["replayed"] and row["min_ms"] <= row["median_ms"], row
            # Engine 2 computes nothing and is the fastest; engine 0 says that it rounds, which strict fp32 does not take.
            taken = ("engine 1",) if way == "f32_fused" else ("engine 1", "engine 0")
            # Wide types, and few channels, lie plane by plane too.
            layouts = 2 if "32" in way or name == "strided" else 1
            assert row["algorithm"].removesuffix(" on planes") in taken, row
            assert row["tried"] == (len(taken) + 1) * layouts, row
    assert "not asked" in found["layers"]["product"]["bf16_fused"]["error"]


def test_what_the_graph_refuses_goes_by_the_older_calls(folder, layers):
    found, _ = measured(folder, layers, "cudnn", "--search-seconds", "0.2", FAKE_CUDNN_REFUSES="graph")
    for way in (*FUSED, "bf16_alone"):
        row = found["layers"]["grouped"][way]
        assert row["api"] == "legacy" and row["algorithm"] == "algorithm 1" and row["tried"] == 2, row
        assert "this graph is not taken" in row["graph_refused"]
    found, said = measured(folder, layers, "cudnn", status=1, FAKE_CUDNN_REFUSES="all")
    assert "nothing could be measured by 'cudnn'" in said
    error = found["layers"]["square"]["bf16_fused"]["error"]
    assert "this graph is not taken" in error and "these sizes are not taken" in error


def test_cublaslt_takes_products_and_convolutions_that_are_one(folder, layers):
    found, _ = measured(folder, layers, "cublaslt", "--search-seconds", "0.2")
    for name, ways in (("product", PRODUCT), ("pointwise", (*FUSED, "bf16_alone"))):
        for way in ways:
            row = found["layers"][name][way]
            # The first computes nothing, the third is said to be unusable.
            assert row["algorithm"] == "candidate 1" and row["tried"] == 2, row
    assert "not one product" in found["layers"]["square"]["bf16_fused"]["error"]


def test_a_limit_ends_in_good_order(folder, layers):
    found, said = measured(folder, layers, "cudnn", "--seconds", "0.0001")
    assert found["layers"] == {} and found["left_out"] == 25 and "25 times were left out" in said


def test_no_libraries_are_a_sentence(tmp_path, layers):
    for peer in ("cudnn", "cublaslt"):
        command = [sys.executable, ROOT / "scripts" / "gpu_peers.py", "time", "--peer", peer, "--layers", layers]
        command += ["--output", tmp_path / "x.json"]
        done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
        assert done.returncode == 77 and "cannot be opened: it is in none of the known places" in done.stderr


MISUSE = """
import ctypes, sys
sys.path.insert(0, {path!r})
from peers import cublaslt, cudnn, cudnn_api as api, layers, libraries
from peers.driver import Driver, Tensor
driver = Driver()
layer = dict(name="x", n=1, c=8, h=4, w=4, k=8, r=1, s=1, stride=(1, 1), pad=(0, 0), dilation=(1, 1), groups=1, kind="conv")
def refused(work):
    try:
        work()
    except libraries.PeerError as error:
        return str(error)
    raise SystemExit("this was taken: " + str(work))
{body}
"""

DRIVER = """
x = Tensor(driver, 100, "bf16", 1)
assert x.read(99) == x.value(99)
driver.free_since(0)
print(refused(lambda: driver.call("cuMemFree_v2", x.address)))
print(refused(lambda: driver.call("cuStreamSynchronize", None)))
driver.call("cuStreamBeginCapture_v2", driver.stream, 1)
print(refused(lambda: driver.alloc(1)))
print(refused(driver.wait))
"""
CUDNN = """
library = cudnn.Library()
peer = cudnn.Peer(driver)
peer.handle, kept = ctypes.c_void_p(), peer.handle
print(refused(lambda: next(peer.plans(layer, "bf16_fused", {{}}))))
peer.handle = kept
x = cudnn.Descriptor(library, api.CUDNN_BACKEND_TENSOR_DESCRIPTOR)
print(refused(x.finish))
sizes = cudnn.sizes_of(layer)
x, w = (cudnn.tensor(library, name, 9, sizes[name]) for name in ("x", "w"))
y = cudnn.Descriptor(library, api.CUDNN_BACKEND_TENSOR_DESCRIPTOR)
print(refused(lambda: cudnn.convolution(library, layer, x, w, y)))
print(refused(lambda: x.integers(api.CUDNN_ATTR_TENSOR_UNIQUE_ID, 9)))
print(refused(lambda: w.get(api.CUDNN_ATTR_TENSOR_UNIQUE_ID, api.CUDNN_TYPE_FLOAT, (ctypes.c_int64 * 1)())))
tensors = {{name: peer.filled(name, sizes[name], "bf16") for name in ("x", "w", "bias", "y")}}
plan = next(peer.plans(layer, "bf16_fused", tensors))
plan()
driver.free_since(0)
print(refused(plan))
"""
CUBLASLT = """
peer = cublaslt.Peer(driver)
product, y, check = peer.pixels(layer, "bf16_fused", "bf16", "fused")
call = list(product.calls())[1]
call()
check()
y.spoil()
print(refused(check))
kept, peer.handle = peer.handle, ctypes.c_void_p()
print(refused(call))
peer.handle, stream = kept, driver.stream
driver.stream = ctypes.c_void_p()
print(refused(call))
driver.stream = stream
print(refused(lambda: product.layout(99, 8, 8, 1)))
driver.free_since(0)
print(refused(call))
"""


LAYOUTS = """
peer = cudnn.Peer(driver)
layer = dict(layer, c=6, h=5, w=7, r=3, s=2, pad=(1, 0), groups=2)
sizes = cudnn.sizes_of(layer)
tensors = {{name: peer.filled(name, sizes[name], "f32") for name in ("x", "w", "bias", "y")}}
for plan in peer.plans(layer, "tf32_fused", tensors):
    tensors["y"].spoil()
    plan()
    check = lambda planes: layers.check_convolution(layer, "tf32_fused", *tensors.values(), planes)
    if plan.name.startswith("engine 2"):
        refused(lambda: check(plan.planes))
    else:
        check(plan.planes)
        refused(lambda: check(not plan.planes))
    print(plan.name)
"""


@pytest.mark.parametrize(("body", "count"), [(DRIVER, 4), (CUDNN, 6), (CUBLASLT, 5), (LAYOUTS, 6)])
def test_wrong_use_is_refused(folder, body, count):
    text = MISUSE.format(path=str(ROOT / "bench" / "gpu"), body=body.replace("{{", "{").replace("}}", "}"))
    done = subprocess.run([sys.executable, "-c", text], env=environment(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) == count, done.stdout


def numpy_here():
    pytest.importorskip("numpy", reason="SKIP: there is no NumPy here")


def test_pytorch_over_its_stand_in(layers):
    numpy_here()
    path = str(ROOT / "tests" / "fake_peers" / "python")
    more = ["--whole", "1", "--whole-size", "32", "--ways", "bf16,bf16_fused,tf32", "--filter", "s", "--filter", "product"]
    found, _ = measured(layers.parent, layers, "torch", *more, PYTHONPATH=path)
    assert found["peer"] == "torch" and found["torch"] == "stand-in"
    assert found["layers"]["strided"]["bf16_fused"]["median_ms"] > 0
    assert "no activation" in found["layers"]["product"]["bf16_fused"]["error"]
    assert found["networks"]["resnet50_n1"]["tf32"]["network"].startswith("its layers")
    assert set(found["layers"]["square"]) == {"bf16", "bf16_fused", "tf32"}


def test_normalisation_goes_into_the_convolution_before_it():
    from peers.torch_peer import fold_normalisation

    class Norm(str):
        pass

    fold = lambda conv, norm: f"{conv}+{norm}" if isinstance(norm, Norm) else None
    names = SimpleNamespace
    nn = names(BatchNorm2d=Norm, Identity=lambda: "as it is", utils=names(fusion=names(fuse_conv_bn_eval=fold)))
    plain = names(conv1="a", bn1=Norm("b"), conv2="c", bn2=Norm("d"), conv3="e", bn3=Norm("f"), downsample=["g", Norm("h")])
    short = names(conv1="i", bn1=Norm("j"), downsample=None)
    modules = [plain, short, names(conv1="k")]
    fold_normalisation(names(nn=nn), names(modules=lambda: modules))
    assert (plain.conv1, plain.conv2, plain.conv3, plain.downsample) == ("a+b", "c+d", "e+f", "g+h")
    assert (short.conv1, short.bn1, short.downsample, modules[2].conv1) == ("i+j", "as it is", None, "k")


def test_the_stand_in_convolves():
    """By four loops; and channels that do not fit are refused."""
    numpy_here()
    import numpy as np

    sys.path.insert(0, str(ROOT / "tests" / "fake_peers" / "python"))
    try:
        from torch.nn import functional
        from torch.tensor import wrapped
    finally:
        sys.path.pop(0)
        for name in [name for name in sys.modules if name == "torch" or name.startswith("torch.")]:
            del sys.modules[name]
    random = np.random.default_rng(1)
    x, w, b = (random.standard_normal(shape) for shape in ((2, 4, 6, 7), (6, 2, 3, 2), (6,)))
    y = functional.conv2d(wrapped(x), wrapped(w), wrapped(b), (2, 1), (1, 2), (1, 2), 2)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)))
    for n, k, p, q in np.ndindex(*y.shape):
        part = padded[n, k // 3 * 2 : k // 3 * 2 + 2, 2 * p : 2 * p + 3, q : q + 3 : 2]
        assert abs((part * w[k]).sum() + b[k] - y[n, k, p, q]) < 1e-12
    with pytest.raises(RuntimeError):
        functional.conv2d(wrapped(x), wrapped(w), None, 1, 0, 1, 1)


def test_the_table_takes_the_fastest_peer(tmp_path):
    rows = {"cudnn": {"a": {"bf16_fused": {"median_ms": 2.0}, "f32_fused": {"error": "no"}}},
            "cublaslt": {"a": {"bf16_fused": {"median_ms": 1.5}}},
            "torch": {"a": {"bf16": {"median_ms": 0.5}, "f32": {"median_ms": 4.0}}, "b": {"bf16": {"median_ms": 3.0}},
                      "net": {"bf16": {"median_ms": 8.0}}}}
    files = []
    for peer, found in rows.items():
        files.append(tmp_path / f"{peer}.json")
        files[-1].write_text(json.dumps({"peer": peer, "device": "card", "layers": found}), encoding="utf-8")
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "bfloat_x.json").write_text(json.dumps({"rows": [{"name": n, "median_ms": 1.0} for n in "ab"]}), encoding="utf-8")
    (ours / "layers_x.json").write_text(json.dumps({"rows": [{"name": "a", "median_ms": 2.0}]}), encoding="utf-8")
    # Networks by the device's clock where it tells; the steps' sum holds what the host takes between launches.
    total = {"median_ms": 6.0, "steps_ms": 9.0}
    (ours / "model_net.bfloat.json").write_text(json.dumps({"total": {**total, "device_ms": 4.0}}), encoding="utf-8")
    (ours / "model_net.json").write_text(json.dumps({"total": total}), encoding="utf-8")
    # Rows of these are steps of one layer, not layers.
    (ours / "bfloat_ablate.json").write_text(json.dumps({"rows": [{"name": "a", "median_ms": 9.0}]}), encoding="utf-8")
    script = [sys.executable, ROOT / "scripts" / "gpu_peers.py", "table", "--ours", ours, "--peers", *files]
    lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    a, b, net = (next(line.split("|") for line in lines if line.startswith(f"{name} ")) for name in ("a", "b", "net"))
    assert a[4].split() == ["1.0000", "1.5000", "cublaslt", "1.500"] and a[1].split() == ["2.0000", "4.0000", "torch", "2.000"]
    assert b[4].split() == ["1.0000", "3.0000", "torch", "3.000"]
    assert net[4].split() == ["4.0000", "8.0000", "torch", "2.000"] and net[1].split()[0] == "6.0000"
    assert any("(aim: 1.3): 2.080 (3 rows)" in line for line in lines)


def test_stand_ins_that_cannot_be_made_are_a_reason(tmp_path, monkeypatch):
    assert "do not travel" in stand_ins.compile_all(tmp_path, tmp_path / "to")
    monkeypatch.setattr(stand_ins.shutil, "which", lambda name: None)
    assert "no C compiler" in stand_ins.compile_all(ROOT, tmp_path / "to")
