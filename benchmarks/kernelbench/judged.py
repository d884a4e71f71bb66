"""One problem, set up, compared and timed, in a process of its own: prints a line of JSON.

python -m benchmarks.kernelbench.judged FILE --rounds 7 --entries eager,inductor,pass
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernelbench.entries import (
    EAGER,
    PASS,
    SEARCH,
    Fallbacks,
    differs,
    entry,
    interleaved,
    ratio,
)
from benchmarks.kernelbench.problem import NotSmall, read

SEEDS = (42, 43, 44, 45, 46)  # of weights and inputs alike, as many as KernelBench's own


def judged(path: Path, names: list[str], rounds: int, budget: int) -> dict[str, Any]:
    """A problem as a row of the report: ``status`` ok, wrong, fallback, failed or too_large."""
    level = int(path.parent.name.removeprefix("level"))
    row: dict[str, Any] = {"name": path.stem, "level": level, "status": "ok", "message": ""}
    try:
        problem = read(path)
    except NotSmall as fault:
        return row | {"status": "too_large", "message": str(fault)}
    row |= {"sizes": dict(problem.sizes), "flops": problem.flops, "bytes": problem.size}
    model, inputs = problem.set_up(SEEDS[0])
    ours = [n for n in names if n in (PASS, SEARCH)]
    runs: dict[str, Any] = {}
    row["setup"], row["errors"] = {}, {}
    with torch.no_grad(), Fallbacks() as fallbacks:
        for name in names:
            begun = time.perf_counter()
            try:
                compiled = entry(name, model, budget)
                compiled(*inputs)
                compiled(*inputs)
            except Exception as fault:  # of a compiler; one that fails is told, and the others go on
                row["errors"][name] = f"{type(fault).__name__}: {str(fault).splitlines()[0][:300]}"
                continue
            row["setup"][name] = time.perf_counter() - begun
            runs[name] = partial(compiled, *inputs)
        for name in ours:
            if name in row["errors"]:
                row |= {"status": "failed", "message": row["errors"][name]}
                continue
            for seed in SEEDS:
                fresh, drawn = problem.set_up(seed)
                model.load_state_dict(fresh.state_dict())
                again = entry(name, fresh, budget)
                if difference := differs(fresh(*drawn), again(*drawn)):
                    row |= {"status": "wrong", "message": f"{name}, seed {seed}: {difference}"}
                    break
        if fallbacks.sentences and row["status"] == "ok":
            row |= {"status": "fallback", "message": " ".join(dict.fromkeys(fallbacks.sentences))}
        taken = interleaved(runs, rounds)
    row["seconds"] = {name: statistics.median(values) for name, values in taken.items()}
    first = next((n for n in ours if n in taken), None)
    if first is not None:
        row["ratios"] = {name: ratio(values, taken[first]) for name, values in taken.items()}
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--entries", default=f"{EAGER},{PASS}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")
    with contextlib.redirect_stdout(sys.stderr):  # a problem may print
        row = judged(options.file, options.entries.split(","), options.rounds, options.budget)
    print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main())
