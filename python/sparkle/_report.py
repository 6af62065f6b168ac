"""What a model did on a device: `Session.report`, as objects that say it in words and as a page."""
import html
import json
import os
from dataclasses import dataclass, field
from typing import Any, Iterator, Sequence, Union


def time_text(ms: float) -> str:
    return f"{ms:.3g} ms" if ms >= 1 else f"{ms * 1e3:.3g} us"


def page_view(page: str) -> str:
    """A page of its own inside a notebook."""
    return f'<iframe srcdoc="{html.escape(page)}" style="width:100%;height:800px;border:0" sandbox="allow-scripts"></iframe>'


@dataclass(frozen=True)
class Step:
    """A step of the plan as it was measured, times in milliseconds. ``name`` is the layer's, ``what`` what it does, ``dtype``
    the type of its elements; ``algorithm`` and ``variant`` were chosen for ``reason``, with the parameters ``schedule``, and
    run on ``unit``, which is of ``unit_kind`` ("vector", "matrix"). ``measured_ms`` stands beside ``predicted_ms`` and
    ``roof_ms``, what the roofs probed beside it allow, of which ``bound`` names the one that binds; ``percent_of_roof`` is how
    near it came, ``gflops`` and ``gbytes_per_s`` what it reached in 1e9 a second. ``flops`` by the direct method's count,
    ``executed_flops`` by the schedule's, ``bytes`` of its operands, each once; ``live_bytes``: of tensors in use while it
    runs."""
    name: str
    what: str
    dtype: str
    algorithm: str
    variant: str
    unit: str
    unit_kind: str
    reason: str
    bound: str
    measured_ms: float
    predicted_ms: float
    roof_ms: float
    percent_of_roof: float
    gflops: float
    gbytes_per_s: float
    flops: float
    executed_flops: float
    bytes: float
    live_bytes: int
    schedule: str = field(repr=False)

    def __repr__(self) -> str:
        return (f"<{self.name}: {self.what} by {self.algorithm} on {self.unit or self.variant}, {time_text(self.measured_ms)}, "
                f"{self.percent_of_roof:.0f} % of its roof ({self.bound}); {self.reason}>")


class Report:
    """A measured run. ``steps`` in the order of the plan; times in milliseconds, ``matrix_share`` 0 to 1 of the executed
    operations, ``outputs_checked``: whether they were compared, and ``check`` with what, or why not;
    ``report["measured_ms"]`` and the like are the JSON of ``sparkle report --json``. In a notebook it is a page with
    a roofline; ``save`` and ``save_trace`` write files."""

    def __init__(self, text: str, page: str, trace: str) -> None:
        self._said = json.loads(text)
        self.page = page
        self.trace = trace
        self.model: str = self._said["model"]
        self.device: str = self._said["device"]
        self.measured_ms: float = self._said["measured_ms"]
        self.predicted_ms: float = self._said["predicted_ms"]
        self.roof_ms: float = self._said["roof_ms"]
        self.matrix_share: float = self._said["matrix_share"]
        self.peak_bytes: int = self._said["peak_bytes"]
        self.outputs_checked: bool = self._said["outputs_checked"]
        self.check: str = self._said["check"]
        names = Step.__dataclass_fields__
        self.steps: Sequence[Step] = [Step(**{name: step[name] for name in names}) for step in self._said["steps"]]

    def __getitem__(self, key: str) -> Any:
        return self._said[key]

    def keys(self) -> Sequence[str]:
        """What ``report[key]`` knows."""
        return list(self._said)

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)

    def __repr__(self) -> str:
        lines = [f"sparkle.Report({self.model!r} on {self.device!r}: {time_text(self.measured_ms)} a pass, "
                 f"{100 * self.roof_ms / max(self.measured_ms, 1e-9):.0f} % of its roofs, predicted "
                 f"{time_text(self.predicted_ms)}, {100 * self.matrix_share:.0f} % of the operations on matrix units)"]
        lines.append(f"  outputs: {self.check}")
        longest = sorted(self.steps, key=lambda step: -step.measured_ms)
        lines += [f"  {step!r}" for step in longest[:5]]
        if len(longest) > 5:
            lines.append(f"  and {len(longest) - 5} steps that take less")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return page_view(self.page)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page; it needs no network."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page)

    def save_trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes one run as a Chrome trace, for Perfetto or chrome://tracing."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.trace)
