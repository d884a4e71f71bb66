"""The report's pictures as SVG: plain text whose colours come from the page's style sheet, light or dark."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from dojo_core.bench.summary import best_baseline, geometric_mean, measured, reference, title

Report = dict[str, Any]


def seconds_text(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _svg(width: float, height: float, body: list[str], label: str) -> str:
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
        + "".join(body)
        + "</svg>"
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", turn: float = 0) -> str:
    turned = f' transform="rotate({turn:g} {x:.1f} {y:.1f})"' if turn else ""
    chosen = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{chosen}{turned}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _bar(x: float, y: float, width: float, height: float, kind: str, tooltip: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="1.5" '
        f'class="{kind}"><title>{escape(tooltip)}</title></rect>'
    )


def _columns(
    bars: list[tuple[str, float, str, str]],
    reached: float,
    unit: str,
    label: str,
    fixed: float | None = None,
) -> str:
    """Columns of (name, value, class, what it is), a line at ``reached``, names turned below."""
    high = fixed or max([reached * 1.3, *(value for _, value, _, _ in bars)])
    shown = min(high, reached * 6)  # one very slow baseline must not flatten the rest
    left, top, tall, wide = 48.0, 24.0, 220.0, max(40.0, 1010.0 / max(len(bars), 1))
    width = left + wide * len(bars) + 110
    body = []
    step = next(s for s in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10) if shown / s <= 8)
    tick = 0.0
    while tick <= shown + 1e-9:
        y = top + tall * (1 - tick / shown)
        body += [
            _line(left, y, left + wide * len(bars), y, "grid"),
            _text(left - 6, y + 4, _tick(tick, unit), "axis", "end"),
        ]
        tick += step
    for place, (name, value, kind, tooltip) in enumerate(bars):
        x, tall_bar = left + wide * place, tall * min(value, shown) / shown
        body.append(_bar(x + wide * 0.18, top + tall - tall_bar, wide * 0.64, tall_bar, kind, tooltip))
        body.append(_text(x + wide / 2, top + tall - tall_bar - 5, _value(value, unit), "value", "middle"))
        body.append(_text(x + wide / 2 - 4, top + tall + 14, name, "name", "start", 28))
    y = top + tall * (1 - reached / shown)
    body.append(_line(left, y, left + wide * len(bars), y, "even"))
    return _svg(width, top + tall + 105, body, label)


def _tick(value: float, unit: str) -> str:
    return f"{100 * value:.0f}%" if unit == "%" else f"{value:g}×"


def _value(value: float, unit: str) -> str:
    return f"{100 * value:.0f}%" if unit == "%" else f"{value:.2f}"


def against_best(reports: list[Report]) -> str:
    """A column a kernel: the best baseline's time over ours; the geometric mean (the paper's figure 11)."""
    bars, values = [], []
    for report in reports:
        other = best_baseline(report)
        if other is None:
            continue
        ratio = other["ratio"]["median"]
        values.append(ratio)
        tooltip = (
            f"{title(report)}: {ratio:.2f} times as fast as {other['name']}, "
            f"{other['ratio']['min']:.2f} to {other['ratio']['max']:.2f} in the rounds"
        )
        bars.append((title(report), ratio, "ours" if ratio >= 1 else "ours behind", tooltip))
    mean = geometric_mean(values)
    if mean is None:
        return ""
    bars.append(("geometric mean", mean, "mean", f"geometric mean of {len(values)} kernels: {mean:.3f}"))
    return _columns(bars, 1.0, "×", "Ours against the best baseline of each kernel")


def share_of_limit(reports: list[Report]) -> str:
    """A column a kernel: how much of the machine's limit ours reaches."""
    bars = []
    for report in reports:
        row = reference(report)
        if row is None or not row.get("share"):
            continue
        bound = "memory" if report["limits"]["bound"] == "memory" else "arithmetic"
        tooltip = f"{title(report)}: {100 * row['share']:.1f}% of its {bound} limit"
        bars.append((title(report), row["share"], f"bound-{bound}", tooltip))
    if not bars:
        return ""
    return _columns(bars, 1.0, "%", "Share of the machine's limit", max(1.1, *(b[1] for b in bars)))


def panel(report: Report) -> str:
    """One kernel: a bar an entry, as fast as it is relative to PyTorch eager, else to the slowest shown."""
    rows = measured(report, "ours") + measured(report, "baseline")
    if not rows:
        return ""
    base = next((r for r in rows if r["entry"] == "torch"), None) or max(rows, key=lambda r: r["min"])
    speeds = [(row, base["min"] / row["min"]) for row in rows]
    limits = report["limits"]
    ceiling = base["min"] / limits["seconds"] if limits else 0.0
    most = max(ceiling, *(speed for _, speed in speeds))
    left, wide, tall = 158.0, 190.0, 19.0
    body = []
    for number, (row, speed) in enumerate(speeds):
        y = 4 + tall * number
        kind = "ours" if row["kind"] == "ours" else "apart" if row["apart"] else "theirs"
        tooltip = f"{row['name']}: {seconds_text(row['min'])} best, {seconds_text(row['median'])} median"
        body.append(_text(left - 8, y + 11, row["name"].replace("ours: ", "ours, "), "entry", "end"))
        body.append(_bar(left, y, wide * speed / most, tall - 6, kind, tooltip))
        words = f"{speed:.2f}× · {seconds_text(row['min'])}"
        body.append(_text(left + wide + 108, y + 11, words, "value", "end"))
    height = 4 + tall * len(speeds)
    one = left + wide / most
    body.append(_line(one, 0, one, height, "even"))
    if limits:
        at = left + wide * ceiling / most
        body.append(_line(at, 0, at, height, "limit"))
    return _svg(left + wide + 110, height + 2, body, title(report))


