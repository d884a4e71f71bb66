"""Verified, timed, or reported for what it is: programs whose generator is broken on purpose."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dojo_core import kernels, parse
from dojo_core.cli import app
from dojo_core.codegen.code import Code, NotGeneratable, Parameter
from dojo_core.launch import module_command
from dojo_core.measure import process
from dojo_core.measure.compiling import run_watched
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.evidence import keep, load
from dojo_core.measure.exclusive import measuring
from dojo_core.measure.judgement import judgements
from dojo_core.measure.limits import SETS
from dojo_core.measure.load import load_is_told
from dojo_core.measure.machine import Machine, this_machine
from dojo_core.measure.pool import make_pool, tolerance
from dojo_core.measure.process import WorkerFault, WorkerProcess, WorkerStopped
from dojo_core.measure.records import Records, Sample
from dojo_core.measure.speed import FIRST_ROUNDS, ROUNDS
from dojo_core.measure.trial import Trials
from dojo_core.measure.turns import GIVEN_UP
from dojo_core.measure.worker import Prepared
from dojo_core.measure.worst import input_sets
from dojo_core.program.tree import Program
from dojo_core.system import cores, is_x86
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.measurer import Effort, Measurement, Measurer, Workload
from tests.homes import with_objects
from tests.waiting import wait_until

ROWS, WIDTH = 100, 21  # 8400 bytes: the end is not on a cache line, so canaries follow it


def program(factor: int) -> Program:
    """y = x * factor. The factor picks what the broken generator makes of it."""
    return parse(
        f"""kernel scale
in x
out y
x f32 [{ROWS}, {WIDTH}] heap
y f32 [{ROWS}, {WIDTH}] heap
{ROWS} {WIDTH} y[{{0}},{{1}}] = x[{{0}},{{1}}] * {factor}
"""
    )


(
    START, SAME, ENDLESS, CRASH, AFTER, BEFORE, CANARY, UNWRITTEN, WRONG, INPUT, TRAP, NONSENSE, BABBLE, VAST,
    SLOW, EXIT,
) = range(2, 18)  # fmt: skip
# Of a trap: brk on Arm and ebreak on RISC-V stop as for a debugger.
TRAPPED = "SIGILL" if is_x86() else "SIGTRAP"
LOOP = f"for (int i = 0; i < {ROWS * WIDTH}; i++)"
BODIES = {
    START: f"{LOOP} y[i] = x[i] * 2;",
    SAME: f"{LOOP} y[i] = x[i] + x[i];",
    ENDLESS: "for (;;) *(volatile float *)y = 1;",
    CRASH: "*(volatile int *)8 = 1;",
    AFTER: f"{LOOP} y[i] = x[i] * 2; y[{ROWS * WIDTH + 300}] = 1;",
    BEFORE: f"{LOOP} y[i] = x[i] * 2; y[-5000] = 1;",
    CANARY: f"{LOOP} y[i] = x[i] * 2; y[{ROWS * WIDTH + 1}] = 1;",
    UNWRITTEN: f"{LOOP} if (i != 1234) y[i] = x[i] * 2;",
    WRONG: f"{LOOP} y[i] = x[i] * (i == 777 ? 2.001f : 2);",
    INPUT: f"{LOOP} y[i] = x[i] * 2; ((float *)x)[5] = 0;",
    TRAP: "__builtin_trap();",
    EXIT: "void _exit(int); _exit(3);",
    NONSENSE: "nonsense;",
    VAST: f"{LOOP} y[i] = x[i] * 2;",
    SLOW: f"for (volatile int n = 0; n < 1000000; n++); {LOOP} y[i] = x[i] * 2;",
    BABBLE: 'long write(int, const void *, unsigned long); for (int f = 3; f < 40; f++) write(f, "y\\n", 2);',
}


def broken(program: Program, policy: str) -> Code:
    """A generator that writes what BODIES says."""
    factor = int(program.text.rsplit("*", 1)[1])
    text = (
        "void kernel_scale(void *const *arrays, void *workspace)\n{\n"
        f"  const float *x = arrays[0];\n  float *y = arrays[1];\n  {BODIES[factor]}\n}}"
    )
    parameters = (Parameter("x", "f32", (ROWS, WIDTH), "in"), Parameter("y", "f32", (ROWS, WIDTH), "out"))
    return Code(text, "kernel_scale", (None,) * 6, parameters, 1 << 46 if factor == VAST else 0, 0.0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where what is compiled and drawn stays, for all tests here."""
    return with_objects(tmp_path_factory.mktemp("home")) / "cache"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cache").symlink_to(cache)
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def measurer(kept_workers: None) -> Iterator[Measurer]:
    with Measurer(generate=broken, preamble="", run_seconds=5) as measurer:
        yield measurer


