"""`sparkle serve` as tritonclient[http] talks to it: health, metadata, inference, model control. Numbers come
by way of JSON and of binary tensors alike."""
import asyncio

import numpy as np
import pytest
from onnx import TensorProto

from serving import Server, needs_serve, relu_sum

http = pytest.importorskip("tritonclient.http", reason="tritonclient[http] is not installed")

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    needs_serve()
    folder = tmp_path_factory.mktemp("repository")
    for version in (1, 2):
        (folder / "sum" / str(version)).mkdir(parents=True)
        relu_sum(folder / "sum" / str(version) / "model.onnx")
    relu_sum(folder / "narrow.onnx", TensorProto.FLOAT16)
    return folder


@pytest.fixture(scope="module")
def client(folder):
    server = Server(folder, "--max-batch", 8, "--batch-delay-us", 500)
    with http.InferenceServerClient(server.address, concurrency=4) as client:
        yield client
    server.end()


def inputs(a, b, binary, dtype="FP32"):
    given = [http.InferInput("a", a.shape, dtype), http.InferInput("b", b.shape, dtype)]
    given[0].set_data_from_numpy(a, binary_data=binary)
    given[1].set_data_from_numpy(b, binary_data=binary)
    return given


def values(seed, rows=2, dtype=np.float32):
    random = np.random.default_rng(seed)
    return random.standard_normal((rows, 3)).astype(dtype), random.standard_normal((rows, 3)).astype(dtype)


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("sum") and client.is_model_ready("sum", "1")
    assert not client.is_model_ready("other") and not client.is_model_ready("sum", "3")
    assert client.get_server_metadata()["name"] == "sparkle"
    about = client.get_model_metadata("sum")
    assert about["versions"] == ["1", "2"]
    assert about["inputs"] == [{"name": n, "datatype": "FP32", "shape": [-1, 3]} for n in "ab"]
    config = client.get_model_config("sum", "1")
    assert (config["name"], config["max_batch_size"]) == ("sum", 0)
    assert config["input"] == [{"name": n, "data_type": "TYPE_FP32", "format": "FORMAT_NONE", "dims": [-1, 3]} for n in "ab"]
    assert config["output"] == [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1, 3]}]
    with pytest.raises(http.InferenceServerException, match="no model 'other'"):
        client.get_model_config("other")


def test_statistics(client):
    a, b = values(5)
    before = client.get_inference_statistics("sum", "2")["model_stats"][0]["inference_count"]
    client.infer("sum", inputs(a, b, True))
    (row,) = client.get_inference_statistics("sum", "2")["model_stats"]
    assert (row["name"], row["version"], row["inference_count"]) == ("sum", "2", before + 1)
    assert row["inference_stats"]["success"]["count"] == before + 1 and row["inference_stats"]["success"]["ns"] > 0
    everything = {(row["name"], row["version"]) for row in client.get_inference_statistics()["model_stats"]}
    assert everything >= {("sum", "1"), ("sum", "2"), ("narrow", "1")}
    with pytest.raises(http.InferenceServerException, match="no model 'other'"):
        client.get_inference_statistics("other")


@pytest.mark.parametrize("binary", [False, True])
def test_classification(client, binary):
    a, b = np.float32([[1, 3, 2], [0, 0, 0]]), np.float32([[0, 0.5, 0], [-1, -3, -1]])
    output = http.InferRequestedOutput("y", binary_data=binary, class_count=2)
    answer = client.infer("sum", inputs(a, b, True), outputs=[output])
    assert answer.get_output("y")["datatype"] == "BYTES"
    texts = answer.as_numpy("y")
    assert texts.shape == (2, 2)
    assert [t.decode() if isinstance(t, bytes) else t for t in texts.ravel()] == ["3.5:1", "2:2", "-1:0", "-1:2"]
    more = client.infer("sum", inputs(a, b, True), outputs=[http.InferRequestedOutput("y", binary, class_count=7)])
    assert more.as_numpy("y").shape == (2, 3)  # as many as there are


def test_what_is_not_there_is_one_sentence(client):
    for call in (client.get_system_shared_memory_status, client.get_cuda_shared_memory_status,
                 client.unregister_system_shared_memory, client.unregister_cuda_shared_memory,
                 lambda: client.register_system_shared_memory("region", "/key", 64),
                 lambda: client.get_system_shared_memory_status("region")):
        with pytest.raises(http.InferenceServerException, match="Tensors in shared memory are not supported; send them with"):
            call()
    for call in (client.get_log_settings, client.get_trace_settings, lambda: client.get_trace_settings("sum"),
                 lambda: client.update_log_settings({"log_info": True})):
        with pytest.raises(http.InferenceServerException, match="Settings are not changed while the server runs"):
            call()


