"""What can be done with chosen records and games: to the board, out as files, away and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dojo_core.measure.catalogue import Row
from dojo_core.service import Refused
from dojo_core.service.library import Deleted
from dojo_core.sharing import Opened
from dojo_core.study.writing import of_game as study_of
from pages import shell
from pages.shared import the_library, the_player, the_service

POLL = 1.0  # seconds, while claims are measured


def say(words: str, kind: str = "info") -> None:
    """Told on top of the page at its next run."""
    st.session_state["library_said"] = (words, kind)


def importing() -> None:
    """The Import button: a file at a time, or several."""
    with st.popover("Import", width="stretch"):
        st.caption(
            "A .dojo file, a line or a program becomes a game: each of its moves is checked again. "
            "JSON lines of records come in as claims."
        )
        turn = st.session_state.setdefault("import_turn", 0)
        files = st.file_uploader(
            "Files",
            accept_multiple_files=True,
            key=f"import-{turn}",
            label_visibility="collapsed",
            max_upload_size=16,
        )
        if files:
            messages, kind = [], "info"
            for file in files[:20]:
                try:
                    messages.append(
                        the_library().take_in(file.name, file.getvalue(), the_player().owner).words
                    )
                except Refused as refusal:
                    messages.append(str(refusal))
                    kind = "error"
            say("\n".join(messages), kind)
            st.session_state["import_turn"] = turn + 1  # another uploader, an empty one
            st.rerun()


def deleted() -> None:
    """What was deleted last, and the way back."""
    last: Deleted | None = st.session_state.get("library_deleted")
    if last is None:
        return
    message, undo, close = st.columns([8, 1, 1], vertical_alignment="center")
    with message:
        shell.notice(last.words)

    def bring_back() -> None:
        the_library().undo(last)
        _changed()
        st.session_state.pop("library_deleted", None)

    undo.button("Undo", on_click=bring_back, key="undo", width="stretch")
    close.button("Dismiss", on_click=lambda: st.session_state.pop("library_deleted"), width="stretch")


def delete(remove: Callable[[], Deleted]) -> None:
    """Delete now; the page shows at its next run how to undo it."""
    st.session_state["library_deleted"] = remove()
    _changed()


def _changed() -> None:
    """Tables begin with nothing chosen: also one that looks as it did before."""
    st.session_state["library_changes"] = st.session_state.get("library_changes", 0) + 1


def to_board(game: str) -> None:
    """Put a saved game on the board and go there."""
    the_service().sit_down(the_player(), game)
    shell.go("play")


def open_record(row: Row) -> None:
    """A record as a game of the player's, on the board."""
    opened = the_library().replayed(row.id)
    service, player = the_service(), the_player()
    service.sit_down(player, service.take_in(opened.game, player.owner, once=True))
    service.say(player, opened.words, "error" if opened.gone else "info")
    shell.go("play")


def row_actions(rows: Sequence[Row], key: str) -> None:
    """The buttons for chosen records; there from the start, so that nothing jumps when one is chosen."""
    library, player = the_library(), the_player()
    one = rows[0] if len(rows) == 1 else None
    claims = [row.id for row in rows if row.state == "claim"]
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}-actions"):
        if st.button("Open on the board", disabled=one is None, type="primary", key=f"{key}-open") and one:
            open_record(one)
        if st.button(
            "Measure here", disabled=not claims, key=f"{key}-verify",
            help="Claims are replayed through the legality checks, then verified and timed on this machine.",
        ):  # fmt: skip
            say(library.verify(claims[:50], player.id))
            st.rerun()
        c_file(lambda: library.replayed(rows[0].id), one is None, key)
        archive(lambda: [library.replayed(row.id) for row in rows], not rows, key)
        st.download_button(
            "Records", lambda: library.record_lines(rows), "records.jsonl", "application/jsonl",
            disabled=not rows, key=f"{key}-lines", on_click="ignore", help="As JSON lines, to take along.",
        )  # fmt: skip
        st.download_button(
            "A study", lambda: _file_or_reason(lambda: study_of(library.replayed(rows[0].id).game)),
            "study.md", "text/markdown", disabled=one is None, key=f"{key}-study", on_click="ignore",
            help="The record's moves as a text to put your words into: dojo study builds it.",
        )  # fmt: skip
        if st.button("Delete", disabled=not rows, key=f"{key}-delete"):
            delete(lambda: library.delete_records([row.id for row in rows]))
            st.rerun()
        tell_chosen(len(rows))
    if library.verifying(player.id):
        st.fragment(run_every=POLL)(_progress)()


def _progress() -> None:
    left = the_library().verifying(the_player().id)
    if not left:
        st.rerun()
    shell.notice(f"Measuring claims: {left} to go. They are verified records when they are done.")
    shell.tell_of_waiting("library")


def c_file(opened: Callable[[], Opened], disabled: bool, key: str) -> None:
    st.download_button(
        "C file", lambda: _file_or_reason(lambda: the_library().c_file(opened())[1]), "kernel.c", "text/x-c",
        disabled=disabled, key=f"{key}-c", on_click="ignore", help="The generated function.",
    )  # fmt: skip


def archive(opened: Callable[[], Sequence[Opened]], disabled: bool, key: str) -> None:
    st.download_button(
        "C library", lambda: _file_or_reason(lambda: the_library().archive(opened())[1]), "dojo_kernels.zip",
        "application/zip", disabled=disabled, key=f"{key}-zip", on_click="ignore",
        help="C files, a header, CMake and a Python package, as a zip.",
    )  # fmt: skip


def _file_or_reason(make: Callable[[], Any]) -> Any:
    """A file, or in its place the sentence why there is none."""
    try:
        return make()
    except Refused as refusal:
        return f"Not exported. {refusal}\n"


def tell_chosen(rows: int) -> None:
    """How many rows of the table beside the buttons are chosen."""
    words = f"{rows} chosen" if rows else "Choose rows in the table."
    st.html(f"<span style='color:var(--dojo-quiet)'>{words}</span>", width="content")
