"""onnxruntime's words for devices and their memory: plain records that scripts make and compare, and enums."""
import enum
from typing import Any, Mapping, Union

from sparkle._errors import BadInput


class OrtAllocatorType(enum.IntEnum):
    """How another engine's allocator works."""
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    """What memory is for."""
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = CPU_OUTPUT
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    """Whether the host can read memory of a device."""
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices."""
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of devices, by other numbers."""
    CPU = 0
    GPU = 1
    NPU = 2


class OrtDeviceVendorId(enum.IntEnum):
    """Makers of devices, by their numbers on the PCI bus."""
    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtDevice:
    """A device by numbers: ``OrtDevice.make("cuda", 0)``, or those of its type, its memory, its vendor where that is known, and
    which of them it is: ``OrtDevice(OrtDevice.cuda(), 0, 0)``."""
    _TYPES = {"cpu": (0, 0), "cuda": (1, OrtDeviceVendorId.NVIDIA), "gpu": (1, 0), "vulkan": (1, 0), "webgpu": (1, 0),
              "npu": (3, 0), "cann": (3, OrtDeviceVendorId.HUAWEI), "dml": (1, OrtDeviceVendorId.MICROSOFT)}

    def __init__(self, *numbers: int) -> None:
        if len(numbers) not in (3, 4):
            raise BadInput("bad_usage", f"An OrtDevice is made of a type, a memory, a vendor where it is known, and an id; "
                           f"{len(numbers)} numbers were given.")
        kind, memory, *vendor, number = (int(n) for n in numbers)
        self._numbers = (kind, memory, vendor[0] if vendor else 0, number)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> "OrtDevice":
        """By its name. Errors: BadInput for names that onnxruntime has not."""
        if ort_device_name not in OrtDevice._TYPES:
            raise BadInput("bad_usage", f"There is no device type '{ort_device_name}'; there are "
                           f"{', '.join(OrtDevice._TYPES)}.")
        kind, vendor = OrtDevice._TYPES[ort_device_name]
        return OrtDevice(kind, 0, vendor if vendor_id < 0 else vendor_id, device_id)

    def device_type(self) -> int:
        """One of the numbers of ``cpu()``, ``cuda()`` and so on."""
        return self._numbers[0]

    def device_mem_type(self) -> int:
        """One of ``OrtDeviceMemoryType``."""
        return self._numbers[1]

    def device_vendor_id(self) -> int:
        """One of ``OrtDeviceVendorId``; 0 is unknown."""
        return self._numbers[2]

    def device_id(self) -> int:
        """Which of those of its type."""
        return self._numbers[3]

    mem_type, vendor_id = device_mem_type, device_vendor_id

    def _get_c_device(self) -> "OrtDevice":
        return self

    @staticmethod
    def default_memory() -> int:
        """The number of a device's own memory."""
        return 0

    @staticmethod
    def cpu() -> int:
        """The number of CPUs."""
        return 0

    @staticmethod
    def gpu() -> int:
        """The number of GPUs."""
        return 1

    cuda = webgpu = gpu

    @staticmethod
    def fpga() -> int:
        """The number of FPGAs."""
        return 2

    @staticmethod
    def npu() -> int:
        """The number of NPUs."""
        return 3

    cann = npu

    @staticmethod
    def dml() -> int:
        """The number of DirectML's devices."""
        return 4

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, OrtDevice) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __repr__(self) -> str:
        return f"OrtDevice{self._numbers}"


class OrtMemoryInfo:
    """Where memory lies: ``name`` ("Cpu", "Cuda"), ``allocator_type``, ``device_id``, ``mem_type``."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType) -> None:
        self.name, self.device_id = name, int(device_id)
        self.allocator_type, self.mem_type = OrtAllocatorType(allocator_type), OrtMemType(mem_type)
        self.device_mem_type, self.device_vendor_id = OrtDeviceMemoryType.DEFAULT, 0

    @staticmethod
    def create_v2(name: str, device_type: OrtMemoryInfoDeviceType, vendor_id: int, device_id: int,
                  device_mem_type: OrtDeviceMemoryType, alignment: int, allocator_type: OrtAllocatorType) -> "OrtMemoryInfo":
        """The same with a vendor and a kind of memory."""
        made = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        made.device_mem_type, made.device_vendor_id = OrtDeviceMemoryType(device_mem_type), int(vendor_id)
        return made

    def __repr__(self) -> str:
        return f"OrtMemoryInfo({self.name!r}, {self.allocator_type.name}, {self.device_id}, {self.mem_type.name})"


class OrtArenaCfg:
    """How another engine's arena grows, which changes nothing here."""
    _NAMES = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
              "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    def __init__(self, *given: Union[int, Mapping[str, int]]) -> None:
        entries = dict(given[0]) if len(given) == 1 and isinstance(given[0], Mapping) else dict(zip(self._NAMES, given))
        unknown = [name for name in entries if name not in self._NAMES]
        if unknown:
            raise BadInput("bad_usage", f"OrtArenaCfg has no option '{unknown[0]}'; it has {', '.join(self._NAMES)}.")
        for name in self._NAMES:
            setattr(self, name, entries.get(name, -1))
