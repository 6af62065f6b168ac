"""Exports in the forms of many exporters beside ONNX Runtime: each opens and gives its outputs, with a symbolic batch and a
fixed one; none opens and then fails for an operator."""
import numpy as np
import pytest

import sparkle

import net
import other_forms  # noqa: F401  (each registers its exports)
import paddle_forms  # noqa: F401
import tensorflow_forms  # noqa: F401
import torch_control  # noqa: F401
import torch_dynamo  # noqa: F401
import torch_more  # noqa: F401
import torch_script  # noqa: F401



def compare(outputs, expected, names, export):
    for y, want, name in zip(outputs, expected, names, strict=True):
        assert (y.shape, y.dtype) == (want.shape, want.dtype), name
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(y, want, err_msg=name)
        elif want.size:
            allowed = export.tolerance * max(float(np.abs(want).max()), 1e-6) + 1.01 * export.step
            far = float(np.abs(y.astype(np.float64) - want).max())
            assert far <= allowed, f"{name}: {far:.2g} away, {allowed:.2g} allowed"


def test_there_are_enough_of_each_kind():
    producers, opsets = ({getattr(e, what) for e in net.EXPORTS.values()} for what in ("producer", "opset"))
    assert sum(not e.refused for e in net.EXPORTS.values()) >= 50
    assert {"pytorch", "tf2onnx", "PaddlePaddle", "keras", "keras2onnx", "onnx.quantize"} <= producers
    assert min(opsets) <= 7 and max(opsets) >= 21 and len(opsets) >= 13


@pytest.mark.parametrize("batch", ["N", 2], ids=["symbolic", "fixed"])
@pytest.mark.parametrize("name", list(net.EXPORTS))
def test_export(name, batch):
    model, made = net.build(name, batch)
    peer, export = net.peer_of(model), net.EXPORTS[name]
    if export.refused:
        with pytest.raises(sparkle.NotServed) as refused:
            sparkle.Session(model.SerializeToString(), "cpu", threads=1)
        assert [o for o in export.refused if f"{o} x" not in str(refused.value)] == []
        return
    session = sparkle.Session(model.SerializeToString(), "cpu", threads=1)
    names = [o.name for o in model.graph.output]
    for size in (1, 3) if batch == "N" else (2,):
        feeds = made.feeds(size)
        compare(session.run(feeds), peer.run(None, feeds), names, export)
