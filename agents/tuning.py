"""Tuning a position with an agent on this machine: measured, logged, resumable; the best line becomes a game.

The command line and the app drive this alike: the one prints the events, the other reads them in a thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agents.agent import Agent, Best, Budget, Control, Event, PlayerFailed, Task, run
from agents.outside import Answer, Ask
from agents.run_log import LoggedTiming, RunKey, RunLog, SharedStart, run_file
from agents.timing import MachineTiming, Timing
from dojo_core.game import Game
from dojo_core.measure.measurement import Effort
from dojo_core.measure.records import SavedGame
from dojo_core.moves.core import Move
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.registry import backend, base


def key_of(game: Game, agent: Agent, budget: Budget, seed: int, machine: str, lanes: int = 1) -> RunKey:
    """What makes a run this one and no other."""
    return RunKey(
        kernel=game.kernel or game.start.name,
        shape=game.shape,
        policy=game.policy,
        target=base(game.target),
        start=game.start.hash,
        before=tuple(map(str, Task(game).before)),
        agent=f"{agent.name}-{agent.version}" if agent.version else agent.name,
        seed=seed,
        evaluations=budget.evaluations,
        seconds=budget.seconds,
        machine=machine,
        lanes=lanes,
    )


class Tuning:
    """One run. Iterate over ``events`` once; ``control`` pauses and stops it from another thread.

    A run that was stopped goes on where it was, unless it is begun ``again``. ``log`` is where its log lies,
    if not with the others; with ``keep`` the best line becomes a game of its own in the records; ``machine``
    is the fingerprint of the times that ``timing`` gives, if not this machine's; ``lanes`` as in ``run``;
    ``start`` is where the time of the program it begins from is kept that it shares with others, if it does.
    Raises RunBusy while another process is at it, and PlayerFailed where the agent cannot play here.
    """

    def __init__(
        self,
        game: Game,
        agent: Agent,
        measurer: Measurer,
        budget: Budget,
        seed: int = 0,
        again: bool = False,
        timing: Timing | None = None,
        log: Path | None = None,
        keep: bool = True,
        machine: str | None = None,
        lanes: int = 1,
        start: Path | None = None,
    ) -> None:
        if unfit := agent.unfit(game):
            raise PlayerFailed(unfit)
        self.task, self.agent, self.budget, self.seed = Task(game), agent, budget, seed
        self.control = Control()
        self._measurer = measurer
        self._timing = timing or MachineTiming(measurer, agent.name)
        origin = backend(game.target).clock().origin
        machine = machine or (origin.fingerprint if origin else measurer.machine.fingerprint)
        self._key = key_of(game, agent, budget, seed, machine, lanes)
        if start is not None:
            self._timing = SharedStart(start, self._key, game.current.program.hash, self._timing)
        self._lanes = lanes
        self._keeping = keep
        self._log = RunLog(log or run_file(self._key), self._key, again)
        self.resumed = len(self._log.known)  # measurements that an earlier part made
        self.was_done = self._log.result is not None

    @property
    def answers(self) -> Sequence[Answer]:
        """What the agent was answered from outside, in earlier parts of the run too."""
        return self._log.answers

    def events(self) -> Iterator[Event]:
        """What happens, as it happens; those of an earlier part come first, and at once.

        Raises PlayerFailed where the agent cannot go on.
        """
        with self._log as log:
            began = time.monotonic() - log.spent

            def elapsed() -> float:
                return time.monotonic() - began - self.control.waited

            def consult(question: str, ask: Ask) -> Answer:
                return log.answered(question, ask, elapsed)

            timing = LoggedTiming(log, self._timing, elapsed)
            last: Event | None = None
            for last in run(
                replace(self.task, consult=consult),
                self.agent,
                timing,
                self.budget,
                self.seed,
                self.control,
                log.spent,
                lanes=self._lanes,
                known=sum(effort is not Effort.FINAL for effort, _ in log.known),
            ):
                yield last
            if last is None or last.best is None:
                return
            if self._keeping:
                self._keep(last.best)
            if log.result is None and not self.control.stopped:
                line = [str(move) for move in last.best.line]
                log.done(evaluations=last.evaluation, seconds=last.best.seconds, line=line)

    def close(self) -> None:
        """Let go of a run that nobody iterates over."""
        self._log.close()

    def game(self, best: Best) -> Game:
        """A game of the best line, from the start program on."""
        return game_of(self.task.game, best.line, self.agent.name)

    def _keep(self, best: Best) -> None:
        """Save the game of the best line, once for each run."""
        records = self._measurer.records
        if records is not None:
            game = self.game(best)
            identity = self._key.name.rsplit("-", 1)[1].removesuffix(".jsonl")
            saved = SavedGame(identity, self.agent.name, game.kernel or "", game.title, game.to_text())
            records.save_game(saved)


def game_of(begun: Game, line: Sequence[Move], player: str) -> Game:
    """A game of a player's line, from the start program of the game that was begun."""
    game = Game.new(
        begun.start, begun.kernel, begun.shape, begun.target, begun.policy, f"{begun.title}, {player}"
    )
    for move in line:
        game.play(move)
    return game
