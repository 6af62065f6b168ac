#!/usr/bin/env python3
"""The official test runner of the onnx package (onnx.backend.test, test data of the newest release) over Sparkle: writes
docs/onnx-backend.md with a row for each operator. Run it in an environment with sparkle and onnx installed:
tests/python/onnx_backend_report.py [OPERATORS.txt]; tests of no other operators than those (conformance_operators.txt beside it
unless given) count apart. A test whose own values miss the operator's is told apart from a wrong answer by computing these
in double precision (EXPECTATIONS). Exit 1 if an answer was wrong."""
import collections
import pathlib
import re
import sys
import unittest
import warnings

import numpy as np
import onnx
import onnx.backend.test

import sparkle
import sparkle.onnx_backend

ROOT = pathlib.Path(__file__).resolve().parents[2]


def inverse_dft(x, axis=1):
    """The operator's values in double precision, as the sum that defines it; `x` is real and imaginary parts in its last
    axis."""
    z = x[..., 0].astype(np.float64) + 1j * x[..., 1].astype(np.float64)
    n = z.shape[axis]
    # Powers of the root by their remainders: none is rounded more than another.
    root = np.exp(2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n)
    y = np.moveaxis(np.tensordot(z, root, axes=([axis], [0])), -1, axis) / n
    return np.stack((y.real, y.imag), -1)


# Tests whose own values miss the operator's by more than the tests allow: the values in double precision from the test's
# inputs, and why the test has others. An answer is held against these, and is wrong where it misses them too.
FLOAT_FFT = "NumPy's transform in float, which gives 1.9e-07 where the operator's sum is 0, and the tests allow 1e-07 there"
EXPECTATIONS = {name: (lambda x, *_: inverse_dft(x), FLOAT_FFT) for name in ("test_dft_inverse", "test_dft_inverse_opset19")}


def node_cases():
    from onnx.backend.test.loader import load_model_tests
    return load_model_tests(kind="node")


def off(values, true, case):
    """What each of `values` misses `true` by, in parts of what the test allows there: more than 1 is wrong."""
    return np.abs(np.asarray(values, np.float64) - true) / (case.atol + case.rtol * np.abs(true))


def disputed(case):
    """None unless the test's own values miss the operator's by more than the test allows while Sparkle's do not; else a line
    that says so with the figures."""
    if case.name not in EXPECTATIONS:
        return None
    values, why = EXPECTATIONS[case.name]
    inputs, outputs = case.data_sets[0]
    true = values(*inputs)
    of_test = off(outputs[0], true, case)
    ours = off(sparkle.onnx_backend.prepare(case.model).run(inputs)[0], true, case)
    if not np.max(of_test) > 1 or not np.max(ours) <= 1:
        return None
    return (f"{np.sum(of_test > 1)} of its {true.size} values are not the operator's. They come from {why}. Against the sum "
            "in double precision, which defines the operator, the test's values are off by up to "
            f"{np.max(of_test):.1f} times what the test allows, the answers here by up to {np.max(ours):.2f} times that.")


