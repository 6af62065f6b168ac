"""Element types by name, and what a caller gives as dense NumPy arrays of them."""
from typing import Any, Optional

import numpy as np

from sparkle._errors import BadInput

# Types of the ml_dtypes package, which NumPy itself lacks, and what holds their bits, one element in each.
BITS = {"bfloat16": np.uint16, **dict.fromkeys(
    ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4",
     "int2", "uint2"), np.uint8)}
_TYPES = ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
          *BITS)
HOST, CUDA = 1, 2        # DLPack's device types
_HOST = (HOST, 3, 11, 13)  # those whose memory a CPU can read: CPU, CUDA host, ROCm host, CUDA managed


def type_name(dtype: Any) -> str:
    """The name of an element type given as a name or as anything that NumPy takes for one."""
    name = dtype
    if not isinstance(dtype, str) or dtype not in _TYPES:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            pass
    if name not in _TYPES:
        raise BadInput("bad_usage", f"There is no element type {dtype!r}; there are {', '.join(_TYPES)}.")
    return name


def dense(value: Any, dtype: str, what: str, where: str = "") -> Any:
    """The value as a dense NumPy array of this type, copied only where that needs a copy; types of ml_dtypes as their bits.
    What NumPy cannot hold, the core takes as it is: bfloat16 of other libraries. Errors call it ``what``, and say that its type
    is that ``where``."""
    if not isinstance(value, np.ndarray):
        value = _foreign(value, dtype, what, where) if hasattr(value, "__dlpack__") else _numbers(value, dtype, what)
        if not isinstance(value, np.ndarray):
            return value
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if not value.flags.c_contiguous:
        value = np.ascontiguousarray(value)
    bits = BITS.get(dtype)
    if value.dtype.name != dtype and (bits is None or value.dtype != bits):
        advice = f"; convert it with .astype(\"{dtype}\")" if bits is None else ""
        raise BadInput("bad_input", f"{what} is {dtype}{where}, {value.dtype} was given{advice}.")
    return value if bits is None else value.view(bits)


def of_bits(array: Any, dtype: str) -> Any:
    """What the core gave, which has types that NumPy lacks as their bits, as an array of ``dtype`` where ml_dtypes is there."""
    if dtype not in BITS:
        return array
    try:
        import ml_dtypes
    except ImportError:
        return array
    return array.view(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else array


def dlpack_device(value: Any) -> Optional[tuple]:
    """Where an array lies: DLPack's device type, all that a CPU can read as one, and the device's number; or
    None."""
    if not hasattr(value, "__dlpack_device__"):
        return None
    kind, number = value.__dlpack_device__()
    return (HOST, 0) if int(kind) in _HOST else (int(kind), int(number))


def _numbers(value: Any, dtype: str, what: str) -> np.ndarray:
    """Numbers, and lists of them."""
    try:
        if np.asarray(value).dtype.kind not in "biufV":  # NumPy makes NaN of None, and numbers of some strings
            raise TypeError(f"{type(value).__name__} is neither an array nor made of numbers")
        return np.asarray(value, dtype=None if dtype in BITS else dtype)
    except Exception as e:  # elements may be of other libraries
        raise BadInput("bad_input", f"{what} cannot be made an array of {dtype}: {_reason(e)}.") from e


def _foreign(value: Any, dtype: str, what: str, where: str) -> Any:
    """An array of another library, its memory shared."""
    if (dlpack_device(value) or (HOST, 0))[0] != HOST:
        raise BadInput("bad_input", f"{what} lies in memory of another device; copy it to host memory first.")
    try:
        return np.from_dlpack(value)
    except Exception as e:  # whatever the other library raises
        if dtype == "bfloat16":
            return value
        raise BadInput("bad_input", f"{what} is {dtype}{where}; what was given cannot be shared by DLPack: "
                       f"{_reason(e)}.") from e


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
