#!/usr/bin/env python3
"""What `sparkle fix` was predicted to bring per layer, beside what it brought: models as they are and with int8, planned for
and run on this machine in turns. Writes bench/results/fix_MACHINE[_UNIT]_THREADS.json.

A layer is what steps of either model make whole: steps that share nodes of the model are one layer. Its ratio is the time after
over the time before, of the layers whose products became integer. Copies between the types that stand around them are the
network's, and are in its own line."""
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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=20, help="runs of a model in a round, of each kind")
    parser.add_argument("--names", nargs="+", help="only these")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    environment.add_arguments(parser, rounds=5)
    return parser.parse_args()


if __name__ == "__main__":
    parsed_arguments()
    environment.enter()

import certificate  # noqa: E402

NAMES = ["squeezenet1.1", "mobilenetv2", "yolox-nano", "ultraface-rfb-320", "resnet20-cifar10", "resnet32-cifar10", "mnist-cnn",
         "super-resolution-10", "deeplabv3-mobilenetv2-257", "sed-unet"]
PRODUCTS = ("gemm", "direct", "depthwise", "grouped", "inverted", "winograd", "fft", "matrix", "sums")


def output_of(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def medians(reports):
    """Steps of one model with their median times over the rounds."""
    steps = []
    for parts in zip(*(r["steps"] for r in reports)):
        step = parts[0]
        steps.append({"nodes": set(step["nodes"]) or {step["name"]}, "name": step["name"], "what": step["what"],
                      "algorithm": step["algorithm"], "dtype": step["dtype"], "predicted_ms": step["predicted_ms"],
                      "measured_ms": statistics.median(p["measured_ms"] for p in parts)})
    return steps


def layers_of(before, after):
    """Groups of steps of both models that share nodes, as (steps before, steps after)."""
    groups = []  # (nodes, before, after)
    for side, steps in ((1, before), (2, after)):
        for step in steps:
            nodes, sides = set(step["nodes"]), {1: [], 2: []}
            sides[side].append(step)
            apart = []
            for group in groups:
                if group[0] & nodes:
                    nodes |= group[0]
                    sides = {s: group[s] + sides[s] for s in (1, 2)}
                else:
                    apart.append(group)
            groups = [*apart, (nodes, sides[1], sides[2])]
    return [(b, a) for _, b, a in groups]


def is_product(step):
    return step["algorithm"].startswith(PRODUCTS)


def rows_of(before, after):
    for old, new in layers_of(before, after):
        became = [s for s in new if is_product(s) and s["dtype"] in ("u8", "i8", "s8")]
        if not old or not became or not any(is_product(s) for s in old):
            continue
        total = {f"{kind}_{when}_ms": sum(s[f"{kind}_ms"] for s in steps)
                 for kind in ("predicted", "measured") for when, steps in (("before", old), ("after", new))}
        yield {"layer": next(s for s in old if is_product(s))["name"], "what": next(s for s in old if is_product(s))["what"],
               "algorithms": [sorted({s["algorithm"] for s in steps}) for steps in (old, new)], **total,
               "predicted_ratio": total["predicted_after_ms"] / total["predicted_before_ms"],
               "measured_ratio": total["measured_after_ms"] / total["measured_before_ms"]}


def measured(name, arguments, scratch):
    model = arguments.data / "models" / name / f"{name}.onnx"
    if not model.is_file():
        print(f"SKIP  {name}: it is not in {arguments.data}")
        return None
    sparkle, fixed = shlex.split(arguments.sparkle), scratch / f"{name}.onnx"
    machine = ["--threads", str(arguments.threads), *(["--unit", arguments.unit] if arguments.unit else [])]
    folders = sorted(str(f) for f in model.parent.glob("test_data_set_*"))
    output_of([*sparkle, "fix", str(model), *folders, "-o", str(fixed), "--precision", "int8", "--proof", "none", *machine])
    reports = {model: [], fixed: []}
    for i in range(arguments.rounds):
        for file in (model, fixed) if i % 2 else (fixed, model):
            reports[file].append(json.loads(output_of(
                [*sparkle, "report", str(file), "--json", "--runs", str(arguments.runs), *machine])))
    whole = {}
    for when, file in (("before", model), ("after", fixed)):
        whole[f"predicted_{when}_ms"] = reports[file][0]["predicted_ms"]
        whole[f"measured_{when}_ms"] = statistics.median(r["measured_ms"] for r in reports[file])
    return {"network": name, **whole, "layers": list(rows_of(medians(reports[model]), medians(reports[fixed])))}


def ranks(values):
    """Of each value among all, the mean of equal ones."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, at = [0.0] * len(values), 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in range(at, end + 1):
            found[order[i]] = (at + end) / 2
        at = end + 1
    return found


def summary(rows):
    errors = [abs(r["predicted_ratio"] / r["measured_ratio"] - 1) for r in rows]
    return {"layers": len(rows), "median_error_percent": 100 * statistics.median(errors),
            "rank_correlation": statistics.correlation(ranks([r["predicted_ratio"] for r in rows]),
                                                       ranks([r["measured_ratio"] for r in rows])),
            "beyond_20_percent": sum(e > 0.2 for e in errors)}


def main():
    arguments = parsed_arguments()
    scratch = ROOT / "build" / "fix_ratios"
    scratch.mkdir(parents=True, exist_ok=True)
    made = certificate.certificate(shlex.split(arguments.sparkle), certificate.command_of("bench/fix_ratios.py", sys.argv[1:]))
    networks = []
    for name in arguments.names or NAMES:
        try:
            row = measured(name, arguments, scratch)
        except RuntimeError as wrong:
            print(f"{name}: {wrong}")
            row = {"network": name, "error": str(wrong), "layers": []}
        if row:
            networks.append(row)
            if "error" not in row:
                print(f"{name:28} {len(row['layers']):4} layers   whole: predicted "
                      f"{row['predicted_after_ms'] / row['predicted_before_ms']:.2f} measured "
                      f"{row['measured_after_ms'] / row['measured_before_ms']:.2f}", flush=True)
    rows = [{"network": n["network"], **layer} for n in networks for layer in n["layers"]]
    if len(rows) < 2:
        raise SystemExit("bench/fix_ratios.py: fewer than two layers became integer; nothing to compare.")
    total = summary(rows)
    for r in sorted(rows, key=lambda r: abs(r["predicted_ratio"] / r["measured_ratio"] - 1)):
        if abs(r["predicted_ratio"] / r["measured_ratio"] - 1) > 0.2:
            print(f"  {r['network']:24} {r['layer'][:28]:28} {r['what'][:34]:34} predicted {r['predicted_ratio']:.2f} "
                  f"measured {r['measured_ratio']:.2f}  ms {r['predicted_before_ms']:.4f} -> {r['predicted_after_ms']:.4f}, "
                  f"{r['measured_before_ms']:.4f} -> {r['measured_after_ms']:.4f}")
    print(f"{total['layers']} layers: median error {total['median_error_percent']:.1f} %, rank correlation "
          f"{total['rank_correlation']:.2f}, {total['beyond_20_percent']} beyond 20 %")
    infix = f"{arguments.unit}_" if arguments.unit else ""
    file = arguments.output or certificate.RESULTS / f"fix_{certificate.label(made)}_{infix}{arguments.threads}.json"
    certificate.store(file, made, {
        "settings": {"threads": arguments.threads, "unit": arguments.unit, "rounds": arguments.rounds, "runs": arguments.runs},
        **total, "networks": networks})


if __name__ == "__main__":
    main()
