"""Where runs are begun and found."""

from __future__ import annotations

import time
from datetime import datetime

import streamlit as st

from agents.jobs import JobRefused, JobSpec, JobView
from agents.jobs.recording import Recording, shipped
from agents.jobs.spec import MOST_EVALUATIONS, MOST_SECONDS, TIMINGS
from agents.players import AGENTS
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.program.text import TextError
from dojo_core.service import Refused
from dojo_core.service.games import POLICIES
from pages import shell
from pages.jobs import the_jobs
from pages.shared import the_player, the_service
from pages.watch.lanes import STATES, Lane, ratio

LISTED = 8  # runs shown at once
POLL = 2.0
NOBODY = "nobody"


def page() -> None:
    shell.head(
        "Watch",
        "Hand a position to an agent and see what it tries. It plays the same game as you: what it finds "
        "becomes a variation of the game, and you can take over at any program.",
    )
    left, right = st.columns([5, 6], gap="large")
    with left:
        _start()
    with right:
        _runs()
        _recordings()


def _start() -> None:
    st.subheader("Start")
    table = the_player().table
    game = None if table is None else table.game
    places = ["A kernel from its start"]
    if game is not None:
        places.insert(0, f"The game on your board: {game.title}, move {len(game.line()) - 1}")
    where = st.radio("From", places, key="watch_from") if game is not None else places[0]
    name, shape, policy = "softmax", "", "reassoc"
    if where == places[-1]:
        one, other = st.columns(2)
        names = kernels.names()
        name = one.selectbox("Kernel", names, index=names.index("softmax"), key="watch_kernel")
        standard = "x".join(map(str, kernels.get(name).shapes[0]))
        shape = other.text_input("Shape", standard, key=f"watch_shape_{name}", max_chars=80)
        labels = {key: words for key, words, _ in POLICIES}
        policy = st.segmented_control(
            "What agents may change", list(labels), default="reassoc", required=True,
            format_func=labels.__getitem__, key="watch_policy",
            help=" ".join(f"{words}: {sentence}" for _, words, sentence in POLICIES),
        )  # fmt: skip
    one, other = st.columns(2)
    agents = list(AGENTS)
    first = one.selectbox("Agent", agents, index=agents.index("annealing-lines"), key="watch_agent")
    second = other.selectbox("Beside it", [NOBODY, *agents], key="watch_second")
    st.caption(AGENTS[first].about + (f"; {AGENTS[second].about}" if second in AGENTS else "") + ".")
    one, two, three = st.columns(3)
    evaluations = one.number_input(
        "Programs", 1, MOST_EVALUATIONS, 200, key="watch_programs", help="So many are measured at most."
    )
    seconds = two.number_input(
        "Seconds", 1, int(MOST_SECONDS), 600, key="watch_seconds", help="At most so long."
    )
    seed = three.number_input(
        "Seed", 0, 10**6, 0, key="watch_seed", help="The same seed and times, the same run."
    )
    timing = st.radio(
        "Score", list(TIMINGS), format_func=TIMINGS.__getitem__, key="watch_timing", horizontal=True
    )
    if timing == "count":
        st.caption(
            "Counted operations say nothing of caches or pipelines: good for seeing how agents search."
        )
    if not st.button("Start", type="primary", key="watch_start"):
        return
    try:
        if where == places[-1]:
            saved = the_service().new_game(name, shape, policy or "reassoc", the_player().id)
        else:
            assert game is not None
            saved = game.id
        position = Game.from_text(the_service().game_text(saved))
        if position.target != "cpu":
            st.error("Agents measure on this machine's processor: choose a game for the target cpu.")
            return
        found = [
            the_jobs().start(
                JobSpec.of(position, agent, int(chosen), int(evaluations), float(seconds), timing, saved)
            )
            for agent, chosen in _players(first, second, int(seed))
        ]
    except (JobRefused, Refused, TextError) as refusal:
        st.error(str(refusal))
        return
    st.query_params["r"] = ",".join(found)
    st.session_state.watch_until = time.monotonic() + 3
    st.rerun()


def _players(first: str, second: str, seed: int) -> list[tuple[str, int]]:
    """Agents with their seeds: two of one kind are two only with different ones."""
    if second == NOBODY:
        return [(first, seed)]
    return [(first, seed), (second, seed + (first == second))]


def _runs() -> None:
    st.subheader("Runs")
    jobs = the_jobs()
    polling = any(view.works for view in jobs.all())

    def listed() -> None:
        views = jobs.all()
        if not views:
            st.caption("None yet. What you start goes on when this page is closed, and is found again here.")
        shown = st.session_state.get("watch_listed", LISTED)
        for view in views[:shown]:
            _row(view)
        if len(views) > shown and st.button(f"{len(views) - shown} older", key="watch_older"):
            st.session_state.watch_listed = shown + LISTED
            st.rerun()
        if any(view.works for view in views) != polling:
            st.rerun()

    st.fragment(run_every=POLL if polling else None)(listed)()


def _row(view: JobView) -> None:
    jobs, spec = the_jobs(), view.spec
    lane = Lane.live(view)
    words, _ = STATES.get(view.state, (view.state, ""))
    best, first = lane.best, lane.reference
    done = view.entries[-1].evaluation if view.entries else 0
    told = f"{words} · {done} of {spec.evaluations} programs"
    if best is not None and best.seconds and first:
        told += f" · best {lane.time(best.seconds)}, {ratio(first / best.seconds)}"
    when = datetime.fromtimestamp(spec.created).strftime("%d %b %H:%M")
    text, open_it, more, delete = st.columns([6, 1.6, 1.7, 1.6], vertical_alignment="center")
    text.markdown(f"**{_plain(spec.title)}** · {_plain(lane.title)} · {when}  \n{told}")
    if open_it.button("Watch", key=f"watch_{spec.id}", width="stretch"):
        st.query_params["r"] = spec.id
        st.rerun()
    try:
        if view.resumable and more.button("Resume", key=f"resume_{spec.id}", width="stretch"):
            jobs.resume(spec.id)
            st.query_params["r"] = spec.id
            st.session_state.watch_until = time.monotonic() + 3
            st.rerun()
        over = not view.works and view.state != "paused"
        if over and delete.button("Delete", key=f"delete_{spec.id}", width="stretch"):
            jobs.delete(spec.id)
            st.rerun()
    except JobRefused as refusal:
        st.error(str(refusal))


def _recordings() -> None:
    st.subheader("Recordings")
    st.caption("Replayed at reading speed; nothing is measured.")
    for each in shipped():
        _recording(each)
    table = the_player().table
    if table is not None and len(table.game.positions) > 1:
        text, play = st.columns([6, 1.6], vertical_alignment="center")
        text.markdown(f"**{_plain(table.game.title)}** · the game on your board, move by move")
        if play.button("Replay", key="replay_game", width="stretch"):
            st.query_params["demo"] = f"game-{table.game.id}"
            st.rerun()


def _recording(each: Recording) -> None:
    text, play = st.columns([6, 1.6], vertical_alignment="center")
    count = len(each.entries)
    who = "by hand" if each.spec.agent == "by hand" else each.spec.agent
    text.markdown(f"**{_plain(each.spec.title)}** · {_plain(who)} · {count} steps  \n{_plain(each.source)}")
    if play.button("Replay", key=f"replay_{each.name}", width="stretch"):
        st.query_params["demo"] = each.name
        st.rerun()


def _plain(text: str) -> str:
    """Text that is not to be read as Markdown."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()<>#+-.!|$:~" else c for c in text)
