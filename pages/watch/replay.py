"""Recordings at reading speed: nothing is measured, and nothing moves unless it plays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from agents.jobs import JobRefused
from agents.jobs.recording import Recording, of_game, read, shipped
from dojo_core.game import Game
from dojo_core.service import Refused
from pages import shell
from pages.jobs import the_jobs
from pages.shared import the_service
from pages.watch.component import Action, asks, draw, draw_curves, in_order, looks
from pages.watch.hand import NotOpened, opened
from pages.watch.lanes import Lane, Look, from_one_start, taken_over
from pages.watch.studying import study_buttons

PACE = 2.0  # seconds for a step, unless chosen otherwise
LOOKS = 0.4  # seconds between two looks while it plays


@dataclass(frozen=True)
class Player:
    """Where a recording stands: ``at`` steps at the time ``since`` (None: it rests there)."""

    key: str
    at: int = 1
    since: float | None = None
    pace: float = PACE

    def now(self, total: int) -> int:
        """How many steps are shown."""
        gone = 0 if self.since is None else int((time.monotonic() - self.since) / self.pace)
        return min(total, self.at + gone)

    def playing(self, total: int) -> bool:
        return self.since is not None and self.now(total) < total

    def moved(self, at: int, total: int, play: bool | None = None) -> Player:
        """Elsewhere, going on or resting as before unless told."""
        going = self.playing(total) if play is None else play
        return replace(self, at=min(total, max(1, at)), since=time.monotonic() if going else None)

    def told(self, on: bool, total: int) -> Player:
        """Goes on, at its end from the beginning, or rests. Told by what was pressed: a press that comes
        when it has just ended is still to rest."""
        at = self.now(total)
        return self.moved(1 if on and at >= total else at, total, play=on)


@st.cache_data(show_spinner=False, max_entries=16, ttl=30)
def recording_named(name: str) -> Recording | None:
    """A recording by name: one that comes with the Dojo, a run of one's own, a saved game (``game-ID``)."""
    for each in shipped():
        if each.name == name:
            return each
    try:
        if name.startswith("game-"):
            service, game = the_service(), name.removeprefix("game-")
            return of_game(Game.from_text(service.game_text(game)), name, service.times(game))
        return replace(read(the_jobs().file(name)), name=name)
    except (JobRefused, Refused, OSError, ValueError):
        return None


def page(names: Sequence[str]) -> None:
    recordings = [each for each in map(recording_named, names) if each is not None]
    left, right = st.columns([8, 2], vertical_alignment="center")
    with left:
        shell.head("Watch", "A recording: nothing is measured now.")
    if right.button("All runs", key="watch_all", width="stretch"):
        shell.readdress(demo=None)
    if not recordings:
        st.error("There is no recording of this name here. It may have been deleted: choose one on Watch.")
        return
    show(recordings)
    study_buttons(recordings)


def show(recordings: Sequence[Recording], key: str = "") -> None:
    """The stage on recordings, all at the same step, with what plays them."""
    state = st.session_state
    total = max(len(each.entries) for each in recordings)
    key = key or ",".join(each.name for each in recordings)
    if getattr(state.get("watch_player"), "key", None) != key:
        state.watch_player = Player(key, since=time.monotonic())
        for each in recordings:
            looks().pop(each.name, None)
    polling = state.watch_player.playing(total) or asks()

    def acted(action: Action) -> None:
        player: Player = state.watch_player
        at = player.now(total)
        match action.get("kind"), action:
            case "replay_play", {"on": bool(on)}:
                state.watch_player = player.told(on, total)
                _follow()
            case "replay_step", {"by": int(by)}:
                state.watch_player = player.moved(at + by, total, play=False)
                _follow()
            case "replay_at", {"at": int(to)}:
                state.watch_player = player.moved(to, total)
                _follow()
            case "replay_pace", {"pace": int(pace) | float(pace)} if 0.1 <= pace <= 10:
                state.watch_player = replace(player.moved(at, total), pace=float(pace))
            case "take_over", {"run": str(run)}:
                recording = next((each for each in recordings if each.name == run), None)
                if recording is not None:
                    lane = Lane.replayed(recording, at)
                    try:
                        opened(recording.spec, taken_over(lane, looks().get(run, Look("newest"))))
                        state.watch_go = True
                    except NotOpened as fault:
                        state.watch_said = str(fault)

    def _follow() -> None:
        """What was chosen by hand gives way to what plays."""
        for each in recordings:
            look = looks().get(each.name)
            if look is not None and (look.entry is not None or look.ply is not None):
                looks()[each.name] = Look(look.follow)

    def look_again() -> None:
        player: Player = state.watch_player
        at = player.now(total)
        going = player.playing(total)
        playback = {"at": at, "total": total, "playing": going, "pace": _number(player.pace)}
        lanes = from_one_start([Lane.replayed(each, at) for each in recordings])
        for part in in_order(
            partial(draw, lanes, acted, "newest", playback), partial(draw_curves, lanes), len(lanes)
        ):
            part()
        if state.get("watch_said"):
            st.toast(state.pop("watch_said"))
        if state.pop("watch_go", False):
            shell.go("play")
        if (going or asks()) != polling:
            st.rerun()

    st.fragment(run_every=min(LOOKS, state.watch_player.pace) if polling else None)(look_again)()


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value
