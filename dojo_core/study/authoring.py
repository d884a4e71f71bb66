"""Writing studies: what the page Study talks to. It seats an author at a study's game, and edits its text.

The file is the study: each edit goes into it, and what stands there is told. The board's game is one of the
author's own, which has the study's positions and whatever else they try.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dojo_core.faults import text_fault
from dojo_core.game import Game, GameFull
from dojo_core.line import recorded_lines
from dojo_core.measure.database import DatabaseFault
from dojo_core.moves import IllegalMove, MoveSyntax
from dojo_core.program.expressions import TextError
from dojo_core.service.events import client_name, sound
from dojo_core.service.players import Player, Refused
from dojo_core.service.service import Service
from dojo_core.service.sources import STUDY_GAMES
from dojo_core.service.view import Json
from dojo_core.study import work
from dojo_core.study.editing import Draft, moves_to, position_at
from dojo_core.study.folder import Changed, Kept, NotKept, Studies
from dojo_core.study.study import Chapter, Study
from dojo_core.study.work import BUILDING, TIMING, Progress
from dojo_core.study.writing import of_game, of_line

log = logging.getLogger(__name__)

KEPT_CLIENTS = 8  # pages of one session, whose event numbers are remembered
FAULT = "That did not work: a fault of the app, noted in its log. The study is as it was."


@dataclass
class AuthoringSession:
    """One tab on the page: whose studies, which one is open, and what is under way."""

    player: Player
    studies: Studies
    played: Callable[[], Game | None]  # a copy of the game on Play
    name: str = ""  # of the open study; empty: the list
    chapter: int = 0
    asking: bool = False  # is the form of a question open, which lists the moves?
    clash: Json | None = None  # the text that was not saved as the file had changed: as ``saved`` has it
    fault: str = ""
    saved: Json = field(default_factory=dict)  # the last text that was saved: of which page, its number
    page: Json | None = None  # the built page, until the tab says that it is there
    acknowledged: dict[str, int] = field(default_factory=dict)
    known: tuple[str, Draft | None, TextError | None] = ("", None, None)  # what was read of a revision

    @property
    def busy(self) -> bool:
        """Is there something under way that will be told?"""
        return bool(self.name) and any(self.progress(what).state == "running" for what in (TIMING, BUILDING))

    @property
    def file(self) -> Path:
        """The open study's."""
        return self.studies.file(self.name)

    def progress(self, what: str) -> Progress:
        """How far its times, or its page, are."""
        return work.progress_of(what, self.file)

    @property
    def secret(self) -> bool:
        """Are the times of moves kept back? Not from an author."""
        return False


