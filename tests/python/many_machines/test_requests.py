"""Requests of a Ray Serve deployment: each row is answered, each fault is its own row's, and said in a sentence."""
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import sparkle
import sparkle.ray
from sparkle._requests import answers_of, fitted_row, response_of, rows_of

W = np.random.default_rng(3).standard_normal((6, 4), dtype=np.float32)


def saved(path, nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info(n, *v) for n, v in inputs.items()],
                              [helper.make_tensor_value_info(n, *v) for n, v in outputs.items()], list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return str(path)


@pytest.fixture
def predictor(tmp_path):
    return sparkle.ray.Predictor(saved(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
                                       {"x": (TensorProto.FLOAT, ["n", 6])}, {"y": (TensorProto.FLOAT, ["n", 4])},
                                       [numpy_helper.from_array(W, "w")]), "cpu", threads=1)


def request(shape, data=None, name="x", datatype="FP32", **more):
    data = [0.5] * int(np.prod(shape)) if data is None else data
    return {"inputs": [{"name": name, "shape": shape, "datatype": datatype, "data": data}], **more}


def answered(predictor, body):
    answers = answers_of(predictor, [predictor.fitted(row) for row in rows_of(body)])
    assert all(error is None for _, error in answers)
    return response_of(body, [answer for answer, _ in answers], "m")


def test_all_rows_of_a_request_are_answered_in_order(predictor):
    x = np.random.default_rng(1).standard_normal((3, 6), dtype=np.float32)
    for data in (x.tolist(), x.ravel().tolist()):
        response = answered(predictor, request([3, 6], data, id="seven"))
        assert (response["model_name"], response["id"]) == ("m", "seven")
        (output,) = response["outputs"]
        assert (output["name"], output["shape"], output["datatype"]) == ("y", [3, 4], "FP32")
        np.testing.assert_allclose(np.reshape(output["data"], (3, 4)), x @ W, rtol=1e-5, atol=1e-5)


def test_a_request_that_does_not_fit_is_refused_before_it_joins_others(predictor):
    for body, sentence in [
            (request([1, 7]), r"row of input 'x' has shape \[6\] in the model, \[7\] was given"),
            (request([6]), r"has shape \[6\] in the model, \[\] was given"),
            (request([1, 6], name="z"), "no input 'z'; it takes 'x'"),
            (request([1, 6], [1] * 6, datatype="INT64"), "is int64, the input 'x' float32"),
            (request([1, 6], [0.5] * 5), r"of shape \[1, 6\] has data of shape \[5\]"),
            (request([2, 6], [[0.5] * 6, [0.5] * 5]), "nested unevenly"),
            (request([1, 6], [0.5, None] * 3), "none of FP32"),
            (request([1, 6], [1e39] * 6), "none of FP32"),
            (request([1, 6], [True] * 6), "none of FP32"),
            (request([1, 6], [0.5] * 6, datatype="INT8"), "none of INT8"),
            (request([1, 6], [128] * 6, datatype="INT8"), "none of INT8"),
            (request([1, 6], datatype="BYTES"), "no datatype that is taken here"),
            (request([0, 6]), "0 rows"), (request([-1, 6], []), "no shape"), (request([True, 6]), "no shape"),
            (request([1, 6], 5), "no \"data\""), ({"inputs": []}, "no \"inputs\""), ([], "no \"inputs\""),
            ({"inputs": [3]}, "has no name"), ({"inputs": request([1, 6])["inputs"] * 2}, "given twice"),
            ({"inputs": request([1, 6])["inputs"] + request([2, 6], name="z")["inputs"]}, "1 and 2 rows")]:
        with pytest.raises(sparkle.BadInput, match=sentence):
            [predictor.fitted(row) for row in rows_of(body)]
    with pytest.raises(sparkle.BadInput, match="Input 'x' is missing"):
        fitted_row({"id": 3}, {"x": predictor.session.inputs[0]}, ["id"])
    with pytest.raises(sparkle.BadInput, match="not a list"):
        predictor.fitted([1, 2])
    for outputs, sentence in [([{"name": "z"}], "no output 'z'; it has 'y'"), (["y"], "\"outputs\" is a list"),
                              ([{"name": "y", "parameters": {"classification": 2}}], "\"classification\" is not supported")]:
        with pytest.raises(sparkle.BadInput, match=sentence):
            answered(predictor, request([1, 6], outputs=outputs))
    assert len(answered(predictor, request([1, 6], outputs=[{"name": "y"}]))["outputs"]) == 1


def test_rows_are_of_the_models_type():
    info = sparkle.TensorInfo("x", "float32", ("n", 2))
    assert fitted_row({"x": [0.25, 2]}, {"x": info}, [])["x"].dtype == np.float32
    assert fitted_row({"id": 7, "x": np.zeros((2,))}, {"x": info}, ["id"])["id"] == 7
    with pytest.raises(sparkle.BadInput, match="'x' of the row is no array"):
        fitted_row({"x": [[1], [1, 2]]}, {"x": info}, [])
    with pytest.raises(sparkle.BadInput, match="a single number"):
        fitted_row({"x": 1.0}, {"x": sparkle.TensorInfo("x", "float32", ())}, [])


def test_rows_of_other_shapes_run_apart(tmp_path):
    mean = sparkle.ray.Predictor(saved(tmp_path / "m.onnx", [helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=0)],
                                       {"x": (TensorProto.FLOAT, ["n", "width"])}, {"y": (TensorProto.FLOAT, ["n"])},
                                       [numpy_helper.from_array(np.array([1]), "axes")]), "cpu")
    sizes = []

    def counted(batch):
        sizes.append(batch["x"].shape)
        return mean(batch)

    rows = [mean.fitted({"x": np.full(3 + r % 2, r, np.float32)}) for r in range(6)]
    assert [float(answer["y"]) for answer, _ in answers_of(counted, rows)] == [0, 1, 2, 3, 4, 5]
    assert sorted(sizes) == [(3, 3), (3, 4)]


def test_an_error_is_that_of_its_row_alone(predictor):
    def fails_on_seven(batch):
        if (batch["x"] == 7).any():
            raise RuntimeError("seven")
        return predictor(batch)

    rows = [{"x": np.full(6, r, np.float32)} for r in (1, 7, 3)]
    one, seven, three = answers_of(fails_on_seven, rows)
    np.testing.assert_allclose([one[0]["y"], three[0]["y"]], [W.sum(0), 3 * W.sum(0)], rtol=1e-5, atol=1e-5)
    assert seven[0] is None and str(seven[1]) == "seven" and one[1] is three[1] is None
    # An output that has no row for each item: nobody is given another's.
    (answer, error), _ = answers_of(lambda batch: {"y": np.zeros(5)}, rows[:2])
    assert answer is None and isinstance(error, sparkle.BadInput)


def test_what_json_has_no_number_for_is_refused():
    with pytest.raises(sparkle.BadInput, match="NaN or infinity"):
        response_of({}, [{"y": np.array([np.inf], np.float32)}], "m")
    with pytest.raises(sparkle.BadInput, match="no name"):
        response_of({}, [{"y": np.array(["text"])}], "m")
    assert response_of({}, [{"y": np.array([True])}, {"y": np.array([False])}], "m")["outputs"][0]["data"] == [True, False]
