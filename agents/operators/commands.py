"""``dojo library``: a tuned library of operators for this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from agents.operators.compared import Others, absent
from agents.operators.library import DOCUMENT, FOLDER, PAGE, NotResumable, Plan, TunedLibrary
from agents.operators.listed import NotListed, Operator, chosen, operators, read
from agents.players import AGENTS, NoAgent, agent_named
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, columns, err, out, print_table, tell_machine
from dojo_core.export import NotExported
from dojo_core.export.names import library_name
from dojo_core.extras import need
from dojo_core.from_onnx.importer import NotImported
from dojo_core.from_onnx.values import Refusal
from dojo_core.program.dependence import POLICIES, check_policy
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.wording import counted


def library(
    onnx: Annotated[
        bool, typer.Option("--onnx", help="The operators of ai.onnx, each at two typical shapes.")
    ] = False,
    only: Annotated[
        str | None, typer.Option("--only", help="These operators alone, as Softmax,Gemm.")
    ] = None,
    to: Annotated[Path, typer.Option("--to", help="The folder to write.")] = Path("onnx_library"),
    budget: Annotated[
        int,
        typer.Option(
            "--budget", min=0, help="Programs that the search measures for each kernel; 0: the pass alone."
        ),
    ] = 200,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes", min=0.01, help="At most so long in all, shared evenly; call again to go on."
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", min=0, max=1000, help="Interleaved rounds beside the others; 0: no comparison."
        ),
    ] = 3,
    agent: Annotated[str, typer.Option("--agent", help=f"One of: {', '.join(AGENTS)}.")] = "annealing-lines",
    policy: Annotated[str, typer.Option("--policy", help=f"One of: {', '.join(POLICIES)}.")] = "reassoc",
    shapes: Annotated[
        Path | None,
        typer.Option("--shapes", help="Operators and shapes of yours, in the form of operators.toml."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="The library's name in C and Python.")
    ] = "onnx_operators",
    show: Annotated[
        bool, typer.Option("--list", help="List the operators and their shapes; nothing is measured.")
    ] = False,
) -> None:
    """Write a tuned library of operators for this machine, and a page beside PyTorch and ONNX Runtime.

    First the heuristic pass plays each kernel, then a search goes on as far as the budget goes. All that is
    exported is verified. Ctrl-C keeps everything, and the same command goes on.

    Example: [bold]dojo library --onnx --only Softmax,Gemm --budget 50[/bold]
    or [bold]dojo library --onnx --minutes 120[/bold]
    """
    if not onnx:
        raise Failure(
            "Say which operators: dojo library --onnx (one kernel of yours: dojo tune, dojo export)."
        )
    need("onnx", "dojo library --onnx")
    try:
        known = operators() if shapes is None else read(shapes)
        wanted = chosen(only.split(",") if only is not None else (), known)
        if show:
            _list(wanted)
            return
        check_policy(policy)
        library_name(name)
        player = agent_named(agent)
    except (NotListed, NoAgent, ValueError) as wrong:
        raise Failure(str(wrong)) from None
    if to.exists() and not to.is_dir():
        raise Failure(f"{to} is a file: name a folder with --to.")
    for each in wanted:
        if each.reason:
            _say(f"{each.name}: {each.reason}")
    seconds = None if minutes is None else 60 * minutes
    plan = Plan(to, player, policy, budget, seconds, rounds, name)
    with opened() as records, Measurer(records) as measurer, Others() as others:
        tell_machine()
        if rounds:
            for sentence in absent().values():
                _say(sentence)
        try:
            making = TunedLibrary(known, wanted, plan, records, measurer, others, _say)
            making.run()
        except (NotResumable, NotExported) as refusal:
            raise Failure(str(refusal)) from None
    rows = [making.rows[case.title] for operator in wanted for case in operator.cases]
    right = [row for row in rows if row.status == "ok"]
    out.print(
        f"{counted(len(right), 'kernel')} of {len(rows)}, the library in {escape(str(to / FOLDER))}, "
        f"the page {escape(str(to / PAGE))}, all figures {escape(str(to / DOCUMENT))}.",
        soft_wrap=True,
    )
    if not right:
        raise typer.Exit(1)


def _say(words: str) -> None:
    err.print(escape(words), soft_wrap=True)


def _list(wanted: list[Operator]) -> None:
    from agents.operators.node import made

    table = columns("operator", "shape", "inputs and attributes", "")
    for operator in wanted:
        if operator.reason:
            table.add_row(operator.name, "", "", escape(operator.reason))
        for case in operator.cases:
            try:
                reason = ", ".join(made(case).costly)
            except (Refusal, NotImported) as refusal:
                reason = " ".join(str(refusal).split())
            table.add_row(operator.name, case.shape, escape(case.about), escape(reason))
    print_table(table)
