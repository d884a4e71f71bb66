"""All agents by name: the passes, each search over edges and over lines, and PerfLLM with its ablations."""

from __future__ import annotations

import random
from collections.abc import Callable

from agents.agent import Agent, Budget, Proposals, Strategy, Task
from agents.passes import PASSES, pass_moves
from agents.perfllm.settings import VARIANTS, Settings
from agents.search.methods import annealing, sampling, uniform
from agents.search.neighbours import Neighbour, edge, edit
from agents.trail import Trail


def _of_pass(name: str) -> Strategy:
    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        yield [Trail.at(task.game).played(pass_moves(task.game, name))]

    return strategy


Method = Callable[[Task, Budget, random.Random, list[Trail], Neighbour], Proposals]


def _over_edges(method: Method) -> Strategy:
    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        return method(task, budget, rng, [Trail.at(task.game)], edge)

    return strategy


def _over_lines(method: Method) -> Strategy:
    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        here = Trail.at(task.game)
        start = [here.played(pass_moves(task.game, "heuristic")), here]
        return method(task, budget, rng, start, edit)

    return strategy


def _learning(settings: Settings) -> Strategy:
    def strategy(task: Task, budget: Budget, rng: random.Random) -> Proposals:
        from agents.perfllm.agent import play  # with torch, whose import takes seconds

        return play(task, budget, rng, settings)

    return strategy


AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        *(Agent(each.name, each.about, _of_pass(each.name)) for each in PASSES.values()),
        Agent("random-edges", "a random legal move from any program seen", _over_edges(uniform)),
        Agent("random-lines", "a random edit of any line seen", _over_lines(uniform)),
        Agent("sampling-edges", "a legal move from a program seen, rather a fast one", _over_edges(sampling)),
        Agent("sampling-lines", "an edit of a line seen, rather a fast one", _over_lines(sampling)),
        Agent("annealing-edges", "simulated annealing over legal moves", _over_edges(annealing)),
        Agent(
            "annealing-lines",
            "simulated annealing over edits of the heuristic's line",
            _over_lines(annealing),
        ),
        *(Agent(name, about, _learning(settings)) for name, (about, settings) in VARIANTS.items()),
    )
}