@pytest.fixture(scope="module")
def shared() -> Iterator[Measurer]:
    """A measurer for tests that measure anew, whatever the ones before did: a worker takes half a second to
    start, and most of what goes wrong leaves it running."""
    with Measurer(generate=broken, preamble="", run_seconds=5) as measurer:
        yield measurer


def measure(
    measurer: Measurer, *factors: int, effort: Effort = Effort.QUICK, fresh: bool = False
) -> list[Measurement]:
    return measurer.measure(Workload(program(START)), [program(f) for f in factors], effort, fresh=fresh)


def test_a_correct_program_is_verified_and_timed(shared: Measurer) -> None:
    for outcome in measure(shared, START, SAME, fresh=True):
        assert (outcome.status, outcome.message, outcome.verified) == ("ok", "", True)
        assert outcome.seconds == min(outcome.samples) / 1e9
        assert 1 <= len(outcome.samples) <= len(outcome.raw) <= Effort.QUICK.samples


@pytest.mark.parametrize(
    ("factor", "status", "message"),
    [
        (CRASH, "crash", "It crashed with SIGSEGV."),
        pytest.param(TRAP, "crash", f"It crashed with {TRAPPED}.", marks=pytest.mark.thorough),
        (EXIT, "crash", "The measuring process ended with status 3."),
        (AFTER, "out_of_bounds", "It reads or writes 1200 bytes after the end of y."),
        pytest.param(
            BEFORE,
            "out_of_bounds",
            "It reads or writes 20000 bytes before the start of y.",
            marks=pytest.mark.thorough,
        ),
        (CANARY, "out_of_bounds", "It writes 5 bytes after the end of y."),
        (UNWRITTEN, "unwritten", "1 of 2100 elements of y are never written, among them y[58,16]."),
        (WRONG, "wrong_result", "1 of 2100 elements of y are wrong: y[37,0] is"),
        (INPUT, "out_of_bounds", "It writes into the input x, 20 bytes from its start."),
        (BABBLE, "crash", "It wrote where the measuring process answers."),
        (NONSENSE, "compile_error", "'nonsense' undeclared"),
        (VAST, "refused", "Its temporaries take 6.55e+04 GiB, more than there is beside the inputs."),
    ],
)
def test_a_broken_program_is_told_and_the_next_one_runs(
    shared: Measurer, factor: int, status: str, message: str
) -> None:
    outcome, after = measure(shared, factor, SAME, fresh=True)
    assert (outcome.status, outcome.verified, outcome.seconds) == (status, False, None)
    assert message in outcome.message
    assert (after.status, after.known) == ("ok", False)


@pytest.mark.usefixtures("kept_workers")
def test_a_program_that_never_ends_is_stopped() -> None:
    with Measurer(generate=broken, preamble="", run_seconds=0.7) as measurer:
        outcome, after = measure(measurer, ENDLESS, SAME)
        assert (outcome.status, after.status) == ("timeout", "ok")
        assert "more than 0.7 s" in outcome.message


def test_a_program_that_crashed_twice_is_not_run_again(measurer: Measurer) -> None:
    statuses = [measure(measurer, CRASH)[0].status for _ in range(3)]
    assert statuses == ["crash", "crash", "refused"]


def machine_is(monkeypatch: pytest.MonkeyPatch, conditions: Conditions) -> None:
    """What the worker reads of the machine's load, whatever runs beside this test."""
    monkeypatch.setattr("dojo_core.measure.trial.conditions_of", lambda answer: conditions)


def test_a_measurement_says_what_else_the_machine_did(shared: Measurer) -> None:
    conditions = measure(shared, SAME, fresh=True)[0].conditions
    assert conditions.exclusive
    if load_is_told():
        assert conditions.load is not None and 0.0 <= conditions.load <= 1.0


