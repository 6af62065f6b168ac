"""Two builds of the command beside each other: the layers of shapes/layers.csv by `sparkle bench`, in turns, on each unit and
number of threads. A layer is slower (faster) where it is by more than 5 % in every run. Writes
bench/results/builds_MACHINE.json. bench/compare_builds.py --before BINARY --after BINARY [--units NAME ...] [--threads N ...]
[--runs N] [--keep FOLDER]; runs whose files already lie in FOLDER are not repeated, so a
rebuilt binary needs a new one."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import certificate

NOTABLE = 1.05


def run(binary, unit, threads, file):
    if not file.exists():
        subprocess.run([binary, "bench", "--layers", str(certificate.ROOT / "shapes" / "layers.csv"), "--threads", str(threads),
                        *(["--unit", unit] if unit != "widest" else []), "--rounds", "3", "--round-ms", "3", "--output",
                        str(file)], check=True, stdout=subprocess.DEVNULL)
    return {r["name"]: r["median_ms"] for r in json.loads(file.read_text())["rows"]}


def geometric_mean(values):
    return round(math.exp(statistics.mean(math.log(v) for v in values)), 4)


def compared(before, after):
    """Of runs in turns, each {layer: ms}: ratios of time after to time before."""
    names = sorted(set.intersection(*(set(r) for r in before + after)))
    ratios = {n: [round(a[n] / b[n], 3) for a, b in zip(after, before)] for n in names}
    least = {n: min(a[n] for a in after) / min(b[n] for b in before) for n in names}
    return {"layers": len(names),
            "geometric_means": [geometric_mean(r[i] for r in ratios.values()) for i in range(len(before))],
            "geometric_mean_of_least_times": geometric_mean(least.values()),
            "slower": {n: r for n, r in ratios.items() if min(r) > NOTABLE},
            "faster": {n: r for n, r in ratios.items() if max(r) < 1 / NOTABLE}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--units", nargs="+", default=["widest", "avx2"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--what", default="", help="what lies between the builds, in a few words")
    a = parser.parse_args()
    folder = a.keep or pathlib.Path(tempfile.mkdtemp())
    rows = []
    for unit in a.units:
        for threads in a.threads:
            times = {"before": [], "after": []}
            for i in range(a.runs):
                for which, binary in (("before", a.before), ("after", a.after)):
                    times[which].append(run(binary, unit, threads, folder / f"{which}_{unit}_{threads}_{i}.json"))
            rows.append({"unit": unit, "threads": threads, **compared(times["before"], times["after"])})
            print(unit, threads, {k: v for k, v in rows[-1].items() if k.startswith("geometric")}, sorted(rows[-1]["slower"]))
    arguments = ["BEFORE" if x == a.before else "AFTER" if x == a.after else x for x in sys.argv[1:]
                 if x not in ("--keep", str(a.keep))]
    made = certificate.certificate([a.after], certificate.command_of("bench/compare_builds.py", arguments))
    certificate.store(certificate.RESULTS / f"builds_{certificate.label(made)}.json", made, {"what": a.what, "rows": rows})


if __name__ == "__main__":
    main()
