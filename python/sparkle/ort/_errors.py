"""onnxruntime's exceptions. What a session of sparkle.ort raises is one of them and one of sparkle's own as well, so that
either is caught: "except" asks for the classes that an exception's class is made of."""
import contextlib
from typing import Any, Iterator

from sparkle._errors import Error, error_of


class Fail(Exception):
    """Something inside went wrong."""


class InvalidArgument(Exception):
    """An argument or input is not what the model or the call takes."""


class NoSuchFile(Exception):
    """A file cannot be opened or read."""


class NoModel(Exception):
    """Never raised here."""


class EngineError(Exception):
    """Never raised here."""


class RuntimeException(Exception):
    """A run failed: no memory, or whatever has no class of its own."""


class InvalidProtobuf(Exception):
    """A file is no model."""


class ModelLoaded(Exception):
    """Never raised here."""


class NotImplemented(Exception):
    """An operator, a form of it or an element type that is not supported yet."""


class InvalidGraph(Exception):
    """A model contradicts itself or the ONNX specification."""


class EPFail(Exception):
    """A device cannot be used, or was lost."""


class ModelLoadCanceled(Exception):
    """Never raised here."""


class ModelRequiresCompilation(Exception):
    """Never raised here."""


class NotFound(Exception):
    """Never raised here."""


_BY_CODE = {"bad_usage": InvalidArgument, "bad_input": InvalidArgument, "bad_format": InvalidProtobuf,
            "bad_model": InvalidGraph, "not_served": NotImplemented, "file_unreadable": NoSuchFile, "device_unusable": EPFail,
            "device_lost": EPFail, "internal": Fail}
_BOTH: dict = {}  # (sparkle's class, onnxruntime's) -> the class of both


def _class_of_both(error: Error) -> type:
    ours, theirs = type(error), _BY_CODE.get(error.code, RuntimeException)
    if (ours, theirs) not in _BOTH:
        _BOTH[ours, theirs] = type(theirs.__name__, (ours, theirs), {"__doc__": theirs.__doc__, "__module__": theirs.__module__,
                                                                     "__reduce__": _reduced})
    return _BOTH[ours, theirs]


def _reduced(self: Any) -> tuple:
    return both_of, (self.code, str(self))


def both_of(code: str, sentence: str) -> Error:
    """The exception of sparkle's and of onnxruntime's class that stand for the code."""
    error = error_of(code, sentence)
    error.__class__ = _class_of_both(error)
    return error


@contextlib.contextmanager
def theirs_too() -> Iterator[None]:
    """Sparkle's errors that leave the block, or the function that this decorates, are onnxruntime's as well."""
    try:
        yield
    except Error as error:
        if not isinstance(error, tuple(_BY_CODE.values()) + (RuntimeException,)):
            error.__class__ = _class_of_both(error)
        raise
