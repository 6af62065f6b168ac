"""Arguments of a wrong type, told in one sentence before the core would refuse them in its own words."""
import operator
import os
import reprlib
from typing import Any, Mapping

import numpy as np

from sparkle._errors import BadInput


def checked(where: str, kinds: Mapping[str, str], given: Mapping[str, Any]) -> dict:
    """``given``, each as its kind has it in the core. Errors: BadInput with the argument's name, ``where`` it is one, and what
    to give instead."""
    return {name: _converted(where, name, kinds[name], value) for name, value in given.items()}


def _converted(where: str, name: str, kind: str, value: Any) -> Any:
    convert, wanted = _KINDS[kind]
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput("bad_usage", f"The {where}'s {name} is {reprlib.repr(value)}, of type {type(value).__name__}; give "
                       f"{wanted}.") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _number(value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError
    return float(value)


def _whole(value: Any, bits: int = 32) -> int:
    number = operator.index(value)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise OverflowError
    return number


def _flag(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _side(value: Any) -> str:
    """Pixels as the command's options have them: "224", "320x240"."""
    if value is None or isinstance(value, str):
        return value or ""
    return "x".join(str(operator.index(v)) for v in value) if isinstance(value, (list, tuple, np.ndarray)) else str(
        operator.index(value))


def _numbers(value: Any) -> str:
    """Numbers as the command's options have them: "0.5", "0.485,0.456,0.406"."""
    if isinstance(value, str):
        return value
    return ",".join(repr(_number(v)) for v in (value if isinstance(value, (list, tuple, np.ndarray)) else [value]))


def _labels(value: Any) -> Any:
    """The absolute path of a file, or names."""
    if value is None:
        return None
    return os.path.abspath(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else [str(name) for name in value]


# How each kind is taken, and what to give for it.
_KINDS = {
    "text": (_text, "a text"), "word": (lambda v: "" if v is None else _text(v), "a text, or None"),
    "device": (_text, "a Device or its name"), "path": (lambda v: _text(os.fspath(v)), "a path"),
    "flag": (_flag, "True or False"), "number": (_number, "a number"),
    "whole": (_whole, "a whole number below 2^31"), "bytes": (lambda v: _whole(v, 64), "a whole number of bytes"),
    "side": (_side, "a number of pixels, (width, height), or a text such as \"320x240\""),
    "numbers": (_numbers, "a number, several in a list, or a text such as \"1/255\""),
    "labels": (_labels, "names in a list, or the path of a file with one a line")}
