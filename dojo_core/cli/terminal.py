"""What every command shares: where it prints, how it fails, files, progress, times as words."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dojo_core.extras import NotInstalled, import_fault
from dojo_core.files import naming, trouble_text, write_text
from dojo_core.measure.conditions import BUSY_MEANS
from dojo_core.measure.load import machine_now
from dojo_core.plugins import Unusable, faults

if TYPE_CHECKING:
    from dojo_core.measure.measurement import Measurement

STANDARD_OUTPUT = "standard output"


class Output(Console):
    """Standard output. A reader that leaves early, such as ``head``, is no error."""

    def print(self, *objects: Any, **options: Any) -> None:
        with naming(STANDARD_OUTPUT):
            super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _throw_away_the_rest()
        raise SystemExit(0)


def _throw_away_the_rest() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_what_can_be_written() -> None:
    """Where a terminal's encoding has no ▲ or µ, as in LC_ALL=C, a ? stands for it; nothing ends by it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


out = Output(highlight=False)
err = Console(stderr=True, highlight=False)


LARGEST_FILE = 512 * 1024  # characters: a game, the longest of what is read


class Failure(Exception):
    """A sentence for the person at the terminal; the command ends with code 1."""


STOPPED = 130  # as shells have it, of a command that Ctrl-C ended


def stopped() -> typer.Exit:
    """How a command ends that Ctrl-C stopped, which is told."""
    err.print("Stopped. What was finished is kept.", style="yellow")
    return typer.Exit(STOPPED)


def _amid_a_stop(error: BaseException) -> bool:
    """Did Ctrl-C come first? It stops what the command started as well, which whoever cleans up may stumble
    over."""
    behind: list[BaseException] = [error]
    for each in behind:  # which grows; what two errors name as each other's reason is looked at once
        near = (each.__cause__, each.__context__)
        behind += [other for other in near if other is not None and not any(other is b for b in behind)]
    return any(isinstance(each, KeyboardInterrupt) for each in behind)


def plain_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors that a person can cause end in a sentence, never in a traceback."""

    @wraps(command)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            answer = command(*arguments, **options)
            with naming(STANDARD_OUTPUT):
                sys.stdout.flush()  # a reader that has left is noticed here, not as Python ends
            return answer
        except KeyboardInterrupt:
            raise stopped() from None
        except Exception as error:
            if _amid_a_stop(error):
                raise stopped() from None
            if isinstance(error, BrokenPipeError):
                _throw_away_the_rest()
                raise typer.Exit(0) from None
            sentence = _sentence(error)
            if sentence is None:
                raise
            if isinstance(error, OSError) and error.filename == STANDARD_OUTPUT:
                _throw_away_the_rest()
            err.print(escape(sentence), style="red", soft_wrap=True)
            raise typer.Exit(1) from None
        finally:
            tell_faults_of_packages()

    return wrapped


def tell_faults_of_packages() -> None:
    """A line for each package that was asked for something and cannot be used."""
    for sentence in faults():
        err.print(escape(sentence), style="dim", soft_wrap=True)


def _sentence(error: Exception) -> str | None:
    """What it says to a person; None where it is a fault of ours."""
    # Here, for a command that meets no error need not import the core.
    from dojo_core.actions.looking import NoSuchKind, NotShown
    from dojo_core.actions.timing import NothingTimes
    from dojo_core.codegen.code import NotGeneratable
    from dojo_core.faults import text_fault
    from dojo_core.game import GameFull
    from dojo_core.measure.database import DatabaseFault
    from dojo_core.moves import IllegalMove, MoveSyntax, NoSuchPlace
    from dojo_core.program.expressions import TextError
    from dojo_core.targets.guarded import TargetFailed
    from dojo_core.targets.registry import UnknownTarget

    match error:
        case TextError():
            return text_fault(error)
        case (
            Failure()
            | MoveSyntax()
            | IllegalMove()
            | NoSuchPlace()
            | NotGeneratable()
            | NotShown()
            | NoSuchKind()
            | NothingTimes()
            | GameFull()
            | UnknownTarget()
            | TargetFailed()
            | Unusable()
            | DatabaseFault()
            | NotInstalled()
        ):
            return str(error)
        case ModuleNotFoundError():
            return import_fault(error, "This command")
        case OSError():  # a folder that is full, or not ours; no compiler
            return trouble_text(error)
    return None


def read_file(path: Path, most: int = LARGEST_FILE) -> str:
    """A program, line, game or recipe as text; no more of a file is read than such a text may have."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(most + 1)
    except FileNotFoundError:
        raise no_file(path) from None
    except IsADirectoryError:
        raise _folder(path) from None
    except UnicodeDecodeError as error:
        if path.suffix == ".onnx":
            raise Failure(f"{path} is a model of ONNX: dojo import {path} makes a program of it.") from None
        raise Failure(f"{path} is no text: its byte {error.start + 1} is not UTF-8.") from None
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}.") from None
    if len(text) > most:
        raise Failure(f"{path} is longer than {most // 1024} KiB: what is read here never is.")
    return text


def no_file(path: Path, instead: str = "") -> Failure:
    """``instead``: a sentence on what there is."""
    return Failure(f"There is no file {path}. {instead}".rstrip())


def _folder(path: Path) -> Failure:
    return Failure(f"{path} is a folder: name a file in it.")


def check_new(path: Path) -> None:
    """Raise Failure where something has that name already."""
    if path.exists():
        raise Failure(f"{path} is there already: name another file, or move it away.")


def check_writable(path: Path) -> None:
    """Raise Failure now where a file could not be written later."""
    if path.is_dir():
        raise _folder(path)
    if not path.parent.is_dir():
        raise Failure(f"There is no folder {path.parent}: make it first.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise Failure(f"{path} may not be written: name another file.")


def write_file(path: Path, text: str) -> None:
    try:
        write_text(path, text)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}.") from None


def columns(*names: str, right: tuple[str, ...] = (), **options: Any) -> Table:
    """A table without lines; ``right`` names the columns of numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False, **options)
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    return table


def print_table(table: Table) -> None:
    """As wide as the terminal; into a file or another program, as wide as its rows."""
    if not out.is_terminal:
        out.width = 10_000
    out.print(table)


def tell_provenance(measurement: Measurement) -> None:
    """Below a time: whether it was measured now, else its age, and what else the machine did."""
    sentence = measurement.provenance()
    more = [BUSY_MEANS] if measurement.conditions.busy else []
    more += ["To take it again, leave --recorded out."] if measurement.taken is not None else []
    out.print(" ".join([f"{sentence[0].upper()}{sentence[1:]}.", *more]), style="dim", soft_wrap=True)


def tell_machine() -> None:
    """What the machine does now, by others than this command."""
    state = machine_now(wait=True)
    if state.quiet or state.busy:
        sentence = f"The machine is {state}." + (f" {BUSY_MEANS}" if state.busy else "")
        err.print(sentence, style="dim" if state.quiet else "yellow", soft_wrap=True)


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar while the block runs; the value is called after each of ``total`` steps."""
    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*shown, console=err) as bar:
        yield partial(bar.advance, bar.add_task(description, total=total))
