"""The game as a Gymnasium environment: a position is an observation, its legal moves are the actions.

``gymnasium.make("agents.environment:Dojo-v1", kernel="softmax:16x64", target="snitch")`` makes one; once this
module is imported, ``"Dojo-v1"`` is its name (docs/gymnasium.md).

The set of actions differs at each position, so an action is a number in the list of legal moves, which
``info`` has; 0 is to stop. Reward is c/T after every move, c the start program's time and T the
position's, so it is the speed-up (PerfDojo, SC '25, section 3). The times come from a ``Timing``: with a
recorded table, a count or a model the environment is deterministic.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import CustomSpaceError
from gymnasium.vector.utils import create_shared_memory

from agents.agent import Task
from agents.search.features import FEATURES, features
from agents.shared_timing import SharedTiming
from agents.timing import CountTiming, Timing
from agents.trail import Trail
from dojo_core.game import Game, Step
from dojo_core.measure.measurement import Effort, Measurement
from dojo_core.moves.api import legal_moves
from dojo_core.moves.core import Move
from dojo_core.opening import named_game
from dojo_core.program.target import DEFAULT_TARGET

STOP = 0
LONGEST = 1 << 16  # characters of a program's text, longer ones being cut off
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))
MOST_COUNT = 64.0  # a feature is log2(1 + count): of counts that any program reaches

Info = dict[str, Any]
Observation = Any  # a text or an array, or a dictionary with one of these and the mask
Observed = Literal["text", "features"]


class DojoEnv(gymnasium.Env[Observation, np.int64]):
    """One episode is one line of moves from the position at the task's game's cursor.

    Observation: the program's text (``Text``), or with ``observed="features"`` what a cost model sees of it
    (``Box``, f32, one number from 0 to 64 for each of ``agents.search.features.FEATURES``); with ``masked`` a
    ``Dict`` of ``observation`` and ``action_mask``. Action (``Discrete(most_actions)``): 0 stops; k is the
    k-th of ``info["moves"]``, a tuple of texts. The mask, in ``info["action_mask"]`` and from
    ``action_masks()`` too, is i8 and has 1 where an action does something. A number beyond the moves plays
    nothing; moves beyond ``most_actions`` are left out.

    An episode ends with stop (terminated) or after ``most_moves`` (truncated). ``info["seconds"]`` is the
    position's time, None where it failed (reward 0), as ``info["status"]`` says.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        task: Task,
        timing: Timing,
        most_moves: int = 60,
        most_actions: int = 1024,
        render_mode: str | None = None,
        observed: Observed = "text",
        masked: bool = False,
    ) -> None:
        if most_actions < 1 or most_moves < 1:
            raise ValueError("An episode has at least one move, and at least one action to choose from.")
        self.task, self.timing = task, timing
        self.most_moves, self.render_mode = most_moves, render_mode
        self.observed, self.masked = observed, masked
        self.action_space = spaces.Discrete(most_actions)
        self.observation_space = _space(observed)
        if masked:
            mask = spaces.Box(0, 1, (most_actions,), np.int8)
            self.observation_space = spaces.Dict(observation=self.observation_space, action_mask=mask)
        self._start = Trail.at(task.game)
        self._trail = self._start
        self._legal: tuple[Move, ...] = ()
        self._first: float | None = None
        self._measurement: Measurement | None = None

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Back to the start position. Raises ValueError where it cannot be measured."""
        super().reset(seed=seed)
        self._trail = self._start
        self._measurement = self._measured()
        if self._measurement.seconds is None:
            raise ValueError(f"The start position cannot be measured. {self._measurement.message}")
        self._first = self._measurement.seconds
        return self._seen()

    def step(self, action: int | np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Play a move, or stop. Raises gymnasium.error.ResetNeeded before the first reset, and
        InvalidAction."""
        if self._measurement is None or self._first is None:
            raise gymnasium.error.ResetNeeded("Call reset before step.")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(
                f"An action is a number from 0 to {self.action_space.n - 1}, the k-th of info['moves'], "
                f"not {action!r:.60}."
            )
        if STOP < action <= len(self._legal):
            moved = self._trail.extended(Step(self._legal[int(action) - 1], self._trail.born))
            assert moved is not None  # it was listed as legal
            self._trail = moved
            self._measurement = self._measured()
        seconds = self._measurement.seconds
        reward = self._first / seconds if seconds else 0.0
        observation, info = self._seen()
        truncated = len(self._trail.steps) >= self.most_moves
        return observation, reward, int(action) == STOP, truncated, info

    def render(self) -> str | None:
        """The position's text, with ``render_mode="ansi"``."""
        return self._trail.program.text if self.render_mode == "ansi" else None

    def action_masks(self) -> npt.NDArray[np.int8]:
        """1 for each action that does something here: stop, and the legal moves. The name is that by which
        sb3-contrib asks for it."""
        mask = np.zeros(int(self.action_space.n), np.int8)
        mask[: len(self._legal) + 1] = 1
        return mask

    def close(self) -> None:
        """Let go of the clock, where it is shared."""
        if isinstance(self.timing, SharedTiming):
            self.timing.close()

    def _measured(self) -> Measurement:
        trail = self._trail
        line = "\n".join(map(str, (*self.task.before, *trail.moves)))
        lines = {trail.program.hash: line}
        return self.timing.measure(self.task.workload, [trail.program], lines, Effort.QUICK, lambda: False)[0]

    def _seen(self) -> tuple[Observation, Info]:
        assert self._measurement is not None
        trail = self._trail
        room = int(self.action_space.n) - 1
        self._legal = _legal(trail.program, trail.target, trail.policy)[:room]
        mask = self.action_masks()
        info = {
            "moves": tuple(map(str, self._legal)),
            "action_mask": mask,
            "seconds": self._measurement.seconds,
            "status": self._measurement.status,
            "line": tuple(map(str, trail.moves)),
        }
        seen: Observation
        if self.observed == "text":
            seen = trail.program.text[:LONGEST]
        else:
            seen = np.minimum(_features(trail.program), MOST_COUNT).astype(np.float32)
        return {"observation": seen, "action_mask": mask} if self.masked else seen, info


