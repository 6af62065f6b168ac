"""`sparkle serve` as tritonclient[grpc] talks to it: the calls of Triton's users, what they get where something is wrong, and
what is refused. Beside it raw calls and garbage on the port."""
import itertools
import json
import queue
import socket
import threading
import time

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from serving import Server, needs_serve, relu_sum

grpc = pytest.importorskip("grpc", reason="grpcio is not installed")
triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient[grpc] is not installed")
INFER = "/inference.GRPCInferenceService/ModelInfer"


def slow(path):
    """Some tens of milliseconds a row: a chain of products of 1024 x 1024 over 256 rows."""
    weights = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32) / 32
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"t{i}", "w"], [f"t{i + 1}" if i < 7 else "y"]) for i in range(8)]
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [256, 1024]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], [numpy_helper.from_array(weights, "w")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    needs_serve(grpc=True)
    folder = tmp_path_factory.mktemp("repository")
    for version in (1, 2):
        (folder / "sum" / str(version)).mkdir(parents=True)
        relu_sum(folder / "sum" / str(version) / "model.onnx")
    relu_sum(folder / "narrow.onnx", TensorProto.FLOAT16)
    relu_sum(folder / "small.onnx", TensorProto.INT8)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    server = Server(folder, "--max-batch", 8, "--batch-delay-us", 500, "--max-request-bytes", "1M", "--log", grpc=True)
    yield server
    server.end()


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.grpc) as client:
        yield client


def inputs(*arrays, names="ab", dtype="FP32"):
    given = [triton.InferInput(name, array.shape, dtype) for name, array in zip(names, arrays)]
    for tensor, array in zip(given, arrays):
        tensor.set_data_from_numpy(array)
    return given


def values(seed, rows=2, dtype=np.float32):
    random = np.random.default_rng(seed)
    return random.standard_normal((rows, 3)).astype(dtype), random.standard_normal((rows, 3)).astype(dtype)


def refusal(status, sentence, call, *arguments, **named):
    with pytest.raises(triton.InferenceServerException, match=sentence) as caught:
        call(*arguments, **named)
    assert caught.value.status() == f"StatusCode.{status}", caught.value


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("sum") and client.is_model_ready("sum", "1")
    assert not client.is_model_ready("other") and not client.is_model_ready("sum", "3")
    about = client.get_server_metadata(as_json=True)
    assert about["name"] == "sparkle" and about["version"]
    about = client.get_model_metadata("sum", as_json=True)
    assert about["versions"] == ["1", "2"]
    assert about["inputs"] == [{"name": n, "datatype": "FP32", "shape": ["-1", "3"]} for n in "ab"]
    config = client.get_model_config("sum", as_json=True)["config"]
    assert config["input"] == [{"name": n, "data_type": "TYPE_FP32", "dims": ["-1", "3"]} for n in "ab"]
    assert config["output"] == [{"name": "y", "data_type": "TYPE_FP32", "dims": ["-1", "3"]}]
    refusal("NOT_FOUND", "no model 'other'", client.get_model_metadata, "other")
    refusal("NOT_FOUND", "no model 'other'", client.get_model_config, "other")


def test_health_of_orchestrators(server):
    with grpc.insecure_channel(server.grpc) as channel:
        assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10) == b"\x08\x01"


def test_infer(client):
    a, b = values(1)
    outputs = [triton.InferRequestedOutput("y")]
    answer = client.infer("sum", inputs(a, b), outputs=outputs, request_id="seven")
    np.testing.assert_array_equal(answer.as_numpy("y"), np.maximum(a, 0) + b)
    assert answer.get_response().id == "seven" and answer.get_response().model_version == "2"
    first = client.infer("sum", inputs(a, b), model_version="1", client_timeout=60)
    np.testing.assert_array_equal(first.as_numpy("y"), np.maximum(a, 0) + b)
    assert first.get_response().model_version == "1"
    a, b = values(2, dtype=np.float16)
    got = client.infer("narrow", inputs(a, b, dtype="FP16")).as_numpy("y")
    np.testing.assert_allclose(got, np.maximum(a, 0) + b, rtol=2e-3, atol=1e-6)
    empty = client.infer("sum", inputs(*values(3, rows=0))).as_numpy("y")
    assert empty.shape == (0, 3)


