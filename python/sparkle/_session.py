"""Devices and sessions."""
import json
import os
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union

import numpy as np

from sparkle import _core
from sparkle._errors import BadInput, translated

Inputs = Union[Any, Sequence[Any], Mapping[str, Any]]
# Types of the ml_dtypes package, which NumPy itself lacks, and what holds their bits, one element in each.
_BITS = {"bfloat16": np.uint16, **dict.fromkeys(
    ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4",
     "int2", "uint2"), np.uint8)}
_HOST = (1, 3, 11, 13)  # DLPack's device types whose memory a CPU can read: CPU, CUDA host, ROCm host, CUDA managed


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model. ``shape`` has None or a name where the model leaves a size open; it is None where even the
    number of axes is open."""
    name: str
    dtype: str
    shape: Optional[tuple]


class Device:
    """What runs models: "auto", "cpu" or "reference". ``threads`` 0: what affinity and cgroup quota allow. ``calibrate``
    measures the machine's rates first."""

    def __init__(self, name: str = "auto", threads: int = 0, calibrate: bool = False) -> None:
        with translated():
            self._core = _core.Device(name, threads, calibrate)

    def describe(self) -> dict:
        """Memory levels, math units, rates."""
        return json.loads(self._core.describe())


def compile(model: Union[str, os.PathLike], output: Union[str, os.PathLike], device: Union[Device, str] = "auto", *,
            shapes: Sequence[Sequence[int]] = (), algorithm: str = "", variant: str = "", memory_budget: int = 0,
            accuracy: float = 0, tuning: Union[str, os.PathLike] = "") -> None:
    """Plans an ONNX file and writes the plan and its packed weights to ``output``, which a Session opens at once. ``shapes``:
    one per input, in the model's order, where the model leaves sizes open. The file serves this machine, this version, this
    number of threads and these shapes; others are refused."""
    device = device if isinstance(device, Device) else Device(device)
    with translated():
        _core.compile(device._core, os.fspath(model), os.fspath(output), [list(s) for s in shapes], algorithm, variant,
                      memory_budget, accuracy, os.fspath(tuning))


def eval(expression: str, /, device: Union[Device, str] = "auto", **operands: Any) -> np.ndarray:
    """Computes an expression of your own, element by element with broadcasting:
    ``eval("silu(x) * a + b", x=x, a=a, b=0.5)``; docs/expressions.md has its grammar. Numbers and arrays without axes
    take the type of what they meet. A ``Device`` keeps what it compiled; a name opens the device anew. Errors point at the
    character."""
    device = device if isinstance(device, Device) else Device(device)
    plain = (int, float, bool, np.generic, list, tuple, np.ndarray)  # the others speak the buffer protocol or DLPack
    arrays = [np.asarray(v, order="C") if isinstance(v, plain) else v for v in operands.values()]
    with translated():
        return _core.evaluate(device._core, expression, list(operands), arrays)


