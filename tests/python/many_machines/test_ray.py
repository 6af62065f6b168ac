"""Rows through a model on several processes and nodes: each answered once, none wrong, a lost node included."""
import multiprocessing
import os
import pathlib
import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sparkle
import sparkle.ray

W = np.random.default_rng(3).standard_normal((6, 4), dtype=np.float32)


def dense(path, rows):
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Relu", ["t"], ["y"])], "dense",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 4])],
                              [numpy_helper.from_array(W, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return str(path)


@pytest.fixture(params=["n", 1, 5])
def model(request, tmp_path):
    return dense(tmp_path / "dense.onnx", request.param)


def batch(rows, seed=0):
    return {"id": np.arange(rows), "x": np.random.default_rng(seed).standard_normal((rows, 6), dtype=np.float32)}


def check(answer, given):
    np.testing.assert_array_equal(answer["id"], given["id"])
    np.testing.assert_allclose(answer["y"], np.maximum(given["x"] @ W, 0), rtol=1e-5, atol=1e-5)


def test_batches_of_any_length(model):
    predictor = sparkle.ray.Predictor(model, "cpu", threads=1)
    for rows in (1, 5, 13):
        given = batch(rows, rows)
        answer = predictor(given)
        assert set(answer) == {"id", "y"}
        check(answer, given)
    renamed = sparkle.ray.Predictor(model, "cpu", inputs={"x": "pixels"}, outputs={"y": "scores"}, keep=[],
                                    preprocess=lambda b: {"pixels": 2 * b["x"].astype(np.float64)})
    given = batch(7)
    np.testing.assert_allclose(renamed(given)["scores"], np.maximum(2 * given["x"] @ W, 0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(list(sparkle.ray.Predictor(model, "cpu")({"only": given["x"]})), ["y"])
    rows = np.empty(3, object)
    rows[:] = list(given["x"][:3])
    assert sparkle.ray.Predictor(model, "cpu")({"x": rows})["y"].shape == (3, 4)


def test_what_does_not_fit_is_named(model):
    predictor = sparkle.ray.Predictor(model, "cpu")
    with pytest.raises(sparkle.BadInput, match="no column 'x' for the input 'x'; it has 'a', 'b'"):
        predictor({"a": np.zeros((2, 6), np.float32), "b": np.zeros(2)})
    with pytest.raises(sparkle.BadInput, match="The column 'x' is int64"):
        predictor({"x": np.zeros((2, 6), np.int64)})
    with pytest.raises(sparkle.BadInput):
        predictor({"x": np.zeros((2, 7), np.float32)})


@pytest.mark.parametrize("rows", [1, 5])
def test_a_compiled_file_serves_workers(tmp_path, rows):
    onnx, compiled = dense(tmp_path / "dense.onnx", rows), str(tmp_path / "dense.sparkle")
    sparkle.compile(onnx, compiled, sparkle.Device("cpu", threads=1))
    os.remove(onnx)  # the file is all that a worker needs
    predictor = sparkle.ray.Predictor(compiled, "cpu", threads=1)
    given = [batch(7, seed) for seed in range(2)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for (process, answer), g in zip(pool.map(answer_of, [(predictor, g) for g in given]), given):
            assert process != os.getpid()
            check(answer, g)
    check(predictor(given[0]), given[0])


def kept(session):
    """The list of the arrays that the session is given from now on."""
    run, given = session.run, []
    session.run = lambda arrays: given.extend(arrays) or run(arrays)
    return given


def test_a_dense_column_is_not_copied(tmp_path):
    predictor = sparkle.ray.Predictor(dense(tmp_path / "dense.onnx", "n"), "cpu", threads=1)
    arrays, given = kept(predictor.session), batch(5)
    given["x"].flags.writeable = False  # as arrays of an object store are
    check(predictor(given), given)
    check(predictor({**given, "x": given["x"].astype(np.float64)}), given)
    first, *_, second = arrays  # between them the rows that are compared with the first batch
    assert first.ctypes.data == given["x"].ctypes.data and second.ctypes.data != given["x"].ctypes.data


def resident(what):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the most memory of a time is told by Linux alone")
def test_a_run_takes_no_memory_for_a_copy_of_its_inputs(tmp_path):
    graph = helper.make_graph([helper.make_node("ReduceMax", ["x", "axes"], ["y"], keepdims=0)], "largest",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1 << 20])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
                              [numpy_helper.from_array(np.array([1]), "axes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    predictor = sparkle.ray.Predictor(model, "cpu", threads=1)
    x = np.ones((32, 1 << 20), np.float32)  # 128 MiB
    x.flags.writeable = False
    predictor({"x": x[:1]})
    with open("/proc/self/clear_refs", "w") as mark:
        mark.write("5")
    before = resident("VmHWM")
    np.testing.assert_array_equal(predictor({"x": x})["y"], np.ones(32))
    assert resident("VmHWM") - before < x.nbytes // 4


def answer_of(predictor_and_batch):
    predictor, given = predictor_and_batch
    return os.getpid(), predictor(given)


def test_workers_open_the_model_for_themselves(model):
    predictor = pickle.loads(pickle.dumps(sparkle.ray.Predictor(model, "cpu", threads=1)))
    given = [batch(4, seed) for seed in range(6)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        answers = pool.map(answer_of, [(predictor, g) for g in given])
    for (process, answer), g in zip(answers, given):
        assert process != os.getpid()
        check(answer, g)


def test_workers_of_dask_answer_every_batch(model):
    distributed = pytest.importorskip("distributed")
    given = [batch(3 + seed, seed) for seed in range(6)]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            answers = client.gather(client.map(sparkle.ray.Predictor(model, "cpu", threads=1), given, pure=False))
    for answer, g in zip(answers, given):
        check(answer, g)


def test_a_cluster_that_loses_a_node_answers_every_row_once(tmp_path):
    ray = pytest.importorskip("ray")
    data = pytest.importorskip("ray.data")
    from ray.cluster_utils import Cluster
    model = str(tmp_path / "dense.sparkle")  # compiled: each actor opens the plan and its packed weights as they lie there
    sparkle.compile(dense(tmp_path / "dense.onnx", 20), model, sparkle.Device("cpu", threads=1))
    marks = tmp_path / "nodes"
    marks.mkdir()

    class Slow(sparkle.ray.Predictor):  # long enough for a node to go in the middle
        def __call__(self, rows):
            import time
            (marks / ray.get_runtime_context().get_node_id()).touch()
            time.sleep(0.1)
            return super().__call__(rows)

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20})
    try:
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=80 << 20) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        rows, size = 1600, 20
        given = batch(rows)
        table = data.from_items([{"id": int(i), "x": given["x"][i]} for i in range(rows)], override_num_blocks=rows // size)
        answers = table.map_batches(Slow, fn_constructor_kwargs={"model": model, "device": "cpu", "threads": 1},
                                    batch_size=size, concurrency=(1, 3), max_restarts=-1, max_task_retries=-1)
        seen, killed = {}, False
        for part in answers.iter_batches(batch_size=size, prefetch_batches=0):
            for i, y in zip(part["id"], part["y"]):
                assert int(i) not in seen
                seen[int(i)] = y
            if not killed and len(seen) >= 200 and len(list(marks.iterdir())) > 1:
                cluster.remove_node(nodes[0], allow_graceful=False)
                killed = True
        assert sorted(seen) == list(range(rows))
        got = np.stack([seen[i] for i in range(rows)])
        np.testing.assert_allclose(got, np.maximum(given["x"] @ W, 0), rtol=1e-5, atol=1e-5)
        assert killed
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(scope="class")
def local_ray():
    """Ray on this machine alone, with two cores."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    ray.init(num_cpus=2, object_store_memory=80 << 20, log_to_driver=False, include_dashboard=False)
    yield ray
    ray.shutdown()


class TestOneMachine:
    def test_batches_are_read_where_the_object_store_has_them(self, local_ray, tmp_path):
        model = dense(tmp_path / "dense.onnx", "n")
        seen = tmp_path / "seen"
        seen.mkdir()

        class Watching(sparkle.ray.Predictor):
            def __call__(self, rows):
                x, run, given = rows["x"], type(self.session).run, []
                self.session.run = lambda arrays: given.extend(arrays) or run(self.session, arrays)
                answer = super().__call__(rows)
                same = given[0].ctypes.data == x.ctypes.data
                (seen / f"{rows['id'][0]}").write_text(f"{x.flags.owndata} {x.flags.writeable} {same}")
                return answer

        given = batch(4000)
        table = local_ray.data.from_numpy([given["x"][:2000], given["x"][2000:]]).map_batches(
            lambda b: {"id": np.arange(len(b["data"])), "x": b["data"]}).materialize()
        answers = table.map_batches(Watching, fn_constructor_kwargs={"model": model, "device": "cpu", "threads": 1},
                                    batch_size=500, concurrency=1)
        got = np.concatenate([b["y"] for b in answers.iter_batches(batch_size=500)])
        assert got.shape == (4000, 4)
        notes = [f.read_text() for f in seen.iterdir()]
        assert notes and set(notes) == {"False False True"}

    def test_the_way_that_is_measured_answers_each_row_once(self, local_ray, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
        from machines import row_ways
        local_ray.cloudpickle.register_pickle_by_value(row_ways)  # the workers do not know the folder
        given = batch(70)
        np.save(tmp_path / "rows.npy", given["x"])
        model = {"file": dense(tmp_path / "dense.onnx", "n"), "input": "x", "rows": str(tmp_path / "rows.npy"), "count": 70,
                 "batch": 8}
        ids, answers, at, worker = map(np.concatenate, zip(*row_ways.Ray(2).answers(model, all_in_one=False)))
        order = np.argsort(ids)
        check({"id": ids[order], "y": answers[order]}, given)
        assert (at > 0).all() and os.getpid() not in worker


def test_a_deployment_speaks_the_inference_protocol(tmp_path, monkeypatch):
    # Where all cores are busy Ray's proxy is killed before it is up, unless it is given longer than five seconds.
    monkeypatch.setenv("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    monkeypatch.setenv("RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S", "60")
    ray = pytest.importorskip("ray")
    serve = pytest.importorskip("ray.serve")
    import json
    import socket
    import urllib.error
    import urllib.request
    model = dense(tmp_path / "dense.onnx", "n")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ray.init(num_cpus=2, object_store_memory=80 << 20, log_to_driver=False, include_dashboard=False)
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        handle = serve.run(sparkle.ray.deployment(model, predictor={"device": "cpu", "threads": 1}), route_prefix="/dense")
        x = batch(3)["x"]
        futures = [handle.predict.remote({"x": row}) for row in x]
        np.testing.assert_allclose([f.result()["y"] for f in futures], np.maximum(x @ W, 0), rtol=1e-5, atol=1e-5)

        def post(body):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/dense", json.dumps(body).encode())
            return json.load(urllib.request.urlopen(request))

        answer = post({"inputs": [{"name": "x", "shape": [1, 6], "datatype": "FP32", "data": x[0].tolist()}]})
        assert answer["outputs"][0]["shape"] == [1, 4] and answer["outputs"][0]["datatype"] == "FP32"
        np.testing.assert_allclose(answer["outputs"][0]["data"], np.maximum(x[0] @ W, 0), rtol=1e-5, atol=1e-5)
        # All rows of a request, in their order.
        answer = post({"inputs": [{"name": "x", "shape": [3, 6], "datatype": "FP32", "data": x.tolist()}]})
        assert answer["outputs"][0]["shape"] == [3, 4]
        np.testing.assert_allclose(np.reshape(answer["outputs"][0]["data"], (3, 4)), np.maximum(x @ W, 0), rtol=1e-5, atol=1e-5)
        for name, width, sentence in [("x", 7, "row of input 'x' has shape [6] in the model, [7] was given"),
                                      ("z", 6, "no input 'z'")]:
            with pytest.raises(urllib.error.HTTPError, match="400") as refused:
                post({"inputs": [{"name": name, "shape": [1, width], "datatype": "FP32", "data": [0] * width}]})
            assert sentence in json.load(refused.value)["error"]
        # What is wrong beside what is right fails alone.
        futures = [handle.predict.remote(row) for row in ({"x": x[0]}, {"x": x[1][:5]}, {"z": x[1]}, {"x": x[2]})]
        right = [futures[i].result()["y"] for i in (0, 3)]
        np.testing.assert_allclose(right, np.maximum(x[[0, 2]] @ W, 0), rtol=1e-5, atol=1e-5)
        for i, sentence in ((1, "row of input 'x'"), (2, "no input 'z'")):
            with pytest.raises(sparkle.BadInput, match=sentence):
                futures[i].result()
    finally:
        serve.shutdown()
        ray.shutdown()
