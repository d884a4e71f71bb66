"""The search that ``options={"budget": …}`` of ``torch.compile`` asks for."""

from __future__ import annotations

from agents.agent import Budget
from agents.model_tuning import shares_of, spread
from agents.players import agent_named
from agents.torch_backend.settings import Settings
from agents.tuning import Tuning
from dojo_core.graph import Graph, Model
from dojo_core.graph.choices import kernel_game
from dojo_core.graph.run import Choose
from dojo_core.graph.trial import drawn_inputs, timed
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer

AGENT = "sampling-lines"


def search(graph: Graph, settings: Settings, records: Records, passed: Choose) -> None:
    """Measure programs of each kernel, by its share of the time; they lie in the records."""
    timing = timed(Model(graph, passed, settings.policy), drawn_inputs(graph))
    with Measurer(records) as measurer:
        for name, programs in spread(settings.budget, shares_of(timing)).items():
            game = kernel_game(graph.kernels[name], settings.policy)
            tuning = Tuning(game, agent_named(AGENT), measurer, Budget(programs), keep=False)
            for _ in tuning.events():
                pass
