"""How well a tuning keeps its workers busy: ``python -m benchmarks.scale [--workers 1,2,4,8] [--pace 0.5]``.

Workers are processes on this machine that sleep for ``pace`` seconds a program instead of measuring, so that
the engine is measured and not the count of cores: the agent's thinking, what travels, the scheduler. Prints
for each number of workers: candidates, seconds from the first request to the last answer, candidates a
second, and the efficiency: the part of all workers' time that was spent measuring. The finalists are left
out: they are timed by one worker on purpose.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", default="1,2,4,8")
    parser.add_argument("--pace", type=float, default=0.5, help="seconds a program")
    parser.add_argument("--each", type=int, default=32, help="programs for each worker")
    parser.add_argument("--kernel", default="softmax")
    parser.add_argument("--agent", default="sampling-lines")
    parser.add_argument("--lanes", type=int, default=None)
    options = parser.parse_args()
    print(f"{options.kernel}, {options.agent}, {options.pace} s a program")
    print("workers  candidates  seconds  candidates/s  efficiency")
    for workers in map(int, options.workers.split(",")):
        with tempfile.TemporaryDirectory(prefix="dojo-scale-") as folder:
            count, seconds = _run(workers, options, Path(folder))
        rate, busy = count / seconds, count * options.pace / (workers * seconds)
        print(f"{workers:7}  {count:10}  {seconds:7.1f}  {rate:12.1f}  {100 * busy:8.0f} %", flush=True)


def _run(workers: int, options: argparse.Namespace, folder: Path) -> tuple[int, float]:
    from agents.agent import Budget, Control, Task, run
    from agents.players import AGENTS
    from agents.scale import credentials
    from agents.scale.commands import LANES
    from agents.scale.pool import PoolTiming, WorkerPool
    from dojo_core import kernels
    from dojo_core.game import Game
    from tests.cluster import cluster

    kernel = kernels.get(options.kernel)
    task = Task(Game.new(kernel.program(kernel.shapes[0]), options.kernel))
    budget = Budget(options.each * workers)
    with cluster(folder) as machines:
        for _ in range(workers):
            machines.start_worker(options.pace)
        with WorkerPool(machines.address, credentials.security(machines.key)) as pool:
            pool.choose()
            while sum(pool.machines().values()) < workers:
                time.sleep(0.1)
            timing, control = PoolTiming(pool, pool.choose(), "benchmark"), Control()
            began = ended = count = 0
            measure = timing.measure

            def noted(*asked):
                nonlocal began
                began = began or time.monotonic()
                return measure(*asked)

            timing.measure = noted
            for event in run(
                task, AGENTS[options.agent], timing, budget, control=control, lanes=options.lanes or LANES
            ):
                ended, count = time.monotonic(), event.evaluation
                if count == budget.evaluations:
                    control.stop()  # no finalists
            return count, ended - began


if __name__ == "__main__":
    main()
