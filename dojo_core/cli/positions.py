"""From a command's arguments to a position: a kernel or a text, a shape, a policy, a line played first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dojo_core import kernels
from dojo_core.cli.records import opened
from dojo_core.cli.terminal import Failure, err, no_file, read_file
from dojo_core.faults import program_doubt, program_fault
from dojo_core.from_code.recognise import OWN, kind_of
from dojo_core.from_code.source import sizes_of
from dojo_core.game import Game
from dojo_core.line import RecordedLine, lines_folder, read_line, recorded_lines
from dojo_core.program.dependence import POLICIES, check_policy
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.registry import AT, UnknownTarget, backend, base
from dojo_core.targets.registry import names as target_names
from dojo_core.targets.registry import target as target_named

if TYPE_CHECKING:
    from dojo_core.from_code.translate import Translation

TABLE_3 = (
    "add", "mul", "relu", "relu_ffn", "reducemean", "softmax", "layernorm", "rmsnorm", "batchnorm", "matmul",
    "bmm", "conv", "swiglu",
)  # fmt: skip

MODEL_TEXT = 32 << 20  # characters of a model's text

_KERNEL = (
    "A kernel's name (see: dojo kernels), also softmax:96x64; a layer's; a file: a program's text, a game, a "
    "line, NumPy, C; or a model's kernel, model.dojo:NAME."
)
KernelArgument = Annotated[str, typer.Argument(help=_KERNEL)]
OptionalKernel = Annotated[str | None, typer.Argument(metavar="KERNEL", help=_KERNEL, show_default=False)]
ShapeOption = Annotated[
    str | None,
    typer.Option(
        "--shape",
        help="For example 24576x512, or a layer's name; of a file in NumPy or C m=1024,n=512; default: the "
        "kernel's first shape.",
    ),
]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", help=f"Floating-point policy: {', '.join(POLICIES)}.")
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help=f"What it is made for: {', '.join(target_names())}.")
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine",
        help="Play for another machine (see: dojo machines): its fingerprint's beginning, its processor's "
        "name, or a known processor, such as x86-64-v4.",
    ),
]
LineOption = Annotated[
    Path | None,
    typer.Option("--line", help="Play this first: a line file, a game, or a recorded line's name."),
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="FILE",
        help="A whole model in place of a kernel, as dojo import wrote it.",
        show_default=False,
    ),
]
SourceOption = Annotated[
    str,
    typer.Option(
        "--from",
        help="With --model: best (this machine's records, else the heuristic pass), heuristic, or start.",
    ),
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def start_of(kernel: str, shape: str | None) -> tuple[Program, str | None, str]:
    """(program, kernel's name or None for a text of one's own, shape)."""
    kernel, shape = kernel_and_shape(kernel, shape)
    if kernel in kernels.names():
        its_kernel = kernels.get(kernel)
        try:
            sizes = its_kernel.shape(shape) if shape else its_kernel.shapes[0]
            return its_kernel.program(sizes), kernel, "x".join(map(str, sizes))
        except ValueError as error:
            raise Failure(str(error)) from None
    if is_file(kernel):
        return _own_program(Path(kernel), shape), None, ""
    raise Failure(f"{kernels.unknown(kernel)} Or give the path of a text file.")


def is_file(kernel: str) -> bool:
    """Does what stands for a kernel name a file, whether it is there or not?"""
    return kernel not in kernels.names() and (
        bool(Path(kernel).suffix) or "/" in kernel or Path(kernel).exists()
    )


def kernel_and_shape(wanted: str, shape: str | None) -> tuple[str, str | None]:
    """Kernel and shape, where the name is a layer's, or has a shape behind it: ``softmax:1024x256``."""
    try:
        kernel, named = kernels.kernel_and_shape(wanted, shape or "")
    except ValueError as fault:
        raise Failure(str(fault)) from None
    return kernel, named or shape


def kernels_and_shapes(names: Sequence[str], shape: str | None = None) -> list[tuple[str, str | None]]:
    """Each kernel, or file, and its shape (None: the first one, or that of its line). ``table3`` stands for
    the paper's 16 kernels, a network's name for its layers."""
    pairs: list[tuple[str, str | None]] = []
    for name in names:
        if name == "table3":
            several = [(k, "x".join(map(str, s))) for k in TABLE_3 for s in kernels.get(k).shapes]
        elif name in kernels.networks():
            several = [
                (each.kernel, each.shape) for each in kernels.named_layers().values() if each.network == name
            ]
        else:
            pairs.append(kernel_and_shape(name, shape))
            continue
        if shape:
            raise Failure(f"The kernels of {name} have shapes of their own: leave --shape out.")
        pairs += several
    return list(dict.fromkeys(pairs))


def _own_program(path: Path, shape: str | None) -> Program:
    """The program of a text of one's own, as sound as a kernel's; ``model.dojo:NAME`` is one of a model's."""
    file, _, kernel = path.name.rpartition(":")
    if file and not path.exists():
        return _kernel_of(path.with_name(file), kernel)
    text = read_file(path)
    kind = kind_of(text)
    if kind == "graph":
        raise Failure(
            f"{path} is a whole model: name a kernel of it, {_some_kernels(path)}; or give it as --model."
        )
    if kind not in OWN:
        return told_translation(text, shape.split(",") if shape else []).program
    if shape:
        raise Failure("A text of your own has its sizes in the text: leave --shape out.")
    program = parse(text)
    fault = program_fault(program, on=None, source=text)
    if fault is not None:
        raise Failure(f"{path} cannot be played on. {fault}")
    tell_doubt(program)
    return program


