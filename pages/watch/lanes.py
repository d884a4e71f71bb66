"""One run as the stage shows it, live or from a recording: plain data for the component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from agents.agent import Thought
from agents.jobs import Entry, JobSpec, JobView
from agents.jobs.recording import BY_HAND, Recording, told_by_move
from agents.outside import cost_text
from dojo_core.game import Game
from dojo_core.measure.speed import DRIFT_QUIET, SIGNS, apart
from dojo_core.moves import IllegalMove
from dojo_core.program.text import parse
from dojo_core.service.learned import Learned
from dojo_core.service.view import Json, difference, program_lines
from dojo_core.targets.registry import backend
from dojo_core.wording import counted
from pages.runs import STATES

LOGGED = 200  # entries of the log that a page is sent
CONSIDERED = 12


@dataclass(frozen=True)
class Look:
    """What of a run is looked at: an entry by number, or whichever is the ``best`` or ``newest``; ``ply``
    moves of its line (None: all)."""

    follow: str = "best"
    entry: int | None = None
    ply: int | None = None


@dataclass(frozen=True)
class Lane:
    """A run up to some point."""

    id: str
    spec: JobSpec
    entries: Sequence[Entry]
    state: str
    message: str
    saved: bool = False
    total: int = 0
    start: float | None = None  # what a run beside it measured of the program that both began from
    expert: float | None = None  # seconds of the heuristic pass's program
    learned: Mapping[str, Learned] = field(default_factory=dict)  # of a recording, by the program's hash

    @staticmethod
    def live(view: JobView) -> Lane:
        return Lane(
            view.spec.id, view.spec, view.entries, view.state, view.message, view.saved_as is not None,
            expert=view.expert,
        )  # fmt: skip

    @staticmethod
    def replayed(recording: Recording, at: int) -> Lane:
        return Lane(
            recording.name, recording.spec, recording.entries[:at], "recorded", recording.source,
            expert=recording.expert, learned=recording.learned,
        )  # fmt: skip

    @property
    def drift(self) -> float:
        """By which factor two of its times may differ that were taken at different moments."""
        return (
            1.0
            if self.spec.timing == "count"
            else backend(target_of(self.spec.game)).clock().steady or DRIFT_QUIET
        )

    @property
    def title(self) -> str:
        if self.spec.agent == BY_HAND:
            return "By hand"
        return f"{short_name(self.spec.agent)}, seed {self.spec.seed}"

    @property
    def told_by_move(self) -> bool:
        return told_by_move(self.entries)

    @property
    def best(self) -> Entry | None:
        if not self.entries or self.entries[-1].best is None:
            return None
        wanted = self.entries[-1].best_hash
        return next((e for e in reversed(self.entries) if e.hash == wanted), None)

    @property
    def reference(self) -> float | None:
        """The time of the program the run began from; where that was not measured, of the first one."""
        if self.start is not None:
            return self.start
        timed = [e for e in self.entries if e.seconds is not None]
        start = next((e.seconds for e in timed if not e.moves), None)
        return start if start is not None or not timed else timed[0].seconds

    def at(self, look: Look) -> Entry | None:
        """The entry that is looked at."""
        if not self.entries:
            return None
        if look.entry is not None:
            entry = next((e for e in self.entries if e.number == look.entry), None)
            if entry is not None:
                return entry
        return (self.best if look.follow == "best" else None) or self.entries[-1]

    def time(self, seconds: float | None) -> str:
        """A time in words; counted operations where there was no clock."""
        if seconds is None:
            return "–"
        if self.spec.timing == "count":
            return f"{seconds * 1e9:,.0f} ops"
        return backend(target_of(self.spec.game)).clock().text(seconds)

    def passed(self, fraction: float) -> Entry | None:
        """The first program as fast as that fraction of the expert's speed; None where none is so far."""
        if self.expert is None:
            return None
        most = self.expert / fraction
        return next((e for e in self.entries if e.best is not None and e.best <= most), None)


def short_name(agent: str) -> str:
    """Without where it answers."""
    return agent.partition("@")[0]


