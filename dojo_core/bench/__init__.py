"""Side by side with others, and with the machine's limits: ``dojo bench``."""

from typing import TYPE_CHECKING

from dojo_core.lazy import attributes

if TYPE_CHECKING:
    from dojo_core.bench.baselines import BASELINES
    from dojo_core.bench.contest import BenchFailed
    from dojo_core.bench.ours import Entry
    from dojo_core.bench.rounds import run_bench

__all__ = ["BASELINES", "BenchFailed", "Entry", "run_bench"]

# Where each is; imported when it is asked for: the process that measures the machine's limits needs none.
_MODULES = {
    "dojo_core.bench.baselines": ("BASELINES",),
    "dojo_core.bench.contest": ("BenchFailed",),
    "dojo_core.bench.ours": ("Entry",),
    "dojo_core.bench.rounds": ("run_bench",),
}
__getattr__ = attributes(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