def told_translation(text: str, sizes: Sequence[str]) -> Translation:
    """A text of another language as a program, at sizes such as ``m=512``; what it was read as is told."""
    from dojo_core.from_code.translate import translate  # which needs a parser of C

    translation = translate(text, sizes_of(sizes))
    for sentence in translation.told:
        err.print(escape(sentence), style="dim", soft_wrap=True)
    return translation


def _kernel_of(path: Path, kernel: str) -> Program:
    kernels_there = model_kernels(path)
    if kernel not in kernels_there:
        raise Failure(f"{path} has no kernel {kernel!r}: name {_some_kernels(path)}.")
    return kernels_there[kernel]


def model_kernels(path: Path) -> dict[str, Program]:
    """The start programs of a model's kernels, by name. Raises Failure."""
    from dojo_core.graph.text import parse_kernels

    text = read_file(path, MODEL_TEXT)
    if kind_of(text) != "graph":
        raise Failure(f"{path} is no model as dojo import writes one, so that it has no kernels to name.")
    return {name: kernel.program for name, kernel in parse_kernels(text).items()}


def _some_kernels(path: Path) -> str:
    names = [f"{path}:{name}" for name in model_kernels(path)]
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def tell_doubt(start: Program) -> None:
    """What could not be shown of a text of one's own, beside what is asked for."""
    doubt = program_doubt(start)
    if doubt is not None:
        err.print(escape(doubt), style="yellow", soft_wrap=True)


def played(
    kernel: str,
    shape: str | None = None,
    policy: str | None = None,
    line: Path | None = None,
    settings: list[str] | None = None,
    target: str | None = None,
    machine: str | None = None,
) -> Game:
    """A game at what stands for a kernel: its start, with a line played from there, or the position of a
    game's or a line's file; for a machine (``MachineOption``; default: this one). Raises Failure where a move
    does not apply."""
    recorded: RecordedLine | None = None
    path = Path(kernel)
    if line is None and is_file(kernel) and path.is_file():
        text = read_file(path)
        match kind_of(text):
            case "game":
                return _saved(text, shape, policy, settings, target, machine)
            case "line":
                named = read_line(text, path.stem).kernel
                if named is None:
                    raise Failure(f"{path} names no kernel: give the kernel first, then --line {path}.")
                return played(named, shape, policy, path, settings, target, machine)
    if line is not None:
        text = line_text(line, target or DEFAULT_TARGET)
        if kind_of(text) == "game":
            game = _saved(text, shape, policy, settings, target, machine)
            kernel, _ = kernel_and_shape(kernel, None)
            if game.kernel not in (None, kernel):
                raise Failure(f"{line} is a game of {game.kernel}, not of {kernel}.")
            return game
        recorded = read_line(text, line.stem)
        kernel, shape = kernel_and_shape(kernel, shape)
        if recorded.kernel not in (None, kernel) and kernel in kernels.names():
            raise Failure(f"{line} is a line of {recorded.kernel}, not of {kernel}.")
    program, name, sizes = start_of(kernel, shape or (recorded.shape if recorded else None))
    chosen = known_policy(policy, recorded.policy if recorded else "reassoc")
    on = target or (recorded.target if recorded else DEFAULT_TARGET)
    on = on_machine(on, machine)
    if name is not None:
        program = target_named(on).start(program)
    game = Game.new(program, name, sizes, on, chosen)
    if recorded is not None:
        report = recorded.play(game, parameters(settings or []))
        for number, entry in enumerate(report.entries, 1):
            if entry.outcome == "readdressed":
                err.print(f"Move {number}: {escape(entry.move)} is now {escape(entry.new)}.", style="yellow")
            elif not entry.applies:
                raise Failure(
                    f"Move {number}, {entry.move}, does not apply ({entry.outcome}): {entry.reason}"
                )
    return game


def _saved(
    text: str,
    shape: str | None,
    policy: str | None,
    settings: list[str] | None,
    target: str | None,
    machine: str | None,
) -> Game:
    """A saved game, at its cursor."""
    if settings or shape or policy or target or machine:
        raise Failure(
            "A game has its shape, policy, target and machine in its text: leave --set, --shape, "
            "--policy, --target and --machine out."
        )
    game = Game.from_text(text)
    tell_doubt(game.start)
    return game


def on_machine(target: str, machine: str | None) -> str:
    """A target's name on a machine, which the records may know. Raises UnknownTarget, and Failure where they
    do not tell what it is."""
    if machine is None:
        return target
    try:
        return backend(f"{base(target)}{AT}{machine}").name
    except UnknownTarget:
        with opened() as records:
            untold = backend(target).learn(records)
        for fingerprint, why in untold.items():
            if fingerprint.startswith(machine):
                raise Failure(f"Machine {fingerprint}: {why}") from None
        return backend(f"{base(target)}{AT}{machine}").name


def line_text(line: Path, target: str = DEFAULT_TARGET) -> str:
    """The text of a line file or a game; of a recorded line, where it is the name of one and no file."""
    if line.exists():
        return read_file(line)
    recorded, folder = recorded_lines(target), lines_folder(target)
    if folder is not None and str(line) in recorded:
        return read_file(folder / f"{line}.line")
    known = ", ".join(recorded) or "none"
    raise no_file(line, f"The recorded lines: {known}.")


def known_policy(given: str | None, default: str) -> str:
    policy = default if given is None else given
    try:
        check_policy(policy)
    except ValueError as unknown:
        raise Failure(str(unknown)) from None
    return policy


def parameters(given: list[str]) -> dict[str, int]:
    values: dict[str, int] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not re.fullmatch("[0-9]{1,9}", value):
            raise Failure(f"A parameter is set as --set name=number, not {each!r}.")
        values[name] = int(value)
    return values
