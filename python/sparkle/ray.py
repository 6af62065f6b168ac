"""Rows of a data set through a model, on as many machines as there are: a callable that opens its model once in each worker.

    import ray, sparkle.ray
    rows = ray.data.read_images("photos", size=(224, 224))
    answers = rows.map_batches(sparkle.ray.Predictor, fn_constructor_kwargs={"model": "model.onnx", "preprocess": to_input},
                               batch_size=32, concurrency=4)

Nothing here needs Ray but ``deployment``: the same object serves Dask, multiprocessing and plain loops.
"""
import asyncio
import os
import pathlib
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from sparkle._choice import choose_device
from sparkle._device import Device
from sparkle._errors import BadInput, NotServed, OutOfMemory
from sparkle._pipeline import Pipeline
from sparkle._requests import answers_of, fitted_column, fitted_row, plain_row, response_of, rows_of
from sparkle._session import Session
from sparkle._together import are_told_apart, mixed_output

Batch = Mapping[str, Any]


class Predictor:
    """``predictor(batch)``: a batch of columns, one row an item, with the model's outputs as further columns.

    ``model``: a path that each worker can read, or the bytes of a file. ``device``: of each worker; "auto", the default, is
    what ``sparkle.choose_device`` chooses on the worker's node for the rows of its first batch, and goes on with the CPU where
    that is lost, unless ``fallback`` is given (of bytes: the CPU). ``threads``: of a CPU, 0 is what affinity and quota allow.
    ``inputs``: which column is which input, {"image": "pixels"}; by default the column of the input's name, or the only column
    of a model with one input. ``outputs``: how the columns of outputs are called, by default as the outputs. ``keep``: which
    columns stay, by default all that are no inputs. ``preprocess``: called with each batch first. ``check_rows``: each worker
    runs the first row and the last of its first batch alone too and compares the floats, since a model may mix the rows of a
    batch; False leaves that out. Other options are those of a Session.

    Floating-point columns are rounded to the input's type, integers must fit in. A model that leaves its first axis open runs
    each batch at once; one that fixes it is given as many rows as it takes, several such runs under way at a time, the last
    one filled up. Errors: BadInput for columns that are not there, shapes and types, and for a model that mixes rows.
    """

    def __init__(self, model: Union[str, os.PathLike, bytes], device: Union[Device, str] = "auto", *, threads: int = 0,
                 inputs: Optional[Mapping[str, str]] = None, outputs: Optional[Mapping[str, str]] = None,
                 keep: Optional[list] = None, preprocess: Optional[Callable[[Batch], Batch]] = None,
                 check_rows: bool = True, **options: Any) -> None:
        name = device if isinstance(device, str) else device.name
        self.__setstate__((model, name, threads, check_rows, inputs, outputs, keep, preprocess, options))

    def __getstate__(self) -> tuple:
        return self._given  # the worker opens the model anew

    def __setstate__(self, given: tuple) -> None:
        self._given, self._session = given, None
        self._compares: bool = given[3]  # whether rows are still to be compared with themselves alone
        self._mixes = ""  # how the model was seen to mix rows

    @property
    def session(self) -> Session:
        """The model, opened at its first use in each process: with the first batch, or here. Errors: those of Session."""
        return self._opened(None)

    def _opened(self, batch: Optional[Batch], rows: int = 1) -> Session:
        if self._session is not None:
            return self._session
        model, device, threads, *_, options = self._given
        if device == "auto" and isinstance(model, (str, os.PathLike)):
            device = self._chosen(batch, rows)
            if device != "cpu":
                options = {"fallback": "allow", **options}
        self._session = Session(model, Device(device, threads), **options)
        return self._session

    def _chosen(self, batch: Optional[Batch], rows: int) -> str:
        """The name of the device for batches like this one, or of so many rows."""
        model, _, threads, _, inputs, *_, options = self._given
        try:
            return choose_device(model, rows=rows if batch is None else len(next(iter(batch.values()))), threads=threads,
                                 **options).device
        except BadInput as e:
            if e.code != "bad_usage":
                raise
        if batch is None:
            return "cpu"
        with Session(model, Device("cpu", threads), **options) as session:  # what it leaves open, the batch tells
            shapes = {i.name: np.shape(fitted_column(batch[c], i, c)) for i in session.inputs
                      for c in [self._column(batch, i.name, inputs or {}, session)]}
        return choose_device(model, shapes=shapes, threads=threads, **options).device

    def __call__(self, batch: Batch) -> dict:
        *_, inputs, outputs, keep, preprocess, _ = self._given
        if preprocess is not None:
            batch = preprocess(batch)
        session = self._opened(batch)
        columns = [self._column(batch, i.name, inputs or {}, session) for i in session.inputs]
        arrays = [fitted_column(batch[c], i, c) for c, i in zip(columns, session.inputs)]
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

    def fitted(self, row: Mapping[str, Any]) -> dict:
        """One row as arrays that fit the model, for a batch that others share; where there is a ``preprocess``, which takes
        what it likes, as they are. Errors: BadInput naming the column that is missing, unknown, or of another type or shape."""
        *_, inputs, _, keep, preprocess, _ = self._given
        if preprocess is not None:
            return plain_row(row)
        return fitted_row(row, {(inputs or {}).get(i.name, i.name): i for i in self.session.inputs}, keep or [])

    @staticmethod
    def _column(batch: Batch, name: str, inputs: Mapping[str, str], session: Session) -> str:
        column = inputs.get(name, name)
        if column in batch:
            return column
        if name not in inputs and len(session.inputs) == 1 and len(batch) == 1:
            return next(iter(batch))
        raise BadInput("bad_input", f"The batch has no column '{column}' for the input '{name}'; it has "
                       f"{', '.join(map(repr, batch))}. Name it with inputs={{\"{name}\": ...}}.")

    def _run(self, arrays: list, rows: int) -> list:
        session = self.session
        fixed = {i.shape[0] for i in session.inputs if i.shape and isinstance(i.shape[0], int)}
        if len(fixed) > 1:
            raise BadInput("bad_input", f"The inputs have {sorted(fixed)} rows each; a model for batches has as many in all.")
        if self._mixes and (fixed or rows > 1):
            raise BadInput("bad_input", self._mixes)
        if not fixed:
            results = self._checked(session.run(arrays), rows)
            self._compare(arrays, results, rows, session.run, "Run it row by row (batch_size=1), or give")
            return results
        size = fixed.pop()
        parts = [[a[begin:begin + size] for a in arrays] for begin in range(0, rows, size)]
        if parts and len(parts[-1][0]) < size:  # the last row again
            parts[-1] = [np.concatenate([p, np.repeat(p[-1:], size - len(p), axis=0)]) for p in parts[-1]]
        with Pipeline(session) as pipeline:
            done = list(pipeline.map(parts))
        self._checked(done[0] if done else [], size)
        if done:
            self._compare(parts[0], done[0], size, lambda one: session.run([np.repeat(a, size, axis=0) for a in one]),
                          "Export it for one row, or give")
        return [np.concatenate([part[o] for part in done])[:rows] for o in range(len(session.outputs))]

    def _compare(self, arrays: list, results: Sequence[Any], rows: int, alone: Callable[[Any], Sequence[Any]],
                 way: str) -> None:
        """Holds two rows of the first batch that has different ones against themselves ``alone``, or in company of their like
        where the model fixes its rows. ``way``: what to do. Errors: BadInput naming the output that differs."""
        if not self._compares or rows < 2 or not are_told_apart(arrays):
            return
        way += " check_rows=False where the rows of a batch are meant to belong together."
        try:
            output = mixed_output(arrays, results, lambda one: [r[:1] if np.ndim(r) else r for r in alone(one)],
                                  floats_only=True)
        except BadInput as e:
            raise BadInput("bad_input", f"A row of a batch of {rows} does not run alone: {e} {way}") from e
        if output is not None:
            self._mixes = (f"The model mixes the rows of a batch: its output '{self.session.outputs[output].name}' is another "
                           f"for a row alone than for the same row among {rows}. {way}")
            raise BadInput("bad_input", self._mixes)
        self._compares = False

    def _checked(self, outputs: list, rows: int) -> list:
        for info, output in zip(self.session.outputs, outputs):
            if output.ndim == 0 or len(output) != rows:
                raise BadInput("bad_input", f"The output '{info.name}' is {output.shape} for {rows} rows; no row of it is an "
                               "item's.")
        return outputs


