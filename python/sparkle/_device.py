"""Devices, and tensors in their memory."""
import json
import functools
import math
import operator
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence

import numpy as np

from sparkle import _core
from sparkle._arguments import checked
from sparkle._arrays import BITS, CUDA, HOST, dense, dlpack_device, of_bits, type_name
from sparkle._errors import BadInput, translated


class Device:
    """What runs models. ``name``: "cpu", "vulkan", "vulkan:1" (as ``sparkle devices`` numbers them), "cuda" or
    "reference"; "auto" is the CPU: ``sparkle.choose_device`` says which is the fastest for a model. ``threads`` 0: what
    affinity and cgroup quota allow. ``calibrate`` measures the machine's rates first. ``fallback``: "allow" takes the CPU in
    the place of a device that cannot be used here, which ``Session.events`` tells; else that is an Error."""

    def __init__(self, name: str = "auto", threads: int = 0, calibrate: bool = False, *,
                 fallback: str = "") -> None:
        given = checked("Device", {"name": "text", "threads": "whole", "calibrate": "flag", "fallback": "text"},
                        dict(name=name, threads=threads, calibrate=calibrate, fallback=fallback))
        with translated():
            self._core = _core.Device(**given)
        self.name = name
        self._given = (name, threads, calibrate), fallback
        self._dlpack: Optional[tuple] = None

    def __reduce__(self) -> tuple:
        given, fallback = self._given
        return functools.partial(Device, fallback=fallback), given  # another process opens its own

    def describe(self) -> dict:
        """Memory levels, math units, rates."""
        return json.loads(self._core.describe())

    def __repr__(self) -> str:
        machine = self.describe()
        return (f"sparkle.Device({self.name!r}: {machine['name']}, {machine['cores']} core"
                f"{'' if machine['cores'] == 1 else 's'})")

    def tensor(self, value: Any, dtype: Any = None) -> "DeviceTensor":
        """A tensor in this device's memory with these values, uploaded once. ``value``: a NumPy array, or, with ``dtype``,
        numbers, lists of them or an array that speaks DLPack. bfloat16 and the types below 8-bit integers are those of
        ml_dtypes, or ``dtype`` by name and uint16 or uint8 with their bits. Errors: BadInput for other types and for what is
        no array of ``dtype``, OutOfMemory."""
        if dtype is None:
            if not isinstance(value, (np.ndarray, np.generic)):
                raise BadInput("bad_usage", "Values that are no NumPy array need a dtype: device.tensor(value, \"float32\").")
            dtype = value.dtype
        name = type_name(dtype)
        array = dense(value, name, "The tensor")
        with translated():
            return DeviceTensor(_core.upload(self._core, name, array), self)

    def empty(self, shape: Sequence[int], dtype: Any = "float32") -> "DeviceTensor":
        """A tensor in this device's memory with whatever lies there, as a place for outputs or for ``DeviceTensor.write``;
        ``dtype`` by name or as NumPy's. Errors: BadInput for negative sizes, more than 8 axes and other types, OutOfMemory."""
        name, sizes = type_name(dtype), [operator.index(size) for size in shape]
        if any(not 0 <= size < 1 << 62 for size in sizes):
            raise BadInput("bad_usage", f"The shape is {tuple(sizes)}; a tensor's sizes are 0 or more, its bytes fewer than "
                           "2^62.")
        with translated():
            return DeviceTensor(_core.DeviceTensor(self._core, name, sizes), self)

    def from_dlpack(self, value: Any) -> "DeviceTensor":
        """A tensor on the memory of another library's array, neither copied nor freed: a dense array that speaks DLPack and
        lies where this device computes - a CUDA device's memory, or the host's for "cpu". What the array's library still
        has to do on it is done before what runs here afterwards, without the host waiting. Errors: BadInput for memory of
        another device, other layouts and element types that DLPack does not know."""
        given, own = dlpack_device(value), self._dlpack_device()
        if own is None or given != own:
            lies = f"DLPack's device {given}" if given else "no device that DLPack knows"
            raise BadInput("bad_input", f"The array lies on {lies}; the device '{self.name}' shares memory of "
                           f"{f'device {own}' if own else 'none'}. Device.tensor uploads arrays of the host.")
        if own[0] == CUDA and not isinstance(value, DeviceTensor):
            # The array's library orders its work before the default stream's, and that comes before ours.
            value = value.__dlpack__(stream=1)
            self.follow_stream(0)
        with translated():
            core, lent = _core.share(self._core, value)
        return DeviceTensor(core, self, lent)

    def follow_stream(self, stream: int) -> None:
        """What runs on this CUDA device from now on begins when what the stream
        (``torch.cuda.current_stream().cuda_stream``) holds now is done; the host waits for nothing."""
        with translated():
            self._core.follow_cuda_stream(int(stream))

    def _dlpack_device(self) -> Optional[tuple]:
        """What DLPack calls it; None: it has no name for such memory."""
        if self._dlpack is None:
            kind = self.describe()["kind"]
            self._dlpack = (HOST, 0) if kind == "cpu" else (CUDA, self._core.cuda_ordinal()) if kind == "cuda" else ()
        return self._dlpack or None

    def traffic(self) -> dict:
        """What was moved since the device was opened, beside what kernels do: "copies" between buffers, "host_transfers"
        between the host's memory and the device's. Runs on device tensors add nothing to either."""
        copies, host_transfers = self._core.traffic()
        return {"copies": copies, "host_transfers": host_transfers}


