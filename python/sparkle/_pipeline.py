"""Items through a session in order, several under way at once."""
import collections
from concurrent.futures import Future
from typing import Any, Iterable, Iterator

from sparkle import _core
from sparkle._arrays import of_bits
from sparkle._errors import error_of, translated
from sparkle._session import Inputs, Session


class Pipeline:
    """Runs items one behind the other: while the device computes one, the next is handed to it and the one before is
    brought back, by threads of the pipeline's own. ``depth``: items that the device has at once, 0 is 3; ``waiting``: items
    that wait for one of these before ``submit`` waits, 0 is four times as many. The session may be used beside it.

        with sparkle.Pipeline(session) as pipeline:
            for outputs in pipeline.map(images):
                ...
    """

    def __init__(self, session: Session, depth: int = 0, waiting: int = 0) -> None:
        self.session = session
        with translated():
            self._core = _core.Pipeline(session._core, depth, waiting)
        self._ahead = 5 * (depth or 3) if waiting == 0 else waiting + (depth or 3)
        self._closed = False

    def submit(self, inputs: Inputs) -> "Future[list]":
        """A future of what ``session.run(inputs)`` would give; waits while the pipeline is full. Arrays may not change before
        their result is there. What is wrong with an item is raised by its future, names and element types at once."""
        session, future = self.session, Future()
        future.set_running_or_notify_cancel()  # what is under way cannot be taken back
        arrays = session._arrays(session._values(inputs, session.inputs, "input"))

        def done(results: Any, code: str, sentence: str) -> None:
            if results is None:
                future.set_exception(error_of(code, sentence))
            else:
                future.set_result([of_bits(r, o.dtype) for r, o in zip(results, session.outputs)])

        with translated():
            self._core.submit(arrays, done)
        return future

    def map(self, items: Iterable[Inputs]) -> Iterator[list]:
        """The outputs of each item, in order; items are taken from ``items`` as there is room for them."""
        under_way: "collections.deque[Future]" = collections.deque()
        for item in items:
            under_way.append(self.submit(item))
            while len(under_way) > self._ahead or (under_way and under_way[0].done()):
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()

    def close(self) -> None:
        """Returns when each item has its result; nothing may be submitted any more."""
        if not self._closed:
            self._closed = True
            self._core.close()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"sparkle.Pipeline({self.session!r}{', closed' if self._closed else ''})"
