"""Sparkle as a backend of the onnx package: ``onnx.backend.test`` and other tools of that interface drive it.

    import onnx.backend.test, sparkle.onnx_backend
    runner = onnx.backend.test.BackendTest(sparkle.onnx_backend, __name__)

Needs the onnx package. What Sparkle does not support raises unittest.SkipTest, so that runners count it as such.
"""
import unittest
from typing import Any, Sequence

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from sparkle._errors import NotServed
from sparkle._session import Session


def _array(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)) or value is None:
        raise unittest.SkipTest("Sequences, maps and optional values are not supported.")
    return np.asarray(value)


class SparkleRep(BackendRep):
    """A model that ``SparkleBackend.prepare`` opened: a session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> list:
        """An array per output, of an array per input in the model's order. Errors: unittest.SkipTest, and those of
        Session.run."""
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        try:
            return self.session.run([_array(v) for v in values])
        except NotServed as e:
            raise unittest.SkipTest(str(e)) from None


class SparkleBackend(Backend):
    """What the onnx package calls a backend, on the CPU."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether ``device`` is one that it runs on."""
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> SparkleRep:
        """The model opened on the CPU, whatever ``device`` says. Errors: unittest.SkipTest for what is not supported, and those
        of Session."""
        try:
            return SparkleRep(Session(model.SerializeToString(), device="cpu"))
        except NotServed as e:
            raise unittest.SkipTest(str(e)) from None

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> list:
        """``prepare`` for ``device``, then ``SparkleRep.run``."""
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Sequence = None,
                 **kwargs: Any) -> list:
        """Errors: unittest.SkipTest, always, whatever ``device`` and ``outputs_info``."""
        raise unittest.SkipTest("Single nodes without a model are not supported.")

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True of "CPU"."""
        return device == "CPU"


is_compatible = SparkleBackend.is_compatible
prepare = SparkleBackend.prepare
run_model = SparkleBackend.run_model
run_node = SparkleBackend.run_node
supports_device = SparkleBackend.supports_device