class Session:
    """A model ready to run.

    ``model``: a path, or the bytes of a file: ONNX, or what ``sparkle.compile`` wrote on this machine. ``device``: a Device or
    its name; it sets the number of threads: ``Session(model, Device(threads=4))``. ``precision``: "fp32". ``algorithm``,
    ``variant``: force one by name where it can serve. ``memory_budget``: most bytes of tensors and weights, 0 unlimited.
    ``accuracy``: most that the error of a layer may be predicted to reach, as a share of its largest output; 0 is 5e-5.
    ``tuning``: path of a file of measured choices (``sparkle tune``), or "kept", the one in the cache. ``plan_cache_bytes``:
    plans and arenas kept for shapes seen before; 0 is 256 MiB.
    """

    def __init__(self, model: Union[str, os.PathLike, bytes], device: Union[Device, str] = "auto", precision: str = "fp32", *,
                 algorithm: str = "", variant: str = "", memory_budget: int = 0, accuracy: float = 0,
                 tuning: Union[str, os.PathLike] = "", plan_cache_bytes: int = 0) -> None:
        self.device = device if isinstance(device, Device) else Device(device)
        in_memory = isinstance(model, (bytes, bytearray, memoryview))
        with translated():
            self._core = _core.Session(self.device._core, None if in_memory else os.fspath(model),
                                       bytes(model) if in_memory else None, precision, algorithm, variant, memory_budget,
                                       accuracy, os.fspath(tuning), plan_cache_bytes)
        self.inputs = [_info(*i) for i in self._core.inputs()]
        self.outputs = [_info(*o) for o in self._core.outputs()]
        self._shapes: Optional[list] = None  # (shape, dtype) of the last inputs

    def run(self, inputs: Inputs) -> list:
        """One array per output, in the model's order. ``inputs``: a dictionary by name, a sequence in the model's order, or the
        one array of a model with one input. Element types must be the model's; bfloat16 and the types below 8-bit integers
        (float8_e4m3fn, int4 and so on) are those of the ml_dtypes package, or uint16 and uint8 with their bits where that is
        not installed."""
        arrays = self._arrays(inputs)
        with translated():
            results = self._core.run(arrays)
        return [_of_bits(r, o.dtype) if o.dtype in _BITS else r for r, o in zip(results, self.outputs)]

    __call__ = run

    def move_to(self, device: Union[Device, str]) -> None:
        """Goes on with another device, as with ``session.move_to("cpu")`` after an Error of code "device_lost"; nothing moves
        unless this is called. The next run plans and packs weights anew, for which the model's file may be read again."""
        device = device if isinstance(device, Device) else Device(device)
        with translated():
            self._core.move_to(device._core)
        self.device = device

    def explain(self, inputs: Optional[Inputs] = None, as_json: bool = False) -> Union[str, dict]:
        """The plan for the shapes of these inputs (default: those of the last call): choices, costs, reasons."""
        with translated():
            text = self._core.explain(self._planning(inputs), as_json)
        return json.loads(text) if as_json else text

    def plan(self, inputs: Optional[Inputs] = None) -> str:
        """The plan in its text form, one line per tensor, constant and step."""
        with translated():
            return self._core.plan(self._planning(inputs))

    def report(self, inputs: Optional[Inputs] = None) -> dict:
        """Runs once with timestamps (default: zeros in the shapes of the last call): measured and predicted milliseconds of
        each step, and what binds it."""
        with translated():
            return json.loads(self._core.report(self._planning(inputs)))

    def peak_bytes(self, inputs: Optional[Inputs] = None) -> int:
        """Bytes of tensors and packed weights that a run occupies at its peak."""
        with translated():
            return self._core.peak_bytes(self._planning(inputs))

    def _planning(self, inputs: Optional[Inputs]) -> list:
        if inputs is not None:
            return self._arrays(inputs)
        if self._shapes is not None:
            return [np.zeros(shape, dtype) for shape, dtype in self._shapes]
        shapes = [i.shape for i in self.inputs]
        if any(s is None or any(not isinstance(size, int) for size in s) for s in shapes):
            raise BadInput("bad_usage", "The model leaves sizes open; give inputs, or run it once before.")
        return [np.zeros(i.shape, _BITS.get(i.dtype, i.dtype)) for i in self.inputs]

    def _arrays(self, inputs: Inputs) -> list:
        names = [i.name for i in self.inputs]
        if isinstance(inputs, Mapping):
            for name in inputs:
                if name not in names:
                    raise BadInput("bad_input", f"The model has no input '{name}'; it has {', '.join(map(repr, names))}.")
            missing = [n for n in names if n not in inputs]
            if missing:
                raise BadInput("bad_input", f"The input '{missing[0]}' is missing.")
            values = [inputs[n] for n in names]
        elif isinstance(inputs, (list, tuple)):
            values = list(inputs)
        else:
            values = [inputs]
        if len(values) != len(names):
            raise BadInput("bad_input", f"The model takes {len(names)} inputs, {len(values)} were given.")
        arrays = [_array(v, i) for v, i in zip(values, self.inputs)]
        plain = all(isinstance(a, np.ndarray) for a in arrays)
        self._shapes = [(a.shape, a.dtype) for a in arrays] if plain else None
        return arrays


def _array(value: Any, info: TensorInfo) -> Any:
    """The input as a dense NumPy array of the model's type, copied only where that needs a copy; types of ml_dtypes as their
    bits. What NumPy cannot hold, the core takes as it is: bfloat16 of other libraries."""
    if not isinstance(value, np.ndarray):
        value = _foreign(value, info) if hasattr(value, "__dlpack__") else _numbers(value, info)
        if not isinstance(value, np.ndarray):
            return value
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if not value.flags.c_contiguous:
        value = np.ascontiguousarray(value)
    bits = _BITS.get(info.dtype)
    if value.dtype.name != info.dtype and (bits is None or value.dtype != bits):
        raise BadInput("bad_input", f"The input '{info.name}' is {info.dtype} in the model, {value.dtype} was given.")
    return value if bits is None else value.view(bits)


def _numbers(value: Any, info: TensorInfo) -> np.ndarray:
    """Numbers, and lists of them."""
    try:
        if np.asarray(value).dtype.kind not in "biufV":  # NumPy makes NaN of None, and numbers of some strings
            raise TypeError(f"{type(value).__name__} is neither an array nor made of numbers")
        return np.asarray(value, dtype=None if info.dtype in _BITS else info.dtype)
    except Exception as e:  # elements may be of other libraries
        raise BadInput("bad_input", f"The input '{info.name}' cannot be made an array of {info.dtype}: {_reason(e)}.") from e


def _foreign(value: Any, info: TensorInfo) -> Any:
    """An array of another library, its memory shared."""
    if hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) not in _HOST:
        raise BadInput("bad_input", f"The input '{info.name}' lies in memory of another device; copy it to host memory first.")
    try:
        return np.from_dlpack(value)
    except Exception as e:  # whatever the other library raises
        if info.dtype == "bfloat16":
            return value
        raise BadInput("bad_input", f"The input '{info.name}' is {info.dtype} in the model; what was given cannot be shared by "
                       f"DLPack: {_reason(e)}.") from e


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")


def _of_bits(bits: Any, dtype: str) -> Any:
    try:
        import ml_dtypes
    except ImportError:
        return bits
    return bits.view(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else bits


def _info(name: str, dtype: str, shape: Optional[list]) -> TensorInfo:
    return TensorInfo(name, dtype, None if shape is None else tuple(shape))
