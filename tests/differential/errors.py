"""How far an engine may be from the exact value, operator by operator: first what errors of the inputs become, then what the
node itself may add when it computes in the model's types. Sums of n terms err by n units of the sum of their magnitudes,
whatever the order of addition; functions by units in the last place; moves not at all. Nothing here was found by trial.
A rule takes a Call and gives the exact outputs and the bound of each (None: exact)."""
import numpy as np
from onnx import helper

from attributes import attributes_of
from exact import REAL, evaluate

# Roundings that a rewrite may add to arithmetic: a division by a constant becomes a product with its reciprocal, a factor and
# a term are folded into neighbours.
REWRITES = 4
# Units in the last place of an elementary function in single precision; src/backends/cpu/simd/simd_math_test.cc holds the
# vector kernels to 5 and less.
FUNCTION = 8
WEIGHTED = ("Conv", "ConvTranspose", "MatMul", "Gemm")


class Call:
    """A node with its inputs. `moves`: its elements are those of the inputs, so that storing them rounds nothing."""

    def __init__(self, node, opset, inputs, dtypes):
        self.node, self.opset, self.inputs, self.dtypes = node, opset, inputs, dtypes
        self.attributes, self.moves = attributes_of(node), False
        self.alone = True  # False in a graph, where factors behind a product may be folded into its constants
        real = [v.dtype for v in inputs if v is not None and v.dtype in REAL] + [d for d in dtypes if d in REAL]
        # Unit of storage: operators that become several steps may round in between.
        self.stored = max((REAL[d][1] for d in real), default=0.0)
        self.unit = max((REAL[d][0] for d in real), default=0.0)

    def arrays(self):
        return [None if v is None else v.value for v in self.inputs]

    def error(self, at):
        return self.inputs[at].error

    def run(self, arrays=None, node=None):
        return evaluate(node or self.node, self.opset, self.arrays() if arrays is None else arrays)

    def inexact(self):
        return any(v is not None and np.any(v.error != 0) for v in self.inputs)

    def with_attributes(self, op=None, **changed):
        node = helper.make_node(op or self.node.op_type, self.node.input, self.node.output,
                                **{**self.attributes, **changed})
        return node

    def real_at(self, at):
        return at < len(self.inputs) and self.inputs[at] is not None and self.inputs[at].real


def finite(array):
    return np.where(np.isfinite(array), array, 0)


def moved(call, places=()):
    """Elements move: so do their errors. `places`: inputs that say where, not what."""
    call.moves = call.node.op_type != "Pad" or call.opset >= 11  # an attribute's value rounds to the type
    outputs = call.run()
    if not call.inexact():
        return outputs, [None] * len(outputs)
    errors = call.run([None if v is None else v.error if v.real and i not in places else v.value
                       for i, v in enumerate(call.inputs)])
    return outputs, [np.abs(e) if d in REAL else None for e, d in zip(errors, call.dtypes)]


def exact(call):
    """Whole results, whose inputs must be exact."""
    outputs = call.run()
    return outputs, [np.full(np.shape(o), np.inf) if call.inexact() and d in REAL else None
                     for o, d in zip(outputs, call.dtypes)]


def sums(terms, magnitude=None):
    """Linear in each input, with factors that `magnitude` makes non-negative. `terms`(call) is how many each sum has."""
    def rule(call):
        outputs = call.run()
        if call.unit == 0 or call.dtypes[0] not in REAL:
            return outputs, [None] * len(outputs)
        node = magnitude(call) if magnitude else None
        sizes = call.run([None if v is None else np.abs(finite(v.value)) if v.real else v.value for v in call.inputs], node)[0]
        bound = (terms(call) + REWRITES) * call.unit * sizes
        if not call.alone and call.node.op_type in WEIGHTED and call.stored > call.unit:
            bound = bound + call.stored * sizes  # weights of 16 bits round once more with what is folded into them
        # A sum that leaves the type may be infinite though its mean is not.
        bound = np.where(sizes * terms(call) > REAL[call.dtypes[0]][2], np.inf, bound)
        if call.inexact():
            worse = call.run([None if v is None else np.abs(finite(v.value)) + v.error if v.real else v.value
                              for v in call.inputs], node)[0]
            bound = bound + (worse - sizes) * (1 + 1e-6)
        return outputs, [bound] + [None] * (len(outputs) - 1)
    return rule


def monotone(own, units=FUNCTION):
    """Elementwise and monotone in every input: the ends of the interval bound it. `own`(x, y): the magnitude that the units
    count of, where it is not the result."""
    def rule(call):
        outputs = call.run()
        if call.dtypes[0] not in REAL:
            return exact(call)
        size = np.abs(finite(outputs[0]))
        if own:
            size = np.maximum(size, own(*[np.abs(finite(v.value)) for v in call.inputs if v is not None and v.real]))
        bound = units * call.unit * size
        if call.inexact():
            bound = bound + spread(call, outputs[0])
        return outputs, [bound]
    return rule


def spread(call, output):
    """The furthest that the function gets within the inputs' intervals, at their corners."""
    bound = np.zeros(np.shape(output))
    at = [i for i, v in enumerate(call.inputs) if v is not None and v.real and np.any(v.error)]
    for corner in range(2 ** len(at)):
        arrays = call.arrays()
        for bit, i in enumerate(at):
            arrays[i] = arrays[i] + (1 if corner >> bit & 1 else -1) * call.inputs[i].error
        with np.errstate(all="ignore"):
            change = np.abs(call.run(arrays)[0] - output)
        bound = np.maximum(bound, np.where(np.isnan(change), np.inf, change))
    return bound


