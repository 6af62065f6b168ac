"""Models fixed from Python: `sparkle.fix`, and what it found as an object that says it in words and as a notebook's view."""
import html
import json
import os
from typing import Any, Dict, List, Mapping, Sequence, Union

from sparkle import _core
from sparkle._device import Device
from sparkle._errors import translated


class Fixed:
    """What ``sparkle.fix`` did. ``path``: the file that it wrote. ``report``: the whole of it as of ``sparkle fix --json``;
    ``rewrites``, ``kept_wide``, ``ranges`` and ``outputs`` are its parts. In a notebook it is shown as tables."""

    def __init__(self, path: str, report: Dict[str, Any]) -> None:
        self.path = path
        self.report = report

    @property
    def rewrites(self) -> Dict[str, List[str]]:
        """What was done by each rule, a line for each change."""
        return self.report["rewrites"]

    @property
    def notes(self) -> List[str]:
        """What was left as it is, and why."""
        return self.report["notes"]

    @property
    def kept_wide(self) -> Dict[str, str]:
        """Layers that keep their type, and why."""
        return {row["layer"]: row["why"] for row in self.report["kept_wide"]}

    @property
    def ranges(self) -> List[str]:
        """Of the results of layers on the samples: "LAYER: lowest .. highest"."""
        return self.report["ranges"]

    @property
    def integer_share(self) -> float:
        """int8: the share of the multiplications that became those of integers, 0 to 1."""
        return self.report.get("integer_share", 0.0)

    @property
    def outputs(self) -> List[Dict[str, Any]]:
        """Each output beside the original's: ``output``, ``samples``, ``same_bits``, ``largest_error`` as a share of the
        largest value, ``cosine``, and of classifiers ``same_first_class``, the samples whose first class stayed. Empty without
        a proof."""
        return self._proof.get("outputs", [])

    @property
    def _proof(self) -> Dict[str, Any]:
        return self.report.get("proof") or self.report.get("rewrites_proof") or {}

    def __repr__(self) -> str:
        lines = [f"sparkle.Fixed({self.path!r})"]
        lines += [f"  {rule}: {_counted(len(rows), 'change')}" for rule, rows in self.rewrites.items()]
        if self.integer_share:
            lines.append(f"  integers: {100 * self.integer_share:.1f} % of the multiplications")
        if self.kept_wide:
            lines.append(f"  kept wide: {', '.join(self.kept_wide)}")
        lines += [f"  {o['output']}: {_agreement(o)}" for o in self.outputs]
        if not self.outputs:
            lines.append("  not proved: nothing was compared")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        samples = "random samples" if self.report["random_samples"] else "the given samples"
        parts = [f"<p><b>{html.escape(self.path)}</b>"
                 + (f", {100 * self.integer_share:.1f} % of the multiplications in integers" if self.integer_share else "")
                 + "</p>"]
        title = f"Outputs on {samples}, by {self._proof['by']}" if self._proof else "Not proved: nothing was compared"
        parts.append(_table(title, ["output", "beside the original's"], [[o["output"], _agreement(o)] for o in self.outputs]))
        parts.append(_table("Kept wide", ["layer", "why"], list(self.kept_wide.items())))
        parts.append(_table("Where the error enters", ["layer", "before", "behind"],
                            [[e["layer"], f"{e['before']:.2g}", f"{e['behind']:.2g}"] for e in self.report["error_enters"]]))
        for title, lines in [*self.rewrites.items(), ("notes", self.notes), ("ranges", self.ranges)]:
            if lines:
                items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
                parts.append(f"<details><summary>{html.escape(title)} ({len(lines)})</summary><ul>{items}</ul></details>")
        return "".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _agreement(output: Mapping[str, Any]) -> str:
    text = "the same to the bit" if output["same_bits"] else (
        f"cosine {output['cosine']:.6f}, largest error {output['largest_error']:.2g} of the largest value")
    if "same_first_class" in output and not output["same_bits"]:
        text += f", first class the same in {output['same_first_class']} of {output['samples']}"
    return text


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return "" if title[0] != "N" else f"<p>{html.escape(title)}</p>"
    head = "".join(f"<th>{html.escape(h)}</th>" for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>"


def fix(model: Union[str, "os.PathLike[str]"], output: Union[str, "os.PathLike[str]"], device: Union[Device, str] = "auto", *,
        precision: str = "", target: str = "", only: Union[str, Sequence[str]] = (), samples: Sequence[Any] = (),
        calibration: str = "mse", percentile: float = 99.99, keep_wide: Union[str, Sequence[str]] = (), proof: str = "best",
        max_extra: float = 25, multiple: int = 0, min_cosine: float = 0, min_agreement: float = 100,
        shapes: Mapping[str, Sequence[int]] = {}) -> Fixed:
    """Writes the ONNX file ``model`` to ``output`` with channels padded, constants and BatchNormalization folded, and in
    another ``precision`` ("fp16", "bf16", "int8") where one is given, after the proof that it answers as before.

    ``target``: the machine that it is for, by a name of ``sparkle.check`` or a FILE.json; the device here where it is empty.
    ``samples``: what ranges are measured on and answers compared with: an array each, or, for models of several inputs, a list
    of arrays each in the model's order, of its types and shapes; without any, two of random values, whose ``shapes`` by input
    are needed where the model leaves sizes open. ``only``: rules ("pad_channels") or what ``sparkle.check`` calls what they
    mend. ``keep_wide``: layers that keep their types, by the name of the node or of its output. ``calibration`` of int8:
    "mse", "minmax", "percentile" (which keeps ``percentile`` percent of the values) or "entropy". ``proof``: "best" (plain
    loops where they take some seconds), "reference", "planned" or "none". ``max_extra``: percent of arithmetic that padding may
    add to a chain of layers. ``multiple`` of channels: 0 is what the target's units want. ``min_cosine`` to the original's
    outputs: 0 is 0.999, for int8 0.99. ``min_agreement``: percent of the samples that keep their first class.

    ``device`` runs the proof. Errors: NotServed where the result would be too far from the original, naming the layer - nothing
    is written then; BadInput, FileUnreadable, OutOfMemory, and Error with its ``code``."""
    device = device if isinstance(device, Device) else Device(device)
    arrays: List[Any] = []
    for sample in samples:
        arrays.extend(sample if isinstance(sample, (list, tuple)) else [sample])
    options = _core.FixOptions()
    options.precision, options.target, options.calibration, options.proof = precision, target, calibration, proof
    options.only = only if isinstance(only, str) else ",".join(only)
    options.keep_wide = [keep_wide] if isinstance(keep_wide, str) else list(keep_wide)
    options.multiple, options.percentile, options.min_cosine = multiple, percentile, min_cosine
    options.max_extra, options.min_agreement = max_extra or -1, min_agreement or -1  # the core's 0 is the default
    options.shapes = [(name, [int(size) for size in shape]) for name, shape in shapes.items()]
    with translated():
        report = _core.fix(device._core, os.fspath(model), os.fspath(output), options, arrays)
    return Fixed(os.fspath(output), json.loads(report))
