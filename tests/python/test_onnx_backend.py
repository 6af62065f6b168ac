"""The backend for the onnx package: inputs reach the session as they were given."""
import pathlib
import unittest

import numpy as np
import onnx
import pytest

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
