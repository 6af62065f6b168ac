"""The backend for the onnx package: inputs reach the session as they were given."""
import pathlib
import unittest

import numpy as np
import onnx
import pytest

import onnx_backend_report
import sparkle
from sparkle import onnx_backend

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models" / "upscale2x.onnx"


@pytest.fixture(scope="module")
def prepared():
    return onnx_backend.prepare(onnx.load(MODEL))


def test_runs_like_a_session(prepared):
    x = np.ones((1, 3, 4, 5), np.float32)
    expected = sparkle.Session(MODEL).run(x)[0]
    for inputs in (x, [x], (x,)):
        np.testing.assert_array_equal(prepared.run(inputs)[0], expected)


@pytest.mark.parametrize("count", [0, 2])
def test_other_numbers_of_inputs_are_refused(prepared, count):
    with pytest.raises(sparkle.BadInput, match=f"takes 1 input, {count} w"):
        prepared.run([np.ones((1, 3, 4, 5), np.float32)] * count)


@pytest.mark.parametrize("value", [[1.0], {"a": 1.0}, None])
def test_what_is_no_tensor_is_skipped(prepared, value):
    with pytest.raises(unittest.SkipTest):
        prepared.run([value])


# The page says of these tests that their own values are not the operator's: so it is, and Sparkle's are.
@pytest.mark.parametrize("name", sorted(onnx_backend_report.EXPECTATIONS))
def test_disputed_values_are_shown_to_be(name):
    case = next(c for c in onnx_backend_report.node_cases() if c.name == name)
    assert "values are not the operator's" in onnx_backend_report.disputed(case)
    # What is wrong stays so: an answer is held against the true values, not excused by the test's name.
    true = onnx_backend_report.EXPECTATIONS[name][0](*case.data_sets[0][0])
    ours = onnx_backend.prepare(case.model).run(case.data_sets[0][0])[0]
    assert np.max(onnx_backend_report.off(ours, true, case)) <= 1
    case.data_sets[0][1][0] = true
    assert onnx_backend_report.disputed(case) is None
    # NumPy's own transform in double precision is the sum's.
    x = case.data_sets[0][0][0].astype(np.float64)
    y = np.fft.ifft(x[..., 0] + 1j * x[..., 1], axis=1)
    np.testing.assert_allclose(np.stack((y.real, y.imag), -1), true, rtol=1e-12, atol=1e-12)
