#!/usr/bin/env python3
"""`sparkle check --measure` on every model of a folder: by how much the layers' times add up to the whole pass, and how far
each layer's prediction lies from what it took. Writes bench/results/check_MACHINE_THREADS.json.
bench/checks/check_measured.py [--threads N] [--models FOLDER] [--sparkle COMMAND]"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import certificate  # noqa: E402

SHAPES = {"style-red-vineyards": ["--shape", "image=1x3x224x224"]}  # of models that leave them open
# Of a pass: what takes less is as long as the clock's own reading of it.
LEAST_SHARE = 0.005


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "models")
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"), help="the command to measure")
    return parser.parse_args()


def row_of(name, target):
    """Of one model: the whole, the sum of its layers, and the layers that matter with measured over predicted time."""
    layers = target["layers"]
    whole = target["measured_ms"]
    counted = [layer for layer in layers if layer["measured_ms"] >= LEAST_SHARE * whole and layer["predicted_ms"] > 0]
    ratios = {layer["name"]: layer["measured_ms"] / layer["predicted_ms"] for layer in counted}
    worst = sorted(ratios, key=lambda layer: max(ratios[layer], 1 / ratios[layer]), reverse=True)[:3]
    return {"model": name, "measured_ms": whole, "predicted_ms": target["predicted_ms"], "layers": len(layers),
            "layers_share": sum(layer["measured_ms"] for layer in layers) / whole,
            "counted": len(counted), "ratios": list(ratios.values()),
            "median_error": statistics.median(abs(ratio - 1) for ratio in ratios.values()) if ratios else 0,
            "worst": [{"layer": layer, "ratio": ratios[layer]} for layer in worst]}


def measure(command, arguments):
    for folder in sorted(path for path in arguments.models.iterdir() if path.is_dir()):
        words = [*command, "check", folder / f"{folder.name}.onnx", "--target", "cpu", "--measure", "--json", "--threads",
                 str(arguments.threads), *SHAPES.get(folder.name, [])]
        said = json.loads(subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout)
        row = row_of(folder.name, said["targets"][0])
        print(f"{row['model']:32s} {row['measured_ms']:9.3f} ms, layers {100 * row['layers_share']:6.1f} %, predicted "
              f"{row['predicted_ms']:9.3f} ms, median error {100 * row['median_error']:5.1f} %", flush=True)
        yield row


def main():
    arguments = parsed_arguments()
    command = shlex.split(arguments.sparkle)
    made = certificate.certificate(command, certificate.command_of("bench/checks/check_measured.py", sys.argv[1:]))
    rows = list(measure(command, arguments))
    errors = [abs(ratio - 1) for row in rows for ratio in row["ratios"]]
    shares = [row["layers_share"] for row in rows]
    body = {"threads": arguments.threads, "rows": rows, "least_share": min(shares), "largest_share": max(shares),
            "median_error": statistics.median(errors)}
    certificate.store(certificate.RESULTS / f"check_{certificate.label(made)}_{arguments.threads}.json", made, body)


if __name__ == "__main__":
    main()