def smooth(slope, own=None, units=FUNCTION):
    """Elementwise, no steeper than `slope` anywhere."""
    def rule(call):
        outputs = call.run()
        x = np.abs(finite(call.inputs[0].value))
        size = np.maximum(np.abs(finite(outputs[0])), own(x) if own else 0)
        limit = slope(call) if callable(slope) else slope
        return outputs, [units * call.unit * size + limit * call.error(0)]
    return rule


def product_terms(call):
    """Length of the sums of a matrix product, a convolution or a reduction: products of each output element."""
    op, arrays = call.node.op_type, call.arrays()
    if op == "MatMul":
        return arrays[0].shape[-1] + 1
    if op == "Gemm":
        return arrays[0].shape[0 if call.attributes.get("transA", 0) else 1] + 3
    if op == "Conv":
        return int(np.prod(arrays[1].shape[1:])) + 1
    if op == "ConvTranspose":
        groups = call.attributes.get("group", 1)
        return arrays[1].shape[0] // groups * int(np.prod(arrays[1].shape[2:])) + 1
    if op == "Einsum":
        return int(np.prod([max(a.shape) if a.ndim else 1 for a in arrays])) + len(arrays)
    if op in ("AveragePool", "LpPool"):
        return int(np.prod(call.attributes["kernel_shape"])) + 2
    return max(1, int(np.prod([a.size for a in arrays[:1]])))


def gemm_magnitude(call):
    return call.with_attributes(alpha=abs(call.attributes.get("alpha", 1.0)), beta=abs(call.attributes.get("beta", 1.0)))


def addition(call):
    return call.with_attributes("Add") if call.node.op_type == "Sub" else call.node


def scaled(call):
    """LeakyRelu and its like take the slope's magnitude."""
    if call.node.op_type == "PRelu":
        return 1 + np.abs(finite(call.inputs[1].value))
    return 1 + abs(call.attributes.get("alpha", 1.0))


def quotient(call):
    if call.dtypes[0] not in REAL:
        return exact(call)
    outputs = call.run()
    bound = REWRITES * call.unit * np.abs(finite(outputs[0]))
    if call.inexact():
        y = call.inputs[1]
        with np.errstate(all="ignore"):
            crosses = np.broadcast_to(np.abs(y.value) <= y.error, np.shape(outputs[0])) & np.broadcast_to(
                y.error > 0, np.shape(outputs[0]))
        bound = np.where(crosses, np.inf, bound + spread(call, outputs[0]))
    return outputs, [bound]


def chained(call):
    """Sum and Mean of several tensors are added one by one, each sum stored."""
    outputs, bounds = sums(lambda c: len(c.inputs))(call)
    if bounds[0] is not None and len(call.inputs) > 1:
        sizes = call.run([np.abs(finite(v.value)) for v in call.inputs])[0]
        bounds[0] = bounds[0] + call.stored * (len(call.inputs) - 1) * sizes
    return outputs, bounds


def one(*values):
    return 1.0


def same(x, *others):
    return x


RULES = {}


def rule(function, *operators):
    for operator in operators:
        RULES[operator] = function


rule(moved, "Identity", "Concat", "Split", "Slice", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile",
     "Pad", "DepthToSpace", "SpaceToDepth", "Dropout", "Trilu", "CenterCropPad", "Gather", "GatherElements", "GatherND",
     "Where")
rule(exact, "Not", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "IsNaN", "Shape", "Size",
     "Constant", "ConstantOfShape", "Range", "ArgMax", "ArgMin", "Hardmax", "TopK", "OneHot", "NonMaxSuppression",
     "ConvInteger", "MatMulInteger", "Mod", "Sign")
rule(monotone(None, 0), "Neg", "Abs", "Floor", "Ceil", "Round", "Relu", "Max", "Min", "Clip")
rule(monotone(None, 0), "GlobalMaxPool", "MaxPool", "ReduceMax", "ReduceMin")
rule(sums(lambda c: len(c.inputs), addition), "Add", "Sub", "Mul")
rule(chained, "Sum", "Mean")
rule(quotient, "Div", "Reciprocal")
rule(sums(product_terms), "MatMul", "Conv", "ConvTranspose", "Einsum", "AveragePool", "GlobalAveragePool", "ReduceSum",
     "ReduceMean", "ReduceL1", "CumSum")
rule(sums(product_terms, gemm_magnitude), "Gemm")
rule(monotone(None), "Sqrt", "Exp", "Log", "Erf", "Sigmoid", "Tanh", "Atan", "Sinh", "Asinh", "Tan", "Asin", "Acos", "Acosh",
     "Atanh", "Softsign", "Pow")
rule(monotone(None), "Softplus", "Elu", "Selu", "Celu")
rule(smooth(1.0), "Sin", "Cos")
rule(smooth(lambda c: 1e30, None), "Cosh")
rule(smooth(1.2, same), "Gelu", "Swish", "Mish", "HardSwish")
rule(monotone(one), "HardSigmoid")
rule(smooth(scaled), "LeakyRelu", "PRelu")
rule(monotone(None, 0), "ThresholdedRelu")

import errors_rest  # noqa: E402,F401  (registers normalisations, attention, quantised and sampled operators)
