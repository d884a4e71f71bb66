"""The tutor: what the page Learn talks to. It seats a learner at a step's game, checks goals, gives help.

Play itself is the service's: a step's game is a game like any other, with a name of its own in the store.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dojo_core.game import Game
from dojo_core.measure.database import DatabaseFault
from dojo_core.measure.measurement import Workload
from dojo_core.measure.speed import Speed
from dojo_core.program.tree import Program
from dojo_core.school.attempts import Attempt, asks_for, first_astray
from dojo_core.school.check import Unplayable, played
from dojo_core.school.gains import computed
from dojo_core.school.goals import Seen
from dojo_core.school.lesson import TRY, Lesson, Step
from dojo_core.school.progress import Progress
from dojo_core.school.review import Review
from dojo_core.school.school import School
from dojo_core.service import saved_games
from dojo_core.service.events import client_name, sound
from dojo_core.service.players import Player, Refused
from dojo_core.service.queue import Outcome
from dojo_core.service.service import Service
from dojo_core.service.sources import SCHOOL_GAMES
from dojo_core.service.view import Json

log = logging.getLogger(__name__)

KEPT_CLIENTS = 8  # pages of one session, whose event numbers are remembered
LISTED = 30  # games that can be reviewed


@dataclass
class TutoringSession:
    """One tab on the page: who learns, where, and what help was given there."""

    learner: str
    player: Player
    view: str = "list"  # or step, review, games
    lesson: str = ""
    step: str = ""
    hints: int = 0
    solution: bool = False
    blind: bool = False  # at a puzzle of one move that was not tried yet: times would give it away
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
    first_refused: str = ""  # at this step, of the moves that are not to be refused there
    attempt: Attempt | None = None  # what the witness was told last
    acknowledged: dict[str, int] = field(default_factory=dict)  # the last event of each page

    @property
    def secret(self) -> bool:
        """Are the times of moves kept back? In a review the better move is to be found before it is told, and
        at a puzzle of one move the one that gains."""
        if self.blind:
            return True
        review = self.review
        if review is None or not any(each.better for each in review.findings):
            return False
        return self.finding is None or (bool(review.findings[self.finding].better) and self.revealed < 3)

    def forget_help(self) -> None:
        self.hints, self.solution, self.chosen, self.answered = 0, False, None, False
        self.tried, self.refusal, self.fault = set(), None, ""
        self.first_refused, self.attempt = "", None


def _gain(step: Step, after: Program) -> Speed | None:
    """What a move that leads to a program gains at a puzzle of one move: by a model of the target, now, or as
    it is recorded."""
    if step.asked is None or step.gains is None:
        return None
    begin = step.begin
    now = computed(Workload(begin.current.program, None, begin.policy, begin.target), after)
    return now or step.gains.by_program.get(after.hash)


class Tutor:
    """One for the process, which has the sessions of all tabs go on; each session is one tab's."""

    def __init__(self, service: Service, school: School, progress: Progress) -> None:
        self.service, self.school, self.progress = service, school, progress
        self.stamp: object = None  # of the files that the school was read from
        self.witness: Callable[[str, Attempt], None] | None = None  # hears an owner's attempts as they change

    # ------------------------------------------------------------------ where one is

    def place(self, session: TutoringSession) -> tuple[Lesson, Step] | None:
        lesson = self.school.lesson(session.lesson)
        step = lesson.step(session.step) if lesson is not None else None
        return (lesson, step) if lesson is not None and step is not None else None

    def open(self, session: TutoringSession, lesson: str, step: str = "") -> None:
        """Go to a step: the named one, else the first of the lesson that is not done."""
        opened = self.school.lesson(lesson)
        if opened is None:
            self.leave(session)
            session.fault = "There is no such lesson here."
            return
        done = self.progress.done(session.learner)
        to_do = next((each for each in opened.steps if (opened.id, each.id) not in done), opened.steps[0])
        chosen = opened.step(step) or to_do
        self._end_review(session)
        session.view, session.lesson, session.step = "step", opened.id, chosen.id
        session.forget_help()
        self.progress.keep_place(session.learner, opened.id, chosen.id)
        session.blind = chosen.asked is not None and chosen.key not in self.progress.tried(session.learner)
        self._open_game(session, opened, chosen)

    def leave(self, session: TutoringSession) -> None:
        """Back to the list."""
        self._end_review(session)
        session.view, session.lesson, session.step, session.fault = "list", "", "", ""
        session.blind = False
        self.service.leave(session.player)

    def _end_review(self, session: TutoringSession) -> None:
        if session.review is not None:
            session.review.stop()
        session.review = session.finding = None

    def _open_game(self, session: TutoringSession, lesson: Lesson, step: Step) -> None:
        """The learner's own game of a step; a new one where the lesson has changed since."""
        game_id = self.progress.game(session.learner, lesson.id, step.id)
        if game_id is not None:
            try:
                self.service.seat(session.player, game_id, step.measured)
                table = session.player.table
                ours = table is not None and not session.player.watching
                if table is not None and ours and table.game.start == step.begin.current.program:
                    return
            except Refused:
                log.info("the game %s of %s is gone", game_id, step.id)
        game = step.game()
        game.id = f"{SCHOOL_GAMES}{secrets.token_hex(6)}"
        self.service.take_in(game, session.player.owner)
        self.progress.keep_game(session.learner, lesson.id, step.id, game.id)
        self.service.seat(session.player, game.id, step.measured)

    def game(self, session: TutoringSession) -> Game | None:
        return session.player.table.game if session.player.table is not None else None

    # ------------------------------------------------------------------ what the page sends

    def hear(self, session: TutoringSession, client: object, events: object) -> str | None:
        """A page's events in order, each number once: what is not acknowledged comes again.

        Gives the id of a game where one is to be opened on Play. Both may be anything: see service/events.py.
        """
        name, game = client_name(client), None
        for event in sound(events):
            if event["seq"] > session.acknowledged.get(name, 0):
                session.acknowledged[name] = event["seq"]
                game = self.handle(session, event) or game
        while len(session.acknowledged) > KEPT_CLIENTS:
            session.acknowledged.pop(next(iter(session.acknowledged)))
        return game

    def handle(self, session: TutoringSession, event: object) -> str | None:
        """One event of the panel. Gives the id of a game where it is to be opened on Play."""
        if not isinstance(event, dict):
            return None

        def text_of(name: str) -> str:
            value = event.get(name, "")
            return value[:200] if isinstance(value, str) else ""

        number = event.get("number")
        at = number if isinstance(number, int) and not isinstance(number, bool) else -1
        try:
            match text_of("kind"):
                case "open":
                    self.open(session, text_of("lesson"), text_of("step"))
                case "list":
                    self.leave(session)
                case "games":
                    self.leave(session)
                    session.view = "games"
                case "review":
                    self.review(session, text_of("game"))
                case "finding":
                    self._show_finding(session, at)
                case "verdict":
                    self._show_verdict(session, at)
                case "reveal":
                    session.revealed = min(3, session.revealed + 1)
                case "to_play":
                    return self.for_play(session)
                case "origin":
                    return self.original(session)
                case kind if session.view == "step":
                    self._at_step(session, kind, at)
        except (Refused, DatabaseFault) as refusal:
            session.fault = str(refusal)
        return None

    def _at_step(self, session: TutoringSession, kind: str, number: int) -> None:
        place = self.place(session)
        if place is None:
            return
        _, step = place
        match kind:
            case "hint":
                self._helped(session, step, None)
                session.hints = min(len(step.hints), session.hints + 1)
            case "solution":
                self._helped(session, step, False)
                session.solution = True
            case "show_me":
                self._helped(session, step, False)
                session.solution = True
                self._play_solution(session, step)
            case "reset":
                session.tried, session.refusal, session.chosen = set(), None, None
                self._go_back(session)
            case "answer" if step.question is not None and 0 <= number < len(step.question.answers):
                session.chosen = number
                session.answered = session.answered or step.question.answers[number].right

    def _go_back(self, session: TutoringSession) -> None:
        game = self.game(session)
        if game is not None:
            self.service.branch(game.id, 0, [], session.player.owner, go=True)

    def _play_solution(self, session: TutoringSession, step: Step) -> None:
        game = self.game(session)
        if game is None:
            return
        try:
            end, tried = played(step, step.solution)
        except Unplayable as stopped:
            raise Refused(f"This lesson's solution stops: {stopped}") from stopped
        session.tried |= tried
        moves = [str(position.move) for position in end.line()[1:]]
        self.service.branch(game.id, 0, moves, session.player.owner, go=True)

    def for_play(self, session: TutoringSession) -> str | None:
        """A game of one's own, as it stands on the board, for the page Play."""
        game = self.game(session)
        if game is None:
            return None
        copy, original = self.service.copied(game.id)
        return self.service.take_in(copy, session.player.owner, once=True, of=original)

    def original(self, session: TutoringSession) -> str | None:
        """The game that a puzzle was found in, at the puzzle's position, for the page Play. Raises
        Refused."""
        place = self.place(session)
        if place is None or place[1].origin is None:
            return None
        try:
            game = place[1].origin.game()
        except ValueError as stopped:
            raise Refused(f"The game cannot be played here: {stopped}") from stopped
        return self.service.take_in(game, session.player.owner, once=True)

    # ------------------------------------------------------------------ what happened on the board

    def look(self, session: TutoringSession) -> tuple[list[Seen], bool]:
        """(each goal as it stands, is the step reached); what is reached is kept as progress."""
        place = self.place(session)
        game = self.game(session)
        if place is None or game is None:
            return [], False
        lesson, step = place
        refused = session.player.refused
        if refused is not None:
            session.tried.add(refused[0])
            session.refusal, session.refused_at = refused, game.cursor
            session.player.refused = None
            if not asks_for(step, refused[0]):
                session.first_refused = session.first_refused or refused[0]
        if session.refusal is not None and session.refused_at != game.cursor:
            session.refusal = None
        tried, line = frozenset(session.tried), game.line()
        gain = _gain(step, line[1].program) if len(line) > 1 else None
        situation = step.situation(game, tried, self._speed_up(session, step), gain)
        self._keep_attempt(session, step, game)
        seen = [goal.look(situation) for goal in step.goals]
        reached = all(each.reached for each in seen) and (step.question is None or session.answered)
        if reached:
            self.progress.finish(session.learner, lesson.id, step.id, session.solution)
        self._tell_witness(session, lesson, step, reached)
        return seen, reached

    def _keep_attempt(self, session: TutoringSession, step: Step, game: Game) -> None:
        """The first move that was ever played at a puzzle of one move is the attempt."""
        first = game.children(0)
        if step.asked is None or not first or not session.blind:
            return
        gain = _gain(step, first[0].program)
        self.progress.attempt(session.learner, step.key, gain is not None and gain.low >= step.asked)
        session.blind = False

    def _helped(self, session: TutoringSession, step: Step, solved: bool | None) -> None:
        """Help before the attempt is the attempt: of a hint it is not rated, of the solution it is lost."""
        if step.asked is not None:
            self.progress.attempt(session.learner, step.key, solved)
            session.blind = session.blind and solved is None

    def _speed_up(self, session: TutoringSession, step: Step) -> float | None:
        table = session.player.table
        if table is None or not any(goal.measured for goal in step.goals):
            return None
        first, current = self.service.known(table, [table.game.start.hash, table.game.current.program.hash])
        if first is None or current is None or not (first.ok and current.ok and current.seconds > 0):
            return None
        return first.seconds / current.seconds

    def _tell_witness(self, session: TutoringSession, lesson: Lesson, step: Step, reached: bool) -> None:
        """Let the witness hear of the attempt where it has changed."""
        table = session.player.table
        if self.witness is None or table is None:
            return
        speed_up, seconds = self._speed_up(session, step), None
        if speed_up is not None:
            (here,) = self.service.known(table, [table.game.current.program.hash])
            seconds = None if here is None else here.seconds
        attempt = Attempt(
            lesson.id, step.id, reached, session.solution, session.first_refused,
            first_astray(step, table.game, reached), speed_up, seconds, table.game.id,
        )  # fmt: skip
        if attempt != session.attempt:
            session.attempt = attempt
            self.witness(session.player.owner, attempt)

    # ------------------------------------------------------------------ review

    def review(self, session: TutoringSession, game_id: str) -> None:
        """Go through a saved game. Raises Refused."""
        self.leave(session)
        game, original = self.service.copied(game_id)
        game.id = f"{SCHOOL_GAMES}{secrets.token_hex(6)}"
        game.goto(0)
        self.service.take_in(game, session.player.owner, of=original)
        self.service.seat(session.player, game.id, False)
        table = session.player.table
        assert table is not None

        def known(hashes: Sequence[str]) -> Sequence[Outcome | None]:
            return self.service.known(table, hashes)

        session.view, session.reviewed, session.finding, session.revealed = "review", game_id, None, 0
        session.review = Review(Game.from_text(game.to_text()), known).begin()

    def _show_finding(self, session: TutoringSession, number: int) -> None:
        game, review = self.game(session), session.review
        if review is None or game is None or not 0 <= number < len(review.findings):
            return
        if session.finding != number:
            session.finding, session.revealed = number, 0
        self.service.branch(game.id, review.findings[number].position, [], session.player.owner, go=True)

    def _show_verdict(self, session: TutoringSession, ply: int) -> None:
        """The position before a move of the line."""
        game, review = self.game(session), session.review
        if review is not None and game is not None and 1 <= ply <= review.moves:
            session.finding, session.revealed = None, 0
            self.service.branch(game.id, review.line[ply - 1].id, [], session.player.owner, go=True)

    def games(self, session: TutoringSession) -> list[Json]:
        """Saved games that can be reviewed."""
        return saved_games.cards(self.service.recent_games(LISTED, session.player.owner))

    # ------------------------------------------------------------------ for the page

    def note(self, session: TutoringSession, step: Step) -> list[list[str]]:
        """What the lesson says to the last try, where it says something."""
        game = self.game(session)
        last = game.current.move if game is not None else None
        for text in ([session.refusal[0]] if session.refusal else []) + (
            [str(last)] if last is not None else []
        ):
            for note in step.notes:
                if note.fits(text):
                    return note.words
        return []

    def solution_words(self, step: Step) -> list[Json]:
        """A solution as a page lists it."""
        return [{"move": each.removeprefix(TRY), "refused": each.startswith(TRY)} for each in step.solution]