def roofline(reports: list[Report]) -> str:
    """Operations a second over operations a byte, both logarithmic, under the machine's ceilings."""
    points = []
    for report in reports:
        row, limits = reference(report), report["limits"]
        if row is None or not limits or not report["flops"] or not report["bytes"]:
            continue
        points.append((report["flops"] / report["bytes"], report["flops"] / row["min"] / 1e9, report, row))
    if not points:
        return ""
    peak = max(r["limits"]["gflops"] for _, _, r, _ in points)
    single = max(r["limits"]["gflops_one_thread"] for _, _, r, _ in points)
    # Small arrays stay in a cache, and stream faster: the roof over all kernels, and the memory's below it.
    cold = [r["limits"]["gbytes_per_second"] for _, _, r, _ in points if r["limits"]["bytes"] > 1 << 26]
    bandwidth = max(r["limits"]["gbytes_per_second"] for _, _, r, _ in points)
    slopes = {bandwidth: f"{bandwidth:.1f} GB/s"}
    if cold and max(cold) < bandwidth:
        slopes = {bandwidth: f"{bandwidth:.1f} GB/s, in cache", max(cold): f"{max(cold):.1f} GB/s"}
    left, top, wide, tall = 70.0, 20.0, 820.0, 380.0
    low_x, high_x = -5, math.ceil(math.log2(max(64, 2 * max(p[0] for p in points))))
    low_y = math.floor(math.log10(min(p[1] for p in points) / 2))
    high_y = math.ceil(math.log10(peak * 1.2))

    def at(intensity: float, speed: float) -> tuple[float, float]:
        x = (math.log2(intensity) - low_x) / (high_x - low_x)
        y = (math.log10(speed) - low_y) / (high_y - low_y)
        return left + wide * x, top + tall * (1 - y)

    body = []
    for power in range(low_x, high_x + 1):
        x, _ = at(2.0**power, 10.0**low_y)
        body.append(_line(x, top, x, top + tall, "grid"))
        words = f"{2**power}" if power >= 0 else f"1/{2**-power}"
        body.append(_text(x, top + tall + 18, words, "axis", "middle"))
    for power in range(low_y, high_y + 1):
        _, y = at(1.0, 10.0**power)
        body.append(_line(left, y, left + wide, y, "grid"))
        body.append(_text(left - 8, y + 4, f"{10.0**power:g}", "axis", "end"))
    for speed, words in ((peak, "all threads"), (single, "one thread")):
        x1, y = at(speed / bandwidth, speed)
        x2, _ = at(2.0**high_x, speed)
        body.append(_line(x1, y, x2, y, "roof"))
        body.append(_text(x2 + 8, y + 4, f"{speed:.0f} GFLOP/s, {words}", "axis"))
    for slope, words in slopes.items():
        foot = max(2.0**low_x, 10.0**low_y / slope)
        x1, y1 = at(foot, foot * slope)
        x2, y2 = at(peak / slope, peak)
        body.append(_line(x1, y1, x2, y2, "roof"))
        turn = math.degrees(math.atan2(y2 - y1, x2 - x1))
        middle = ((x1 + x2) / 2 - 30, (y1 + y2) / 2 + 30 * (y2 - y1) / (x1 - x2) - 10)
        body.append(_text(*middle, words, "axis", "middle", turn))
    taken: list[tuple[float, float]] = []
    for intensity, speed, report, row in sorted(points, key=lambda p: (p[0], -p[1])):
        x, y = at(intensity, speed)
        tooltip = f"{title(report)}: {speed:.1f} GFLOP/s at {intensity:.2g} operations a byte"
        tooltip += f", {100 * row['share']:.0f}% of its limit" if row.get("share") else ""
        body.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="ours"><title>{escape(tooltip)}</title></circle>'
        )
        spot = _free(x + 9, y + (4 if intensity < peak / bandwidth else 24), taken)
        body.append(_text(*spot, title(report), "name"))
    body.append(_text(left + wide / 2, top + tall + 40, "operations a byte", "axis", "middle"))
    body.append(_text(18, top + tall / 2, "GFLOP/s", "axis", "middle", -90))
    return _svg(left + wide + 180, top + tall + 52, body, "Roofline")


def _free(x: float, y: float, taken: list[tuple[float, float]]) -> tuple[float, float]:
    """A place for a label near (x, y) that no other label covers."""
    for shift in range(0, 200, 14):
        spot = (x, y + shift)
        if all(abs(spot[0] - a) > 150 or abs(spot[1] - b) > 12 for a, b in taken):
            taken.append(spot)
            return spot
    taken.append((x, y))
    return x, y
