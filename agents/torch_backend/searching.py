"""The search that ``options={"budget": …}`` of ``torch.compile`` asks for."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from agents.agent import Budget
from agents.model_tuning import shares_of, spread
from agents.played import outgrows_a_game
from agents.players import agent_named
from agents.torch_backend.settings import Settings
from agents.tuning import Tuning
from dojo_core.garbage import looking_seldom
from dojo_core.graph import Graph, Model
from dojo_core.graph.choices import kernel_game
from dojo_core.graph.run import Choose
from dojo_core.graph.text import print_graph
from dojo_core.graph.trial import drawn_inputs, timed
from dojo_core.measure import sealed
from dojo_core.measure.machine import this_machine
from dojo_core.measure.places import cache_directory
from dojo_core.measure.records import Records
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.targets.cpu.measurer import Measurer

AGENT = "sampling-lines"
log = logging.getLogger(__name__)


def search(graph: Graph, settings: Settings, records: Records, passed: Choose) -> None:
    """Measure programs of each kernel, by its share of the time; they lie in the records. A graph that was
    searched with this budget is not searched again, as long as its records are there."""
    path = place("searched", graph, settings)
    if _is_done(path, settings, records):
        return
    timing = timed(Model(graph, passed, settings.policy), drawn_inputs(graph))
    budgets = spread(settings.budget, shares_of(timing))
    searched: list[str] = []
    with looking_seldom(), Measurer(records) as measurer:
        for name, programs in budgets.items():
            if outgrows_a_game(graph.kernels[name].program, settings.policy):
                log.info("%s is not searched: the pass's line has more moves than a game keeps.", name)
                continue
            searched.append(name)
            game = kernel_game(graph.kernels[name], settings.policy)
            tuning = Tuning(game, agent_named(AGENT), measurer, Budget(programs), keep=False)
            for _ in tuning.events():
                pass
    sealed.keep(path, json.dumps([graph.kernels[name].program.hash for name in searched]).encode())


def lost(graph: Graph, settings: Settings) -> frozenset[str] | None:
    """Hashes of programs that were found for the graph's kernels and lost against the pass's in the model
    (``deciding.py``); None where they were not compared yet."""
    content = sealed.read(place("decided", graph, settings))
    try:
        hashes = None if content is None else json.loads(bytes(content))
    except ValueError:
        return None
    return frozenset(map(str, hashes)) if isinstance(hashes, list) else None


def place(folder: str, graph: Graph, settings: Settings) -> Path:
    """Where is kept what came of a graph's search."""
    asked = (print_graph(graph), settings.budget, settings.policy, this_machine().fingerprint, AGENT)
    key = hashlib.sha256(repr(asked).encode()).hexdigest()[:24]
    return sealed.folder(cache_directory() / folder) / f"{key}.json"


def _is_done(path: Path, settings: Settings, records: Records) -> bool:
    """Was this searched, and is there a record of each kernel that was?"""
    content = sealed.read(path)
    try:
        starts = None if content is None else json.loads(bytes(content))
    except ValueError:
        return False
    fingerprint = this_machine().fingerprint
    return isinstance(starts, list) and all(
        records.best(str(start), DEFAULT_TARGET, fingerprint, settings.policy) is not None for start in starts
    )
