"""``dojo tune --model``: a search for each kernel of a model, with a budget by its share of the time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.markup import escape

from agents.agent import Agent, Budget
from agents.played import outgrows_a_game
from agents.run_log import RunBusy
from agents.tuning import Tuning
from dojo_core.cli.models import checked, chosen, made, opened_model, tell_deviations, tell_shares
from dojo_core.cli.positions import known_policy
from dojo_core.cli.terminal import Failure, out
from dojo_core.graph.choices import kernel_game
from dojo_core.graph.trial import Timing, drawn_inputs, in_turns, sampler, timed
from dojo_core.measure.measurement import seconds_text
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.wording import counted

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
    inputs = drawn_inputs(graph)
    before = made(graph, chosen(graph, "best", records, policy), policy)
    budgets = spread(budget.evaluations, shares_of(timed(before, inputs)))
    searched = 0
    for name, programs in budgets.items():
        known = known_policy(policy, "reassoc")
        if outgrows_a_game(graph.kernels[name].program, known):
            out.print(f"{name} is left as it is: the pass's line has more moves than a game keeps.")
            continue
        searched += 1
        game = kernel_game(graph.kernels[name], known)
        try:
            tuning = Tuning(game, agent, measurer, Budget(programs, budget.seconds), seed, again)
        except RunBusy as busy:
            raise Failure(str(busy)) from None
        run(tuning)
    found = chosen(graph, "best", records, policy)
    after = made(graph, found, policy)
    tell_shares(graph, found, timed(after, inputs))
    wrong = checked(graph, after, inputs, policy)
    tell_deviations(wrong, "the start programs")
    if not all(each.right for each in wrong):
        raise Failure("With these programs the model is wrong: nothing was changed but the records.")
    old, new, faster = in_turns(sampler(before, inputs), sampler(after, inputs))
    out.print(
        f"{escape(graph.name)}: {seconds_text(old)} before, {seconds_text(new)} now, in turns: {faster:.2f} "
        f"times as fast; {counted(searched, 'kernel')} searched.",
        soft_wrap=True,
    )
