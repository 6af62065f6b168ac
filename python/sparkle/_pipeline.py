"""Items through a session or several in order, several items under way at once."""
import collections
import os
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Optional, Sequence, Union

from sparkle import _core
from sparkle._arrays import of_bits
from sparkle._device import Device
from sparkle._errors import BadInput, error_of, translated
from sparkle._session import Inputs, Session


@dataclass(frozen=True)
class DeviceShare:
    """What the device ``name`` of a shared pipeline has done: ``items`` whose results it gave, ``predicted`` and ``seconds``
    for an item, the latter as measured of late; 0 is unknown. ``used`` is False of one that takes none, ``lost`` True of one
    that failed."""
    name: str
    used: bool
    lost: bool
    items: int
    predicted: float
    seconds: float


class Pipeline:
    """Runs items one behind the other: while the device computes one, the next is handed to it and the one before is
    brought back, by threads of the pipeline's own. ``depth``: items that the device has at once, 0 is 3; ``waiting``: items
    that wait for one of these before ``submit`` waits, 0 is four times as many. Sessions may be used beside it.

        with sparkle.Pipeline(session) as pipeline:
            for outputs in pipeline.map(images):
                ...

    Several devices share the items, each as fast as it is, results in the items' order: give a list of sessions of one model,
    or the model and ``devices``, which are opened with ``options``, those of a Session (``threads`` is the CPU's). Beside GPUs
    a CPU opened here by its name leaves a thread to feed each of them, half of its threads at most, unless ``threads`` says how
    many. ``split`` "auto" leaves out devices that are predicted to bring next to nothing, and all but one of those on the CPU's
    cores; "always" takes all. ``fallback`` "warn" or "allow" gives what a lost device had to the others, which
    ``Session.events`` tells; under "forbid" it is the items' error. ``items``: how many will come, 0 is unknown. Outputs of
    different devices differ by rounding errors.

        with sparkle.Pipeline("model.onnx", devices=["cpu", "cuda:0"]) as pipeline:
            ...
    """

    def __init__(self, session: Union[Session, Sequence[Session], str, os.PathLike, bytes], depth: int = 0, waiting: int = 0,
                 *, devices: Optional[Sequence[Union[str, Device]]] = None, split: str = "auto", fallback: str = "warn",
                 items: int = 0, **options: Any) -> None:
        if devices is not None:
            if isinstance(devices, str) or not devices:
                raise BadInput("bad_usage", f"devices={devices!r} is no list of devices; give one, as in "
                               "[\"cpu\", \"cuda:0\"].")
            self.sessions = _opened(session, list(devices), fallback, options)
        elif isinstance(session, Session):
            self.sessions = [session]
        else:
            if isinstance(session, (str, os.PathLike, bytes)):
                raise BadInput("bad_usage", "A model's file needs devices=[...]; or give a Session or a list of them.")
            self.sessions = list(session)
            if not self.sessions:
                raise BadInput("bad_usage", "The list of sessions is empty; give one for each device.")
        if options and devices is None:
            raise BadInput("bad_usage", f"{', '.join(options)}: options of sessions go with devices=[...]; these are open.")
        self.session = self.sessions[0]
        alone = isinstance(session, Session) and devices is None
        if alone and (split != "auto" or fallback != "warn" or items):
            raise BadInput("bad_usage", "split, fallback and items are for several devices, and one session is given.")
        with translated():
            if alone:
                self._core = _core.Pipeline(self.session._core, depth, waiting)
            else:
                self._core = _core.Pipeline([s._core for s in self.sessions], depth, waiting, split, fallback, items)
        self._ahead = 5 * (depth or 3) if waiting == 0 else waiting + (depth or 3)
        self._ahead *= len(self.sessions)
        self._closed = False
        self._shares: list = []
        self._why = ""

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

    @property
    def shares(self) -> "list[DeviceShare]":
        """What each of several devices has done so far, in their order; empty of a pipeline over one session."""
        given = self._shares if self._closed else self._core.shares()
        return [DeviceShare(s.device.name, *share) for s, share in zip(self.sessions, given)]

    @property
    def why(self) -> str:
        """Which of several devices work, and why, in one line; empty before the first item."""
        return self._why if self._closed else self._core.why()

    def close(self) -> None:
        """Returns when each item has its result; nothing may be submitted any more."""
        if not self._closed:
            self._core.drain()
            self._shares, self._why = self._core.shares(), self._core.why()
            self._closed = True
            self._core.close()

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        of = repr(self.session) if len(self.sessions) == 1 else repr(self.sessions)
        return f"sparkle.Pipeline({of}{', closed' if self._closed else ''})"


def _opened(model: Any, devices: list, fallback: str, options: dict) -> "list[Session]":
    threads = options.pop("threads", 0)
    opened = [d if isinstance(d, Device) else None if d == "cpu" else Device(d) for d in devices]
    gpus = [d.describe() for d in opened if d]
    feeding = sum(d["kind"] != "cpu" and d.get("architecture") != "llvmpipe" for d in gpus)

    def cpu() -> Device:
        whole = Device("cpu", threads)
        cores = whole.describe()["cores"]
        fewer = max(cores - feeding, (cores + 1) // 2)
        return Device("cpu", fewer) if threads == 0 and fewer < cores else whole

    return [Session(model, d or cpu(), fallback=fallback, **options) for d in opened]
