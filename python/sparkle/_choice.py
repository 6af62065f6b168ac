"""Which of the devices here runs a model fastest."""
import json
import os
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence, Union

from sparkle import _core
from sparkle._arguments import checked
from sparkle._errors import translated
from sparkle._session import _KINDS, _options


@dataclass(frozen=True)
class DeviceChoice:
    """``device``: a name for ``Device`` and ``Session``; ``why``: one line. ``rows``: what was compared, a dictionary for each
    device with "device", "why" and, where they are known, "predicted_ms", "transfers_ms" and "measured_ms"; empty where the
    choice is one of before or there is none to make."""
    device: str
    why: str
    rows: List[dict]


def choose_device(model: Union[str, os.PathLike], *, rows: int = 1, shapes: Optional[Mapping[str, Sequence[int]]] = None,
                  threads: int = 0, **options: Any) -> DeviceChoice:
    """Which of the devices here runs the model at this path fastest, transfers included: by prediction where that is clear, by
    some runs on random values where it is not, and as before where the same was asked before. ``rows``: items of a run, where
    the model leaves its first axes open; ``shapes`` of inputs by name where it leaves further sizes open; ``threads`` of the
    CPU; ``options``: those of the Session. A software device is never preferred to the CPU; without a GPU it is the CPU, and
    nothing is opened; of a compiled file it is the device that it was compiled for. Errors: BadInput where sizes stay open."""
    for name in options:
        if name not in _KINDS:
            raise TypeError(f"choose_device() got an unexpected keyword argument {name!r}")
    given = checked("choice", _KINDS, options)
    with translated():
        text = _core.choose_device(os.fspath(model), threads, rows, [(n, list(s)) for n, s in (shapes or {}).items()],
                                   _options(given))
    return DeviceChoice(**json.loads(text))
