"""Answers from pictures: classes, boxes, masks, larger pictures, depths and embeddings, by the code of ``sparkle run --task``.

    import sparkle.vision as vision

    task = vision.Task("yolox.onnx", labels="coco.txt")
    answer = task("cat.jpg")                       # what the task is and how pictures become tensors is guessed, and said
    for box in answer.boxes:
        print(box.label, box.score, box.x0, box.y0, box.x1, box.y1)
    vision.save("boxes.png", vision.draw("cat.jpg", answer))

A picture is a path, the bytes of a file, a PIL image, or a NumPy array of uint8 or uint16: height x width, or height x width x
channels (grey, grey and alpha, RGB, RGB and alpha). JPEG, PNG, WebP, TIFF, BMP and PNM files are read and turned upright as
their EXIF says; alpha is composited over white. What is guessed goes to the logger "sparkle" too, as INFO.
"""
import json
import logging
import os
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from sparkle import _core
from sparkle._arguments import checked
from sparkle._arrays import dense, of_bits
from sparkle._errors import BadInput, translated
from sparkle._session import Session
from sparkle._together import mixed_output

__all__ = ["Answer", "Box", "ClassScore", "Classification", "Depth", "Detection", "Embedding", "Segmentation", "Share", "Task",
           "Upscaling", "draw", "read", "save"]


@dataclass(frozen=True)
class ClassScore:
    """A class: its name ``label`` ("" where nobody has named it), its ``probability`` from 0 to 1, its number ``index``, the
    network's own ``value``."""
    label: str
    probability: float
    index: int
    value: float


@dataclass(frozen=True)
class Box:
    """An object: corners in pixels of the picture, ``x0`` and ``y0`` at its left and top, ``x1`` and ``y1`` at its right and
    bottom; ``label``, the name of its class ("" where nobody has named it), a ``score`` from 0 to 1, ``index``, the
    number of its class."""
    x0: float
    y0: float
    x1: float
    y1: float
    label: str
    score: float
    index: int = 0


@dataclass(frozen=True)
class Share:
    """A class in a mask: its name ``label``, its ``share`` of the pixels from 0 to 1, its number ``index``."""
    label: str
    share: float
    index: int


@dataclass(frozen=True, eq=False)
class Answer:
    """What every answer says: the name of its ``task``, ``why`` it is that one ("guessed from output ...", "as asked for"), and
    ``json``, what ``sparkle run --task`` writes, as a dictionary. Answers can be pickled."""
    task: str
    why: str
    json: dict = field(repr=False)


@dataclass(frozen=True, eq=False)
class Classification(Answer):
    """Of the task "classify": the best classes, best first."""
    classes: Sequence[ClassScore]


@dataclass(frozen=True, eq=False)
class Detection(Answer):
    """Of the task "detect": boxes, best first; of those that overlap the better ones."""
    boxes: Sequence[Box]


@dataclass(frozen=True, eq=False)
class Segmentation(Answer):
    """Of the task "segment": ``mask``, the class of each pixel as an array height x width of uint8 (uint16 where classes go
    beyond 255), and the classes in it by number."""
    mask: np.ndarray = field(repr=False)
    classes: Sequence[Share] = ()


@dataclass(frozen=True, eq=False)
class Upscaling(Answer):
    """Of the task "upscale": the larger picture as an array height x width x channels of uint8."""
    picture: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Depth(Answer):
    """Of the task "depth": the network's value for each pixel as an array height x width of float32; whether more is nearer or
    farther is the network's."""
    depth: np.ndarray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Embedding(Answer):
    """Of the task "embed": ``embedding``, the network's numbers, one row of float32."""
    embedding: np.ndarray = field(repr=False)


_BATCH = 8  # pictures of a list that run at once
Numbers = Union[str, float, Sequence[float]]
_KINDS = {"task": "word", "preset": "word", "fit": "word", "color": "word", "size": "side", "crop": "side", "scale": "numbers",
          "mean": "numbers", "std": "numbers", "pad_value": "numbers", "labels": "labels", "top": "whole",
          "threshold": "number", "iou": "number", "tile": "whole", "overlap": "whole"}


