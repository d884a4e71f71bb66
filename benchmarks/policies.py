"""What ``--policy`` and ``--constant`` of ``dojo bench`` come to, as tables.

``python -m benchmarks.policies docs/bench/bilinear.json docs/bench/bilinear.md`` writes it into that page, or
prints it where none is named. × is how many times as fast ours is as the best other implementation of the
kernel. The error is the largest difference from the float64 reference, of the largest of that.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.sections import fill
from dojo_core.bench.summary import Report, Row, best_baseline, geometric_mean, ratio_of, title
from dojo_core.measure.measurement import seconds_text

SECTION = "<!-- policies -->", "<!-- end of policies -->"


def table(reports: list[Report]) -> str:
    """Times and ratios of ours, then errors of all, as Markdown."""
    return "\n\n".join([_times(reports), _errors(reports)])


def _times(reports: list[Report]) -> str:
    names = list(dict.fromkeys(row["entry"] for report in reports for row in _ours(report)))
    lines = [
        f"| kernel | {' | × | '.join(names)} | × | best other | its time |",
        "|---" + "|---:" * (2 * len(names)) + "|---|---:|",
    ]
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for report in reports:
        other, rows = best_baseline(report), {row["entry"]: row for row in _ours(report)}
        cells = [title(report)]
        for name in names:
            ratio = ratio_of(report, other, rows[name]) if other and name in rows else None
            cells.append(seconds_text(rows[name]["min"]) if name in rows else "–")
            cells.append("–" if ratio is None else f"{ratio:.2f}")
            ratios[name] += [] if ratio is None else [ratio]
        cells += [other["name"], seconds_text(other["min"])] if other else ["–", "–"]
        lines.append(f"| {' | '.join(cells)} |")
    means = [
        f"{name} {geometric_mean(found):.2f} (least {min(found):.2f}, of {len(found)})"
        for name, found in ratios.items()
        if found
    ]
    return "\n".join(lines) + f"\n\nGeometric means of ×: {'; '.join(means)}."


def _errors(reports: list[Report]) -> str:
    rows = [{row["name"]: row.get("error") for row in _timed(report)} for report in reports]
    names = list(dict.fromkeys(name for each in rows for name in each))
    lines = [f"| error | {' | '.join(names)} |", "|---" + "|---:" * len(names) + "|"]
    for report, errors in zip(reports, rows, strict=True):
        told = ("–" if errors.get(name) is None else f"{errors[name]:.1e}" for name in names)
        lines.append(f"| {title(report)} | {' | '.join(told)} |")
    return "\n".join(lines)


def _timed(report: Report) -> list[Row]:
    return [row for row in report["entries"] if row["status"] == "ok"]


def _ours(report: Report) -> list[Row]:
    return [row for row in _timed(report) if row["kind"] == "ours"]


def main(arguments: list[str]) -> None:
    told = table(json.loads(Path(arguments[0]).read_text(encoding="utf-8"))["reports"])
    if arguments[1:]:
        fill(Path(arguments[1]), *SECTION, told)
    else:
        print(told)


if __name__ == "__main__":
    main(sys.argv[1:])
