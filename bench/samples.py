#!/usr/bin/env python3
"""What the commands that docs/command.md and docs/gpus.md show print on this machine: runs each and keeps its words in
bench/results/samples_MACHINE.json, from which scripts/update_figures writes them into the text.
bench/samples.py [--sparkle COMMAND]"""
import argparse
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import certificate  # noqa: E402

SAMPLES = {
    "upscale": "run models/upscale2x.onnx models/test_picture.png --repeat 5 --output build/demo",
    "layers": "bench --layers shapes/resnet50.csv --threads 1",
    "plan": "explain models/upscale2x.onnx --shape image=1x3x96x128 --device devices/radeon-rx-7900-xtx.json",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"), help="the command to run")
    arguments = parser.parse_args()
    command = shlex.split(arguments.sparkle)
    made = certificate.certificate(command, certificate.command_of("bench/samples.py", sys.argv[1:]))
    samples = {}
    for name, words in SAMPLES.items():
        printed = certificate.run_again([*command, *shlex.split(words)], "bench/samples.py")
        samples[name] = {"command": f"sparkle {words}", "printed": printed.splitlines()}
        print(f"sparkle {words}: {len(samples[name]['printed'])} lines")
    certificate.store(certificate.RESULTS / f"samples_{certificate.label(made)}.json", made, {"samples": samples})


if __name__ == "__main__":
    main()
