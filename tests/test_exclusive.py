"""One measurement at a time on the machine, whoever asks for it, and no compiler beside one."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dojo_core.measure.exclusive import compiling, measuring

SCRIPT = """
import json, sys, time
from dojo_core.measure.exclusive import compiling, measuring
held = []
for n in range(20):
    with (measuring if n % 2 else compiling)():
        begin = time.monotonic()
        time.sleep(0.003)
        held.append((n % 2, begin, time.monotonic()))
print(json.dumps(held))
"""


def test_measurements_of_several_processes_never_overlap(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    root = Path(__file__).resolve().parent.parent
    processes = [
        subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=root, env=environment, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    held = [
        (number, *span)
        for number, process in enumerate(processes)
        for span in json.loads(process.communicate(timeout=60)[0])
    ]
    assert len(held) == 60
    for one, measured, begin, end in held:
        if not measured:
            continue
        for other, _, start, stop in held:
            assert one == other or stop <= begin or end <= start, "a measurement, and something beside it"


def test_compilers_that_overlap_do_not_keep_a_measurement_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dojo_core.measure.exclusive.machine_directory", lambda: tmp_path)
    stop = threading.Event()

    def compile_on(first: float) -> None:
        time.sleep(first)
        while not stop.is_set():
            with compiling():
                time.sleep(0.03)

    compilers = [threading.Thread(target=compile_on, args=(0.01 * n,)) for n in range(3)]
    for each in compilers:
        each.start()
    time.sleep(0.05)
    deadline = time.monotonic() + 20
    with measuring(lambda: time.monotonic() > deadline) as held:
        stop.set()
    for each in compilers:
        each.join()
    assert held