def test_what_runs_on_any_of_the_cores_is_told(tmp_path: Path) -> None:
    """Also on those to which OpenMP has not bound the measuring thread."""
    (tmp_path / "bound.py").write_text(
        "import dojo_native  # loads OpenMP\nfrom dojo_core import system\nprint(*sorted(system.cores()))"
    )
    bound = {"OMP_NUM_THREADS": str(len(cores())), "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}
    answer = subprocess.run(
        module_command("bound"),
        env={**os.environ, **bound, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    assert [int(core) for core in answer.stdout.split()] == sorted(cores())


@pytest.mark.usefixtures("kept_workers")
def test_a_record_of_a_busy_machine_is_measured_again_and_the_quiet_time_stands(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def new_process(records: Records) -> Measurement:
        with Measurer(records, generate=broken, preamble="") as measurer:
            return measure(measurer, SAME)[0]

    with Records() as records:
        machine_is(monkeypatch, Conditions(0.6))
        first = new_process(records)
        assert (first.known, first.conditions.busy) == (False, True)
        # a time that no machine will ever reach does not stand in the way of the true one
        (_, record), *_ = records.measurements()
        records.add(replace(record, seconds=1e-12, samples=(Sample(1e-3),), time=record.time + 1))
        assert not new_process(records).known
        machine_is(monkeypatch, Conditions(0.01))
        quiet = new_process(records)
        assert (quiet.known, quiet.conditions.quiet) == (False, True)
        again = new_process(records)
        assert (again.known, again.samples, again.conditions) == (True, quiet.samples, quiet.conditions)
        # a month later
        later = time.time() + 31 * 86_400
        monkeypatch.setattr("dojo_core.targets.cpu.measurer.time.time", lambda: later)
        assert not new_process(records).known


def test_a_process_that_found_the_machine_busy_does_not_measure_the_same_at_once_again(
    measurer: Measurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_is(monkeypatch, Conditions(0.6))
    assert [measure(measurer, SAME)[0].known for _ in range(2)] == [False, True]
    later = time.time() + 301
    monkeypatch.setattr("dojo_core.targets.cpu.measurer.time.time", lambda: later)
    assert not measure(measurer, SAME)[0].known


@pytest.mark.usefixtures("kept_workers")
def test_identical_code_is_measured_once_and_found_again_in_the_records(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine_is(monkeypatch, Conditions(0.0))
    with Records() as records:
        with Measurer(records, generate=broken, preamble="") as measurer:
            first = measure(measurer, SAME)[0]
            again = measure(measurer, SAME)[0]
            assert (first.known, again.known, again.samples) == (False, True, first.samples)
            assert not measure(measurer, SAME, effort=Effort.NORMAL)[0].known
        with Measurer(records, generate=broken, preamble="") as measurer:
            assert measure(measurer, SAME)[0].known
            assert measurer.worker_pid is None
        best = records.best(program(START).hash, "cpu", measurer.machine.fingerprint)
        assert best is not None
        assert (best.program_text, best.shape, best.dtype) == (program(SAME).text, "100x21", "f32")


@pytest.mark.usefixtures("kept_workers")
def test_a_wrong_result_is_kept_and_is_never_the_best() -> None:
    with Records() as records, Measurer(records, generate=broken, preamble="") as measurer:
        assert measure(measurer, WRONG)[0].status == "wrong_result"
        fingerprint = measurer.machine.fingerprint
        assert records.best(program(START).hash, "cpu", fingerprint) is None
        known = records.known(program(WRONG).hash, "cpu", fingerprint)
        assert known is not None and known.status == "wrong_result"


@pytest.mark.usefixtures("kept_workers")
def test_what_reproduces_a_wrong_result_is_kept(home: Path) -> None:
    with Records() as records, Measurer(records, generate=broken, preamble="") as measurer:
        told = measure(measurer, WRONG, SAME)[0].message
        (file,) = (home / "wrong").iterdir()
        assert f"wrong/{file.name}" in told
        found = load(file)
        workload = Workload(parse(found.start), found.kernel, found.policy)
        measurer.use_inputs(found.seed)
        again = measurer.measure(workload, [parse(found.program)], fresh=True)[0]
        assert again.status == found.status == "wrong_result" and found.message in again.message
        assert measurer.code_text(parse(found.program), found.policy) == found.code
        assert len(list((home / "wrong").iterdir())) == 1
    # by the generator that is not broken: times 10 is wrong still, times 2 is right
    assert main_of_dojo("reproduce", str(file)) == 1
    assert main_of_dojo("reproduce", str(keep(replace(found, program=found.start, kernel="right")))) == 0
    file.write_text("[]")
    assert main_of_dojo("reproduce", str(file)) == 1


def main_of_dojo(*arguments: str) -> int:
    return CliRunner().invoke(app, arguments).exit_code


def test_what_is_much_slower_than_the_best_known_is_not_timed_in_full(measurer: Measurer) -> None:
    measure(measurer, START, effort=Effort.NORMAL)
    slow, fast = measure(measurer, SLOW, SAME, effort=Effort.NORMAL)
    assert (slow.status, slow.verified) == ("ok", True)
    assert len(slow.raw) <= Effort.NORMAL.patience < len(fast.raw) == Effort.NORMAL.samples
    (alone,) = measure(measurer, SLOW, effort=Effort.FINAL)
    assert len(alone.raw) == Effort.FINAL.samples, "a finalist is timed in full"


def test_finalists_are_timed_twenty_times_on_fresh_inputs(shared: Measurer) -> None:
    outcome = measure(shared, SAME, effort=Effort.FINAL, fresh=True)[0]
    assert (outcome.status, len(outcome.raw)) == ("ok", 20)


def test_results_come_as_they_are_found_until_cancelled(measurer: Measurer) -> None:
    heard: list[Measurement] = []
    outcomes = measurer.measure(
        Workload(program(START)),
        [program(START), program(SAME), program(WRONG)],
        on_result=heard.append,
        cancelled=lambda: len(heard) >= 2,
    )
    assert [o.status for o in outcomes] == ["ok", "ok", "cancelled"]
    assert heard == outcomes


def test_a_compiler_that_was_called_off_is_no_compile_error(
    measurer: Measurer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that lapses and is renewed: cancelled for a moment, while the compiler runs."""
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "nothing compiled"))
    asked: list[bool] = []

    def for_a_moment() -> bool:
        asked.append(len(asked) == 2)  # at first by measure itself, twice; then by build
        return asked[-1]

    called_off = measurer.measure(Workload(program(START)), [program(SAME)], cancelled=for_a_moment)[0]
    assert (called_off.status, any(asked)) == ("cancelled", True)
    assert measure(measurer, SAME)[0].status == "ok"


@pytest.mark.timeout(60)
def test_ctrl_c_need_not_wait_for_others_who_measure(
    measurer: Measurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dojo_core.targets.cpu.measurer.build", interrupted)
    with measuring(), pytest.raises(KeyboardInterrupt):
        measure(measurer, SAME)


@pytest.mark.thorough  # any that never ends: above
def test_a_start_program_that_never_ends_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    class Counted(WorkerProcess):
        def __init__(self, machine: Machine) -> None:
            super().__init__(machine)
            started.append(self.pid)

    monkeypatch.setattr("dojo_core.measure.trial.WorkerProcess", Counted)
    monkeypatch.setattr("dojo_core.measure.trial.JUDGE_MULTIPLE", 1)  # it is waited for no longer
    with Measurer(generate=broken, preamble="", run_seconds=0.7) as measurer:
        for _ in range(2):
            for outcome in measurer.measure(Workload(program(ENDLESS)), [program(START), program(SAME)]):
                assert outcome.status == "refused"
                assert outcome.message.startswith("The start program cannot be measured. It ran for more")
        assert len(started) == 1
        assert measure(measurer, SAME)[0].status == "ok"  # another workload


@pytest.mark.usefixtures("kept_workers")
def test_what_is_known_holds_for_one_start_program_only() -> None:
    with Records() as records, Measurer(records, generate=broken, preamble="") as measurer:
        assert measure(measurer, SAME)[0].status == "ok"
        tripled = measurer.measure(Workload(program(SAME)), [program(SAME)])[
            0
        ]  # x * 3, where the code doubles
        assert (tripled.status, tripled.known) == ("refused", False)
        assert "The start program cannot be measured. It is wrong itself" in tripled.message


def test_a_measurer_forgets_what_was_long_ago(monkeypatch: pytest.MonkeyPatch, measurer: Measurer) -> None:
    monkeypatch.setattr("dojo_core.targets.cpu.measurer.KNOWN_CODES", 2)
    assert [measure(measurer, f)[0].known for f in (START, SAME, WRONG)] == [False] * 3
    assert [measure(measurer, f)[0].known for f in (WRONG, SAME, START)] == [True, True, False]


def test_every_request_has_processor_time_of_its_own() -> None:
    worker = WorkerProcess(this_machine())

    def limit() -> int:
        rows = Path(f"/proc/{worker.pid}/limits").read_text().splitlines()
        return int(next(row for row in rows if row.startswith("Max cpu time")).split()[3])

    try:
        for seconds in (30, 400):  # judging a kernel must not shorten the preparation of the next one
            with pytest.raises(WorkerFault):
                worker.ask({"do": "measure", "cpu_seconds": seconds}, 10)
            assert seconds <= limit() <= seconds + 20
    finally:
        worker.kill()


def test_what_nobody_waits_for_any_more_ends_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.0)
    silent = [sys.executable, "-c", 'print(\'{"status": "ok"}\', flush=True); import time; time.sleep(600)']
    worker = WorkerProcess(this_machine(), silent)  # it greets, and answers no more
    with pytest.raises(WorkerStopped):
        worker.ask({"do": "measure"}, 600, unwanted=lambda: True)
    assert not alive(worker.pid)
    stopped = run_watched(["sleep", "600"], tmp_path, 600, unwanted=lambda: True)
    assert stopped == (None, "The compiler was stopped.")


def test_a_job_that_is_cancelled_while_a_candidate_runs_leaves_it_and_the_next_one_is_measured(
    monkeypatch: pytest.MonkeyPatch, measurer: Measurer
) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.0)
    ask, asked = WorkerProcess.ask, []

    def noted(worker: WorkerProcess, request: dict, *rest) -> dict:
        asked.append(request["do"])
        return ask(worker, request, *rest)

    monkeypatch.setattr(WorkerProcess, "ask", noted)
    left_behind = [program(ENDLESS)]
    (left,) = measurer.measure(Workload(program(START)), left_behind, cancelled=lambda: "measure" in asked)
    assert left.status == "cancelled"
    assert [each.status for each in measure(measurer, SAME)] == ["ok"]


def test_efforts_are_ranked_and_an_unknown_one_is_the_least() -> None:
    labels = ["", "quick", "normal", "final"]
    assert [Effort.rank_of(label) for label in labels] == [0, 1, 2, 3]


@pytest.mark.usefixtures("kept_workers")
def test_a_program_without_code_is_refused_and_the_others_are_measured() -> None:
    def picky(program: Program, policy: str) -> Code:
        if program.text.endswith("*20\n"):
            raise NotGeneratable("A factor of 20 is too much.")
        if program.text.endswith("*21\n"):
            raise ZeroDivisionError("a fault of ours")
        return broken(program, policy)

    with Measurer(generate=picky, preamble="") as measurer:
        outcomes = measure(measurer, 20, 21, SAME)
        assert [o.status for o in outcomes] == ["refused", "refused", "ok"]
        assert outcomes[0].message == "A factor of 20 is too much."
        alone = measurer.measure(Workload(program(20)), [program(SAME)], Effort.NORMAL)[0]
        assert alone.status == "refused"


def test_the_measuring_process_starts_without_what_plays() -> None:
    code = "import sys, dojo_core.measure.worker; sys.exit('dojo_core.moves' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent).returncode == 0


def test_closing_leaves_no_process() -> None:
    with Measurer(generate=broken, preamble="", run_seconds=5) as measurer:
        measure(measurer, START)
        pid = measurer.worker_pid
        assert pid is not None
        measurer.close()
        assert not alive(pid)
        assert measure(measurer, SAME)[0].status == "ok"


@pytest.mark.usefixtures("kept_workers")
def test_a_worker_killed_amid_a_run_is_replaced() -> None:
    with Measurer(generate=broken, preamble="", run_seconds=0.8) as measurer:
        measure(measurer, START)
        pid = measurer.worker_pid
        assert pid is not None
        rested = computed(pid)

        def kill_once_it_runs() -> None:
            wait_until(lambda: computed(pid) > rested + 0.1)
            with suppress(ProcessLookupError):  # so busy a machine that its time was up before
                os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill_once_it_runs)
        killer.start()
        outcome, after = measure(measurer, ENDLESS, SAME)
        assert outcome.status == "timeout"  # the kill was not its fault: it got a second worker
        assert after.status == "ok"
        assert not alive(pid)
        killer.join()


def computed(pid: int) -> float:
    """Seconds of processor time of a process; endless where it is gone."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    except OSError:
        return float("inf")
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def test_a_killed_parent_leaves_no_worker() -> None:
    script = """
import threading, time
from tests.test_measure import *
measurer = Measurer(generate=broken, preamble="", run_seconds=100)
measure(measurer, START)
print(measurer.worker_pid, flush=True)
measure(measurer, ENDLESS)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    time.sleep(0.5)
    assert alive(worker)
    parent.kill()
    parent.wait()
    wait_until(lambda: not alive(worker))


def test_runs_rotate_among_sets_of_inputs_whose_scalars_are_the_same() -> None:
    start = kernels.get("axpy").program((4096,))
    code = generate(start)
    judged = judgements(start.text, code.parameters, 0, input_sets(start, "reassoc"), None)
    prepared = Prepared(code.parameters, judged, last_level=1 << 30, second_level=0)
    assert len(prepared.sets) == SETS
    of_scalar = [p.shape for p in code.parameters].index(())
    scalars = {bytes(memoryview(buffers[of_scalar])) for buffers in prepared.sets}
    assert scalars == {judged[0].pool.inputs[code.parameters[of_scalar].name].tobytes()}


def test_special_values_are_in_the_inputs_and_in_the_references() -> None:
    parameters = broken(program(START), "reassoc").parameters
    pool = make_pool(program(START), parameters, seed=3)
    x, y = pool.inputs["x"], pool.references["y"]
    np.testing.assert_array_equal(y, 2 * x.astype(np.float64))
    assert len(pool.adversarial["x"]) == ROWS // 20
    other = make_pool(program(START), parameters, seed=3)
    np.testing.assert_array_equal(x, other.inputs["x"])


RECURRENCE = """\
kernel k
in x, w
out y
x f32 [48, 64] heap
w f32 [64, 64] heap
y f32 [49, 64] heap
t f32 [64] heap
64 y[0,{0}] = 0
48 64 t[{1}] = x[{0},{1}]
| 64 64 t[{1}] += y[{0},{2}]*w[{2},{1}]
| 64 y[{0}+1,{1}] = tanh(t[{1}])
"""


def test_a_recurrence_that_is_chaos_has_smaller_numbers_at_which_it_is_none() -> None:
    """With weights of magnitude 1, what is left of a rounding grows sixfold at every step."""
    start = parse(RECURRENCE)
    x = make_pool(start, generate(start, "reassoc").parameters, seed=3).inputs["x"]
    assert 0.1 < np.median(np.abs(x)) * 2**3 < 1.5 and np.isfinite(x).all()
    calm = parse(RECURRENCE.replace("tanh(t[{1}])", "t[{1}]").replace("*w[{2},{1}]", ""))
    usual = parse(RECURRENCE.replace("y[{0},{2}]*w", "x[{0},{2}]*w"))
    for each in (calm, usual):
        x = make_pool(each, generate(each, "reassoc").parameters, seed=3).inputs["x"]
        assert 0.5 < np.median(np.abs(x)) < 0.9


def test_a_row_that_the_start_program_has_right_by_luck_may_be_off_by_what_most_rows_are() -> None:
    y = Parameter("y", "f32", (8, 512), "out")
    scale = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 1e6])
    own = np.array([0.0, 3e-7, 4e-7, 4e-7, 4e-7, 1e-7, 0.0, 5e4])
    allowed = tolerance(y, own, scale, None)
    np.testing.assert_allclose(allowed, 8 * np.array([4e-7, 4e-7, 4e-7, 4e-7, 4e-7, 2e-7, 0, 5e4]))


def test_saturated_results_say_nothing_of_the_others() -> None:
    """A tanh near 1 hardly moves with its inputs, and is off by its own rounding."""
    y = Parameter("y", "f32", (5,), "out")
    moved = np.array([1e-13, 1e-13, 1e-13, 1e-13, 2e-5])
    allowed = tolerance(y, np.array([6e-8, 6e-8, 6e-8, 6e-8, 1e-5]), np.ones(5), moved)
    assert allowed.max() == pytest.approx(8 * 2 * 2e-5)


def test_a_cancelled_sum_may_be_off_by_what_sums_are_off_by_for_their_terms() -> None:
    y = Parameter("y", "f32", (5,), "out")
    scale = np.array([5.0, 5.0, 5.0, 5.0, 1e12])  # the last of terms of 1e15
    moved = np.array([1e-6, 1e-6, 2e-6, 1e-6, 3e5])  # by the inputs' last bits
    allowed = tolerance(y, np.array([20e-6, 10e-6, 50e-6, 30e-6, 1e4]), scale, moved)
    assert allowed[4] == pytest.approx(8 * 25 * 3e5)


CLAMPED = """\
kernel k
in x, w
out y
x f32 [2048, 256] heap
w f32 [256, 64] heap
t f32 [2048, 64] heap
s f32 [2048, 64] heap
y f32 [2048, 64] heap
2048 64 t[{0},{1}] = 0
| | 256 t[{0},{1}] += x[{0},{2}]*w[{2},{1}]
| | s[{0},{1}] = max(t[{0},{1}],0)
| | y[{0},{1}] = min(s[{0},{1}],0.125)
"""


def test_a_clamp_leaves_few_sums_of_a_row_and_another_order_of_their_terms_is_right() -> None:
    """The others are 0 and 0.125 exactly: of a row there is one error, or none."""
    start = parse(CLAMPED)
    parameters = generate(start, "reassoc").parameters
    pool, y = make_pool(start, parameters, seed=3, tame=True), parameters[-1]
    want = pool.references["y"]

    def off(terms: Iterable[int]) -> np.ndarray:
        t = np.zeros((2048, 64), np.float32)
        for k in terms:
            t += pool.inputs["x"][:, k, None] * pool.inputs["w"][k]
        return np.abs(t.clip(0, 0.125) - want).max(axis=1)

    own, other, scale = off(range(256)), off(reversed(range(256))), np.abs(want).max(axis=1)
    assert (other <= pool.tolerance(y, own, scale, "reassoc")).all()
    assert not (other <= tolerance(y, own, scale, None)).all()


def test_a_start_program_that_is_far_off_is_refused() -> None:
    y = Parameter("y", "f32", (3, 100), "out")
    scale = np.array([1.0, 1.0, 1.0])
    allowed = tolerance(y, np.array([1e-7, 4e-7, np.inf]), scale, None)
    np.testing.assert_allclose(allowed, [2.6e-6, 3.2e-6, np.inf])
    with pytest.raises(ValueError, match="is off by"):
        tolerance(y, np.array([0.1, 0.1, 0.1]), scale, None)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_finals_have_inputs_of_their_own_in_every_process() -> None:
    one, other = (Trials(this_machine(), 1.0) for _ in range(2))
    usual = one.seed
    one.renew_inputs()
    other.renew_inputs()
    assert len({one.seed, other.seed, usual}) == 3
    one.usual_inputs()
    assert one.seed == usual


def test_candidates_take_turns_with_what_they_are_held_against(
    measurer: Measurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, told = program(START), []
    measurer.measure(Workload(start), [start], Effort.NORMAL)
    verified, run = [], measurer._trials.run
    monkeypatch.setattr(
        measurer._trials, "run", lambda candidate, *rest: verified.append(candidate) or run(candidate, *rest)
    )
    candidates = [program(SAME), program(SLOW), program(CRASH), start]
    same, slow, crash, itself = measurer.measure(
        Workload(start), candidates, against=start, on_result=lambda m: told.append(m.program_hash)
    )
    # on a busy machine the same may be taken for surely slower after two rounds
    assert len(same.ratios) in (GIVEN_UP, FIRST_ROUNDS) and len(same.raw) == len(same.ratios) + 1
    assert slow.ratios and max(slow.ratios) < 1 and slow.verified
    assert crash.status == "crash" and not crash.ratios
    assert itself.ratios == (1.0,) * ROUNDS, "one code is as fast as itself, whatever a clock says"
    assert told[-1] == start.hash, "what they took turns with has a new time too"
    assert len(verified) == len(candidates), "what is known of it is not found out again"
    again = measurer.measure(Workload(start), [program(SAME)], against=start)[0]
    assert len(again.ratios) in (GIVEN_UP, FIRST_ROUNDS) and not again.known
    fresh = measurer.measure(Workload(start), [program(SAME)], against=start, fresh=True)[0]
    assert len(fresh.ratios) in (GIVEN_UP, ROUNDS)


def test_what_is_held_against_may_be_of_another_process_or_fail(measurer: Measurer) -> None:
    start = program(START)
    assert measurer.measure(Workload(start), [program(SAME)], against=start)[0].ratios
    failing = measurer.measure(Workload(start), [program(SAME)], against=program(CRASH))[0]
    assert failing.status == "ok" and not failing.ratios
