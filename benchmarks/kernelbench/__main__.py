"""KernelBench as a judge: ``python -m benchmarks.kernelbench CHECKOUT``.

CHECKOUT is a folder with github.com/ScalingIntelligence/KernelBench, of which nothing is copied. Each problem
is made small by one rule (``problem.py``), run eagerly, by Inductor and by ``torch.compile(backend="dojo")``,
compared over five seeds, and timed in interleaved rounds, each in a process of its own.

    python -m benchmarks.kernelbench CHECKOUT                             # levels 1 and 2
    python -m benchmarks.kernelbench CHECKOUT --levels 3 --search
    python -m benchmarks.kernelbench CHECKOUT --only 1/23 2/4 --no-inductor
    python -m benchmarks.kernelbench CHECKOUT --json kb.json --write docs/kernelbench.md

What is in the file of ``--json`` is not run again, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.entries import EAGER, INDUCTOR, PASS, SEARCH
from benchmarks.kernelbench.problem import BYTES, FLOPS, problems
from dojo_core.measure.machine import this_machine

SECONDS = 900  # of one problem, all ways
NEAR = 0.8  # as fast as the better of the others: slower ones are named
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--levels", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--only", nargs="*", metavar="LEVEL/NUMBER", help="these problems alone")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-inductor", action="store_true", help="eager and the Dojo alone: far quicker")
    parser.add_argument("--search", action="store_true", help="the Dojo also by search")
    parser.add_argument("--budget", type=int, default=100, help="programs of that search")
    parser.add_argument("--json", type=Path, help="all figures; what is in it already is not run again")
    parser.add_argument("--write", type=Path, help="the report as a page")
    options = parser.parse_args()
    names = [EAGER, *([] if options.no_inductor else [INDUCTOR]), PASS, *([SEARCH] if options.search else [])]
    try:
        wanted = problems(options.checkout, options.levels)
    except FileNotFoundError as fault:
        parser.error(str(fault))
    if options.only:
        wanted = [p for p in problems(options.checkout, [1, 2, 3]) if _number(p) in options.only]
    rows: dict[str, Row] = {}
    if options.json and options.json.exists():
        rows = {_key(row): row for row in json.loads(options.json.read_text())}
    for path in wanted:
        key = f"{path.parent.name.removeprefix('level')}/{path.stem}"
        if key not in rows:
            rows[key] = _run(path, names, options.rounds, options.budget)
            print(_line(rows[key]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(list(rows.values()), indent=1))
    shown = [rows[f"{p.parent.name.removeprefix('level')}/{p.stem}"] for p in wanted]
    told = summary(shown)
    print("\n".join(told))
    if options.write:
        options.write.write_text(page(shown, told))
    return 1 if any(row["status"] == "wrong" for row in shown) else 0


def _number(path: Path) -> str:
    match = re.match(r"\d+", path.name)
    assert match
    return f"{path.parent.name.removeprefix('level')}/{match[0]}"


def _key(row: Row) -> str:
    return f"{row['level']}/{row['name']}"


def _run(path: Path, names: Sequence[str], rounds: int, budget: int) -> Row:
    command = [sys.executable, "-m", "benchmarks.kernelbench.judged", str(path), "--entries", ",".join(names),
               "--rounds", str(rounds), "--budget", str(budget)]  # fmt: skip
    failed = {"name": path.stem, "level": int(path.parent.name.removeprefix("level")), "status": "failed"}
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return failed | {"message": f"It takes more than {SECONDS} s."}
    if child.returncode:
        last = child.stderr.strip().rpartition("\n")[2]
        return failed | {"message": last or f"Its process ended with status {child.returncode}."}
    row: Row = json.loads(child.stdout.splitlines()[-1])
    return row


# ---------------------------------------------------------------------------- what is told


def _line(row: Row) -> str:
    ratios = row.get("ratios", {})
    others = ", ".join(f"{n} {ratios[n]:.2f}" for n in (EAGER, INDUCTOR, SEARCH) if n in ratios)
    return f"{row['level']}/{row['name']}: {row['status']} {row['message']} {others}".strip()


def summary(rows: Sequence[Row]) -> list[str]:
    """The figures over all problems; a problem that is not right counts in the first line alone."""
    right = [row for row in rows if row["status"] == "ok" and row.get("ratios")]
    lines = [f"- {len(right)} of {len(rows)} problems are right, without a fallback."]
    against = {
        "eager": [r["ratios"][EAGER] for r in right if EAGER in r["ratios"]],
        "Inductor": [r["ratios"][INDUCTOR] for r in right if INDUCTOR in r["ratios"]],
        "the better of both": [
            min(r["ratios"][n] for n in (EAGER, INDUCTOR) if n in r["ratios"])
            for r in right
            if INDUCTOR in r["ratios"]
        ],
    }
    for name, ratios in against.items():
        if ratios:
            faster = sum(ratio > 1 for ratio in ratios)
            lines.append(
                f"- Against {name}: {geometric_mean(ratios):.2f} times as fast in the geometric mean, "
                f"faster in {faster} of {len(ratios)}, {min(ratios):.2f} at least, below {NEAR} in "
                f"{sum(ratio < NEAR for ratio in ratios)}."
            )
    setups = [r["setup"][PASS] for r in right if PASS in r.get("setup", {})]
    if setups:
        lines.append(f"- To set one up took {statistics.median(setups):.1f} s in the median.")
    return lines


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def page(rows: Sequence[Row], told: Sequence[str]) -> str:
    """The report in Markdown."""
    machine = this_machine()
    table = [
        "| problem | its sizes here | eager | Inductor | Dojo | what is wrong |",
        "|---|---|---:|---:|---:|---|",
    ]
    for row in rows:
        ratios, seconds = row.get("ratios", {}), row.get("seconds", {})
        sizes = ", ".join(f"{n.partition(':')[0]} {a}→{b}" for n, (a, b) in row.get("sizes", {}).items())
        cells = [
            f"{row['level']}/{row['name']}",
            sizes,
            *(f"{ratios[n]:.2f}" if n in ratios else "" for n in (EAGER, INDUCTOR)),
            f"{1000 * seconds[PASS]:.3g} ms" if PASS in seconds else "",
            "" if row["status"] == "ok" else f"{row['status']}: {row['message']}",
        ]
        table.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return PAGE.format(
        machine=f"{machine.cpu}, {machine.cores} cores",
        flops=FLOPS / 1e9,
        megabytes=BYTES >> 20,
        summary="\n".join(told),
        table="\n".join(table),
    )


PAGE = """# KernelBench

Made by `python -m benchmarks.kernelbench CHECKOUT --json FILE --write docs/kernelbench.md`, of a checkout of
[KernelBench](https://github.com/ScalingIntelligence/KernelBench), on {machine}. Of each problem
the largest size is halved until one run takes at most {flops:g} GFLOP and {megabytes} MB. Results are
compared over five seeds, within KernelBench's tolerance for f32. *eager* and *Inductor* (weights frozen,
autotuned): how many times as long as the Dojo's, whose time is the heuristic pass's alone; medians over
interleaved rounds.

{summary}

{table}
"""


if __name__ == "__main__":
    sys.exit(main())
