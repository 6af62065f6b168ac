"""onnxruntime's IOBinding: inputs and places of outputs by name."""
import ctypes
from typing import Any, Optional, Sequence

import numpy as np

from sparkle._arrays import BITS
from sparkle._device import DeviceTensor
from sparkle._errors import BadInput
from sparkle.ort._errors import theirs_too
from sparkle.ort._values import OrtValue, element_type_named


class IOBinding:
    """Inputs and places of outputs by name, for ``InferenceSession.run_with_iobinding``."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict = {}
        self._outputs: dict = {}  # name -> a place, or None for a new one
        self._results: list = []

    @theirs_too()
    def bind_cpu_input(self, name: str, array: Any) -> None:
        """An array of the host as this input. Errors: BadInput for a name that is none of the model's."""
        self._inputs[self._known(name, self._session.get_inputs(), "input")] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """The same with an OrtValue, wherever it lies."""
        self.bind_cpu_input(name, value._value)

    @theirs_too()
    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """The same with ``shape`` elements of ``element_type`` at an address of the host, which must stay until the run.
        Errors: BadInput for memory of other devices."""
        self.bind_cpu_input(name, self._at(device_type, element_type, shape, buffer_ptr))

    @theirs_too()
    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Asks for this output: at an address of the host, with ``element_type`` and ``shape``; or new, on the host or, for
        another ``device_type``, on the session's device. Errors: BadInput."""
        place = None
        if buffer_ptr:
            if element_type is None or shape is None:
                raise BadInput("bad_usage", f"The place of output '{name}' needs element_type and shape beside buffer_ptr.")
            place = self._at(device_type, element_type, shape, buffer_ptr)
        elif device_type != "cpu":
            place = "device"
        self._outputs[self._known(name, self._session.get_outputs(), "output")] = place

    @theirs_too()
    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """The place of this output, of its shape and type."""
        self._outputs[self._known(name, self._session.get_outputs(), "output")] = value._value

    def clear_binding_inputs(self) -> None:
        """Binds no input."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Asks for no output."""
        self._outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: uploads are done when they return."""

    synchronize_outputs = synchronize_inputs

    def get_outputs(self) -> list:
        """An OrtValue for each output that was asked for, in the order of asking."""
        return [OrtValue(r) for r in self._results]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list:
        """The same as arrays of the host."""
        return [OrtValue(r).numpy() for r in self._results]

    def _run(self, session: Any) -> None:
        names = [o.name for o in session.outputs]
        places = [self._outputs.get(n) for n in names]
        if any(isinstance(p, np.ndarray) for p in places) or all(p is None for p in places):
            results = session.run(self._inputs)
            for place, result in zip(places, results):
                if isinstance(place, np.ndarray):
                    if place.shape != result.shape or place.dtype != result.dtype:
                        raise BadInput("bad_input", f"A place is {place.dtype} {place.shape}, its output {result.dtype} "
                                       f"{result.shape}.")
                    place[...] = result
                elif isinstance(place, DeviceTensor):
                    place.write(result)
        elif all(isinstance(p, DeviceTensor) for p in places):
            results = session.run(self._inputs, places)
        else:
            results = session.run(self._inputs, "device")
            for place, result in zip(places, results):
                if isinstance(place, DeviceTensor):
                    place.write(result.numpy())
        by_name = dict(zip(names, results))
        self._results = [by_name[n] if p is None or isinstance(p, str) else p for n, p in self._outputs.items()]

    @staticmethod
    def _known(name: str, nodes: list, kind: str) -> str:
        if name not in [n.name for n in nodes]:
            raise BadInput("bad_usage", f"The model has no {kind} '{name}'; it has {', '.join(repr(n.name) for n in nodes)}.")
        return name

    @staticmethod
    def _at(device_type: str, element_type: Any, shape: Sequence[int], address: int) -> np.ndarray:
        """The host's memory at an address as an array; it must stay as long as it is bound."""
        if device_type != "cpu":
            raise BadInput("bad_usage", f"Memory of '{device_type}' is bound by bind_ortvalue_input or as an array that speaks "
                           "DLPack, not by its address.")
        name = element_type_named(element_type)
        dtype = np.dtype(BITS.get(name, name))
        count = int(np.prod(shape, dtype=np.int64))
        memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, dtype).reshape(tuple(shape))


SessionIOBinding = IOBinding
