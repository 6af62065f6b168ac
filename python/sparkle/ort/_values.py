"""onnxruntime's OrtValue over NumPy arrays and device tensors."""
from typing import Any, Optional, Sequence, Union

import numpy as np

from sparkle._arrays import BITS, HOST, dlpack_device, of_bits, type_name
from sparkle._device import Device, DeviceTensor
from sparkle._errors import BadInput
from sparkle.ort._errors import theirs_too

_TYPES = {"float32": "float", "float64": "double", "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1",
          **{f"float8_{form}": f"float8{form}" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}}
# The numbers that ONNX gives to element types.
_NUMBERS = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
            "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16, "float8_e4m3fn": 17, "float8_e4m3fnuz": 18,
            "float8_e5m2": 19, "float8_e5m2fnuz": 20, "uint4": 21, "int4": 22, "float4_e2m1fn": 23, "float8_e8m0fnu": 24,
            "uint2": 25, "int2": 26}


def element_type_named(given: Any) -> str:
    """The name of an element type: ONNX's number, a name or NumPy's."""
    if isinstance(given, int):
        for name, number in _NUMBERS.items():
            if number == given:
                return name
        raise BadInput("bad_usage", f"There is no tensor of ONNX's element type {given} here; give another.")
    return type_name(given)


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
    @theirs_too()
    def ortvalue_from_numpy(cls, array: np.ndarray, device_type: str = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> "OrtValue":
        """The array's values in memory of a device, or, for "cpu", the dense array itself. Errors: BadInput for other device
        types and for elements that are no numbers, Error where the device cannot be used."""
        array = np.asarray(array, order="C")
        type_name(array.dtype)
        if device_type == "cpu":
            return cls(array)
        return cls(Device(device_named(device_type, device_id)).tensor(array))

    @classmethod
    @theirs_too()
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, onnx_element_type: int) -> "OrtValue":
        """The array's bits as elements of a type by ONNX's number, as of bfloat16 in uint16. Errors: BadInput for elements of
        another size, and numbers that are no type's."""
        name = element_type_named(int(onnx_element_type))
        bits = np.dtype(BITS.get(name, name))
        if bits.itemsize != data.dtype.itemsize:
            raise BadInput("bad_input", f"Elements of {name} have {bits.itemsize} bytes, those of {data.dtype} were given.")
        return cls(of_bits(np.asarray(data, order="C").view(bits), name))

    @classmethod
    @theirs_too()
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1, memory_info: Any = None) -> "OrtValue":
        """A tensor of zeros on the host, or with whatever lies there on a device. Errors: as above."""
        name = element_type_named(element_type)
        if memory_info is not None:
            device_type, device_id = memory_info.name.lower(), memory_info.device_id
        if device_type == "cpu":
            return cls(of_bits(np.zeros(tuple(shape), BITS.get(name, name)), name))
        return cls(Device(device_named(device_type, device_id)).empty(shape, name))

    @classmethod
    @theirs_too()
    def from_dlpack(cls, data: Any) -> "OrtValue":
        """A tensor on the memory of another library's array that the host can read. Errors: BadInput for memory of a device,
        which is given to ``sparkle.Device.from_dlpack``."""
        if isinstance(data, OrtValue):
            return cls(data._value)
        if (dlpack_device(data) or (HOST, 0))[0] != HOST:
            raise BadInput("bad_usage", "The array lies in memory of a device: give it to from_dlpack of that sparkle.Device.")
        return cls(np.from_dlpack(data))

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

    def element_type(self) -> int:
        """ONNX's number of the element type, 1 for float32."""
        return _NUMBERS[self.element_type_name()]

    def tensor_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return int(self._value.nbytes)

    def device_name(self) -> str:
        """Where it lies: "cpu", "cuda" or "vulkan"."""
        return self._value.device.name.split(":")[0] if isinstance(self._value, DeviceTensor) else "cpu"

    def is_tensor(self) -> bool:
        """True: sequences and maps are no values here."""
        return True

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def has_value(self) -> bool:
        """True: there are no empty ones."""
        return True

    @theirs_too()
    def update_inplace(self, array: Union[np.ndarray, "OrtValue"]) -> None:
        """Other values, of the same shape and type. Errors: BadInput, ValueError."""
        values = array.numpy() if isinstance(array, OrtValue) else array
        if isinstance(self._value, DeviceTensor):
            self._value.write(values)
        else:
            self._value[...] = values

    @theirs_too()
    def data_ptr(self) -> int:
        """The host's address of the elements. Errors: BadInput where a device has them."""
        if isinstance(self._value, DeviceTensor):
            raise BadInput("bad_usage", "A device's memory is shared by DLPack: __dlpack__ of the sparkle.DeviceTensor.")
        return self._value.ctypes.data

    def __array__(self, dtype: Optional[Any] = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=True) if copy else np.asarray(self.numpy(), dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple:
        return self._value.__dlpack_device__()


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    """The values of each of ``src`` into that of ``dst`` beside it; ``stream`` changes nothing. Errors: those of
    ``OrtValue.update_inplace``."""
    for source, place in zip(src, dst):
        place.update_inplace(source)
