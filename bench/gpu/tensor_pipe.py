#!/usr/bin/env python3
"""How busy the tensor pipes are by the card's own counters, beside how many operations a layer executes of what its unit could:
tensor_pipe.py NCU SPARKLE RESULT.json BENCH-OPTION...

The layer is measured without the profiler first, which changes clocks, then under Nsight Compute. Exit status: 0 the file is
written; 77 the counters cannot be read here, and the last line says why; else the command's own."""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
KERNELS = "regex:^sparkle_gemm"  # of the layer, and of none of the probes beside it
BUSY, COUNT = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_tensor.sum"
# Cards differ in the names that they know: all, then fewer.
METRICS = (
    (BUSY, COUNT),
    (BUSY,),
    (COUNT,),
    ("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",),
    ("sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_tensor_op_hmma.sum"),
)


def counters(text):
    """Rows of `ncu --csv`, in either form: {'kernel': name, metric: number}, one a launch."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(line for line in lines[begin:] if line.startswith('"')))):
        if not row.get("ID"):  # the line of units
            continue
        launch = launches.setdefault(row["ID"], {"kernel": row.get("Kernel Name", "")})
        long_form = {row["Metric Name"]: row.get("Metric Value")} if row.get("Metric Name") else row
        for name, value in long_form.items():
            if name and "__" in name:
                try:
                    launch[name] = float((value or "").replace(",", ""))
                except ValueError:
                    pass
    return [launch for launch in launches.values() if len(launch) > 1]


def executed(bench):
    """Of the first row of `sparkle bench --output`: its rate, its unit, and that unit's peak, probed where it was."""
    row = bench["rows"][0]
    unit = next((part[5:] for part in row.get("schedule", "").split() if part.startswith("unit=")), "")
    peaks = {one.get("name"): one.get("total_flops_per_second") for one in bench.get("device", {}).get("units", [])}
    probed = row.get("roofs", {}).get("compute", {})
    peak = probed["probed"] if probed.get("of") == unit and probed.get("probed", 0) > 0 else peaks.get(unit)
    rate = (row.get("executed_gflops") or 0) * 1e9
    share = {"percent_of_peak": 100 * rate / peak, "peak_flops_per_second": peak} if peak else {}
    about = {"layer": row.get("name"), "unit": unit, "median_ms": row.get("median_ms")}
    return {**about, "executed_flops_per_second": rate, **share}


def profile(ncu, command):
    """(rows, what the profiler said last where there are none)."""
    said = "it says nothing"
    for names in METRICS:
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "ncu.csv"
            options = ["--csv", "--log-file", log, "--metrics", ",".join(names), "--clock-control", "none",
                       "--target-processes", "all", "--kernel-name", KERNELS, "--launch-count", "20"]
            # Kernels are profiled one after another: edges that let them overlap are left out.
            done = subprocess.run([ncu, *options, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", check=False, env={**os.environ, "SPARKLE_CUDA_EDGES": "full"})
            text = (log.read_text(encoding="utf-8", errors="replace") if log.exists() else "") + done.stdout
        rows = counters(text)
        if any(name in row for row in rows for name in names):
            return rows, ""
        errors = [line for line in text.splitlines() if "ERROR" in line or "ERR_" in line]
        said = errors[0].replace("==ERROR==", "").strip() if errors else said
        if "ERR_NVGPUCTRPERM" in text:
            break
    return [], said


def main():
    ncu, sparkle, result, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        measured = pathlib.Path(folder) / "bench.json"
        command = [sparkle, "bench", "--device", "cuda", *options]
        done = subprocess.run([*command, "--output", measured], check=False)
        if done.returncode:
            return done.returncode
        layer = executed(json.loads(measured.read_text(encoding="utf-8")))
    try:
        rows, said = profile(ncu, [*command, "--rounds", "1", "--round-ms", "1"])
    except OSError as error:
        rows, said = [], f"'{ncu}' cannot be started: {error.strerror}"
    if not rows:
        print(f"the tensor pipes' counters cannot be read here: {said}")
        return SKIPPED
    names = sorted({name for row in rows for name in row} - {"kernel"})
    values = {name: [row[name] for row in rows if name in row] for name in names}
    means = {name: {"mean": sum(found) / len(found), "most": max(found)} for name, found in values.items()}
    layer |= {"tensor_pipe": means, "launches": rows}
    part = f"{result}.part"
    pathlib.Path(part).write_text(json.dumps(layer, indent=1) + "\n", encoding="utf-8")
    os.replace(part, result)
    share = f"{layer['percent_of_peak']:.1f} %" if "percent_of_peak" in layer else "an unknown share"
    busiest = ", ".join(f"{name} at most {found['most']:.4g}" for name, found in means.items())
    print(f"{layer['layer']} by {layer['unit']}: {share} of its peak executed; {busiest} over {len(rows)} launches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
