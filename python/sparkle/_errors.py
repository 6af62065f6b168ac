"""Exceptions: each is a sparkle.Error with a code, and the built-in exception that a Python programmer expects."""
import contextlib
from typing import Iterator

from sparkle import _core


class Error(RuntimeError):
    """What went wrong: one sentence, and in ``code`` its reason ("bad_model", "device_unusable", ...). ``details``: lines
    behind the sentence, such as one for each operator of a model that cannot run."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.details = [line.strip() for line in sentence.split("\n")[1:]]

    def __reduce__(self) -> tuple:
        return type(self), (self.code, str(self))


class BadInput(Error, ValueError):
    """An argument, input, file or model is not what it should be."""


class NotServed(Error, NotImplementedError):
    """An operator, a form of it or an element type that is not supported yet."""


class OutOfMemory(Error, MemoryError):
    """An allocation failed, or the memory budget does not suffice."""


class FileUnreadable(Error, OSError):
    """A file cannot be opened or read."""


_CLASSES = {
    "bad_usage": BadInput, "bad_format": BadInput, "bad_model": BadInput, "bad_input": BadInput,
    "not_served": NotServed, "out_of_memory": OutOfMemory, "over_memory_budget": OutOfMemory, "file_unreadable": FileUnreadable,
}


def error_of(code: str, sentence: str) -> Error:
    return _CLASSES.get(code, Error)(code, sentence)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raises the classes above instead of the core's error."""
    try:
        yield
    except _core.CoreError as e:
        code, sentence = e.args
        raise error_of(code, sentence) from None
