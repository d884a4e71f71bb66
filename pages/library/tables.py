"""Rows of records as Streamlit's table shows them; a chosen row is known by its record, not by its place."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dojo_core.measure.catalogue import Row
from dojo_core.measure.conditions import BUSY_MEANS
from dojo_core.service.library import time_words, when_words

STATE_WORDS = {"verified": "✓ verified here", "claim": "? claim", "failed": "✕ "}
HEIGHT = 460


def state_words(row: Row, this_machine: Collection[str]) -> str:
    """Status with a sign and a word."""
    if row.state == "failed":
        return "✕ " + row.status.replace("_", " ")
    if row.state == "claim":
        return "? claim, " + ("imported" if row.fingerprint in this_machine else "another machine")
    return STATE_WORDS["verified"]


def load_words(row: Row) -> str:
    """What else the machine did, with a sign where that makes the time doubtful."""
    return f"▲ {row.conditions.mark}" if row.conditions.busy else row.conditions.mark


def record_cells(row: Row, this_machine: Collection[str]) -> dict[str, Any]:
    """What all tables of records say of one."""
    return {
        "Time": time_words(row.seconds),
        "Load": load_words(row),
        "Moves": row.moves,
        "Who": row.player or "–",
        "When": when_words(row.time),
        "Policy": row.policy,
        "Runs": row.runs,
        "Status": state_words(row, this_machine),
    }


COLUMNS = {
    "Rank": st.column_config.NumberColumn(width=55, help="Claims have no rank."),
    "Time": st.column_config.TextColumn(width=85, help="The best of its runs; of those in quiet, if any."),
    "Load": st.column_config.TextColumn(
        width=95,
        help="What other processes took of the machine's cores meanwhile; empty where that is not known. "
        f"{BUSY_MEANS}",
    ),
    "Speed-up": st.column_config.NumberColumn(format="%.2f×", width=85, help="Over the start program."),
    "vs. PyTorch": st.column_config.NumberColumn(
        format="%.2f×", width=95, help="PyTorch's time in the last comparison here, over this one."
    ),
    "Moves": st.column_config.NumberColumn(width=65, help="From the start; empty where they are not known."),
    "Runs": st.column_config.NumberColumn(width=55, help="How often it was measured."),
    "Status": st.column_config.TextColumn(width=170, help="Claims can be measured here."),
    "Best": st.column_config.NumberColumn(format="%.2f×", width=80, help="Best speed-up measured here."),
    "Claim": st.column_config.NumberColumn(format="%.2f×", width=80, help="What its file claims."),
}


def chosen(cells: Sequence[dict[str, Any]], ids: Sequence[object], key: str, alt: str) -> list[int]:
    """Draw a table; the numbers of the rows that are chosen in it."""
    # Other rows are another table: a choice made by place would mean others.
    identity = (list(ids), st.session_state.get("library_changes", 0))
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:10]
    frame = pd.DataFrame(list(cells))
    event = st.dataframe(
        frame, hide_index=True, key=f"{key}-{digest}", on_select="rerun", selection_mode="multi-row",
        column_config={name: each for name, each in COLUMNS.items() if name in frame.columns},
        height=min(HEIGHT, 38 + 35 * max(1, len(cells))), alt=alt, placeholder="–",
    )  # fmt: skip
    return [number for number in event["selection"]["rows"] if number < len(cells)]
