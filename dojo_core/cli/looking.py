"""Looking: the kernels, their programs, a position's moves, why a move is legal or not, one's own text."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core import described, kernels
from dojo_core.actions import looking
from dojo_core.cli.listing import print_code
from dojo_core.cli.positions import (
    JsonFlag,
    KernelArgument,
    LineOption,
    MachineOption,
    PolicyOption,
    ShapeOption,
    TargetOption,
    played,
    start_of,
    told_translation,
)
from dojo_core.cli.terminal import Failure, columns, err, out, print_table, read_file
from dojo_core.faults import program_doubt, program_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.moves import blocked_moves, legal_moves
from dojo_core.moves.api import places
from dojo_core.moves.core import Verdict
from dojo_core.moves.legality import context
from dojo_core.moves.notation import parse_move
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.ways import with_enablers
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import target as target_named
from dojo_core.wording import counted


def show_kernels(
    network: Annotated[
        str | None,
        typer.Argument(help="A network or a kernel, to list layers as its shapes."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """List the kernels, or the layers of a network as shapes of them.

    Example: [bold]dojo kernels[/bold] or [bold]dojo kernels resnet50[/bold]
    """
    if network is not None:
        _show_layers(network, as_json)
        return
    rows = [kernels.get(name) for name in kernels.names()]
    if as_json:
        out.print_json(data=[described.kernel(each) for each in rows])
        return
    table = columns("kernel", "what it computes", "shapes", "group")
    for k in rows:
        shapes = ", ".join("x".join(map(str, s)) for s in k.shapes)
        table.add_row(f"[bold]{k.name}[/bold]", escape(k.formula), shapes, k.group)
    print_table(table)
    known = ", ".join(kernels.networks())
    note = f"Layers of networks: {known}. dojo kernels {kernels.networks()[0]} lists them."
    err.print(note, style="dim", soft_wrap=True)


def _show_layers(asked: str, as_json: bool) -> None:
    try:
        layers = described.layers_asked(asked)
    except ValueError as fault:
        raise Failure(str(fault)) from None
    if as_json:
        out.print_json(data=[described.layer(each) for each in layers])
        return
    table = columns("layer", "kernel", "shape", "sizes")
    for layer in layers:
        sizes = "x".join(kernels.get(layer.kernel).parameters)
        table.add_row(f"[bold]{layer.name}[/bold]", layer.kernel, layer.shape, sizes)
    print_table(table)


def show(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    machine: MachineOption = None,
    code: Annotated[bool, typer.Option("--code", help="Show the generated code as well.")] = False,
) -> None:
    """Show a kernel's start program, or the one that a line leads to.

    Example: [bold]dojo show softmax --shape 24576x512 --code[/bold]
    """
    game = played(kernel, shape, policy, line, target=target, machine=machine)
    out.print(escape(game.current.program.text), end="", soft_wrap=True)
    if code:
        print_code(game)


def moves(
    kernel: KernelArgument,
    only: Annotated[
        str | None, typer.Argument(metavar="WORD", help="Only those with this in their text: vectorize, y@1.")
    ] = None,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    machine: MachineOption = None,
    blocked: Annotated[bool, typer.Option("--blocked", help="List what is refused, and why.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the legal moves of a position.

    Example: [bold]dojo moves softmax[/bold] or [bold]dojo moves softmax vectorize --json[/bold]
    """
    game = played(kernel, shape, policy, line, target=target, machine=machine)
    program = game.current.program
    if blocked:
        known = blocked_moves(program, game.target, game.policy)
        refused = [(m, r) for m, r in known if only is None or only in str(m)]
        position = context(program, game.target, game.policy)
        if as_json:
            out.print_json(
                data=[
                    {"move": str(m), **described.refusal(with_enablers(position, m, r))} for m, r in refused
                ]
            )
            return
        for move, refusal in refused:
            out.print(f"[bold]{escape(str(move))}[/bold]  {escape(refusal.sentence)}", soft_wrap=True)
        out.print(f"{len(refused)} refused. dojo why {escape(kernel)} 'MOVE' tells more.", style="dim")
        return
    listed = looking.chosen(legal_moves(program, game.target, game.policy), text=only or "")
    if as_json:
        out.print_json(data=[described.move(each) for each in listed])
        return
    for move in listed:
        out.print(escape(str(move)), soft_wrap=True)
    err.print(f"{counted(len(listed), 'legal move')}.", style="dim")


