"""The game as a Gymnasium environment: a position is an observation, its legal moves are the actions.

The set of actions differs at each position, so an action is a number in the list of legal moves, which
``info`` has; 0 is to stop. Reward is c/T after every move, c the start program's time and T the
position's, so it is the speed-up (PerfDojo, SC '25, section 3). The times come from a ``Timing``: with a
recorded table the environment is deterministic.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from agents.agent import Task
from agents.timing import Timing
from agents.trail import Trail
from dojo_core.game import Step
from dojo_core.measure.measurement import Effort, Measurement
from dojo_core.moves.api import legal_moves
from dojo_core.moves.core import Move

STOP = 0
LONGEST = 1 << 16  # characters of a program's text, longer ones being cut off
CHARACTERS = frozenset(map(chr, range(32, 127))) | {"\n"}

Info = dict[str, Any]


class DojoEnv(gymnasium.Env[str, np.int64]):
    """One episode is one line of moves from the position at the task's game's cursor.

    Observation: the program's text. Action: 0 stops; k is the k-th of ``info["moves"]``, a tuple of texts;
    ``info["action_mask"]`` has 1 where there is such a move. A number beyond them plays nothing. An episode
    ends with stop (terminated) or after ``most_moves`` (truncated). ``info["seconds"]`` is the position's
    time, None where it failed (reward 0), as ``info["status"]`` says.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        task: Task,
        timing: Timing,
        most_moves: int = 60,
        most_actions: int = 1024,
        render_mode: str | None = None,
    ) -> None:
        self.task, self.timing = task, timing
        self.most_moves, self.render_mode = most_moves, render_mode
        self.action_space = spaces.Discrete(most_actions)
        self.observation_space = spaces.Text(LONGEST, charset=CHARACTERS)
        self._start = Trail.at(task.game)
        self._trail = self._start
        self._legal: tuple[Move, ...] = ()
        self._first: float | None = None
        self._measurement: Measurement | None = None

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Back to the start position. Raises ValueError where it cannot be measured."""
        super().reset(seed=seed)
        self._trail = self._start
        self._measurement = self._measured()
        if self._measurement.seconds is None:
            raise ValueError(f"The start position cannot be measured. {self._measurement.message}")
        self._first = self._measurement.seconds
        return self._observed()

    def step(self, action: int | np.int64) -> tuple[str, float, bool, bool, Info]:
        """Play a move, or stop. Raises gymnasium.error.ResetNeeded before the first reset."""
        if self._measurement is None or self._first is None:
            raise gymnasium.error.ResetNeeded("Call reset before step.")
        if STOP < int(action) <= len(self._legal):
            moved = self._trail.extended(Step(self._legal[int(action) - 1], self._trail.born))
            assert moved is not None  # it was listed as legal
            self._trail = moved
            self._measurement = self._measured()
        seconds = self._measurement.seconds
        reward = self._first / seconds if seconds else 0.0
        observation, info = self._observed()
        truncated = len(self._trail.steps) >= self.most_moves
        return observation, reward, int(action) == STOP, truncated, info

    def render(self) -> str | None:
        """The position's text, with ``render_mode="ansi"``."""
        return self._trail.program.text if self.render_mode == "ansi" else None

    def action_masks(self) -> npt.NDArray[np.int8]:
        """1 for each action that does something here: stop, and the legal moves."""
        mask = np.zeros(int(self.action_space.n), np.int8)
        mask[: len(self._legal) + 1] = 1
        return mask

    def _measured(self) -> Measurement:
        trail = self._trail
        line = "\n".join(map(str, (*self.task.before, *trail.moves)))
        lines = {trail.program.hash: line}
        return self.timing.measure(self.task.workload, [trail.program], lines, Effort.QUICK, lambda: False)[0]

    def _observed(self) -> tuple[str, Info]:
        assert self._measurement is not None
        trail = self._trail
        room = int(self.action_space.n) - 1
        self._legal = legal_moves(trail.program, trail.target, trail.policy)[:room]
        info = {
            "moves": tuple(map(str, self._legal)),
            "action_mask": self.action_masks(),
            "seconds": self._measurement.seconds,
            "status": self._measurement.status,
            "line": tuple(map(str, trail.moves)),
        }
        return trail.program.text[:LONGEST], info
