"""Searching the kernels of a graph: each gets programs to measure by its share of the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from agents.agent import Budget
from agents.graphs.programs import heuristic
from agents.players import agent_named
from agents.tuning import Tuning
from dojo_core.game import Game
from dojo_core.graph import Graph, Model
from dojo_core.measure.pool import draw
from dojo_core.measure.records import Records
from dojo_core.program.tree import Domain
from dojo_core.targets.cpu.measurer import Measurer

AGENT = "sampling-lines"
LEAST = 4  # programs; a search of fewer finds nothing


def search(graph: Graph, budget: int, records: Records, policy: str = "reassoc") -> dict[str, int]:
    """Measure ``budget`` programs in all, shared among the kernels by the time they take; what is measured
    lies in the records. Gives how many each kernel got."""
    shares = kernel_shares(Model(graph, lambda start: heuristic(start, policy), policy))
    counts = {name: round(share * budget) for name, share in shares.items()}
    counts = {name: count for name, count in counts.items() if count >= LEAST}
    with Measurer(records) as measurer:
        for name, count in counts.items():
            game = Game.new(graph.kernels[name].program, policy=policy, title=name)
            tuning = Tuning(game, agent_named(AGENT), measurer, Budget(count), keep=False)
            for _ in tuning.events():
                pass
    return counts


def kernel_shares(model: Model) -> Mapping[str, float]:
    """The share of each kernel in the time of a run, all its calls together (0 to 1), on inputs drawn."""
    rng = np.random.default_rng(0)
    graph = model.graph
    inputs = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        domain = tensor.domain and Domain(name, *tensor.domain)
        inputs[graph.label(name)] = draw(tensor.dtype, tensor.shape, rng, domain)
    shares: dict[str, float] = defaultdict(float)
    for each in model.profile(inputs):
        shares[each.call.kernel] += each.share
    return shares
