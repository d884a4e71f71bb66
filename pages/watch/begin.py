"""Where runs are begun and found."""

from __future__ import annotations

import streamlit as st

from agents.jobs import JobRefused, JobSpec, JobView
from agents.jobs.recording import BY_HAND, Recording, shipped, told_by_move
from agents.jobs.spec import MOST_EVALUATIONS, MOST_SECONDS, TIMINGS
from agents.players import KINDS, agent_groups
from dojo_core.game import Game
from dojo_core.program.expressions import TextError
from dojo_core.program.target import DEFAULT_TARGET
from dojo_core.service import Refused
from pages import runs, shell
from pages.jobs import OwnJobs, the_jobs
from pages.shared import the_player, the_service
from pages.watch.lanes import Lane, ratio, short_name

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
        none = "None yet. What you start goes on when this page is closed, and is found again here."
        runs.show_list("watch", OwnJobs(), none, _description)
        _recordings()


def _start() -> None:
    st.subheader("Start")
    table = the_player().table
    game = None if table is None else table.game
    places = ["A kernel from its start"]
    if game is not None:
        places.insert(0, f"The game on your board: {game.title}, move {len(game.line()) - 1}")
    where = st.radio("From", places, key="watch_from") if game is not None else places[0]
    name, shape, policy, target = "softmax", "", "reassoc", DEFAULT_TARGET
    if where == places[-1]:
        target = runs.choose_target("watch")
        name, shape = runs.choose_kernel("watch", target=target)
        policy = runs.choose_policy("watch", "What agents may change", target)
    one, other = st.columns(2)
    groups = agent_groups()
    abouts = {agent.name: agent.about for group in groups.values() for agent in group}
    agents = list(abouts)
    first = one.selectbox(
        "Agent", agents, index=agents.index("annealing-lines"), format_func=short_name, key="watch_agent"
    )
    second = other.selectbox("Beside it", [NOBODY, *agents], format_func=short_name, key="watch_second")
    about = "; ".join(abouts[name] for name in (first, second) if name in abouts)
    st.caption(f"{about[0].upper()}{about[1:]}.")
    with st.expander("What each agent does"):
        for heading, group in groups.items():
            lines = [f"- **{runs.plain(short_name(a.name))}**: {runs.plain(a.about)}" for a in group]
            st.markdown("\n".join([f"{heading}", "", *lines]))
        for kind in KINDS.values():
            if kind.hint and kind.title not in groups:
                st.caption(kind.hint)
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
            saved = the_service().new_game(name, shape, policy, the_player().owner, target)
        else:
            saved = _own_game()
        position = Game.from_text(the_service().game_text(saved))
        run_ids: list[str] = []
        for agent, chosen in _players(first, second, int(seed)):
            budget = (int(evaluations), float(seconds))
            beside = run_ids[0] if run_ids else ""
            spec = JobSpec.of(position, agent, int(chosen), *budget, timing, saved, beside)
            run_ids.append(the_jobs().start(spec))
    except (JobRefused, Refused, TextError) as refusal:
        st.error(str(refusal))
        return
    runs.show("watch", run_ids)


def _own_game() -> str:
    """The game on this tab's board, in which what a run finds becomes a variation; a copy where it is
    somebody else's."""
    player = the_player()
    if player.watching:
        the_service().play_on(player)
    assert player.table is not None
    return player.table.game.id


def _players(first: str, second: str, seed: int) -> list[tuple[str, int]]:
    """Agents with their seeds: two of one kind are two only with different ones."""
    if second == NOBODY:
        return [(first, seed)]
    return [(first, seed), (second, seed + (first == second))]


def _description(view: JobView) -> tuple[str, str]:
    """Who plays, and how far it has come."""
    lane = Lane.live(view)
    best, first = lane.best, lane.reference
    done = view.entries[-1].evaluation if view.entries else 0
    progress = f"{done} of {view.spec.evaluations} programs"
    if best is not None and best.seconds and first:
        progress += f" · best {lane.time(best.seconds)}, {ratio(first / best.seconds)}"
    return lane.title, progress


def _recordings() -> None:
    st.subheader("Recordings")
    st.caption("Replayed at reading speed; nothing is measured.")
    recordings = shipped()
    beside = {each.spec.beside: each for each in recordings if each.spec.beside}
    for each in recordings:
        if not each.spec.beside:
            _recording(each, beside.get(each.spec.id))
    table = the_player().table
    if table is not None and len(table.game.positions) > 1:
        text, play = st.columns([6, 1.6], vertical_alignment="center")
        text.markdown(f"**{runs.plain(table.game.title)}** · the game on your board, move by move")
        if play.button("Replay", key="replay_game", width="stretch"):
            shell.readdress(demo=f"game-{table.game.id}")


def _recording(each: Recording, beside: Recording | None) -> None:
    """A row; a run that was begun beside another is shown beside it."""
    text, play = st.columns([6, 1.6], vertical_alignment="center")
    count = len(each.entries)
    who = each.spec.agent if beside is None else f"{each.spec.agent} beside {beside.spec.agent}"
    if told_by_move(each.entries) and who != BY_HAND:
        who = f"a line of {who}, move by move"
    text.markdown(
        f"**{runs.plain(each.spec.title)}** · {runs.plain(who)} · {count} steps  \n{runs.plain(each.source)}"
    )
    if play.button("Replay", key=f"replay_{each.name}", width="stretch"):
        shell.readdress(demo=each.name if beside is None else f"{each.name},{beside.name}")
