"""What rows of benchmarks/kernelbench.py come to, as Markdown:
``python -m benchmarks.kernelbench_report ROWS.json [--write docs/kernelbench.md]``. The page has a section
for each file of rows."""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sections import fill

END = "<!-- end of report -->"
BEHIND = 0.8  # of the other's speed: what is slower is listed
NONE = "No rows are in this repository yet, so nothing is claimed here about speed."

Row = Mapping[str, Any]  # as ``benchmarks.kernelbench.Row`` lies in the file
Other = Callable[[Mapping[str, float]], float]  # the seconds to be held against, of all contenders'

# Ways to a program of the Dojo, by what rows call these contenders.
OURS = {"the pass": "dojo", "a search": "search"}
OTHERS: dict[str, tuple[tuple[str, ...], Other]] = {
    "eager": (("eager",), lambda seconds: seconds["eager"]),
    "Inductor": (("inductor",), lambda seconds: seconds["inductor"]),
    "the better of both": (("eager", "inductor"), lambda s: min(s["eager"], s["inductor"])),
    "the pass": (("dojo",), lambda seconds: seconds["dojo"]),
}


def begin(rows: Path) -> str:
    """The comment with which a section of a page begins that is of a file of rows."""
    return f"<!-- written by python -m benchmarks.kernelbench_report {rows.name} -->"


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
    lines += ["", "| the Dojo by | against | | timed | times as fast (geometric mean) | faster in | behind |"]
    lines += ["|---|---|---|---:|---:|---:|---:|"]
    behind: list[str] = []
    for ours, other in itertools.product(OURS, OTHERS):
        if ours == other:
            continue
        for name, group in groups.items():
            ratios = [ratio for row in group if (ratio := speed(row, other, ours)) is not None]
            if ratios:
                mean = statistics.geometric_mean(ratios)
                faster, slower = sum(ratio > 1 for ratio in ratios), sum(ratio < BEHIND for ratio in ratios)
                lines.append(
                    f"| {ours} | {other} | {name} | {len(ratios)} | {mean:.2f} | {faster} | {slower} |"
                )
        slow = sorted((s, _title(row)) for row in rows if (s := speed(row, other, ours) or BEHIND) < BEHIND)
        if slow:
            told = ", ".join(f"{title} ({ratio:.2f})" for ratio, title in slow)
            behind.append(f"- By {ours} behind {other}, below {BEHIND}: {told}.")
    lines += ["", *_scale(rows), *behind]
    for row in rows:
        notes = (
            [row["message"], *row["stays"]] if row["status"] == "correct" else [row["status"], row["message"]]
        )
        if said := "; ".join(" ".join(note.split()) for note in notes if note):
            lines.append(f"- {_title(row)}: {said}")
    return "\n".join(lines).rstrip() + "\n"


def speed(row: Row, other: str, ours: str = "the pass") -> float | None:
    """How many times as fast the Dojo is by one of OURS as one of OTHERS; None where a time is missing."""
    names, seconds_of = OTHERS[other]
    seconds = row["seconds"]
    if row["status"] != "correct" or not {*names, OURS[ours]} <= seconds.keys():
        return None
    return float(seconds_of(seconds) / seconds[OURS[ours]])


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
    parser.add_argument("--write", type=Path, help="a page that has the file's section")
    given = parser.parse_args()
    told = report(json.loads(given.rows.read_text(encoding="utf-8")))
    print(told, end="")
    if given.write:
        fill(given.write, begin(given.rows), END, told)


if __name__ == "__main__":
    main()
