"""``dojo study``: games with words, checked, timed, built into one page, shown."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dojo_core.cli.foreign import games_of_runs
from dojo_core.cli.positions import played
from dojo_core.cli.serving import check_port
from dojo_core.cli.terminal import (
    Failure,
    check_new,
    err,
    no_file,
    out,
    plain_errors,
    progress,
    read_file,
    write_file,
)
from dojo_core.cli.waiting import measures
from dojo_core.faults import text_fault
from dojo_core.from_code.recognise import kind_of
from dojo_core.line import read_line, recorded_lines
from dojo_core.package_data import data_path, document
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.study.study import Study, read_study
from dojo_core.study.times import Times, joined, read_times, times_file, write_times
from dojo_core.wording import counted

MOST_MOVES = 8  # legal moves of a position that are timed: of seventy positions, some minutes

study = typer.Typer(
    no_args_is_help=True,
    help=f"Studies: games with words, built into pages that open anywhere ({document('studies.md')}).",
)

RESULTS = (".json", ".jsonl", ".jsonl.gz")  # of benchmarks and comparisons, and of agents' runs
OWN = "dojo_core/studies"  # where the studies that come with the Dojo lie


def found(name: str) -> Path:
    """A study's file, which one of the Dojo's is by its name too."""
    own = data_path(*OWN.split("/"), f"{name}.md")
    return own if not Path(name).exists() and Path(name).name == name and own.exists() else Path(name)


FILE = "A study: a Markdown file, or the name of one that comes with the Dojo, such as softmax."
File = Annotated[Path, typer.Argument(metavar="FILE", help=FILE, parser=found)]


def opened(file: Path) -> Study:
    """A study from its file. Raises Failure with the line and what to do."""
    text = read_file(file)
    try:
        return read_study(text, file)
    except TextError as error:
        lines = text.splitlines()
        if not error.source and 0 < error.line <= len(lines):
            error.source = lines[error.line - 1]
        raise Failure(f"{file}: {text_fault(error)}") from None


def times_of(file: Path) -> list[Times]:
    """The times that stand beside a study. Raises Failure."""
    beside = times_file(file)
    if not beside.exists():
        return []
    try:
        return read_times(read_file(beside, most=32 << 20))
    except TextError as error:
        raise Failure(f"{beside}: {text_fault(error)}") from None


@study.command("check")
@plain_errors
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help=FILE, parser=found)],
) -> None:
    """Check studies: their form, each move, each answer that is a move, each move that is to be refused.

    Example: [bold]dojo study check softmax.md[/bold]
    """
    for file in files:
        read = opened(file)
        positions = {position.program.hash for game in read.games for position in game.positions.values()}
        timed = [f"{times.machine} ({times.date})" for times in times_of(file)]
        chapters = counted(len(read.chapters), "chapter")
        told = f"{file}: {chapters}, {counted(len(positions), 'position')}, all legal"
        told += f"; times of {', '.join(timed)}." if timed else "; no times yet: dojo study time"
        out.print(escape(told), soft_wrap=True)


@study.command("time")
@plain_errors
@measures
def take_times(
    file: File,
    moves: Annotated[
        bool, typer.Option("--moves/--no-moves", help="Time legal moves of each position, too.")
    ] = True,
    most: Annotated[
        int,
        typer.Option(
            "--most",
            min=1,
            help="How many of each position at most: those that the study plays or asks about, then one of "
            "each kind of move in turn.",
        ),
    ] = MOST_MOVES,
    profiles: Annotated[
        bool, typer.Option("--profiles/--no-profiles", help="Tell where the time of each goes, too.")
    ] = True,
) -> None:
    """Verify and time a study's positions on this machine; other machines' times stay beside them.

    Times are kept beside the study, in FILE.times.json. It takes minutes, most of them for legal moves;
    nothing else should run meanwhile.

    Example: [bold]dojo study time softmax.md[/bold]
    """
    from dojo_core.study.limits import limits_of
    from dojo_core.study.times import take

    read, known = opened(file), times_of(file)
    total = sum(len(game.positions) for game in read.games)
    with progress(read.title, total) as advance:
        times = take(read, most if moves else 0, profiles, advance, limits_of)
    if not times.seconds:
        failed = next(iter(times.failed.values()), "no program was timed")
        raise Failure(f"Nothing was timed: {failed}")
    try:
        write_file(times_file(file), write_times(joined(known, times)))
    except TextError as error:
        raise Failure(str(error)) from None
    out.print(escape(f"Wrote {times_file(file)}: {counted(len(times.seconds), 'program')}."), soft_wrap=True)
    if times.failed:
        err.print(f"{counted(len(times.failed), 'program')} had no time.", style="dim")


@study.command("build")
@plain_errors
def build_page(
    file: File,
    to: Annotated[
        Path | None, typer.Option("--to", help="The page to write; default: FILE.html, beside the study.")
    ] = None,
    assembly: Annotated[
        bool, typer.Option("--assembly/--no-assembly", help="Show the assembly of each position.")
    ] = True,
) -> None:
    """Build a study: one HTML file that opens anywhere, without a server, a compiler or a network.

    Example: [bold]dojo study build softmax.md[/bold]
    """
    place = _page(file, to, ".html")
    size, positions = built(file, place, assembly)
    out.print(
        escape(f"Wrote {place}: {counted(positions, 'position')}, {size / 1024:.0f} KB."), soft_wrap=True
    )


def built(file: Path, place: Path, assembly: bool = True) -> tuple[int, int]:
    """Build a study into a page; its bytes, and how many positions it has."""
    from dojo_core.study.page import study_page
    from dojo_core.study.sheets import study_data

    read = opened(file)
    positions = sum(len(game.positions) for game in read.games)
    with progress(read.title, positions) as advance:
        data = study_data(read, times_of(file), assembly, advance)
    text = study_page(data)
    write_file(place, text)
    return len(text.encode()), positions


@study.command("export")
@plain_errors
def export(
    file: File,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The page to write, such as docs/softmax.md; default: beside the study."),
    ] = None,
) -> None:
    """Write a study as Markdown, with its charts (.svg) beside it: a page that a Git host shows.

    Example: [bold]dojo study export softmax --to docs/softmax.md[/bold]
    """
    from dojo_core.study.export import markdown

    place = _page(file, to, ".export.md")
    exported = markdown(opened(file), times_of(file), _named(file), place.stem)
    write_file(place, exported.text)
    for name, picture in exported.pictures.items():
        write_file(place.with_name(name), picture)
    out.print(escape(f"Wrote {', '.join([str(place), *exported.pictures])}."), soft_wrap=True)


def _own(file: Path) -> bool:
    """Is it one of those that come with the Dojo?"""
    return file.resolve().parent == data_path(*OWN.split("/")).resolve()


def _named(file: Path) -> str:
    """What commands call a study."""
    return file.stem if _own(file) else str(file)


def _page(file: Path, to: Path | None, suffix: str) -> Path:
    """Where what is made of a study goes: beside it; of one of the Dojo's, into the folder that one is in.

    Raises Failure where the study itself is named.
    """
    page = to or (Path(file.stem + suffix) if _own(file) else file.with_suffix(suffix))
    if page.resolve() == file.resolve():
        raise Failure(f"{page} is the study itself: name another file.")
    return page


@study.command("serve")
@plain_errors
def serve(
    file: File,
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 8600,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Build a study and show it on this machine, built anew whenever it is loaded after a change.

    Example: [bold]dojo study serve softmax.md[/bold]
    """
    from dojo_core.study.page import study_page
    from dojo_core.study.serving import StudyServer, Unbuilt
    from dojo_core.study.sheets import study_data

    check_port("127.0.0.1", port, f"dojo study serve {file} --port")
    opened(file)  # what is wrong with it is said here

    def page() -> str:
        try:
            return study_page(study_data(opened(file), times_of(file)))
        except Failure as fault:
            raise Unbuilt(str(fault)) from None

    server = StudyServer(port, (file, times_file(file)), page)
    url = f"http://127.0.0.1:{port}/"
    out.print(f"The study is at {url} (Ctrl-C ends it)")
    if browser:
        webbrowser.open(url)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


