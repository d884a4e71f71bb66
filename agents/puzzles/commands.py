"""``dojo puzzles``: mined from games and runs, checked, rated, and the one of the day."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from agents.puzzles.sources import NoSource, sources
from dojo_core.cli.terminal import Failure, counted, err, out, plain_errors, write_file
from dojo_core.cli.waiting import measures
from dojo_core.faults import text_fault
from dojo_core.package_data import document
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.school.puzzles import GAIN, Miner, Puzzle, file_text
from dojo_core.study.times import Times, times_file, write_times

puzzles = typer.Typer(
    no_args_is_help=True,
    help=f"Puzzles of one move, from games and runs: mine, check and rate them ({document('lessons.md')}).",
)


@puzzles.command("mine")
@plain_errors
@measures
def mine(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="FROM…",
            help="Games, lines (files or names), studies, logs and recordings of runs, PerfLLM's evidence.",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", help="The file of puzzles to write, FILE.md.")],
    gain: Annotated[float, typer.Option("--gain", min=1.05, help="What a right move gains at least.")] = GAIN,
    count: Annotated[int, typer.Option("--count", min=1, max=40, help="So many puzzles at most.")] = 20,
    each: Annotated[int, typer.Option("--each", min=1, help="So many of one game at most.")] = 2,
    target: Annotated[str, typer.Option("--target", help="For what names no target.")] = DEFAULT_TARGET,
) -> None:
    """Mine puzzles of one move: positions where few moves gain, and all others clearly less.

    Positions are timed, and of those before a gain every legal move, in turns with the position: seconds for
    each on a processor. What a move gains is kept beside the file, in FILE.times.json, with the machine and
    the date.

    Example: [bold]dojo puzzles mine softmax my-game.dojo runs/*.jsonl --to my-lessons/puzzles.md[/bold]
    """
    if to.suffix != ".md":
        raise Failure(f"{to} is no file of puzzles: name one that ends in .md.")
    if to.exists() or times_file(to).exists():
        raise Failure(f"{to} is there already: name another file, or move it away.")

    def looking(words: str) -> None:
        err.print(escape(words), style="dim", soft_wrap=True)

    found: list[Puzzle] = []
    miner = Miner(gain, looking)
    try:
        for name in names:
            for source in sources(name, target):
                for puzzle in miner.mine(source, min(each, count - len(found))):
                    found.append(puzzle)
                    _write(to, found)  # what is found stays, also where the rest is given up
    except NoSource as fault:
        raise Failure(str(fault)) from None
    except TextError as fault:
        raise Failure(f"{name}: {text_fault(fault)}") from None
    finally:
        miner.close()
    if not found:
        raise Failure(f"No puzzle was found: try other games, or a smaller gain than --gain {gain:g}.")
    message = f"Saved {counted(len(found), 'puzzle')} in {to}. Next: dojo puzzles check {to}"
    err.print(escape(message), style="dim", soft_wrap=True)


def _write(file: Path, found: list[Puzzle]) -> None:
    times: list[Times] = []
    for puzzle in found:
        known = next((each for each in times if each.key == puzzle.times.key), None)
        if known is None:
            times.append(puzzle.times)
        else:
            known.speeds.update(puzzle.times.speeds)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(times_file(file), write_times(times))
    write_file(file, file_text(found))
