#!/usr/bin/env python3
"""Sparkle against onnxruntime, interleaved in one run: batch 1, fp32, with 1 and 2 threads. Results go to bench/results/.

Both engines live in helper processes that stay open; short turns alternate, and who begins rotates from round to round, so that
whatever the machine does meanwhile hits both alike. Outputs must agree before anything is timed. First-answer times come from
fresh processes, taken in turn as well.

--first-answer measures fresh processes alone: time to the first answer and peak memory (VmHWM of the process after it) of
onnxruntime, of Sparkle on the model and on a file of `sparkle compile`, and of Sparkle with --memory-budget set to what
onnxruntime took. What the peer's Python takes before it loads the model is measured too and left out of that budget.

--unit holds Sparkle to a narrower unit than the machine has. onnxruntime has no such switch and goes on with the widest: such a
row is no comparison of engines on equal terms, and the result says so.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

import environment
from environment import ROOT


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--fresh", type=int, default=5, help="fresh processes per engine for the first-answer time")
    parser.add_argument("--networks", nargs="+", help="only these")
    parser.add_argument("--first-answer", action="store_true", help="fresh processes and memory alone")
    parser.add_argument("--runs", type=int, default=5, help="with --first-answer: runs behind the first one")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    environment.add_arguments(parser, rounds=15)
    return parser.parse_args()


if __name__ == "__main__":
    parsed_arguments()
    environment.enter()

import certificate  # noqa: E402
import engines  # noqa: E402
from engines import Helper  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

SHARED = {name: f"models/{name}/{name}.onnx" for name in
          ("squeezenet1.1", "mobilenetv2", "mobilenetv2-int8", "mobilenetv2-int8-qdq", "yolox-nano")}
MADE = ["resnet50", "vgg16"]  # written by build/release/bench/make_network
TURN_SECONDS = 0.3   # of one engine's turn in a round


def compare(name, model, inputs, threads, arguments, scratch):
    """One row: agreement, interleaved times, first answers."""
    commands = engines.commands_of(shlex.split(arguments.sparkle), model, inputs, threads, arguments.unit)
    fresh = {engine: [] for engine in commands}
    for i in range(arguments.fresh):
        for engine in list(commands)[::-1 if i % 2 else 1]:
            helper = Helper(engine, commands[engine], scratch / "helpers.log")
            fresh[engine].append(helper.start_up)
            helper.close()
    outputs = len(onnx.load(str(model), load_external_data=False).graph.output)
    compared = engines.compare_in_turns(commands, outputs, "int8" in name, scratch, arguments.rounds, TURN_SECONDS)
    row = {"network": name, "threads": threads, "dtype": "float32", **compared}
    if row["agree"]:
        for engine in fresh:
            del row[engine]["start"]
            row[engine]["first_answer"] = {key: statistics.median(f[key] for f in fresh[engine]) for key in fresh[engine][0]}
    return row


def first_answers(name, model, inputs, threads, arguments, scratch):
    """One row of --first-answer: medians of fresh processes, taken in turn."""
    log = scratch / "helpers.log"
    flags = ["--threads", str(threads)] + [w for f in inputs for w in ("--input", str(f))]
    sparkle = shlex.split(arguments.sparkle)
    compiled = scratch / f"{name}.sparkle"
    shapes = []
    for declared, file in zip(onnx.load(str(model), load_external_data=False).graph.input, inputs):
        shapes += ["--shape", declared.name + "=" + "x".join(str(d) for d in onnx.load_tensor(str(file)).dims)]
    subprocess.run([*sparkle, "compile", str(model), "-o", str(compiled), "--threads", str(threads), *shapes], check=True,
                   stdout=subprocess.DEVNULL)
    own = [*sparkle, "bench", "--serve", *flags, "--model"]
    peer = engines.commands_of(sparkle, model, inputs, threads)["onnxruntime"]
    probe = Helper("onnxruntime", peer, log)
    probe.close()
    budget = probe.start_up["peak_bytes"] - probe.start_up["import_bytes"]
    commands = {"sparkle": [*own, str(model)], "compiled": [*own, str(compiled)],
                "budget": [*own, str(model), "--memory-budget", str(budget)], "onnxruntime": peer}
    samples = {engine: [] for engine in commands}
    for i in range(arguments.fresh):
        for engine in list(commands)[::-1 if i % 2 else 1]:
            helper = Helper(engine, commands[engine], log)
            times = helper.run(arguments.runs)
            samples[engine].append(dict(helper.start_up, then_ms=statistics.median(times)))
            helper.close()
    compiled_bytes = compiled.stat().st_size
    compiled.unlink()
    row = {"network": name, "threads": threads, "model_bytes": model.stat().st_size, "compiled_bytes": compiled_bytes,
           "budget_bytes": budget}
    for engine, taken in samples.items():
        row[engine] = {key: statistics.median(s[key] for s in taken) for key in taken[0]}
    explained = json.loads(subprocess.run([*sparkle, "explain", "--json", str(model), "--threads", str(threads), *shapes,
                                           "--memory-budget", str(budget)], check=True, capture_output=True, text=True).stdout)
    row["budget"].update({key: explained[key] for key in ("budget_steps", "budget_lost_ms")})
    peer_ms = row["onnxruntime"]["load_ms"] + row["onnxruntime"]["first_ms"]
    # Ours from the start of the process, the peer's without its Python; below 1: ours is faster, or smaller.
    row["first_answer_ratio"] = row["compiled"]["process_ms"] / peer_ms
    row["memory_ratio"] = row["sparkle"]["peak_bytes"] / budget
    ms = {engine: row[engine]["process_ms"] for engine in ("compiled", "sparkle")}
    mib = {engine: row[engine]["peak_bytes"] / 2**20 for engine in ("compiled", "sparkle", "budget")}
    then = {engine: row[engine]["then_ms"] for engine in ("compiled", "sparkle", "budget")}
    print(f"{name}, threads {threads}")
    print(f"  first answer, ms  compiled {ms['compiled']:.1f}, model {ms['sparkle']:.1f}, onnxruntime {peer_ms:.1f}; "
          f"compiled / onnxruntime {row['first_answer_ratio']:.2f}")
    print(f"  peak, MiB         compiled {mib['compiled']:.0f}, model {mib['sparkle']:.0f}, onnxruntime {budget / 2**20:.0f}; "
          f"model / onnxruntime {row['memory_ratio']:.2f}")
    print(f"  later runs, ms    compiled {then['compiled']:.2f}, model {then['sparkle']:.2f}")
    print(f"  with a budget of what onnxruntime took: {mib['budget']:.0f} MiB, {row['budget']['budget_steps']} steps smaller, "
          f"predicted {row['budget']['budget_lost_ms']:.2f} ms lost, measured {then['budget'] - then['sparkle']:.2f}",
          flush=True)
    return row


def first_answer_ms(engine):
    """Model to first output inside the process; the peer's Python start and imports are left out."""
    return engine["first_answer"]["load_ms"] + engine["first_answer"]["first_ms"]


