"""Rows of a data set through a model, on as many machines as there are: a callable that opens its model once in each worker.

    import ray, sparkle.ray
    rows = ray.data.read_images("photos", size=(224, 224))
    answers = rows.map_batches(sparkle.ray.Predictor, fn_constructor_kwargs={"model": "model.onnx", "preprocess": to_input},
                               batch_size=32, concurrency=4)

Nothing here needs Ray but ``deployment``: the same object serves Dask, multiprocessing and plain loops.
"""
import os
from typing import Any, Callable, Mapping, Optional, Union

import numpy as np

from sparkle._arrays import BITS
from sparkle._device import Device
from sparkle._errors import BadInput
from sparkle._pipeline import Pipeline
from sparkle._session import Session

Batch = Mapping[str, Any]
_WIRE = {"float32": "FP32", "float16": "FP16", "float64": "FP64", "int8": "INT8", "int16": "INT16", "int32": "INT32",
         "int64": "INT64", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "bool": "BOOL"}


class Predictor:
    """``predictor(batch)``: a batch of columns, one row an item, with the model's outputs as further columns.

    ``model``: a path that each worker can read, or the bytes of a file. ``device``: of each worker, "auto" by default;
    ``threads``: of a CPU, 0 is what affinity and quota allow. ``inputs``: which column is which input, {"image": "pixels"};
    by default the column of the input's name, or the only column of a model with one input. ``outputs``: how the columns of
    outputs are called, by default as the outputs. ``keep``: which columns stay, by default all that are no inputs.
    ``preprocess``: called with each batch first. Other options are those of a Session.

    Floating-point columns are rounded to the input's type, integers must fit in. A model that leaves its first axis open runs
    each batch at once; one that fixes it is given as many rows as it takes, several such runs under way at a time, the last
    one filled up. Errors: BadInput for columns that are not there, shapes and types.
    """

    def __init__(self, model: Union[str, os.PathLike, bytes], device: Union[Device, str] = "auto", *, threads: int = 0,
                 inputs: Optional[Mapping[str, str]] = None, outputs: Optional[Mapping[str, str]] = None,
                 keep: Optional[list] = None, preprocess: Optional[Callable[[Batch], Batch]] = None, **options: Any) -> None:
        self._given = (model, device if isinstance(device, str) else device.name, threads, inputs, outputs, keep, preprocess,
                       options)
        self._session: Optional[Session] = None

    def __getstate__(self) -> tuple:
        return self._given  # the worker opens the model anew

    def __setstate__(self, given: tuple) -> None:
        self._given, self._session = given, None

    @property
    def session(self) -> Session:
        """The model, opened at its first use in each process. Errors: those of Session."""
        if self._session is None:
            model, device, threads, *_, options = self._given
            self._session = Session(model, Device(device, threads), **options)
        return self._session

    def __call__(self, batch: Batch) -> dict:
        *_, inputs, outputs, keep, preprocess, _ = self._given
        if preprocess is not None:
            batch = preprocess(batch)
        session = self.session
        columns = [self._column(batch, i.name, inputs or {}) for i in session.inputs]
        arrays = [_array(batch[c], i, c) for c, i in zip(columns, session.inputs)]
        rows = {len(a) for a in arrays}
        if len(rows) != 1:
            raise BadInput("bad_input", f"The columns {', '.join(map(repr, columns))} have {sorted(rows)} rows; one of each is "
                           "an item.")
        results = self._run(arrays, rows.pop())
        kept = [c for c in batch if c not in columns] if keep is None else keep
        answer = {c: batch[c] for c in kept}
        for info, result in zip(session.outputs, results):
            answer[(outputs or {}).get(info.name, info.name)] = result
        return answer

    def _column(self, batch: Batch, name: str, inputs: Mapping[str, str]) -> str:
        column = inputs.get(name, name)
        if column in batch:
            return column
        if name not in inputs and len(self.session.inputs) == 1 and len(batch) == 1:
            return next(iter(batch))
        raise BadInput("bad_input", f"The batch has no column '{column}' for the input '{name}'; it has "
                       f"{', '.join(map(repr, batch))}. Name it with inputs={{\"{name}\": ...}}.")

    def _run(self, arrays: list, rows: int) -> list:
        session = self.session
        fixed = {i.shape[0] for i in session.inputs if i.shape and isinstance(i.shape[0], int)}
        if not fixed:
            return session.run(arrays)
        if len(fixed) != 1:
            raise BadInput("bad_input", f"The inputs have {sorted(fixed)} rows each; a model for batches has as many in all.")
        size = fixed.pop()
        parts = [[a[begin:begin + size] for a in arrays] for begin in range(0, rows, size)]
        if parts and len(parts[-1][0]) < size:  # the last row again
            parts[-1] = [np.concatenate([p, np.repeat(p[-1:], size - len(p), axis=0)]) for p in parts[-1]]
        with Pipeline(session) as pipeline:
            done = list(pipeline.map(parts))
        for info, output in zip(session.outputs, done[0] if done else []):
            if output.ndim == 0 or len(output) != size:
                raise BadInput("bad_input", f"The output '{info.name}' is {output.shape} for {size} rows; no row of it is an "
                               "item's.")
        return [np.concatenate([part[o] for part in done])[:rows] for o in range(len(session.outputs))]


def deployment(model: Union[str, os.PathLike], *, max_batch_size: int = 8, batch_wait_timeout_s: float = 0.005,
               predictor: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
    """A Ray Serve application of one model: requests that come together are run together, up to ``max_batch_size`` of
    them, the first waiting ``batch_wait_timeout_s`` seconds for others. Over HTTP it speaks the JSON of the
    Open Inference Protocol (``{"inputs": [{"name", "shape", "datatype", "data"}]}``); handles call ``predict.remote({"input":
    row})``. ``predictor``: options of Predictor; ``options``: of ``ray.serve.deployment`` (num_replicas, ray_actor_options,
    ...). Errors: ImportError without Ray Serve."""
    from ray import serve  # of who uses it
    made = dict(predictor or {})

    @serve.deployment(**options)
    class Model:
        def __init__(self) -> None:
            self._predictor = Predictor(model, **made)
            self._predictor.session  # opened before the first request

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        async def predict(self, rows: list) -> list:
            batch = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
            answer = self._predictor(batch)
            return [{name: column[r] for name, column in answer.items()} for r in range(len(rows))]

        async def __call__(self, request: Any) -> Any:
            from starlette.responses import JSONResponse
            try:
                body = await request.json()
                row = {t["name"]: np.asarray(t["data"]).reshape(t["shape"])[0] for t in body["inputs"]}
                answer = await self.predict(row)
            except (KeyError, TypeError, ValueError, IndexError) as e:
                return JSONResponse({"error": f"{type(e).__name__}: {e}"}, status_code=400)
            outputs = [{"name": n, "shape": [1, *v.shape], "datatype": _WIRE.get(str(v.dtype), str(v.dtype)),
                        "data": v.ravel().tolist()} for n, v in answer.items()]
            return JSONResponse({"model_name": os.path.basename(os.fspath(model)), "outputs": outputs})

    return Model.bind()


def _array(column: Any, info: Any, name: str) -> np.ndarray:
    """A column as the input takes it."""
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
