"""The process that trains: ``python -m agents.jobs.trainer FOLDER [--try KERNEL SHAPE]``.

Commands (``pause``, ``go on``, ``stop``) come from its standard input; when that closes it ends at once: the
checkpoint and the log are enough to go on from.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from agents.agent import Control
from agents.jobs.child import limit, why_failed
from agents.jobs.trainings import PLAN, STATE, TRIED, TrainingSpec
from agents.perfllm.settings import EncoderSettings, Settings
from agents.timing import CountTiming, MachineTiming, Timing
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.garbage import look_seldom
from dojo_core.measure.records import Records
from dojo_core.targets.cpu.measurer import Measurer


def begun(kernel: str, shape: str, policy: str) -> Game:
    """A game at a kernel's start. Raises ValueError with a sentence."""
    definition = kernels.get(kernel)
    sizes = definition.shape(shape)
    return Game.new(definition.program(sizes), kernel, "x".join(map(str, sizes)), policy=policy)


class Teller:
    """Tells the app how the run stands."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATE
        self._lock = threading.Lock()

    def state(self, state: str, message: str = "") -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"state": state, "message": message, "time": time.time()}) + "\n")


def listen(control: Control, teller: Teller) -> None:
    for line in sys.stdin:
        match line.strip():
            case "pause":
                teller.state("pausing")
                control.pause()
            case "go on":
                teller.state("running")
                control.go_on()
            case "stop":
                teller.state("stopping")
                control.stop()
    os._exit(0)


def main(folder: Path, attempt: tuple[str, str] | None) -> int:
    spec = TrainingSpec.read(folder / PLAN)
    teller = Teller(folder)

    def failed(message: str) -> int:
        if attempt is None:
            teller.state("failed", message)
        else:
            with (folder / TRIED).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"event": "failed", "message": message}) + "\n")
        return 1

    if attempt is None:
        teller.state("running")
    control = Control(on_hold=lambda held: teller.state("paused" if held else "running"))
    threading.Thread(target=listen, args=(control, teller), daemon=True).start()
    limit(None)
    try:
        from agents.perfllm.training import Plan, Training  # with torch, whose import takes seconds

        settings = Settings(encoder=EncoderSettings(spec.encoder), **spec.settings)
        game = begun(spec.kernel, spec.shape, spec.policy)
        with Records() as records, Measurer(records) as measurer:
            plan = Plan((game,), settings, spec.budget, spec.seed)
            timing: Timing = CountTiming() if spec.counting else MachineTiming(measurer, "perfllm")
            machine = "count" if spec.counting else measurer.machine.fingerprint
            training = Training(plan, timing, folder, machine, records=None if spec.counting else records)
            training.control = control
            if attempt is not None:
                other = begun(*attempt, spec.policy)
                with (folder / TRIED).open("a", encoding="utf-8") as file:
                    for event in training.tried([other], timing):
                        shape = {"shape": other.shape, "name": other.kernel, "policy": spec.policy}
                        file.write(json.dumps({**event, **shape, "time": time.time()}) + "\n")
                return 0
            for _ in training.events():
                pass
    except Exception as fault:  # the process ends with it; whoever looks at the run is to know why
        return failed(why_failed(fault, "The training", (ValueError,)))
    if control.stopped:
        teller.state("stopped", "Stopped; Resume goes on from its last checkpoint.")
    else:
        teller.state("done")
    return 0


if __name__ == "__main__":
    look_seldom()
    words = sys.argv[2:]
    status = main(Path(sys.argv[1]), (words[1], words[2]) if words[:1] == ["--try"] else None)
    sys.stdout.flush()
    os._exit(status)  # the thread that listens would hold the process
