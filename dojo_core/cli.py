"""The command line: the same game through another door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from dojo_core import kernels
from dojo_core.game import Game, GameFull
from dojo_core.line import RecordedLine, read_line, recorded_lines, with_births
from dojo_core.moves import IllegalMove, MoveSyntax, NoSuchPlace, blocked_moves, legal_moves
from dojo_core.moves.core import REGISTRY
from dojo_core.moves.legality import why
from dojo_core.program.dependence import POLICIES
from dojo_core.program.marks import mark_fault
from dojo_core.program.text import TextError, parse
from dojo_core.program.tree import Program
from dojo_core.program.validity import definition_fault, storage_fault
from dojo_core.targets.cpu.code import NotGeneratable
from dojo_core.targets.target import UnknownTarget, target

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="The Dojo: make kernels fast by playing transformations. Try: [bold]dojo show softmax[/bold]",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

KernelArgument = Annotated[str, typer.Argument(help="A kernel's name (see: dojo kernels) or a text file.")]
ShapeOption = Annotated[
    str | None, typer.Option("--shape", help="For example 24576x512; default: the paper's.")
]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", help=f"Floating-point policy: {', '.join(POLICIES)}.")
]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


class Failure(Exception):
    """A sentence for the person at the terminal; the command ends with code 1."""


def plain_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors that a person can cause end in a sentence, never in a traceback."""

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except (
            Failure,
            TextError,
            MoveSyntax,
            IllegalMove,
            NoSuchPlace,
            NotGeneratable,
            GameFull,
            UnknownTarget,
        ) as error:
            err.print(escape(str(error)), style="red")
            raise typer.Exit(1) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            err.print("Stopped. What was finished is kept.", style="yellow")
            raise typer.Exit(130) from None

    return wrapped


