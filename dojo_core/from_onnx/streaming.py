"""Large model files: their structure is read, their weights stay where they are.

An ONNX file is a protocol buffer: fields, each a tag and what it holds. All but the elements of large
initializers is copied; these become external data (a standard way of saying where a tensor's elements lie),
of the file itself, so that they are mapped when somebody looks at them.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

from dojo_core.from_onnx.values import Refusal

KEPT = 1 << 16  # bytes of elements that stay in the structure

# Numbers of fields (onnx.proto): of a model, of a graph, of a tensor.
_GRAPH, _INITIALIZER = 7, 5
_RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 9, 13, 14
_VARINT, _BYTES = 0, 2  # what follows a tag

_Field = tuple[int, int, int, int]  # number, where its tag begins, where its content does, where it ends


class _Damaged(Exception):
    """It is no message."""


class _TooLarge(Exception):
    """More than may be kept in memory."""


def structure(path: Path, most: int) -> bytes:
    """The model in a file, the elements of its large initializers as external data of that file.

    ``most`` is how many bytes that may have. Raises Refusal where it has more, or the file is damaged.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            return bytes(_model(content, path.name, most))
        except _Damaged:
            raise Refusal(f"{path} is damaged, or no ONNX file.", "Export the model again.") from None
        except _TooLarge:
            raise Refusal(
                f"{path} has more than {most >> 20} MiB beside its initializers.",
                "Take out a part: onnx.utils.extract_model(path, 'part.onnx', inputs, outputs).",
            ) from None


def _model(content: mmap.mmap, name: str, most: int) -> bytearray:
    made = bytearray()
    for number, tag, begin, end in _fields(content, 0, len(content)):
        if number == _GRAPH:
            _put(made, _GRAPH, _graph(content, begin, end, name, most))
        else:
            _copy(made, content, tag, end, most)
    return made


def _graph(content: mmap.mmap, begin: int, end: int, name: str, most: int) -> bytearray:
    made = bytearray()
    for number, tag, inner, after in _fields(content, begin, end):
        if number == _INITIALIZER:
            _put(made, _INITIALIZER, _tensor(content, inner, after, name, most))
        else:
            _copy(made, content, tag, after, most)
        if len(made) > most:
            raise _TooLarge
    return made


def _tensor(content: mmap.mmap, begin: int, end: int, name: str, most: int) -> bytearray:
    made = bytearray()
    place: tuple[int, int] | None = None
    for number, tag, inner, after in _fields(content, begin, end):
        if number == _RAW_DATA and after - inner > KEPT:
            place = inner, after - inner
        else:
            _copy(made, content, tag, after, most)
    if place is not None:
        for key, value in (("location", name), ("offset", str(place[0])), ("length", str(place[1]))):
            entry = bytearray()
            _put(entry, 1, key.encode())
            _put(entry, 2, value.encode())
            _put(made, _EXTERNAL_DATA, entry)
        made += _varint(_DATA_LOCATION << 3 | _VARINT) + _varint(1)
    return made


def _copy(made: bytearray, content: mmap.mmap, begin: int, end: int, most: int) -> None:
    if len(made) + end - begin > most:
        raise _TooLarge
    made += content[begin:end]


def _put(made: bytearray, number: int, content: bytes | bytearray) -> None:
    made += _varint(number << 3 | _BYTES) + _varint(len(content)) + content


# ---------------------------------------------------------------------------- the wire format


def _fields(content: mmap.mmap, begin: int, end: int) -> Iterator[_Field]:
    """The fields of a message. Raises _Damaged where it is none."""
    at = begin
    while at < end:
        tag, inner = _read_varint(content, at, end)
        match tag & 7:
            case 0:
                _, after = _read_varint(content, inner, end)
            case 1:
                after = inner + 8
            case 2:
                length, inner = _read_varint(content, inner, end)
                after = inner + length
            case 5:
                after = inner + 4
            case _:
                raise _Damaged
        if after > end:
            raise _Damaged
        yield tag >> 3, at, inner, after
        at = after


def _read_varint(content: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise _Damaged


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
