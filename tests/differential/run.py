#!/usr/bin/env python3
"""Random models against the exact value and ONNX Runtime: tests/differential/run.py SECONDS [--seed N] [--kind KIND]
[--operator NAME] [--case N] [--most N]. Cases have consecutive seeds from N on, --most that many; --case runs one again, alone.
A process of its own does the work, so that a crash is a finding and not the end. Failing cases are shrunk and saved under
build/differential. Closes with cases per kind and 'N passed, N failed, N skipped'."""
import argparse
import collections
import json
import multiprocessing
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
ROOT = pathlib.Path(__file__).resolve().parents[2]
SAVED = ROOT / "build" / "differential"
CASE_SECONDS = 60


def make(seed, kind, operator):
    """The case of a seed. Without a choice: operators six times of ten, graphs and patterns two times each."""
    import graphs
    import operators
    import patterns
    if operator:
        return operators.operator_case(seed, operator)
    kind = kind or ("operator", "operator", "graph", "operator", "pattern")[seed % 5]
    return {"operator": operators.operator_case, "graph": graphs.graph_case, "pattern": patterns.pattern_case}[kind](seed)


def choose_options(case):
    """From the seed as well, but not from the dice that made the model: options change no model."""
    import random

    from algorithms import FORCED
    from case import Options
    dice = random.Random(case.seed * 7919 + 1)
    ops = {n.op_type for n in case.model.graph.node}
    options = Options(threads=dice.choice((1, 1, 2, 3)))
    if ops & {"Conv", "ConvTranspose", "MatMul", "Gemm"} and dice.random() < 0.4:
        options.algorithm = dice.choice(FORCED)
    if dice.random() < 0.1 and len(case.feeds) == 1:
        options.compiled = True
    elif case.kind != "operator" and dice.random() < 0.06:
        options.fusion = dice.choice(("none", "inverted"))
    case.options = options


def work(arguments, first, out):
    """In its own process, through a pipe (what was sent before a crash arrives): a row (seed, stage) before each engine, a row
    (seed, kind, name, opset, outcome, detail) per case."""
    import judge
    import shrink
    end = time.monotonic() + arguments["seconds"]
    seed = first
    while time.monotonic() < end and seed < arguments["stop"]:
        out.send(("at", seed, "generator"))
        try:
            case = make(seed, arguments["kind"], arguments["operator"])
            if case is None:  # its dice made nothing that depends on an input
                row = None
            else:
                choose_options(case)
                verdict = judge.judge(case, lambda stage: out.send(("at", seed, stage)))
                detail = verdict.detail
                if verdict.outcome == "failed":
                    out.send(("at", seed, "shrinker"))
                    detail += "\n        " + shrink.saved(case, SAVED, verdict)
                row = (case.kind, case.name, case.opset, verdict.outcome, detail)
        except Exception:  # of these tools: to be mended as much as any other
            row = ("tool", "none", 0, "failed", "the tools fail: " + traceback.format_exc(limit=-4))
        if row:
            out.send(("row", seed, row))
        seed += 1
        if arguments["case"] is not None:
            break
    out.send(("end", seed, None))


class Totals:
    def __init__(self, say):
        self.say, self.rows, self.operators = say, collections.Counter(), collections.Counter()
        self.reasons, self.failed = collections.Counter(), 0

    def add(self, seed, kind, name, opset, outcome, detail):
        self.rows[kind, outcome] += 1
        self.operators[name] += kind == "operator"
        if outcome in ("refused", "disputed", "skipped"):
            self.reasons[outcome, " ".join(detail.split())[:150] if outcome != "refused" else name] += 1
        if outcome == "failed":
            self.failed += 1
            self.say(f"FAILED  seed {seed}: {kind} {name}, opset {opset}: {detail}")

    def print(self):
        for (outcome, reason), count in sorted(self.reasons.items()):
            self.say(f"{outcome:9} {count:6}  {reason}")
        for kind in sorted({k for k, _ in self.rows}):
            counts = ", ".join(f"{c} {o}" for (k, o), c in sorted(self.rows.items()) if k == kind)
            self.say(f"{kind}: {counts}")
        passed = sum(c for (_, o), c in self.rows.items() if o in ("agrees", "disputed"))
        skipped = sum(c for (_, o), c in self.rows.items() if o in ("refused", "skipped"))
        self.say(f"{sum(self.rows.values())} cases, {len([o for o in self.operators if self.operators[o]])} operators alone")
        self.say(f"{passed} passed, {self.failed} failed, {skipped} skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=("operator", "graph", "pattern"))
    parser.add_argument("--operator")
    parser.add_argument("--case", type=int)
    parser.add_argument("--most", type=int, default=10**12, help="cases: the same ones on any machine that is fast enough")
    given = parser.parse_args()
    arguments = {"seconds": given.seconds, "kind": given.kind, "operator": given.operator, "case": given.case}
    seed = given.seed if given.case is None else given.case
    arguments["stop"] = seed + given.most
    print(f"seeds from {seed} on; one again: scripts/differential --case SEED", flush=True)
    totals, end = Totals(lambda text: print(text, flush=True)), time.monotonic() + given.seconds
    context = multiprocessing.get_context("spawn")
    while True:
        rows, out = context.Pipe(duplex=False)
        arguments["seconds"] = max(0.0, end - time.monotonic())
        worker = context.Process(target=work, args=(arguments, seed, out), daemon=True)
        worker.start()
        out.close()  # the worker's own is the only one: its end is seen
        at, stage, done = seed, "start", False
        while True:
            try:
                if not rows.poll(CASE_SECONDS):
                    break
                what, at_now, value = rows.recv()
            except EOFError:  # it ended
                worker.join(5)
                break
            at = at_now
            if what == "at":
                stage = value
            elif what == "row":
                totals.add(at, *value)
            else:
                done = True
                break
        if done:
            break
        ended = worker.exitcode
        worker.kill()
        totals.add(at, "crash", stage, 0, "failed" if stage != "peer" else "skipped",
                   f"{stage} ended the process (status {ended})" if ended is not None else
                   f"{stage} took more than {CASE_SECONDS} s")
        seed = at + 1
        if given.case is not None or time.monotonic() > end or seed >= arguments["stop"]:
            break
    if not totals.rows:
        totals.add(seed, "tool", "none", 0, "failed", "no case was run")
    totals.print()
    SAVED.mkdir(parents=True, exist_ok=True)
    (SAVED / "operators.json").write_text(json.dumps(totals.operators, indent=1, sort_keys=True))
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