class Author:
    """One for the process; each session is one tab's."""

    def __init__(self, service: Service) -> None:
        self.service = service

    # ------------------------------------------------------------------ what is open

    def kept(self, session: AuthoringSession) -> Kept:
        """The open study's file. Raises NotKept."""
        return session.studies.read(session.name)

    def draft(self, session: AuthoringSession, kept: Kept) -> Draft | None:
        """The study as it can be edited at positions; None while its text is none (``fault_of``)."""
        mark = f"{kept.name}/{kept.revision}"
        if session.known[0] != mark:
            try:
                session.known = mark, Draft(kept.text, session.studies.file(kept.name)), None
            except TextError as fault:
                lines = kept.text.splitlines()
                if not fault.source and 0 < fault.line <= len(lines):
                    fault.source = lines[fault.line - 1]
                session.known = mark, None, fault
            except Exception:
                log.exception("the study %s cannot be read", kept.name)
                session.known = mark, None, TextError("the Dojo failed at this text", "Its log says why.")
        return session.known[1]

    def open(self, session: AuthoringSession, name: str) -> None:
        """Open a study of the folder, its first chapter on the board. Raises NotKept and Refused."""
        kept = session.studies.read(name)
        session.name, session.chapter = kept.name, 0
        session.asking = False
        session.page, session.clash, session.saved = None, None, {}
        self.seat(session)

    def close(self, session: AuthoringSession) -> None:
        """Back to the list."""
        session.name, session.page, session.clash = "", None, None
        self.service.leave(session.player)

    def seat(self, session: AuthoringSession) -> None:
        """Put the open chapter's game on the board, with the positions that the text has now."""
        draft = self.draft(session, self.kept(session))
        if draft is None:
            return
        chapters = draft.study.chapters
        session.chapter = min(session.chapter, len(chapters) - 1)
        game = chapters[session.chapter].game
        known = _board_id(session, game)
        board = self.game(session)
        if board is None or board.id != known:
            try:
                self.service.seat(session.player, known)
                if session.player.watching:
                    raise Refused("It is another's.")
            except Refused:
                copy = Game.from_text(game.to_text())
                copy.id, copy.title = known, draft.study.title[:80]
                copy.goto(chapters[session.chapter].begins)
                self.service.take_in(copy, session.player.owner)
                self.service.seat(session.player, known)
        self._bring(session, game)

    def _bring(self, session: AuthoringSession, game: Game) -> None:
        """Play on the board what the text has and the board has not."""
        board = self.game(session)
        assert board is not None
        for position in game.positions.values():
            moves = moves_to(game, position.id)
            if not position.children and position_at(board, moves) is None:
                with suppress(IllegalMove, MoveSyntax, GameFull):
                    self.service.branch(board.id, 0, moves, session.player.owner)

    def game(self, session: AuthoringSession) -> Game | None:
        """The game on the author's board."""
        return session.player.table.game if session.player.table is not None else None

    # ------------------------------------------------------------------ what the page sends

    def hear(self, session: AuthoringSession, client: object, events: object) -> None:
        """A page's events in order, each number once. Both may be anything: see service/events.py."""
        name = client_name(client)
        for event in sound(events):
            if event["seq"] > session.acknowledged.get(name, 0):
                session.acknowledged[name] = event["seq"]
                self.handle(session, name, event)
        while len(session.acknowledged) > KEPT_CLIENTS:
            session.acknowledged.pop(next(iter(session.acknowledged)))

    def handle(self, session: AuthoringSession, client: str, event: Json) -> None:
        """One event of the panel; what goes wrong is told there."""
        session.fault = ""
        try:
            self._handle(session, client, event)
        except TextError as fault:
            session.fault = text_fault(fault)
        except (NotKept, Refused, DatabaseFault, IllegalMove, GameFull, OSError) as fault:
            session.fault = str(fault)
        except Exception:
            log.exception("event %r failed", event.get("kind"))
            session.fault = FAULT

    def _handle(self, session: AuthoringSession, client: str, event: Json) -> None:
        def text_of(name: str) -> str:
            value = event.get(name, "")
            return value if isinstance(value, str) else ""

        number = event.get("chapter")
        chapter = number if isinstance(number, int) and not isinstance(number, bool) else session.chapter
        moves = text_of("moves").splitlines()
        match text_of("kind"):
            case "open":
                self.open(session, text_of("name"))
            case "list":
                self.close(session)
            case "begin":
                self.begin(session)
            case "begin_line":
                self.begin_line(session, text_of("line"))
            case "delete":
                session.studies.delete(text_of("name"))
                if session.name == text_of("name"):
                    self.close(session)
            case _ if not session.name:
                return
            case "text":
                self._save(session, client, event, text_of("text"), text_of("before"))
            case "go":
                self._go(session, chapter, moves)
            case "ask":
                session.asking = bool(event.get("on"))
            case "time":
                work.begin(TIMING, session.file, bool(event.get("again")))
            case "build":
                work.begin(BUILDING, session.file)
            case "stop":
                work.stop(BUILDING if text_of("what") == BUILDING else TIMING, session.file)
            case "download":
                self._hand_out(session)
            case "received":
                session.page = None
            case "note":
                before, words = text_of("before"), text_of("words")

                def note(draft: Draft) -> None:
                    if draft.note(chapter, moves) not in (before, words.strip("\n")):
                        raise Changed(
                            "The note here was changed in another window. Yours is in the field: leave the "
                            "field once more to put it in place of that one."
                        )
                    draft.write_note(chapter, moves, words)

                self._edit(session, note)
            case "title":
                self._edit(session, lambda draft: draft.write_title(chapter, moves, text_of("title")))
            case "question":
                self._edit(session, lambda draft: self._question(draft, chapter, moves, event))
                session.asking = False
            case "put_in":
                self._edit(session, lambda draft: draft.put_in(chapter, moves))
            case "facts":
                facts = {name: text_of(name) for name in ("about", "authors", "licence")}
                self._edit(session, lambda draft: draft.write_facts(text_of("title"), facts))
            case "chapter_title":
                self._edit(session, lambda draft: draft.write_chapter_title(chapter, text_of("title")))
            case "add_chapter":
                self._edit(session, lambda draft: draft.add_chapter(text_of("title"), moves))
                self._to_last(session)
            case "add_game":
                game = session.played()
                if game is None:
                    raise NotKept("There is no game on Play.")
                self._edit(session, lambda draft: draft.add_game(text_of("title") or game.title, game))
                self._to_last(session)

    def begin(self, session: AuthoringSession) -> None:
        """A study of the game on Play. Raises NotKept."""
        game = session.played()
        if game is None:
            raise NotKept("There is no game on Play: begin one there first.")
        self.open(session, session.studies.begin(game.title, of_game(game)).name)

    def begin_line(self, session: AuthoringSession, name: str) -> None:
        """A study of a recorded line. Raises NotKept."""
        lines = recorded_lines()
        if name not in lines:
            raise NotKept("There is no such recorded line.")
        self.open(session, session.studies.begin(name, of_line(name, lines[name])).name)

    @staticmethod
    def _question(draft: Draft, chapter: int, moves: Sequence[str], event: Json) -> None:
        rows = zip(event.get("texts", []), event.get("rights", []), event.get("whys", []), strict=False)
        answers = [(str(text), bool(right), str(why)) for text, right, why in rows if str(text).strip()]
        kind, move = str(event.get("ask", "")), str(event.get("move", ""))
        if event.get("remove"):
            answers = []
        elif not answers:
            raise TextError("a question has answers", "Write two or more, and mark the right one.")
        words = f"refused {move}" if kind == "refused" else "move" if kind == "move" else ""
        draft.write_question(chapter, moves, words, str(event.get("words", "")), answers)

    def _edit(self, session: AuthoringSession, change: Callable[[Draft], None]) -> None:
        """Change the study at a position. Raises TextError and NotKept; the file is as it was then."""
        kept = self.kept(session)
        path = session.file
        if self.draft(session, kept) is None:
            raise NotKept("Correct the text first: it says below where.")
        draft = Draft(kept.text, path)
        change(draft)
        session.studies.write(session.name, draft.text, kept.revision)
        self.seat(session)

    def _save(self, session: AuthoringSession, client: str, event: Json, text: str, before: str) -> None:
        sent = {"client": client, "number": event.get("number")}
        try:
            kept = session.studies.write(session.name, text, before)
        except Changed:
            session.clash = sent
            return
        session.clash, session.saved = None, {**sent, "revision": kept.revision}
        self.seat(session)

    @staticmethod
    def _hand_out(session: AuthoringSession) -> None:
        """Give the page that was built to the tab. Raises NotKept."""
        built = work.page_file(session.file)
        try:
            text = built.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotKept("There is no page yet: build it first.") from None
        session.page = {"name": built.name, "text": text}

    def _go(self, session: AuthoringSession, chapter: int, moves: Sequence[str]) -> None:
        session.chapter = chapter
        self.seat(session)
        board = self.game(session)
        if board is not None:
            self.service.branch(board.id, 0, moves, session.player.owner, go=True)

    def _to_last(self, session: AuthoringSession) -> None:
        """To where the last chapter begins."""
        draft = self.draft(session, self.kept(session))
        if draft is not None:
            last = draft.study.chapters[-1]
            self._go(session, len(draft.study.chapters) - 1, moves_to(last.game, last.begins))


def _board_id(session: AuthoringSession, game: Game) -> str:
    """The id of the author's own game on a study's start."""
    told = "/".join([session.player.owner, session.name, game.start.hash, game.policy, game.target])
    return f"{STUDY_GAMES}{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def chapter_at(session: AuthoringSession, study: Study, game: Game) -> tuple[int, Chapter]:
    """The chapter that tells of the position on the board: the one that is read, if it does, else another one
    that does, else the one that is read."""
    moves = moves_to(game, game.cursor)
    chapters = list(enumerate(study.chapters))
    here = chapters[min(session.chapter, len(chapters) - 1)]
    same = [(n, c) for n, c in [here, *chapters] if c.game.start.hash == game.start.hash]
    for number, chapter in same:
        at = position_at(chapter.game, moves)
        if at is not None and at in chapter.reached:
            return number, chapter
    return (same or [here])[0]
