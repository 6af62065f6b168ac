#!/usr/bin/env python3
"""Single operators and functions (bench/operator_models.py) as models of their own beside onnxruntime, in turns, worst first.
Writes bench/results/operators_MACHINE[_UNIT]_THREADS.json.
bench/operators.py [--threads N] [--unit avx2] [--filter WORD ...]"""
import argparse
import re
import shlex
import statistics
import sys

import environment
from environment import ROOT


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--filter", nargs="+", default=[], help="only operators with one of these in their names")
    environment.add_arguments(parser, rounds=7)
    return parser.parse_args()


if __name__ == "__main__":
    parsed_arguments()
    environment.enter()

import certificate  # noqa: E402
import engines  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from operator_models import OPERATORS, model_of  # noqa: E402

TURN_SECONDS = 0.03
TOLERANCE = 1e-3  # of the largest value: f16 results and quotients near half way differ by one step


def measured(name, arguments, scratch):
    folder = scratch / re.sub(r"\W+", "_", name)
    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = model_of(name)
    (folder / "model.onnx").write_bytes(model)
    files = [folder / f"input_{i}.pb" for i in range(len(inputs))]
    for file, values in zip(files, inputs):
        file.write_bytes(numpy_helper.from_array(values).SerializeToString())
    commands = engines.commands_of(shlex.split(arguments.sparkle), folder / "model.onnx", files, arguments.threads,
                                    arguments.unit)
    try:
        row = engines.compare_in_turns(commands, 1, False, folder, arguments.rounds, TURN_SECONDS,
                                       0.01 if name.startswith("Quantize") else TOLERANCE)
    except RuntimeError as wrong:
        row = {"agree": False, "error": str(wrong)}
    for engine in ("sparkle", "onnxruntime"):
        row.get(engine, {}).pop("start", None)
    return {"operator": name, **row}


def main():
    arguments = parsed_arguments()
    import onnxruntime
    words = shlex.split(arguments.sparkle)
    made = certificate.certificate(words, certificate.command_of("bench/operators.py", sys.argv[1:]),
                                   {"onnxruntime": onnxruntime.__version__})
    chosen = [n for n in OPERATORS if not arguments.filter or any(word in n for word in arguments.filter)]
    rows = [measured(name, arguments, ROOT / "build" / "bench" / "operators") for name in chosen]
    rows.sort(key=lambda row: (row["agree"], 1 / row["time_ratio"] if row["agree"] else 0))
    for row in rows:
        if row["agree"]:
            print(f"{1 / row['time_ratio']:6.2f}x {row['sparkle']['median_ms']:9.4f} ms "
                  f"{row['onnxruntime']['median_ms']:9.4f} ms  {row['operator']}")
        else:
            print(f"FAILED  {row['operator']}: {row.get('error') or row['max_error_relative']}")
    ratios = [1 / row["time_ratio"] for row in rows if row["agree"]]
    if ratios:
        print(f"{statistics.geometric_mean(ratios):6.2f}x geometric mean of {len(ratios)}, "
              f"{sum(r < 0.7 for r in ratios)} below 0.7, "
              f"{sum(r < 0.9 for r in ratios)} below 0.9 (onnxruntime's time over Sparkle's)")
    unit = f"_{arguments.unit}" if arguments.unit else ""
    certificate.store(arguments.output or
                      certificate.RESULTS / f"operators_{certificate.label(made)}{unit}_{arguments.threads}.json", made,
                      {"threads": arguments.threads, "unit": arguments.unit or "the widest", "rows": rows})
    sys.exit(0 if all(row["agree"] for row in rows) else 1)


if __name__ == "__main__":
    main()