def read_file(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise Failure(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path} cannot be read as text: {error}.") from None


def write_file(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}.") from None


def start_of(kernel: str, shape: str | None) -> tuple[Program, str | None, str]:
    """(program, kernel's name or None for a text of one's own, shape)."""
    if kernel in kernels.names():
        found = kernels.get(kernel)
        try:
            sizes = found.shape(shape) if shape else found.shapes[0]
            return found.program(sizes), kernel, "x".join(map(str, sizes))
        except ValueError as error:
            raise Failure(str(error)) from None
    path = Path(kernel)
    if path.suffix or "/" in kernel or path.exists():
        if shape:
            raise Failure("A text of your own has its sizes in the text: leave --shape out.")
        return parse(read_file(path)), None, ""
    near = ", ".join(kernels.names())
    raise Failure(f"There is no kernel {kernel!r}. The kernels: {near}. Or give the path of a text file.")


def policy_of(given: str | None, default: str = "reassoc") -> str:
    if given is not None and given not in POLICIES:
        raise Failure(f"There is no policy {given!r}. The policies: {', '.join(POLICIES)}.")
    return given or default


@app.command("kernels")
@plain_errors
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
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("kernel", "what it computes", "shapes", "group"):
        table.add_column(column)
    for k in rows:
        shapes = ", ".join("x".join(map(str, s)) for s in k.shapes)
        table.add_row(f"[bold]{k.name}[/bold]", escape(k.formula), shapes, k.group)
    out.print(table)


@app.command()
@plain_errors
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
        _show_code(program, "reassoc")


def _show_code(program: Program, policy: str) -> None:
    from dojo_core.targets.cpu.codegen import generate

    text = generate(program, policy).text
    if out.is_terminal:
        out.print(Syntax(text, "c", background_color="default", word_wrap=False))
    else:
        print(text)


def _show_assembly(program: Program, policy: str) -> None:
    from dojo_core.targets.cpu.build import CompileError, assembly
    from dojo_core.targets.cpu.codegen import generate

    made = assembly(generate(program, policy))
    if isinstance(made, CompileError):
        raise Failure(f"The generated C does not compile: {made.message}")
    print("\n".join(made.lines))


@app.command()
@plain_errors
def moves(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: Annotated[Path | None, typer.Option("--line", help="Play this line first.")] = None,
    blocked: Annotated[bool, typer.Option("--blocked", help="List what is refused, and why.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List the legal moves of a position.

    Example: [bold]dojo moves softmax --json[/bold]
    """
    game = _played(kernel, shape, policy, line, [])
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


@app.command("why")
@plain_errors
def explain(
    kernel: KernelArgument,
    move: Annotated[str, typer.Argument(help="A move, in quotes.")],
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: Annotated[Path | None, typer.Option("--line", help="Play this line first.")] = None,
) -> None:
    """Explain why a move is legal or not.

    Example: [bold]dojo why softmax 'reuse_dims d 0'[/bold]
    """
    game = _played(kernel, shape, policy, line, [])
    verdict = why(game.current.program, move, game.target, game.policy)
    out.print(escape(verdict.sentence), style="green" if verdict.legal else "yellow", soft_wrap=True)
    if verdict.refusal is not None and verdict.refusal.witness is not None:
        out.print(escape(str(verdict.refusal.witness)), style="dim", soft_wrap=True)


def _settings(given: list[str]) -> dict[str, int]:
    settings: dict[str, int] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not value.isdigit():
            raise Failure(f"A parameter is set as --set name=number, not {each!r}.")
        settings[name] = int(value)
    return settings


def _line_file(path: Path | str) -> tuple[str, RecordedLine]:
    """A line by its path, or one of the recorded ones by its name."""
    known = recorded_lines()
    if str(path) in known and not Path(path).exists():
        return "", known[str(path)]
    text = read_file(Path(path))
    return text, read_line(text, Path(path).stem)


def _played(
    kernel: str, shape: str | None, policy: str | None, line: Path | None, settings: list[str]
) -> Game:
    """A game with a line played from the start. Raises Failure where a move does not apply."""
    text = ""
    recorded: RecordedLine | None = None
    if line is not None:
        if Path(line).exists() and read_file(Path(line)).startswith("dojo game"):
            game = Game.from_text(read_file(Path(line)))
            if settings or shape or policy:
                raise Failure(
                    "A game has its shape and policy in its text: leave --set, --shape and --policy out."
                )
            return game
        text, recorded = _line_file(line)
    program, name, sizes = start_of(
        kernel, shape or (recorded.shape if recorded and recorded.shape else None)
    )
    game = Game.new(
        program, name, sizes, "cpu", policy_of(policy, recorded.policy if recorded else "reassoc")
    )
    if recorded is not None:
        report = recorded.play(game, _settings(settings))
        for number, entry in enumerate(report.entries, 1):
            if entry.outcome == "readdressed":
                err.print(f"Move {number}: {escape(entry.move)} is now {escape(entry.new)}.", style="yellow")
            elif not entry.applies:
                raise Failure(
                    f"Move {number}, {entry.move}, does not apply ({entry.outcome}): {entry.reason}"
                )
    del text
    return game


@app.command()
@plain_errors
def play(
    kernel: KernelArgument,
    line: Annotated[
        Path, typer.Option("--line", help="A line file, a game, or the name of a recorded line.")
    ],
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the line, such as block=48.")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the final program (default).")] = False,
    code: Annotated[bool, typer.Option("--code", help="Print the generated C.")] = False,
    asm: Annotated[bool, typer.Option("--asm", help="Print the assembly.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the game as text.")] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Write the line with the births of what its moves name.")
    ] = None,
) -> None:
    """Replay a line of moves, each checked.

    Example: [bold]dojo play softmax --line softmax --code[/bold]
    """
    game = _played(kernel, shape, policy, line, settings or [])
    if save is not None:
        write_file(save, game.to_text())
        err.print(f"Saved {save}.", style="dim")
    if record is not None:
        write_file(record, with_births(read_file(line), game))
        err.print(f"Recorded {record}.", style="dim")
    program = game.current.program
    if text or not (code or asm):
        out.print(escape(program.text), end="", soft_wrap=True)
    if code:
        _show_code(program, game.policy)
    if asm:
        _show_assembly(program, game.policy)
    err.print(f"{len(game.line()) - 1} moves.", style="dim")


@app.command()
@plain_errors
def check(
    file: Annotated[Path, typer.Argument(help="A program text of your own.")],
) -> None:
    """Check a program text: its form, its storage, its marks.

    Example: [bold]dojo check my_kernel.txt[/bold]
    """
    program = parse(read_file(file))
    fault = (
        storage_fault(program) or definition_fault(program) or mark_fault(program, target("cpu"), "reassoc")
    )
    if fault is not None:
        lines = program.text.splitlines()
        told = [fault.sentence]
        first = 2 + bool(program.inputs) + len(program.buffers)
        order = [leaf.path for leaf in program.leaves]
        told += [f"  {lines[first + order.index(p)]}" for p in fault.nodes if p in order]
        if fault.witness is not None:
            told.append(str(fault.witness))
        raise Failure("\n".join(told))
    count = len(program.leaves)
    out.print(
        f"{file}: valid. Kernel {program.name}, {count} operation{'s' if count > 1 else ''}, "
        f"{len(program.buffers)} buffers, hash {program.hash}.",
        style="green",
        soft_wrap=True,
    )
    if program.text != read_file(file):
        out.print("Its canonical text differs from the file's; dojo show prints it.", style="dim")


def seconds_text(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


@app.command("time")
@plain_errors
def time_moves(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    line: Annotated[Path | None, typer.Option("--line", help="Play this line first.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    all_moves: Annotated[bool, typer.Option("--moves", help="Time every legal move as well.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Verify and time a position, and if asked every legal move of it.

    Example: [bold]dojo time softmax --moves[/bold]
    """
    from dojo_core.measure.measurer import Effort, Measurement, Measurer, Workload
    from dojo_core.measure.records import Records
    from dojo_core.moves import apply

    game = _played(kernel, shape, policy, line, settings or [])
    program = game.current.program
    workload = Workload(game.start, game.kernel, game.policy)
    with Records() as records, Measurer(records) as measurer:
        own = measurer.measure(workload, [program], Effort.NORMAL)[0]
        rows: list[tuple[str, Measurement]] = [("this position", own)]
        if all_moves:
            found = legal_moves(program, game.target, game.policy)
            after = {apply(program, m, game.target, game.policy).hash: str(m) for m in found}
            programs = [apply(program, m, game.target, game.policy) for m in found]
            with _progress() as progress:
                bar = progress.add_task("measuring", total=len(set(after)))
                results = measurer.measure(
                    workload, programs, Effort.QUICK, on_result=lambda _: progress.advance(bar)
                )
            rows += [(str(m), r) for m, r in zip(found, results, strict=True)]
    if as_json:
        out.print_json(
            data=[
                {
                    "move": name,
                    "status": m.status,
                    "seconds": m.seconds,
                    "median": m.median,
                    "samples_ns": list(m.samples),
                    "verified": m.verified,
                    "message": m.message,
                }
                for name, m in rows
            ]
        )
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("move", "time", "speed-up", ""):
        table.add_column(column, justify="right" if column in ("time", "speed-up") else "left")
    base = own.seconds
    for name, m in sorted(rows, key=lambda r: r[1].seconds if r[1].seconds is not None else 1e9):
        if m.seconds is not None:
            ratio = f"{base / m.seconds:.2f}×" if base else ""
            table.add_row(escape(name), seconds_text(m.seconds), ratio, "verified" if m.verified else "")
        else:
            table.add_row(
                escape(name), "–", "", escape(f"{m.status.replace('_', ' ')}: {m.message}"[:160]), style="red"
            )
    out.print(table)
    if own.seconds is None:
        raise typer.Exit(1)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err
    )


@app.command()
@plain_errors
def bench(
    names: Annotated[list[str], typer.Argument(help="Kernels.")],
    against: Annotated[list[str] | None, typer.Option("--against", help="A baseline: torch.")] = None,
    shape: ShapeOption = None,
    line: Annotated[Path | None, typer.Option("--line", help="Our line; default: the recorded one.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A parameter of the line.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, max=1000, help="Interleaved rounds.")] = 10,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all samples to this file.")] = None,
) -> None:
    """Time our line against baselines, in interleaved rounds and separate processes.

    Example: [bold]dojo bench softmax --against torch --json softmax.json[/bold]
    """
    from dojo_core.bench import BASELINES, BenchFailed, Entry, run_bench

    wanted = against or []
    for baseline in wanted:
        if baseline not in BASELINES:
            raise Failure(f"There is no baseline {baseline!r}. The baselines: {', '.join(BASELINES)}.")
    reports = []
    for name in names:
        recorded = line if line is not None else (Path(name) if name in recorded_lines() else None)
        game = _played(name, shape, None, recorded, settings or [])
        ours = [Entry("start", game.start)] if recorded is None else [Entry("line", game.current.program)]
        with _progress() as progress:
            bar = progress.add_task(f"{name} {game.shape}", total=rounds)
            try:
                report = run_bench(game, ours, wanted, rounds, on_round=partial(progress.advance, bar))
            except BenchFailed as error:
                raise Failure(str(error)) from None
        reports.append(report)
        _bench_table(report)
        if json_file is not None:  # after each kernel: an interrupted bench keeps what it has
            write_file(json_file, json.dumps({"reports": reports}, indent=1) + "\n")


def _bench_table(report: dict[str, Any]) -> None:
    table = Table(
        box=None,
        header_style="bold",
        pad_edge=False,
        title=f"{report['kernel']} {report['shape']}",
        title_justify="left",
    )
    for column in ("entry", "min", "median", "ratio (median of rounds)", "worst round", "best round", ""):
        table.add_column(column, justify="left" if column in ("entry", "") else "right")
    for entry in report["entries"]:
        ratio = entry.get("ratio")
        told = (
            (f"{ratio['median']:.2f}×", f"{ratio['min']:.2f}×", f"{ratio['max']:.2f}×")
            if ratio
            else ("", "", "")
        )
        if entry["status"] != "ok":
            table.add_row(entry["name"], "–", "–", "", "", "", escape(entry["message"]), style="red")
            continue
        table.add_row(
            entry["name"], seconds_text(entry["min"]), seconds_text(entry["median"]), *told,
            "verified" if entry["verified"] else "",
        )  # fmt: skip
    out.print(table)
    out.print(
        f"{report['rounds']} rounds of {report['samples']} runs; ratio: baseline's time over ours, "
        f"by the best run of each round. {report['machine']}",
        style="dim",
        soft_wrap=True,
    )


@app.command("app")
@plain_errors
def run_app(
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 8501,
) -> None:
    """Open the app in a browser.

    Example: [bold]dojo app --port 8600[/bold]
    """
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "streamlit", "run", str(root / "app.py"), "--server.port", str(port)]
    raise typer.Exit(subprocess.call(command, cwd=root))


def main() -> None:
    """The entry point of ``dojo``."""
    app()


if __name__ == "__main__":
    main()
