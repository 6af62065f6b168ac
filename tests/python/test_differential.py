"""The differential tests themselves (tests/differential): every operator that Sparkle serves has cases, a case is its seed's,
and a wrong answer of any kind is seen, shrunk and saved."""
import pathlib
import sys
import warnings

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

pytest.importorskip("onnxruntime")
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "differential"))

import engines  # noqa: E402
import errors  # noqa: E402
import graphs  # noqa: E402
import judge  # noqa: E402
import operators  # noqa: E402
import patterns  # noqa: E402
import run  # noqa: E402
import shrink  # noqa: E402

warnings.simplefilter("ignore")


def case_of(operator, seeds=range(40), wanted=lambda case: True):
    for seed in seeds:
        case = operators.operator_case(seed, operator)
        if case is not None and wanted(case):
            return case
    raise AssertionError(f"no case of {operator} among these seeds")


def test_every_supported_operator_has_cases():
    supported = operators.supported_operators()
    assert len(supported) > 130
    lacking = [o for o in supported if o not in operators.FAMILIES and o not in operators.WITHOUT_CASES]
    assert not lacking, "add a generator in tests/differential/generators/ops_*.py, or the reason to WITHOUT_CASES"
    assert not set(operators.WITHOUT_CASES) - set(supported)
    assert not set(operators.FAMILIES) - set(supported), "a generator of an operator that the reader does not know"


def test_every_generator_makes_cases_with_a_bound():
    for operator in operators.FAMILIES:
        assert operator.split(".")[-1] in errors.RULES, f"{operator} has no rule in tests/differential/errors.py"
        case = case_of(operator)
        assert operator.split(".")[-1] in {n.op_type for n in case.model.graph.node}
    for pattern in patterns.PATTERNS:
        assert patterns.pattern_case(3, pattern).model.graph.node


def test_all_element_types_and_opsets_come_up():
    types, opsets = set(), set()
    for seed in range(3000):
        case = operators.operator_case(seed)
        if case is not None:
            opsets.add(case.opset)
            types |= {np.asarray(a).dtype.name for a in case.feeds[0].values()}
    assert opsets == set(range(1, 25))
    assert types >= {"float32", "float64", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                     "int64", "uint64", "int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"}


def test_a_seed_is_a_case():
    for seed in (1, 2, 3, 4, 5, 12, 14):
        first, second = run.make(seed, None, None), run.make(seed, None, None)
        assert first.model.SerializeToString() == second.model.SerializeToString()
        for name, array in first.feeds[0].items():
            np.testing.assert_array_equal(array.view(np.uint8) if array.ndim else array,
                                          second.feeds[0][name].view(np.uint8) if array.ndim else second.feeds[0][name])
        run.choose_options(first), run.choose_options(second)
        assert first.options == second.options


def planted(change):
    """Sparkle's answers with the first output changed."""
    real = engines.in_process

    def answers(case):
        outputs = real(case)
        outputs[0][0] = change(np.array(outputs[0][0]))
        return outputs
    return answers


def first_element(value):
    def change(array):
        array.reshape(-1)[:1] = value(array.reshape(-1)[:1])
        return array
    return change


# What a wrong kernel may do, and an operator whose outputs show it.
PLANTED = {
    "one element, a part in a thousand": ("MatMul", first_element(lambda v: v * 1.001 + 1e-3)),
    "one element, a part in ten thousand": ("Softmax", first_element(lambda v: v * 1.0001)),
    "NaN": ("Conv", first_element(lambda v: np.nan)),
    "the whole integer beside": ("MatMulInteger", first_element(lambda v: v + 1)),
    "zeros": ("Sigmoid", np.zeros_like),
    "another shape": ("Transpose", lambda a: a[None]),
    "another type": ("Exp", lambda a: a.astype(np.float64 if a.dtype != np.float64 else np.float32)),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_wrong_answer_is_seen(monkeypatch, what):
    operator, change = PLANTED[what]
    case = case_of(operator, wanted=lambda c: all(a.size and a.dtype in (np.float32, np.uint8, np.int8)
                                                  for a in c.feeds[0].values()) and judge.judge(c).outcome == "agrees")
    monkeypatch.setattr(engines, "in_process", planted(change))
    assert judge.judge(case).outcome == "failed"


def test_a_finding_is_shrunk_and_saved(monkeypatch, tmp_path):
    """Sigmoid is planted wrong: of a graph that has one little more remains."""
    real = engines.in_process

    def wrong_sigmoid(case):
        outputs = real(case)
        if any(n.op_type == "Sigmoid" for n in case.model.graph.node):
            outputs[0] = [np.asarray(o) + np.asarray(1, o.dtype) for o in outputs[0]]
        return outputs
    case = next(c for c in map(graphs.graph_case, range(300)) if c is not None and len(c.model.graph.node) > 5 and
                len(c.model.graph.output) == 1 and any(n.op_type == "Sigmoid" for n in c.model.graph.node) and
                judge.judge(c).outcome == "agrees")
    monkeypatch.setattr(engines, "in_process", wrong_sigmoid)
    verdict = judge.judge(case)
    assert verdict.outcome == "failed"
    shrink.saved(case, tmp_path, verdict)
    (place,) = tmp_path.iterdir()
    least = onnx.load(place / "model.onnx")
    assert [n.op_type for n in least.graph.node] == ["Sigmoid"]
    stored = onnx.TensorProto.FromString((place / "test_data_set_0" / "output_0.pb").read_bytes())
    assert (np.abs(numpy_helper.to_array(stored)) <= 1).all()
    assert f"--case {case.seed}" in (place / "case.txt").read_text()


def test_an_unrecorded_dispute_fails(monkeypatch):
    """ONNX Runtime against the evaluator: without a reason in disputes.py that is no pass."""
    case = case_of("Exp", wanted=lambda c: judge.judge(c).detail == "" and next(iter(c.feeds[0].values())).size)
    monkeypatch.setattr(judge, "run_peer", lambda c: [[np.asarray(o) * 0 - 7 for o in f] for f in engines.run_peer(c)])
    verdict = judge.judge(case)
    assert verdict.outcome == "failed" and "dispute" in verdict.detail
