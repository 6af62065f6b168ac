"""The value that a model ought to give, and how far from it an engine may be. Nodes are evaluated one by one, floats in double
precision; with each tensor goes a bound of the error of any engine that computes in the model's types: what errors of the
inputs become, and what the node itself adds (errors.py). Tensors of integers are exact."""
from dataclasses import dataclass

import numpy as np
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import own
from draw import DTYPES, inferred_types

# Smallest normal number and rounding unit of what a type is computed in, then those of what it is stored in.
TINY = float(np.finfo(np.float32).tiny)
REAL = {np.dtype(DTYPES["float"]): (2.0 ** -24, 2.0 ** -24, float(np.finfo(np.float32).max), TINY),
        np.dtype(DTYPES["double"]): (2.0 ** -53, 2.0 ** -53, float(np.finfo(np.float64).max), 0.0),
        np.dtype(DTYPES["float16"]): (2.0 ** -24, 2.0 ** -11, 65504.0, 2.0 ** -25),
        np.dtype(DTYPES["bfloat16"]): (2.0 ** -24, 2.0 ** -8, 3.3895313892515355e38, TINY)}


class NoOracle(Exception):
    """Why nothing says what this model ought to give."""


@dataclass
class Value:
    """`value`: doubles, or integers as they are; `error`: bound of an engine's distance, NaN-free, infinite where it may give
    anything; `dtype`: of the stored tensor."""
    value: np.ndarray
    error: np.ndarray
    dtype: np.dtype

    @property
    def real(self):
        return self.dtype in REAL


def widened(array):
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype in REAL else array


def stored(array, error, dtype):
    """What a tensor of `dtype` keeps: rounding and overflow, which add to the error; denormals may be taken for zero."""
    if dtype not in REAL:
        return Value(np.asarray(array), np.zeros(np.shape(array)) if error is None else error, dtype)
    _, unit, largest, tiny = REAL[dtype]
    array = np.asarray(array, np.float64)
    error = np.zeros(array.shape) if error is None else np.broadcast_to(error, array.shape).copy()
    with np.errstate(all="ignore"):
        error += unit * np.abs(np.where(np.isfinite(array), array, 0)) + tiny
        over = np.abs(array) > largest * (1 + unit)
        near = np.isfinite(array) & (np.abs(array) + error > largest)
        array = np.where(over, np.copysign(np.inf, array), array)
        error = np.where(near, np.inf, np.where(np.isnan(error), np.inf, error))
    return Value(array, error, dtype)


def evaluate(node, opset, arrays):
    """One node on these arrays, by our own definition where the package's errs (own.py)."""
    function = own.FUNCTIONS.get(node.op_type)
    if function:
        result = function(node, opset, arrays)
        if result is not NotImplemented:
            return result
    evaluator = ReferenceEvaluator(node, opsets={"": opset})
    names = [n for n in node.input]
    with np.errstate(all="ignore"):
        return evaluator.run(None, {n: a for n, a in zip(names, arrays) if n})


def exact_values(model, feeds, extra=None):
    """Name -> Value of all tensors. `extra`(node, inputs, outputs) adds to the error of a node, as forced algorithms do."""
    import errors
    opset = next(o.version for o in model.opset_import if not o.domain)
    types = inferred_types(model)
    types.update({o.name: o.type.tensor_type.elem_type for o in model.graph.output})
    known = {}
    given = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    for name, array in {**given, **feeds}.items():
        error = np.zeros(array.shape)
        known[name] = Value(widened(array), error, np.asarray(array).dtype)
    for node in model.graph.node:
        inputs = [known.get(n) if n else None for n in node.input]
        dtypes = [np.dtype(helper.tensor_dtype_to_np_dtype(types[n])) if types.get(n) else None for n in node.output]
        for name, value in zip(node.output, values_of(node, opset, inputs, dtypes, errors, extra, len(model.graph.node) == 1)):
            known[name] = value
    return known


def values_of(node, opset, inputs, dtypes, errors, extra, alone):
    call = errors.Call(node, opset, inputs, dtypes)
    call.alone = alone
    rule = errors.RULES.get(node.op_type)
    if rule is None:
        raise NoOracle(f"errors.py has no rule for {node.op_type}")
    try:
        outputs, bounds = rule(call)
    except NoOracle:
        raise
    except Exception as e:
        raise NoOracle(f"the evaluator fails on {node.op_type}: {type(e).__name__} {str(e)[:200]}") from e
    values = []
    bounds = list(bounds) + [None] * (len(outputs) - len(bounds))
    for at, (array, bound, dtype) in enumerate(zip(outputs, bounds, dtypes)):
        array = np.asarray(array)
        if dtype is None:
            dtype = array.dtype
        if dtype not in REAL and array.dtype != dtype:
            array = array.astype(dtype)
        if extra and dtype in REAL and at == 0:
            more = extra(call, outputs)
            bound = bound if more is None else (0 if bound is None else bound) + more
        values.append(stored(array, bound, dtype) if not call.moves else
                      Value(array, np.broadcast_to(0.0 if bound is None else bound, array.shape), dtype))
    return values


def flushed(model, feeds):
    """The same inputs, and constants, with denormals taken for zero, or None where there are none: a run may do either
    (base/system/denormals.h)."""
    found, changed = {}, False
    constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    for name, array in {**constants, **feeds}.items():
        if np.asarray(array).dtype in (np.dtype(np.float32), np.dtype(DTYPES["bfloat16"])):
            wide = array.astype(np.float64)
            tiny = (wide != 0) & (np.abs(wide) < TINY)
            if tiny.any():
                array, changed = np.where(tiny, np.copysign(0.0, wide), wide).astype(array.dtype), True
        found[name] = array
    return found if changed else None
