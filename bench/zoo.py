#!/usr/bin/env python3
"""Architectures of bench/zoo_list.py, written by bench/zoo_export.py, beside onnxruntime: values and times, worst first. Writes
bench/results/zoo_MACHINE[_UNIT]_THREADS.json. bench/zoo.py --models FOLDER [--threads N] [--unit avx2] [--names NAME ...]
Networks with seeded weights may be chaotic: where values differ by more than the tolerance, they are compared with what
onnxruntime itself makes of its optimisations (all against none), and fail where they differ by more than ten times that."""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

import environment
from environment import ROOT


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder that bench/zoo_export.py wrote")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--names", nargs="+", help="only these")
    environment.add_arguments(parser, rounds=5)
    return parser.parse_args()


if __name__ == "__main__":
    parsed_arguments()
    environment.enter()

import certificate  # noqa: E402
import engines  # noqa: E402
import numpy as np  # noqa: E402
from onnx import numpy_helper  # noqa: E402
import zoo_list  # noqa: E402

TURN_SECONDS = 0.1
TOLERANCE = 1e-3  # of the largest output
CHAOS = 10        # times the spread of the peer's own options


def spread_of_peer(model, file):
    """Largest difference, of the largest output, between onnxruntime with all optimisations and with none."""
    import onnxruntime
    outputs = []
    for level in (onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        outputs.append(session.run(None, {name: numpy_helper.to_array(engines.onnx.load_tensor(str(file)))}))
    return max(float(np.abs(a.astype(np.float64) - b).max()) / (float(np.abs(b).max()) or 1.0) for a, b in zip(*outputs))


def measured(name, shape, arguments, scratch):
    model = arguments.models / f"{name}.onnx"
    scratch.mkdir(parents=True, exist_ok=True)
    file = scratch / "input_0.pb"
    values = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    file.write_bytes(numpy_helper.from_array(values).SerializeToString())
    sparkle = shlex.split(arguments.sparkle)
    commands = engines.commands_of(sparkle, model, [file], arguments.threads, arguments.unit)
    outputs = len(engines.onnx.load(str(model), load_external_data=False).graph.output)
    row = {"network": name}
    try:
        compared = engines.compare_in_turns(commands, outputs, False, scratch, arguments.rounds, TURN_SECONDS, TOLERANCE)
        if not compared["agree"]:
            spread = spread_of_peer(model, file)
            row["peer_spread"] = spread
            if compared["max_error_relative"] <= CHAOS * spread:
                compared = engines.compare_in_turns(commands, outputs, False, scratch, arguments.rounds, TURN_SECONDS,
                                                    max(TOLERANCE, CHAOS * spread))
        row.update(compared)
    except RuntimeError as wrong:
        row.update(agree=False, error=str(wrong))
        return row
    explained = json.loads(subprocess.run(
        [*sparkle, "explain", "--json", str(model), "--threads", str(arguments.threads),
         *(["--unit", arguments.unit] if arguments.unit else [])], check=True, capture_output=True, text=True).stdout)
    row["predicted_ms"] = explained["predicted_ms"]
    return row


def main():
    arguments = parsed_arguments()
    import onnxruntime
    made = certificate.certificate(shlex.split(arguments.sparkle), certificate.command_of("bench/zoo.py", sys.argv[1:]),
                                   {"onnxruntime": onnxruntime.__version__})
    rows = []
    for _, name, shape, how in zoo_list.zoo():
        if arguments.names and name not in arguments.names:
            continue
        if not (arguments.models / f"{name}.onnx").is_file():
            print(f"SKIP  {name}: bench/zoo_export.py wrote no file of it")
            continue
        row = measured(name, shape, arguments, ROOT / "build" / "bench" / "zoo")
        row["exporter"] = how
        rows.append(row)
        if row["agree"]:
            print(f"{1 / row['time_ratio']:6.2f}x {row['sparkle']['median_ms']:9.2f} ms "
                  f"{row['onnxruntime']['median_ms']:9.2f} ms  {name}  "
                  f"error {row['max_error_relative']:.1e}  predicted {row['predicted_ms']:.2f}", flush=True)
        else:
            print(f"FAILED  {name}: {row.get('error') or row['max_error_relative']}, peer's spread {row.get('peer_spread')}",
                  flush=True)
    if not rows:
        sys.exit("No network was at hand, nothing was measured.")
    rows.sort(key=lambda row: (row["agree"], 1 / row["time_ratio"] if row["agree"] else 0))
    ratios = [1 / row["time_ratio"] for row in rows if row["agree"]]
    print("worst first: " + ", ".join(f"{r['network']} {1 / r['time_ratio']:.2f}" for r in rows if r["agree"])[:4000])
    if ratios:
        print(f"{statistics.geometric_mean(ratios):6.2f}x geometric mean of {len(ratios)}, "
              f"{sum(r < 0.8 for r in ratios)} below 0.8, "
              f"{sum(r < 0.95 for r in ratios)} below 0.95; {len(rows) - len(ratios)} failed")
    unit = f"_{arguments.unit}" if arguments.unit else ""
    certificate.store(arguments.output or certificate.RESULTS / f"zoo_{certificate.label(made)}{unit}_{arguments.threads}.json",
                      made, {"threads": arguments.threads, "unit": arguments.unit or "the widest", "rows": rows})
    sys.exit(0 if all(row["agree"] for row in rows) else 1)


if __name__ == "__main__":
    main()
