#!/usr/bin/env python3
"""The official test runner of the onnx package (onnx.backend.test, test data of the newest release) over Sparkle: writes
docs/onnx-backend.md with a row for each operator. Run it in an environment with sparkle and onnx installed. Exit 1 if a result
was wrong."""
import collections
import pathlib
import re
import unittest
import warnings

import onnx
import onnx.backend.test

import sparkle
import sparkle.onnx_backend

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Collected(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passes = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passes.append(test)


def operators():
    """Test name -> its operators, from the models of the runner."""
    from onnx.backend.test.loader import load_model_tests
    table = {}
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = case.model or onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
            table[case.name] = sorted({n.op_type for n in model.graph.node})
    return table


def main():
    warnings.simplefilter("ignore")
    runner = onnx.backend.test.BackendTest(sparkle.onnx_backend, __name__).exclude("_cuda")
    suite = unittest.TestSuite()
    for case in runner.test_cases.values():
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = Collected()
    suite.run(result)
    ops = operators()
    rows = collections.defaultdict(lambda: collections.Counter())
    reasons = collections.Counter()
    wrong, counted = [], []

    def count(test, kind, text=""):
        name = re.sub(r"_cpu$", "", test.id().split(".")[-1])
        if "_cuda" in test.id():
            return
        for op in ops.get(name, ["(models)"]):
            rows[op][kind] += 1
        rows["all tests"][kind] += 1
        counted.append((name, kind, text))

    for t in result.passes:
        count(t, "passed")
    for t, text in result.failures + result.errors:
        count(t, "failed", text)
        wrong.append((t.id().split(".")[-1], text.strip().splitlines()[-1][:160]))
    for t, text in result.skipped:
        count(t, "skipped", text)
        if "_cuda" not in t.id():
            text = re.sub(r"'model in memory': tensor '[^']*' has", "a tensor has", text)
            reasons[re.sub(r"Node '[^']*' ", "", re.sub(r"'model in memory': tensor '[^']*'", "a tensor", text))[:120]] += 1

    # Operators that are served: those with a test that passes. Tests of types that Sparkle does not have count apart.
    served = {op for op, row in rows.items() if row["passed"]}
    of_served = [(kind, text) for name, kind, text in counted if served.issuperset(ops.get(name, ["(models)"]))]
    of_types = [kind for kind, text in of_served if "has element type" not in text and "not declared as a tensor" not in text]

    def share(kinds, what):
        good = sum(kind == "passed" for kind in kinds)
        return f"- {what}: {good} of {len(kinds)} pass, {100 * good / len(kinds):.1f} %."

    lines = ["# The official ONNX test runner", "",
             f"`onnx.backend.test` of onnx {onnx.__version__} over sparkle {sparkle.__version__} on a CPU, by "
             "`tests/python/onnx_backend_report.py`. A test passes, fails (the answer is wrong) or is skipped (refused with a "
             "sentence; see below).", "",
             share([kind for _, kind, _ in counted], "All tests"),
             share([kind for kind, _ in of_served], "Tests whose operators Sparkle serves"),
             share(of_types, "Of those, tests of tensors with element types that it has "
                   "([element_types.md](element_types.md); not float8, float4, 4- and 2-bit integers, strings)"), "",
             "Answers that are wrong: " + (f"{len(wrong)}, listed below." if wrong else "none."), "",
             "| operator | passed | failed | skipped |", "|---|---:|---:|---:|"]
    for op in ["all tests"] + sorted(set(rows) - {"all tests"}):
        r = rows[op]
        lines.append(f"| {op} | {r['passed']} | {r['failed']} | {r['skipped']} |")
    lines += ["", "## Why tests were skipped", "", "| tests | reason |", "|---:|---|"]
    lines += [f"| {n} | {reason.replace('|', '/')} |" for reason, n in reasons.most_common()]
    if wrong:
        lines += ["", "## What failed", ""] + [f"- `{name}`: {text}" for name, text in wrong]
    (ROOT / "docs" / "onnx-backend.md").write_text("\n".join(lines) + "\n")
    total = rows["all tests"]
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