def from_one_start(lanes: Sequence[Lane]) -> list[Lane]:
    """Runs beside each other that began from one program in the same clock, with one time of it for all, and
    one of the expert's: that of the first that tells it. Their speed-ups compare then. Runs that were begun
    side by side share it (agents/run_log.py)."""
    alike = len({(lane.spec.timing, *_start(lane.spec.game)) for lane in lanes}) == 1
    times = (e.seconds for lane in lanes for e in lane.entries if e.seconds is not None and not e.moves)
    if not alike:
        return list(lanes)
    start, expert = next(times, None), next((lane.expert for lane in lanes if lane.expert), None)
    return [replace(lane, start=start, expert=expert) for lane in lanes]


@lru_cache(maxsize=64)
def _start(game_text: str) -> tuple[str, str]:
    """What a run of a game begins from: its program and its target."""
    game = Game.from_text(game_text)
    return game.current.program.hash, game.target


@lru_cache(maxsize=64)
def target_of(game_text: str) -> str:
    return Game.from_text(game_text).target


def share(value: float) -> str:
    """A fraction in three digits: what is short of all of it never reads as 100%."""
    return f"{100 * value:.3g}%"


def ratio(value: float) -> str:
    return f"{value:.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"


def tone(value: float, lane: Lane) -> tuple[str, str]:
    """(sign, kind) of a speed-up of two times of a run, which did not take turns."""
    verdict = apart(value, 1.0, lane.drift).verdict
    return (SIGNS[verdict], verdict) if verdict in ("faster", "slower") else ("≈", "same")


@lru_cache(maxsize=16)
def positions(game_text: str, moves: tuple[str, ...]) -> tuple[str, ...]:
    """The program's text before each move of a line and at its end."""
    game = Game.from_text(game_text)
    texts = [game.current.program.text]
    for move in moves:
        texts.append(game.play(move).program.text)
    return tuple(texts)


def program(lane: Lane, entry: Entry, ply: int) -> Json:
    """The program after ``ply`` moves of an entry's line, and which of its lines the last of them changed."""
    known = {e.moves: e.text for e in lane.entries}
    moves, before = entry.moves[:ply], entry.moves[: max(0, ply - 1)]
    if moves not in known or before not in known:
        try:
            texts = positions(lane.spec.game, entry.moves)
            known |= {moves: texts[ply], before: texts[max(0, ply - 1)]}
        except (
            IllegalMove,
            ValueError,
        ):  # a recording of another machine: its vectors may be wider than ours
            pass
    text = known.get(moves, entry.text)
    drawn = program_lines(parse(text), {})
    changes = difference(known[before], text, context=False) if ply and before in known else []
    return {
        "head": drawn["head"],
        "lines": drawn["lines"],
        "added": [text for sign, text in changes if sign == "+"],
    }


def looked_at(lane: Lane, look: Look) -> tuple[Entry | None, int]:
    """The entry that is looked at, and how many moves of its line lead to the program shown."""
    entry = lane.at(look)
    if entry is None:
        return None, 0
    return entry, len(entry.moves) if look.ply is None else min(look.ply, len(entry.moves))


def shown(lane: Lane, look: Look) -> Json:
    """All that the stage draws of a run."""
    spec = lane.spec
    entry, ply = looked_at(lane, look)
    words, kind = STATES.get(lane.state, (lane.state, "quiet"))
    where = f"from move {len(_before(spec.game))}" if spec.at else "from the start"
    return {
        "id": lane.id,
        "title": lane.title,
        "about": f"{spec.title}, {where}",
        "state": words,
        "tone": kind,
        "message": lane.message,
        "controls": controls(lane),
        "metrics": metrics(lane),
        "follow": "" if look.entry is not None or look.ply is not None else look.follow,
        "where": "" if entry is None else _where(lane, entry, ply),
        "entry": None if entry is None else entry.number,
        "program": {"head": [], "lines": [], "added": []} if entry is None else program(lane, entry, ply),
        "moves": [] if entry is None else list(entry.moves),
        "ply": ply,
        "heat": heat(lane),
        "considered": considered(lane),
        "log": log(lane),
    }


@lru_cache(maxsize=64)
def _before(game_text: str) -> tuple[str, ...]:
    game = Game.from_text(game_text)
    return tuple(str(p.move) for p in game.line()[1:])


