"""The programs of a comparison side by side: text, C, assembly."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dojo_core.codegen.code import NotGeneratable
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.program.text import parse
from dojo_core.targets.registry import backend

SHOWN = 3  # beside each other
VIEWS = {"Program": None, "C": "c", "Assembly": "asm"}


def texts(document: dict[str, Any]) -> None:
    programs = document["programs"]
    policy = document["reports"][0]["policy"]
    st.markdown("### Side by side")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    names = left.multiselect(
        "Programs", list(programs), default=list(programs)[:2], max_selections=SHOWN,
        key=f"texts-{document['time']}", label_visibility="collapsed",
    )  # fmt: skip
    view = right.segmented_control(
        "View", list(VIEWS), default="Program", required=True, key="texts_view", label_visibility="collapsed"
    )
    if not names:
        return
    for column, name in zip(st.columns(len(names)), names, strict=True):
        moves = programs[name]["moves"]
        with column:
            st.text(name if moves is None else f"{name}, {moves} moves")
            st.code(
                shown(programs[name]["text"], view or "Program", policy), VIEWS[view or "Program"], height=460
            )


@st.cache_data(max_entries=100, show_spinner="Compiling between measurements …")
def shown(text: str, view: str, policy: str) -> str:
    """A program's text, its C or its assembly; where there is none, the sentence why."""
    if view == "Program":
        return text
    try:
        program, target = parse(text), backend(DEFAULT_TARGET)
        if view == "C":
            return target.generate(program, policy).text
        return "\n".join(target.assembly(program, policy).lines)
    except (NotGeneratable, TextError, ValueError) as fault:
        return f"// {fault}"
