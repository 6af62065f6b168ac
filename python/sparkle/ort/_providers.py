"""Which device runs a model for which a program lists onnxruntime's providers."""
import logging
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from sparkle._device import Device, devices
from sparkle._errors import BadInput, Error

CPU = "CPUExecutionProvider"
_VULKAN = "VulkanExecutionProvider"
# Sparkle's device of each provider.
_DEVICES = {"TensorrtExecutionProvider": "cuda", "NvTensorRTRTXExecutionProvider": "cuda", "CUDAExecutionProvider": "cuda",
            "DmlExecutionProvider": "vulkan", "WebGpuExecutionProvider": "vulkan", _VULKAN: "vulkan",
            "OpenVINOExecutionProvider": "cpu", "DnnlExecutionProvider": "cpu", "XnnpackExecutionProvider": "cpu", CPU: "cpu"}
Pair = Tuple[str, dict]


def get_all_providers() -> list:
    """Names of onnxruntime's providers for which Sparkle has a kind of device."""
    return list(_DEVICES)


def get_available_providers() -> list:
    """Those whose devices are here. A CPU that plays a GPU (Mesa's llvmpipe) is none: it is slower than the CPU itself."""
    here = {d.name.split(":")[0] for d in devices() if not d.unusable and not d.software}
    return [p for p, device in _DEVICES.items() if device in here and p in ("CUDAExecutionProvider", _VULKAN, CPU)]


def get_device() -> str:
    """The word "GPU" where one is here, else "CPU"."""
    return "GPU" if len(get_available_providers()) > 1 else "CPU"


def listed(providers: Optional[Sequence[Any]], options: Optional[Sequence[Mapping]]) -> List[Pair]:
    """(name, options) of each provider. Errors: BadInput for what is neither a name nor such a pair."""
    pairs = [_pair(p) for p in ([providers] if isinstance(providers, str) else providers) or [CPU]]
    if options and len(options) == len(pairs):
        pairs = [(name, {**own, **given}) for (name, own), given in zip(pairs, options)]
    return pairs


def _pair(given: Any) -> Pair:
    if isinstance(given, str):
        return given, {}
    if isinstance(given, (tuple, list)) and given and isinstance(given[0], str):
        options = (given[1] if len(given) > 1 else None) or {}
        if len(given) <= 2 and isinstance(options, Mapping):
            return given[0], dict(options)
    raise BadInput("bad_usage", f"The provider {given!r} is neither a name nor a name with a dictionary of options; list "
                   f"'{CPU}' or ('CUDAExecutionProvider', {{'device_id': 0}}).")


def device_of(pairs: Sequence[Pair], threads: int, may_fall_back: bool) -> Tuple[str, Device]:
    """The first provider whose device is here, and the device, with ``threads`` where it is a CPU. A CPU that plays a GPU is
    taken where VulkanExecutionProvider is listed and no other device that is listed is here. Where none is, the CPU is taken,
    if it ``may_fall_back``. A warning names what was passed over. Errors: BadInput where none is here and the CPU may not be
    taken."""
    passed_over, software = [], None
    for name, given in pairs:
        found = _opened(name, given, threads)
        if isinstance(found, str):
            passed_over.append(f"'{name}'{found}")
        elif _is_software(found):
            software = software or ((name, found) if name == _VULKAN else None)
            passed_over.append(f"'{name}' (its only device here, {found.describe()['name']}, is a CPU that plays a GPU)")
        else:
            return _taken(name, found, passed_over)
    if software is not None:
        name, device = software
        logging.getLogger("sparkle").warning("%s is %s here, a CPU that plays a GPU: %s runs the model faster.", name,
                                             device.describe()["name"], CPU)
        return software
    if not may_fall_back:
        raise BadInput("bad_usage", f"There is no provider {', '.join(passed_over)} here; list {CPU}, or allow to fall back.")
    return _taken(CPU, Device("cpu", threads), passed_over)


def _taken(name: str, device: Device, passed_over: list) -> Tuple[str, Device]:
    if passed_over:
        logging.getLogger("sparkle").warning("Sparkle has no provider %s here; %s runs the model.", ", ".join(passed_over),
                                             name)
    return name, device


def _opened(name: str, given: Mapping, threads: int) -> Any:
    """The provider's device, or why there is none."""
    kind = _DEVICES.get(name)
    if kind is None:
        return ""
    number = given.get("device_id")
    if kind != "cpu" and number is not None:
        try:
            kind = f"{kind}:{int(number)}"
        except (TypeError, ValueError):
            raise BadInput("bad_usage", f"The device_id of '{name}' is {number!r}; give a whole number.") from None
    elif kind == "vulkan":  # the first GPU, whatever stands before it
        kind = next((d.name for d in devices() if d.name.startswith("vulkan:") and not d.unusable and not d.software), kind)
    try:
        return Device(kind, threads)
    except Error as e:
        return f" ({str(e).splitlines()[0].rstrip('.')})"


def _is_software(device: Device) -> bool:
    return device.name.startswith("vulkan") and device.describe()["architecture"] == "llvmpipe"
