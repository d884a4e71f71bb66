"""How fast candidates are measured, end to end: ``python -m benchmarks.rates [KERNEL [SHAPE]]``.

Opens positions with empty records and caches, measures every legal move, and prints: seconds to the first
result, seconds to the last, candidates a second. Verification is included in every candidate.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel", nargs="?", default="softmax")
    parser.add_argument("shape", nargs="?", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dojo-rates-") as home:
        os.environ["DOJO_HOME"] = os.environ["DOJO_CACHE"] = home
        _run(options.kernel, options.shape)


def _run(kernel: str, shape: str | None) -> None:
    from dojo_core import kernels
    from dojo_core.game import Game
    from dojo_core.line import recorded_lines
    from dojo_core.measure.records import Records
    from dojo_core.moves import apply, legal_moves
    from dojo_core.targets.cpu.measurer import Effort, Measurer, Workload

    found = kernels.get(kernel)
    start = found.program(found.shape(shape) if shape else found.shapes[0])
    positions = [("start", start, "reassoc")]
    line = recorded_lines().get(kernel)
    if line is not None and shape is None:
        game = Game.new(start, kernel, policy=line.policy)
        line.play(game)
        positions.append(("end of the recorded line", game.current.program, line.policy))
    with Records() as records, Measurer(records) as measurer:
        for title, program, policy in positions:
            began = time.perf_counter()
            moves = legal_moves(program, "cpu", policy)
            listed = time.perf_counter()
            programs = [apply(program, m, "cpu", policy) for m in moves]
            times: list[float] = []
            statuses: dict[str, int] = {}

            def heard(m, times=times, statuses=statuses):
                times.append(time.perf_counter())
                statuses[m.status] = statuses.get(m.status, 0) + 1

            results = measurer.measure(
                Workload(start, kernel, policy), [program, *programs], Effort.QUICK, heard
            )
            ended = time.perf_counter()
            own = results[0].seconds or float("nan")
            print(
                f"{kernel}, {title}: {len(moves)} legal moves listed in {1e3 * (listed - began):.0f} ms; "
                "the position "
                f"runs in {1e3 * own:.2f} ms; "
                f"first result after {times[0] - began:.2f} s, "
                f"the tenth after {times[min(9, len(times) - 1)] - began:.2f} s, "
                f"all after {ended - began:.1f} s: "
                f"{len(times) / (ended - began):.1f} candidates a second; {statuses}",
                flush=True,
            )


if __name__ == "__main__":
    main()
