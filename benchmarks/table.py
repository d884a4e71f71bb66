"""A bench as the README's table: ``python -m benchmarks.table docs/bench/table3.json``.

× is how many times as fast ours is as the best other implementation of the kernel, as the report tells it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dojo_core.bench.summary import best_baseline, geometric_mean, ratio_of, title
from dojo_core.cli.terminal import seconds_text

OURS = {"line": "recorded line", "heuristic": "heuristic pass", "record": "search"}


def main(path: str) -> None:
    reports = json.loads(Path(path).read_text())["reports"]
    print(f"| kernel | {' | × | '.join(OURS.values())} | × | best other | its time | share of the limit |")
    print("|---" + "|---:" * (2 * len(OURS)) + "|---|---:|---:|")
    ratios: dict[str, list[float]] = {name: [] for name in OURS}
    for report in reports:
        rows = {row["entry"]: row for row in report["entries"] if row["status"] == "ok"}
        # A search begins with the heuristic's program: where it found none faster, that is its record.
        rows.setdefault("record", rows["heuristic"])
        other = best_baseline(report)
        assert other is not None
        cells = [title(report)]
        for name in OURS:
            ratio = ratio_of(report, other, rows[name]) if name in rows else None
            if ratio is not None:
                ratios[name].append(ratio)
            cells += ["–", "–"] if ratio is None else [seconds_text(rows[name]["min"]), f"{ratio:.2f}"]
        share = max(rows[name]["share"] or 0 for name in OURS if name in rows)
        cells += [other["name"], seconds_text(other["min"]), f"{share:.0%} ({report['limits']['bound']})"]
        print("| " + " | ".join(cells) + " |")
    for name, found in ratios.items():
        print(f"\n{OURS[name]}: geometric mean {geometric_mean(found):.2f}, least {min(found):.2f}", end="")
    print()


if __name__ == "__main__":
    main(sys.argv[1])