class Collected(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passes = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passes.append(test)


def kind_of_type(number):
    """What the document calls an element type that Sparkle does not have; None for those that it has."""
    return {"STRING": "strings", "FLOAT6E2M3": "float6", "FLOAT6E3M2": "float6", "COMPLEX64": "complex numbers",
            "COMPLEX128": "complex numbers"}.get(onnx.TensorProto.DataType.Name(number))


def kinds_of_types(model):
    """The unsupported element types among what a model declares, stores and produces, also in sequences and optional values."""
    def of_declared(declared):
        kind = declared.WhichOneof("value")
        if kind in ("tensor_type", "sparse_tensor_type"):
            return {getattr(declared, kind).elem_type}
        if kind in ("sequence_type", "optional_type"):
            return of_declared(getattr(declared, kind).elem_type)
        return set()

    graph = model.graph
    numbers = {i.data_type for i in graph.initializer}
    for value in [*graph.input, *graph.output, *graph.value_info]:
        numbers |= of_declared(value.type)
    for attribute in (a for node in graph.node for a in node.attribute):
        if attribute.type == attribute.TENSOR:
            numbers.add(attribute.t.data_type)
        elif attribute.type == attribute.INT and attribute.name in ("to", "dtype", "output_dtype"):
            numbers.add(attribute.i)
        elif attribute.name in ("value_string", "value_strings"):
            numbers.add(onnx.TensorProto.STRING)
    return {kind_of_type(n) for n in numbers} - {None}


def tests_of_runner():
    """Test name -> (its operators, its unsupported element types), from the models of the runner."""
    from onnx.backend.test.loader import load_model_tests
    table = {}
    for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            model = case.model or onnx.load(pathlib.Path(case.model_dir) / "model.onnx")
            table[case.name] = (sorted({n.op_type for n in model.graph.node}), kinds_of_types(model))
    return table


def shortened(reason):
    """A reason without the names of one test's nodes and tensors, so that equal reasons count together."""
    reason = reason.split("\n", 1)[0].replace("'model in memory': ", "").replace("'model in memory' has", "a model with")
    reason = re.sub(r"tensor '[^']*'(: it)?", "a tensor", re.sub(r"[Nn]ode '[^']*' ", "", reason))
    return re.sub(r"; export [^;]* without (it|them)\.$", ".", reason)[:120]


def of_listed(listed, counted, table, wrong):
    """Lines about the tests that use only the operators of `listed`. `counted`: (test, passed, failed or skipped, reason);
    `wrong`: (test, reason) of answers that are."""
    chosen = [c for c in counted if c[0] in table and listed.issuperset(table[c[0]][0])]
    with_types = [(c[1], table[c[0]][1]) for c in chosen]
    supported = [kind for kind, types in with_types if not types]
    types = collections.Counter(" and ".join(sorted(t)) for _, t in with_types if t)
    # Reasons of steps begin with their operator in brackets, those of the model's own inputs and outputs do not.
    def of_step(reason):
        return re.match(r"('model in memory': )?[Nn]ode '", reason)

    forms = collections.Counter(shortened(reason if of_step(reason) else f"({', '.join(table[name][0])}): {reason}")
                                for name, kind, reason in chosen if kind == "skipped" and not table[name][1])
    kinds = [kind for _, kind, _ in chosen]
    names = {name for name, _ in wrong}
    wrong = sum(name in names for name, _, _ in chosen) or "none"
    good = supported.count("passed")
    lines = ["## Tests of the conformance list's operators", "",
             f"Tests that use only the {len(listed)} operators of the conformance list: {kinds.count('passed')} of "
             f"{len(kinds)} pass, {100 * kinds.count('passed') / len(kinds):.1f} %, {wrong} wrong; without tensors of strings: "
             f"{good} of {len(supported)} pass, {100 * good / len(supported):.1f} %.", "",
             "The list is `tests/python/conformance_operators.txt`: the operators in the index of the conformance set that "
             "`scripts/test` runs. The element types are those of [element_types.md](element_types.md).", "",
             "Unsupported forms of these operators (what is not declared as a tensor is a sequence or an optional value):",
             "", "| tests | form |", "|---:|---|"]
    lines += [f"| {n} | {form.replace('|', '/')} |" for form, n in forms.most_common()]
    lines += ["", "and the types:", "", "| tests | element types |", "|---:|---|"]
    return lines + [f"| {n} | {name} |" for name, n in types.most_common()] + [""]


def main():
    warnings.simplefilter("ignore")
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("conformance_operators.txt")
    listed = {line for line in file.read_text().split("\n") if line and not line.startswith("#")}
    runner = onnx.backend.test.BackendTest(sparkle.onnx_backend, __name__).exclude("_cuda")
    suite = unittest.TestSuite()
    for case in runner.test_cases.values():
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    result = Collected()
    suite.run(result)
    table = tests_of_runner()
    ops = {name: operators for name, (operators, _) in table.items()}
    rows = collections.defaultdict(lambda: collections.Counter())
    reasons = collections.Counter()
    cases = {case.name: case for case in node_cases() if case.name in EXPECTATIONS}
    wrong, others, counted = [], [], []

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
        name = counted[-1][0]
        dispute = disputed(cases[name]) if name in cases else None
        if dispute:
            others.append((name, dispute))
        else:
            wrong.append((name, text.strip().splitlines()[-1][:160]))
    for t, text in result.skipped:
        count(t, "skipped", text)
        if "_cuda" not in t.id():
            reasons[shortened(text)] += 1

    # Operators that are supported: those with a test that passes. Tests of types that Sparkle does not have count apart.
    supported = {op for op, row in rows.items() if row["passed"]}
    of_these = [(kind, text) for name, kind, text in counted if supported.issuperset(ops.get(name, ["(models)"]))]
    of_types = [kind for kind, text in of_these if "has element type" not in text and "not declared as a tensor" not in text]

    def share(kinds, what):
        good = sum(kind == "passed" for kind in kinds)
        return f"- {what}: {good} of {len(kinds)} pass, {100 * good / len(kinds):.1f} %."

    lines = ["# The official ONNX test runner", "",
             f"`onnx.backend.test` of onnx {onnx.__version__} over sparkle {sparkle.__version__} on a CPU, by "
             "`tests/python/onnx_backend_report.py`. A test passes, fails (the answer is not the test's) or is skipped "
             "(refused with a sentence; see below).", "",
             share([kind for _, kind, _ in counted], "All tests"),
             share([kind for kind, _ in of_these], "Tests whose operators Sparkle supports"),
             share(of_types, "Of those, tests of tensors with element types that it has "
                   "([element_types.md](element_types.md); not strings)"), "",
             "Answers that are wrong: " + (f"{len(wrong)}, listed below." if wrong else "none.") +
             (f" Tests that fail since their own values are not the operator's: {len(others)}, "
              "[listed below](#tests-whose-own-values-are-not-the-operators)." if others else ""), "",
             *of_listed(listed, counted, table, wrong), "## Each operator", "",
             "| operator | passed | failed | skipped |", "|---|---:|---:|---:|"]
    for op in ["all tests"] + sorted(set(rows) - {"all tests"}):
        r = rows[op]
        lines.append(f"| {op} | {r['passed']} | {r['failed']} | {r['skipped']} |")
    lines += ["", "## Why tests were skipped", "", "| tests | reason |", "|---:|---|"]
    lines += [f"| {n} | {reason.replace('|', '/')} |" for reason, n in reasons.most_common()]
    if wrong:
        lines += ["", "## Answers that are wrong", ""] + [f"- `{name}`: {text}" for name, text in wrong]
    if others:
        lines += ["", "## Tests whose own values are not the operator's", ""] + [f"- `{name}`: {text}" for name, text in others]
    (ROOT / "docs" / "onnx-backend.md").write_text("\n".join(lines) + "\n")
    total = rows["all tests"]
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
