"""A study as plain data for a page: each position as the board shows it, what is told and asked there, times.

The board's own views make it, so that a page shows what the board does. Nothing in it is measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from dojo_core.game import Game
from dojo_core.kernels.work import work_of
from dojo_core.measure.machine import this_machine
from dojo_core.program.tree import Provenance
from dojo_core.service import board
from dojo_core.service.analysis import Analysis
from dojo_core.service.authored import Authored, note
from dojo_core.service.view import Json, history
from dojo_core.service.wiring import assemble
from dojo_core.sharing import link
from dojo_core.study.study import Asked, Chapter, Study
from dojo_core.study.times import Times
from dojo_core.targets.registry import backend
from dojo_core.version import version

T = TypeVar("T")

# Refused moves of a position that a page has: those that a way leads around stand first.
BLOCKED_SHOWN = 60


def study_data(
    study: Study, every: list[Times], assembly: bool = True, advance: Callable[[], None] = lambda: None
) -> Json:
    """``games``: ``game`` (as the board has it), ``history``, ``work`` and ``sheets`` by position, each with
    ``after``, the hashes of what its moves lead to. ``chapters``: where each begins and ends, and its
    ``stops``: positions with a title, blocks of text, a question. ``machines``: the times of each.

    ``advance`` is called after each position."""
    games, names = study.games, Names(every)
    return {
        "study": {
            "title": study.title,
            "about": study.about,
            "authors": list(study.authors),
            "licence": study.licence,
            "made": datetime.now(UTC).strftime("%Y-%m-%d"),
            "by": f"Dojo {version()}",
            "code": this_machine().summary,
        },
        "games": [_game(game, names, every, assembly, advance) for game in games],
        "chapters": [
            {
                "id": chapter.id,
                "title": chapter.title,
                "game": next(n for n, game in enumerate(games) if game is chapter.game),
                "begins": chapter.begins,
                "ends": chapter.ends,
                "stops": [_stop(chapter, number) for number in chapter.positions],
            }
            for chapter in study.chapters
        ],
        "machines": [
            {
                "machine": times.machine,
                "date": times.date,
                "seconds": names.keys(times.seconds),
                "failed": names.keys(times.failed),
                "speeds": names.keys({h: names.keys(each) for h, each in times.speeds.items()}),
                "profiles": names.keys(times.profiles),
                "limits": names.keys(times.limits),
            }
            for times in every
        ],
    }  # fmt: skip


class Names:
    """Short names of programs in place of their hashes, which no packing makes smaller."""

    def __init__(self, every: list[Times]) -> None:
        self._names: dict[str, str] = {}
        self._timed = {h for times in every for h in (*times.seconds, *times.failed)}

    def of(self, program_hash: str) -> str:
        return self._names.setdefault(program_hash, str(len(self._names)))

    def timed(self, program_hash: str) -> str:
        """The name where some machine tells of the program, else empty."""
        return self.of(program_hash) if program_hash in self._timed else ""

    def keys(self, known: Mapping[str, T]) -> dict[str, T]:
        return {self.of(h): value for h, value in known.items()}


def _stop(chapter: Chapter, number: int) -> Json:
    asked = chapter.questions.get(number)
    return {
        "at": number,
        "title": chapter.titles.get(number, ""),
        "blocks": chapter.notes.get(number, []),
        "question": None if asked is None else question_view(asked),
    }


def question_view(asked: Asked) -> Json:
    """A question as a page asks it."""
    return {
        "kind": asked.kind,
        "words": asked.question.words,
        "answers": [
            {"words": each.words, "right": each.right, "why": each.why, "text": each.text}
            for each in asked.question.answers
        ],
        "move": asked.move,
        "refusal": "" if asked.refusal is None else str(asked.refusal),
    }


def _game(game: Game, names: Names, every: list[Times], assembly: bool, advance: Callable[[], None]) -> Json:
    clock, words = backend(game.target).clock(), backend(game.target).words
    hues: dict[Provenance, int] = {}
    sheets: dict[str, Json] = {}
    for number in sorted(game.positions):
        position = game.positions[number]
        analysis = Analysis(position.program, game.target, game.policy)
        after = [names.timed(each.program.hash) for each in analysis.find_successors()]
        analysis.find_blocked()
        sheet = board.sheet(game, position, analysis, hues)
        sheet["blocked"] = sheet["blocked"][:BLOCKED_SHOWN]
        sheet["position"]["hash"] = names.of(position.program.hash)
        sheet["assembly"] = assemble(analysis) if assembly else None
        game.goto(number)
        sheets[str(number)] = {**sheet, "after": after, "link": link(game) or ""}
        advance()
    return {
        "game": {
            "id": game.id, "title": game.title, "kernel": game.kernel, "shape": game.shape,
            "policy": game.policy, "target": game.target, "rules": board.rules(game),
            "profiled": clock.kind == "measured", "timed": clock.timed, "counts": clock.counts,
            "unit": clock.unit, "steady": clock.exact, "code": words.code, "play": words.play,
            "by": "", "changes": 0, "doubt": "", "start": names.of(game.start.hash),
        },
        "history": [{**node, "hash": names.of(node["hash"])} for node in history(game)["nodes"]],
        "work": dict(zip(("flops", "bytes"), work_of(game.kernel, game.shape, game.start), strict=True)),
        "sheets": sheets,
        "text": game.to_text() + _noted(game, every),
    }  # fmt: skip


def _noted(game: Game, every: list[Times]) -> str:
    """The first machine's times of a game's positions, for who opens the game's file elsewhere."""
    if not every:
        return ""
    times = every[0]
    hashes = dict.fromkeys(position.program.hash for position in game.positions.values())
    known = {program: times.seconds[program][0] for program in hashes if program in times.seconds}
    seconds = {program: each for program, each in known.items() if each > 0}
    return f"{note(Authored(times.machine, times.date, seconds))}\n" if seconds else ""


class Packer:
    """Data in parts, each different string once over all of them: the texts of positions are much alike."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def part(self, data: Any) -> Any:
        """``[strings, data]``: the strings that no part before has, and the data, in which every string is
        the number of its place in the strings of all parts, and numbers stand as lists of one."""
        known = len(self._places)
        told = self._taken(data)
        return [list(self._places)[known:], told]

    def _taken(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._places.setdefault(value, len(self._places))
        if isinstance(value, dict):
            return {key: self._taken(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return ["", *map(self._taken, value)]
        if value is None or isinstance(value, bool):
            return value
        return [value]


def parted(data: Json) -> tuple[Json, Json]:
    """What a page draws first, and the rest: the positions, profiles, speeds of moves, texts of games. Both
    have the form of the whole."""
    chapter = data["chapters"][0]
    begins, opened = str(chapter["begins"]), chapter["game"]
    first: Json = {**data, "games": [], "machines": []}
    rest: Json = {"games": [], "machines": []}
    for number, game in enumerate(data["games"]):
        shown = {begins: game["sheets"][begins]} if number == opened else {}
        first["games"].append({**game, "sheets": shown, "text": ""})
        rest["games"].append({"sheets": game["sheets"], "text": game["text"]})
    here = data["games"][opened]["sheets"][begins]["position"]["hash"]
    for times in data["machines"]:
        speeds = {here: times["speeds"][here]} if here in times["speeds"] else {}
        first["machines"].append({**times, "speeds": speeds, "profiles": {}})
        rest["machines"].append({"speeds": times["speeds"], "profiles": times["profiles"]})
    return first, rest
