"""Sparkle runs ONNX models at the speed of the machine that is there, and says how close to its limits.

    import sparkle
    session = sparkle.Session("model.onnx")
    outputs = session.run(image)          # NumPy arrays, or anything that speaks DLPack
    print(session.explain())              # what each step does, how, and why
    session.report()                      # measured beside predicted time of each step, and its share of the roof
    sparkle.check("model.onnx", "h200")   # what keeps it off the fast path of a device that need not be here

Arrays are taken and given without copies where they are dense and row-major. Tensors can stay in the device's memory:

    x = session.device.tensor(image)              # uploaded once
    (y,) = session.run(x, outputs="device")       # nothing moves between host and device
    y.numpy()                                     # fetched

Many items, several of them under way at once:

    with sparkle.Pipeline(session) as pipeline:
        for outputs in pipeline.map(images): ...

A session may be used by any number of threads at once; the interpreter lock is released while it works.
``sparkle.InferenceSession`` is called like onnxruntime's.

What Sparkle warns of - an algorithm that is asked for and serves no layer, sizes that a model declares and does not have - goes
to the logger "sparkle" of Python's ``logging``, which prints it on stderr unless told otherwise.
"""
import atexit
import logging

from sparkle import _core
from sparkle._check import Check, Finding, Layer, Verdict, check
from sparkle._choice import DeviceChoice, choose_device
from sparkle._device import Device, DeviceInfo, DeviceTensor, devices
from sparkle._errors import BadInput, Error, FileUnreadable, NotServed, OutOfMemory
from sparkle._fix import Fixed, fix
from sparkle._pipeline import DeviceShare, Pipeline
from sparkle._report import Report, Step
from sparkle._session import Event, Outputs, Session, TensorInfo, compile, eval
from sparkle._core import version
from sparkle.ort import InferenceSession

__version__ = version()
_core.set_log(lambda warning, sentence: logging.getLogger("sparkle").log(
    logging.WARNING if warning else logging.INFO, "%s", sentence))
atexit.register(_core.set_log, None)
__all__ = ["BadInput", "Check", "Device", "DeviceChoice", "DeviceInfo", "DeviceShare", "DeviceTensor", "Error", "Event",
           "FileUnreadable", "Finding", "Fixed", "InferenceSession", "Layer", "NotServed", "OutOfMemory", "Outputs",
           "Pipeline", "Report", "Session", "Step", "TensorInfo", "Verdict", "check", "choose_device", "compile",
           "devices", "eval", "fix"]