def explain(
    kernel: KernelArgument,
    words: Annotated[list[str], typer.Argument(metavar="MOVE", help="A move.")],
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: LineOption = None,
    target: TargetOption = None,
    machine: MachineOption = None,
    enable: Annotated[bool, typer.Option("--try", help="Play what would enable it, and ask again.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Explain why a move is legal or not, with the places it is about.

    Example: [bold]dojo why softmax 'reuse_dims d 0' --try[/bold]
    """
    game = played(kernel, shape, policy, line, target=target, machine=machine)
    move = " ".join(words)
    verdict = looking.explained(game.current.program, move, game.target, game.policy)
    if as_json:
        refused = verdict.refusal
        told = {"sentence": verdict.sentence} if refused is None else described.refusal(refused)
        out.print_json(data={"move": move, "legal": verdict.legal, **told})
        return
    _tell(game.current.program, str(parse_move(move)), verdict)
    if not enable or verdict.refusal is None:
        return
    if not verdict.refusal.ways:
        raise Failure("No few moves are known to enable it.")
    way = verdict.refusal.ways[0]
    *firsts, last = [*way.moves, way.then] if way.then else way.moves
    for first in firsts:
        game.play(first)
    program = game.current.program
    after = f"After [bold]{escape(', '.join(firsts))}[/bold]" if firsts else ""
    out.print(f"\n{after}:" if way.then else f"\n{after}, instead:" if firsts else "\nInstead:")
    _tell(program, last, looking.explained(program, last, game.target, game.policy))


def _tell(program: Program, move: str, verdict: Verdict) -> None:
    """The verdict, the witness, and the program with the lines that it is about."""
    out.print(escape(verdict.sentence), style="green" if verdict.legal else "yellow", soft_wrap=True)
    refusal = verdict.refusal
    if refusal is not None and refusal.witness is not None:
        out.print(f"For instance {escape(str(refusal.witness))}.", style="dim", soft_wrap=True)
    nodes = refusal.nodes if refusal is not None else ()
    with suppress(NoSuchPlace):
        nodes = nodes or places(program, move)
    named = {buffer.name for buffer in program.buffers} & set(move.split()[1:])
    buffers = [buffer for buffer in program.buffers if buffer.name in named and not nodes]
    if not nodes and not buffers:
        return
    # A move of storage names no node: its buffer is shown, and what accesses it.
    for buffer in buffers:
        out.print(f"→ {escape(str(buffer))}", soft_wrap=True)
    arrays = {array for buffer in buffers for array in buffer.arrays}
    lines = program.text.splitlines()[-len(program.leaves) :]
    for leaf, text in zip(program.leaves, lines, strict=True):
        meant = any(leaf.path[: len(node)] == node for node in nodes)
        meant = meant or any(a.array in arrays for a in (leaf.op.target, *leaf.op.reads))
        out.print(f"{'→' if meant else ' '} {escape(text)}", style=None if meant else "dim", soft_wrap=True)


def check(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A program text of your own, a saved game, a line file, or a model's graph; a kernel's name "
            "stands for its start program.",
        ),
    ],
    target: TargetOption = None,
) -> None:
    """Check a program text: its form, its storage, its marks; of a game or a line, each move.

    Of a model, its wiring and each of its kernels.

    Example: [bold]dojo check my_kernel.txt[/bold]
    """
    file, on, source = Path(what), target or DEFAULT_TARGET, None
    if not file.exists():
        program, name, _ = start_of(what, None)
        program = program if name is None else target_named(on).start(program)
    else:
        text = read_file(file)
        match kind_of(text):
            case "graph":
                return _check_model(file)
            case "game" | "line":
                return _check_moves(file, text)
            case "program":
                program, source = parse(text), text
            case _:
                program = told_translation(text, []).program
    fault = program_fault(program, on, source=source)
    if fault is not None:
        raise Failure(fault)
    out.print(
        f"{escape(what)}: valid. Kernel {program.name}, {counted(len(program.leaves), 'operation')}, "
        f"{counted(len(program.buffers), 'buffer')}, hash {program.hash}.",
        style="green",
        soft_wrap=True,
    )
    doubt = program_doubt(program)
    if doubt is not None:
        out.print(escape(doubt), style="yellow", soft_wrap=True)
    if source is not None and program.text != source:
        out.print("Its canonical text differs from the file's; dojo show prints it.", style="dim")


def _check_model(file: Path) -> None:
    """A model is valid where its wiring is, and each of its kernels."""
    from dojo_core.cli.models import opened_model  # which needs more than a kernel does

    graph = opened_model(file)
    out.print(
        f"{escape(str(file))}: valid. Model {graph.name}, {counted(len(graph.calls), 'call')} of "
        f"{counted(len(graph.kernels), 'kernel')}, {counted(len(graph.constants), 'constant')}.",
        style="green",
        soft_wrap=True,
    )


def _check_moves(file: Path, text: str) -> None:
    """A game or a line is valid where each of its moves applies."""
    game, what = played(str(file)), kind_of(text).capitalize()
    of = f"{game.kernel or game.start.name} {game.shape}".strip()
    moves = counted(len(game.positions) - 1, "move")
    out.print(
        f"{escape(str(file))}: valid. {what} of {escape(of)}, {moves}, each legal.",
        style="green",
        soft_wrap=True,
    )
