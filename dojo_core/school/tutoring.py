"""The desk: what the page Learn talks to. It seats a learner at a step's game, checks goals, gives help.

Play itself is the service's: a step's game is a game like any other, with a name of its own in the store.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from dojo_core.game import Game
from dojo_core.measure.database import DatabaseFault
from dojo_core.school.check import Unplayable, played
from dojo_core.school.goals import Seen
from dojo_core.school.lesson import TRY, Lesson, Step
from dojo_core.school.progress import Progress
from dojo_core.school.review import Review
from dojo_core.school.school import School
from dojo_core.service import library
from dojo_core.service.events import client_name, sound
from dojo_core.service.players import Player, Refused
from dojo_core.service.queue import Outcome
from dojo_core.service.service import Service
from dojo_core.service.sources import SCHOOL_GAMES
from dojo_core.service.view import Json

log = logging.getLogger(__name__)

KEPT_CLIENTS = 8  # pages of one seat, whose event numbers are remembered
LISTED = 30  # games that can be reviewed


@dataclass
class Seat:
    """One tab on the page: who learns, where, and what help was given there."""

    learner: str
    player: Player
    view: str = "list"  # or step, review, games
    lesson: str = ""
    step: str = ""
    hints: int = 0
    solution: bool = False
    chosen: int | None = None  # the answer given last
    answered: bool = False
    tried: set[str] = field(default_factory=set)
    refusal: tuple[str, str] | None = None  # the move refused last, and why; told until another is played
    refused_at: int = 0  # the position that it was asked for at
    review: Review | None = None
    reviewed: str = ""  # the id of the game under review
    finding: int | None = None  # of the review, on the board
    revealed: int = 0  # levels of help with it
    fault: str = ""
    acknowledged: dict[str, int] = field(default_factory=dict)  # the last event of each page

    @property
    def secret(self) -> bool:
        """Are the times of moves kept back? In a review the better move is to be found before it is told."""
        review = self.review
        if review is None or not any(each.better for each in review.findings):
            return False
        return self.finding is None or (bool(review.findings[self.finding].better) and self.revealed < 3)

    def forget_help(self) -> None:
        self.hints, self.solution, self.chosen, self.answered = 0, False, None, False
        self.tried, self.refusal, self.fault = set(), None, ""


class Desk:
    """One for the process. A seat is used by one tab at a time."""

    def __init__(self, service: Service, school: School, progress: Progress) -> None:
        self.service, self.school, self.progress = service, school, progress
        self.stamp: object = None  # of the files that the school was read from

    # ------------------------------------------------------------------ where one is

    def place(self, seat: Seat) -> tuple[Lesson, Step] | None:
        lesson = self.school.lesson(seat.lesson)
        step = lesson.step(seat.step) if lesson is not None else None
        return (lesson, step) if lesson is not None and step is not None else None

    def open(self, seat: Seat, lesson: str, step: str = "") -> None:
        """Go to a step: the named one, else the first of the lesson that is not done."""
        found = self.school.lesson(lesson)
        if found is None:
            self.leave(seat)
            seat.fault = "There is no such lesson here."
            return
        done = self.progress.done(seat.learner)
        to_do = next((each for each in found.steps if (found.id, each.id) not in done), found.steps[0])
        chosen = found.step(step) or to_do
        self._end_review(seat)
        seat.view, seat.lesson, seat.step = "step", found.id, chosen.id
        seat.forget_help()
        self.progress.keep_place(seat.learner, found.id, chosen.id)
        self._sit(seat, found, chosen)

    def leave(self, seat: Seat) -> None:
        """Back to the list."""
        self._end_review(seat)
        seat.view, seat.lesson, seat.step, seat.fault = "list", "", "", ""
        self.service.leave(seat.player)

    def _end_review(self, seat: Seat) -> None:
        if seat.review is not None:
            seat.review.stop()
        seat.review = seat.finding = None

    def _sit(self, seat: Seat, lesson: Lesson, step: Step) -> None:
        """At the learner's own game of a step; a new one where the lesson has changed since."""
        kept = self.progress.game(seat.learner, lesson.id, step.id)
        if kept is not None:
            try:
                self.service.seat(seat.player, kept, step.measured)
                table = seat.player.table
                ours = table is not None and not seat.player.watching
                if table is not None and ours and table.game.start == step.begin.current.program:
                    return
            except Refused:
                log.info("the game %s of %s is gone", kept, step.id)
        game = step.game()
        game.id = f"{SCHOOL_GAMES}{secrets.token_hex(6)}"
        self.service.take_in(game, seat.player.owner)
        self.progress.keep_game(seat.learner, lesson.id, step.id, game.id)
        self.service.seat(seat.player, game.id, step.measured)

    def game(self, seat: Seat) -> Game | None:
        return seat.player.table.game if seat.player.table is not None else None

    # ------------------------------------------------------------------ what the page sends

    def hear(self, seat: Seat, client: object, events: object) -> str | None:
        """A page's events in order, each number once: what is not acknowledged comes again.

        Gives the id of a game where one is to be opened on Play. Both may be anything: see service/events.py.
        """
        name, game = client_name(client), None
        for event in sound(events):
            if event["seq"] > seat.acknowledged.get(name, 0):
                seat.acknowledged[name] = event["seq"]
                game = self.handle(seat, event) or game
        while len(seat.acknowledged) > KEPT_CLIENTS:
            seat.acknowledged.pop(next(iter(seat.acknowledged)))
        return game

    def handle(self, seat: Seat, event: object) -> str | None:
        """One event of the panel. Gives the id of a game where it is to be opened on Play."""
        if not isinstance(event, dict):
            return None

        def said(name: str) -> str:
            value = event.get(name, "")
            return value[:200] if isinstance(value, str) else ""

        number = event.get("number")
        at = number if isinstance(number, int) and not isinstance(number, bool) else -1
        try:
            match said("kind"):
                case "open":
                    self.open(seat, said("lesson"), said("step"))
                case "list":
                    self.leave(seat)
                case "games":
                    self.leave(seat)
                    seat.view = "games"
                case "review":
                    self.review(seat, said("game"))
                case "finding":
                    self._show_finding(seat, at)
                case "verdict":
                    self._show_verdict(seat, at)
                case "reveal":
                    seat.revealed = min(3, seat.revealed + 1)
                case "to_play":
                    return self.for_play(seat)
                case kind if seat.view == "step":
                    self._at_step(seat, kind, at)
        except (Refused, DatabaseFault) as refusal:
            seat.fault = str(refusal)
        return None

    def _at_step(self, seat: Seat, kind: str, number: int) -> None:
        place = self.place(seat)
        if place is None:
            return
        _, step = place
        match kind:
            case "hint":
                seat.hints = min(len(step.hints), seat.hints + 1)
            case "solution":
                seat.solution = True
            case "show_me":
                seat.solution = True
                self._play_solution(seat, step)
            case "reset":
                seat.tried, seat.refusal, seat.chosen = set(), None, None
                self._go_back(seat)
            case "answer" if step.question is not None and 0 <= number < len(step.question.answers):
                seat.chosen = number
                seat.answered = seat.answered or step.question.answers[number].right

    def _go_back(self, seat: Seat) -> None:
        game = self.game(seat)
        if game is not None:
            self.service.branch(game.id, 0, [], seat.player.owner, go=True)

    def _play_solution(self, seat: Seat, step: Step) -> None:
        game = self.game(seat)
        if game is None:
            return
        try:
            end, tried = played(step, step.solution)
        except Unplayable as stopped:
            raise Refused(f"This lesson's solution stops: {stopped}") from stopped
        seat.tried |= tried
        moves = [str(position.move) for position in end.line()[1:]]
        self.service.branch(game.id, 0, moves, seat.player.owner, go=True)

    def for_play(self, seat: Seat) -> str | None:
        """A game of one's own, as it stands on the board, for the page Play."""
        game = self.game(seat)
        if game is None:
            return None
        copy, original = self.service.copied(game.id)
        return self.service.take_in(copy, seat.player.owner, once=True, of=original)

    # ------------------------------------------------------------------ what happened on the board

    def look(self, seat: Seat) -> tuple[list[Seen], bool]:
        """(each goal as it stands, is the step reached); what is reached is kept as progress."""
        place = self.place(seat)
        game = self.game(seat)
        if place is None or game is None:
            return [], False
        lesson, step = place
        refused = seat.player.refused
        if refused is not None:
            seat.tried.add(refused[0])
            seat.refusal, seat.refused_at = refused, game.cursor
            seat.player.refused = None
        if seat.refusal is not None and seat.refused_at != game.cursor:
            seat.refusal = None
        situation = step.situation(game, frozenset(seat.tried), self._speed_up(seat, step))
        seen = [goal.look(situation) for goal in step.goals]
        reached = all(each.reached for each in seen) and (step.question is None or seat.answered)
        if reached:
            self.progress.finish(seat.learner, lesson.id, step.id, seat.solution)
        return seen, reached

    def _speed_up(self, seat: Seat, step: Step) -> float | None:
        table = seat.player.table
        if table is None or not any(goal.measured for goal in step.goals):
            return None
        first, now = self.service.known(table, [table.game.start.hash, table.game.current.program.hash])
        if first is None or now is None or not (first.ok and now.ok and now.seconds > 0):
            return None
        return first.seconds / now.seconds

    # ------------------------------------------------------------------ review

    def review(self, seat: Seat, game_id: str) -> None:
        """Go through a saved game. Raises Refused."""
        self.leave(seat)
        game, original = self.service.copied(game_id)
        game.id = f"{SCHOOL_GAMES}{secrets.token_hex(6)}"
        game.goto(0)
        self.service.take_in(game, seat.player.owner, of=original)
        self.service.seat(seat.player, game.id, False)
        table = seat.player.table
        assert table is not None

        def known(hashes: Sequence[str]) -> Sequence[Outcome | None]:
            return self.service.known(table, hashes)

        seat.view, seat.reviewed, seat.finding, seat.revealed = "review", game_id, None, 0
        seat.review = Review(Game.from_text(game.to_text()), known).begin()

    def _show_finding(self, seat: Seat, number: int) -> None:
        game, review = self.game(seat), seat.review
        if review is None or game is None or not 0 <= number < len(review.findings):
            return
        if seat.finding != number:
            seat.finding, seat.revealed = number, 0
        self.service.branch(game.id, review.findings[number].position, [], seat.player.owner, go=True)

    def _show_verdict(self, seat: Seat, ply: int) -> None:
        """The position before a move of the line."""
        game, review = self.game(seat), seat.review
        if review is not None and game is not None and 1 <= ply <= review.moves:
            seat.finding, seat.revealed = None, 0
            self.service.branch(game.id, review.line[ply - 1].id, [], seat.player.owner, go=True)

    def games(self, seat: Seat) -> list[Json]:
        """Saved games that can be reviewed."""
        return library.cards(self.service.recent_games(LISTED, seat.player.owner))

    # ------------------------------------------------------------------ for the page

    def note(self, seat: Seat, step: Step) -> list[list[str]]:
        """What the lesson says to the last try, where it says something."""
        game = self.game(seat)
        last = game.current.move if game is not None else None
        for text in ([seat.refusal[0]] if seat.refusal else []) + ([str(last)] if last is not None else []):
            for note in step.notes:
                if note.fits(text):
                    return note.words
        return []

    def solution_words(self, step: Step) -> list[Json]:
        """A solution as a page lists it."""
        return [{"move": each.removeprefix(TRY), "refused": each.startswith(TRY)} for each in step.solution]
