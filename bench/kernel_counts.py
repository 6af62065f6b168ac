#!/usr/bin/env python3
"""Instructions that the CPU kernels execute, counted by callgrind: a number that no other load on the machine changes.

usage: bench/kernel_counts.py [--sparkle FILE] [--unit UNIT] [--output FILE] [--against FILE] [MODEL...]

Runs each model once on one thread (default: small models of ../shared/data that together take the flagship kernels: register
tiles, Winograd, depthwise, direct, inverted, integer) and prints the instructions of each kernel function. --output keeps them
as JSON; --against prints what differs from such a file by more than 1 % and ends with status 1 if anything does.
callgrind knows vectors up to AVX2.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "models"
MODELS = ["squeezenet1.1", "mobilenetv2", "mobilenetv2-int8", "resnet20-cifar10", "ultraface-rfb-320"]
LINE = re.compile(r"^\s*([\d,]+) \([\s\d.]+%\)\s+\S*?:(.+?)(?: \[[^\]]*\])?$")
KERNEL = re.compile(r"sparkle::(?:cpu|reference)\b|::N_\w+::|\bhwy::")


def counted(sparkle: str, unit: str, model: Path) -> dict:
    """Instructions per kernel function, those of its callees not included."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counts"
        ran = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sparkle, "run", str(model),
                              "--threads", "1", "--unit", unit], capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{model}: {ran.stderr[-500:]}")
        text = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", str(out)], capture_output=True, text=True,
                              check=True).stdout
    counts: dict = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if found and KERNEL.search(found[2]):
            counts[found[2]] = counts.get(found[2], 0) + int(found[1].replace(",", ""))
    return counts


def different(counts: dict, before: dict) -> list:
    lines = []
    for model, now in counts.items():
        was = before.get(model, {})
        for name in sorted(set(now) | set(was)):
            a, b = was.get(name, 0), now.get(name, 0)
            if max(a, b) > 100000 and abs(b - a) > 0.01 * max(a, 1):
                lines.append(f"{model}: {a} -> {b} ({(b / a - 1) * 100 if a else 100:+.1f} %)  {name[:150]}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sparkle", default=str(ROOT / "build" / "release" / "sparkle"))
    parser.add_argument("--unit", default="avx2")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("models", nargs="*", type=Path)
    a = parser.parse_args()
    models = a.models or [next((DATA / name).glob("*.onnx")) for name in MODELS if (DATA / name).is_dir()]
    counts = {}
    for model in models:
        counts[model.stem] = counted(a.sparkle, a.unit, model)
        print(f"{sum(counts[model.stem].values()):>15,}  {model.stem}")
    if a.output:
        a.output.write_text(json.dumps({"unit": a.unit, "counts": counts}, indent=1) + "\n", encoding="utf-8")
    if not a.against:
        return 0
    lines = different(counts, json.loads(a.against.read_text(encoding="utf-8"))["counts"])
    print("\n".join(lines) if lines else "no kernel differs by more than 1 %")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
