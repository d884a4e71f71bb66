"""What rows of benchmarks/kernelbench.py come to, as Markdown:
``python -m benchmarks.kernelbench_report ROWS.json [--write docs/kernelbench.md]``."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sections import fill

BEGIN, END = "<!-- written by python -m benchmarks.kernelbench_report -->", "<!-- end of report -->"
BEHIND = 0.8  # of the other's speed: what is slower is listed
NONE = "No rows are in this repository yet, so nothing is claimed here about speed."

Row = Mapping[str, Any]  # as ``benchmarks.kernelbench.Row`` lies in the file
Other = Callable[[Mapping[str, float]], float]  # the seconds to be held against, of all contenders'

OTHERS: dict[str, tuple[tuple[str, ...], Other]] = {
    "eager": (("eager",), lambda seconds: seconds["eager"]),
    "Inductor": (("inductor",), lambda seconds: seconds["inductor"]),
    "the better of both": (("eager", "inductor"), lambda s: min(s["eager"], s["inductor"])),
}


def report(rows: Sequence[Row]) -> str:
    """Results, speeds against eager, Inductor and the better of both, by level and of all; then what is
    behind, and what is not correct or not whole in the Dojo."""
    if not rows:
        return f"{NONE}\n"
    levels = {f"level {level}": [r for r in rows if r["level"] == level] for level in _levels(rows)}
    groups = levels if len(levels) < 2 else {**levels, "all": list(rows)}
    lines = [
        "| | problems | correct | whole in the Dojo | compiled in, s (median, most) |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [_results(name, group) for name, group in groups.items()]
    lines += ["", "| against | | timed | times as fast (geometric mean) | faster in | behind |"]
    lines += ["|---|---|---:|---:|---:|---:|"]
    behind: list[str] = []
    for other in OTHERS:
        for name, group in groups.items():
            ratios = [ratio for row in group if (ratio := speed(row, other)) is not None]
            if ratios:
                lines.append(
                    f"| {other} | {name} | {len(ratios)} | {statistics.geometric_mean(ratios):.2f} | "
                    f"{sum(ratio > 1 for ratio in ratios)} | {sum(ratio < BEHIND for ratio in ratios)} |"
                )
        slow = sorted((s, _title(row)) for row in rows if (s := speed(row, other) or BEHIND) < BEHIND)
        if slow:
            told = ", ".join(f"{title} ({ratio:.2f})" for ratio, title in slow)
            behind.append(f"- Behind {other}, below {BEHIND}: {told}.")
    lines += ["", *_scale(rows), *behind]
    for row in rows:
        notes = (
            [row["message"], *row["stays"]] if row["status"] == "correct" else [row["status"], row["message"]]
        )
        if said := "; ".join(" ".join(note.split()) for note in notes if note):
            lines.append(f"- {_title(row)}: {said}")
    return "\n".join(lines).rstrip() + "\n"


def speed(row: Row, other: str) -> float | None:
    """How many times as fast the Dojo is as another of OTHERS; None where that was not timed."""
    names, seconds_of = OTHERS[other]
    seconds = row["seconds"]
    if row["status"] != "correct" or not {*names, "dojo"} <= seconds.keys():
        return None
    return float(seconds_of(seconds) / seconds["dojo"])


def _scale(rows: Sequence[Row]) -> list[str]:
    """To which sizes the problems were scaled."""
    sizes = sorted({(s["gflops"], s["megabytes"]) for row in rows if "gflops" in (s := row["settings"])})
    told = " or ".join(f"{gflops:g} GFLOP and {megabytes:g} MB" for gflops, megabytes in sizes)
    return [f"- Problems are scaled to at most {told}."] if sizes else []


def _levels(rows: Sequence[Row]) -> list[int]:
    return sorted({row["level"] for row in rows})


def _results(name: str, rows: Sequence[Row]) -> str:
    right = [row for row in rows if row["status"] == "correct"]
    whole = sum(not row["stays"] for row in right)
    took = [row["compiling"] for row in right] or [0.0]
    return (
        f"| {name} | {len(rows)} | {len(right)} | {whole} | {statistics.median(took):.1f}, {max(took):.1f} |"
    )


def _title(row: Row) -> str:
    return f"{row['level']}/{row['name']}"


class Report(argparse.Action):
    """``--report ROWS.json``: prints the report, and nothing else is done."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option: str | None = None
    ) -> None:
        print(report(json.loads(Path(str(values)).read_text(encoding="utf-8"))), end="")
        parser.exit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, help="what benchmarks.kernelbench --json wrote")
    parser.add_argument("--write", type=Path, help=f"a page with {BEGIN}, where the report goes")
    given = parser.parse_args()
    told = report(json.loads(given.rows.read_text(encoding="utf-8")))
    print(told, end="")
    if given.write:
        fill(given.write, BEGIN, END, told)


if __name__ == "__main__":
    main()
