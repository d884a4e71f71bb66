"""Records: the best line that is known, and measurements taken along as JSON lines."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer
from rich.markup import escape

from dojo_core.actions.timing import nothing_times
from dojo_core.cli.positions import KernelArgument, PolicyOption, ShapeOption, TargetOption, played
from dojo_core.cli.records import opened
from dojo_core.cli.reporting import tell_unit
from dojo_core.cli.terminal import Failure, columns, err, no_file, out, print_table, write_file
from dojo_core.files import naming
from dojo_core.measure import backups, restoring
from dojo_core.measure.conditions import BUSY_MEANS
from dojo_core.measure.exchange import NoRecord, Taken, exported, file_lines, merge, take_in
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.places import data_directory
from dojo_core.measure.records import Records, contents
from dojo_core.measure.rescue import MAGIC
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.registry import backend
from dojo_core.wording import counted


def best(
    kernel: KernelArgument,
    shape: ShapeOption = None,
    policy: PolicyOption = None,
    target: TargetOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="So many programs.")] = 10,
    line: Annotated[bool, typer.Option("--line", help="Print the best program's line of moves.")] = False,
    save: Annotated[Path | None, typer.Option("--save", help="Save the best line as a game.")] = None,
) -> None:
    """Tell the fastest verified programs measured on this machine.

    Example: [bold]dojo best softmax --line[/bold]
    """
    game = played(kernel, shape, policy, target=target)
    clock = backend(game.target).clock()
    origin = clock.origin
    if origin is None:
        raise nothing_times(game.target)
    with opened() as records:
        ranking = records.ranking(game.start.hash, origin.target, origin.fingerprint, policy, limit=limit)
    if not ranking:
        how = f"dojo tune {kernel}" + ("" if game.target == DEFAULT_TARGET else f" --target {game.target}")
        raise Failure(f"Nothing of {game.title} has been measured on this machine: try {how}.")
    replayable = next((r for r in ranking if r.line or r.program_hash == game.start.hash), None)
    if (line or save is not None) and replayable is None:
        raise Failure("These programs were measured without their lines: try a larger --limit.")
    if line and replayable is not None:
        out.print(escape(replayable.line), soft_wrap=True)
    if save is not None and replayable is not None:
        again = played(kernel, shape, replayable.policy, target=target)
        try:
            for move in replayable.line.splitlines():
                again.play(move)
        except (IllegalMove, MoveSyntax) as error:
            raise Failure(f"The recorded line does not replay: {error}") from None
        write_file(save, again.to_text())
        err.print(f"Saved {save}.", style="dim")
    if line or save is not None:
        return
    table = columns("time", "moves", "policy", "by", "when", "machine", right=("time", "moves"))
    for record in ranking:
        when = datetime.fromtimestamp(record.time).strftime("%Y-%m-%d %H:%M")
        moves = str(len(record.line.splitlines()))
        table.add_row(
            seconds_text(record.seconds or 0.0), moves, record.policy, escape(record.player), when,
            record.conditions.mark,
        )  # fmt: skip
    print_table(table)
    if any(record.conditions.busy for record in ranking):
        out.print(f"{BUSY_MEANS} A program's time taken in quiet comes first.", style="dim", soft_wrap=True)
    tell_unit(game.target)


def export_records(
    file: Annotated[
        Path, typer.Argument(help="Where to write them, as JSON lines; packed if it ends in .gz.")
    ],
    kernels: Annotated[list[str] | None, typer.Argument(metavar="KERNEL…", help="Of these alone.")] = None,
    best: Annotated[
        int | None, typer.Option("--best", min=1, help="Of each start program so many, the fastest.")
    ] = None,
) -> None:
    """Write measurements to a file, to take along or to give away.

    Example: [bold]dojo records-export mine.jsonl.gz softmax --best 10[/bold]
    """
    count = 0
    with opened() as records, naming(file), _open(file) as written:
        for line in exported(records, kernels or (), best):
            written.write(line + "\n")
            count += 1
    err.print(f"Wrote {counted(count, 'measurement')} to {escape(str(file))}.", style="dim", soft_wrap=True)


def restore_records(
    backup: Annotated[
        str | None, typer.Argument(help="A back-up's number in the list, 1 the newest; none lists them.")
    ] = None,
) -> None:
    """Go back to a back-up of measurements and games; what there is now is kept under another name.

    The Dojo makes one a day, checked, and keeps the last few. An app that is open goes on with the back-up.
    Example: [bold]dojo records-restore 1[/bold]
    """
    database = data_directory() / "records.sqlite"
    existing = backups.of(database)[::-1]
    if not existing:
        raise Failure(f"There is no back-up in {database.parent / backups.FOLDER}: one is made a day.")
    if backup is None:
        table = columns(
            "", "made", "games", "measurements", "size", right=("", "games", "measurements", "size")
        )
        for number, each in enumerate(existing, 1):
            games, measurements = contents(each.path)
            table.add_row(str(number), each.when, games, measurements, f"{each.bytes / 1e6:.1f} MB")
        print_table(table)
        err.print("dojo records-restore NUMBER goes back to one.", style="dim")
        return
    if not backup.isdecimal() or not 1 <= int(backup[:9]) <= len(existing):
        raise Failure(f"There is no back-up {backup[:40]!r}: give a number from 1 to {len(existing)}.")
    chosen = existing[int(backup) - 1]
    try:
        aside = restoring.restore(database, chosen)
    except ValueError as error:
        raise Failure(str(error)) from None
    note = f" What there was is kept as {aside.name}." if aside.exists() else ""
    out.print(f"The records are those of {chosen.when} again.{note}", soft_wrap=True)


def import_records(
    files: Annotated[list[Path], typer.Argument(help="Files of JSON lines, or databases (.sqlite).")],
) -> None:
    """Take in measurements from files or other databases; the same twice changes nothing.

    Example: [bold]dojo records-import theirs.jsonl other/records.sqlite[/bold]
    """
    with opened() as records:
        for file in files:
            if not file.is_file():
                raise no_file(file)
            taken = _taken(records, file)
            new, known = counted(taken.new, "measurement"), counted(taken.known, "measurement")
            left = (
                f" {counted(taken.refused, 'row')} left out: no measurement has such values."
                if taken.refused
                else ""
            )
            out.print(f"{escape(str(file))}: {new} new, {known} known already.{left}", soft_wrap=True)


def _open(file: Path) -> TextIO:
    """A text file to write, packed where its name says so. Raises Failure."""
    try:
        if file.suffix == ".gz":
            return cast(TextIO, gzip.open(file, "wt", encoding="utf-8"))
        return file.open("w", encoding="utf-8")
    except OSError as error:
        raise Failure(f"{file} cannot be opened: {error.strerror or error}.") from None


def _taken(records: Records, file: Path) -> Taken:
    try:
        with file.open("rb") as opened_file:
            if opened_file.read(len(MAGIC)) == MAGIC:
                if file.resolve() == records.path.resolve():
                    raise Failure("These are the records in use already.")
                return merge(records, file)
            opened_file.seek(0)
            return take_in(records, file_lines(opened_file))
    except NoRecord as error:
        raise Failure(f"{file}: {error}") from None
    except ValueError as error:
        raise Failure(f"{file} cannot be read as records: {error}") from None
