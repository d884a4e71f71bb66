"""A graph as files: its text, and beside it the constants' values in NumPy's form (``model.dojo.npz``); or as
one piece of bytes, for a cache."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from dojo_core.files import naming, write_text
from dojo_core.graph.graph import Graph
from dojo_core.graph.nodes import GraphError
from dojo_core.graph.text import TEXT, parse_graph, print_graph

Values = np.ndarray[Any, Any]

VALUES = 64 << 30  # bytes of all constants


def beside(path: Path) -> Path:
    """Where the constants of a graph in a file are."""
    return path.with_name(f"{path.name}.npz")


def save(graph: Graph, path: str | Path) -> list[Path]:
    """Write a graph; gives the files that were written. Raises OSError with the file's name."""
    path = Path(path)
    written = [path]
    if graph.constants:
        archive = beside(path)
        draft = archive.with_name(f"{archive.name}.{os.getpid()}.new")
        try:
            with naming(draft), draft.open("wb") as file:
                _write(file, graph.constants)
            with naming(archive):
                os.replace(draft, archive)
        finally:
            draft.unlink(missing_ok=True)
        written.append(archive)
    write_text(path, print_graph(graph))
    return written


def load(path: str | Path) -> Graph:
    """Read a graph that ``save`` wrote, or a person. Raises GraphError with a sentence, OSError."""
    path = Path(path)
    with naming(path):
        if path.stat().st_size > 4 * TEXT:
            raise GraphError(f"{path} is longer than {4 * TEXT >> 20} MiB, which no graph's text is.")
        content = path.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise GraphError(f"{path} is no text: name the file that was saved as model.dojo.") from None
    archive = beside(path)
    if not archive.exists():
        return parse_graph(text)
    with naming(archive), archive.open("rb") as file:
        return parse_graph(text, dict(_read(file, str(archive))))


def to_bytes(graph: Graph) -> bytes:
    """A graph with its constants, as ``from_bytes`` reads it."""
    text = print_graph(graph).encode()
    content = io.BytesIO()
    content.write(len(text).to_bytes(8, "little") + text)
    _write(content, graph.constants)
    return content.getvalue()


def from_bytes(content: bytes | memoryview) -> Graph:
    """Read what ``to_bytes`` gave, or somebody else. Raises GraphError with a sentence."""
    begin = 8 + int.from_bytes(content[:8], "little")
    try:
        text = bytes(content[8:begin]).decode()
    except UnicodeDecodeError:
        raise GraphError("The graph is damaged: it begins with no text.") from None
    return parse_graph(text, dict(_read(io.BytesIO(content[begin:]), "The archive of constants")))


def _write(file: IO[bytes], constants: Mapping[str, Values]) -> None:
    """An archive of arrays."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, values in constants.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)


def _read(content: IO[bytes], path: str) -> Iterator[tuple[str, Values]]:
    """The arrays in an archive, none larger than what is in the file."""
    try:
        with zipfile.ZipFile(content) as file:
            if sum(entry.file_size for entry in file.infolist()) > VALUES:
                raise GraphError(f"{path} unpacks to more than {VALUES >> 30} GiB.")
            for entry in file.infolist():
                if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > entry.compress_size:
                    raise GraphError(f"{path} is compressed: write it with numpy.savez.")
                with file.open(entry) as content:
                    yield (
                        entry.filename.removesuffix(".npy"),
                        np.lib.format.read_array(content, allow_pickle=False),
                    )
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError, MemoryError) as fault:
        if isinstance(fault, GraphError):
            raise
        raise GraphError(f"{path} is damaged, or no archive of NumPy's: make the graph again.") from None
