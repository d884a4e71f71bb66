"""Two programs of a comparison, and what differs in their texts: the program, its C, its assembly."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dojo_core.actions import looking
from dojo_core.bench.table import Line, lines
from dojo_core.measure.measurement import seconds_text
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.wording import counted
from pages.difference import difference

VIEWS = {"Program": "program", "C": "c", "Assembly": "asm"}


def texts(document: dict[str, Any]) -> None:
    programs, report = document["programs"], document["reports"][0]
    st.markdown("### What differs")
    if len(programs) < 2:
        st.caption("There is one program here: compare two, and what differs between them stands here.")
        return
    left, middle, right = st.columns([3, 3, 2], vertical_alignment="bottom")
    names = list(programs)
    first = left.selectbox("From", names, key=f"texts-from-{document['time']}")
    others = [name for name in names if name != first]
    second = middle.selectbox("To", others, key=f"texts-to-{document['time']}-{first}")
    view = right.segmented_control(
        "View", list(VIEWS), default="Program", required=True, key="texts_view", label_visibility="collapsed"
    )
    chosen = [first or names[0], second or others[0]]
    rows = {line.name: line for line in lines(report, chosen[0])}
    difference(
        key="difference",
        data={
            "names": [_named(name, programs[name]["moves"]) for name in chosen],
            "times": [_time(rows.get(name)) for name in chosen],
            "speed": _speed(rows.get(chosen[1])),
            "kind": VIEWS[view or "Program"],
            "texts": [
                shown(programs[name]["text"], view or "Program", report["policy"]).splitlines()
                for name in chosen
            ],
        },
    )


def _named(name: str, moves: int | None) -> str:
    return name if moves is None else f"{name}, {counted(moves, 'move')}"


def _time(line: Line | None) -> str:
    return "no time" if line is None or line.middle is None else seconds_text(line.middle.value)


def _speed(line: Line | None) -> dict[str, str] | None:
    """How fast the second is against the first, within the rounds; a sign stands beside the colour."""
    if line is None or line.speed is None:
        return None
    value, low, high = line.speed.value, line.speed.low, line.speed.high
    sign, tone = ("▲", "faster") if low > 1 else ("▼", "slower") if high < 1 else ("?", "unsure")
    between = f"between {low:.2f}× and {high:.2f}×" if line.speed.level else "of one round"
    return {"words": f"{sign} {value:.2f}×", "tone": tone, "title": f"The median of the rounds, {between}."}


@st.cache_data(max_entries=100, show_spinner="Compiling between measurements …")
def shown(text: str, view: str, policy: str) -> str:
    """A program's text, its C or its assembly; where there is none, the sentence why."""
    if view == "Program":
        return text
    try:
        program = parse(text)
        if view == "C":
            return looking.code(program, DEFAULT_TARGET, policy).text
        return "\n".join(looking.assembly(program, DEFAULT_TARGET, policy).lines)
    except ValueError as fault:
        return f"// {fault}"
