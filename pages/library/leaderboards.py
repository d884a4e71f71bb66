"""Leaderboards: per kernel, shape, target and machine."""

from __future__ import annotations

import streamlit as st

from dojo_core.measure.catalogue import Board
from dojo_core.service.library import time_words
from dojo_core.wording import counted
from pages import shell
from pages.library.actions import row_actions
from pages.library.tables import chosen, record_cells
from pages.shared import the_library


def leaderboards() -> None:
    library = the_library()
    this_machine = library.catalogue.own_fingerprints
    boards = sorted(library.catalogue.boards(), key=lambda b: (b.fingerprint not in this_machine, -b.newest))
    if not boards:
        shell.notice("Nothing has been measured yet: play a kernel, and its times gather here.")
        return

    def words(board: Board) -> str:
        shape = library.shape_of(board.kernel, board.start_hash, board.shape)
        where = "this machine" if board.fingerprint in this_machine else "another machine"
        count = counted(board.programs, "program")
        return f"{board.kernel} {shape} · {board.dtype} · {board.target} · {where} · {count}"

    kernels = sorted({board.kernel for board in boards})
    left, right = st.columns([1, 3])
    kernel = left.selectbox("Kernel", ["All kernels", *kernels], key="board_kernel")
    shown = [board for board in boards if kernel in (board.kernel, "All kernels")]
    names = {f"{b.start_hash}/{b.target}/{b.fingerprint}": b for b in shown}
    name = right.selectbox(
        "Leaderboard", list(names), format_func=lambda each: words(names[each]), key=f"board-{kernel}"
    )
    board = names[name or next(iter(names))]
    against = library.baseline_seconds(board, "torch")
    ranking = library.leaderboard(board, against)
    where = library.machine_words(board.fingerprint, board.machine)
    starts = [line.row for line in ranking.lines if line.row.program_hash == board.start_hash]
    busy = " (machine busy: speed-ups are less)" if any(row.conditions.busy for row in starts) else ""
    facts = [where, f"start {time_words(board.start)}{busy}"]
    if against is not None:
        facts.append(f"PyTorch {time_words(against)} (last comparison)")
    shell.facts(" · ".join(facts))
    if not ranking.of_this_machine:
        shell.notice("Times of another machine: claims, until they are measured here.")
    cells = [
        {
            "Rank": line.rank,
            "Time": "",
            "Speed-up": line.speedup,
            "vs. PyTorch": line.against,
            **record_cells(line.row, this_machine),
        }
        for line in ranking.lines
    ]
    if against is None:
        for cell in cells:
            cell.pop("vs. PyTorch")
    actions = st.container()
    rows = chosen(cells, [line.row.id for line in ranking.lines], "ranking", f"Leaderboard of {board.kernel}")
    with actions:
        row_actions([ranking.lines[number].row for number in rows], "ranking")
