"""The games that a file holds: saved games, lines, studies, and the best lines of agents' runs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agents.jobs import recording
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.from_code.recognise import kind_of
from dojo_core.game import Game, GameFull
from dojo_core.line import RecordedLine, read_line, recorded_lines
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.opening import named_game
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.recipes import RECIPES, play
from dojo_core.school.gains import gains_beside
from dojo_core.school.puzzles import Source
from dojo_core.study.study import is_study, read_study

MOST_BYTES = 256 << 20  # of a log, unpacked
LONGEST_LINE = 4 << 20  # bytes of a line of a log

POLICY = "reassoc"  # under which PerfLLM's evidence was played

Json = Mapping[str, Any]


class NoSource(ValueError):
    """Nothing that holds games; the message says what can be named."""


def sources(name: str, target: str = DEFAULT_TARGET) -> Iterator[Source]:
    """The games of a file, or of a recorded line by its name, at its own shape or another (``softmax``,
    ``softmax:1024x512``). ``target``: for what names none, such as a line's name or PerfLLM's evidence.
    Raises NoSource, ValueError for no such shape, and TextError where a text is not sound."""
    lines = recorded_lines(target)
    line, _, shape = name.partition(":")
    if line in lines:
        yield _of_line(lines[line], f"the line {line}", shape)
        return
    path = Path(name)
    if not path.is_file():
        raise NoSource(
            f"{name} is neither a file nor a line for {target}: those are {', '.join(sorted(lines))}."
        )
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        yield from _of_log(path)
        return
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise NoSource(f"{path} is no text.") from None
    if path.suffix == ".json":
        yield from _of_evidence(path, text, target)
    elif is_study(text):
        study = read_study(text, path)
        times = tuple(gains_beside(path))
        for game in study.games:
            known = tuple(each for each in times if each.speeds)
            yield Source(f"the study {path.stem}", game, known)
    elif kind_of(text) == "game":
        game = Game.from_text(text)
        yield Source(f"the game {game.title}", game)
    elif kind_of(text) == "line":
        yield _of_line(read_line(text, path.stem), f"the line {path.stem}")
    else:
        raise NoSource(
            f"{path} holds no games: name a game, a line, a study, a run's log or recording, or evidence "
            "of PerfLLM."
        )


def _of_line(line: RecordedLine, words: str, shape: str = "") -> Source:
    if line.kernel is None:
        raise NoSource(f"{words} names no kernel: its first lines read kernel …, shape ….")
    game = named_game(line.kernel, shape or line.shape, line.target, line.policy)
    line.play(game)
    return Source(words, game)


def played(game: Game, moves: Iterator[str] | list[str]) -> Game:
    """A game with moves played on, as far as they apply."""
    try:
        for move in moves:
            play(game, move, RECIPES)
    except (IllegalMove, MoveSyntax, GameFull):
        pass
    return game


# ---------------------------------------------------------------------------- agents' runs


def _of_log(path: Path) -> Iterator[Source]:
    """The best lines of the runs in a log or a recording, each agent and kernel once."""
    try:
        told = recording.read(path)
    except ValueError:
        yield from _of_runs(path)
        return
    source = of_recording(told)
    if source is not None:
        yield source


def of_recording(told: recording.Recording) -> Source | None:
    """The game that a run's fastest program was reached by; None where none was timed."""
    timed = [entry for entry in told.entries if entry.status == "ok" and entry.seconds]
    if not timed:
        return None
    best = min(timed, key=lambda entry: entry.seconds or 0.0)
    game = played(_begin(Game.from_text(told.spec.game)), list(best.moves))
    return Source(f"a run of {told.spec.agent}", game)


def _begin(game: Game) -> Game:
    """A new game that stands where another one's cursor does, by the same line."""
    begun = Game.new(game.start, game.kernel, game.shape, game.target, game.policy)
    return played(begun, [str(position.move) for position in game.line()[1:]])


def _of_runs(path: Path) -> Iterator[Source]:
    head: Json | None = None
    best: tuple[float, list[str]] | None = None
    for entry in _entries(path):
        if "dojo run" in entry:
            if head is not None and best is not None:
                yield _of_run(head, best[1])
            head, best = entry, None
        elif head is None:
            raise NoSource(f"{path} is no log of a run.")
        elif (
            entry.get("verified")
            and isinstance(entry.get("seconds"), float)
            and (best is None or entry["seconds"] < best[0])
        ):
            best = entry["seconds"], [str(move) for move in entry.get("line", [])]
    if head is not None and best is not None:
        yield _of_run(head, best[1])


def _entries(path: Path) -> Iterator[Json]:
    """The lines of a log, packed or not, up to the first that is not whole."""
    read = 0
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            read += len(line)
            if read > MOST_BYTES:
                return
            try:
                yield read_object(line, nonfinite=True)
            except NotJson:
                return


def _of_run(head: Json, line: list[str]) -> Source:
    game = named_game(str(head["kernel"]), str(head["shape"]), str(head["target"]), str(head["policy"]))
    return Source(f"a run of {head['agent']}", played(game, [*map(str, head["before"]), *line]))


def _of_evidence(path: Path, text: str, target: str) -> Iterator[Source]:
    """The runs that ``benchmarks/perfllm.py`` keeps; different lines alone."""
    try:
        runs = read_object(text)["runs"]
        seen: set[tuple[str, ...]] = set()
        for run in runs:
            line = tuple(map(str, run["line"]))
            key = (str(run["kernel"]), str(run["shape"]), *line)
            if key in seen:
                continue
            seen.add(key)
            game = named_game(str(run["kernel"]), str(run["shape"]), target, POLICY)
            agent = str(run.get("agent", "perfllm"))
            yield Source(f"a run of {agent}", played(game, list(line)))
    except (NotJson, KeyError, TypeError) as fault:
        raise NoSource(f"{path} is no evidence of runs ({fault}).") from fault
