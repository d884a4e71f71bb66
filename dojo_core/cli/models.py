"""Whole models: what ``--model`` makes of ``dojo time`` and ``dojo export`` (docs/onnx.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from rich.markup import escape

from dojo_core.bench.model_rival import NoRival, OnnxRuntime
from dojo_core.cli.positions import known_policy
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, columns, err, out, print_table, tell_machine
from dojo_core.export import Choice, NotExported, sets_for, write, zipped
from dojo_core.export.library import Library, model_library
from dojo_core.files import naming
from dojo_core.graph.choices import SOURCES, choices, choose
from dojo_core.graph.graph import Graph, Values
from dojo_core.graph.nodes import GraphError
from dojo_core.graph.run import Model
from dojo_core.graph.store import load
from dojo_core.graph.trial import (
    Deviation,
    Timing,
    deviations,
    drawn_inputs,
    in_turns,
    sampler,
    timed,
)
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Records
from dojo_core.wording import counted

HOW_TO_BUILD = "README.md there tells how to build and call it."


def opened_model(path: Path) -> Graph:
    """The graph in a file. Raises Failure."""
    try:
        return load(path)
    except GraphError as fault:
        raise Failure(f"{path}: {fault}") from None


def chosen(graph: Graph, source: str, records: Records, policy: str | None) -> dict[str, Choice]:
    """What runs for each kernel, told on the terminal as it is found."""
    if source not in SOURCES:
        raise Failure(f"--from takes {', '.join(SOURCES)}, not {source!r}.")
    total = len({call.kernel for call in graph.calls})
    found = 0

    def hear(kernel: str) -> None:
        nonlocal found
        found += 1
        err.print(f"{escape(kernel)} ({found} of {total}) …", style="dim", soft_wrap=True)

    def remark(text: str) -> None:
        err.print(f"{escape(text)} Its start program runs.", style="yellow", soft_wrap=True)

    return choices(graph, source, records, known_policy(policy, "reassoc"), hear, remark)


def made(graph: Graph, programs: Mapping[str, Choice] | None, policy: str | None) -> Model:
    """The model compiled, of its start programs where none are given. Raises Failure."""
    try:
        chosen = None if programs is None else choose(graph, programs)
        return Model(graph, chosen, known_policy(policy, "reassoc"))
    except GraphError as fault:
        raise Failure(str(fault)) from None


def checked(graph: Graph, model: Model, inputs: Mapping[str, Values], policy: str | None) -> list[Deviation]:
    """How far a model's outputs are from those of its start programs."""
    return deviations(graph, model.run(inputs), made(graph, None, policy).run(inputs))


def time_model(path: Path, source: str, policy: str | None, against: Path | None, as_json: bool) -> None:
    """Time a model on drawn inputs, its outputs held against those of the start programs; with ``against``,
    the ONNX model that it was made of, beside ONNX Runtime."""
    graph = opened_model(path)
    with opened() as records:
        programs = chosen(graph, source, records, policy)
    model = made(graph, programs, policy)
    inputs = drawn_inputs(graph)
    given = model.run(inputs)
    found = checked(graph, model, inputs, policy)
    if not as_json:
        tell_machine()
    timing = timed(model, inputs)
    told = described(graph, programs, timing, found)
    if not as_json:
        tell_shares(graph, programs, timing)
        tell_deviations(found, "the start programs")
    if against is not None:
        try:
            with OnnxRuntime(against, graph, inputs) as rival:
                found += deviations(graph, given, rival.outputs)
                theirs, ours, faster = in_turns(rival.sample, sampler(model, inputs))
        except NoRival as fault:
            raise Failure(str(fault)) from None
        told["against"] = {"by": rival.by, "seconds": theirs, "ours": ours, "faster": faster}
        told["right"] = all(each.right for each in found)
        if not as_json:
            tell_deviations(found[len(graph.outputs) :], rival.by)
            out.print(
                f"{rival.by}: {seconds_text(theirs)} a run, this {seconds_text(ours)}, in turns: "
                f"{faster:.2f} times as fast.",
                soft_wrap=True,
            )
    if as_json:
        out.print_json(data=told)
    if not all(each.right for each in found):
        raise typer.Exit(1)


