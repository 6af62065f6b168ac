"""Runs of a case in Sparkle, as its options ask, and in ONNX Runtime with its own rewrites off."""
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import onnxruntime
import sparkle
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIN = {np.dtype(t) for t in ("f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")}
DEVICES = {}


class Refused(Exception):
    """An engine does not take the model; `code` is Sparkle's word for the reason."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def device(threads):
    if threads not in DEVICES:
        DEVICES[threads] = sparkle.Device("cpu", threads=threads)
    return DEVICES[threads]


def command():
    """The command, which some options need; None where it is not built."""
    path = pathlib.Path(os.environ.get("SPARKLE_COMMAND", ROOT / "build" / "release" / "sparkle"))
    return path if os.access(path, os.X_OK) else None


def run_sparkle(case):
    """Outputs per feed."""
    try:
        if case.options.fusion and command():
            return [by_command(case, feeds) for feeds in case.feeds]
        return in_process(case)
    except sparkle.Error as e:
        raise Refused(e.code, str(e)) from e


def in_process(case):
    at, algorithm = device(case.options.threads), case.options.algorithm
    with tempfile.TemporaryDirectory() as folder:
        model = case.model.SerializeToString()
        if case.options.compiled:
            source, model = f"{folder}/model.onnx", f"{folder}/model.sparkle"
            pathlib.Path(source).write_bytes(case.model.SerializeToString())
            shapes = [case.feeds[0][i.name].shape for i in case.model.graph.input if i.name in case.feeds[0]]
            sparkle.compile(source, model, at, shapes=shapes, algorithm=algorithm)
            algorithm = ""
        session = sparkle.Session(model, at, algorithm=algorithm)
        names = {i.name for i in session.inputs}
        return [session.run({k: v for k, v in feeds.items() if k in names}) for feeds in case.feeds]


def by_command(case, feeds):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "model.onnx").write_bytes(case.model.SerializeToString())
        given = []
        constants = {c.name for c in case.model.graph.initializer}
        for i in case.model.graph.input:
            if i.name in constants:
                continue
            given.append(f"{folder}/{len(given)}.pb")
            pathlib.Path(given[-1]).write_bytes(numpy_helper.from_array(feeds[i.name], i.name).SerializeToString())
        asked = ["--fusion", case.options.fusion, "--threads", str(case.options.threads)]
        if case.options.algorithm:
            asked += ["--algorithm", case.options.algorithm]
        done = subprocess.run([command(), "run", f"{folder}/model.onnx", *given, "--output", f"{folder}/out", *asked],
                              capture_output=True, text=True, timeout=120)
        if done.returncode < 0:
            raise Refused("signal", f"the command ended by signal {-done.returncode}")
        if done.returncode:
            raise Refused("command", done.stderr.strip()[-300:])
        return [np.load(f"{folder}/out/{o.name}.npy") for o in case.model.graph.output]


def run_peer(case):
    """Outputs per feed of ONNX Runtime; Refused where it has no kernel or no interface for the types."""
    arrays = [a for feeds in case.feeds for a in feeds.values()]
    arrays += [numpy_helper.to_array(c) for c in case.model.graph.initializer]
    results = [helper.tensor_dtype_to_np_dtype(o.type.tensor_type.elem_type) for o in case.model.graph.output]
    if any(np.dtype(t) not in PLAIN for t in [*(np.asarray(a).dtype for a in arrays), *results]):
        raise Refused("types", "NumPy has no such type")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = {i.name for i in session.get_inputs()}
        return [session.run(None, {k: v for k, v in feeds.items() if k in names}) for feeds in case.feeds]
    except Exception as e:  # its bindings raise many kinds
        raise Refused(type(e).__name__, str(e)[:300]) from e
