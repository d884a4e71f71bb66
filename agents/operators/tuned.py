"""Making one case fast: the heuristic pass, then a search; what is measured lies in the records."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from agents.agent import Agent, Budget, Event
from agents.operators.node import Made
from agents.passes import play_pass
from agents.tuning import Tuning
from dojo_core.export import Choice, NotExported, of_game, of_heuristic, of_record, verified
from dojo_core.game import Game, GameFull
from dojo_core.launch import module_command
from dojo_core.measure.measurement import Effort, Measurement, Workload
from dojo_core.measure.records import Records
from dojo_core.moves import IllegalMove
from dojo_core.targets.cpu.measurer import Measurer

LONG = 30  # operations of a text: the pass on such a one plays in a process of its own, which can be ended
PASS_SECONDS = 120.0


class NotTuned(Exception):
    """A case whose programs cannot be measured; ``str()`` is a sentence."""


def begun(made: Made, policy: str) -> Game:
    """The game of a case, at its start."""
    return Game.new(made.program, policy=policy, title=made.case.title)


def passed(made: Made, policy: str) -> Game:
    """What the heuristic pass plays. Raises NotTuned where it does not come to an end."""
    game = begun(made, policy)
    if len(made.program.leaves) <= LONG:
        try:
            play_pass(game, "heuristic")
        except (IllegalMove, GameFull) as fault:
            raise NotTuned(str(fault)) from None
        return game
    command = module_command("agents.operators.passing")
    try:
        child = subprocess.run(
            command, input=game.to_text(), capture_output=True, text=True, timeout=PASS_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotTuned(f"It takes more than {PASS_SECONDS:g} s.") from None
    if child.returncode:
        raise NotTuned(child.stderr.strip().rpartition("\n")[2])
    played = Game.from_text(child.stdout)
    played.goto(played.main_line(0)[-1].id)
    return played


@dataclass(frozen=True)
class First:
    """Seconds of the start program and of the pass's, None where there is none, and ``why``."""

    start: float
    heuristic: float | None
    why: str = ""


def first(made: Made, policy: str, measurer: Measurer) -> First:
    """Verify and time the start and what the pass makes of it. Raises NotTuned where the start is not
    right."""
    workload = Workload(made.program, None, policy)
    start = measurer.measure(workload, [made.program], Effort.NORMAL)[0]
    if start.status != "ok" or start.seconds is None:
        raise NotTuned(f"Its start program is {_said(start)}")
    try:
        game = passed(made, policy)
    except NotTuned as fault:
        return First(start.seconds, None, f"The heuristic pass did not come to an end: {fault}")
    moves = "\n".join(str(p.move) for p in game.line()[1:])
    program = game.current.program
    after = measurer.measure(workload, [program], Effort.FINAL, lines={program.hash: moves})[0]
    if after.status != "ok":
        return First(start.seconds, None, f"What the heuristic pass plays is {_said(after)}")
    return First(start.seconds, after.seconds)


def _said(measurement: Measurement) -> str:
    return f"{measurement.status.replace('_', ' ')}: {measurement.message}"


@dataclass(frozen=True)
class Searched:
    """``programs`` measured in all, those of an earlier call among them; ``whole``: the budget is spent."""

    programs: int
    whole: bool


def search(
    made: Made,
    policy: str,
    agent: Agent,
    budget: int,
    measurer: Measurer,
    until: float | None,
    on_event: Callable[[Event], None],
) -> Searched:
    """Go on with a search until its budget is spent or ``until`` (of the monotonic clock); a stopped one goes
    on where it was. Raises RunBusy while another process is at it."""
    tuning = Tuning(begun(made, policy), agent, measurer, Budget(budget), keep=False)
    if tuning.was_done:
        tuning.close()
        return Searched(tuning.resumed, True)
    programs = 0
    for event in tuning.events():
        programs = max(programs, event.evaluation)
        on_event(event)
        if until is not None and time.monotonic() >= until:
            tuning.control.stop()
    return Searched(programs, not tuning.control.stopped)


def best_choice(made: Made, policy: str, records: Records) -> Choice:
    """The fastest verified program that the records know of a case, to be exported; else the pass's, else its
    start. Raises NotExported where none was verified here."""
    game = begun(made, policy)
    recorded = of_record(records, game, policy)
    if recorded is not None:
        return recorded
    for make in (of_heuristic, lambda start: of_game(start, "the start program")):
        choice = verified(make(game), records)
        if choice.record is not None:
            return choice
    raise NotExported(f"{made.case.title} has no verified program on this machine.")
