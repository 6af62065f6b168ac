#!/usr/bin/env python3
"""Streams of items: one behind the other beside pipelined on each device, and two devices together beside the best of them
alone, `sparkle bench --pipeline` several times each. Writes bench/results/pipelines_MACHINE.json.
bench/checks/check_pipelines.py [--times N] [--devices A,B] [--models FOLDER] [--sparkle COMMAND] [NAME...]"""
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

NAMES = ("resnet20-cifar10", "squeezenet1.1")
ONE = ("synchronous_ms", "pipelined_ms", "pipelined_over_synchronous", "device_busy_percent")
TOGETHER = ("stream_ms", "stream_over_best_alone", "together_ms", "together_over_best_alone", "efficiency_percent")


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    parser.add_argument("--times", type=int, default=4, help="the command's own medians are of five rounds each")
    parser.add_argument("--devices", default="cpu,vulkan:0")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "data" / "models")
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"), help="the command to measure")
    return parser.parse_args()


def medians(command, model, device, times, keys):
    """The medians of `keys` over so many runs, and all of them; which devices took part in the last one."""
    said = []
    for _ in range(times):
        words = [*command, "bench", model, "--pipeline", "--json", "--device", device]
        said.append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True, timeout=600).stdout))
    row = {"device": device, "runs": {key: [one[key] for one in said if key in one] for key in keys}}
    row.update({key: statistics.median(values) for key, values in row["runs"].items() if values})
    row["items"] = said[-1]["items"]
    if "stream" in said[-1]:
        row["stream"] = said[-1]["stream"]
        row["shares_percent"] = {one["name"]: one["share_percent"] for one in said[-1]["devices"]}
    return row


def measure(command, arguments):
    for name in arguments.names:
        model = arguments.models / name / f"{name}.onnx"
        for device in [*arguments.devices.split(","), arguments.devices]:
            row = medians(command, model, device, arguments.times, TOGETHER if "," in device else ONE)
            print(name, device, {key: round(row[key], 3) for key in (*ONE, *TOGETHER) if key in row}, flush=True)
            yield {"model": name, **row}


def main():
    arguments = parsed_arguments()
    command = shlex.split(arguments.sparkle)
    made = certificate.certificate(command, certificate.command_of("bench/checks/check_pipelines.py", sys.argv[1:]))
    certificate.store(certificate.RESULTS / f"pipelines_{certificate.label(made)}.json", made,
                      {"times": arguments.times, "rows": list(measure(command, arguments))})


if __name__ == "__main__":
    main()
