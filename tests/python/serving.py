"""What tests of `sparkle serve` share: small models and a server of their own."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest
from onnx import TensorProto, helper, save

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = str(ROOT / "build" / "release")
COMMAND = os.environ.get("SPARKLE_COMMAND") or shutil.which("sparkle", path=BUILD) or shutil.which("sparkle")


def relu_sum(path, dtype=TensorProto.FLOAT):
    """y = relu(a) + b over rows that are open."""
    tensors = [helper.make_tensor_value_info(n, dtype, ["N", 3]) for n in ("a", "b", "y")]
    nodes = [helper.make_node("Relu", ["a"], ["r"]), helper.make_node("Add", ["r", "b"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", tensors[:2], tensors[2:]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, path)


def needs_serve(grpc=False):
    """Skips where the command or the part is not there."""
    if COMMAND is None:
        pytest.skip("there is no build/release/sparkle and no sparkle in PATH")
    # Nothing listens at 192.0.2.1, so it ends at once, and says first what it lacks.
    port = "0" if grpc else "-1"
    said = subprocess.run([COMMAND, "serve", ROOT / "models/upscale2x.onnx", "--host", "192.0.2.1", "--http-port", "0",
                           "--grpc-port", port], capture_output=True, text=True, check=False).stderr
    for lack in ("no 'serve'", "does not answer over gRPC"):
        if lack in said:
            pytest.skip(f"this build: {said.strip()}")


class Server:
    """`sparkle serve` on free ports: `address` for HTTP, `grpc` where it is asked for; `log`: its standard error as lines."""

    def __init__(self, *arguments, grpc=False):
        self.stderr = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([COMMAND, "serve", *map(str, arguments), "--http-port", "0", "--metrics-port", "0",
                                         "--grpc-port", "0" if grpc else "-1"],
                                        stdout=subprocess.PIPE, stderr=self.stderr, text=True)
        self.address = self.grpc = None
        for line in self.process.stdout:
            if found := re.match(r"http     https?://(\S+)", line):
                self.address = found[1]
            if found := re.match(r"grpc     (\S+)", line):
                self.grpc = found[1]
            if self.address and (self.grpc or not grpc):
                return
        raise RuntimeError(f"the server ended with status {self.process.wait()}: {self.log()}")

    def log(self):
        self.stderr.seek(0)
        return self.stderr.read().splitlines()

    def memory(self):
        """Bytes of the process that are in memory."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) * 1024

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
