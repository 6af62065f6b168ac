"""What an ONNX file says of itself beside its graph: read from the message's own fields, the weights skipped."""
import os
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Iterator, Tuple, Union
import io

_MOST = 1 << 20  # bytes of one text


@dataclass
class ModelMetadata:
    """What a file says of itself, as onnxruntime names it: ``producer_name``, ``graph_name``, ``domain``, ``description``,
    ``graph_description``, ``version`` and ``custom_metadata_map``, its own entries; empty texts and 0 where it says nothing."""
    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict = field(default_factory=dict)


def model_metadata(model: Union[str, os.PathLike, bytes]) -> ModelMetadata:
    """Of a file or its bytes; empty where it is no ONNX file, such as a compiled one."""
    meta = ModelMetadata()
    try:
        with (io.BytesIO(model) if isinstance(model, (bytes, bytearray, memoryview)) else open(model, "rb")) as file:
            end = file.seek(0, os.SEEK_END)
            for number, value in _fields(file, 0, end):
                if number in (2, 4, 6):
                    setattr(meta, {2: "producer_name", 4: "domain", 6: "description"}[number], _text(file, value))
                elif number == 5 and isinstance(value, int):
                    meta.version = value
                elif number == 7:
                    _read_graph(file, value, meta)
                elif number == 14:
                    entry = {n: _text(file, v) for n, v in _fields(file, *value)}
                    meta.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")
    except (OSError, ValueError, TypeError):
        return ModelMetadata()
    return meta


def _read_graph(file: BinaryIO, where: Any, meta: ModelMetadata) -> None:
    for number, value in _fields(file, *where):
        if number == 2:
            meta.graph_name = _text(file, value)
        elif number == 10:
            meta.graph_description = _text(file, value)


def _text(file: BinaryIO, where: Any) -> str:
    begin, end = where
    file.seek(begin)
    return file.read(min(end - begin, _MOST)).decode("utf-8", "replace")


def _fields(file: BinaryIO, begin: int, end: int) -> Iterator[Tuple[int, Any]]:
    """Numbers of fields with their integer, or (begin, end) of their bytes."""
    at = begin
    while at < end:
        file.seek(at)
        key = _varint(file)
        kind = key & 7
        if kind == 0:
            value: Any = _varint(file)
            at = file.tell()
        elif kind == 2:
            size = _varint(file)
            at = file.tell() + size
            value = (file.tell(), at)
        elif kind in (1, 5):
            at = file.tell() + (8 if kind == 1 else 4)
            value = None
        else:
            raise ValueError("no message")
        if at > end:
            raise ValueError("cut short")
        if value is not None:
            yield key >> 3, value


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            return value - (1 << 64) if value >= 1 << 63 else value
    raise ValueError("no number")
