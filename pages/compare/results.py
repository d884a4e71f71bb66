"""What a comparison came to: a table, plots, the programs side by side, files to take along."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from dojo_core.bench.table import Line, as_csv, lines, shown_name
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.measurement import seconds_text
from dojo_core.program.expressions import TextError
from dojo_core.service.takeaway import file_name
from dojo_core.study.reports import of_report
from pages import shell
from pages.compare import plots
from pages.compare.texts import texts
from pages.shared import the_library


def results(document: dict[str, Any]) -> None:
    document = the_library().settled(document)
    report = document["reports"][0]
    timed = [shown_name(e) for e in report["entries"] if e["status"] == "ok"]
    title = f"{report['kernel']} {report['shape']}"
    left, right = st.columns([4, 2], vertical_alignment="bottom")
    with left:
        shell.heading(title)
    reference = right.selectbox("Speeds against", timed, key=f"reference-{document['time']}") if timed else ""
    rows = lines(report, reference or "")
    _table(rows, report)
    facts = [
        f"{report['rounds']} rounds of {report['samples']} runs, in turns", report["machine_summary"],
        Conditions(report.get("load")).words,
        f"fingerprint {document['fingerprint']}", document["time"].replace("T", " ").replace("Z", " UTC"),
    ]  # fmt: skip
    shell.facts(" · ".join(facts))
    for remark in report["remarks"]:
        shell.facts(remark)
    _files(document, title)
    if any(line.best for line in rows):
        samples, roof = st.columns([3, 2])
        with samples:
            st.markdown("### Samples")
            st.plotly_chart(plots.dots(rows), key="dots", alt="Each sample's time, by entry")
        with roof:
            st.markdown("### Roofline")
            figure = plots.roofline(rows, report)
            if figure is None:
                st.caption("The machine's limits were not measured for this one.")
            else:
                st.plotly_chart(figure, key="roof", alt="Rate of each entry under the machine's limits")
    figure = plots.convergence(document)
    st.markdown("### Convergence of agents")
    if figure is None:
        st.caption("No agent's run from this start program is logged on this machine yet.")
    else:
        st.plotly_chart(figure, key="convergence", alt="Best so far of agents, the median of their seeds")
        st.caption("Line: median of the seeds; band: from the best seed to the worst.")
    texts(document)


def _table(rows: list[Line], report: dict[str, Any]) -> None:
    """Numbers with their intervals; a row without a time says why."""

    def interval(value: Any, words: Any) -> str:
        if value is None:
            return "–"
        between = (
            f"  [{words(value.low)} – {words(value.high)}]" if value.level else ""
        )  # of one round there is none
        return f"{words(value.value)}{between}"

    cells = [
        {
            "Entry": line.name,
            "Best": "–" if line.best is None else seconds_text(line.best),
            "Time  [95% interval]": interval(line.middle, seconds_text),
            "Speed  [interval]": interval(line.speed, lambda ratio: f"{ratio:.2f}×"),
            "Of the limit": None if line.share is None else 100 * line.share,
            "Status": "✓ verified" if line.status == "ok" else f"✕ {line.status.replace('_', ' ')}",
            "About": line.message or line.details,
        }
        for line in rows
    ]
    frame = pd.DataFrame(cells)
    st.dataframe(
        frame, hide_index=True, key="comparison", alt="Entries with their times", placeholder="–",
        column_config={
            "Best": st.column_config.TextColumn(help="The shortest of all runs."),
            "Time  [95% interval]": st.column_config.TextColumn(
                help="Of each round the shortest run; of these the median."
            ),
            "Speed  [interval]": st.column_config.TextColumn(
                help="The reference's shortest run over this one's within each round; of these the median."
            ),
            "Of the limit": st.column_config.NumberColumn(format="%.2g%%", help="Of the machine's limit."),
            "About": st.column_config.TextColumn(width="large"),
        },
    )  # fmt: skip
    shell.facts(
        "Times and speeds stand on the shortest run of each round. A speed is taken within the rounds, where "
        "a slow minute hits both: where the rounds differ much, it need not be the ratio of the two times."
    )
    short = [line for line in rows if line.middle is not None and 0 < line.middle.level < 0.95]
    if short:
        level = min(line.middle.level for line in short if line.middle is not None)
        names = ", ".join(line.name for line in short)
        shell.facts(
            f"{names}: fewer than six rounds, so the interval holds with {100 * level:.0f}%. "
            "A start program is slow, and runs in three rounds."
        )
    for line in rows:
        if line.status != "ok":
            shell.notice(f"{line.name}: {line.message}", "error" if line.status != "missing" else "info")


def _files(document: dict[str, Any], title: str) -> None:
    """Files made at once: they are small, and one made on request may be lost when the page runs again
    meanwhile, as it does when a comparison ends."""
    name = file_name(title)
    with st.container(horizontal=True):
        st.download_button(
            "CSV", as_csv(document), f"{name}-comparison.csv", "text/csv", on_click="ignore",
            help="Every sample, with the machine's fingerprint.",
        )  # fmt: skip
        st.download_button(
            "JSON", json.dumps(document, indent=1), f"{name}-comparison.json", "application/json",
            on_click="ignore", help="All of it; dojo bench --from shows it again.",
        )  # fmt: skip
        st.download_button(
            "A study", lambda: _study(document), f"{name}.md", "text/markdown", on_click="ignore",
            help="Times, and the moves of ours, as a text to put your words into: dojo study builds it.",
        )  # fmt: skip


def _study(document: dict[str, Any]) -> str:
    """A study of a comparison, or in its place the sentence why there is none."""
    try:
        return of_report(document)
    except TextError as fault:
        return f"{fault.message}. {fault.remedy}\n"
