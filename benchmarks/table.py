"""A bench as the README's table: ``python -m benchmarks.table docs/bench/table3.json``.

× is how many times as fast ours is as the best other implementation of the kernel, as the report tells it. A
second table sets the recorded lines beside C by hand: that of ``dojo_core/bench/others/hand.c``, timed in the
same rounds, and that written for the project's design on another 2-core AVX-512 machine, of which only the
ratio to PyTorch carries over.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dojo_core.bench.summary import Report, Row, best_baseline, geometric_mean, ratio_of, settled, title
from dojo_core.measure.measurement import seconds_text

OURS = {"line": "recorded line", "heuristic": "heuristic pass", "record": "search"}

# PyTorch eager, its memory reused, over the design's C by hand: milliseconds of each.
DESIGN = {
    "add 3072x4096": (6.66, 6.27), "batchnorm 8x3x2048x2048": (231, 60.2),
    "batchnorm 8x64x300x300": (90, 26.0), "bmm 192x256x128x256": (16.7, 17.5),
    "conv 8x10x3x512x512x5": (54, 17.7), "conv 8x64x64x56x56x3": (8.64, 8.76),
    "layernorm 16384x1024": (8.18, 6.12), "layernorm 4096x4096": (8.83, 7.11),
    "matmul 768x1024x1024": (6.88, 6.81), "mul 6x14336": (0.0142, 0.0082),
    "reducemean 4096x4096": (3.29, 2.60), "relu 4096x4096": (6.54, 5.70),
    "relu_ffn 8x64x112x112": (7.73, 2.03), "rmsnorm 3072x4096": (20.8, 5.24),
    "softmax 24576x512": (7.77, 5.09), "swiglu 1x256x4096x448": (10.2, 8.76),
}  # fmt: skip
TOLERANCE = 1.05


def main(path: str) -> None:
    reports = [settled(report) for report in json.loads(Path(path).read_text())["reports"]]
    beside_others(reports)
    if any(_rows(report, "hand") for report in reports):
        beside_hand(reports)


def beside_hand(reports: list[Report]) -> None:
    head = "C by hand ÷ line", "its share", "the line's", "PyTorch ÷ line", "PyTorch ÷ design's C"
    print(f"\n| kernel | {' | '.join(head)} |\n|---|{'---:|' * len(head)}")
    found = []
    for report in reports:
        rows = {row["entry"]: row for row in report["entries"] if row["status"] == "ok"}
        if not {"hand", "torch", "line"} <= rows.keys():
            continue
        ratio = ratio_of(report, rows["hand"], rows["line"]) or 0.0
        torch = ratio_of(report, rows["torch"], rows["line"]) or 0.0
        found.append(ratio)
        below = " ▾" if ratio * TOLERANCE < 1.0 else ""
        shares = " | ".join(f"{rows[name]['share']:.0%}" for name in ("hand", "line"))
        design = DESIGN.get(title(report))
        by_design = f"{design[0] / design[1]:.2f}" if design else "–"
        print(f"| {title(report)} | {ratio:.2f}{below} | {shares} | {torch:.2f} | {by_design} |")
    mean = f"Geometric mean {geometric_mean(found):.2f}, least {min(found):.2f}."
    print(f"\n▾: by more than 5% below the C by hand. {mean}")


def beside_others(reports: list[Report]) -> None:
    ours = {name: OURS[name] for name in OURS if any(_rows(report, name) for report in reports)}
    print(f"| kernel | {' | × | '.join(ours.values())} | × | best other | its time | share of the limit |")
    print("|---" + "|---:" * (2 * len(ours)) + "|---|---:|---:|")
    ratios: dict[str, list[float]] = {name: [] for name in (*ours, "ready")}
    for report in reports:
        rows = {row["entry"]: row for row in report["entries"] if row["status"] == "ok"}
        # A search begins with the heuristic's program: where it found none faster, that is its record.
        if "record" in ours and "heuristic" in rows:
            rows.setdefault("record", rows["heuristic"])
        other = best_baseline(report)
        assert other is not None
        cells = [title(report)]
        for name in ours:
            ratio = ratio_of(report, other, rows[name]) if name in rows else None
            if ratio is not None:
                ratios[name].append(ratio)
            cells += ["–", "–"] if ratio is None else [seconds_text(rows[name]["min"]), f"{ratio:.2f}"]
        ready = rows["line" if "line" in rows else "heuristic"]
        ratios["ready"] += [ratio for ratio in [ratio_of(report, other, ready)] if ratio is not None]
        share = max(rows[name]["share"] or 0 for name in ours if name in rows)
        cells += [other["name"], seconds_text(other["min"]), f"{share:.0%} ({report['limits']['bound']})"]
        print("| " + " | ".join(cells) + " |")
    for name, found in ratios.items():
        told = f"{geometric_mean(found):.2f}, least {min(found):.2f}, of {len(found)}"
        print(
            f"\n{ours.get(name, 'the line, or where there is none the pass')}: geometric mean {told}", end=""
        )
    print()


def _rows(report: Report, entry: str) -> list[Row]:
    return [row for row in report["entries"] if row["status"] == "ok" and row["entry"] == entry]


if __name__ == "__main__":
    main(sys.argv[1])
