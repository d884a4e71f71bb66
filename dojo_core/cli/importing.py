"""Importing: a model's operators as one kernel's text, or a whole model as a graph (docs/onnx.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape

from dojo_core.cli.foreign import reader
from dojo_core.cli.terminal import Failure, err, out
from dojo_core.files import naming, write_text
from dojo_core.from_onnx.as_nodes import graph_of, nodes_of
from dojo_core.from_onnx.importer import Given, Imported, NotImported, import_model
from dojo_core.from_onnx.reader import folder_of, read_model
from dojo_core.from_onnx.values import Refusal, dtype_of, numpy_dtype
from dojo_core.graph import Graph
from dojo_core.graph.store import save
from dojo_core.graph.text import print_graph
from dojo_core.wording import counted

FEW = 16  # nodes of what becomes one kernel's text, where nobody says which
_SIZES = r"\d{1,12}(x\d{1,12})*|scalar"


def import_onnx(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A model of ONNX, or a program of torch.export (.pt2).", show_default=False
        ),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Tell all that cannot be taken, and write nothing.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The file for the text; without it, it is printed.", show_default=False),
    ] = None,
    shapes: Annotated[
        list[str] | None,
        typer.Option("--shape", help="An input's shape, such as x=1x3x224x224.", show_default=False),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            "--value", help="The value of an input that says a shape, such as axes=0,1.", show_default=False
        ),
    ] = None,
    whole: Annotated[
        bool | None,
        typer.Option(
            "--model/--kernel",
            help="A graph of kernels, or one kernel's text. Without either, a graph is made of more than "
            f"{FEW} nodes.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a model's operators (ONNX) one kernel's text or a graph of kernels, or tell what cannot be taken.

    Example: [bold]dojo import softmax.onnx --to softmax.dojo[/bold], then [bold]dojo play softmax.dojo[/bold]
    or [bold]dojo import model.onnx --to model.dojo[/bold], then [bold]dojo time --model model.dojo[/bold]
    or [bold]dojo import model.onnx --check --shape x=1x3x224x224[/bold]
    """
    try:
        foreign = reader(path)
        if foreign is not None:
            if shapes or values or whole is False:
                raise Failure(f"{path} is imported as it is: leave --shape, --value and --kernel out.")
            return _write_graph(path, foreign(path), check, to)
        model = read_model(path)
        given = _given(model, shapes or [], values or [])
        nodes = len(model.graph.node)
        if nodes > FEW if whole is None else whole:
            as_nodes = nodes_of(model, given, path.stem, folder_of(path))
            graph = graph_of(as_nodes)
            _tell_specialised(as_nodes.specialised, given)
            _tell_costly(as_nodes.costly)
            _write_graph(path, graph, check, to)
        else:
            _as_kernel(path, import_model(model, given, path.stem, folder_of(path)), given, check, to)
    except NotImported as refused:
        lines = [f"{path} cannot be taken, for {counted(len(refused.reasons), 'reason')}:"]
        lines += [f"  {reason}" for reason in refused.reasons]
        raise Failure("\n".join(lines)) from None
    except Refusal as refusal:
        raise Failure(str(refusal)) from None
    if whole is None and not check:
        made, other = ("a graph of kernels", "--kernel") if nodes > FEW else ("one kernel's text", "--model")
        err.print(f"{counted(nodes, 'node')}: {made} ({other} makes the other).", style="dim", soft_wrap=True)


def _write_graph(path: Path, graph: Graph, check: bool, to: Path | None) -> None:
    size = f"{counted(len(graph.calls), 'call')} of {counted(len(graph.kernels), 'kernel')}"
    constants = sum(values.nbytes for values in graph.constants.values())
    if check:
        out.print(f"{escape(str(path))} can be taken: {size}.", soft_wrap=True)
    elif to is None:
        out.print(escape(print_graph(graph)), end="", soft_wrap=True)
    else:
        text, *values = save(graph, to)
        out.print(f"Wrote {escape(str(text))}, {size}: dojo time --model {escape(str(to))}", soft_wrap=True)
        for beside in values:
            out.print(
                f"Wrote {escape(str(beside))}: {constants / 2**20:,.1f} MiB of constants.", soft_wrap=True
            )


