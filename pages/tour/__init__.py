"""The tour: a naive softmax, ten moves by hand, an agent's finish, the same beside PyTorch, and in a model.

Everything is told from recordings (``make recordings``), so it needs no network and no measuring; at each
station one can leave and do it oneself.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from agents.jobs.recording import RECORDINGS, Recording
from dojo_core import kernels
from dojo_core.export import NotExported, library, zipped
from dojo_core.export.choice import of_game
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.measurement import seconds_text
from dojo_core.package_data import data_path
from dojo_core.service import Refused
from pages import shell
from pages.shared import the_player, the_service
from pages.watch import replay
from pages.watch.hand import sit

STATIONS = ("The naive program", "Ten moves by hand", "An agent finishes", "Beside PyTorch", "In a model")
KERNEL = "softmax"
NO_RECORDING = "This recording is not here: make recordings makes it anew."
AGENTS_GAME = RECORDINGS / "softmax-agent.game"
EXAMPLE = data_path("agents", "examples", "softmax_in_a_model.py")


def page() -> None:
    with shell.content():
        asked = st.query_params.get("station", "1")
        at = int(asked) - 1 if asked in ("1", "2", "3", "4", "5") else 0
        shell.head("Tour", f"Station {at + 1} of {len(STATIONS)}: {STATIONS[at]}.")
        _ways(at)
        (_naive, _by_hand, _agent, _pytorch, _model)[at]()


def _ways(at: int) -> None:
    """Back, on, and straight to any station."""
    ways = st.container(horizontal=True)  # in a small window they go on below
    if ways.button("◂ Back", key="tour_back", disabled=at == 0):
        _go(at - 1)
    for number, title in enumerate(STATIONS):
        label = f"{number + 1}. {title}"
        if ways.button(label, key=f"tour_{number}", type="primary" if number == at else "secondary"):
            _go(number)
    last = at == len(STATIONS) - 1
    if ways.button("Next ▸", key="tour_next", disabled=last):
        _go(at + 1)


def _go(at: int) -> None:
    shell.readdress(station=str(at + 1))


def _recording(name: str) -> Recording | None:
    recording = replay.recording_named(name)
    if recording is None:
        st.error(NO_RECORDING)
    return recording


def _naive() -> None:
    recording = _recording("softmax-by-hand")
    if recording is None:
        return
    first = recording.entries[0]
    left, right = st.columns([3, 2], gap="large")
    left.code(first.text, language=None)
    with right:
        st.markdown(
            "This is a program of the Dojo: softmax over the rows of a matrix, as a textbook writes it. "
            "A number opens a loop, `|` continues the loops of the line above, `{0}` is the outermost "
            "loop's counter.\n\nFive loops go over the whole matrix one after the other. `d` and `e` "
            "are as large as the input, so every step reads and writes main memory. No vectors, one "
            "thread.\n\nThe game: **moves** change the program a little and never its meaning, which is "
            "checked. The **score** is the measured time."
        )
        if first.seconds is not None:
            st.metric("Time of the naive program", seconds_text(first.seconds))
            st.caption(recording.source)
        if st.button("Play it yourself", key="tour_play"):
            try:
                sit(the_service().new_game("softmax", recording.spec.shape, "reassoc", the_player().owner))
            except Refused as refusal:
                st.error(str(refusal))
            else:
                shell.go("play")


def _by_hand() -> None:
    st.markdown(
        "Ten moves that a player made: one pass over the rows, buffers that shrink to a row, vectors "
        "where the time goes. They are played at reading speed; Space stops, the arrow keys step. What "
        "a move changed is marked. *Take over* opens any position in Play, with its legal moves."
    )
    recording = _recording("softmax-by-hand")
    if recording is not None:
        replay.show([recording], "tour-by-hand")
        st.caption(recording.source)


def _agent() -> None:
    st.markdown(
        "From there an agent goes on: simulated annealing over edits of a line of moves. It plays the "
        "same game through the same moves; each program is compiled, verified and timed. Slower ones "
        "are kept with a chance that falls with the temperature."
    )
    recording = _recording("softmax-agent")
    if recording is not None:
        replay.show([recording], "tour-agent")
        st.caption(recording.source)
        if st.button("Let an agent play here, on this machine", key="tour_live"):
            shell.go("watch")


@cache
def _compared() -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads((RECORDINGS / "softmax-pytorch.json").read_text(encoding="utf-8"))
        return report
    except (OSError, ValueError):
        return None


def _labelled(entry: dict[str, Any]) -> str:
    return f"{entry['name']}<br>{seconds_text(entry['seconds'])}"


def _pytorch() -> None:
    report = _compared()
    if report is None:
        st.error(NO_RECORDING)
        return
    names = {"ours: line": "the agent's program", "ours: start": "the naive program"}
    named = [{**entry, "name": names.get(entry["name"], entry["name"])} for entry in report["entries"]]
    entries = sorted(named, key=lambda entry: entry["seconds"])
    left, right = st.columns([3, 2], gap="large")
    figure = go.Figure()
    for kind, name, symbol, colour in (
        ("ours", "the Dojo", "circle", "#3b8eea"),
        ("baseline", "others", "diamond", "#e0912f"),
    ):
        shown = [entry for entry in entries if entry["kind"] == kind]
        figure.add_scatter(
            x=[entry["seconds"] * 1e3 for entry in shown], y=[_labelled(entry) for entry in shown],
            mode="markers", marker={"size": 13, "symbol": symbol, "color": colour}, name=name,
        )  # fmt: skip
    figure.update_layout(
        height=120 + 62 * len(entries), margin={"l": 8, "r": 30, "t": 30, "b": 8},
        xaxis={
            "title": "shortest time, ms (logarithmic)",
            "type": "log",
            "tickvals": [digit * 10.0**power for power in range(-4, 5) for digit in (1, 2, 5)],
        },
        yaxis={
            "categoryarray": [_labelled(entry) for entry in entries][::-1],
            "range": [-0.6, len(entries) - 0.4],
        },
        legend={"orientation": "h", "y": 1.12},
    )  # fmt: skip
    left.plotly_chart(
        figure,
        key="tour_bench",
        config={"displayModeBar": False},
        alt="Shortest times; the table beside has them.",
    )
    with right:
        rows = [{"": entry["name"], "shortest time": seconds_text(entry["seconds"])} for entry in entries]
        st.dataframe(rows, hide_index=True)
        st.markdown(
            f"The same {report['kernel']} {report['shape']} in {report['rounds']} interleaved rounds, each "
            "in a process of its own; every element of every output is compared with a reference in double "
            "precision."
        )
        st.caption(report["source"])
        if st.button("Measure it on this machine", key="tour_compare"):
            _compare()
        st.caption(
            "The agent's program (where its vectors are wider than this machine's, the recorded line's) "
            "comes onto your board; Compare then offers it beside PyTorch."
        )


def _own_game() -> Game:
    """The agent's game; where its vectors are wider than this machine's, the kernel's recorded line.

    Raises OSError and ValueError where neither can be played.
    """
    try:
        return Game.from_text(AGENTS_GAME.read_text(encoding="utf-8"))
    except ValueError as fault:
        line = recorded_lines()[KERNEL]
        kernel = kernels.get(KERNEL)
        game = Game.new(kernel.program(kernel.shape(line.shape)), KERNEL, line.shape, policy=line.policy)
        if not all(entry.applies for entry in line.play(game).entries):
            raise fault
        return game


def _compare() -> None:
    """Compare, with the agent's game on this tab's board: its program is the first that is offered there."""
    try:
        sit(the_service().take_in(_own_game(), the_player().owner, once=True))
    except (OSError, ValueError, Refused) as fault:
        st.error(f"The agent's program cannot be opened: {fault}")
    else:
        shell.go("compare")


def _model() -> None:
    left, right = st.columns([3, 2], gap="large")
    try:
        left.code(EXAMPLE.read_text(encoding="utf-8"), language="python", height=560)
        printed = (RECORDINGS / "softmax-model.txt").read_text(encoding="utf-8")
    except OSError:
        printed = ""
    with right:
        st.markdown(
            "`dojo export` writes a library that needs nothing of the Dojo: C files, a header, a CMake "
            "file, a Python package and PyTorch operators that stand inside `torch.compile`. On the "
            "left it is the softmax of an attention; this is what it printed:"
        )
        if printed:
            st.code(printed, language=None, wrap_lines=True)
        archive = _exported()
        if archive is not None:
            st.download_button(
                "Take the agent's softmax with you (.zip)", archive, "dojo_kernels.zip", key="tour_zip",
                on_click="ignore",
            )  # fmt: skip


@cache
def _exported() -> bytes | None:
    """The library of the agent's best, made now."""
    try:
        return zipped(library([of_game(_own_game(), "the tour's agent")]))
    except (OSError, ValueError, NotExported):
        return None
