"""PerfLLM with what it knows of other kernels: a target's policy guides the search, and lends it lines.
``perfllm-unguided`` is the same search without: what was learned is worth the difference. ``perfllm-onward``
begins with the line of the target's pass: what is left to find behind it."""

from __future__ import annotations

import random

from agents.agent import Budget, Proposals, Task
from agents.passes import pass_moves
from agents.perfllm import agent as scratch
from agents.perfllm.across.policy import Policy
from agents.perfllm.across.saved import parsed, shipped
from agents.perfllm.across.search import Search, SearchSettings
from agents.perfllm.settings import Settings
from agents.search.restarts import PASS
from agents.trail import Trail
from dojo_core.targets.registry import backend


def play(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    """Search as a target's policy guides it; where there is none for the target, learn from nothing."""
    policy = shipped(task.game.target)
    if policy is None:
        yield from scratch.play(task, budget, rng, Settings())
    else:
        yield from play_guided(policy, task, rng)


def play_guided(policy: Policy, task: Task, rng: random.Random) -> Proposals:
    """The search as any policy guides it."""
    start, lore = Trail.at(task.game), parsed(policy.lines)
    search = Search(
        start, rng, policy.weigh, hear=task.hear, lore=lore, glance=policy.glance, measured=_measured(task)
    )
    yield from search.proposals()


def play_unguided(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    """The same search, each kind of move as likely as any other, without lines of other kernels."""
    yield from Search(Trail.at(task.game), rng, hear=task.hear, measured=_measured(task)).proposals()


def play_onward(task: Task, budget: Budget, rng: random.Random) -> Proposals:
    """The search from the pass's line, as the target's policy guides it, blind where there is none."""
    policy, start = shipped(task.game.target), Trail.at(task.game)
    search = Search(
        start, rng, policy and policy.weigh, SearchSettings(from_start=0.0), hear=task.hear,
        seeds=[start.played(pass_moves(task.game, PASS))], lore=parsed(policy.lines) if policy else (),
        glance=policy and policy.glance, measured=_measured(task),
    )  # fmt: skip
    yield from search.proposals()


def _measured(task: Task) -> bool:
    return not backend(task.game.target).clock().exact