def _where(lane: Lane, entry: Entry, ply: int) -> str:
    which = "start" if not entry.moves else f"program {entry.evaluation}"
    if entry is lane.best:
        which += ", the best"
    return which if ply == len(entry.moves) else f"{which}, after {ply} of {len(entry.moves)} moves"


def metrics(lane: Lane) -> list[tuple[str, str, str]]:
    """Names, values and details of what stands on top."""
    spec, best, first = lane.spec, lane.best, lane.reference
    last = lane.entries[-1] if lane.entries else None
    if lane.told_by_move:
        done = last.evaluation if last is not None else 0
        count = ("Moves", f"{done}", f"of {spec.evaluations - 1}")
    else:
        count = ("Programs", f"{last.evaluation if last is not None else 0}", f"of {spec.evaluations}")
    rows = [count]
    if not lane.told_by_move:
        elapsed = last.elapsed if last is not None else 0.0
        rows.append(("Seconds", f"{elapsed:.0f}", f"of {spec.seconds:.0f}"))
    if (tokens := spent(lane)) is not None:
        rows.append(("Tokens", *tokens))
    rows.append(("Began at", lane.time(first), ""))
    gain = first / best.seconds if first and best is not None and best.seconds else None
    rows.append(
        (
            "Best",
            "–" if best is None else lane.time(best.seconds),
            "" if gain is None else f"{ratio(gain)} {'fewer' if spec.timing == 'count' else 'faster'}",
        )
    )
    if lane.expert:
        reached = lane.expert / best.seconds if best is not None and best.seconds else None
        rows.append(
            ("Expert", lane.time(lane.expert), "" if reached is None else f"{share(reached)} reached")
        )
    if last is not None:
        outcome = lane.time(last.seconds) if last.seconds is not None else last.status.replace("_", " ")
        effect = first / last.seconds if first and last.seconds else None
        rows.append(
            ("This one", outcome, "" if effect is None else f"{tone(effect, lane)[0]} {ratio(effect)}")
        )
    return rows


def spent(lane: Lane) -> tuple[str, str] | None:
    """The tokens that a player's words took so far, and their cost; None of one that does not talk."""
    said = [t for entry in lane.entries for t in entry.thoughts if t.tokens is not None]
    if not said:
        return None
    costs = [t.cost for t in said if t.cost is not None]
    return f"{sum(t.tokens or 0 for t in said):,}", f"cost {cost_text(sum(costs))}" if costs else ""


def controls(lane: Lane) -> list[Json]:
    """The buttons of a run in its state."""

    def button(identity: str, label: str, about: str = "", primary: bool = False) -> Json:
        return {"id": identity, "label": label, "about": about, "primary": primary}

    take = button("take_over", "Take over", "Play on from the program shown; a running agent pauses")
    stop = button("stop", "Stop and keep", "End the run; its best becomes a variation of its game")
    again = button("replay", "Replay", "Show it again at reading speed")
    game = button("open", "Open in Play", "The best of this run, in the game it began in")
    keep = button("keep", "Keep", "Add the best to its game as a variation")
    take_over = [take] if lane.entries else []
    best_buttons = [] if lane.best is None else [game if lane.saved else keep]
    match lane.state:
        case "running" | "starting":
            return [button("pause", "Pause", "After what is being measured (Space)"), *take_over, stop]
        case "pausing" | "paused":
            on = button("go_on", "Go on", "Space", primary=True)
            step = button("step", "Step", "One batch of programs more (→)")
            return [on, step, *take_over, stop]
        case "stopped" | "interrupted" | "failed":
            on = button("resume", "Resume", "Go on from what was measured", primary=True)
            return [on, *take_over, *best_buttons, again]
        case "done":
            return [*take_over, *best_buttons, again]
        case "recorded":
            return (
                [button("take_over", "Take over", "Play on from the program shown")] if lane.entries else []
            )
    return []


def thoughts(lane: Lane) -> list[tuple[Thought, Entry | None, Entry | None]]:
    """What was thought of each program, with the program and its parent as they were measured."""
    by_hash = {e.hash: e for e in lane.entries if not e.final}
    weighed = [t for e in lane.entries for t in e.thoughts]
    return [(t, by_hash.get(t.program), by_hash.get(t.parent)) for t in weighed]


