#!/usr/bin/env python3
"""What denormal inputs cost: networks of one kind of step each, on normal and on denormal inputs by turns, each in a process of
its own that stays open. Writes the ratio of the median times (1.00: nothing) to bench/results/denormals_MACHINE.json. Policy:
src/base/system/denormals.h. bench/denormals.py [--rounds N] [--sparkle COMMAND]"""
import argparse
import shlex
import statistics
import sys

import environment
from environment import ROOT


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"), help="the command to measure")
    return parser.parse_args()


if __name__ == "__main__":
    parsed_arguments()
    environment.enter()

import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import certificate  # noqa: E402
from engines import Helper  # noqa: E402

SHAPE = (1, 32, 64, 64)
RUNS = 5  # in a turn, the first of them to bring the inputs back into the caches


def model(nodes, weights):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "denormals", values[:1], values[1:],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return made.SerializeToString()


def networks():
    rng = np.random.default_rng(1)
    dense = rng.standard_normal((32, 32, 3, 3)).astype(np.float32) / 17
    each = rng.standard_normal((32, 1, 3, 3)).astype(np.float32) / 3
    ones = np.ones(32, np.float32)
    pads = {"pads": [1, 1, 1, 1]}
    node = helper.make_node
    yield "three convolutions", model([node("Conv", ["x", "w"], ["a"], **pads), node("Relu", ["a"], ["b"]),
                                       node("Conv", ["b", "w"], ["c"], **pads), node("Relu", ["c"], ["d"]),
                                       node("Conv", ["d", "w"], ["y"], **pads)], {"w": dense})
    yield "depthwise", model([node("Conv", ["x", "w"], ["y"], group=32, **pads)], {"w": each})
    yield "sigmoid and product", model([node("Sigmoid", ["x"], ["a"]), node("Mul", ["x", "a"], ["y"])], {})
    yield "average pooling", model([node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], **pads)], {})
    yield "normalisation", model([node("InstanceNormalization", ["x", "s", "s"], ["y"])], {"s": ones})
    yield "softmax", model([node("Softmax", ["x"], ["y"])], {})


def measure(command, rounds, scratch):
    normal = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    denormal = (normal.astype(np.float64) * 1e-40).astype(np.float32)
    assert np.all(np.abs(denormal) < np.finfo(np.float32).tiny) and np.count_nonzero(denormal) > 0.9 * denormal.size
    np.save(scratch / "normal.npy", normal), np.save(scratch / "denormal.npy", denormal)
    for name, network in networks():
        file = scratch / "denormals.onnx"
        file.write_bytes(network)
        serve = [*command, "bench", "--serve", "--threads", "1", "--model", str(file), "--input"]
        helpers = {kind: Helper(kind, [*serve, str(scratch / f"{kind}.npy")], scratch / "helpers.log")
                   for kind in ("normal", "denormal")}
        medians = {kind: [] for kind in helpers}
        for turn in range(rounds):
            for kind in list(helpers)[:: 1 if turn % 2 else -1]:
                medians[kind].append(statistics.median(helpers[kind].run(RUNS)[1:]))
        for helper_process in helpers.values():
            helper_process.close()
        a, b = (statistics.median(medians[kind]) for kind in ("normal", "denormal"))
        ratio = statistics.median(y / x for x, y in zip(medians["normal"], medians["denormal"]))
        print(f"{name:22s} {a:8.3f} ms {b:8.3f} ms {ratio:6.2f}", flush=True)
        yield {"name": name, "normal_ms": a, "denormal_ms": b, "ratio": ratio}


def main():
    arguments = parsed_arguments()
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    command = shlex.split(arguments.sparkle)
    said = certificate.command_of("bench/denormals.py", sys.argv[1:])
    made = certificate.certificate(command, said, {"numpy": np.__version__})
    print(f"medians of {arguments.rounds} rounds by turns: normal, denormal, ratio")
    rows = list(measure(command, arguments.rounds, scratch))
    body = {"rows": rows, "least_ratio": min(r["ratio"] for r in rows), "largest_ratio": max(r["ratio"] for r in rows)}
    certificate.store(certificate.RESULTS / f"denormals_{certificate.label(made)}.json", made, body)


if __name__ == "__main__":
    main()
