"""Element-wise definitions in double precision, where the evaluator of the onnx package computes in single precision (Erf,
attributes), lacks the operator in some opset (Gelu, Mish ...) or knows no broadcasting before opset 7. A default of an
attribute is the float32 next to what the text says, as attributes are float32."""
import math

import numpy as np

from attributes import attributes_of

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def gelu(x, a):
    if a.get("approximate", b"none") == b"tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def single(value):
    return float(np.float32(value))


def real(a, name, default):
    return a.get(name, single(default))


def elu(x, alpha):
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def celu(x, alpha):
    return np.where(x < 0, alpha * np.expm1(np.minimum(x / alpha, 0 if alpha > 0 else np.inf)), x)


ACTIVATIONS = {
    "Erf": lambda x, a, old: erf(x),
    "Gelu": lambda x, a, old: gelu(x, a),
    "Sigmoid": lambda x, a, old: sigmoid(x),
    "Softplus": lambda x, a, old: softplus(x),
    "Softsign": lambda x, a, old: x / (1 + np.abs(x)),
    "Mish": lambda x, a, old: x * np.tanh(softplus(x)),
    "HardSwish": lambda x, a, old: x * np.clip(x / 6 + 0.5, 0, 1),
    "Swish": lambda x, a, old: x * sigmoid(real(a, "alpha", 1.0) * x),
    "LeakyRelu": lambda x, a, old: np.where(x < 0, real(a, "alpha", 0.01) * x, x),
    "Elu": lambda x, a, old: elu(x, real(a, "alpha", 1.0)),
    "Celu": lambda x, a, old: celu(x, real(a, "alpha", 1.0)),
    "Selu": lambda x, a, old: real(a, "gamma", 1.0507 if old else 1.05070102214813232421875) * elu(
        x, real(a, "alpha", 1.6732 if old else 1.67326319217681884765625)),
    "HardSigmoid": lambda x, a, old: np.clip(real(a, "alpha", 0.2) * x + real(a, "beta", 0.5), 0, 1),
    "ThresholdedRelu": lambda x, a, old: np.where(x > real(a, "alpha", 1.0), x, 0),
}


def activation(node, opset, arrays):
    x = arrays[0]
    if x.dtype != np.float64:
        return NotImplemented
    with np.errstate(all="ignore"):
        return [np.asarray(ACTIVATIONS[node.op_type](x, attributes_of(node), opset < 6))]


BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "And": np.logical_and, "Or": np.logical_or,
          "Xor": np.logical_xor, "Equal": np.equal, "Less": np.less, "Greater": np.greater, "Pow": np.power,
          "Div": lambda x, y: quotient(x, y)}


def quotient(x, y):
    """Of integers truncated."""
    return x / y if x.dtype.kind == "f" else (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)


def old_binary(node, opset, arrays):
    """Before opset 7: the second operand's axes begin at 'axis'."""
    if opset >= 7:
        return NotImplemented
    x, y = arrays
    axis = attributes_of(node).get("axis")
    if axis is not None:
        y = y.reshape(*y.shape, *[1] * (x.ndim - axis % x.ndim - y.ndim))
    with np.errstate(all="ignore"):
        return [BINARY[node.op_type](x, y)]


def prelu(node, opset, arrays):
    """It multiplies zeros by the slope, which may be infinite."""
    x, slope = arrays
    with np.errstate(all="ignore"):
        return [np.where(x < 0, x * slope, x).astype(x.dtype)]


def clip(node, opset, arrays):
    """Bounds as attributes, which the evaluator does not know in the first opsets."""
    if opset >= 11:
        return NotImplemented
    a = attributes_of(node)
    return [np.minimum(np.maximum(arrays[0], a.get("min", -np.inf)), a.get("max", np.inf)).astype(arrays[0].dtype)]


def mean(node, opset, arrays):
    """It adds in place, so the first operand must have the result's shape."""
    if arrays[0].dtype != np.float64:
        return NotImplemented
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return [total / len(arrays)]


FUNCTIONS = {**dict.fromkeys(ACTIVATIONS, activation), **dict.fromkeys(BINARY, old_binary), "Clip": clip, "Mean": mean,
             "PRelu": prelu}
