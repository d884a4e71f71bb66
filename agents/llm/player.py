"""A language model at play: asked, understood or told what was wrong, measured, told what came of it.

It sees one position at a time and goes on from what it made, or from any program before. An answer that
cannot be read, or a move that is refused, is told it and may answer again; after a few such a legal move is
played at random, and that is said.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from agents.agent import Agent, Budget, Costs, PlayerFailed, Proposals, Task, Thought
from agents.llm.chat import Chat, Message, TimeUp, Unheard
from agents.llm.prompt import MOST_MOVES, ROOM, RULES, Outcome, View, listed, question
from agents.llm.reply import MOST_READ, Choice, NoChoice, choice_of, cleaned
from agents.llm.settings import LlmSettings, fault_of
from agents.outside import Answer
from agents.trail import Trail
from dojo_core.extras import need
from dojo_core.game import MAX_MOVES, Step
from dojo_core.moves.api import legal_moves
from dojo_core.moves.core import Move, Refusal
from dojo_core.moves.legality import outcome
from dojo_core.moves.ways import with_enablers

START = 1  # the number of the start program
ANSWERS = 4  # to one question, until a move is played at random
AT_RANDOM = 3  # such moves in a row, until the run ends
NOTHING_NEW = 20  # choices in a row that lead to programs that are known, until the run ends
LONGEST_WAIT = 900.0  # seconds for an answer with all its tries, where the budget has no seconds
REPEATED = 1_000  # characters of an answer that is shown again beside what was wrong with it


class Model(Protocol):
    """Whoever answers: chat.py, local.py."""

    def room(self, most: int) -> int: ...

    def ask(
        self, messages: Sequence[Message], most: int, seconds: float, stopped: Callable[[], bool]
    ) -> Answer: ...


def model_of(settings: LlmSettings) -> Model:
    """Raises NotInstalled, and PlayerFailed where there is none."""
    if fault := fault_of(settings):
        raise PlayerFailed(fault)
    if settings.address:
        return Chat(settings)
    need("learn", "A language model on this machine")
    from agents.llm.local import Local  # with torch, whose import takes seconds

    return Local(settings)


def agent(settings: LlmSettings, model: Callable[[LlmSettings], Model] = model_of) -> Agent:
    """The player of these settings."""

    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        return _Player(task, budget, rng, settings, model(settings)).play()

    where = "that answers at an address" if settings.address else "on this machine"
    about = f"a language model {where}"
    return Agent(settings.name, about, strategy, settings.digest, lambda game: fault_of(settings))


@dataclass(frozen=True)
class _Chosen:
    """Where to go: to a new line by a ``move``, or ``back`` to a program by its number; or to ``stop``."""

    trail: Trail | None = None
    move: str = ""
    back: int = START
    stop: bool = False
    at_random: bool = False
    decision: str = "tried"


@dataclass
class _Player:
    """A run of it. Programs have numbers in the order in which they were measured, as in the run: the start
    is 1."""

    task: Task
    budget: Budget
    rng: random.Random
    settings: LlmSettings
    model: Model
    trails: dict[int, Trail] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # by program hash
    reached: dict[tuple[int, str], int] = field(default_factory=dict)  # by number and move
    at: int = START
    tokens: int = 0
    asked: float = 0.0  # seconds

    def play(self) -> Proposals:
        self._take(Trail.at(self.task.game), "", (yield [Trail.at(self.task.game)]))
        known = silent = 0
        while known < NOTHING_NEW and silent < AT_RANDOM and self.outcomes[START].seconds is not None:
            legal = legal_moves(self._trail.program, self._trail.target, self._trail.policy)
            try:
                choice = self._chosen(legal)
            except Unheard:
                return
            if choice.stop:
                return
            before = len(self.trails)
            silent = silent + 1 if choice.at_random else 0
            if choice.trail is None:
                self.at = choice.back
            else:
                self._take(choice.trail, choice.move, (yield [choice.trail]))
            known = 0 if len(self.trails) > before else known + 1

    @property
    def _trail(self) -> Trail:
        return self.trails[self.at]

    def _take(self, trail: Trail, move: str, costs: Costs) -> None:
        """Remember what a program came to, and go there, where it works."""
        number = self.numbers.setdefault(trail.program.hash, START + len(self.trails))
        if number not in self.trails:
            seconds = costs[0] if math.isfinite(costs[0]) else None
            self.trails[number] = trail
            self.outcomes[number] = Outcome(number, self.at, move, seconds)
        self.reached[self.at, move] = number
        if self.outcomes[number].seconds is not None:
            self.at = number

    def _chosen(self, legal: Sequence[Move]) -> _Chosen:
        """What the model chooses here. Raises Unheard, and PlayerFailed."""
        words, moves = question(self._view(legal), self.model.room(ROOM))
        messages: list[Message] = [
            {"role": "system", "content": RULES},
            {"role": "user", "content": words},
        ]
        here = self._trail.program.hash
        for _ in range(ANSWERS):
            left = self.settings.tokens - self.tokens
            if left <= 0:
                return self._ended(f"The {self.settings.tokens:,} tokens of this run are spent.")
            try:
                answer = self._answer(messages, min(left, self.settings.answer))
            except TimeUp:
                if self.budget.seconds is not None:
                    return self._ended("The seconds of this run are spent.")
                raise PlayerFailed(
                    f"{self.settings.name} did not answer within {LONGEST_WAIT:.0f} seconds: see whether "
                    "it works, then run this again."
                ) from None
            said = cleaned(answer.words)
            try:
                chosen = self._made(choice_of(answer.words, moves))
            except NoChoice as wrong:
                self._hear(here, "not taken", f"{said}\n→ {wrong}", answer)
                messages += [
                    {"role": "assistant", "content": said[-REPEATED:] or "(nothing)"},
                    {"role": "user", "content": str(wrong)},
                ]
                continue
            to = here if chosen.trail is None else chosen.trail.program.hash
            self._hear(to, chosen.decision, said, answer)
            return chosen
        return self._at_random(legal)

    def _at_random(self, legal: Sequence[Move]) -> _Chosen:
        here = self._trail.program.hash
        for move in self.rng.sample(legal, len(legal)):
            trail = self._trail.extended(Step(move, self._trail.born))
            if trail is not None:
                words = f"None of {ANSWERS} answers could be taken: this move was played at random."
                self.task.hear(Thought(trail.program.hash, here, "at random", words=words))
                return _Chosen(trail, str(move), at_random=True)
        return self._ended(f"None of {ANSWERS} answers could be taken, and no move is legal.")

    def _ended(self, why: str) -> _Chosen:
        """The run ends by no word of the model's."""
        here = self._trail.program.hash
        self.task.hear(Thought(here, here, "stop", words=why))
        return _Chosen(stop=True)

    def _hear(self, program: str, decision: str, words: str, answer: Answer) -> None:
        here = self._trail.program.hash
        self.task.hear(Thought(program, here, decision, words=words, tokens=answer.tokens, cost=answer.cost))

    def _answer(self, messages: Sequence[Message], most: int) -> Answer:
        seconds = LONGEST_WAIT
        if self.budget.seconds is not None:
            seconds = min(seconds, self.budget.seconds - self.asked)
        if seconds <= 0:
            raise TimeUp

        def ask() -> Answer:
            answer = self.model.ask(messages, most, seconds, self.task.stopped)
            return replace(answer, words=answer.words[-MOST_READ:])

        answer = self.task.consult("\n\n".join(message["content"] for message in messages), ask)
        self.tokens += answer.tokens
        self.asked += answer.seconds
        return answer

    def _made(self, choice: Choice) -> _Chosen:
        """What a choice comes to. Raises NoChoice with the reason where it is refused."""
        if choice.stop:
            return _Chosen(stop=True, decision="stop")
        if choice.back is not None:
            if choice.back not in self.trails or self.outcomes[choice.back].seconds is None:
                raise NoChoice(f"There is no program {choice.back} to go back to, or it failed.")
            if choice.back == self.at:
                raise NoChoice(f"You are at program {choice.back}: name a move, or another program.")
            return _Chosen(back=choice.back, decision=f"back to {choice.back}")
        assert choice.move is not None
        trail = self._trail.extended(Step(choice.move, self._trail.born))
        if trail is None:
            raise NoChoice(self._why_not(choice.move))
        return _Chosen(trail, str(choice.move))

    def _why_not(self, move: Move) -> str:
        if len(self._trail.steps) >= MAX_MOVES:
            return f"A line has {MAX_MOVES} moves at most: go back to a program, or stop."
        context = self._trail.context()
        result = outcome(context, move)
        if not isinstance(result, Refusal):
            return f"{move} names what is no longer there."
        return f"{move} is not legal here. {with_enablers(context, move, result, longest=1)}"

    def _view(self, legal: Sequence[Move]) -> View:
        game, here = self.task.game, self.outcomes[self.at]
        known = {
            move: self.outcomes[number].seconds
            for (parent, move), number in self.reached.items()
            if parent == self.at
        }
        return View(
            game.title, game.target, game.policy, self._trail.program, self.at, here.seconds,
            self.outcomes[START].seconds, tuple(self.outcomes.values()), listed(legal, MOST_MOVES),
            len(legal), known,
        )  # fmt: skip