class Task:
    """A model that answers from pictures. ``model``: a Session, or what a Session takes, which ``session`` options (``device``,
    ``threads`` ...) open. ``task``: "classify", "detect", "segment", "upscale", "depth" or "embed"; None guesses from the
    outputs, and each answer says so. ``labels``: names of classes, a list or a file with one a line; else those in the model's
    file.

    How pictures become tensors comes, in this order, from ``fit`` ("crop", "stretch", "letterbox", "none"), ``color`` ("rgb",
    "bgr", "grey"), ``size`` ((width, height), or the shorter side before cropping), ``crop``, ``scale`` ("1/255"), ``mean``,
    ``std`` and ``pad_value``; from ``preset`` ("imagenet", "unit", "raw", "mobilenet", "ultraface", "yolox", "yolo",
    "yolov10", "detr", "rtdetr", "torchvision" or "deeplab"); from the model's metadata; or it is guessed. ``preprocessing``
    says in a line what came of it.

    ``top`` classes of an answer; boxes with a score below ``threshold`` are left out, and of two of a class that share more
    than ``iou`` of their union the better one stays. Networks that enlarge pictures of any size do so in tiles of ``tile``
    pixels (0: whole), which share ``overlap`` pixels. A task may be used by any number of threads at once. Tasks are pickled as
    their sessions are, those of a path: the other side opens the file, and that of ``labels``.

    Errors: BadInput for a model that takes no picture, options that do not fit, and where nothing can be guessed; those of a
    Session."""

    def __init__(self, model: Any, task: Optional[str] = None, preset: Optional[str] = None,
                 labels: Union[None, str, os.PathLike, Sequence[str]] = None, *, fit: str = "", color: str = "",
                 size: Union[None, int, str, Sequence[int]] = None, crop: Union[None, int, str, Sequence[int]] = None,
                 scale: Numbers = "", mean: Numbers = "", std: Numbers = "", pad_value: Numbers = "", top: int = 5,
                 threshold: float = 0.5, iou: float = 0.45, tile: int = 512, overlap: int = 8, **session: Any) -> None:
        if isinstance(model, Session) and session:
            raise BadInput("bad_usage", f"{', '.join(session)} open a session, and one is given; leave them out.")
        self._given = given = checked("Task", _KINDS, dict(
            task=task, preset=preset, labels=labels, fit=fit, color=color, size=size, crop=crop, scale=scale, mean=mean,
            std=std, pad_value=pad_value, top=top, threshold=threshold, iou=iou, tile=tile, overlap=overlap))
        options, called = _core.TaskOptions(), {"size": "resize", "iou": "overlap", "overlap": "tile_overlap"}
        for name, value in given.items():
            if name != "labels":
                setattr(options, called.get(name, name), value)
        options.labels = given["labels"] if isinstance(given["labels"], str) else ""
        options.names = given["labels"] if isinstance(given["labels"], list) else []
        self.session = model if isinstance(model, Session) else Session(model, **session)
        with translated():
            self._core = _core.PictureTask(self.session._core, options)
        self._apart: Optional[bool] = None  # whether pictures have the same results together as alone; None: not yet tried

    @property
    def _said(self) -> dict:
        return json.loads(self._core.describe())

    @property
    def task(self) -> Optional[str]:
        """The task's name; None before the first picture of a model that leaves sizes open."""
        return self._said["task"]

    @property
    def why(self) -> str:
        """Why it is that one: "as asked for", "guessed from output ..."."""
        return self._said["why"]

    @property
    def preprocessing(self) -> str:
        """How pictures become tensors, a line in words, which says so where it is a guess."""
        return self._said["preprocess"]

    @property
    def labels(self) -> list:
        """The names of classes; empty where nobody has named them."""
        return self._said["labels"]

    def __reduce__(self) -> tuple:
        return _reopened, (self.session, self._given)

    def __repr__(self) -> str:
        said = self._said
        task = f"{said['task']} ({said['why']})" if said["task"] else "known with the first picture"
        return f"<sparkle.vision.Task {self.session._name!r}: {task}; {said['preprocess']}>"

    def __call__(self, pictures: Any) -> Union[Answer, list]:
        """The answer from a picture; of a list or tuple of pictures a list of answers in their order, eight at once through a
        model that leaves its batch open, whose numbers may differ from those of one by rounding. Errors: BadInput and
        FileUnreadable for what is no picture, those of running."""
        if isinstance(pictures, (list, tuple)):
            # Those that fill no batch run one by one: two plans, not one for each number of pictures.
            whole = len(pictures) // _BATCH * _BATCH if self._takes_batches() else 0
            batches = [pictures[begin:begin + _BATCH] for begin in range(0, whole, _BATCH)]
            return [answer for b in batches for answer in self._at_once(b)] + [self(picture) for picture in pictures[whole:]]
        picture = _picture(pictures)
        with translated():
            return _answer(self._core.answer(picture))

    def _takes_batches(self) -> bool:
        """Whether the input has one size of picture, and its first axis a name that is the first axis of each output too."""
        shape = self.session.inputs[0].shape or (None,)
        return (isinstance(shape[0], str) and all(isinstance(size, int) for size in shape[1:])
                and all(o.shape and o.shape[0] == shape[0] for o in self.session.outputs))

    def _at_once(self, pictures: Sequence[Any]) -> list:
        given = [_picture(picture) for picture in pictures]
        inputs = [self.preprocess(picture) for picture in given]
        if self._apart is not False:
            together = np.concatenate(inputs)
            results = self.session.run(together)
            if self._apart is None:  # names promise it; the first batch shows it
                self._apart = mixed_output([together], results, lambda one: self.session.run(one[0])) is None
                if not self._apart:
                    logging.getLogger("sparkle").warning(
                        "Pictures of %r have other results together than alone; lists run one by one.", self.session._name)
            if self._apart:
                return [self.answer(picture, [r[row:row + 1] for r in results]) for row, picture in enumerate(given)]
        return [self.answer(picture, self.session.run(tensor)) for picture, tensor in zip(given, inputs)]

    def preprocess(self, picture: Any) -> np.ndarray:
        """The model's input alone: 1 x C x H x W or 1 x H x W x C, in the model's type."""
        given = _picture(picture)
        with translated():
            return of_bits(self._core.preprocess(given), self.session.inputs[0].dtype)

    def answer(self, picture: Any, outputs: Union[Sequence[Any], Mapping[str, Any]]) -> Answer:
        """The answer from outputs that a run of your own on ``preprocess(picture)`` gave, all of them: as ``Session.run`` gives
        them, in the model's order or by name."""
        given, infos = _picture(picture), self.session.outputs
        values = self.session._values(outputs, infos, "output")
        arrays = [dense(v, o.dtype, f"The output '{o.name}'", " in the model") for v, o in zip(values, infos)]
        with translated():
            return _answer(self._core.answer_outputs(given, arrays, [o.dtype for o in infos]))


