"""``dojo tune --model``: a search for each kernel of a model, with a budget by its share of the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.markup import escape

from agents.agent import Agent, Budget
from agents.run_log import RunBusy
from agents.tuning import Tuning
from dojo_core.cli.models import chosen, made, opened_model, tell_deviations, tell_shares
from dojo_core.cli.positions import known_policy
from dojo_core.cli.terminal import Failure, err, out
from dojo_core.graph.choices import kernel_game
from dojo_core.graph.graph import Graph
from dojo_core.graph.trial import Timing, deviations, drawn_inputs, timed
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer

WORTH = 0.01  # of the model's time: kernels below that are left as they are


def shares_of(timing: Timing) -> dict[str, float]:
    """The part of the time that each kernel takes, in all its calls together."""
    shares: dict[str, float] = {}
    for share in timing.shares:
        shares[share.call.kernel] = shares.get(share.call.kernel, 0.0) + share.share
    return shares


def spread(budget: int, shares: Mapping[str, float]) -> dict[str, int]:
    """So many programs for each kernel that is worth it, those first that take longest; at least one each,
    and together about the budget."""
    worth = {name: share for name, share in shares.items() if share >= WORTH}
    total = sum(worth.values())
    ordered = sorted(worth, key=lambda name: -worth[name])
    return {name: max(1, round(budget * worth[name] / total)) for name in ordered}


def tune_model(
    path: Path,
    agent: Agent,
    budget: Budget,
    seed: int,
    policy: str | None,
    again: bool,
    records: Records,
    measurer: Measurer,
    run: Callable[[Tuning], object],
) -> None:
    """Play the heuristic pass for each kernel, time the model, search each kernel by its share, time again.

    What is found lies in the records, where ``dojo time --model`` and ``dojo export --model`` find it.
    ``budget`` is the whole model's, its seconds each kernel's. ``run`` goes through a tuning and shows it.
    Raises Failure.
    """
    graph = opened_model(path)
    before = _timed(graph, records, policy)
    budgets = spread(budget.evaluations, shares_of(before))
    for name, programs in budgets.items():
        game = kernel_game(graph.kernels[name], known_policy(policy, "reassoc"))
        try:
            tuning = Tuning(game, agent, measurer, Budget(programs, budget.seconds), seed, again)
        except RunBusy as busy:
            raise Failure(str(busy)) from None
        run(tuning)
    after = _timed(graph, records, policy, tell=True)
    out.print(
        f"{escape(graph.name)}: {seconds_text(before.least)} before, {seconds_text(after.least)} after "
        f"({before.least / after.least:.2f}×), {len(budgets)} kernels searched.",
        soft_wrap=True,
    )


def _timed(graph: Graph, records: Records, policy: str | None, tell: bool = False) -> Timing:
    """The model with this machine's best programs. Raises Failure where it is wrong."""
    programs = chosen(graph, "best", records, policy)
    model, inputs = made(graph, programs, policy), drawn_inputs(graph)
    timing = timed(model, inputs)
    if tell:
        found = deviations(graph, model.run(inputs), made(graph, None, policy).run(inputs))
        tell_shares(graph, programs, timing)
        tell_deviations(found)
        if not all(each.right for each in found):
            raise Failure("The model is not right with these programs: dojo time --model tells more.")
    else:
        err.print(f"{escape(graph.name)}: {seconds_text(timing.least)} a run.", style="dim", soft_wrap=True)
    return timing
