"""What keeps a model off the fast path of devices that need not be here."""
import json
import os
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from sparkle import _core
from sparkle._errors import translated
from sparkle._report import page_view, time_text


@dataclass(frozen=True)
class Finding:
    """A rule that a layer breaks; ``layer`` None: the model as a whole. ``code``: of the rule ("channels_unaligned"). ``rule``
    and ``fix``: sentences with the layer's numbers. ``in_model``: the fix changes the model, else how it is run;
    ``by_fix``: ``sparkle.fix`` does it. ``now_ms`` and ``fixed_ms``: what the layer takes, predicted, in milliseconds."""
    code: str
    layer: Optional[str]
    rule: str
    fix: str
    in_model: bool
    by_fix: bool
    now_ms: float
    fixed_ms: float

    def __repr__(self) -> str:
        return f"<{self.code} of {self.layer or 'the model'}: {self.rule}; {self.fix}>"


@dataclass(frozen=True)
class Layer:
    """A layer of the plan: its ``name`` and ``what`` it does in elements of ``dtype``, the ``unit`` that it runs on and that
    one's ``kind``, what ``bound`` it meets there, what it takes now and once fixed (``predicted_ms``, ``fixed_ms``), its
    arithmetic (``flops``) and operands (``bytes``, each once), the codes of its ``findings``. ``measured_ms``: of
    ``sparkle.check(..., measure=True)``."""
    name: str
    what: str
    kind: str
    dtype: str
    unit: str
    bound: str
    predicted_ms: float
    fixed_ms: float
    flops: float
    bytes: float
    findings: Sequence[str]
    measured_ms: Optional[float] = None

    def __repr__(self) -> str:
        found = f", {', '.join(self.findings)}" if self.findings else ""
        measured = "" if self.measured_ms is None else f", measured {time_text(self.measured_ms)}"
        return (f"<{self.name}: {self.what} on {self.unit}, {time_text(self.predicted_ms)} -> "
                f"{time_text(self.fixed_ms)}{measured}{found}>")


@dataclass(frozen=True)
class Verdict:
    """What is said of one device: ``target`` as it was asked for, ``device`` its name. ``basis``: what its times rest on,
    ``calibrated`` whether rates were measured there. Times of a pass in milliseconds, now and once fixed (``predicted_ms``,
    ``fixed_ms``); ``findings`` a ``Finding`` each, ``layers`` a ``Layer`` each; ``matrix_share``: of the
    arithmetic, 0 to 1; ``precisions``: the model in each type, a dictionary each. ``measured_ms``: of
    ``sparkle.check(..., measure=True)``."""
    target: str
    device: str
    basis: str
    calibrated: bool
    predicted_ms: float
    fixed_ms: float
    matrix_share: float
    findings: Sequence[Finding] = field(repr=False)
    layers: Sequence[Layer] = field(repr=False)
    precisions: Sequence[dict] = field(repr=False)
    measured_ms: Optional[float] = None

    @property
    def speedup(self) -> float:
        """How many times as fast the model is once fixed, as predicted."""
        return self.predicted_ms / self.fixed_ms if self.fixed_ms else 1.0

    def __repr__(self) -> str:
        measured = "" if self.measured_ms is None else f", measured {time_text(self.measured_ms)}"
        return (f"<{self.target}: {time_text(self.predicted_ms)}{measured}, {time_text(self.fixed_ms)} once fixed "
                f"({self.speedup:.2f} times as fast), findings: {len(self.findings)}; {self.basis}>")


class Check:
    """Verdicts by target, in the order asked for; in a notebook a page with a roofline."""

    def __init__(self, text: str, page: str) -> None:
        said = json.loads(text)
        self.model: str = said["model"]
        self.page = page
        self._verdicts = {t["target"]: _verdict(t) for t in said["targets"]}

    def __getitem__(self, target: str) -> Verdict:
        return self._verdicts[target]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._verdicts.values())

    def __len__(self) -> int:
        return len(self._verdicts)

    def __repr__(self) -> str:
        return "\n".join([f"sparkle.Check({self.model!r})", *(f"  {verdict!r}" for verdict in self)])

    def _repr_html_(self) -> str:
        return page_view(self.page)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page; it needs no network."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page)


def _verdict(t: Mapping[str, Any]) -> Verdict:
    findings = [Finding(**{name: f[name] for name in Finding.__dataclass_fields__}) for f in t["findings"]]
    layers = [Layer(**{name: row.get(name) for name in Layer.__dataclass_fields__}) for row in t["layers"]]
    return Verdict(t["target"], t["device"], t["basis"], t["calibrated"], t["predicted_ms"], t["fixed_ms"], t["matrix_share"],
                   findings, layers, t["precisions"], t.get("measured_ms"))


def check(model: Union[str, "os.PathLike[str]"], target: Union[str, Sequence[str]],
          shapes: Optional[Mapping[str, Sequence[int]]] = None, *, measure: bool = False, threads: int = 0) -> Check:
    """What keeps an ONNX file off the fast path of devices. ``target``: one or several, which need not be here: "h200",
    "avx512" ... as ``sparkle check --help`` lists them, or a file that describes one; or of this machine "cpu", "vulkan",
    "vulkan:1". ``shapes``: of inputs whose sizes the model leaves open, by name; a first axis that is open counts as 1.
    ``measure`` runs the model on random inputs for about a second on each device, which must be here then, and gives rows
    ``measured_ms``. ``threads`` of "cpu": 0 is what affinity and cgroup quota allow. Times are in milliseconds. Errors:
    BadInput for names, shapes and models that are none, FileUnreadable, NotServed."""
    targets = target if isinstance(target, str) else ",".join(target)
    given = [(name, [int(size) for size in shape]) for name, shape in (shapes or {}).items()]
    with translated():
        return Check(*_core.check(os.fspath(model), targets, given, threads, measure))
