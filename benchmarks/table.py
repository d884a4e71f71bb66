"""A bench as the README's table: ``python -m benchmarks.table docs/bench/table3.json``.

× is how many times as fast ours is as the best other implementation of the kernel, as the report tells it. A
second table sets the recorded lines beside C written by hand for the project's design, on another 2-core
AVX-512 machine: only ratios carry over, to PyTorch and to each machine's limit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dojo_core.bench.summary import Report, Row, best_baseline, geometric_mean, ratio_of, title
from dojo_core.cli.terminal import seconds_text

OURS = {"line": "recorded line", "heuristic": "heuristic pass", "record": "search"}

# Milliseconds by hand: the machine's limit, the C, PyTorch eager with its memory reused.
BY_HAND = {
    "add 3072x4096": (6.16, 6.27, 6.66), "batchnorm 8x3x2048x2048": (46.5, 60.2, 231),
    "batchnorm 8x64x300x300": (14.8, 26.0, 90), "bmm 192x256x128x256": (10.7, 17.5, 16.7),
    "conv 8x10x3x512x512x5": (10.3, 17.7, 54), "conv 8x64x64x56x56x3": (5.73, 8.76, 8.64),
    "layernorm 16384x1024": (5.39, 6.12, 8.18), "layernorm 4096x4096": (5.39, 7.11, 8.83),
    "matmul 768x1024x1024": (5.37, 6.81, 6.88), "mul 6x14336": (0.008, 0.0082, 0.0142),
    "reducemean 4096x4096": (2.36, 2.60, 3.29), "relu 4096x4096": (5.39, 5.70, 6.54),
    "relu_ffn 8x64x112x112": (2.06, 2.03, 7.73), "rmsnorm 3072x4096": (4.04, 5.24, 20.8),
    "softmax 24576x512": (4.04, 5.09, 7.77), "swiglu 1x256x4096x448": (6.26, 8.76, 10.2),
}  # fmt: skip
TOLERANCE = 1.05


def main(path: str) -> None:
    reports = json.loads(Path(path).read_text())["reports"]
    beside_others(reports)
    if any(title(report) in BY_HAND for report in reports):
        beside_hand(reports)


def beside_hand(reports: list[Report]) -> None:
    print("\n| kernel | PyTorch ÷ hand | PyTorch ÷ line | limit ÷ hand | limit ÷ line |")
    print("|---|---:|---:|---:|---:|")
    for report in reports:
        rows = {row["entry"]: row for row in report["entries"] if row["status"] == "ok"}
        if title(report) not in BY_HAND or not {"torch", "line"} <= rows.keys():
            continue
        limit, hand, torch = BY_HAND[title(report)]
        cells = []
        for by_hand, ours in (
            (torch / hand, ratio_of(report, rows["torch"], rows["line"])),
            (limit / hand, rows["line"]["share"]),
        ):
            below = " ▾" if ours and ours * TOLERANCE < by_hand else ""
            cells += [f"{by_hand:.2f}", f"{ours:.2f}{below}" if ours else "–"]
        print(f"| {title(report)} | {' | '.join(cells)} |")
    print("\n▾: by more than 5% below the C by hand.")


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
