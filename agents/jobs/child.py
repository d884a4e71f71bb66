"""The process that plays: ``python -m agents.jobs.child FOLDER``.

It reads commands (``pause``, ``step``, ``go on``, ``stop``) from its standard input and ends at once when
that closes: a run does not outlive the app that started it. What it measured is in the run's log by then.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import threading
import traceback
from pathlib import Path

from agents.agent import FOUND_NOTHING, Budget, Control, PlayerFailed
from agents.expert import EXPERT, expert_seconds
from agents.jobs.journal import Journal, JournalBusy, Writer, event_line
from agents.outside import told
from agents.players import agent_named
from agents.run_log import RunBusy
from agents.timing import CountTiming, MachineTiming, Timing
from agents.tuning import Tuning
from dojo_core.extras import import_fault
from dojo_core.game import Game
from dojo_core.garbage import look_seldom
from dojo_core.measure.limits import GIBI
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.measure.watchdog import restrict
from dojo_core.plugins import Unusable
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.guarded import TargetFailed

MEMORY_SHARE = 0.8  # of the machine's, for the player alone; its measuring process has limits of its own
LEAST_MEMORY = 16 * GIBI  # of addresses: libraries such as torch reserve far more than they use
FILE_BYTES = 4 * GIBI
SLACK_SECONDS = 600.0  # of processor time, beyond what the budget explains
JOURNAL, LOG = "journal.jsonl", "run.jsonl"
START = "start.jsonl"  # in the folder of the run that others were begun beside: the time that all begin from


def limit(seconds: float | None) -> None:
    """Soft limits only: compilers and the measuring process set harder ones for themselves.

    ``seconds``: what the budget allows; None where nothing bounds it.
    """
    machine = this_machine()

    restrict(resource.RLIMIT_AS, max(LEAST_MEMORY, MEMORY_SHARE * machine.memory), math.inf)
    restrict(resource.RLIMIT_FSIZE, FILE_BYTES, math.inf)
    restrict(resource.RLIMIT_CORE, 0, math.inf)
    if seconds is not None:
        restrict(resource.RLIMIT_CPU, seconds * machine.cores + SLACK_SECONDS, math.inf)


def listen(control: Control, writer: Writer) -> None:
    """Do as the app says, until it is gone."""
    for line in sys.stdin:
        match line.strip():
            case "pause":
                writer.state("pausing")
                control.pause()
            case "step":
                control.step()
            case "go on":
                writer.state("running")
                control.go_on()
            case "stop":
                writer.state("stopping")
                control.stop()
    os._exit(0)


def why_failed(fault: Exception, who: str, asked: tuple[type[Exception], ...] = ()) -> str:
    """What a person is told of a run that ended. ``asked``: faults that say themselves what to do.

    Anything else is a fault of ours: its traceback goes to the run's log.
    """
    if isinstance(fault, (RunBusy, *asked)):
        return str(fault)
    if isinstance(fault, ModuleNotFoundError):
        return import_fault(fault, who)
    traceback.print_exception(fault)
    # No compiler, a full disk, too little memory; what a package raises.
    if isinstance(fault, (OSError, MemoryError, Unusable, TargetFailed)):
        return str(fault) or f"{who} ran out of memory."
    return f"{who} failed: a fault of ours, noted in the run's log."


def tell_expert(game: Game, timing: Timing, writer: Writer, control: Control) -> None:
    """Write down what the expert's program takes, beside which the run is seen. No run fails for it."""
    try:
        seconds = expert_seconds(game, timing, lambda: control.stopped)
    except Exception:
        traceback.print_exc()
    else:
        if seconds is not None:
            writer.write({"expert": seconds})


def play(folder: Path, journal: Journal, writer: Writer, control: Control) -> None:
    """Run it to its end. The events that are in the journal already are repeated by the log."""
    spec, known = journal.spec, len(journal.entries)
    game = Game.from_text(spec.game)
    before = len(game.line()) - 1
    with Records() as records, Measurer(records) as measurer:
        timing = CountTiming() if spec.timing == "count" else None
        if journal.expert is None:
            tell_expert(game, timing or MachineTiming(measurer, EXPERT), writer, control)
        tuning = Tuning(
            game,
            agent_named(spec.agent),
            measurer,
            Budget(spec.evaluations, spec.seconds),
            spec.seed,
            timing=timing,
            log=folder / LOG,
            keep=False,
            start=None if spec.timing == "count" else folder.parent / (spec.beside or spec.id) / START,
        )
        tuning.control = control
        number = 0
        for number, event in enumerate(tuning.events(), 1):
            if number > known:
                writer.write(event_line(event, before, number))
    asked = told(tuning.answers)
    if control.stopped:
        writer.state("stopped", f"Stopped; what was found is kept. {asked}".strip())
    else:
        writer.state("done", asked if number else FOUND_NOTHING)


def main(folder: Path) -> int:
    journal = Journal(folder / JOURNAL)
    spec = journal.spec
    try:
        writer = Writer(folder / JOURNAL)
    except JournalBusy:
        return 0  # another app of this user has it
    with writer:
        writer.state("running")
        control = Control(on_hold=lambda held: writer.state("paused" if held else "running"))
        threading.Thread(target=listen, args=(control, writer), daemon=True).start()
        try:
            limit(spec.seconds)
            play(folder, journal, writer, control)
        except Exception as fault:  # the process ends with it; whoever watches is to know why
            writer.state("failed", why_failed(fault, "This agent", (PlayerFailed,)))
            return 1
    return 0


if __name__ == "__main__":
    look_seldom()
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(status)  # the thread that listens would hold the process