def deployment(model: Union[str, os.PathLike], *, max_batch_size: int = 8, batch_wait_timeout_s: float = 0.005,
               predictor: Optional[Mapping[str, Any]] = None, **options: Any) -> Any:
    """A Ray Serve application of one model: rows of requests that come together are run together, up to ``max_batch_size`` of
    them, the first waiting ``batch_wait_timeout_s`` seconds for others. Over HTTP it speaks the JSON of the
    Open Inference Protocol (``{"inputs": [{"name", "shape", "datatype", "data"}]}``): each row of a request is an item, and the
    response has them all in order. Handles call ``predict.remote({"input": row})``. ``predictor``: options of Predictor;
    ``options``: of ``ray.serve.deployment`` (num_replicas, ray_actor_options, ...); max_ongoing_requests is twice
    ``max_batch_size`` unless it is given.

    A row's names, types and shapes are held against the model before it joins others (against nothing where the predictor has
    a ``preprocess``), rows of different shapes run apart, and where a run fails its rows run one by one: an error is that of
    its row. Over HTTP it is ``{"error": sentence}`` with status 400 for what was sent, 503 without memory, 500 for the rest;
    of handles it is raised: BadInput, and what the model raises. Errors: ImportError without Ray Serve."""
    from ray import serve  # of who uses it
    made = dict(predictor or {})
    options.setdefault("max_ongoing_requests", 2 * max_batch_size)

    @serve.deployment(**options)
    class Model:
        def __init__(self) -> None:
            self._predictor = Predictor(model, **made)
            self._predictor._opened(None, max_batch_size)  # before the first request

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        async def _together(self, rows: list) -> list:
            return await asyncio.to_thread(answers_of, self._predictor, rows)

        async def predict(self, row: Mapping[str, Any]) -> dict:
            answer, error = await self._together(self._predictor.fitted(row))
            if error is not None:
                raise error
            return answer

        async def __call__(self, request: Any) -> Any:
            from starlette.responses import JSONResponse
            try:
                try:
                    body = await request.json()
                except ValueError:
                    raise BadInput("bad_input", "The body is no JSON; binary tensors are not taken here.") from None
                rows = [self._predictor.fitted(row) for row in rows_of(body)]
                answers = []
                for answer, error in await asyncio.gather(*(self._together(row) for row in rows)):
                    if error is not None:
                        raise error
                    answers.append(answer)
                return JSONResponse(response_of(body, answers, pathlib.PurePath(os.fspath(model)).stem))
            except Exception as e:
                return JSONResponse({"error": str(e) or type(e).__name__}, status_code=_status(e, "preprocess" in made))

    return Model.bind()


def _status(error: Exception, prepares: bool) -> int:
    """HTTP's for an error of a request; ``prepares``: rows go through code of the user's, which finds fault with them too."""
    if isinstance(error, (BadInput, NotServed)):
        return 400
    if isinstance(error, OutOfMemory):
        return 503
    return 400 if prepares and isinstance(error, (ValueError, KeyError, TypeError, IndexError)) else 500
