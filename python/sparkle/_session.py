"""Sessions, compiling and expressions."""
import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from sparkle import _core
from sparkle._arguments import checked
from sparkle._arrays import BITS, CUDA, HOST, dense, dlpack_device, of_bits
from sparkle._device import Device, DeviceTensor
from sparkle._errors import BadInput, translated
from sparkle._report import Report

Inputs = Union[Any, Sequence[Any], Mapping[str, Any]]
_KINDS = {"precision": "text", "algorithm": "text", "variant": "text", "fusion": "text", "fallback": "text",
          "nonfinite": "text", "tuning": "path", "memory_budget": "bytes", "plan_cache_bytes": "bytes", "accuracy": "number"}
_FEW = 4096  # elements of an input that are kept for explain() and its like


@dataclass(frozen=True)
class Event:
    """Something that a session did in another way than may be expected: ``what`` is "operator", "device" or "precision",
    ``from_`` where it was to run, or the type to compute in, ``to`` where it runs, or the type that is taken, ``reason`` a code
    such as "no_kernel" or "device_lost", ``cost`` the predicted seconds of each run (0 of devices), ``layer`` the step ("" of
    devices), ``message`` one sentence."""
    what: str
    from_: str
    to: str
    reason: str
    cost: float
    layer: str
    message: str


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model: its ``name``, the ``dtype`` of its elements as NumPy or ml_dtypes call it. ``shape`` has
    None or a name where the model leaves a size open; it is None where even the number of axes is open."""
    name: str
    dtype: str
    shape: Optional[tuple]


def compile(model: Union[str, os.PathLike], output: Union[str, os.PathLike], device: Union[Device, str] = "auto", *,
            shapes: Sequence[Sequence[int]] = (), algorithm: str = "", variant: str = "", fusion: str = "",
            memory_budget: int = 0, accuracy: float = 0, tuning: Union[str, os.PathLike] = "",
            nonfinite: str = "fast", fallback: str = "warn") -> None:
    """Plans an ONNX file and writes the plan and its packed weights to ``output``, which a Session opens at once. ``shapes``:
    one per input, in the model's order, where the model leaves sizes open. The other options are those of a Session. The
    file serves this machine, this version, this number of threads and these shapes; others are refused."""
    device = device if isinstance(device, Device) else Device(device)
    options = _options(checked("compilation", _KINDS, dict(
        algorithm=algorithm, variant=variant, fusion=fusion, memory_budget=memory_budget, accuracy=accuracy, tuning=tuning,
        nonfinite=nonfinite, fallback=fallback)))
    with translated():
        _core.compile(device._core, os.fspath(model), os.fspath(output), [list(s) for s in shapes], options)


def eval(expression: str, /, device: Union[Device, str] = "auto", **operands: Any) -> np.ndarray:
    """Computes an expression of your own, element by element with broadcasting:
    ``eval("silu(x) * a + b", x=x, a=a, b=0.5)`` on ``device``; docs/expressions.md has its grammar. Numbers and arrays without
    axes take the type of what they meet. A ``Device`` keeps what it compiled; a name opens the device anew. Errors point at the
    character."""
    device = device if isinstance(device, Device) else Device(device)
    plain = (int, float, bool, np.generic, list, tuple, np.ndarray)  # the others speak the buffer protocol or DLPack
    arrays = [np.asarray(v, order="C") if isinstance(v, plain) else v for v in operands.values()]
    with translated():
        return _core.evaluate(device._core, expression, list(operands), arrays)


class Session:
    """A model ready to run.

    ``model``: a path, or the bytes of a file: ONNX, or what ``sparkle.compile`` wrote on this machine; or an onnx.ModelProto.
    ``device``: a Device or its name. ``threads``: of a CPU where it is a name, 0 is what affinity and quota allow; a Device
    has its own. ``precision``: "fp32". ``algorithm``, ``variant``: force one by name where it can serve. ``fusion`` of several
    layers into one step:
    "inverted" wherever it can serve, "none", or by cost. ``memory_budget``: most bytes of tensors and
    weights, 0 unlimited. ``accuracy``: most that the error of a layer may be predicted to reach, as a share of its largest
    output; 0 is 5e-5. ``tuning``: path of a file of measured choices (``sparkle tune``), or "kept", the one in the cache.
    ``plan_cache_bytes``: plans and arenas kept for shapes seen before; 0 is 256 MiB. ``nonfinite``: "exact" for data that may
    hold infinities, NaN or values near the end of the range; "fast" algorithms may spread those to neighbouring outputs.
    ``fallback``: "forbid" refuses a model of which a layer has no fast kernel on the device (NotServed), "warn" runs it, warns
    and keeps an event, "allow" keeps the event alone, and goes on with the CPU, once, where the device is lost, full or
    refused by its driver. A device given by name is opened under it too.

    ``with Session(model) as session`` closes it at the end. Sessions of a path can be pickled: they are opened anew.
    """

    def __init__(self, model: Union[str, os.PathLike, bytes], device: Union[Device, str] = "auto", precision: str = "fp32", *,
                 algorithm: str = "", variant: str = "", fusion: str = "", memory_budget: int = 0, accuracy: float = 0,
                 tuning: Union[str, os.PathLike] = "", plan_cache_bytes: int = 0, nonfinite: str = "fast",
                 fallback: str = "warn", threads: int = 0) -> None:
        if threads and isinstance(device, Device):
            raise BadInput("bad_usage", f"threads={threads} is for a device by name; this Device has its own: "
                           f"Device({device.name!r}, threads={threads}).")
        if hasattr(model, "SerializeToString"):  # onnx.ModelProto
            model = model.SerializeToString()
        in_memory = isinstance(model, (bytes, bytearray, memoryview))
        if not in_memory and not isinstance(model, (str, os.PathLike)):
            raise BadInput("bad_usage", f"The model is a {type(model).__name__}; give a path, the bytes of a file, or an "
                           "onnx.ModelProto.")
        given = checked("Session", _KINDS, dict(
            precision=precision, algorithm=algorithm, variant=variant, fusion=fusion, memory_budget=memory_budget,
            accuracy=accuracy, tuning=tuning, plan_cache_bytes=plan_cache_bytes, nonfinite=nonfinite, fallback=fallback))
        if not isinstance(device, Device):
            named = checked("Session", {"device": "device", "threads": "whole"}, dict(device=device, threads=threads))
            device = Device(named["device"], named["threads"], fallback=fallback)
        self.device = device
        self._given = None if in_memory else (os.path.abspath(os.fspath(model)), given)
        options = _options(given)
        with translated():
            self._open = _core.Session(self.device._core, None if in_memory else os.fspath(model),
                                       bytes(model) if in_memory else None, options)
        self._name = f"<{len(model)} bytes>" if in_memory else os.fspath(model)
        self.inputs = [_info(*i) for i in self._core.inputs()]
        self.outputs = [_info(*o) for o in self._core.outputs()]
        self._last: Optional[list] = None  # of the inputs that the last call took: (shape, dtype, values where they are few)

    @property
    def _core(self) -> "_core.Session":
        if self._open is None:
            raise BadInput("bad_usage", f"The session of {self._name!r} is closed.")
        return self._open

    def close(self) -> None:
        """Lets the model, its plans and memory go; results stay. Closing again does nothing."""
        self._open = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> tuple:
        if self._given is None:
            raise TypeError("A sparkle.Session of bytes cannot be pickled, one of a path can: the other side opens the file.")
        path, given = self._given
        return _reopened, (path, self.device, given)

    def run(self, inputs: Inputs, outputs: Union[None, str, DeviceTensor, Sequence, Mapping] = None) -> "Outputs":
        """One array per output, in the model's order; the list knows them by name too: ``run(x)["scores"]``.
        ``inputs``: a dictionary by name, a sequence in the model's order, or the
        one array of a model with one input. Element types must be the model's; bfloat16 and the types below 8-bit integers
        (float8_e4m3fn, int4 and so on) are those of the ml_dtypes package, or uint16 and uint8 with their bits where that is
        not installed.

        Inputs may be tensors of ``session.device`` (``Device.tensor``) too, which are read where they lie, and so are arrays
        of other libraries in the memory of a CUDA device that the session runs on (PyTorch's, by DLPack); arrays of the host
        beside them are uploaded. Inputs that decide shapes (Reshape's ``shape``) are given as arrays.

        ``outputs``: names of those that are wanted, or places. NumPy arrays - a dictionary by name, a sequence, or the one of a
        model with one output - are written and returned: dense and row-major, of the outputs' shapes and types. ``"device"``
        leaves the results there: one new DeviceTensor per output. Given tensors - a dictionary by name, a sequence, or the one
        of a model with one output - are written and returned; they have the outputs' shapes and types and are none of the
        inputs. With both nothing is copied, and nothing moves between host and device. Where the data tells how many rows an
        output has (NonMaxSuppression), results of device tensors have the most there can be, those after the found ones
        beginning with -1.

        Errors: BadInput for shapes, types and names that are not the model's and for tensors of another device, OutOfMemory,
        and Error with its ``code``."""
        wanted = self._wanted(outputs)
        if wanted is not None:
            return self.run(inputs)._of(wanted)
        names = [o.name for o in self.outputs]
        values = [self._where_it_lies(v) for v in self._values(inputs, self.inputs, "input")]
        on_host = not any(isinstance(v, DeviceTensor) for v in values)
        if on_host and outputs is not None and not isinstance(outputs, (str, DeviceTensor)):
            places = self._values(outputs, self.outputs, "output")
            if places and all(isinstance(p, np.ndarray) for p in places):
                return Outputs(self._run_into(values, places), names)
        if outputs is None and on_host:
            arrays = self._arrays(values)
            with translated():
                results = self._core.run(arrays)
            self._remember(arrays)
            return Outputs([of_bits(r, o.dtype) for r, o in zip(results, self.outputs)], names)
        results = self._run_on_device(values, outputs)
        return Outputs([t.numpy() for t in results] if outputs is None else results, names)

    __call__ = run

    async def run_async(self, inputs: Inputs, outputs: Union[None, str, DeviceTensor, Sequence, Mapping] = None) -> "Outputs":
        """``run`` for coroutines: the event loop goes on while a thread of its executor waits for the results."""
        return await asyncio.get_running_loop().run_in_executor(None, self.run, inputs, outputs)

    def move_to(self, device: Union[Device, str]) -> None:
        """Goes on with another device, as with ``session.move_to("cpu")`` after an Error of code "device_lost"; nothing moves
        unless this is called or ``fallback`` is "allow". The next run plans and packs weights anew, for which the model's
        file may be read again."""
        device = device if isinstance(device, Device) else Device(device)
        with translated():
            self._core.move_to(device._core)
        self.device = device

    @property
    def events(self) -> list:
        """What was done in another way than may be expected, so far: a list of ``Event``, each layer's once."""
        return [Event(*event) for event in self._core.events()]

    def explain(self, inputs: Optional[Inputs] = None, as_json: bool = False) -> Union[str, dict]:
        """The plan for the shapes of these inputs (default: those of the last call that ran): choices, costs,
        reasons, as a table or, with ``as_json``, a dictionary."""
        text = self._planned(inputs, lambda arrays: self._core.explain(arrays, as_json))
        return json.loads(text) if as_json else text

    def plan(self, inputs: Optional[Inputs] = None) -> str:
        """The plan in its text form, one line per tensor, constant and step; ``inputs`` as of ``explain``."""
        return self._planned(inputs, self._core.plan)

    def report(self, inputs: Optional[Inputs] = None, seconds: float = 0.3, *, runs: int = 0, check: str = "auto") -> Report:
        """Runs for about ``seconds``, or ``runs`` times, on these inputs (default: zeros in the shapes of the last call
        that ran), and says what each step took and reached beside roofs that were probed meanwhile, what was chosen and
        why, and which memory was in use: a ``Report``, which notebooks show as a page. ``check``: outputs are compared with
        plain loops before, among and after the runs, where that takes some ten seconds ("auto"), "always" or "never". Errors:
        BadInput, and Error of code "internal" where an output is wrong."""
        return Report(*self._planned(inputs, lambda arrays: self._core.report(arrays, seconds, runs, check)))

    def peak_bytes(self, inputs: Optional[Inputs] = None) -> int:
        """Bytes of tensors and packed weights that a run occupies at its peak; ``inputs`` as of ``explain``."""
        return self._planned(inputs, self._core.peak_bytes)

    def __repr__(self) -> str:
        closed = ", closed" if self._open is None else ""
        return (f"sparkle.Session({self._name!r}{closed}, device={self.device.name!r}, inputs=[{_listed(self.inputs)}], "
                f"outputs=[{_listed(self.outputs)}])")

    def _wanted(self, outputs: Any) -> Optional[list]:
        """The names of outputs, where it is names that were given."""
        names = [outputs] if isinstance(outputs, str) and outputs != "device" else outputs
        if not isinstance(names, (list, tuple)) or not names or not all(isinstance(n, str) for n in names):
            return None
        known = [o.name for o in self.outputs]
        for name in names:
            if name not in known:
                raise BadInput("bad_usage", f"The model has no output '{name}'; it has {', '.join(map(repr, known))}. "
                               "outputs is their names, \"device\", arrays or device tensors, or None for new arrays.")
        return list(names)

    def _run_into(self, values: list, places: list) -> list:
        for place, info in zip(places, self.outputs):
            bits = BITS.get(info.dtype)
            if not (place.flags.c_contiguous and place.flags.writeable and place.dtype.isnative):
                raise BadInput("bad_input", f"The place of output '{info.name}' is no dense row-major array that may be "
                               "written.")
            if place.dtype.name != info.dtype and (bits is None or place.dtype != bits):
                raise BadInput("bad_input", f"The place of output '{info.name}' is {place.dtype}, the output is {info.dtype}.")
        for n, place in enumerate(places):
            if any(isinstance(v, np.ndarray) and np.may_share_memory(place, v) for v in [*values, *places[:n]]):
                raise BadInput("bad_usage", f"The place of output '{self.outputs[n].name}' shares memory with an input or "
                               "another output's place.")
        arrays = self._arrays(values)
        bits = [p.view(BITS[o.dtype]) if o.dtype in BITS else p for p, o in zip(places, self.outputs)]
        with translated():
            self._core.run_into(arrays, bits)
        self._remember(arrays)
        return places

    def _run_on_device(self, values: list, outputs: Any) -> list:
        device = self.device
        places = None
        if isinstance(outputs, str):
            if outputs != "device":
                raise BadInput("bad_usage", f"outputs is '{outputs}'; it may be \"device\", device tensors, or None for "
                               "arrays.")
        elif outputs is not None:
            given = self._values(outputs, self.outputs, "output")
            places = [self._where_it_lies(place) for place in given]
            for n, (place, info) in enumerate(zip(places, self.outputs)):
                what = f"The place of output '{info.name}'"
                if not isinstance(place, DeviceTensor):
                    raise BadInput("bad_usage", f"{what} is no device tensor; device.empty makes one.")
                _on(device, place, what)
                if any(place is other for other in [*values, *places[:n]]):
                    raise BadInput("bad_usage", f"{what} is an input or another output's place too.")
        tensors, arrays = [], []  # of an input given as an array both: its values may decide shapes
        for value, info in zip(values, self.inputs):
            what = f"The input '{info.name}'"
            if isinstance(value, DeviceTensor):
                _on(device, value, what)
                if value.dtype != info.dtype:
                    raise BadInput("bad_input", f"{what} is {info.dtype} in the model, {value.dtype} was given.")
                arrays.append(None)
                tensors.append(value)
            else:
                arrays.append(dense(value, info.dtype, what, " in the model"))
                tensors.append(device.tensor(arrays[-1], info.dtype))
        with translated():
            results = self._core.run_on_device([t._core for t in tensors], arrays,
                                               None if places is None else [p._core for p in places])
        self._remember([t if a is None else a for t, a in zip(tensors, arrays)])
        return [DeviceTensor(r, device) for r in results] if places is None else given

    def _where_it_lies(self, value: Any) -> Any:
        """An array in memory of the CUDA device that the session runs on as a tensor of it; anything else as it is."""
        if isinstance(value, (DeviceTensor, np.ndarray)) or (dlpack_device(value) or (HOST, 0))[0] != CUDA:
            return value
        return self.device.from_dlpack(value) if self.device._dlpack_device() == dlpack_device(value) else value

    def _planned(self, inputs: Optional[Inputs], call: Callable[[list], Any]) -> Any:
        """What the core says of these inputs, or of the last ones."""
        arrays = self._planning(inputs)
        with translated():
            result = call(arrays)
        if inputs is not None:
            self._remember(arrays)
        return result

    def _remember(self, arrays: list) -> None:
        """Inputs that ran. Few values are kept as they are: they may decide shapes."""
        if not all(isinstance(a, (np.ndarray, DeviceTensor)) for a in arrays):  # what only the core can hold
            self._last = None
            return
        self._last = [(a.shape, np.dtype(BITS.get(a.dtype, a.dtype)) if isinstance(a, DeviceTensor) else a.dtype,
                       a.copy() if isinstance(a, np.ndarray) and a.size <= _FEW else None) for a in arrays]

    def _planning(self, inputs: Optional[Inputs]) -> list:
        if inputs is not None:
            values = self._values(inputs, self.inputs, "input")
            return self._arrays([v.numpy() if isinstance(v, DeviceTensor) else v for v in values])
        if self._last is not None:
            return [np.zeros(shape, dtype) if few is None else few for shape, dtype, few in self._last]
        shapes = [i.shape for i in self.inputs]
        if any(s is None or any(not isinstance(size, int) for size in s) for s in shapes):
            raise BadInput("bad_usage", "The model leaves sizes open; give inputs, or run it once before.")
        return [np.zeros(i.shape, BITS.get(i.dtype, i.dtype)) for i in self.inputs]

    @staticmethod
    def _values(given: Any, infos: list, kind: str) -> list:
        """What was given for the model's inputs or outputs, in their order."""
        names = [i.name for i in infos]
        if isinstance(given, Mapping):
            for name in given:
                if name not in names:
                    raise BadInput("bad_input", f"The model has no {kind} '{name}'; it has {', '.join(map(repr, names))}.")
            missing = [n for n in names if n not in given]
            if missing:
                raise BadInput("bad_input", f"The {kind} '{missing[0]}' is missing; the model has {_listed(infos)}.")
            values = [given[n] for n in names]
        elif isinstance(given, (list, tuple)):
            values = list(given)
        else:
            values = [given]
        if len(values) != len(names):
            takes = "takes" if kind == "input" else "has"
            counted = f"{len(names)} {kind}" + ("" if len(names) == 1 else "s")
            given_text = "1 was" if len(values) == 1 else f"{len(values)} were"
            raise BadInput("bad_input", f"The model {takes} {counted}, {given_text} given; in order: "
                           f"{_listed(infos)}.")
        return values

    def _arrays(self, values: list) -> list:
        return [dense(v, i.dtype, f"The input '{i.name}'", " in the model") for v, i in zip(values, self.inputs)]


class Outputs(list):
    """What a run gave, in the model's order; ``outputs["scores"]`` is one by its name."""

    def __init__(self, values: list, names: Sequence[str]) -> None:
        super().__init__(values)
        self.names = tuple(names)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"{key}; there are {', '.join(self.names)}")
        return super().__getitem__(self.names.index(key))

    def __reduce__(self) -> tuple:
        return Outputs, (list(self), self.names)

    def as_dict(self) -> dict:
        """The results by their names."""
        return dict(zip(self.names, self))

    def _of(self, names: Sequence[str]) -> "Outputs":
        return Outputs([self[n] for n in names], names)


def _reopened(path: str, device: Device, given: dict) -> Session:
    return Session(path, device, **given)


def _options(given: Mapping[str, Any]) -> "_core.SessionOptions":
    options = _core.SessionOptions()
    for name, value in given.items():
        setattr(options, name, value)
    return options


def _on(device: Device, tensor: DeviceTensor, what: str) -> None:
    if tensor.device._core is not device._core:
        raise BadInput("bad_usage", f"{what} lies on another device than the session's; make it with session.device.tensor or "
                       "session.device.empty.")


def _listed(infos: list) -> str:
    """'x' float32 (1, 3, 224, 224), 'shape' int64 (?,)"""
    return ", ".join(f"'{i.name}' {i.dtype} {_sizes(i.shape)}" for i in infos)


def _sizes(shape: Optional[tuple]) -> str:
    if shape is None:
        return "of any shape"
    sizes = ["?" if s is None else str(s) for s in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _info(name: str, dtype: str, shape: Optional[list]) -> TensorInfo:
    return TensorInfo(name, dtype, None if shape is None else tuple(shape))
