"""What the page Study draws beside the board, as plain data (JSON): the list, or a study and its position."""

from __future__ import annotations

from datetime import datetime

from dojo_core.faults import text_fault
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.service.view import Json
from dojo_core.study.authoring import Author, AuthoringSession, chapter_at
from dojo_core.study.editing import Draft, moves_to, position_at
from dojo_core.study.folder import Kept, NotKept
from dojo_core.study.sheets import question_view
from dojo_core.study.study import Chapter
from dojo_core.study.work import BUILDING, TIMING, page_file, times_of


def panel(author: Author, session: AuthoringSession) -> Json:
    """All that the panel shows."""
    common = {"fault": session.fault, "acknowledged": dict(session.acknowledged)}
    if session.name:
        try:
            return {**common, "view": "study", "study": study_words(author, session)}
        except NotKept as gone:  # deleted in another window
            common["fault"] = common["fault"] or str(gone)
    return {**common, "view": "list", "list": listed(session)}


def listed(session: AuthoringSession) -> Json:
    """The author's studies, and what another can begin from."""
    kept: list[Kept] = []
    for name in session.studies.names():
        try:
            kept.append(session.studies.read(name))
        except NotKept:  # deleted meanwhile, or no text
            continue
    game = session.played()
    return {
        "studies": [{"name": each.name, "title": each.title, "changed": _day(each.changed)} for each in kept],
        "folder": str(session.studies.folder),
        "play": None if game is None else {"title": game.title, "moves": len(game.positions) - 1},
        "lines": sorted(recorded_lines()),
    }


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def study_words(author: Author, session: AuthoringSession) -> Json:
    """The open study: its text, what is wrong with it or what it says, and the position on the board."""
    kept = author.kept(session)
    draft = author.draft(session, kept)
    fault = session.known[2]
    told: Json = {
        "name": kept.name, "title": kept.title, "text": kept.text, "revision": kept.revision,
        "saved": session.saved, "clash": session.clash, "asking": session.asking,
        "file": str(session.file),
        "wrong": None if fault is None else {"line": fault.line, "told": text_fault(fault)},
        "page": session.page,
    }  # fmt: skip
    if draft is not None:
        told |= _sound(author, session, draft)
    return told


def _progress(session: AuthoringSession, what: str) -> Json:
    told = session.progress(what)
    return {"state": told.state, "done": told.done, "total": told.total, "message": told.message}


def _built(session: AuthoringSession) -> Json | None:
    """The page that there is: its name, when it was built, its size, and whether the text is newer."""
    page = page_file(session.file)
    if not page.exists():
        return None
    status = page.stat()
    older = status.st_mtime < session.file.stat().st_mtime
    return {"name": page.name, "changed": _day(status.st_mtime), "bytes": status.st_size, "older": older}


def _sound(author: Author, session: AuthoringSession, draft: Draft) -> Json:
    """What is told of a study whose text is one."""
    study = draft.study
    programs = {position.program.hash for game in study.games for position in game.positions.values()}
    board = author.game(session)
    return {
        "facts": {name: draft.fact(name) for name in ("about", "authors", "licence")},
        "chapters": [_outline(chapter) for chapter in study.chapters],
        "positions": len(programs),
        "questions": sum(len(chapter.questions) for chapter in study.chapters),
        "machines": [
            {
                "machine": times.machine,
                "date": times.date,
                "timed": len(programs & {*times.seconds, *times.failed}),
            }
            for times in times_of(session.file)
        ],
        TIMING: _progress(session, TIMING),
        BUILDING: {**_progress(session, BUILDING), "built": _built(session)},
        "here": None if board is None else _here(author, session, draft, board),
    }  # fmt: skip


def _outline(chapter: Chapter) -> Json:
    """A chapter's title, and its stops."""
    game = chapter.game

    def label(number: int) -> str:
        position = game.positions[number]
        return chapter.titles.get(number) or (str(position.move) if position.move else "The start")

    return {
        "title": chapter.title,
        "stops": [
            {
                "moves": "\n".join(moves_to(game, number)),
                "ply": len(game.line(number)) - 1,
                "label": label(number),
                "told": bool(chapter.notes.get(number)),
                "asked": number in chapter.questions,
            }
            for number in chapter.positions
        ],
    }


def _here(author: Author, session: AuthoringSession, draft: Draft, board: Game) -> Json:
    """The position on the board: what the study says there, as it is written and as it is read."""
    number, chapter = chapter_at(session, draft.study, board)
    moves = moves_to(board, board.cursor)
    at = position_at(chapter.game, moves)
    asked = chapter.questions.get(at) if at is not None else None
    lists: Json = {"legal": [], "blocked": []}
    if session.asking:
        analysis = author.service.attention.analysis(board, board.current.program)
        blocked = analysis.known_blocked
        lists = {
            "legal": [str(move) for move in analysis.moves],
            "blocked": None if blocked is None else [[row["text"], row["sentence"]] for row in blocked],
        }
    return {
        "chapter": number,
        "moves": "\n".join(moves),
        "ply": len(moves),
        "move": moves[-1] if moves else "",
        "in": at is not None,
        "title": chapter.titles.get(at, "") if at is not None else "",
        "note": draft.note(number, moves),
        "blocks": chapter.notes.get(at, []) if at is not None else [],
        "question": None if asked is None else question_view(asked),
        "asked": _written(draft.question(number, moves)),
        "recorded": chapter.recorded and at not in chapter.reached,
        **lists,
    }


def _written(lines: list[str]) -> Json | None:
    """A question as its form has it: its kind, its words, its answers as they are written."""
    if not lines:
        return None
    kind, _, move = lines[0].removeprefix("```question").strip().partition(" ")
    words: list[str] = []
    answers: list[Json] = []
    for line in lines[1:-1]:
        mark, _, rest = line.strip().partition(" ")
        if mark in ("+", "-") and rest:
            text, _, why = rest.partition(" :: ")
            answers.append({"text": text, "right": mark == "+", "why": why})
        elif line.strip():
            words.append(line.strip())
    return {"kind": kind, "move": move, "words": " ".join(words), "answers": answers}
