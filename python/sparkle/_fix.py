"""Models fixed from Python: `sparkle.fix`, and what it found as an object that says it in words."""
import json
import os
from typing import Any, Dict, List, Sequence, Union

from sparkle import _core
from sparkle._device import Device
from sparkle._errors import translated


class Fixed:
    """What ``sparkle.fix`` did. ``report`` is the whole of it, as of ``sparkle fix --json``."""

    def __init__(self, path: str, report: Dict[str, Any]):
        self.path = path
        self.report = report

    @property
    def kept_wide(self) -> Dict[str, str]:
        """Layers that keep their type, and why."""
        return {row["layer"]: row["why"] for row in self.report["kept_wide"]}

    @property
    def outputs(self) -> List[Dict[str, Any]]:
        """Each output beside the original's: its largest error, cosine, and first classes that stayed."""
        proof = self.report.get("proof") or self.report.get("rewrites_proof")
        return proof["outputs"] if proof else []

    def __repr__(self) -> str:
        lines = [f"{self.path}: {rule}, {len(rows)} lines" for rule, rows in self.report["rewrites"].items()]
        if "integer_share" in self.report:
            lines.append(f"integers: {100 * self.report['integer_share']:.1f} % of the multiplications")
        lines += [f"{o['output']}: the same to the bit" if o["same_bits"] else f"{o['output']}: cosine {o['cosine']:.6f}"
                  for o in self.outputs]
        return "\n".join(lines) or f"{self.path}: nothing to fix"


def fix(model: Union[str, os.PathLike], output: Union[str, os.PathLike], device: Union[Device, str] = "auto", *,
        precision: str = "", target: str = "", only: Sequence[str] = (), samples: Sequence[Any] = (), calibration: str = "",
        proof: str = "", max_extra: float = 0, multiple: int = 0) -> Fixed:
    """Writes an ONNX file with channels padded, constants and BatchNormalization folded, and in another ``precision`` ("fp16",
    "bf16", "int8") where one is given, after the proof that it answers as before. ``samples``: what ranges are measured on and
    answers compared with, an array each or, for models of several inputs, a list of arrays each. The other options are those
    of the command ``sparkle fix``."""
    device = device if isinstance(device, Device) else Device(device)
    arrays: List[Any] = []
    for sample in samples:
        arrays.extend(sample if isinstance(sample, (list, tuple)) else [sample])
    with translated():
        report = _core.fix(device._core, os.fspath(model), os.fspath(output), precision, target, ",".join(only), calibration,
                           proof, max_extra, multiple, arrays)
    return Fixed(os.fspath(output), json.loads(report))
