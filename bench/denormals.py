#!/usr/bin/env python3
"""What denormal inputs cost: networks of one kind of step each run on normal and on denormal inputs by turns; prints the ratio
of the median times (1.00: nothing). Run it in an environment with sparkle and onnx (scripts/setup python, pip install .):
bench/denormals.py [ROUNDS]. Policy: src/base/denormals.h."""
import statistics
import sys
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import sparkle

SHAPE = (1, 32, 64, 64)


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


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 101
    normal = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    denormal = (normal.astype(np.float64) * 1e-40).astype(np.float32)
    assert np.all(np.abs(denormal) < np.finfo(np.float32).tiny) and np.count_nonzero(denormal) > 0.9 * denormal.size
    device = sparkle.Device("cpu")
    print(f"medians of {rounds} runs by turns: normal, denormal, ratio")
    for name, network in networks():
        session = sparkle.Session(network, device)
        seconds = {"normal": [], "denormal": []}
        for turn in range(rounds):
            for kind, x in (("normal", normal), ("denormal", denormal))[:: 1 if turn % 2 else -1]:
                begin = time.perf_counter()
                session.run(x)
                seconds[kind].append(time.perf_counter() - begin)
        a, b = (1e3 * statistics.median(seconds[kind]) for kind in ("normal", "denormal"))
        print(f"{name:22s} {a:8.3f} ms {b:8.3f} ms {b / a:6.2f}")


if __name__ == "__main__":
    main()
