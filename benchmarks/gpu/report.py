"""The results of a run for people: ``python -m benchmarks.gpu.report docs/bench/gpu_h200.json`` prints their
table."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

COLUMNS = {
    "torch": "eager",
    "torch-compile": "compiled",
    "torch-compile-graphs": "with graphs",
    "library": "cuBLAS",
}


IN_TF32 = {"torch-tf32": "eager, TF32 on", "library-tf32": "cuBLAS, TF32 on"}


def table(data: Mapping[str, Any], part: str = "bench") -> list[str]:
    """Rows of Markdown: best cold times in µs of each shape, and how many times as fast as the best other
    ours is, without TF32; of the part ``tf32`` with it, on both sides."""
    columns = IN_TF32 if part == "tf32" else COLUMNS
    rows = [
        f"| kernel | line | pass | {' | '.join(columns.values())} | copy | best other over ours |",
        f"|---|{'---|' * (len(columns) + 4)}",
    ]
    for found in data["results"]:
        report = found.get("report")
        if not report or report["cache"] != "cold" or found["part"] != part:
            continue
        best = {e["entry"]: e["min"] for e in report["entries"] if e.get("min") and not e["apart"]}
        others = {name: seconds for name, seconds in best.items() if name in columns}
        ours = {name: seconds for name, seconds in best.items() if name not in columns}
        lines = [seconds for name, seconds in ours.items() if name != "heuristic"]
        cells = [_us(min(lines, default=None)), _us(ours.get("heuristic"))]
        cells += [_us(others.get(name)) for name in columns]
        cells.append(_us((report["limits"] or {}).get("memory_seconds")))
        cells.append(f"{min(others.values()) / min(ours.values()):.2f}" if others and ours else "–")
        rows.append(f"| {report['kernel']} {report['shape']} | {' | '.join(cells)} |")
    return rows


def _us(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1e6 * seconds:.1f}"


def mean_of(data: Mapping[str, Any]) -> float:
    """The geometric mean of the table's last column."""
    ratios = [float(row.rsplit("|", 2)[1]) for row in table(data)[2:] if "–" not in row.rsplit("|", 2)[1]]
    return math.prod(ratios) ** (1 / len(ratios)) if ratios else math.nan


if __name__ == "__main__":
    data = json.loads(Path(sys.argv[1]).read_text())
    print("\n".join([*table(data), "", f"Geometric mean: {mean_of(data):.2f}.", "", *table(data, "tf32")]))
