"""What stands in a game: its program and its code, its legal moves, and why a move is legal or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from dojo_core import described
from dojo_core.actions import looking
from dojo_core.actions.playing import usable_recipes
from dojo_core.calls import answers
from dojo_core.calls.call import Answer, CallFault
from dojo_core.calls.desk import Desk
from dojo_core.calls.registry import call
from dojo_core.calls.words import (
    LINES,
    At,
    GameId,
    Page,
    ended,
    outcome_text,
    paged,
    ply,
    position_of,
    shortened_line,
    written,
)
from dojo_core.moves.core import REGISTRY, Move
from dojo_core.moves.notation import form
from dojo_core.service.analysis import Analysis, likelihood, words_for
from dojo_core.service.players import Table
from dojo_core.service.view import Json
from dojo_core.wording import counted

EXAMPLES = 3  # moves of a kind, where all kinds are told
LISTED = 40  # moves of a page
OVERVIEW = 60  # lines of a program that is told by the way
LEAST_SHARE = 0.005  # of the time, of a part that is told
LATE = 60.0  # seconds for an assembly or a profile


def told(desk: Desk, table: Table, *before: str) -> Answer:
    """The position where a game stands, after some lines: its program, its time, what to ask next."""
    with table.lock:
        game = table.game
        here, at = game.current, ply(game, game.cursor)
        (outcome,) = desk.service.known(table, [here.program.hash])
        data = {
            "game": game.id, "title": game.title, "kernel": game.kernel, "shape": game.shape,
            "target": game.target, "policy": game.policy, "position": here.id, "ply": at,
            "seconds": outcome.seconds if outcome is not None and outcome.ok else None,
            "yours": table.owner == desk.owner, "program": here.program.text, "told": list(before),
        }  # fmt: skip
    head = f"Game {game.id}: {game.title}. Position {here.id}, {counted(at, 'move')} from the start"
    text = here.program.text.splitlines()
    lines = [*before, f"{head}; {outcome_text(game.target, outcome)}.", *map(shortened_line, text[:OVERVIEW])]
    if len(text) > OVERVIEW:
        more = written("show", game=game.id, page=1)
        lines.append(f"… {len(text) - OVERVIEW} more lines: {more}")
    following = [written(each, game=game.id) for each in ("moves", "measure", "hint")]
    if not data["yours"]:
        lines.append(desk.whose(table))
        following = [written("moves", game=game.id), written("open", game=game.id)]
    return Answer(ended(lines, following), data, tuple(following))


def looked_at(desk: Desk, table: Table, at: int | None) -> tuple[Analysis, int]:
    """The analysis of a position, and its number; made while the game is not locked."""
    with table.lock:
        position = position_of(table.game, at)
        return desk.service.attention.analysis(table.game, position.program), position.id


@call(answers.Shown)
def show(
    desk: Desk,
    game: GameId,
    what: Annotated[
        Literal["program", "c", "assembly", "profile"],
        "its program, the generated code (C or what the target takes), the assembly, or where its time goes",
    ] = "program",
    at: At = None,
    page: Page = 1,
) -> Answer:
    """Show a position: its program, its generated code, its assembly, or where its time goes.

    Data: ``game``, ``position``, ``ply``, ``yours``, ``what``; ``lines`` of this ``page`` of ``pages``.
    Of a profile, ``parts``: of each node's path its ``share``, ``bound``, ``source`` and a ``sentence``;
    and a ``note``.
    """
    table = desk.table(game)
    analysis, number = looked_at(desk, table, at)
    with table.lock:
        at_ply, yours = ply(table.game, number), table.owner == desk.owner
    told_before: Json = {"game": game, "position": number, "ply": at_ply, "yours": yours, "what": what}
    if what == "profile":
        profile = _late(desk, table, analysis, "profile")
        lines = [profile["note"]]
        lines += [
            f"{'  ' * path.count('.')}{part['text']}: {part['sentence']}"
            for path, part in profile["parts"].items()
            if part["share"] >= LEAST_SHARE
        ]
        more = {"parts": profile["parts"], "note": profile["note"]}
    else:
        more = {}
        lines = _lines(desk, table, analysis, what)
    shown, pages = paged(lines, page, LINES)
    shown = [shortened_line(line) for line in shown]
    data = told_before | {"lines": [*shown], "page": page, "pages": pages} | more
    following = [written("moves", game=game)]
    if page < pages:
        following.insert(0, written("show", game=game, what=what, at=number, page=page + 1))
    head = f"{what.capitalize()} of position {number}" + (f", page {page} of {pages}" if pages > 1 else "")
    if not yours:
        shown.append(desk.whose(table))
    return Answer(ended([f"{head}:", *shown], following), data, tuple(following))


def _lines(desk: Desk, table: Table, analysis: Analysis, what: str) -> list[str]:
    if what == "program":
        return analysis.program.text.splitlines()
    view = analysis.code_view if what == "c" else _late(desk, table, analysis, "assembly")
    if "error" in view:
        raise CallFault(view["error"], "refused")
    return [line for line, _ in view["lines"]]


def _late(desk: Desk, table: Table, analysis: Analysis, part: Literal["assembly", "profile"]) -> Json:
    """A part of an analysis that is made between measurements. Raises CallFault."""
    made = desk.service.attention.made(table, analysis, part, min(LATE, desk.limits.seconds))
    if made is None:
        raise CallFault(
            f"There is no {part} yet: what is measured for others comes first. Ask again.", "too_much"
        )
    if "error" in made:
        raise CallFault(made["error"], "refused")
    return made


@call(answers.Moves)
def moves(
    desk: Desk,
    game: GameId,
    kind: Annotated[
        str, "only moves of this name, as vectorize; without it and place all kinds are told"
    ] = "",
    place: Annotated[str, "only moves that name this place or buffer, as y@1 or t"] = "",
    at: At = None,
    page: Page = 1,
) -> Answer:
    """The legal moves of a position: all kinds with examples, or those of a kind or a place, in pages.

    Data: ``game``, ``position``, ``total``. Without kind and place, ``kinds``: of each its ``kind``,
    ``count``, ``form`` (how it is written), ``about`` and ``examples``; else ``moves`` of this ``page``
    of ``pages``: of each its ``move`` and, where known, ``seconds`` after it and its ``speed`` against
    the position.
    """
    table = desk.table(game)
    analysis, number = looked_at(desk, table, at)
    try:
        legal = looking.chosen(analysis.moves, kind, place)
    except looking.NoSuchKind as fault:
        raise CallFault(str(fault), "not_found") from fault
    if analysis.fault:
        raise CallFault(analysis.fault, "refused")
    known = dict.fromkeys(
        each for buffer in analysis.program.buffers for each in (buffer.name, *buffer.arrays)
    )
    if place and not legal and place.partition("@")[0].partition("#")[0] not in known:
        raise CallFault(f"Nothing is called {place!r} at this position: {', '.join(known)} are.", "not_found")
    data: Json = {"game": game, "position": number, "total": len(legal)}
    if not kind and not place:
        return _kinds(game, number, legal, data)
    texts, pages = paged([str(move) for move in legal], page, LISTED)
    rows = [_timed(desk, table, analysis, text) for text in texts]
    where = "".join([f" of the kind {kind}" * bool(kind), f" that name {place}" * bool(place)])
    head = f"{counted(len(legal), 'legal move')}{where} at position {number}"
    lines = [f"{form(REGISTRY[kind])}: {words_for(kind)}"] if kind else []
    lines.append(f"{head}{f', page {page} of {pages}' if pages > 1 else ''}:")
    lines += [row["move"] + (f"  {row['told']}" if row["told"] else "") for row in rows]
    first = texts[0] if texts else "…"
    following = [written("play", game=game, moves=[first]), written("measure", game=game, moves=[first])]
    if page < pages:
        asked = {name: value for name, value in (("kind", kind), ("place", place)) if value}
        following.insert(0, written("moves", game=game, **asked, page=page + 1))
    if not texts:
        lines.append("None is legal here: why tells of one that you name what is in its way.")
        following = [written("moves", game=game), written("show", game=game)]
    listed = [{"move": row["move"], "seconds": row["seconds"], "speed": row["speed"]} for row in rows]
    data |= {"moves": listed, "page": page, "pages": pages}
    return Answer(ended(lines, following), data, tuple(following))


def _kinds(game: str, number: int, legal: Sequence[Move], data: Json) -> Answer:
    """All kinds of legal moves, the likelier ones first, with a few of each."""
    counts = Counter(move.name for move in legal)
    rows: list[Json] = []
    for name in sorted(counts, key=likelihood):
        examples = [str(move) for move in legal if move.name == name][:EXAMPLES]
        rows.append(
            {"kind": name, "count": counts[name], "form": form(REGISTRY[name]), "about": words_for(name),
             "examples": examples}
        )  # fmt: skip
    lines = [f"{counted(len(legal), 'legal move')} at position {number}, of {counted(len(rows), 'kind')}:"]
    lines += [
        f"{row['kind']} ({row['count']}): {', '.join(row['examples'])}{', …' * (row['count'] > EXAMPLES)}"
        for row in rows
    ]
    first = rows[0]["kind"] if rows else "split_scope"
    following = (
        written("moves", game=game, kind=first),
        written("play", game=game, moves=[rows[0]["examples"][0] if rows else "…"]),
        written("hint", game=game),
        written("recipes"),
    )
    return Answer(ended(lines, following), data | {"kinds": rows}, following)


def _timed(desk: Desk, table: Table, analysis: Analysis, text: str) -> Json:
    """A move, and what is known of the position that it leads to; nothing is measured for it."""
    row: Json = {"move": text, "seconds": None, "speed": None, "told": ""}
    after = analysis.known_successor(text)
    if after is not None:
        outcome = desk.service.known(table, [after.hash])[0]
        speed = desk.service.speeds(table, analysis.program.hash, [after.hash])[0]
        if outcome is not None:
            row["told"] = outcome_text(analysis.target, outcome)
            row["seconds"] = outcome.seconds if outcome.ok else None
        if speed is not None:
            row["told"] += f", {speed}"
            row["speed"] = described.speed(speed)
    return row


@call(answers.Why)
def why(
    desk: Desk,
    game: GameId,
    move: Annotated[str, "a move as it is written, as reuse_dims d 0", {"maxLength": 500}],
    at: At = None,
) -> Answer:
    """Why a move is legal or not at a position, and the ways around a refusal, which were tried out.

    Data: ``game``, ``position``, ``move``, ``legal``, ``sentence``, and ``refusal``, null of a legal
    move: its ``code``, ``sentence``, ``nodes``, ``witness``, ``ways`` (``moves`` to play first, ``told``
    in a line, ``then`` what the move is called; those to play in its place have no ``then``) and ``needs``.
    """
    table = desk.table(game)
    analysis, number = looked_at(desk, table, at)
    text = " ".join(move.split())
    verdict = looking.explained(analysis.program, text, analysis.target, analysis.policy)
    refused = verdict.refusal
    data = {
        "game": game, "position": number, "move": text, "legal": verdict.legal, "sentence": verdict.sentence,
        "refusal": None if refused is None else described.refusal(refused),
    }  # fmt: skip
    lines = [verdict.sentence]
    if refused is None:
        following = [written("play", game=game, moves=[text])]
    else:
        if refused.witness is not None:
            lines.append(f"For instance {refused.witness}.")
        following = [
            written("play", game=game, moves=[*way.moves, *[way.then] * bool(way.then)])
            for way in refused.ways
        ] or [written("moves", game=game)]
    return Answer(ended(lines, following), data, tuple(following))


@call(answers.Recipes)
def recipes(
    desk: Desk,
    find: Annotated[str, "only those with this in their name or words"] = "",
) -> Answer:
    """The recipes: named ways of making several moves at once; play takes them as it takes moves.

    Data: ``recipes``: of each its ``recipe`` (how it is written) and ``about``.
    """
    every = [described.recipe(each) for each in usable_recipes().values()]
    rows = [row for row in every if find.lower() in f"{row['recipe']} {row['about']}".lower()]
    lines = [f"{row['recipe']}: {row['about']}" for row in rows] or [f"No recipe has {find!r} in its words."]
    following = ('play(game="…", moves=["fuse t@0"])',) if rows else ("recipes()",)
    return Answer(ended(lines, following), {"recipes": rows}, following)