# Episodes begin at one position, and many go on alike.
_legal = lru_cache(maxsize=1024)(legal_moves)
_features = lru_cache(maxsize=1024)(features)


class ProgramText(spaces.Text):
    """The texts of programs."""

    def __init__(self) -> None:
        super().__init__(LONGEST, charset=CHARACTERS)


@create_shared_memory.register(ProgramText)
def _no_shared_memory(space: ProgramText, *_: object, **__: object) -> None:
    """Gymnasium's AsyncVectorEnv reads a text from shared memory once, before there is one, and would show
    that for good. Raised so, it tells its user to set ``shared_memory=False``."""
    raise CustomSpaceError("Texts are not shared between processes.")


def _space(observed: str) -> spaces.Space[Any]:
    if observed == "text":
        return ProgramText()
    if observed == "features":
        return spaces.Box(0.0, MOST_COUNT, (len(FEATURES),), np.float32)
    raise ValueError(f"An observation is 'text' or 'features', not {observed!r}.")


def make(
    kernel: str | Game,
    target: str = DEFAULT_TARGET,
    policy: str = "reassoc",
    clock: Literal["machine", "count"] = "machine",
    player: str = "",
    **settings: Any,
) -> DojoEnv:
    """What ``gymnasium.make("Dojo-v1", …)`` makes.

    ``kernel``: a kernel's name, with a shape behind it (``"softmax:1024x512"``) or at its first shape, a
    layer's name, or a game, which is played from its cursor on. ``clock``: this machine's for the target, or
    a count of operations, which runs nothing and is the same everywhere. With a ``player`` times are kept in
    the records under that name. ``settings`` are those of ``DojoEnv``. Raises ValueError with a sentence.
    """
    if clock not in ("machine", "count"):
        raise ValueError(f"The clock is 'machine' or 'count', not {clock!r}.")
    game = kernel if isinstance(kernel, Game) else named_game(kernel, target=target, policy=policy)
    return DojoEnv(Task(game), SharedTiming(player) if clock == "machine" else CountTiming(), **settings)


# Times of a machine are never twice the same.
gymnasium.register("Dojo-v1", "agents.environment:make", nondeterministic=True)