def tell_shares(graph: Graph, programs: Mapping[str, Choice], timing: Timing) -> None:
    """The whole, and the calls, those that take longest first."""
    table = columns("kernel", "computes", "time", "share", "from", right=("time", "share"))
    for share in sorted(timing.shares, key=lambda each: -each.seconds):
        table.add_row(
            escape(share.call.kernel),
            escape(_shortened(", ".join(share.call.nodes))),
            seconds_text(share.seconds),
            f"{share.share:.0%}",
            escape(programs[share.call.kernel].source),
        )
    print_table(table)
    out.print(
        f"{escape(graph.name)}: {seconds_text(timing.least)} a run (median {seconds_text(timing.median)} of "
        f"{timing.runs}), {counted(len(graph.calls), 'call')} of {counted(len(programs), 'kernel')}.",
        soft_wrap=True,
    )


def tell_deviations(found: list[Deviation], by: str) -> None:
    """What is wrong, held against somebody's outputs; or that nothing is."""
    for each in found:
        if not each.right:
            out.print(
                f"{escape(each.output)} is wrong: it is {each.largest:.2g} off that of {by}, and "
                f"{each.allowed:.2g} is allowed.",
                style="red",
                soft_wrap=True,
            )
    if all(each.right for each in found):
        worst = max((each.largest for each in found), default=0.0)
        out.print(
            f"Its outputs are those of {by}, within {worst:.2g} of the largest value.",
            style="dim",
            soft_wrap=True,
        )


def described(
    graph: Graph, programs: Mapping[str, Choice], timing: Timing, found: list[Deviation]
) -> dict[str, Any]:
    """The same as data."""
    return {
        "model": graph.name,
        "seconds": timing.least,
        "median": timing.median,
        "runs": timing.runs,
        "right": all(each.right for each in found),
        "deviations": {each.output: each.largest for each in found},
        "calls": [
            {
                "kernel": share.call.kernel,
                "nodes": list(share.call.nodes),
                "seconds": share.seconds,
                "share": share.share,
                "from": programs[share.call.kernel].source,
            }
            for share in timing.shares
        ],
    }


def export_model(
    path: Path, to: Path, source: str, policy: str | None, name: str, others: str | None, verify: bool
) -> None:
    """Write a whole model as a library; with ``verify``, after a run on drawn inputs that gives what the
    start programs give. Raises Failure."""
    free_place(to)
    graph = opened_model(path)
    with opened() as records:
        programs = chosen(graph, source, records, policy)
    if verify:
        found = checked(graph, made(graph, programs, policy), drawn_inputs(graph), policy)
        if not all(each.right for each in found):
            tell_deviations(found, "the start programs")
            raise Failure("Nothing was exported: with these programs the model is wrong.")
    try:
        library = model_library(graph, programs, name, sets_for(others) if others else ())
        write_library(library, to)
    except (NotExported, ValueError) as refusal:
        raise Failure(str(refusal)) from None
    out.print(
        f"Wrote {counted(len(library.files) + len(library.data), 'file')} to {escape(str(to))}: {name}_run "
        f"is the model. {HOW_TO_BUILD}",
        soft_wrap=True,
    )


def free_place(to: Path) -> None:
    """Raises Failure where an archive would be written over a file."""
    if to.suffix == ".zip" and to.exists():
        raise Failure(f"{to} is there already: remove it, or name another file.")


def write_library(library: Library, to: Path) -> None:
    """To a folder, or to a file that ends in .zip."""
    if to.suffix == ".zip":
        with naming(to):
            to.write_bytes(zipped(library))
    else:
        write(library, to)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
