"""The operators as one HTML file that needs nothing else: each with its verified time beside those of
others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from agents.operators.compared import RIVALS, Judgement
from dojo_core.bench.charts import seconds_text
from dojo_core.bench.page import STYLE

Row = Mapping[str, Any]


def page(document: Mapping[str, Any]) -> str:
    """The HTML of a document as ``library.py`` writes it."""
    rows: Sequence[Row] = document["rows"]
    body = "\n".join(
        [_head(document, rows), _times(rows), _reasons(rows), _left_out(document), _effort(document, rows)]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>A tuned library of ONNX operators</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def geometric_mean(ratios: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def ratios(rows: Sequence[Row], rival: str) -> list[float]:
    """A rival's time over ours, of the rows where both are right: the median of the rounds."""
    found = []
    for row in rows:
        ratio = (_entry(row, rival).get("ratio") or {}).get("median")
        if ratio:
            found.append(float(ratio))
    return found


def _entry(row: Row, name: str) -> Mapping[str, Any]:
    entries = (row.get("report") or {}).get("entries", ())
    return next((each for each in entries if each["entry"] == name), {})


def _head(document: Mapping[str, Any], rows: Sequence[Row]) -> str:
    right = [row for row in rows if row["status"] == "ok"]
    named = {row["operator"] for row in right}
    figures = [(str(len(named)), f"operators, {len(right)} kernels, each verified")]
    gained = geometric_mean([row["start"] / row["best"] for row in right if row["start"] and row["best"]])
    if gained is not None:
        figures.append((f"{gained:.1f}×", "of the start programs"))
    for name, rival in RIVALS.items():
        of_rival = ratios(rows, name)
        mean = geometric_mean(of_rival)
        if mean is not None:
            figures.append((f"{mean:.2f}×", f"against {rival.name}, {len(of_rival)} kernels"))
    shown = "".join(f"<div><b>{number}</b><span>{escape(words)}</span></div>" for number, words in figures)
    absent = "".join(f'<p class="soft">{escape(sentence)}</p>' for sentence in document["absent"].values())
    return (
        f'<h1>A tuned library of ONNX operators</h1><p class="soft">{escape(document["machine"])}, '
        f"{escape(document['time'])}. Search: {escape(document['plan']['search'])}.</p>"
        f'<div class="figures">{shown}</div>'
        '<p class="soft">Geometric means; a rival\'s time over ours, so that above 1 ours is faster.</p>'
        + absent
    )


def _times(rows: Sequence[Row]) -> str:
    body = []
    before = ""
    for row in rows:
        if row["status"] != "ok":
            continue
        operator = row["operator"] if row["operator"] != before else ""
        before = row["operator"]
        cells = [seconds_text(row[key]) if row[key] else "–" for key in ("start", "heuristic", "best")]
        others = "".join(_rival(row, name) for name in RIVALS)
        judged = str(Judgement(**row["judgement"])) if row["judgement"] else ""
        notes = [judged, *row["costly"], row["exported"], row["reason"]]
        moves = "" if row["moves"] is None else f"{row['moves']} move{'s' if row['moves'] != 1 else ''}"
        search = (
            f"{row['programs']} programs{'' if row['whole'] else ', to go on'}"
            if row["programs"]
            else "no search yet"
        )
        said = "; ".join(filter(None, (row["about"], moves, search, *notes)))
        body.append(
            f"<tr><td><b>{escape(operator)}</b></td><td>{escape(row['shape'])}</td>"
            + "".join(f'<td class="n">{cell}</td>' for cell in cells)
            + f'{others}<td class="said soft">{escape(said)}</td></tr>'
        )
    if not body:
        return ""
    names = "".join(
        f'<th class="n">{escape(r.name)}</th><th class="n">over ours</th>' for r in RIVALS.values()
    )
    return (
        '<h2>Times</h2><p class="soft">Best runs of verified programs. The others in interleaved rounds with '
        "ours, on the same inputs; over ours: the median of the rounds.</p>"
        '<div class="scroll"><table><tr><th>operator</th><th>shape</th><th class="n">start</th>'
        f'<th class="n">pass</th><th class="n">best</th>{names}<th></th></tr>{"".join(body)}</table></div>'
    )


def _rival(row: Row, name: str) -> str:
    entry = _entry(row, name)
    if entry.get("min") is None:
        words = {"unsupported": "no counterpart", "wrong_result": "differs"}.get(
            str(entry.get("status", "")), "–"
        )
        return f'<td class="n" title="{escape(str(entry.get("message", "")))}">{words}</td><td></td>'
    ratio = (entry.get("ratio") or {}).get("median")
    told = f"{ratio:.2f}×" if ratio else ""
    return f'<td class="n">{seconds_text(entry["min"])}</td><td class="n">{told}</td>'


def _reasons(rows: Sequence[Row]) -> str:
    without = [row for row in rows if row["status"] in ("refused", "failed")]
    body = "".join(
        f"<tr{' class=bad' if row['status'] == 'failed' else ''}><td><b>{escape(row['operator'])}</b></td>"
        f'<td>{escape(row["shape"])}</td><td class="said">{escape(row["reason"])}</td></tr>'
        for row in without
    )
    waiting = [row for row in rows if row["status"] == "waiting"]
    told = (
        f'<p class="soft">{len(waiting)} kernels are not begun: the same command goes on.</p>'
        if waiting
        else ""
    )
    if not without:
        return told
    return f'{told}<h2>Without a kernel, and why</h2><div class="scroll"><table>{body}</table></div>'


def _left_out(document: Mapping[str, Any]) -> str:
    by_reason: dict[str, list[str]] = {}
    for name, reason in document["left_out"].items():
        by_reason.setdefault(reason, []).append(name)
    body = "".join(
        f'<tr><td class="said">{escape(", ".join(names))}</td><td class="said">{escape(reason)}</td></tr>'
        for reason, names in by_reason.items()
    )
    return f'<h2>Operators that are no kernels</h2><div class="scroll"><table>{body}</table></div>'


def _effort(document: Mapping[str, Any], rows: Sequence[Row]) -> str:
    steps: dict[str, list[float]] = {}
    for row in rows:
        for step, seconds in row["took"].items():
            steps.setdefault(step, []).append(seconds)
    if not steps:
        return ""
    total = sum(map(sum, steps.values()))
    body = "".join(
        f'<tr><td>{escape(step)}</td><td class="n">{len(taken)}</td>'
        f'<td class="n">{sum(taken) / len(taken):.1f} s</td><td class="n">{sum(taken) / 60:.1f} min</td></tr>'
        for step, taken in steps.items()
    )
    programs = sum(row["programs"] for row in rows)
    return (
        f'<h2>What it took</h2><p class="soft">{total / 3600:.2f} hours of this machine in all calls, '
        f"{programs:,} programs measured by search. "
        "The paper extrapolates 1,280 node-hours for 160 operators.</p>"
        '<div class="scroll"><table><tr><th>step</th><th class="n">kernels</th><th class="n">each</th>'
        f'<th class="n">in all</th></tr>{body}</table></div>'
    )