@pytest.mark.parametrize("binary_in", [False, True])
@pytest.mark.parametrize("binary_out", [False, True])
def test_infer(client, binary_in, binary_out):
    a, b = values(1)
    outputs = [http.InferRequestedOutput("y", binary_data=binary_out)]
    answer = client.infer("sum", inputs(a, b, binary_in), outputs=outputs, request_id="seven")
    np.testing.assert_array_equal(answer.as_numpy("y"), np.maximum(a, 0) + b)
    assert answer.get_response()["id"] == "seven" and answer.get_response()["model_version"] == "2"
    first = client.infer("sum", inputs(a, b, True), model_version="1")
    np.testing.assert_array_equal(first.as_numpy("y"), np.maximum(a, 0) + b)


def test_16_bit_floats(client):
    a, b = values(2, dtype=np.float16)
    got = client.infer("narrow", inputs(a, b, True, "FP16")).as_numpy("y")
    assert got.dtype == np.float16
    np.testing.assert_allclose(got, np.maximum(a, 0) + b, rtol=2e-3, atol=1e-6)


def test_async_infer(client):
    given = [values(seed, 1 + seed % 3) for seed in range(40)]
    under_way = [client.async_infer("sum", inputs(a, b, True)) for a, b in given]
    for (a, b), request in zip(given, under_way):
        np.testing.assert_array_equal(request.get_result().as_numpy("y"), np.maximum(a, 0) + b)


def test_errors_are_sentences(client):
    a, b = values(3)
    with pytest.raises(http.InferenceServerException, match="is FP32 in the model, 'FP64' was given"):
        client.infer("sum", inputs(a.astype(np.float64), b.astype(np.float64), True, "FP64"))
    with pytest.raises(http.InferenceServerException, match=r"has shape \[-1,3\] in the model, \[2,2\] was given"):
        client.infer("sum", inputs(a[:, :2].copy(), b, True))
    with pytest.raises(http.InferenceServerException, match="Input 'b' is missing"):
        client.infer("sum", inputs(a, b, True)[:1])
    with pytest.raises(http.InferenceServerException, match="no model 'other'"):
        client.infer("other", inputs(a, b, True))
    with pytest.raises(http.InferenceServerException, match="Compressed requests"):
        client.infer("sum", inputs(a, b, True), request_compression_algorithm="gzip")
    with pytest.raises(http.InferenceServerException, match="Sequences are not supported"):
        client.infer("sum", inputs(a, b, True), sequence_id=3)
    with pytest.raises(http.InferenceServerException, match="how many classes, 0 or more"):
        client.infer("sum", inputs(a, b, True), outputs=[http.InferRequestedOutput("y", class_count=-2)])
    answer = client.infer("sum", inputs(a, b, True), response_compression_algorithm="gzip")  # comes as it is
    np.testing.assert_array_equal(answer.as_numpy("y"), np.maximum(a, 0) + b)


def test_model_control(client, folder):
    client.unload_model("narrow")
    assert not client.is_model_ready("narrow") and client.is_model_ready("sum")
    states = {(row["name"], row["version"]): row["state"] for row in client.get_model_repository_index()}
    assert states == {("narrow", "1"): "UNAVAILABLE", ("sum", "1"): "READY", ("sum", "2"): "READY"}
    client.load_model("narrow")
    assert client.is_model_ready("narrow")
    relu_sum(folder / "late.onnx")
    client.load_model("late")
    a, b = values(4)
    np.testing.assert_array_equal(client.infer("late", inputs(a, b, False)).as_numpy("y"), np.maximum(a, 0) + b)
    with pytest.raises(http.InferenceServerException, match="no model 'never'"):
        client.load_model("never")


def test_token(folder):
    server = Server(folder / "narrow.onnx", "--token", "word")
    with http.InferenceServerClient(server.address) as client:
        assert client.is_server_live()
        with pytest.raises(http.InferenceServerException, match="shows no token"):
            client.get_model_metadata("narrow")
        assert client.get_model_metadata("narrow", headers={"Authorization": "Bearer word"})["name"] == "narrow"
    server.end()


def test_the_client_of_kserve(folder):
    kserve = pytest.importorskip("kserve", reason="kserve, which brings 400 MB of packages, is not installed")
    needs_serve(grpc=True)
    a, b = values(6)
    server = Server(folder, grpc=True)

    async def ask():
        rest = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
        base = f"http://{server.address}"
        assert await rest.is_server_ready(base) and await rest.is_server_live(base) and await rest.is_model_ready(base, "sum")
        for binary in (False, True):
            given = [kserve.InferInput(name=n, shape=list(x.shape), datatype="FP32") for n, x in (("a", a), ("b", b))]
            for tensor, x in zip(given, (a, b)):
                tensor.set_data_from_numpy(x, binary_data=binary)
            request = kserve.InferRequest(model_name="sum", infer_inputs=given)
            answer = await rest.infer(base, request, model_name="sum")
            np.testing.assert_array_equal(answer.outputs[0].as_numpy(), np.maximum(a, 0) + b)
        answer = await kserve.InferenceGRPCClient(server.grpc).infer(request)
        np.testing.assert_array_equal(answer.outputs[0].as_numpy(), np.maximum(a, 0) + b)

    asyncio.run(ask())
    server.end()