@dataclass(frozen=True)
class DeviceInfo:
    """A device of this machine: ``name`` as ``Device`` and ``Session`` take it, ``device`` its own name and driver, and in
    ``unusable`` why it cannot be opened, or ""."""
    name: str
    device: str
    unusable: str

    @property
    def software(self) -> bool:
        """Whether it is a CPU that plays a GPU (Mesa's llvmpipe), which nothing takes unless it is named."""
        return self.device.startswith("llvmpipe")


def devices() -> List[DeviceInfo]:
    """The devices here, the CPU first; none of them is opened."""
    with translated():
        return [DeviceInfo(**row) for row in json.loads(_core.devices())]


class DeviceTensor:
    """A dense row-major tensor in memory of a device, made by ``Device.tensor``, ``Device.empty`` and
    ``Session.run(..., outputs="device")``. Given to ``Session.run`` it is read, or written, where it lies. It keeps its memory
    and device alive whatever becomes of the sessions that used it. Reading it in several threads is safe, writing it while a
    run uses it is not.

    Other libraries share its memory by DLPack where it is a CUDA device's or the host's: ``torch.from_dlpack(tensor)``.

    ``device``, ``shape`` (a tuple), ``ndim``, ``size``, ``dtype`` (a name: "float32"), ``nbytes`` (a byte for each element
    below 8 bits). ``lent``: what keeps memory that another library's array shares.
    """

    __slots__ = ("_core", "_lent", "device", "shape", "dtype", "nbytes", "__weakref__")

    def __init__(self, core: _core.DeviceTensor, device: Device, lent: Optional[_core.Lent] = None) -> None:
        self._core = core
        self._lent = lent  # keeps memory that another library's array shares
        self.device = device
        self.shape = tuple(core.shape())
        self.dtype = core.dtype()
        self.nbytes = math.prod(self.shape) * np.dtype(BITS.get(self.dtype, self.dtype)).itemsize

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    def numpy(self) -> np.ndarray:
        """The values, fetched into a new array; of a type that NumPy lacks as one of ml_dtypes, or the bits where that is not
        installed."""
        with translated():
            return of_bits(self._core.read(), self.dtype)

    def write(self, value: Any) -> None:
        """Uploads other values in place. Errors: BadInput for another shape or type."""
        array = dense(value, self.dtype, "The tensor")
        with translated():
            self._core.write(array)

    def __dlpack_device__(self) -> tuple:
        device = self.device._dlpack_device()
        if device is None:
            raise BufferError(f"Memory of the device '{self.device.name}' cannot be shared by DLPack; numpy() fetches the "
                              "values.")
        return device

    def __dlpack__(self, *, stream: Optional[int] = None, max_version: Optional[tuple] = None,
                   dl_device: Optional[tuple] = None, copy: Optional[bool] = None) -> Any:
        """The memory itself, not copied. Runs return when their results are there, so no stream has to wait."""
        device = self.__dlpack_device__()
        if copy or dl_device not in (None, device):
            raise BufferError("A sparkle.DeviceTensor shares its memory where it lies; it does not copy it.")
        if self.dtype in BITS and self.dtype != "bfloat16":
            raise BufferError(f"DLPack has no type for elements of {self.dtype}.")
        with translated():
            return self._core.lend(device[1] if device[0] == CUDA else -1)

    def __repr__(self) -> str:
        return f"sparkle.DeviceTensor(shape={self.shape}, dtype={self.dtype!r}, device={self.device.name!r})"

    def __array__(self, dtype: Optional[Any] = None, copy: Optional[bool] = None) -> np.ndarray:
        raise TypeError("A sparkle.DeviceTensor lies in memory of a device; its numpy() fetches the values.")
