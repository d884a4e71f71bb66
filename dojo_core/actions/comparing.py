"""Comparing: a position beside the start, what the pass plays, PyTorch and other implementations."""

from __future__ import annotations

from collections.abc import Sequence

from dojo_core.bench.baselines import BASELINES
from dojo_core.game import Game
from dojo_core.service.comparing import MOST, Contender, Spec, board_contender
from dojo_core.targets.registry import backend

NAMES = ("start", "heuristic", *BASELINES)
OTHERS = MOST - 1  # entries beside the position


class NotComparable(ValueError):
    """Nothing can be compared so; ``str()`` is a sentence."""


def comparison_of(game: Game, against: Sequence[str], rounds: int = 10) -> Spec:
    """The position where a game stands beside others by their names. Raises NotComparable."""
    if not backend(game.target).native:
        raise NotComparable(
            f"Comparisons are of this computer's processor, not of {game.target}: open the kernel for cpu."
        )
    if not isinstance(rounds, int) or rounds < 1:
        raise NotComparable(f"A comparison takes a whole number of rounds, at least one, not {rounds!r}.")
    contenders = [board_contender(game, "this position") or Contender("start", "start")]
    for name in dict.fromkeys(against):
        if name in BASELINES and game.kernel is None:
            raise NotComparable(f"{name} is compared on kernels that have a name, not on a text of your own.")
        if name in BASELINES:
            contenders.append(Contender("baseline", BASELINES[name].name, baseline=name))
        elif name not in NAMES:
            raise NotComparable(f"{name!r} is nothing to compare with. There are: {', '.join(NAMES)}.")
        elif name != contenders[0].kind:
            contenders.append(Contender(name, name))
    if len(contenders) < 2:
        raise NotComparable("This is the start itself: name something else to compare it with.")
    return Spec(game.kernel, game.shape, game.start.text, game.policy, tuple(contenders), rounds)
