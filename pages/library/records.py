"""All records, filtered, a page at a time."""

from __future__ import annotations

import streamlit as st

from dojo_core.measure.catalogue import Wanted
from pages import shell
from pages.library.actions import row_actions
from pages.library.tables import chosen, record_cells
from pages.shared import the_library

PAGE = 100  # rows
ANY = "any"
STATES = {"verified": "✓ verified here", "claim": "? claims", "failed": "✕ failed"}
ORDERS = {"newest": "newest first", "time": "fastest first", "kernel": "by kernel"}


def records() -> None:
    library = the_library()
    wanted = _filter()
    count = library.catalogue.count(wanted)
    if not count:
        shell.notice("No record fits this filter." if wanted != Wanted() else "There are no records yet.")
        return
    left, middle, right = st.columns([2, 1, 5], vertical_alignment="bottom")
    order = left.selectbox("Order", list(ORDERS), format_func=ORDERS.__getitem__, key="records_order")
    pages = -(-count // PAGE)
    number = int(middle.number_input("Page", 1, pages, 1, key=f"records_page-{hash(wanted)}-{order}"))
    right.text(f"{count:,} records; page {number} of {pages}")
    rows = library.catalogue.rows(wanted, order or "newest", (number - 1) * PAGE, PAGE)
    cells = [
        {
            "Kernel": row.kernel[:60],
            "Shape": library.shape_of(row.kernel, row.start_hash, row.shape),
            "dtype": row.dtype,
            "Target": row.target,
            **record_cells(row, library.catalogue.own_fingerprints),
            "Machine": library.machine_words(row.fingerprint, row.machine),
        }
        for row in rows
    ]
    actions = st.container()
    picked = chosen(cells, [row.id for row in rows], "records", "Records")
    with actions:
        row_actions([rows[at] for at in picked], "records")


def _filter() -> Wanted:
    """The filter's fields; each offers what there is under the others."""
    library, state = the_library(), st.session_state
    names = ("kernel", "shape", "dtype", "target", "fingerprint", "player")
    selected = {name: state.get(f"want_{name}", ANY) for name in names}
    filters = {name: value for name, value in selected.items() if value != ANY}
    status = state.get("want_state", ANY)
    facets = library.catalogue.facets(Wanted(**filters, state="" if status == ANY else status))
    machines = library.catalogue.machines()
    labels = {
        "kernel": "Kernel", "shape": "Output", "dtype": "dtype", "target": "Target",
        "fingerprint": "Machine", "player": "Player or agent",
    }  # fmt: skip

    def words(name: str, value: str) -> str:
        if value == ANY:
            return ANY
        if name == "fingerprint":
            return library.machine_words(value, machines.get(value, ""))
        return value[:60] or "not named"

    columns = st.columns([3, 2, 2, 2, 4, 3, 3])
    for column, name in zip(columns, names, strict=False):
        options = list(dict.fromkeys([ANY, *facets[name], selected[name]]))
        column.selectbox(
            labels[name], options, key=f"want_{name}", format_func=lambda value, name=name: words(name, value)
        )
    columns[-1].selectbox(
        "Status", [ANY, *STATES], key="want_state", format_func=lambda value: STATES.get(value, ANY)
    )
    selected = {name: state[f"want_{name}"] for name in names}
    status = state["want_state"]
    return Wanted(
        **{name: value for name, value in selected.items() if value != ANY},
        state="" if status == ANY else status,
    )
