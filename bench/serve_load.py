#!/usr/bin/env python3
"""`sparkle serve` under more load than it can carry: two client processes ask twice as often as it can answer. Prints how many
requests were answered and how many told to come again, whether each accepted one got its answer, latencies of those, growth of
memory, and CPU seconds a request beside those of a call within one process; then its throughput beside ONNX Runtime's behind
the simplest HTTP server of Python.
bench/serve_load.py MODEL --input NAME --shape 1x3x224x224 [--seconds 20] [--threads 2] [--sparkle COMMAND]
[--runs 200] [--output FILE|auto]: also writes that with its certificate; auto: bench/results/serve_MACHINE.json"""
import argparse
import http.client
import http.server
import json
import multiprocessing
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import threading
import time

import certificate

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLIENTS = 2  # processes
QUEUE = 16
THREADS = 24  # of a client: more than wait in the queue and run


def request_of(name, shape):
    import numpy as np  # not for --help
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    text = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": shape,
                                   "parameters": {"binary_data_size": data.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return text + data.tobytes(), {"Inference-Header-Content-Length": str(len(text))}


def ask(connection, path, body, headers):
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def closed_loop(port, path, name, shape, seconds, threads=4):
    """Requests a second of so many threads that each ask again at once, over the time after the first half second."""
    body, headers = request_of(name, shape)
    counts, begin = [0] * threads, time.monotonic()

    def loop(i):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while (now := time.monotonic() - begin) < seconds + 0.5:
            if ask(connection, path, body, headers) == 200 and now > 0.5:
                counts[i] += 1
    running = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(counts) / seconds


def client(port, path, name, shape, rate, seconds, results):
    """Asks at a rate, whatever comes back, by threads that take turns. Puts a list of (status, seconds)."""
    body, headers = request_of(name, shape)
    lock, outcomes, begin = threading.Lock(), [], time.monotonic()
    turn = iter(range(int(rate * seconds)))

    def loop():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            with lock:
                i = next(turn, None)
            if i is None:
                return
            time.sleep(max(0.0, begin + i / rate - time.monotonic()))
            if time.monotonic() > begin + seconds + 5:
                return
            sent = time.monotonic()
            try:
                status = ask(connection, path, body, headers)
            except (OSError, http.client.HTTPException):
                status = -1
                connection.close()
            with lock:
                outcomes.append((status, time.monotonic() - sent))
    threads = [threading.Thread(target=loop) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(outcomes)


class Server:
    def __init__(self, command, model, threads):
        self.process = subprocess.Popen(
            [command, "serve", model, "--http-port", "0", "--metrics-port", "0", "--grpc-port", "-1", "--threads", str(threads),
             "--queue", str(QUEUE)], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if found := re.match(r"http     http://\S+:(\d+)", line):
                self.port = int(found[1])
                return
        sys.exit(f"the server ended with status {self.process.wait()}")

    def memory(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(120) != 0:
            sys.exit("the server ended with another status than 0")


def cpu_in_process(command, model, threads, runs):
    """CPU seconds of a call within one process: the difference of two measurements, so that opening the model is not in it."""
    def spent(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([command, "run", model, "--threads", str(threads), "--repeat", str(runs), "--json"], check=True,
                       capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (spent(runs + 20) - spent(20)) / runs


def serve_onnxruntime(model, threads, ready):
    import numpy as np
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            head = int(self.headers["Inference-Header-Content-Length"])
            shape = json.loads(body[:head])["inputs"][0]["shape"]
            answer = session.run(None, {given.name: np.frombuffer(body, np.float32, offset=head).reshape(shape)})[0].tobytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.put(server.server_address[1])
    server.serve_forever()


class MemoryWatch(threading.Thread):
    """Megabytes of the server, each second until end()."""

    def __init__(self, server):
        super().__init__()
        self.server, self.seen, self.ended = server, [], threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(1):
            self.seen.append(round(self.server.memory(), 1))

    def end(self):
        self.ended.set()
        self.join()
        return self.seen


def load(a, server, path, shape, capacity):
    """Twice the capacity for a while: what became of it, and what it cost."""
    cpu, before = server.cpu(), server.memory()
    results = multiprocessing.Queue()
    rate = 2 * capacity / CLIENTS
    clients = [multiprocessing.Process(target=client, args=(server.port, path, a.input, shape, rate, a.seconds, results))
               for _ in range(CLIENTS)]
    begin = time.monotonic()
    for process in clients:
        process.start()
    watch = MemoryWatch(server)
    outcomes = [outcome for _ in clients for outcome in results.get()]
    for process in clients:
        process.join()
    seconds, spent, memory = time.monotonic() - begin, server.cpu() - cpu, watch.end()
    answered = sorted(s for status, s in outcomes if status == 200)
    refused = sum(status == 429 for status, _ in outcomes)
    if not answered or len(memory) < 4:
        sys.exit("nothing was answered, or it did not last four seconds")
    quarter = len(memory) // 4
    return {"seconds": seconds, "asked": len(outcomes), "answered": len(answered), "refused": refused,
            "neither": len(outcomes) - len(answered) - refused, "answered_per_s": len(answered) / seconds,
            "p50_ms": 1e3 * answered[len(answered) // 2], "p99_ms": 1e3 * answered[int(len(answered) * 0.99)],
            "most_ms": 1e3 * answered[-1], "cpu_ms_per_request": 1e3 * spent / len(answered),
            "memory_mb": {"before": before, "second_quarter": statistics.median(memory[quarter:2 * quarter]),
                          "last_quarter": statistics.median(memory[-quarter:]), "most": max(memory), "each_second": memory}}


def beside_onnxruntime(a, server, path, shape):
    """Requests a second of both, in turns; nothing where onnxruntime is not here."""
    try:
        import onnxruntime
    except ImportError:
        return {}
    ready = multiprocessing.Queue()
    other = multiprocessing.Process(target=serve_onnxruntime, args=(a.model, a.threads, ready), daemon=True)
    other.start()
    port = ready.get()
    rounds = [(closed_loop(server.port, path, a.input, shape, 3), closed_loop(port, path, a.input, shape, 3)) for _ in range(5)]
    other.terminate()
    ours, theirs = (statistics.median(r) for r in zip(*rounds))
    return {"version": onnxruntime.__version__, "sparkle_per_s": ours, "onnxruntime_per_s": theirs, "ratio": ours / theirs}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--input", required=True)
    parser.add_argument("--shape", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"))
    parser.add_argument("--runs", type=int, default=200, help="in one process, for its CPU seconds")
    parser.add_argument("--output")
    a = parser.parse_args()
    shape = [int(d) for d in a.shape.split("x")]
    path = f"/v2/models/{a.model.stem}/infer"
    server = Server(a.sparkle, a.model, a.threads)
    opened = server.memory()
    capacity = closed_loop(server.port, path, a.input, shape, min(5.0, a.seconds))
    print(f"capacity            {capacity:.1f} requests/s of four threads that ask again at once")
    found = load(a, server, path, shape, capacity)
    print(f"asked               {found['asked']} in {found['seconds']:.1f} s: {found['answered']} answered, {found['refused']} "
          f"told to come again, {found['neither']} neither")
    print(f"of those answered   {found['answered_per_s']:.1f}/s, p50 {found['p50_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms, "
          f"most {found['most_ms']:.1f} ms")
    alone = statistics.median(1e3 * cpu_in_process(a.sparkle, a.model, a.threads, a.runs) for _ in range(3))
    found["cpu_ms_in_process"], found["cpu_ratio"] = alone, found["cpu_ms_per_request"] / alone
    print(f"CPU a request       {found['cpu_ms_per_request']:.2f} ms, refusals included; in one process {alone:.2f} ms: "
          f"ratio {found['cpu_ratio']:.3f}")
    memory = found["memory_mb"]
    print(f"memory              {opened:.1f} MB opened, {memory['before']:.1f} MB before; {memory['second_quarter']:.1f} MB in "
          f"the second quarter, {memory['last_quarter']:.1f} MB in the last, {memory['most']:.1f} MB at most")
    beside = beside_onnxruntime(a, server, path, shape)
    server.end()
    if beside:
        print(f"onnxruntime         {beside['onnxruntime_per_s']:.1f} requests/s behind Python's http.server, sparkle serve "
              f"{beside['sparkle_per_s']:.1f}/s in turns: ratio {beside['ratio']:.2f}")
    else:
        print("onnxruntime         is not here")
    if a.output:
        made = certificate.certificate([a.sparkle], certificate.command_of("bench/serve_load.py", sys.argv[1:]),
                                       {"onnxruntime": beside["version"]} if beside else {})
        file = certificate.RESULTS / f"serve_{certificate.label(made)}.json" if a.output == "auto" else a.output
        certificate.store(file, made, {"model": a.model.stem, "threads": a.threads, "cores": os.cpu_count(), "queue": QUEUE,
                                       "clients": CLIENTS, "capacity_per_s": capacity, "memory_opened_mb": opened,
                                       "load": found, "onnxruntime": beside})


if __name__ == "__main__":
    main()
