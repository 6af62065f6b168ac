"""What an algorithm may add to the error of a convolution: the bounds that Sparkle states for them (Algorithm::error in
src/algorithms), shares of the largest output for inputs and weights of no preferred sign. Where a sum's outputs happen to be
small, the size that outputs of such sums have, the root of the sum of squares, stands for the largest."""
import numpy as np

from draw import DTYPES
from errors import finite

FORCED = ("gemm", "direct", "grouped", "depthwise", "winograd2", "winograd4", "winograd6", "fft", "gemm_f16", "gemm_bf16")
# Times the root of the channels, to which the transforms add 20.
WINOGRAD = {"winograd2": 8e-8, "winograd4": 3e-7, "winograd6": 2e-6}
ACCURACY = 5e-5  # nothing that is not forced may err by more
KEPT = {"gemm_f16": 2.0 ** -11, "gemm_bf16": 2.0 ** -8}  # of a weight rounded to 16 bits
PLAIN = ("gemm", "direct", "grouped", "depthwise")


def share_of(call, algorithm):
    """The stated bound for this convolution as a share of the largest output."""
    w = call.inputs[1].value
    taps = w.shape[2:]
    dilations = call.attributes.get("dilations", [1] * len(taps))
    shares = {name: factor * np.sqrt((w.shape[1] if call.node.op_type == "Conv" else w.shape[0]) + 20)
              for name, factor in WINOGRAD.items()}
    shares["fft"] = 1e-7 * (3 + sum(np.log2(max(t * r, 1)) for t, r in zip(taps, dilations)))
    if algorithm in shares:
        return shares[algorithm] if algorithm == "fft" else max(shares[algorithm], shares["fft"])
    return max(min(s, ACCURACY) for s in shares.values())  # the planner's choice


def extra_error(algorithm):
    """For exact_values: what the algorithm asked for, or any that the planner may choose, adds to a node's error."""
    def extra(call, outputs):
        op = call.node.op_type
        if op not in ("Conv", "ConvTranspose", "MatMul", "Gemm") or call.dtypes[0] == np.dtype(DTYPES["double"]):
            return None
        arrays = [finite(a) if a is not None else None for a in call.arrays()]
        if algorithm in KEPT:
            sizes = call.run([None if a is None else np.abs(a) for a in arrays])[0]
            more = KEPT[algorithm] * np.abs(sizes)
        else:
            more = 0.0
        if op in ("MatMul", "Gemm") or all(t == 1 for t in arrays[1].shape[2:]):
            return more if algorithm in KEPT else None
        squares = call.run([None if a is None else a * a for a in arrays])[0]
        largest = max(np.abs(finite(outputs[0])).max(initial=0), np.sqrt(squares.max(initial=0)))
        return more + share_of(call, algorithm) * largest
    return extra
