"""All families of operator cases, and one operator's case from a seed. The list of operators that Sparkle serves is read from
its reader's tables, so that an operator without cases is seen."""
import pathlib
import re

from generators import ops_index  # noqa: F401  (each registers its operators)
from generators import ops_pointwise  # noqa: F401
from generators import ops_products  # noqa: F401
from generators import ops_quantize  # noqa: F401
from generators import ops_reduce  # noqa: F401
from generators import ops_resize  # noqa: F401
from generators import ops_shape  # noqa: F401
from generators import ops_windows  # noqa: F401
from case import FAMILIES, Case
from draw import Draw

ROOT = pathlib.Path(__file__).resolve().parents[2]
OF_DATA = "only the data tells its paths or the shapes of its results; tests/vectors/control.py has its cases"
WITHOUT_CASES = {  # operator: why it has none
    name: OF_DATA for name in (
        "If", "Loop", "Scan", "NonZero", "Compress", "Unique", "RoiAlign", "SequenceConstruct", "SequenceEmpty", "SequenceAt",
        "SequenceInsert", "SequenceErase", "SequenceLength", "SplitToSequence", "ConcatFromSequence")}
COMPOSED = "made of operators that have cases, or exact on the host; tests/vectors/composed.py has its cases"
WITHOUT_CASES |= {
    name: COMPOSED for name in (
        "RNN", "GRU", "LSTM", "LinearAttention", "CausalConvWithState", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
        "ReverseSequence", "TensorScatter", "CumProd", "MaxUnpool", "Col2Im", "AffineGrid", "EyeLike", "Optional",
        "OptionalGetElement", "OptionalHasElement", "DFT", "STFT", "HannWindow", "HammingWindow", "BlackmanWindow",
        "MelWeightMatrix", "Shrink", "IsInf", "SwiGLU", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift",
        "BitCast", "Det")}


def supported_operators():
    """The rows {"Name", reader, ... of src/onnx/operators/ops_*.cc, which the command's own look-up uses."""
    rows = []
    for file in sorted((ROOT / "src" / "onnx" / "operators").glob("ops_*.cc")):
        for table in re.findall(r"constexpr OperatorRow k\w+\[\] = \{(.*?)\n\};", file.read_text(), re.S):
            rows += re.findall(r'\{"([A-Za-z0-9.]+)",', table)
    return rows


def operator_case(seed, operator=None):
    d = Draw(seed)
    operator = operator or d.dice.choice(sorted(FAMILIES))
    family = FAMILIES[operator]
    d.opset_for(operator.split(".")[-1], family.lowest, "com.microsoft" if "." in operator else "")
    outputs = family.make(d, operator)
    if not d.feeds:
        return None
    return Case(seed, "operator", operator, d.model(outputs, d.chance(0.25)), [d.feeds])