def test_classification(client):
    a, b = np.float32([[1, 3, 2], [0, 0, 0]]), np.float32([[0, 0.5, 0], [-1, -3, -1]])
    answer = client.infer("sum", inputs(a, b), outputs=[triton.InferRequestedOutput("y", class_count=2)])
    assert answer.get_output("y").datatype == "BYTES"
    assert answer.as_numpy("y").tolist() == [[b"3.5:1", b"2:2"], [b"-1:0", b"-1:2"]]


@pytest.mark.parametrize("rows, most", [("N", 8), (1, 1), (2, 0)])
def test_a_classifier_of_pictures_answers_by_its_configuration(tmp_path, rows, most):
    """As Triton's client of pictures goes: it reads how large they are and in which order, and asks for named classes."""
    needs_serve(grpc=True)
    tensors = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [rows, 3, 8, 6]),
               helper.make_tensor_value_info("scores", TensorProto.FLOAT, [rows, 3])]
    nodes = [helper.make_node("ReduceMean", ["image", "axes"], ["scores"], keepdims=0)]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], [numpy_helper.from_array(np.array([2, 3]), "axes")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    helper.set_model_props(model, {"names": "{0: 'red', 1: 'green', 2: 'blue'}"})
    save(model, tmp_path / "picture.onnx")
    server = Server(tmp_path, "--max-batch", 8, grpc=True)
    with triton.InferenceServerClient(server.grpc) as client:
        config = client.get_model_config("picture").config
        assert config.max_batch_size == most
        count = {"N": 2}.get(rows, rows)
        image = np.stack([np.full((count, 8, 6), v, np.float32) for v in (0.25, 0.75, 0.5)], axis=1)
        given = triton.InferInput("image", image.shape, "FP32")
        given.set_data_from_numpy(image)
        answer = client.infer("picture", [given], outputs=[triton.InferRequestedOutput("scores", class_count=2)])
        assert answer.as_numpy("scores").tolist() == [[b"0.75:1:green", b"0.5:2:blue"]] * count
    if most:
        assert config.input[0].format == triton.model_config_pb2.ModelInput.FORMAT_NCHW
        assert list(config.input[0].dims) == [3, 8, 6] and list(config.output[0].dims) == [3]
        http = pytest.importorskip("tritonclient.http")
        with http.InferenceServerClient(server.address) as client:
            config = client.get_model_config("picture")
            told = config["max_batch_size"], config["input"][0]["format"], config["input"][0]["dims"]
            assert told == (most, "FORMAT_NCHW", [3, 8, 6])
    server.end()


def typed_request(model, datatype, field, a, b, shape=(2, 3)):
    request = triton.service_pb2.ModelInferRequest(model_name=model)
    for name, data in (("a", a), ("b", b)):
        tensor = request.inputs.add(name=name, datatype=datatype, shape=shape)
        getattr(tensor.contents, field).extend(data)
    return request


def test_typed_contents(server):
    with grpc.insecure_channel(server.grpc) as channel:
        stub = triton.service_pb2_grpc.GRPCInferenceServiceStub(channel)
        a, b = values(4)
        answer = stub.ModelInfer(typed_request("sum", "FP32", "fp32_contents", a.ravel(), b.ravel()))
        got = np.frombuffer(answer.raw_output_contents[0], np.float32).reshape(answer.outputs[0].shape)
        np.testing.assert_array_equal(got, np.maximum(a, 0) + b)
        numbers = [-3, 4, 5, -6, 7, 8]
        answer = stub.ModelInfer(typed_request("small", "INT8", "int_contents", numbers, numbers))
        assert list(np.frombuffer(answer.raw_output_contents[0], np.int8)) == [max(n, 0) + n for n in numbers]
        for request, sentence in [
                (typed_request("small", "INT8", "int_contents", [200] * 6, numbers), "none of its type"),
                (typed_request("sum", "FP32", "fp64_contents", a.ravel(), b.ravel()), "a field that is none of its type"),
                (typed_request("sum", "FP32", "fp32_contents", a.ravel()[:5], b.ravel()), "has 24 bytes"),
                (typed_request("narrow", "FP16", "fp32_contents", a.ravel(), b.ravel()), "send raw_input_contents")]:
            with pytest.raises(grpc.RpcError) as caught:
                stub.ModelInfer(request)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT and sentence in caught.value.details()


def test_async_infer(client):
    given = [values(seed, 1 + seed % 3) for seed in range(40)]
    answers = queue.Queue()
    for i, (a, b) in enumerate(given):
        client.async_infer("sum", inputs(a, b), callback=lambda result, error, i=i: answers.put((i, result, error)))
    for _ in given:
        i, result, error = answers.get(timeout=60)
        assert error is None, error
        np.testing.assert_array_equal(result.as_numpy("y"), np.maximum(given[i][0], 0) + given[i][1])


def test_errors_are_sentences_with_a_status(client):
    a, b = values(3)
    wrong = "INVALID_ARGUMENT"
    refusal("NOT_FOUND", "no model 'other'", client.infer, "other", inputs(a, b))
    refusal("NOT_FOUND", "has no version '7'", client.infer, "sum", inputs(a, b), model_version="7")
    refusal(wrong, "is FP32 in the model, 'FP64' was given", client.infer, "sum",
            inputs(a.astype(np.float64), b.astype(np.float64), dtype="FP64"))
    refusal(wrong, r"has shape \[-1,3\] in the model, \[2,2\] was given", client.infer, "sum", inputs(a[:, :2].copy(), b))
    refusal(wrong, "Input 'b' is missing", client.infer, "sum", inputs(a))
    refusal(wrong, "no input 'c'", client.infer, "sum", inputs(a, b, names="ac"))
    refusal(wrong, "no output 'z'", client.infer, "sum", inputs(a, b), outputs=[triton.InferRequestedOutput("z")])
    refusal("RESOURCE_EXHAUSTED", "larger than max|max-request-bytes", client.infer, "sum", inputs(*values(5, rows=100000)))
    refusal("UNIMPLEMENTED", "ompression", client.infer, "sum", inputs(a, b), compression_algorithm="gzip")
    refusal("DEADLINE_EXCEEDED", "time", client.infer, "sum", inputs(a, b), timeout=1)


def test_raw_bytes_that_do_not_fit(server):
    with grpc.insecure_channel(server.grpc) as channel:
        stub = triton.service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for shape, sizes, sentence in [
                ((2, 3), (24, 20), "has 24 bytes"), ((2, 3), (24,), "there is one for each input"),
                ((1 << 40, 3), (24, 24), "bytes"), ((1 << 62, 3), (24, 24), "more than can be addressed"),
                ((-1, 3), (24, 24), "natural numbers"), ((2, 3, 1), (24, 24), "has shape"), ((1,) * 40, (4, 4), "has shape")]:
            request = triton.service_pb2.ModelInferRequest(model_name="sum", raw_input_contents=[bytes(n) for n in sizes])
            for name in "ab":
                request.inputs.add(name=name, datatype="FP32", shape=shape)
            with pytest.raises(grpc.RpcError) as caught:
                stub.ModelInfer(request)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT and sentence in caught.value.details()


def test_what_is_not_there_is_refused(client):
    a, b = values(3)
    no = "UNIMPLEMENTED"
    shared = "Tensors in shared memory are not supported"
    refusal(no, shared, client.register_system_shared_memory, "name", "/key", 64)
    refusal(no, shared, client.get_system_shared_memory_status)
    refusal(no, shared, client.get_cuda_shared_memory_status)
    given = inputs(a, b)
    given[0].set_shared_memory("name", 24)
    refusal(no, shared, client.infer, "sum", given)
    refusal(no, "Sequences are not supported", client.infer, "sum", inputs(a, b), sequence_id=3)
    refusal("INVALID_ARGUMENT", "how many classes, 0 or more", client.infer, "sum", inputs(a, b),
            outputs=[triton.InferRequestedOutput("y", class_count=-2)])
    refusal(no, "Settings are not changed", client.get_trace_settings)
    errors = queue.Queue()
    client.start_stream(lambda result, error: errors.put(error))  # refused as it begins
    assert "Streams are not supported" in str(errors.get(timeout=60))
    client.stop_stream()


def test_model_control_and_statistics(client, folder):
    client.unload_model("narrow")
    assert not client.is_model_ready("narrow") and client.is_model_ready("sum")
    refusal("UNAVAILABLE", "is not loaded", client.infer, "narrow", inputs(*values(1, dtype=np.float16), dtype="FP16"))
    index = client.get_model_repository_index(as_json=True)["models"]
    assert {(row["name"], row["version"]): row["state"] for row in index} == {
        ("narrow", "1"): "UNAVAILABLE", ("small", "1"): "READY", ("sum", "1"): "READY", ("sum", "2"): "READY"}
    client.load_model("narrow")
    assert client.is_model_ready("narrow")
    relu_sum(folder / "late.onnx")
    client.load_model("late")
    a, b = values(4)
    np.testing.assert_array_equal(client.infer("late", inputs(a, b)).as_numpy("y"), np.maximum(a, 0) + b)
    refusal("NOT_FOUND", "no model 'never'", client.load_model, "never")
    refusal("INVALID_ARGUMENT", "put it there", client.load_model, "late", config="{}")
    stats = client.get_inference_statistics("late", as_json=True)["model_stats"]
    assert [(row["name"], row["inference_count"], row["execution_count"]) for row in stats] == [("late", "1", "1")]
    assert int(stats[0]["inference_stats"]["success"]["ns"]) > 0
    names = {row["name"] for row in client.get_inference_statistics(as_json=True)["model_stats"]}
    assert {"late", "narrow", "small", "sum"} <= names


def test_a_line_for_each_request(client, server):
    a, b = values(6)
    before = len(server.log())
    client.infer("sum", inputs(a, b))
    refusal("INVALID_ARGUMENT", "missing", client.infer, "sum", inputs(a))
    lines = [json.loads(line) for line in server.log()[before:] if line.startswith("{")]
    assert [(r["method"], r["path"], r["status"], r.get("model"), r.get("failure")) for r in lines] == [
        ("gRPC", INFER, 200, "sum", None), ("gRPC", INFER, 400, "sum", "invalid")]
    assert lines[0]["client"] == "127.0.0.1" and lines[0]["bytes_out"] > 24 and lines[0]["bytes_in"] > 48


def test_both_transports_count_the_same(client, server):
    http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")
    a, b = values(7)

    def count():
        return int(client.get_inference_statistics("sum", "1", as_json=True)["model_stats"][0].get("inference_count", 0))
    before = count()
    client.infer("sum", inputs(a, b), model_version="1")
    with http.InferenceServerClient(server.address) as other:
        given = [http.InferInput(n, x.shape, "FP32") for n, x in (("a", a), ("b", b))]
        for tensor, x in zip(given, (a, b)):
            tensor.set_data_from_numpy(x)
        other.infer("sum", given, model_version="1")
    assert count() == before + 2


def test_token(folder):
    server = Server(folder / "narrow.onnx", "--token", "word", grpc=True)
    with triton.InferenceServerClient(server.grpc) as client:
        assert client.is_server_live() and client.is_server_ready()
        refusal("UNAUTHENTICATED", "shows no token", client.get_model_metadata, "narrow")
        refusal("UNAUTHENTICATED", "shows no token", client.infer, "narrow", inputs(*values(1, dtype=np.float16), dtype="FP16"))
        shown = {"authorization": "Bearer word"}
        assert client.get_model_metadata("narrow", headers=shown).name == "narrow"
    server.end()


def test_a_full_queue_and_an_end_under_load(folder, tmp_path):
    slow(tmp_path / "slow.onnx")
    server = Server(tmp_path / "slow.onnx", "--queue", "1", "--log", grpc=True)
    x = np.zeros((256, 1024), np.float32)
    counts = {"answered": 0, "RESOURCE_EXHAUSTED": 0, "UNAVAILABLE": 0}
    lock, enough = threading.Lock(), threading.Event()

    def ask():
        with triton.InferenceServerClient(server.grpc) as client:
            while True:
                try:
                    answer = client.infer("slow", inputs(x, names="x")).as_numpy("y")
                    outcome = "answered" if answer.shape == x.shape else "wrong"
                except triton.InferenceServerException as error:
                    outcome = error.status().split(".")[-1]
                with lock:
                    counts[outcome] = counts.get(outcome, 0) + 1
                    if counts["answered"] >= 8 and counts["RESOURCE_EXHAUSTED"] >= 8:
                        enough.set()
                if outcome == "UNAVAILABLE":
                    return
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert enough.wait(60), counts
    server.end()  # with status 0
    for thread in threads:
        thread.join()
    assert set(counts) == {"answered", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}, counts
    # Each that the server calls answered has reached its client.
    logged = sum(json.loads(line)["status"] == 200 for line in server.log() if line.startswith("{"))
    assert counts["answered"] == logged


def test_who_asks_as_it_ends_is_told_to_come_again(tmp_path):
    """Clients that ask again as soon as they are answered, until something else comes: that is UNAVAILABLE, which clients may
    try elsewhere, and nothing that was answered is lost on its way."""
    relu_sum(tmp_path / "sum.onnx")
    a, b = values(9)
    for _ in range(4):
        server = Server(tmp_path / "sum.onnx", "--log", grpc=True)
        ends, answered, begun = [], [], threading.Event()

        def ask():
            with triton.InferenceServerClient(server.grpc) as client:
                for count in itertools.count():
                    try:
                        client.infer("sum", inputs(a, b))
                        begun.set()
                    except triton.InferenceServerException as error:
                        ends.append(error.status())
                        answered.append(count)
                        return
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert begun.wait(60)
        time.sleep(0.2)
        server.end()
        for thread in threads:
            thread.join()
        assert ends == ["StatusCode.UNAVAILABLE"] * 8
        assert sum(answered) == sum(json.loads(line)["status"] == 200 for line in server.log() if line.startswith("{"))


def test_hostile_bytes(client, server):
    """Each is refused or closed, no memory is kept, and others are answered meanwhile."""
    host, port = server.grpc.rsplit(":", 1)
    a, b = values(8)
    client.infer("sum", inputs(a, b))
    before = server.memory()
    random = np.random.default_rng(1)
    held = []
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for i in range(60):
        talk = socket.create_connection((host, int(port)), timeout=10)
        garbage = random.integers(0, 256, 4000, dtype=np.uint8).tobytes()
        talk.sendall([garbage, preface + garbage, b"GET / HTTP/1.1\r\n\r\n", preface][i % 4])
        if i % 3 == 0:
            talk.close()
        else:
            held.append(talk)
        if i % 10 == 0:
            np.testing.assert_array_equal(client.infer("sum", inputs(a, b)).as_numpy("y"), np.maximum(a, 0) + b)
    for talk in held:
        talk.close()
    with grpc.insecure_channel(server.grpc, [("grpc.max_send_message_length", -1)]) as channel:
        infer = channel.unary_unary(INFER)
        # Two bytes each that a parser would make a tensor of; groups; lengths beyond the end; no text; too long.
        bombs = {b"\x2a\x00" * 500000: "fields", b"\x3a\x00" * 500000: "tensors", b"\x2b" * 1000: "no ModelInferRequest",
                 b"\x0a\xff\xff\xff\xff\x0f": "no ModelInferRequest", b"\x0a\x02\xff\xfe": "no ModelInferRequest",
                 b"\x22\x04\x0a\x00\x12\x00" * 80000: "fields", bytes(100): "no ModelInferRequest"}
        for message, sentence in bombs.items():
            with pytest.raises(grpc.RpcError) as caught:
                infer(message, timeout=60)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT and sentence in caught.value.details()
        for message in (bytes(2 << 20), bytes(40 << 20)):
            with pytest.raises(grpc.RpcError) as caught:
                infer(message, timeout=60)
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        # What a thousandth of its bytes unpacks to is refused as it came.
        for compression in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            with pytest.raises(grpc.RpcError) as caught:
                infer(bytes(256 << 20), timeout=60, compression=compression)
            assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED and "ompression" in caught.value.details()
            assert server.memory() < before + (64 << 20)
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/inference.GRPCInferenceService/RepositoryModelLoad")(b"\x1a\x00" * 40000, timeout=60)
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        for _ in range(200):
            noise = random.integers(0, 256, int(random.integers(1, 400)), dtype=np.uint8).tobytes()
            with pytest.raises(grpc.RpcError):
                infer(noise, timeout=60)
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/other.Service/Method")(b"", timeout=60)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        with pytest.raises(grpc.RpcError):  # a head of more than it takes
            infer(b"", timeout=60, metadata=[("x", "y" * 100000)])
    np.testing.assert_array_equal(client.infer("sum", inputs(a, b)).as_numpy("y"), np.maximum(a, 0) + b)
    assert server.memory() < before + (96 << 20)