def networks(arguments):
    """(name, model file, input files) of each network at hand; says which are not and why."""
    for name, path in SHARED.items():
        model = arguments.data / path
        if model.is_file():
            inputs = sorted((model.parent / "test_data_set_0").glob("input_*.pb"))
            yield name, model, inputs
        else:
            print(f"SKIP  {name}: there is no {os.path.relpath(model, ROOT)}")
    for name in MADE:
        tool = ROOT / "build" / "release" / "bench" / "make_network"
        if not tool.is_file():
            print(f"SKIP  {name}: {tool.relative_to(ROOT)} is not built")
            continue
        folder = ROOT / "build" / "bench" / name
        folder.mkdir(parents=True, exist_ok=True)
        model, file = folder / f"{name}.onnx", folder / "input_0.pb"
        subprocess.run([tool, name, model], check=True, stdout=subprocess.DEVNULL)
        declared = onnx.load(str(model)).graph.input[0].type.tensor_type.shape.dim
        shape = [d.dim_value or 1 for d in declared]
        values = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
        file.write_bytes(numpy_helper.from_array(values).SerializeToString())
        yield name, model, [file]


def output_of(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def certified(arguments):
    """The certificate, and what else it takes to do the same again."""
    import onnxruntime
    made = certificate.certificate(
        shlex.split(arguments.sparkle), certificate.command_of("bench/compare_onnxruntime.py", sys.argv[1:]),
        {"onnxruntime": onnxruntime.__version__, "numpy": np.__version__, "python": sys.version.split()[0],
         "kernel": os.uname().release})
    described = json.loads(output_of(*shlex.split(arguments.sparkle), "devices", "--json") or "null")
    if described and "source" in described:
        described["source"] = described["source"].split(", kept in")[0]  # a folder of this machine
    return made, {
        "device": described,
        "settings": {"batch": 1, "rounds": arguments.rounds, "fresh_processes": arguments.fresh, "turn_seconds": TURN_SECONDS,
                     "unit": arguments.unit or "the widest", "onnxruntime_unit": "the widest",
                     "onnxruntime": "all optimisations, sequential, spinning allowed, inputs and outputs bound"},
    }


def print_row(row):
    if not row["agree"]:
        print(f"FAILED  {row['network']}, {row['threads']} threads: outputs differ by {row['max_error_relative']:.2e} "
              f"of the largest value")
        return
    a, b = row["sparkle"], row["onnxruntime"]
    low, high = row["time_ratio_quartiles"]
    print(f"{row['network']:<20} {row['threads']:>7} {a['median_ms']:>9.2f} {a['p95_ms']:>9.2f} {b['median_ms']:>9.2f} "
          f"{b['p95_ms']:>9.2f} {row['time_ratio']:>6.3f} {low:>6.3f}-{high:.3f} {first_answer_ms(a):>9.1f} "
          f"{first_answer_ms(b):>9.1f}  {row['max_error_relative']:.1e}", flush=True)


def main():
    arguments = parsed_arguments()
    scratch = ROOT / "build" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    made, result = certified(arguments)
    rows = result["rows"] = []
    measure = first_answers if arguments.first_answer else compare
    if not arguments.first_answer:
        print(f"{'network':<20} {'threads':>7} {'sparkle':>9} {'p95':>9} {'onnxrt':>9} {'p95':>9} {'ratio':>6} "
              f"{'quartiles':>12} "
              f"{'first':>9} {'onnxrt':>9}  error   (ms; ratio below 1: Sparkle is faster)")
    for name, model, inputs in networks(arguments):
        for threads in arguments.threads:
            if arguments.networks is None or name in arguments.networks:
                rows.append(measure(name, model, inputs, threads, arguments, scratch))
                if not arguments.first_answer:
                    print_row(rows[-1])
    if not rows:
        sys.exit("No network was at hand, nothing was measured.")
    kind = "first_answers" if arguments.first_answer else "networks"
    unit = f"_{arguments.unit}" if arguments.unit else ""
    certificate.store(arguments.output or certificate.RESULTS / f"{kind}_{certificate.label(made)}{unit}.json", made, result)
    sys.exit(0 if all(row.get("agree", True) for row in rows) else 1)


if __name__ == "__main__":
    main()
