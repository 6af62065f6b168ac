"""Where two authorities contradict each other: the operator, what is contested, who is right and why. `sides`: whose answer is
Sparkle's (reference, onnxruntime), or 'sparkle' where it follows the operator's text against both, or 'refused'."""
import pathlib
import re
from dataclasses import dataclass

import numpy as np


@dataclass
class Dispute:
    operator: str
    sides: str
    when: object  # function(case, detail)
    reason: str


def has_special(case, detail):
    """NaN, infinities."""
    arrays = [np.asarray(a) for feeds in case.feeds for a in feeds.values()]
    return any(not np.isfinite(a.astype(np.float64)).all() for a in arrays if a.dtype.kind == "f" or a.dtype.name == "bfloat16")


def has_infinity(case, detail):
    """Plus infinity."""
    arrays = [np.asarray(a) for feeds in case.feeds for a in feeds.values()]
    return any(np.isposinf(a.astype(np.float64)).any() for a in arrays if a.dtype.kind == "f" or a.dtype.name == "bfloat16")


def whole_numbers(case, detail):
    return all(np.asarray(a).dtype.kind in "iu" for feeds in case.feeds for a in feeds.values())


def empty(case, detail):
    return "shape" in detail and any(0 in np.shape(a) for feeds in case.feeds for a in feeds.values())


def no_elements(case):
    return any(0 in np.shape(a) for feeds in case.feeds for a in feeds.values()) or any(
        0 in t.dims for t in case.model.graph.initializer)


def attributes(case):
    return {a.name for n in case.model.graph.node for a in n.attribute}


def bytes_saturate(case, detail):
    """This CPU multiplies bytes by instructions that add pairs in 16 bits (x86 before VNNI)."""
    cpus = pathlib.Path("/proc/cpuinfo")
    return "shape" not in detail and cpus.exists() and not re.search(r"\b(avx_vnni|avx512_vnni|asimddp)\b", cpus.read_text())


KNOWN = [
    Dispute("GridSample", "reference", lambda c, d: any(
        a.s in (b"bicubic", b"cubic") for n in c.model.graph.node for a in n.attribute),
            "ONNX Runtime pads after it has moved the position into the image where the mode is cubic; the operator's text "
            "pads each of the sixteen elements"),
    *(Dispute(op, "reference", whole_numbers, "ONNX Runtime adds integers in a wider type and saturates; the evaluator and "
              "Sparkle wrap around, as the type does") for op in ("ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceProd")),
    Dispute("MeanVarianceNormalization", "reference", lambda c, d: "nan" in d,
            "ONNX Runtime takes the root of a variance that rounding made negative where all elements are equal"),
    *(Dispute(op, "reference", has_special, "ONNX Runtime keeps or loses NaN by its place; the evaluator and Sparkle keep it")
      for op in ("ReduceMax", "ReduceMin")),
    *(Dispute(op, "reference", empty, "ONNX Runtime gives the reduction of an empty tensor another shape than keepdims asks")
      for op in ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare")),
    Dispute("Resize", "reference", lambda c, d: any(
        a.s in (b"align_corners", b"pytorch_half_pixel") for n in c.model.graph.node for a in n.attribute),
            "the operator's text maps positions by the length before rounding (3 elements at scale 1.5 are 4.5 long), ONNX "
            "Runtime by that after it"),
    Dispute("MatMul", "reference", empty, "ONNX Runtime does not broadcast the batch of a product over no elements"),
    Dispute("MatMul", "reference", lambda c, d: "shape" not in d and "expected 0.0" in d and no_elements(c),
            "ONNX Runtime leaves the sums over no elements as it found their memory; they are 0"),
    Dispute("Sign", "reference", lambda c, d: has_special(c, d) and "0.0, expected nan" in d,
            "ONNX Runtime takes NaN for 0; the evaluator and Sparkle keep it"),
    *(Dispute(op, "reference", lambda c, d: "shape" in d and {"auto_pad", "dilations"} <= attributes(c),
              "ONNX Runtime leaves dilations out of the size that auto_pad asks for") for op in (
                  "AveragePool", "MaxPool", "LpPool")),
    Dispute("LogSoftmax", "reference", lambda c, d: has_infinity(c, d) and "-inf, expected nan" in d,
            "ONNX Runtime gives minus infinity to the finite elements of a row with plus infinity; the evaluator and Sparkle "
            "NaN, as the operator's text: the sum of exponentials of that row is NaN"),
    Dispute("LogSoftmax", "reference", lambda c, d: has_special(c, d) and "expected nan" in d,
            "ONNX Runtime overlooks NaN where it looks for a row's largest element, and gives the others numbers; the "
            "evaluator and Sparkle NaN, as the sum of exponentials of that row is NaN"),
    Dispute("Clip", "reference", lambda c, d: has_special(c, d) and "e+38" in d,
            "ONNX Runtime takes a bound that is not given for the largest finite number and cuts infinities"),
    Dispute("Mod", "reference", whole_numbers, "ONNX Runtime computes fmod=1 of 64-bit integers in double"),
    Dispute("Einsum", "reference", whole_numbers, "ONNX Runtime adds 64-bit integers in double"),
    *(Dispute(op, "reference", bytes_saturate, "without VNNI ONNX Runtime adds products of bytes in pairs of 16 bits, which "
              "saturate; the evaluator's and Sparkle's sums are exact") for op in (
                  "ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")),
]


def known(case, sides, detail):
    """The reason of the dispute that this case is an example of, or an empty text."""
    operators = {n.op_type for n in case.model.graph.node}
    for d in KNOWN:
        if d.operator in operators and d.sides == sides and d.when(case, detail):
            return f"{d.operator}: {d.reason}"
    return ""
