"""Which program runs for each kernel of a graph, as the options of ``torch.compile`` ask."""

from __future__ import annotations

from agents.agent import Budget
from agents.model_tuning import shares_of, spread
from agents.passes.kept import heuristic
from agents.players import agent_named
from agents.torch_backend.settings import Settings
from agents.tuning import Tuning
from dojo_core.graph import Graph, Model
from dojo_core.graph.choices import kernel_game
from dojo_core.graph.run import Choose
from dojo_core.graph.trial import drawn_inputs, timed
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.program.tree import Program
from dojo_core.targets.cpu.measurer import Measurer

AGENT = "sampling-lines"


def choice(graph: Graph, settings: Settings) -> Choose:
    """The pass's, or the fastest that is recorded, after a search where there is a budget for one."""

    def passed(start: Program) -> Program:
        return heuristic(start, settings.policy)

    if not (settings.budget or settings.records):
        return passed
    with Records() as records:
        if settings.budget:
            _search(graph, settings, records, passed)
        fingerprint = this_machine().fingerprint
        best = {
            start.hash: records.best(start.hash, DEFAULT_TARGET, fingerprint, settings.policy)
            for start in (kernel.program for kernel in graph.kernels.values())
        }
    texts = {start: record.program_text for start, record in best.items() if record is not None}
    return lambda start: parse(texts[start.hash]) if start.hash in texts else passed(start)


def _search(graph: Graph, settings: Settings, records: Records, passed: Choose) -> None:
    """Measure programs of each kernel, by its share of the time; they lie in the records."""
    timing = timed(Model(graph, passed, settings.policy), drawn_inputs(graph))
    with Measurer(records) as measurer:
        for name, programs in spread(settings.budget, shares_of(timing)).items():
            game = kernel_game(graph.kernels[name], settings.policy)
            tuning = Tuning(game, agent_named(AGENT), measurer, Budget(programs), keep=False)
            for _ in tuning.events():
                pass