def heat(lane: Lane) -> str:
    """The temperature, or ε, as it was last."""
    for entry in reversed(lane.entries):
        for thought in reversed(entry.thoughts):
            if thought.heat is not None:
                return f"{heat_name(lane)} {thought.heat:.3g}"
    return ""


def heat_name(lane: Lane) -> str:
    return "temperature" if lane.spec.agent.startswith("annealing") else "ε"


_SIGNS = {"accepted": "✓ accepted", "rejected": "✕ rejected", "tried": "tried"}


def considered(lane: Lane) -> list[Json]:
    """The last programs that were weighed, newest first."""
    rows: list[Json] = []
    recent = Lane(lane.id, lane.spec, lane.entries[-400:], lane.state, "")
    for thought, entry, parent in reversed(thoughts(recent)):
        gain = None
        if entry is not None and parent not in (None, entry) and entry.seconds and parent.seconds:
            gain = parent.seconds / entry.seconds
        status = "" if entry is None or entry.seconds is not None else entry.status.replace("_", " ")
        rows.append(
            {
                "program": _named(entry, parent) if entry is not None else f"… {thought.program[:8]}",
                "decision": _SIGNS.get(thought.decision, thought.decision),
                "tone": thought.decision if thought.decision != "tried" else "",
                "chance": "" if thought.probability is None else f"{100 * thought.probability:.0f}%",
                "ratio": status if gain is None else f"{tone(gain, lane)[0]} {ratio(gain)}",
                "speed": "" if gain is None else tone(gain, lane)[1],
                "expected": "" if thought.value is None else ratio(thought.value),
                "words": thought.words,
            }
        )
        if len(rows) == CONSIDERED:
            break
    return rows


def _named(entry: Entry, parent: Entry | None) -> str:
    return f"{entry.evaluation}. {_changed(entry, parent) if parent is not None else _last(entry)}"


def _last(entry: Entry) -> str:
    return entry.moves[-1] if entry.moves else "the start of the run"


@lru_cache(maxsize=4096)
def _changed(entry: Entry, parent: Entry) -> str:
    """What a line has that its parent's has not, and the other way round."""
    changes = difference("\n".join(parent.moves), "\n".join(entry.moves), context=False)
    signs = {"+": "+ ", "-": "− "}
    differences = [signs[sign] + move for sign, move in sorted(changes, key=lambda each: each[0] != "+")]
    rest = f" … {len(differences) - 2} more" if len(differences) > 2 else ""
    return f"{'  '.join(differences[:2])}{rest}" if differences else _last(entry)


def log(lane: Lane) -> list[Json]:
    """The last programs, newest first."""
    weighed = thoughts(lane)
    parents = {t.program: parent for t, _, parent in weighed if t.program != t.parent}
    words = {t.program: t.words for t, _, _ in weighed if t.words and t.program != t.parent}
    return [
        logged(lane, entry, parents.get(entry.hash), words.get(entry.hash, ""))
        for entry in reversed(lane.entries[-LOGGED:])
    ]


def logged(lane: Lane, entry: Entry, parent: Entry | None, words: str = "") -> Json:
    """A row of the log: what is new in the line, where it is known what it came from; the player's words."""
    first = lane.reference
    gain = first / entry.seconds if first and entry.seconds else None
    outcome = lane.time(entry.seconds) if entry.seconds is not None else entry.status.replace("_", " ")
    failed = entry.seconds is None and not lane.told_by_move
    label = "final" if entry.final else str(entry.evaluation)
    count = counted(len(entry.moves), "move")
    return {
        "number": entry.number,
        "label": label,
        "move": _changed(entry, parent) if parent is not None else _last(entry),
        "time": outcome if gain is None else f"{tone(gain, lane)[0]} {outcome}",
        "tone": "failed" if failed else "" if gain is None else tone(gain, lane)[1],
        "about": "\n".join(filter(None, (f"{count}. {entry.message}".strip(), words))),
    }


def taken_over(lane: Lane, look: Look) -> tuple[str, ...]:
    """The moves from where the run began to the position that is looked at."""
    entry: Any = lane.at(look)
    if entry is None:
        return ()
    return entry.moves[: len(entry.moves) if look.ply is None else look.ply]
