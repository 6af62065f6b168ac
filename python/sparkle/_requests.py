"""Requests of a deployment (sparkle.ray): JSON of the Open Inference Protocol as rows that fit the model, rows that run
together without sharing their errors, and their answers as JSON. Nothing here knows Ray."""
import math
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from sparkle._arrays import BITS
from sparkle._errors import BadInput

_WIRE = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16", "float64": "FP64", "int8": "INT8", "int16": "INT16",
         "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
         "bool": "BOOL"}
_TYPES = {wire: dtype for dtype, wire in _WIRE.items() if dtype not in BITS}
_KINDS = {"f": "fiu", "i": "iu", "u": "iu", "b": "b"}  # of arrays of JSON's values, by that of the type they are to have
Row = Mapping[str, np.ndarray]


def fitted_column(column: Any, info: Any, name: str) -> np.ndarray:
    """A column as the input takes it. Errors: BadInput for a type that is neither the input's nor rounded or narrowed to it."""
    array = np.asarray(column)
    if array.dtype == object:  # rows that are arrays of their own
        array = np.stack([np.asarray(row) for row in array])
    wanted = np.dtype(BITS.get(info.dtype, info.dtype))
    if array.dtype == wanted:
        return array
    if array.dtype.kind == wanted.kind == "f":
        return array.astype(wanted)
    if array.dtype.kind in "iub" and wanted.kind in "iu":
        made = array.astype(wanted)
        if (made == array).all():
            return made
    raise BadInput("bad_input", f"The column '{name}' is {array.dtype}, the input '{info.name}' {info.dtype}.")


def fitted_row(row: Any, infos: Mapping[str, Any], kept: Sequence[str]) -> dict:
    """One row, its arrays as the model takes them: ``infos`` has the inputs by their columns, ``kept`` further columns that may
    be there. Errors: BadInput naming the column that is missing, unknown, or of another type or shape than the model's."""
    arrays = plain_row(row)
    for name in arrays:
        if name not in infos and name not in kept:
            raise BadInput("bad_input", f"The model has no input '{name}'; it takes {', '.join(map(repr, infos))}.")
    for name, info in infos.items():
        if name not in arrays:
            raise BadInput("bad_input", f"Input '{name}' is missing; the model takes {', '.join(map(repr, infos))}.")
        if info.shape == ():
            raise BadInput("bad_input", f"Input '{name}' is a single number in the model, which has no rows.")
        given, wanted = arrays[name].shape, None if info.shape is None else info.shape[1:]
        if wanted is not None and (len(given) != len(wanted) or any(isinstance(w, int) and w != g
                                                                    for w, g in zip(wanted, given))):
            sizes = ", ".join(str(w) if isinstance(w, int) else "?" for w in wanted)
            raise BadInput("bad_input", f"A row of input '{name}' has shape [{sizes}] in the model, {list(given)} was given.")
        arrays[name] = fitted_column(arrays[name][None], info, name)[0]
    return arrays


def plain_row(row: Any) -> dict:
    """One row as arrays by their columns. Errors: BadInput for what is none."""
    if not isinstance(row, Mapping) or not row:
        raise BadInput("bad_input", f"A row is {{column: array}}, not a {type(row).__name__}"
                       f"{' without columns' if isinstance(row, Mapping) else ''}.")
    arrays = {}
    for name, value in row.items():
        try:
            arrays[name] = np.asarray(value)
        except ValueError:  # lists of different lengths
            raise BadInput("bad_input", f"The column '{name}' of the row is no array.") from None
    return arrays


def answers_of(predictor: Callable[[dict], dict], rows: Sequence[Row]) -> list:
    """For each row its answer and None, or None and its error. Rows of one shape run together; where they fail, each runs by
    itself, so that an error is that of its row alone."""
    groups: dict = {}
    for r, row in enumerate(rows):
        groups.setdefault(tuple((name, a.shape, str(a.dtype)) for name, a in sorted(row.items())), []).append(r)
    found: list = [None] * len(rows)
    for members in groups.values():
        for r, one in zip(members, _answered(predictor, [rows[r] for r in members])):
            found[r] = one
    return found


def _answered(predictor: Callable[[dict], dict], rows: Sequence[Row]) -> list:
    try:
        answer = predictor({name: np.stack([row[name] for row in rows]) for name in rows[0]})
        for name, column in answer.items():
            if np.ndim(column) == 0 or len(column) != len(rows):
                raise BadInput("bad_input", f"The output '{name}' is {list(np.shape(column))} for {len(rows)} rows; no row of "
                               "it is an item's.")
        return [({name: column[r] for name, column in answer.items()}, None) for r in range(len(rows))]
    except Exception as e:  # whatever the model or what prepares its rows raises belongs to the rows
        if len(rows) == 1:
            return [(None, e)]
    return [one for row in rows for one in _answered(predictor, [row])]