def draw(picture: Any, answer: Union[Answer, Iterable[Box]]) -> np.ndarray:
    """The picture with boxes or a mask's colours and a legend below it, as an array height x width x 3 of uint8; of "upscale"
    the larger picture, of "depth" the depths as grey, of other tasks the picture itself. Boxes may also be given alone, as
    those that are left of an answer's."""
    given = _picture(picture)
    with translated():
        return _drawn_of(answer).draw(given).pixels()


def read(picture: Any) -> np.ndarray:
    """A picture as an array height x width x channels of uint8, 1 grey or 3 RGB, decoded as ``Task`` does."""
    given = _picture(picture)
    with translated():
        return given.pixels()


def save(path: Union[str, os.PathLike], picture: Any) -> None:
    """Writes a picture as a PNG file."""
    given = _picture(picture)
    with translated():
        given.write(os.fspath(path))


def _picture(given: Any) -> "_core.Picture":
    """A picture by any of the names that the module's head lists."""
    if isinstance(given, _core.Picture):
        return given
    with translated():
        if isinstance(given, (str, os.PathLike)):
            return _core.Picture.read(os.fspath(given))
        if isinstance(given, (bytes, bytearray, memoryview)):
            return _core.Picture.decode(bytes(given))
        if not isinstance(given, np.ndarray) and hasattr(given, "getexif"):
            given = _of_pil(given)
        if not isinstance(given, np.ndarray):
            raise BadInput("bad_input", f"A picture is a path, the bytes of a file, a NumPy array or a PIL image; a "
                           f"{type(given).__name__} was given.")
        if given.dtype not in (np.uint8, np.uint16):
            raise BadInput("bad_input", f"Pixels are uint8 or uint16, {given.dtype} was given; a picture of 0 to 1 is "
                           "(255 * picture).round().astype(\"uint8\").")
        return _core.Picture.of_pixels(np.ascontiguousarray(given, given.dtype.newbyteorder("=")))


def _of_pil(image: Any) -> np.ndarray:
    """A PIL image as pixels, turned upright like a file."""
    from PIL import ImageOps
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)
    if image.mode not in ("L", "LA", "RGB", "RGBA"):
        has_alpha = image.mode in ("PA", "La", "RGBa") or "transparency" in image.info
        image = image.convert("RGBA" if has_alpha else "RGB")
    return np.asarray(image)


def _answer(found: "_core.Answer") -> Answer:
    task, said = found.task(), json.loads(found.json())
    base = (task, found.why(), said)
    if task == "classify":
        return Classification(*base, [ClassScore(label, p, index, value) for index, label, p, value in found.classes()])
    if task == "detect":
        return Detection(*base, [Box(*corners, label, score, index) for *corners, score, index, label in found.boxes()])
    if task == "segment":
        return Segmentation(*base, found.array(), [Share(label, share, index) for index, label, share, _ in found.classes()])
    return {"upscale": Upscaling, "depth": Depth, "embed": Embedding}[task](*base, found.array())


def _drawn_of(answer: Union[Answer, Iterable[Box]]) -> "_core.Answer":
    """An answer as the core draws it."""
    if isinstance(answer, Segmentation):
        names = [f"class {i}" for i in range(max((c.index for c in answer.classes), default=-1) + 1)]
        for c in answer.classes:
            names[c.index] = c.label or names[c.index]
        return _core.Answer.of_array("segment", answer.mask, names)
    if isinstance(answer, Upscaling):
        return _core.Answer.of_array("upscale", answer.picture, [])
    if isinstance(answer, Depth):
        return _core.Answer.of_array("depth", answer.depth, [])
    boxes = () if isinstance(answer, (Classification, Embedding)) else answer.boxes if isinstance(answer, Detection) else answer
    return _core.Answer.of_boxes([(b.x0, b.y0, b.x1, b.y1, b.score, b.index, b.label) for b in boxes])


def _reopened(session: Session, given: dict) -> Task:
    return Task(session, **given)