def _of_results(file: Path, row: str, authors: str, target: str) -> str:
    """A study of an agent's run, of a benchmark's row or of a comparison. Raises Failure."""
    from dojo_core.study.reports import of_report, report_of
    from dojo_core.study.writing import of_game

    if not file.is_file():
        raise no_file(file)
    try:
        if file.suffix == ".json":
            return of_report(report_of(read_file(file, most=32 << 20), row), authors=authors)
        games = games_of_runs(file, target)
    except TextError as error:
        raise Failure(f"{file}: {text_fault(error)}") from None
    except ValueError as fault:
        raise Failure(str(fault)) from None
    fitting = [game for game in games if not row or row in (game.kernel, f"{game.kernel}:{game.shape}")]
    if len(fitting) != 1:
        there = sorted({f"{game.kernel}:{game.shape}" for game in games})
        raise Failure(
            f"{file} has {counted(len(fitting), 'such run')}: name one by --row, of {', '.join(there)}."
        )
    return of_game(fitting[0], authors=authors)


@study.command("begin")
@plain_errors
def begin(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FROM",
            help="The name of a recorded line, a game's or a line's file, a log or a recording of an agent's "
            "run (.jsonl), a benchmark or a comparison (.json); or a kernel or a program's text, to begin at "
            "its start.",
        ),
    ],
    to: Annotated[Path | None, typer.Option("--to", help="The study to write; default: print it.")] = None,
    row: Annotated[
        str, typer.Option("--row", help="Of a benchmark, or of runs: softmax, or softmax:1024x512.")
    ] = "",
    authors: Annotated[str, typer.Option("--authors", help="Who tells it: names, with commas.")] = "",
    target: Annotated[str, typer.Option("--target", help="Of the recorded line.")] = DEFAULT_TARGET,
) -> None:
    """Begin a study from a game, a recorded line, an agent's run, a benchmark's row or a comparison: its
    moves and times, for you to put words between.

    Example: [bold]dojo study begin softmax --to my-softmax.md[/bold]
    """
    from dojo_core.study.writing import of_game, of_line, of_own_line

    lines = recorded_lines(target)
    if Path(source).name.endswith(RESULTS):
        text = _of_results(Path(source), row, authors, target)
    elif source in lines:
        text = of_line(source, lines[source], authors)
    else:
        path = Path(source)
        told = read_file(path) if path.is_file() else ""
        try:
            if kind_of(told) == "line":
                text = of_own_line(read_line(told, path.stem), authors)
            else:
                game = played(source, target=target if target != DEFAULT_TARGET else None)
                text = of_game(game, authors=authors)
        except TextError as error:
            raise Failure(f"{path}: {text_fault(error)}") from None
    if to is None:
        out.print(text, markup=False, soft_wrap=True, highlight=False)
        return
    check_new(to)
    write_file(to, text)
    err.print(escape(f"Wrote {to}. Next: dojo study check {to}"), style="dim", soft_wrap=True)
