"""`sparkle serve` with a certificate of its own: HTTPS and gRPC over TLS, and what is told of files that do not fit."""
import http.client
import json
import shutil
import socket
import ssl
import subprocess

import numpy as np
import pytest

from serving import COMMAND, Server, needs_serve, relu_sum


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    needs_serve()
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    relu_sum(folder / "sum.onnx")
    for name in ("own", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem", "-days", "2",
                        "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return folder


def start(files, grpc=False):
    return Server(files / "sum.onnx", "--tls-cert", files / "own.pem", "--tls-key", files / "own.key", grpc=grpc)


def connect(server, files):
    return http.client.HTTPSConnection(server.address, context=ssl.create_default_context(cafile=files / "own.pem"), timeout=30)


def infer(connection, rows):
    a = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
    head = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": [rows, 3],
                                   "parameters": {"binary_data_size": a.nbytes}} for name in "ab"],
                       "parameters": {"binary_data_output": True}})
    connection.request("POST", "/v2/models/sum/infer", head.encode() + a.tobytes() + a.tobytes(),
                       {"Inference-Header-Content-Length": str(len(head))})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    y = np.frombuffer(body[int(answer.headers["Inference-Header-Content-Length"]):], np.float32).reshape(rows, 3)
    np.testing.assert_array_equal(y, np.maximum(a, 0) + a)


def test_https(files):
    server = start(files)
    for _ in range(3):
        connection = connect(server, files)
        for rows in (1, 500000, 3, 40000):  # one behind the other on a connection, some of many records
            infer(connection, rows)
        connection.close()
    with pytest.raises(ssl.SSLCertVerificationError):
        http.client.HTTPSConnection(server.address, context=ssl.create_default_context(cafile=files / "other.pem")).connect()
    host, port = server.address.rsplit(":", 1)
    old = ssl.create_default_context(cafile=files / "own.pem")
    for data in (b"GET /v2 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x40\x00" + bytes(300), bytes(2000)):
        with socket.create_connection((host, int(port)), timeout=30) as talk:  # nothing of it is answered in the clear
            got = b""
            try:
                talk.sendall(data)
                talk.shutdown(socket.SHUT_WR)
                while part := talk.recv(4096):
                    got += part
            except OSError:
                pass
            assert b"HTTP" not in got
    with socket.create_connection((host, int(port))):  # a handshake that never begins
        infer(connect(server, files), 2)
    with old.wrap_socket(socket.create_connection((host, int(port))), server_hostname="localhost") as talk:
        assert talk.version() in ("TLSv1.3", "TLSv1.2")
    server.end()


def test_triton_over_tls(files):
    needs_serve(grpc=True)
    triton = pytest.importorskip("tritonclient.grpc", reason="tritonclient[grpc] is not installed")
    server = start(files, grpc=True)
    with triton.InferenceServerClient(server.grpc, ssl=True, root_certificates=str(files / "own.pem")) as client:
        assert client.is_server_ready()
        a = np.ones((2, 3), np.float32)
        given = [triton.InferInput(n, a.shape, "FP32") for n in "ab"]
        for tensor in given:
            tensor.set_data_from_numpy(a)
        np.testing.assert_array_equal(client.infer("sum", given).as_numpy("y"), a + a)
    with triton.InferenceServerClient(server.grpc) as plain, pytest.raises(triton.InferenceServerException):
        plain.is_server_ready(client_timeout=5)
    server.end()


@pytest.mark.parametrize("options, sentence", [
    (["--tls-cert", "own.pem"], "TLS needs both"),
    (["--tls-cert", "own.pem", "--tls-key", "other.key"], "not that of the certificate"),
    (["--tls-cert", "own.key", "--tls-key", "own.key"], "no certificate as PEM"),
    (["--tls-cert", "own.pem", "--tls-key", "own.pem"], "no private key as PEM"),
    (["--tls-cert", "none.pem", "--tls-key", "own.key"], "none.pem")])
def test_files_that_do_not_fit(files, options, sentence):
    ports = ["--http-port", "0", "--metrics-port", "0", "--grpc-port", "-1"]
    done = subprocess.run([COMMAND, "serve", "sum.onnx", *ports, *options], cwd=files, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode != 0 and sentence in done.stderr
