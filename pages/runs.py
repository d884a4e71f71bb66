"""What Watch, Train and Model share: which kernel a run is on, words for its states, the list of runs.

``page`` stands before the keys of widgets and in the session's state, so that each page keeps its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

import streamlit as st

from agents.jobs import JobRefused
from dojo_core import kernels
from dojo_core.opening import first_shape
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service.games import policies, targets
from dojo_core.targets.registry import base
from dojo_core.targets.registry import target as target_named
from pages import shell

STATES = {  # what a person reads, and its tone
    "starting": ("starting…", "working"),
    "running": ("● playing", "working"),
    "pausing": ("finishing what it measures…", "working"),
    "paused": ("‖ paused", "quiet"),
    "stopping": ("stopping…", "working"),
    "done": ("✓ done", "good"),
    "stopped": ("■ stopped", "quiet"),
    "failed": ("✕ failed", "bad"),
    "interrupted": ("… interrupted", "quiet"),
    "elsewhere": ("● playing in another app", "working"),
    "recorded": ("recorded", "quiet"),
}
LISTED = 8  # runs shown at once
POLL = 2.0  # seconds between two looks at the list while one of them works
NOTICE = 3.0  # seconds between two looks at a run that rests
SHOWS = 3.0  # seconds in which a run that was begun shows


class Spec(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def created(self) -> float: ...


class View(Protocol):
    @property
    def spec(self) -> Spec: ...
    @property
    def state(self) -> str: ...
    @property
    def works(self) -> bool: ...
    @property
    def resumable(self) -> bool: ...


ViewT = TypeVar("ViewT", bound=View)


class Runs(Protocol[ViewT]):
    """Jobs or Trainings. Each call raises JobRefused with a sentence."""

    def all(self) -> list[ViewT]: ...
    def resume(self, run: str) -> None: ...
    def delete(self, run: str) -> None: ...


# ---------------------------------------------------------------------------- what a run is on


def choose_target(page: str) -> str:
    """A field for what the run's programs are made for."""
    words = {name: title for name, title, _ in targets()}
    abouts = "  \n".join(f"{plain(title)}: {plain(about)}" for _, title, about in targets())
    return st.selectbox("For", list(words), format_func=words.__getitem__, key=f"{page}_target", help=abouts)


def choose_kernel(
    page: str, first: str = "softmax", shape: str = "", target: str = DEFAULT_TARGET
) -> tuple[str, str]:
    """Two fields beside each other: a kernel's name, and a shape as it was typed.

    ``first`` and, for it, ``shape`` are what stands there at first; else a shape that the ``target`` can
    begin with.
    """
    one, other = st.columns(2)
    names = kernels.names()
    name = one.selectbox("Kernel", names, index=names.index(first), key=f"{page}_kernel")
    standard = shape if shape and name == first else "x".join(map(str, _shape(name, target)))
    key = f"{page}_shape_{name}_{base(target)}"
    return name, other.text_input("Shape", standard, key=key, max_chars=80)


def _shape(name: str, target: str) -> kernels.Shape:
    kernel, limits = kernels.get(name), target_named(target)
    return kernel.shapes[0] if limits.memory_bytes is None else first_shape(kernel, limits)


def choose_policy(page: str, label: str, target: str = DEFAULT_TARGET) -> str:
    offered = policies(target)
    labels = {key: words for key, words, _ in offered}
    abouts = " ".join(f"{words}: {about}" for _, words, about in offered)
    chosen = st.segmented_control(
        label, list(labels), default="reassoc", required=True, format_func=labels.__getitem__,
        key=f"{page}_policy_{len(offered)}", help=abouts,
    )  # fmt: skip
    return chosen or "reassoc"


# ---------------------------------------------------------------------------- other tabs


def notice_changes(state: Callable[[], object]) -> None:
    """Draw anew when a run that rests here is told to go on elsewhere, in another tab for example.

    Only for pages that do not poll: ``state`` is asked now and then, and nothing is drawn for it.
    """
    shown = state()

    def look() -> None:
        if state() != shown:
            st.rerun()

    st.fragment(run_every=NOTICE)(look)()


# ---------------------------------------------------------------------------- the list


def show(page: str, runs: Sequence[str]) -> None:
    """Go to a page's runs; what was asked of them shows for a moment even where nothing moves yet."""
    st.session_state[f"{page}_until"] = time.monotonic() + SHOWS
    shell.readdress(r=",".join(runs))


def show_list(page: str, runs: Runs[ViewT], none: str, describe: Callable[[ViewT], tuple[str, str]]) -> None:
    """The runs, newest first, looked at again while one of them works.

    ``describe`` gives what stands beside a run's title, and the line below it.
    """
    st.subheader("Runs")
    polling = any(view.works for view in runs.all())

    def listed() -> None:
        views = runs.all()
        if not views:
            st.caption(none)
        if polling:
            shell.tell_of_waiting(f"{page}_runs")
        shown = st.session_state.get(f"{page}_listed", LISTED)
        for view in views[:shown]:
            _row(page, runs, view, describe)
        if len(views) > shown and st.button(f"{len(views) - shown} older", key=f"{page}_older"):
            st.session_state[f"{page}_listed"] = shown + LISTED
            st.rerun()
        if any(view.works for view in views) != polling:
            st.rerun()

    st.fragment(run_every=POLL if polling else None)(listed)()


def _row(page: str, runs: Runs[ViewT], view: ViewT, describe: Callable[[ViewT], tuple[str, str]]) -> None:
    spec = view.spec
    words, _ = STATES.get(view.state, (view.state, ""))
    who, below = describe(view)
    when = datetime.fromtimestamp(spec.created).strftime("%d %b %H:%M")
    text, open_it, more, delete = st.columns([6, 1.6, 1.7, 1.6], vertical_alignment="center")
    text.markdown(f"**{plain(spec.title)}** · {plain(who)} · {when}  \n{words} · {plain(below)}")
    if open_it.button("Watch" if page == "watch" else "Open", key=f"{page}_{spec.id}", width="stretch"):
        shell.readdress(r=spec.id)
    try:
        if view.resumable and more.button("Resume", key=f"{page}_resume_{spec.id}", width="stretch"):
            runs.resume(spec.id)
            show(page, [spec.id])
        over = not view.works and view.state != "paused"
        if over and delete.button("Delete", key=f"{page}_delete_{spec.id}", width="stretch"):
            runs.delete(spec.id)
            st.rerun()
    except JobRefused as refusal:
        st.error(str(refusal))


def plain(text: str) -> str:
    """Text that is not to be read as Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|$:~" else c for c in text)
