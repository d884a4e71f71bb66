"""Looking: the kernels, their programs, a position's moves, why a move is legal or not, one's own text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core import kernels
from dojo_core.cli.listing import print_code
from dojo_core.cli.positions import (
    JsonFlag,
    KernelArgument,
    LineOption,
    PolicyOption,
    ShapeOption,
    played,
    start_of,
)
from dojo_core.cli.terminal import Failure, columns, err, out, read_file
from dojo_core.faults import program_fault
from dojo_core.moves import blocked_moves, legal_moves
from dojo_core.moves.core import REGISTRY
from dojo_core.moves.legality import why
from dojo_core.program.text import parse


def show_kernels(as_json: JsonFlag = False) -> None:
    """List the kernels.

    Example: [bold]dojo kernels[/bold]
    """
    rows = [kernels.get(name) for name in kernels.names()]
    if as_json:
        out.print_json(
            data=[
                {
                    "name": k.name,
                    "title": k.title,
                    "formula": k.formula,
                    "group": k.group,
                    "shapes": ["x".join(map(str, s)) for s in k.shapes],
                }
                for k in rows
            ]
        )
        return
    table = columns("kernel", "what it computes", "shapes", "group")
    for k in rows:
        shapes = ", ".join("x".join(map(str, s)) for s in k.shapes)
        table.add_row(f"[bold]{k.name}[/bold]", escape(k.formula), shapes, k.group)
    out.print(table)


def show(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    code: Annotated[bool, typer.Option("--code", help="Show the generated C as well.")] = False,
) -> None:
    """Show a kernel's start program.

    Example: [bold]dojo show softmax --shape 24576x512 --code[/bold]
    """
    program, _, _ = start_of(kernel, shape)
    out.print(escape(program.text), end="", soft_wrap=True)
    if code:
        print_code(program, "reassoc")


def moves(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    blocked: Annotated[bool, typer.Option("--blocked", help="List what is refused, and why.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the legal moves of a position.

    Example: [bold]dojo moves softmax --json[/bold]
    """
    game = played(kernel, shape, policy, line)
    program = game.current.program
    if blocked:
        refused = blocked_moves(program, game.target, game.policy)
        if as_json:
            out.print_json(
                data=[
                    {
                        "move": str(m),
                        "code": r.code,
                        "sentence": r.sentence,
                        "witness": str(r.witness) if r.witness else None,
                    }
                    for m, r in refused
                ]
            )
            return
        for move, refusal in refused:
            out.print(f"[bold]{escape(str(move))}[/bold]  {escape(refusal.sentence)}", soft_wrap=True)
        out.print(f"{len(refused)} refused. dojo why {escape(kernel)} 'MOVE' tells more.", style="dim")
        return
    found = legal_moves(program, game.target, game.policy)
    if as_json:
        out.print_json(
            data=[
                {
                    "move": str(m),
                    "name": m.name,
                    "family": REGISTRY[m.name].family,
                    "arguments": [str(a) for a in m.arguments],
                }
                for m in found
            ]
        )
        return
    for move in found:
        out.print(escape(str(move)), soft_wrap=True)
    err.print(f"{len(found)} legal moves.", style="dim")


def explain(
    kernel: KernelArgument,
    move: Annotated[str, typer.Argument(help="A move, in quotes.")],
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
) -> None:
    """Explain why a move is legal or not.

    Example: [bold]dojo why softmax 'reuse_dims d 0'[/bold]
    """
    game = played(kernel, shape, policy, line)
    verdict = why(game.current.program, move, game.target, game.policy)
    out.print(escape(verdict.sentence), style="green" if verdict.legal else "yellow", soft_wrap=True)
    if verdict.refusal is not None and verdict.refusal.witness is not None:
        out.print(escape(str(verdict.refusal.witness)), style="dim", soft_wrap=True)


def check(
    file: Annotated[Path, typer.Argument(help="A program text of your own.")],
) -> None:
    """Check a program text: its form, its storage, its marks.

    Example: [bold]dojo check my_kernel.txt[/bold]
    """
    program = parse(read_file(file))
    fault = program_fault(program)
    if fault is not None:
        raise Failure(fault)
    count = len(program.leaves)
    out.print(
        f"{escape(str(file))}: valid. Kernel {program.name}, {count} operation{'s' if count > 1 else ''}, "
        f"{len(program.buffers)} buffers, hash {program.hash}.",
        style="green",
        soft_wrap=True,
    )
    if program.text != read_file(file):
        out.print("Its canonical text differs from the file's; dojo show prints it.", style="dim")
