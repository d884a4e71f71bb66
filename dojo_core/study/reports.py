"""A comparison, or a row of a benchmark, as the beginnings of a study: its times, and the games of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dojo_core import kernels
from dojo_core.bounded_json import NotJson, read_object
from dojo_core.game import Game, GameFull
from dojo_core.measure.measurement import seconds_text
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.opening import begun, named_game
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.recipes import RECIPES, play
from dojo_core.study.writing import TOLD, chapter_of

Json = Mapping[str, Any]


def report_of(text: str, row: str = "") -> Json:
    """A row of what ``dojo bench --json`` or the page Compare wrote, as a document of that row alone:
    ``softmax`` or ``softmax:1024x512``, or the only one there is. Raises TextError with the rows."""
    try:
        document = read_object(text)
        reports = [dict(each) for each in document["reports"]]
        names = [f"{each['kernel']}:{each['shape']}" for each in reports]
    except (NotJson, KeyError, TypeError, ValueError) as fault:
        raise TextError(f"this is no benchmark ({fault})", "Name what dojo bench --json wrote.") from fault
    fitting = [at for at, name in enumerate(names) if not row or row in (name, name.partition(":")[0])]
    if len(fitting) != 1:
        told = f"no row is named {row}" if not fitting else f"{len(fitting)} rows are meant"
        raise TextError(told, f"Name one by --row: {', '.join(names)}.")
    return {**document, "reports": [reports[fitting[0]]]}


def of_report(document: Json, authors: str = "") -> str:
    """The text of a study of a document of one report: its times, then a chapter for each game of ours whose
    moves it has. Raises TextError where moves do not apply."""
    (report,) = document["reports"]
    games = _games(document, report)
    title = f"{report['kernel']} {report['shape']}".strip()
    spec = document.get("spec") or {"start": report["program"]}
    begin = next(iter(games.values())).start.text if games else str(spec["start"])
    lines = [
        f"# {title}, side by side",
        "kind: study",
        f"about: What {title} takes, in whose hands, and how ours came to be.",
        *([f"authors: {authors}"] if authors else ()),
        "",
        "## The times",
        "```program",
        *begin.splitlines(),
        "```",
        "",
        f"Measured in turns, {report['rounds']} rounds, on {report['machine_summary']}{_day(document)}: the "
        "shortest run of each.",
        "",
        "```text",
        *_rows(report["entries"]),
        "```",
        "",
        TOLD,
    ]
    for name, game in games.items():
        lines += ["", *chapter_of(game, name)]
    return "\n".join(lines) + "\n"


def _games(document: Json, report: Json) -> dict[str, Game]:
    """Ours whose moves are known, by name: of a comparison several, of a benchmark the line that it timed."""
    programs = document.get("programs") or {"line": {"line": report["line"], "policy": report["policy"]}}
    return {
        f"Ours: {name}": _played(document, report, each["line"], each["policy"])
        for name, each in programs.items()
        if each.get("line")
    }


def _played(document: Json, report: Json, line: Sequence[str], policy: str) -> Game:
    try:
        if report["kernel"] in kernels.names():
            game = named_game(report["kernel"], report["shape"], DEFAULT_TARGET, policy)
        else:
            game = begun(parse(str(document["spec"]["start"])), None, "", DEFAULT_TARGET, policy)
        for move in line:
            play(game, str(move), RECIPES)
    except (KeyError, ValueError, IllegalMove, MoveSyntax, GameFull) as stopped:
        raise TextError(f"its line cannot be played here: {stopped}", "Name another row.") from stopped
    return game


def _day(document: Json) -> str:
    return f", {document['time'][:10]}" if document.get("time") else ""


def _rows(entries: Sequence[Json]) -> list[str]:
    """An entry a line, the fastest first; without a time, why."""
    timed = sorted((each for each in entries if each.get("min")), key=lambda each: float(each["min"]))
    wide = max((len(str(each["name"])) for each in entries), default=0)
    rows = [f"{each['name']:<{wide}}  {seconds_text(each['min'])}" for each in timed]
    return rows + [f"{e['name']:<{wide}}  {e['message'] or e['status']}" for e in entries if not e.get("min")]