def rows_of(body: Any) -> "list[dict]":
    """The rows of a request's inputs, each axis 0 of them all. Errors: BadInput in one sentence."""
    tensors = body.get("inputs") if isinstance(body, dict) else None
    if not isinstance(tensors, list) or not tensors:
        raise BadInput("bad_input", "The request has no \"inputs\": a list of {\"name\", \"shape\", \"datatype\", \"data\"}.")
    columns: dict = {}
    for tensor in tensors:
        name = tensor.get("name") if isinstance(tensor, dict) else None
        if not isinstance(name, str):
            raise BadInput("bad_input", "An entry of \"inputs\" has no name.")
        if name in columns:
            raise BadInput("bad_input", f"Input '{name}' is given twice.")
        columns[name] = _tensor(tensor, f"Input '{name}'")
    counts = sorted({len(a) for a in columns.values()})
    if len(counts) != 1 or counts[0] == 0:
        raise BadInput("bad_input", f"The inputs have {' and '.join(map(str, counts))} rows; all have as many, "
                       "and one or more.")
    return [{name: a[r] for name, a in columns.items()} for r in range(counts[0])]


def _tensor(tensor: dict, who: str) -> np.ndarray:
    shape, wire = tensor.get("shape"), tensor.get("datatype")
    if not isinstance(shape, list) or not shape or not all(type(s) is int and s >= 0 for s in shape):
        raise BadInput("bad_input", f"{who} has no shape: a list of natural numbers, the first of them how many rows there "
                       "are.")
    if not isinstance(wire, str) or wire not in _TYPES:
        raise BadInput("bad_input", f"{who} has no datatype that is taken here; they are {', '.join(_TYPES)}.")
    if not isinstance(tensor.get("data"), list):
        raise BadInput("bad_input", f"{who} has no \"data\"; binary tensors and shared memory are not taken here.")
    try:
        given = np.asarray(tensor["data"])
    except (ValueError, OverflowError):  # lists of different lengths
        raise BadInput("bad_input", f"The data of {who} is nested unevenly.") from None
    if given.size != math.prod(shape) or (given.ndim > 1 and list(given.shape) != shape):
        raise BadInput("bad_input", f"{who} of shape {shape} has data of shape {list(given.shape)}; it is flat, or nested "
                       "as the shape is.")
    wanted = np.dtype(_TYPES[wire])
    if given.size and given.dtype.kind in _KINDS[wanted.kind]:
        with np.errstate(over="ignore"):
            made = given.astype(wanted)
        if np.isfinite(made).all() if wanted.kind == "f" else (made == given).all():
            return made.reshape(shape)
    elif not given.size:
        return np.zeros(shape, wanted)
    raise BadInput("bad_input", f"The data of {who} has a value that is none of {wire}.")


def response_of(body: dict, answers: Sequence[Mapping[str, Any]], model: str) -> dict:
    """The protocol's response: the outputs that the request asks for, or all, with the rows in their order. Errors: BadInput
    for outputs that there are not and for what JSON cannot say."""
    asked = body.get("outputs")
    names = list(answers[0])
    if asked is not None:
        if not isinstance(asked, list) or not all(isinstance(o, dict) and isinstance(o.get("name"), str) for o in asked):
            raise BadInput("bad_input", "\"outputs\" is a list of {\"name\"}.")
        for output in asked:
            if output["name"] not in answers[0]:
                raise BadInput("bad_input", f"The model has no output '{output['name']}'; it has "
                               f"{', '.join(map(repr, names))}.")
            if isinstance(output.get("parameters"), dict) and output["parameters"].get("classification"):
                raise BadInput("bad_input", "\"classification\" is not supported here; ask for the output itself and take its "
                               "largest values.")
        names = [o["name"] for o in asked] or names
    outputs = []
    for name in names:
        values = np.stack([np.asarray(a[name]) for a in answers])
        wire = _WIRE.get(str(values.dtype))
        if wire is None:
            raise BadInput("bad_input", f"Output '{name}' is {values.dtype}, for which the protocol has no name.")
        if wire == "BF16":
            values = values.astype(np.float32)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise BadInput("bad_input", f"Output '{name}' has NaN or infinity, for which JSON has no number.")
        outputs.append({"name": name, "shape": list(values.shape), "datatype": wire, "data": values.ravel().tolist()})
    response = {"model_name": model, "outputs": outputs}
    return {**response, "id": body["id"]} if isinstance(body.get("id"), str) else response
