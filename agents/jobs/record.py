"""Makes what the tour shows: ``make recordings``, or ``python -m agents.jobs.record [PART…]`` (see PARTS).

A line by hand with the time after each move, an agent that goes on from its end, what came out beside
PyTorch in interleaved rounds, and what an exported softmax does in a model. All of it is measured here and
now, and told with the machine and the day: let nothing else run meanwhile. The files take the place of the
old ones when all of them are there: a part that fails changes nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from agents.agent import Budget
from agents.jobs import journal
from agents.jobs.recording import RECORDINGS, of_game
from agents.jobs.spec import JobSpec
from agents.players import AGENTS
from agents.tuning import Tuning
from dojo_core import kernels
from dojo_core.extras import absent, install_line
from dojo_core.game import Game
from dojo_core.launch import module_command
from dojo_core.line import read_line
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Records
from dojo_core.package_data import data_path
from dojo_core.targets.cpu.measurer import Effort, Measurer, Workload

NAME, AGENT = "softmax", "annealing-lines"
EVALUATIONS = 40
MODEL_SHAPE = "4096x512"


def source() -> str:
    return f"Measured on {this_machine().summary}, {datetime.now():%Y-%m-%d}."


def by_hand(measurer: Measurer, into: Path) -> Game:
    """The line's game, measured after each move and written down."""
    line = read_line((RECORDINGS / f"{NAME}-by-hand.line").read_text(encoding="utf-8"), NAME)
    program = kernels.get(NAME).program(tuple(map(int, line.shape.split("x"))))
    game = Game.new(program, NAME, line.shape, policy=line.policy, title=f"{NAME} {line.shape}")
    for entry in line.play(game).entries:
        if not entry.applies:
            raise SystemExit(f"{entry.move}: {entry.reason}")
    programs = [position.program for position in game.line()]
    measurements = measurer.measure(
        Workload(game.start, NAME, game.policy), programs, Effort.NORMAL, fresh=True
    )
    times = {each.program_hash: each.seconds for each in measurements if each.seconds is not None}
    recording = of_game(game, f"{NAME}-by-hand", times)
    lines = [journal.entry_line(entry) for entry in recording.entries]
    lines.append({"state": "done", "message": source()})
    lost = [entry.number - 1 for entry in recording.entries if entry.seconds is None]
    if lost:
        raise SystemExit(f"Not measured: the position after move {lost[0]} of the line by hand.")
    journal.save(into / f"{NAME}-by-hand.jsonl", recording.spec, lines)
    return game


def by_agent(game: Game, measurer: Measurer, into: Path) -> Game:
    """The agent's run from the end of the line, written down; its best as a game."""
    tuning = Tuning(game, AGENTS[AGENT], measurer, Budget(EVALUATIONS), again=True, keep=False)
    spec = JobSpec.of(game, AGENT, 0, EVALUATIONS)
    before = len(tuning.task.before)
    best = None
    with journal.Writer(into / f"{NAME}-agent.jsonl", spec) as writer:
        for number, event in enumerate(tuning.events(), 1):
            writer.write(journal.event_line(event, before, number))
            best = event.best
        writer.state("done", source())
    if best is None:
        raise SystemExit("The agent found nothing.")
    return tuning.game(best)


def dojo(*words: str) -> None:
    subprocess.run(module_command("agents.cli", *words), check=True)


def beside_pytorch(game: Path, into: Path) -> None:
    """The shortest times of interleaved rounds, ours and theirs, as a small file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        dojo("bench", NAME, "--line", str(game), "--start", "--against", "torch", "--rounds", "8",
             "--json", str(file))  # fmt: skip
        [report] = json.loads(file.read_text(encoding="utf-8"))["reports"]
    entries = []
    for entry in report["entries"]:
        if entry["status"] == "ok":
            entries.append({"name": entry["name"], "kind": entry["kind"], "seconds": entry["min"]})
    if {entry["kind"] for entry in entries} != {"ours", "baseline"}:
        raise SystemExit("PyTorch, or the agent's program, was not measured: see what the bench said above.")
    header = {"kernel": NAME, "shape": report["shape"], "rounds": report["rounds"], "source": source()}
    text = json.dumps({**header, "entries": entries}, indent=1)
    (into / f"{NAME}-pytorch.json").write_text(text + "\n", encoding="utf-8")


def in_a_model(into: Path) -> None:
    """What agents/examples/softmax_in_a_model.py prints with the package that ``dojo export`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        fast, packages = Path(folder) / "fast", Path(folder) / "packages"
        dojo("export", NAME, "--shape", MODEL_SHAPE, "--to", str(fast))
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
        subprocess.run([*pip, "--target", str(packages), str(fast)], check=True)
        environment = {**os.environ, "PYTHONPATH": str(packages)}
        example = data_path("agents", "examples", "softmax_in_a_model.py")
        ran = subprocess.run(
            [sys.executable, str(example)],
            env=environment,
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
    (into / f"{NAME}-model.txt").write_text(f"{ran.stdout}{source()}\n")


PARTS = ("game", "pytorch", "model")


def main(parts: Sequence[str]) -> None:
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SystemExit(f"There is no part {unknown[0]!r}. The parts: {', '.join(PARTS)}.")
    if absent("learn"):
        raise SystemExit(f"The recordings need PyTorch. This line installs it: {install_line('learn')}")
    # Beside the old files, so that each is replaced in one step; with records of its own, so that a
    # player's stay as they are.
    with tempfile.TemporaryDirectory(dir=RECORDINGS, prefix="new-") as folder:
        into = Path(folder)
        game = into / f"{NAME}-agent.game"
        if "game" in parts:
            with Records(into / "records.sqlite") as records, Measurer(records) as measurer:
                _tell("the line by hand")
                by_hand_game = by_hand(measurer, into)
                _tell(f"{AGENT}, {EVALUATIONS} programs")
                game.write_text(by_agent(by_hand_game, measurer, into).to_text())
        if "pytorch" in parts:
            _tell("the same beside PyTorch")
            beside_pytorch(game if game.exists() else RECORDINGS / game.name, into)
        if "model" in parts:
            _tell("the exported operator in a model")
            in_a_model(into)
        for file in sorted(into.glob(f"{NAME}-*")):
            os.replace(file, RECORDINGS / file.name)
    _tell("done")


def _tell(words: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {words}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or PARTS)
