"""What strangers may send to `sparkle serve` over HTTP: each gets an error or is closed, in time; others are answered
meanwhile, and the process keeps none of the memory. (gRPC's part is in test_serve_grpc.py.)"""
import gzip
import json
import socket
import threading
import time

import numpy as np
import pytest

from serving import Server, needs_serve, relu_sum

HEAD = "POST /v2/models/sum/infer HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    needs_serve()
    folder = tmp_path_factory.mktemp("hostile")
    relu_sum(folder / "sum.onnx")
    server = Server(folder / "sum.onnx", "--max-request-bytes", "1M", "--queue", "1000")
    yield server
    server.end()


def connect(server):
    host, port = server.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=30)


def rest_of(talk):
    """What comes until the other end closes, by its own will or for what was sent behind its back."""
    parts = []
    try:
        while part := talk.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def talk(server, data, end=False):
    with connect(server) as one:
        try:
            one.sendall(data if isinstance(data, bytes) else data.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass
        if end:
            one.shutdown(socket.SHUT_WR)
        return rest_of(one)


def request(rows=2, shape=None, data=None):
    x = {"datatype": "FP32", "shape": shape or [rows, 3], "data": data or [0.5] * (3 * rows)}
    body = json.dumps({"inputs": [{"name": "a", **x}, {"name": "b", **x}]})
    return f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}"


def others_are_answered(server):
    assert b" 200 OK" in talk(server, request())


@pytest.fixture(autouse=True)
def nothing_is_kept(server):
    """Around each test; the allowance is what the allocator and threads' stacks keep."""
    for _ in range(5):
        others_are_answered(server)
    before = server.memory()
    yield
    others_are_answered(server)
    assert server.memory() < before + (48 << 20)


def test_headers(server):
    random = np.random.default_rng(1)
    names = ["Content-Length", "Transfer-Encoding", "Inference-Header-Content-Length", "Connection", "Range", "Expect", "Host",
             "Content-Encoding", "Accept-Encoding", "Origin", "Authorization", "Content-Type", "Upgrade", "x" * 3000]
    whole = request().encode()
    for i in range(300):
        words = random.integers(0, 256, int(random.integers(0, 60)), dtype=np.uint8).tobytes()
        name = names[random.integers(len(names))].encode()
        kind = i % 3
        if kind == 0:  # a header of noise
            data = whole.replace(b"Host: localhost\r\n", b"Host: localhost\r\n" + name + b": " + words + b"\r\n", 1)
        elif kind == 1:  # some bytes of the head are others
            head, body = whole.split(b"\r\n\r\n", 1)
            head = bytearray(head)
            for _ in range(int(random.integers(1, 6))):
                head[random.integers(len(head))] = random.integers(256)
            data = bytes(head) + b"\r\n\r\n" + body
        else:  # cut short
            data = whole[:random.integers(len(whole))]
        answer = talk(server, data, end=True)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 "), answer[:200]
        assert b" 500 " not in answer[:20], data
    others_are_answered(server)


@pytest.mark.parametrize("length, status", [("5", 400), ("-1", 400), ("0x10", 400), ("1 2", 400), ("", 400), ("+20", 400),
                                            ("99999999999999999999", 400), ("1048577", 413), ("9223372036854775807", 413)])
def test_content_lengths(server, length, status):
    assert talk(server, f"{HEAD}Content-Length: {length}\r\n\r\n" + '{"inputs": []}').startswith(b"HTTP/1.1 %d " % status)


def test_a_length_that_is_longer_than_what_comes(server):
    answer = talk(server, f"{HEAD}Content-Length: 1000\r\n\r\n" + '{"inputs"', end=True)
    assert answer.startswith(b"HTTP/1.1 400 ") and b"ended after 9 of its 1000 bytes" in answer


@pytest.mark.parametrize("shape", [[1 << 40, 3], [1 << 62, 3], [1000000, 3], [2] * 64, [(1 << 63) - 1, 3]])
def test_huge_shapes(server, shape):
    assert talk(server, request(shape=shape)).startswith(b"HTTP/1.1 400 ")
    body = json.dumps({"inputs": [{"name": n, "datatype": "FP32", "shape": shape,
                                   "parameters": {"binary_data_size": 24}} for n in "ab"]})
    text = f"{HEAD}Inference-Header-Content-Length: {len(body)}\r\nContent-Length: {len(body) + 48}\r\n\r\n{body}"
    assert talk(server, text.encode() + bytes(48)).startswith(b"HTTP/1.1 400 ")


def test_bombs(server):
    bomb = gzip.compress(bytes(64 << 20))
    for encoding in ("gzip", "deflate", "br", "gzip, gzip"):
        head = f"{HEAD}Content-Encoding: {encoding}\r\nContent-Length: {len(bomb)}\r\n\r\n"
        assert talk(server, head.encode() + bomb).startswith(b"HTTP/1.1 415 ")
    chunks = HEAD.encode() + b"Transfer-Encoding: gzip, chunked\r\n\r\n%x\r\n" % len(bomb) + bomb + b"\r\n0\r\n\r\n"
    assert talk(server, chunks).startswith(b"HTTP/1.1 411 ")
    for body in ("[" * 500000, '{"inputs": ' + "[" * 500000, '{"a":' * 100000, '{"inputs": [' + "{}," * 200000 + "{}]}",
                 '{"inputs": [{"name": "' + "a" * 900000 + '"}]}'):
        answer = talk(server, f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}")
        assert answer.startswith(b"HTTP/1.1 400 ") and len(answer) < 4000


def test_half_closed_connections(server):
    assert b" 200 OK" in talk(server, request(), end=True)  # it sends no more, and reads
    for _ in range(50):  # it reads no more
        with connect(server) as one:
            one.shutdown(socket.SHUT_RD)
            one.sendall(request().encode())
    for _ in range(50):  # it is gone before the answer
        with connect(server) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            one.sendall(request().encode())
    others_are_answered(server)


def test_slow_clients_and_too_many(server):
    """A byte now and then: closed at the end of the time for a head. Connections beyond 256 are told to come again."""
    slow = [connect(server) for _ in range(20)]
    ends, begin = [], time.monotonic()

    def drip(one):
        try:
            for byte in request().encode():
                one.sendall(bytes([byte]))
                time.sleep(0.5)
                if time.monotonic() - begin > 40:
                    return
        except OSError:
            ends.append(time.monotonic() - begin)
    threads = [threading.Thread(target=drip, args=(one,)) for one in slow]
    for thread in threads:
        thread.start()
    idle = [connect(server) for _ in range(300)]
    told = 0
    for one in idle[240:]:
        one.settimeout(0.05)
        try:
            told += one.recv(100).startswith(b"HTTP/1.1 503 ")
        except TimeoutError:
            pass
    assert told >= 300 + 20 - 256 - 5
    for one in idle:
        one.close()
    for _ in range(200):
        if b" 200 OK" in talk(server, request()):
            break
        time.sleep(0.02)
    others_are_answered(server)
    for thread in threads:
        thread.join()
    assert len(ends) == len(slow), "a byte now and then kept a connection open"
    for one in slow:
        one.close()
