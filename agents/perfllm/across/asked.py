"""What a policy says of a position, in words and numbers: for hints, and for those who watch.

torch is imported with the first policy that is asked, once for the process.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from agents.perfllm.across import weights
from agents.perfllm.actions import actions_in_turn
from agents.trail import Trail
from dojo_core.extras import absent, sentence
from dojo_core.game import Game
from dojo_core.service.learned import LIKELIEST, Learned, LearnedMove
from dojo_core.service.view import difference

if TYPE_CHECKING:
    from agents.perfllm.across.policy import Policy

MOST = 400  # moves of a position that are weighed; of more some of each kind


def shipped_says(game: Game) -> Learned:
    """What the policy that comes with the Dojo for a game's target says of its cursor; where there is none,
    or nothing to run it with, a sentence alone."""
    why_not = silent(game.target)
    if why_not:
        return Learned(why_not)
    import torch

    from agents.perfllm.across.saved import shipped

    torch.set_num_threads(1)  # a position is little work, and others measure beside it
    policy = shipped(game.target)
    assert policy is not None
    trail = Trail.at(game)
    return said(policy, trail, familiar(game.kernel, game.shape, weights.seen(game.target)))


def silent(target: str) -> str:
    """Why no policy that comes with the Dojo says anything for a target; empty where one does."""
    if weights.folder_of(target) is None:
        return f"Nothing was learned for {target} so far, only for {' and '.join(weights.targets())}."
    return f"{sentence('learn', 'What was learned', names)}." if (names := absent("learn")) else ""


def said(policy: Policy, trail: Trail, words: str) -> Learned:
    """What a policy says of a line's end: the likeliest moves of all that are legal there."""
    actions = list(islice(actions_in_turn(trail, random.Random(trail.program.hash)), MOST))
    logits = policy.weigh(trail, actions)
    weighed = np.exp(logits - logits.max())
    stop, *probabilities = (weighed / weighed.sum()).tolist()
    before = trail.program.text
    likeliest = sorted(zip(probabilities, actions, strict=True), key=lambda each: -each[0])[:LIKELIEST]
    return Learned(
        words,
        stop,
        tuple(
            LearnedMove(move, probability, tuple(difference(before, after.text, context=False)))
            for probability, (after, move) in likeliest
        ),
    )


def familiar(kernel: str | None, shape: str, seen: Iterable[tuple[str, str]]) -> str:
    """Whether a policy has seen a kernel in training, as a sentence. ``seen``: kernels with shapes."""
    known = sorted(seen)
    if not known:
        return "Its model card does not say on which kernels it has learned."
    shapes = [s for name, s in known if name == kernel]
    if not shapes:
        return "It has never seen this kernel."
    if shape in shapes:
        return "It has learned on this kernel, in this shape."
    return f"It has learned on this kernel, as {' and '.join(shapes)}."
