"""Translating: a text of another language as a program's text (docs/own_kernel.md)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.positions import told_translation
from dojo_core.cli.terminal import LARGEST_FILE, Failure, out, read_file, write_file
from dojo_core.from_code.recognise import OWN, kind_of

_NAME = re.compile(r"[\w./~-]+\.[a-z]{1,5}", re.ASCII)  # of a file


def translate_text(
    text: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, - for standard input, or the text itself.")
    ],
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", help="A size, such as m=512; may be repeated.", show_default=False),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The file for the text; without it, it is printed.", show_default=False),
    ] = None,
) -> None:
    """Make NumPy, PyTorch, an einsum, loops in C or ONNX a program's text, checked on random inputs.

    The text is read by a parser and never run. Comments say shapes: # x[m, n], w[n].

    Example: [bold]dojo translate 'softmax(x @ w)' --size m=512[/bold]
    or [bold]dojo translate mk,kn->mn --to matmul.dojo[/bold] or [bold]dojo translate loops.c[/bold]
    or [bold]dojo translate 'Gemm(a, b, c, transB=1)'[/bold]
    """
    read = _read(text)
    if kind_of(read) in OWN:
        raise Failure(f"{text[:80]} is one of the Dojo's own texts already: dojo show prints its program.")
    translation = told_translation(read, sizes or [])
    if to is None:
        out.print(escape(translation.program.text), end="", soft_wrap=True)
        return
    write_file(to, translation.program.text)
    out.print(f"Wrote {escape(str(to))}: dojo play {escape(str(to))}", soft_wrap=True)


def _read(text: str) -> str:
    """What stands in a file, comes in, or is given itself."""
    if text == "-":
        return sys.stdin.read(LARGEST_FILE + 1)
    if re.fullmatch(r"[^\n]{1,255}", text) and (_NAME.fullmatch(text) or Path(text).is_file()):
        return read_file(Path(text))
    return text
