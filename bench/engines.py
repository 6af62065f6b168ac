"""Sparkle and onnxruntime beside each other, each in a helper process that stays open: short turns alternate, and who begins
rotates from round to round, so that whatever the machine does meanwhile hits both alike. Outputs must agree before anything is
timed, and again after.

Serve mode, spoken by both helpers (`sparkle bench --model M --threads T --input F.pb [--input ...] --serve`; one --input per
graph input, in graph order, each a TensorProto file). One text line asked on standard input, one answered on standard output,
flushed at once:
  start    it loads the model, runs once on the given inputs and answers
             ready {"load_ms": X, "first_ms": Y}
           load_ms: from the start of the work to a session that can run; first_ms: that first run. Asked once, first of all.
  run N    it runs N times back to back on the same inputs and answers with one line of N wall times in ms, separated by single
           spaces. A time covers what a caller waits for: from the call that gets the inputs until the outputs can be read.
  save D   it writes the outputs of its last run (Sparkle: of one more, on wiped memory) as D/output_0.pb, D/output_1.pb, ...
           (TensorProto, graph order; the folder exists) and answers: saved
  quit     (or the end of its input) it ends with status 0.
Anything wrong is answered with one line `error SENTENCE`, and the helper ends with status 1 or 2. Nothing else may stand on
standard output. Between answers a helper must not keep a core busy for more than a few milliseconds.
"""
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import numpy_helper

from peer_onnxruntime import peak_bytes

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAUSE_SECONDS = 0.05  # between turns: lets the spinning threads of the engine before go to sleep
WARM_RUNS = 2        # at the start of each turn, not counted


class Helper:
    """One engine in a process of its own that speaks the serve protocol."""

    def __init__(self, name, command, log):
        self.name, self.command = name, command
        self.begin = time.perf_counter()
        with open(log, "a", encoding="utf-8") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        line = self.ask("start")
        self.process_ms = (time.perf_counter() - self.begin) * 1e3
        verb, _, rest = line.partition(" ")
        if verb != "ready":
            raise RuntimeError(f"{name} began with '{line}' and not with 'ready {{...}}'")
        self.start_up = dict(json.loads(rest), process_ms=self.process_ms, peak_bytes=peak_bytes(self.process.pid))

    def answer(self):
        line = self.process.stdout.readline().rstrip("\n")
        if not line or line.startswith("error"):
            raise RuntimeError(f"{self.name}: {line or 'ended without an answer'} ({shlex.join(self.command)})")
        return line

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.answer()

    def run(self, n):
        times = [float(word) for word in self.ask(f"run {n}").split()]
        if len(times) != n:
            raise RuntimeError(f"{self.name} answered {len(times)} times to 'run {n}'")
        return times

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def error_of(folder_a, folder_b, outputs, quantized, tolerance=None):
    """(largest |a-b| / max|b|, whether all outputs agree within the tolerance of a whole fp32 network). Quantised networks
    round at every layer, and engines fuse them differently: they agree by largest element and a cosine of 0.98. With a
    tolerance of the caller's they agree where the error is not above it."""
    worst, agree = 0.0, True
    for i in range(outputs):
        a, b = (numpy_helper.to_array(onnx.load_tensor(str(f / f"output_{i}.pb"))) for f in (folder_a, folder_b))
        if a.shape != b.shape or a.dtype != b.dtype or not np.isfinite(a.astype(np.float64)).all():
            return float("inf"), False
        if not a.size:
            continue
        top = float(np.abs(b.astype(np.float64)).max()) or 1.0
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        worst = max(worst, float(difference.max()) / top)
        if tolerance is not None:
            agree = agree and float(difference.max()) <= tolerance * top
        elif quantized:
            x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
            cosine = float(x @ y) / max(float(np.linalg.norm(x) * np.linalg.norm(y)), 1e-30)
            agree = agree and x.argmax() == y.argmax() and cosine >= 0.98
        else:
            agree = agree and bool((difference <= 1e-4 * top + 1e-3 * np.abs(b)).all())
    return worst, agree


def summary(times):
    ordered = sorted(times)
    return {"median_ms": statistics.median(ordered), "min_ms": ordered[0], "p95_ms": ordered[int(0.95 * (len(ordered) - 1))],
            "runs": len(ordered)}


def commands_of(sparkle, model, inputs, threads, unit=""):
    """{engine: words that start its helper}."""
    flags = ["--model", str(model), "--threads", str(threads)] + [w for f in inputs for w in ("--input", str(f))]
    return {"sparkle": [*sparkle, "bench", *flags, *(["--unit", unit] if unit else []), "--serve"],
            "onnxruntime": [sys.executable, str(ROOT / "bench" / "peer_onnxruntime.py"), *flags]}


def outputs_agree(helpers, outputs, quantized, scratch, tolerance=None):
    """(error, agree) of one more run of each; files lie in `scratch`."""
    for engine, helper in helpers.items():
        helper.run(1)
        (scratch / engine).mkdir(parents=True, exist_ok=True)
        for old in (scratch / engine).glob("output_*.pb"):
            old.unlink()
        helper.ask(f"save {scratch / engine}")
    return error_of(scratch / "sparkle", scratch / "onnxruntime", outputs, quantized, tolerance)


def time_in_turns(helpers, rounds, turn_seconds):
    """({engine: times in ms}, a ratio of medians sparkle / onnxruntime per round)."""
    counts = {}
    for engine, helper in helpers.items():
        helper.run(WARM_RUNS)
        counts[engine] = max(3, min(100, int(turn_seconds * 1e3 / min(helper.run(3)))))
    times, ratios = {engine: [] for engine in helpers}, []
    order = list(helpers)
    for _ in range(rounds):
        medians = {}
        for engine in order:
            time.sleep(PAUSE_SECONDS)
            turn = helpers[engine].run(WARM_RUNS + counts[engine])[WARM_RUNS:]
            times[engine] += turn
            medians[engine] = statistics.median(turn)
        ratios.append(medians["sparkle"] / medians["onnxruntime"])
        order = order[1:] + order[:1]
    return times, ratios


def compare_in_turns(commands, outputs, quantized, scratch, rounds, turn_seconds, tolerance=None):
    """A row of a result: agreement before and after, and times where they agree. Below 1 in time_ratio: Sparkle is faster."""
    log = scratch / "helpers.log"
    helpers = {}
    try:
        for engine, command in commands.items():
            helpers[engine] = Helper(engine, command, log)
        error, agree = outputs_agree(helpers, outputs, quantized, scratch, tolerance)
        row = {"agree": bool(agree), "max_error_relative": error}
        if not agree:
            return row
        times, ratios = time_in_turns(helpers, rounds, turn_seconds)
        error, agree = outputs_agree(helpers, outputs, quantized, scratch, tolerance)
        row.update({"agree": bool(agree), "max_error_relative": max(error, row["max_error_relative"])})
        if not agree:
            return row
        row.update({engine: summary(t) for engine, t in times.items()})
        for engine, helper in helpers.items():
            row[engine]["start"] = helper.start_up
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        row["time_ratio"] = statistics.median(ratios)
        row["time_ratio_quartiles"] = [quartiles[0], quartiles[2]]
        return row
    finally:
        for helper in helpers.values():
            helper.close()
