"""onnxruntime's OrtValue and IOBinding over NumPy arrays and device tensors."""
import ctypes
from typing import Any, Optional, Sequence

import numpy as np

from sparkle._arrays import BITS, type_name
from sparkle._device import Device, DeviceTensor
from sparkle._errors import BadInput

_TYPES = {"float32": "float", "float64": "double", "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1",
          **{f"float8_{form}": f"float8{form}" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}}


def tensor_type(dtype: str) -> str:
    """"tensor(float)"."""
    return f"tensor({_TYPES.get(dtype, dtype)})"


def device_named(device_type: str, device_id: int = 0) -> str:
    """Sparkle's name of a device of onnxruntime's."""
    kind = device_type.lower()
    names = {"cpu": "cpu", "cuda": f"cuda:{device_id}", "gpu": f"cuda:{device_id}", "vulkan": f"vulkan:{device_id}",
             "dml": f"vulkan:{device_id}", "webgpu": f"vulkan:{device_id}"}
    if kind not in names:
        raise BadInput("bad_usage", f"There is no device type '{device_type}'; there are {', '.join(names)}.")
    return names[kind]


class OrtValue:
    """A tensor in the host's memory or a device's."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def ortvalue_from_numpy(cls, array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        """The array's values in memory of a device, or, for "cpu", the dense array itself. Errors: BadInput for other device
        types, Error where the device cannot be used."""
        if device_type == "cpu":
            return cls(np.ascontiguousarray(array))
        return cls(Device(device_named(device_type, device_id)).tensor(array))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0) -> "OrtValue":
        """A tensor of zeros on the host, or with whatever lies there on a device. Errors: as above."""
        if device_type == "cpu":
            name = type_name(element_type)
            return cls(np.zeros(tuple(shape), BITS.get(name, name)))
        return cls(Device(device_named(device_type, device_id)).empty(shape, element_type))

    def numpy(self) -> np.ndarray:
        """The values as an array: fetched from a device, shared on the host."""
        return self._value.numpy() if isinstance(self._value, DeviceTensor) else self._value

    def shape(self) -> list:
        """Sizes of its axes, outermost first."""
        return list(self._value.shape)

    def element_type_name(self) -> str:
        """NumPy's name of the element type, or that of ml_dtypes."""
        return self._value.dtype if isinstance(self._value, DeviceTensor) else self._value.dtype.name

    def data_type(self) -> str:
        """onnxruntime's name of the type, "tensor(float)"."""
        return tensor_type(self.element_type_name())

    def device_name(self) -> str:
        """Where it lies: "cpu", "cuda" or "vulkan"."""
        return self._value.device.name.split(":")[0] if isinstance(self._value, DeviceTensor) else "cpu"

    def is_tensor(self) -> bool:
        """True: sequences and maps are no values here."""
        return True

    def has_value(self) -> bool:
        """True: there are no empty ones."""
        return True

    def update_inplace(self, array: np.ndarray) -> None:
        """Other values, of the same shape and type. Errors: BadInput, ValueError."""
        if isinstance(self._value, DeviceTensor):
            self._value.write(array)
        else:
            self._value[...] = array

    def data_ptr(self) -> int:
        """The host's address of the elements. Errors: BadInput where a device has them."""
        if isinstance(self._value, DeviceTensor):
            raise BadInput("bad_usage", "A device's memory is shared by DLPack: __dlpack__ of the sparkle.DeviceTensor.")
        return self._value.ctypes.data

    def __dlpack__(self, **options: Any) -> Any:
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        return self._value.__dlpack_device__()


class IOBinding:
    """Inputs and places of outputs by name, for ``InferenceSession.run_with_iobinding``."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict = {}
        self._outputs: dict = {}  # name -> a place, or None for a new one
        self._results: list = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        """An array of the host as this input. Errors: BadInput for a name that is none of the model's."""
        self._inputs[self._known(name, self._session.get_inputs(), "input")] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """The same with an OrtValue, wherever it lies."""
        self.bind_cpu_input(name, value._value)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """The same with ``shape`` elements of ``element_type`` at an address of the host, which must stay until the run.
        Errors: BadInput for memory of other devices."""
        self.bind_cpu_input(name, self._at(device_type, element_type, shape, buffer_ptr))

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
        name = type_name(element_type)
        dtype = np.dtype(BITS.get(name, name))
        count = int(np.prod(shape, dtype=np.int64))
        memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
        return np.frombuffer(memory, dtype).reshape(tuple(shape))
