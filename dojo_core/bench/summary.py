"""What a bench comes to: geometric means over the kernels, against each baseline and the best of them.

It reads the reports' JSON alone, so that a stored bench is summed up as a fresh one is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dojo_core.bench.contest import contest
from dojo_core.bench.roofline import Roofline, limits_of
from dojo_core.program.target import DEFAULT_TARGET

Report = dict[str, Any]
Row = dict[str, Any]


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of no values."""
    logarithms = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def title(report: Report) -> str:
    """A kernel and its shape, a layer's name before them."""
    return " ".join(filter(None, (report.get("layer"), report["kernel"], report["shape"])))


def measured(report: Report, kind: str) -> list[Row]:
    """The entries of a kind that have a time."""
    return [e for e in report["entries"] if e["kind"] == kind and e["status"] == "ok" and "min" in e]


def reference(report: Report) -> Row | None:
    """Our entry that ratios are against: the line by hand, else a heuristic's, else the start."""
    return next((e for e in measured(report, "ours") if e["entry"] == report["reference"]), None)


def settled(report: Report, limit: Roofline | None = None) -> Report:
    """A stored report by what is known of the machine's ``limit`` by now: what beats a limit becomes it, and
    no share exceeds 1."""
    limits = report["limits"]
    if not limits:
        return report
    roofline = limit or Roofline(
        memory_seconds=limits["memory_seconds"],
        arithmetic_seconds=limits["arithmetic_seconds"],
        bytes=limits["bytes"],
        flops=report["flops"],
        pattern=limits["pattern"],
        peak=1e9 * limits["gflops"],
        reached=limits.get("reached", ""),
    )
    timed = measured(report, "ours") + measured(report, "baseline")
    held = contest(report.get("target", DEFAULT_TARGET))
    for entry in timed:
        if entry.get("policy", report.get("policy")) != report.get("policy") or entry.get("constants"):
            continue  # it may compute less
        if entry["verified"] and (not entry["apart"] or held is None or held.apart_counts):
            roofline = roofline.beaten(entry["min"], f"{entry['name']} ({title(report)})")
    shares = {
        entry["name"]: roofline.seconds / entry["min"] for entry in timed if roofline.seconds <= entry["min"]
    }
    return {
        **report,
        "limits": {**limits, **limits_of(roofline)},
        "entries": [
            {**entry, "share": shares.get(entry["name"])} if "min" in entry else entry
            for entry in report["entries"]
        ],
    }


def best_baseline(report: Report) -> Row | None:
    """The fastest baseline of a kernel, by the ratio within rounds; those shown apart do not count."""
    rows = [e for e in measured(report, "baseline") if not e["apart"] and _ratio(e) is not None]
    return min(rows, key=lambda e: e["ratio"]["median"], default=None)


def _ratio(row: Row) -> float | None:
    ratio = row.get("ratio")
    return ratio["median"] if ratio else None


def ratio_of(report: Report, baseline: Row, ours: Row) -> float | None:
    """A baseline's time over one of ours: above 1, ours is faster. From the ratios within rounds."""
    theirs = _ratio(baseline)
    mine = 1.0 if ours["entry"] == report["reference"] else _ratio(ours)
    return theirs / mine if theirs and mine else None


def summary(reports: list[Report]) -> dict[str, Any]:
    """Geometric means. ``against``: by our entry, then by baseline, ``best`` and the number of kernels.

    ``reference`` stands for the entry that each kernel's ratios are against. ``share``: of the machine's
    limit, for memory-bound and compute-bound kernels.
    """
    names = ["reference", *dict.fromkeys(e["entry"] for r in reports for e in measured(r, "ours"))]
    baselines = list(
        dict.fromkeys(e["entry"] for r in reports for e in r["entries"] if e["kind"] == "baseline")
    )
    against: dict[str, Any] = {}
    for name in names:
        pairs = [(report, _ours(report, name)) for report in reports]
        mine: list[tuple[Report, Row]] = [(report, row) for report, row in pairs if row is not None]
        by_baseline: dict[str, Any] = {}
        for baseline in [*baselines, "best"]:
            ratios = {}
            for report, row in mine:
                theirs = _named(report, baseline) if baseline != "best" else best_baseline(report)
                ratio = ratio_of(report, theirs, row) if theirs is not None else None
                if ratio is not None:
                    ratios[title(report)] = ratio
            by_baseline[baseline] = _statistics(ratios)
        against[name] = by_baseline
    shares: dict[str, Any] = {}
    for bound in ("memory", "arithmetic"):
        of_bound = {}
        for report in reports:
            reference_row = reference(report)
            if (
                reference_row is not None
                and reference_row.get("share")
                and (report["limits"] or {}).get("bound") == bound
            ):
                of_bound[title(report)] = reference_row["share"]
        shares[bound] = _statistics(of_bound)
    return {"against": against, "share": shares, "kernels": len(reports)}


def _statistics(values: dict[str, float]) -> dict[str, Any]:
    worst = min(values, key=lambda name: values[name], default=None)
    return {
        "geometric_mean": geometric_mean(values.values()),
        "kernels": len(values),
        "worst": values[worst] if worst is not None else None,
        "worst_kernel": worst,
    }


def _ours(report: Report, name: str) -> Row | None:
    if name == "reference":
        return reference(report)
    return next((e for e in measured(report, "ours") if e["entry"] == name), None)


def _named(report: Report, name: str) -> Row | None:
    return next((e for e in measured(report, "baseline") if e["entry"] == name), None)
