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
    wrong = []

    def count(test, kind, text=""):
        name = re.sub(r"_cpu$", "", test.id().split(".")[-1])
        if "CUDA" in text:
            return
        for op in ops.get(name, ["(models)"]):
            rows[op][kind] += 1
        rows["all tests"][kind] += 1

    for t in result.passes:
        count(t, "passed")
    for t, text in result.failures + result.errors:
        count(t, "failed", text)
        wrong.append((t.id().split(".")[-1], text.strip().splitlines()[-1][:160]))
    for t, text in result.skipped:
        count(t, "skipped", text)
        if "CUDA" not in text:
            reasons[re.sub(r"Node '[^']*' ", "", re.sub(r"tensor '[^']*'", "a tensor", text))[:120]] += 1

    lines = ["# The official ONNX test runner", "",
             f"`onnx.backend.test` of onnx {onnx.__version__} over sparkle {sparkle.__version__} on a CPU, by "
             "`tests/python/onnx_backend_report.py`. Skipped tests say why below; operators in the order of the alphabet.", "",
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
