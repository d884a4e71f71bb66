"""What programs for this computer's processor are held against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dojo_core.bench.baselines import BASELINES
from dojo_core.bench.contest import Contest
from dojo_core.bench.ours import Entry
from dojo_core.bench.rounds import run_bench
from dojo_core.game import Game
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.made import made_baseline


def _run(
    game: Game,
    entries: Sequence[Entry],
    against: Sequence[str],
    rounds: int,
    on_round: Callable[[int, int], None],
    on_step: Callable[[str], None],
    cold: bool,
    ready_within: float | None,
    records: Records | None,
) -> dict[str, Any]:
    return run_bench(
        game, entries, against, rounds, on_round, on_step, ready_within=ready_within, records=records,
        make=made_baseline,
    )  # fmt: skip


def _limits(report: Mapping[str, Any]) -> str:
    limits = report["limits"]
    return (
        f"Limits: {limits['gbytes_per_second']:.1f} GB/s over {limits['pattern']} ({limits['way']}); "
        f"{limits['gflops_one_thread']:.0f} GFLOP/s on one thread, "
        f"{limits['gflops']:.0f} on {limits['threads']}."
    )


CONTEST = Contest(
    baselines=BASELINES,
    limit="The limit is the best that this machine was ever seen to do: multiply-adds on all threads, or "
    "the kernel's own arrays streamed without arithmetic, whichever takes longer. What beats it becomes it.",
    panels="Speed relative to PyTorch eager with its memory reused (dashed), best runs; longer is faster. "
    "PyTorch with its default memory is shown apart: it pays for fresh pages in each run, which flatters us. "
    "So is C written by hand for these shapes (dojo_core/bench/others/hand.c), which is no library.",
    limits=_limits,
    run=_run,
    policies=True,
)