def _as_kernel(path: Path, imported: Imported, given: dict[str, Given], check: bool, to: Path | None) -> None:
    _tell(imported, given)
    if check:
        out.print(
            f"{escape(str(path))} can be taken: {counted(len(imported.program.leaves), 'operation')}, "
            f"{counted(len(imported.program.buffers), 'buffer')}.",
            soft_wrap=True,
        )
        return
    if to is None:
        out.print(escape(imported.text), end="", soft_wrap=True)
        return
    write_text(to, imported.text)
    out.print(f"Wrote {escape(str(to))}: dojo play {escape(str(to))}", soft_wrap=True)
    if imported.weights:
        beside = to.with_name(f"{to.name}.npz")
        with naming(beside):
            np.savez(beside, allow_pickle=False, **{n: _plain(v) for n, v in imported.weights.items()})
        out.print(
            f"Wrote {escape(str(beside))}: the values of {', '.join(imported.weights)}.", soft_wrap=True
        )


def _plain(values: Any) -> Any:
    """As NumPy's own dtypes, which every reader has."""
    array = np.asarray(values)
    return array if array.dtype.kind in "fiub" else array.astype(np.float32)


def _tell_specialised(specialised: Mapping[str, str], given: dict[str, Given]) -> None:
    for name, each in given.items():
        if each.values is not None and name not in specialised:
            err.print(f"{escape(name)} says no shape: it stays an input.", style="dim", soft_wrap=True)
    if specialised:
        told = ", ".join(f"{name} ({who})" for name, who in specialised.items())
        err.print(f"Taken for their values: {escape(told)}.", style="dim", soft_wrap=True)


def _tell(imported: Imported, given: dict[str, Given]) -> None:
    _tell_specialised(imported.specialised, given)
    if imported.weights:
        told = ", ".join(imported.weights)
        err.print(
            f"Inputs of the text whose values the model has: {escape(told)}.", style="dim", soft_wrap=True
        )
    _tell_costly(imported.costly)


def _tell_costly(costly: Sequence[str]) -> None:
    if costly:
        told = f"It takes more than one pass over the result: {', '.join(costly)}."
        err.print(told, style="dim", soft_wrap=True)


def _given(model: Any, shapes: list[str], values: list[str]) -> dict[str, Given]:
    """What is said of inputs on the command line."""
    inputs = {i.name: i.type for i in model.graph.input}
    given: dict[str, Given] = {}
    for said in shapes:
        name, text = _named(said, "--shape", "x=2x3", inputs)
        items = re.fullmatch(rf"\[(?:({_SIZES})(,({_SIZES}))*)?\]", text)
        if items:
            given[name] = Given(items=tuple(Given(shape=_sizes(t)) for t in text[1:-1].split(",") if t))
        elif re.fullmatch(_SIZES, text):
            given[name] = Given(shape=_sizes(text))
        else:
            raise Failure(
                f"--shape {said}: a shape reads 2x3 (scalar: no dimensions; [2x3,4x3]: a sequence of two)."
            )
    for said in values:
        name, text = _named(said, "--value", "axes=0,1", inputs)
        kind = inputs[name].tensor_type
        element = dtype_of(kind.elem_type)
        try:
            numbers = np.array([float(v) for v in text.split(",") if v.strip()])
        except ValueError:
            raise Failure(f"--value {said}: write numbers with commas between them.") from None
        known_shape = given[name].shape if name in given else None
        shape = (
            known_shape
            if known_shape is not None
            else (() if not kind.shape.dim and numbers.size == 1 else numbers.shape)
        )
        if int(np.prod(shape)) != numbers.size:
            raise Failure(f"--value {said}: {numbers.size} numbers do not make the shape {list(shape)}.")
        with np.errstate(all="ignore"):
            array = numbers.astype(numpy_dtype(element)).reshape(shape)
        given[name] = Given(shape=shape, values=array)
    return given


def _sizes(text: str) -> tuple[int, ...]:
    return () if text == "scalar" else tuple(map(int, text.split("x")))


def _named(said: str, option: str, example: str, inputs: dict[str, Any]) -> tuple[str, str]:
    name, equals, text = said.partition("=")
    if not equals:
        raise Failure(f"{option} {said}: write an input and what it is, such as {example}.")
    if name not in inputs:
        raise Failure(f"{option} {said}: the model has no input {name!r}. Its inputs: {', '.join(inputs)}.")
    return name, text
