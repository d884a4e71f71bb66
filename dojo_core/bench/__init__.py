"""Side by side with others, and with the machine's limits: ``dojo bench``."""

from dojo_core.bench.baselines import BASELINES
from dojo_core.bench.contest import BenchFailed
from dojo_core.bench.ours import Entry
from dojo_core.bench.rounds import run_bench

__all__ = ["BASELINES", "BenchFailed", "Entry", "run_bench"]
