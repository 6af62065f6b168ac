"""Rows of a batch that are not one another's: a model that mixes them is found out by its first batch."""
import pickle

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sparkle
import sparkle.ray
from sparkle._requests import answers_of
from sparkle._together import agree, mixed_output

W = 6


def softmax(axis, rows="n"):
    """Two outputs of ``x``: itself doubled, and a softmax over the axis, 0 of which mixes rows."""
    nodes = [helper.make_node("Add", ["x", "x"], ["twice"]), helper.make_node("Softmax", ["x"], ["share"], axis=axis)]
    shape = [rows, W]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("twice", "share")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()


def rows(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, W), dtype=np.float32)


def runs_of(predictor):
    """The rows of each run of the predictor's session from now on."""
    run, seen = predictor.session.run, []
    predictor.session.run = lambda arrays: seen.append(len(arrays[0])) or run(arrays)
    return seen


@pytest.mark.parametrize("size, way", [("n", r"Run it row by row \(batch_size=1\)"), (4, "Export it for one row")])
def test_a_model_that_mixes_rows_is_named_by_its_output(size, way):
    predictor = sparkle.ray.Predictor(softmax(0, size), "cpu", threads=1)
    for _ in range(2):  # the second is not run again
        seen = runs_of(predictor)
        with pytest.raises(sparkle.BadInput, match=f"mixes the rows .*: its output 'share' .* among 4. {way}, or give check"):
            predictor({"x": rows(4)})
    assert not seen
    if size == 4:  # a row that is filled up to four is no row alone
        with pytest.raises(sparkle.BadInput, match="'share'"):
            predictor({"x": rows(1)})
    with pytest.raises(sparkle.BadInput, match="'share'"):
        pickle.loads(pickle.dumps(predictor))({"x": rows(4)})
    meant = sparkle.ray.Predictor(softmax(0, size), "cpu", threads=1, check_rows=False)
    for one in (meant, pickle.loads(pickle.dumps(meant))):
        np.testing.assert_allclose(one({"x": rows(4)})["share"].sum(axis=0), np.ones(W), rtol=1e-5)


def test_rows_alone_are_right_for_a_model_that_mixes_them():
    predictor = sparkle.ray.Predictor(softmax(0), "cpu", threads=1)
    x = rows(3)
    answers = answers_of(predictor, [{"x": row} for row in x])  # as requests that a deployment gathers
    for row, (answer, error) in zip(x, answers):
        assert error is None
        np.testing.assert_array_equal(answer["twice"], row + row)
        np.testing.assert_array_equal(answer["share"], np.ones(W))


def test_the_first_batch_of_different_rows_is_compared_and_no_other():
    predictor = sparkle.ray.Predictor(softmax(1), "cpu", threads=1)
    seen = runs_of(predictor)
    for given in (rows(1), np.ones((5, W), np.float32), rows(5), rows(7)):
        answer = predictor({"x": given})
        np.testing.assert_allclose(answer["share"].sum(axis=1), np.ones(len(given)), rtol=1e-5)
    assert seen == [1, 5, 5, 1, 1, 7]  # equal rows would show nothing
    seen = runs_of(fixed := sparkle.ray.Predictor(softmax(1, 4), "cpu", threads=1))
    for count in (6, 9):
        np.testing.assert_allclose(fixed({"x": rows(count)})["share"].sum(axis=1), np.ones(count), rtol=1e-5)
    assert seen == [4, 4]  # a pipeline runs the batches, the session each of two rows in company of its like
    seen = runs_of(one := sparkle.ray.Predictor(softmax(0, 1), "cpu", threads=1))
    np.testing.assert_array_equal(one({"x": rows(3)})["share"], np.ones((3, W)))
    assert not seen


def test_a_model_that_runs_no_row_alone_says_so():
    held = [numpy_helper.from_array(np.array(value), name) for name, value in
            (("pairs", [-1, 2, W]), ("weights", np.arange(2 * W, dtype=np.float32).reshape(2, W)), ("back", [-1, W]))]
    nodes = [helper.make_node("Reshape", ["x", "pairs"], ["r"]), helper.make_node("Mul", ["r", "weights"], ["s"]),
             helper.make_node("Reshape", ["s", "back"], ["y"])]
    graph = helper.make_graph(nodes, "pairs", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", W])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", W])], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    with pytest.raises(sparkle.BadInput, match="A row of a batch of 4 does not run alone: .* check_rows=False"):
        sparkle.ray.Predictor(model, "cpu", threads=1)({"x": rows(4)})
    x = rows(4)
    np.testing.assert_array_equal(sparkle.ray.Predictor(model, "cpu", threads=1, check_rows=False)({"x": x})["y"],
                                  x * np.arange(2 * W, dtype=np.float32).reshape(2, W)[[0, 1, 0, 1]])


def test_rounding_is_no_difference():
    big = np.float32([[1000, 1e-3, np.nan, np.inf]])
    assert agree(big, big * np.float32(1 + 1e-5)) and agree(big, np.float32([[1000, 2e-3, np.nan, np.inf]]))
    assert not agree(big, np.float32([[1000, 5, np.nan, np.inf]])) and not agree(big, np.float32([[1000, 1e-3, 0, np.inf]]))
    assert not agree(big, np.float32([[1000, 1e-3, np.nan, -np.inf]])) and not agree(big, big[0])
    assert agree(np.float16([1]), np.float16([1.01])) and not agree(np.float32([1]), np.float32([1.01]))
    # Places of values that are nearly even may change where that is asked for; how many there are may not.
    places = [np.int64([[3, 4]] * 3)]
    for other, floats_only, found in (([[4, 3]], True, None), ([[4, 3]], False, 0), ([[3]], True, 0), ([[3, 4]], False, None)):
        assert mixed_output([rows(3)], places, lambda one, o=other: [np.int64(o)], floats_only) == found
    # Which output, and that the last row is looked at as the first is.
    arrays = [rows(3)]
    results = [2 * arrays[0], arrays[0] + np.float32([[0], [0], [1]])]
    assert mixed_output(arrays, results, lambda one: [2 * one[0], one[0]]) == 1
    assert mixed_output(arrays, results[:1], lambda one: [2 * one[0]]) is None
