"""Items through a pipeline: the numbers of session.run, in order, errors with the items that they belong to."""
import pathlib
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

import sparkle

MODEL = pathlib.Path(__file__).resolve().parents[2] / "models" / "upscale2x.onnx"


def images(count):
    return [np.random.default_rng(i).random((1, 3, 9, 12), dtype=np.float32) for i in range(count)]


@pytest.fixture(scope="module", params=["cpu", "reference"])
def session(request):
    return sparkle.Session(MODEL, request.param)


def test_results_are_those_of_run_and_in_order(session):
    given = images(25)
    wanted = [session.run(x)[0] for x in given]
    for depth, waiting in ((0, 0), (1, 1), (5, 2)):
        with sparkle.Pipeline(session, depth, waiting) as pipeline:
            got = [outputs[0] for outputs in pipeline.map(given)]
            future = pipeline.submit(given[3])
            named = pipeline.submit({session.inputs[0].name: given[4]})
            np.testing.assert_array_equal(future.result()[0], wanted[3])
            np.testing.assert_array_equal(named.result()[0], wanted[4])
        assert len(got) == 25
        for a, b in zip(got, wanted):
            np.testing.assert_array_equal(a, b)


def test_items_come_as_they_are_asked_for(session):
    taken = []

    def source():
        for i, x in enumerate(images(60)):
            taken.append(i)
            yield x

    with sparkle.Pipeline(session, 2, 3) as pipeline:
        results = pipeline.map(source())
        next(results)
        assert len(taken) <= 2 + 3 + 2
        assert len(list(results)) == 59


def test_errors_belong_to_their_items(session):
    (x, y) = images(2)
    with sparkle.Pipeline(session) as pipeline:
        with pytest.raises(sparkle.BadInput, match="is float32 in the model, float64 was given"):
            pipeline.submit(x.astype(np.float64))
        wrong = pipeline.submit(np.zeros((1, 4, 9, 12), np.float32))
        right = pipeline.submit(y)
        with pytest.raises(sparkle.BadInput):
            wrong.result()
        np.testing.assert_array_equal(right.result()[0], session.run(y)[0])
        assert not right.cancel()
    with pytest.raises(sparkle.BadInput, match="is closed"):
        pipeline.submit(x)
    pipeline.close()
    assert repr(pipeline).endswith(", closed)")
    with pytest.raises(sparkle.BadInput, match="1 to 64"):
        sparkle.Pipeline(session, 65)


def test_several_threads_share_one(session):
    given = images(12)
    wanted = [session.run(x)[0] for x in given]
    wrong = []
    with sparkle.Pipeline(session) as pipeline:

        def work(begin):
            for i in range(begin, 12, 3):
                if not np.array_equal(pipeline.submit(given[i]).result()[0], wanted[i]):
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(b,)) for b in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_types_that_numpy_lacks():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    b = TensorProto.BFLOAT16
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small",
                              [helper.make_tensor_value_info("x", b, [4])], [helper.make_tensor_value_info("y", b, [4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8).SerializeToString()
    with sparkle.Pipeline(sparkle.Session(model)) as pipeline:
        (y,) = pipeline.submit(np.arange(-2, 2).astype(ml_dtypes.bfloat16)).result()
    assert y.dtype == ml_dtypes.bfloat16 and y.tolist() == [0, 0, 0, 1]


def test_devices_share_the_items():
    given = images(30)
    with sparkle.Session(MODEL, threads=1) as one:
        wanted = [one.run(x)[0] for x in given]
        with sparkle.Pipeline(MODEL, devices=["cpu", "reference"], split="always", items=31) as pipeline:
            assert pipeline.why == ""
            got = [outputs[0] for outputs in pipeline.map(given)]
            wrong = pipeline.submit(np.zeros((1, 4, 9, 12), np.float32))
            with pytest.raises(sparkle.BadInput):
                wrong.result()
        assert pipeline.why.endswith(" and reference, as asked for")
        assert len(pipeline.shares) == 2 and pipeline.shares[1].name == "reference"
        assert sum(s.items for s in pipeline.shares) == 30 and not any(s.lost for s in pipeline.shares)
        for a, b in zip(got, wanted):
            np.testing.assert_allclose(a, b, atol=1e-5)
        # Where one alone is faster it works alone.
        with sparkle.Pipeline([one, one]) as pipeline:
            np.testing.assert_array_equal(pipeline.submit(given[0]).result()[0], wanted[0])
            assert " alone: predicted " in pipeline.why
            assert sorted(s.used for s in pipeline.shares) == [False, True]
        with sparkle.Pipeline(one) as pipeline:
            assert pipeline.shares == [] and pipeline.why == ""
        for bad, sentence in (({"devices": "cpu"}, "is no list of devices"), ({"split": "always"}, "one session is given"),
                              ({"threads": 1}, "go with devices")):
            with pytest.raises(sparkle.BadInput, match=sentence):
                sparkle.Pipeline(one, **bad)
        with pytest.raises(sparkle.BadInput, match="split"):
            sparkle.Pipeline([one, one], split="never")
