"""Which program runs for each kernel of a graph, as the options of ``torch.compile`` ask."""

from __future__ import annotations

from collections.abc import Collection

from agents.played import heuristic
from agents.torch_backend.settings import Settings
from dojo_core.graph import Graph
from dojo_core.graph.run import Choose, constants_of
from dojo_core.measure.machine import this_machine
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program


def choice(graph: Graph, settings: Settings) -> Choose:
    """The pass's, or the fastest that is recorded, after a search where there is a budget for one: but those
    that lost against the pass's in the model."""
    fixed = {kernel.program.hash: constants_of(graph, name) for name, kernel in graph.kernels.items()}

    def passed(start: Program) -> Program:
        return heuristic(start, settings.policy, fixed[start.hash])

    if not (settings.budget or settings.records):
        return passed
    from dojo_core.measure.records import Records  # imported where they are asked

    slower: Collection[str] = ()
    with Records() as records:
        if settings.budget:
            from agents.torch_backend.searching import lost, search

            search(graph, settings, records, passed)
            slower = lost(graph, settings) or ()
        fingerprint = this_machine().fingerprint
        best = {
            start.hash: records.best(start.hash, DEFAULT_TARGET, fingerprint, settings.policy)
            for start in (kernel.program for kernel in graph.kernels.values())
        }
    texts = {
        start: record.program_text
        for start, record in best.items()
        if record is not None and record.program_hash not in slower
    }

    def recorded(start: Program) -> Program:
        text = texts.get(start.hash)
        # What the pass plays for a kernel alone copies its weights in every run, as it was measured.
        if text is None or (fixed[start.hash] and heuristic(start, settings.policy).text == text):
            return passed(start)
        return parse(text)

    return recorded
