"""What a time from the records is worth where people meet it: commands, exports, the library, the app."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dojo_core import kernels
from dojo_core.bench.roofline import PEAK, Question, Roofline
from dojo_core.bench.summary import settled
from dojo_core.cli import app
from dojo_core.export import choice
from dojo_core.export.kernel import provenance
from dojo_core.measure.catalogue import Catalogue, Wanted
from dojo_core.measure.conditions import Conditions
from dojo_core.measure.load import Reading, Watch
from dojo_core.measure.machine import this_machine
from dojo_core.measure.measurement import Workload
from dojo_core.measure.records import Limit, Record, Records, Sample
from dojo_core.service import Service
from dojo_core.service.comparing import Comparisons
from dojo_core.service.feed import roofline_view
from dojo_core.service.library import Library
from dojo_core.service.queue import MeasuringQueue, Outcome, Task
from dojo_core.service.wiring import KernelLibrary, RecordStore
from dojo_core.targets.registry import backend
from pages.library.tables import record_cells
from tests.homes import with_objects
from tests.stand_ins import Bench
from tests.test_roofline import stored

pytestmark = pytest.mark.usefixtures("kept_workers")

DAY = 86_400.0
START = kernels.get("relu").program((8, 64))


def record(seconds: float, age: float, load: float | None, exclusive: bool = True) -> Record:
    """Of the start program of relu 8x64 on this machine, so many seconds old."""
    return Record(
        START.hash, START.text, START.hash, "relu", "8x64", "f32", "reassoc", "", "cpu",
        this_machine().fingerprint, this_machine().details, "c", "ok", True, seconds,
        (Sample(seconds * 1e9),), effort="normal", player="ann", time=time.time() - age,
        load=load, exclusive=exclusive,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that tells its load, and is idle whatever runs beside this test."""
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))
    monkeypatch.setattr("dojo_core.targets.cpu.backend.load_is_told", lambda: True)
    monkeypatch.setattr("dojo_core.targets.cpu.measurer.load_is_told", lambda: True)
    monkeypatch.setattr("dojo_core.measure.trial.conditions_of", lambda answer: Conditions(0.01))
    return tmp_path


def keep(*records: Record) -> None:
    with Records() as kept:
        kept.add_all(records)


def dojo(*words: str, code: int = 0) -> str:
    told = CliRunner().invoke(app, list(words))
    assert told.exit_code == code, told.output
    return " ".join(told.output.split())


def test_a_time_of_a_busy_machine_is_not_served_for_ever() -> None:
    keep(record(0.0396, 3 * DAY, 0.6))
    told = dojo("time", "relu", "--shape", "8x64", "--recorded")
    assert "39.6 ms" in told
    assert "From the records, 3 days ago, machine busy: other processes took 60% of the cores." in told
    assert "To take it again, leave --recorded out." in told
    told = dojo("time", "relu", "--shape", "8x64")
    assert "Measured now, machine idle." in told and "39.6 ms" not in told
    told = dojo("time", "relu", "--shape", "8x64", "--recorded")
    assert "From the records, just now, machine idle." in told and "39.6 ms" not in told
    assert "busy" not in dojo("best", "relu", "--shape", "8x64")


def test_time_measures_each_time_unless_the_records_are_asked_for() -> None:
    keep(record(1e-12, 60, 0.0))
    for _ in range(2):
        (row,) = json.loads(dojo("time", "relu", "--shape", "8x64", "--json"))
        assert (row["recorded"], row["load"], row["exclusive"]) == (None, 0.01, True)
        assert row["seconds"] > 1e-10
    (row,) = json.loads(dojo("time", "relu", "--shape", "8x64", "--json", "--recorded"))
    assert row["seconds"] == 1e-12 and time.time() - row["recorded"] < 3600
    assert "The records know no time of this position" in dojo(
        "time", "relu", "--shape", "8x32", "--recorded", code=1
    )


def test_the_best_lines_say_where_the_machine_was_busy() -> None:
    keep(record(2e-6, DAY, 0.6), record(1e-6, DAY + 1, 0.0, exclusive=False))
    told = dojo("best", "relu", "--shape", "8x64")
    assert "1 µs" in told and "busy" in told and "Noise only adds to a time" in told
    keep(record(3e-6, DAY + 2, 0.01))
    told = dojo("best", "relu", "--shape", "8x64")
    assert "3 µs" in told and "idle" in told and "Noise" not in told


def test_the_library_marks_times_of_a_busy_machine() -> None:
    keep(record(2e-6, DAY, 0.6))
    with Catalogue() as catalogue:
        (row,) = catalogue.rows(Wanted())
        assert record_cells(row, ())["Load"] == "▲ busy 60%"
        catalogue.add(record(3e-6, DAY, 0.01))
        (row,) = catalogue.rows(Wanted())
        cells = record_cells(row, ())
        assert (cells["Load"], cells["Time"], cells["Runs"]) == ("idle", "3 µs", 2)


@pytest.mark.parametrize(
    ("age", "load", "again"), [(DAY, 0.0, False), (31 * DAY, 0.0, True), (DAY, 0.5, True), (DAY, None, True)]
)
def test_an_export_takes_doubtful_times_again(
    age: float, load: float | None, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "line_for", lambda *_: None)  # the records alone
    keep(record(4e-6, age, load))
    measured: list[str] = []

    def measure(chosen: choice.Choice) -> None:
        measured.append(chosen.program.hash)
        keep(record(5e-6, 0, 0.0))

    start = choice.of_game(choice.start_game("relu", "8x64", "reassoc"), "the start program")
    for chosen in (
        lambda kept: choice.verified(start, kept, measure),
        lambda kept: choice.best("relu", "8x64", kept, None, measure),
    ):
        with Records() as kept:
            found = chosen(kept)
        assert found.record is not None and found.record.seconds == (5e-6 if again else 4e-6)
    assert measured == ([START.hash] if again else [])  # once: then it is known


def test_an_exported_file_says_that_the_machine_was_busy() -> None:
    assert "busy" not in " ".join(provenance(record(4e-6, DAY, 0.0)))
    told = " ".join(provenance(record(4e-6, DAY, 0.6)))
    assert "machine busy: other processes took 60% of the cores: it need not take so long" in told


def test_the_app_shows_a_doubtful_time_and_takes_it_again() -> None:
    keep(record(0.0396, 3 * DAY, 0.6))
    with Records() as kept:
        workload = Workload(START, "relu")
        (known,) = RecordStore(kept).known(workload, [START.hash]).values()
        assert (known.seconds, known.stands, known.conditions.busy) == (0.0396, False, True)
        assert known.taken is not None
    queue, task = MeasuringQueue(Bench), Task("k", workload, START, START.hash)
    queue._start = lambda: None  # type: ignore[method-assign]
    queue.know("k", {START.hash: known})
    queue.want("p", [(0, task)])
    assert queue.results("k", [START.hash]) == [known] and queue.wanted("p") == {START.hash}
    quiet = Outcome("ok", 0.05, 0.05, 5, conditions=Conditions(0.0), taken=4 * DAY)
    queue._store(task, quiet)  # longer, but to be believed
    queue.want("p", [(0, task)])
    assert queue.results("k", [START.hash]) == [quiet] and not queue.wanted("p")
    queue._store(task, Outcome("ok", 0.04, 0.04, 5, conditions=Conditions(0.7)))
    assert queue.results("k", [START.hash]) == [quiet]


def test_no_time_on_the_board_beats_the_limit_beside_it() -> None:
    limit = Roofline(1e-4, 2e-5, 512, 1e6, "1 read and 1 written", 5e10)
    told = roofline_view(limit, [Outcome("ok", 2e-4, 2e-4, 5), Outcome("crash")])
    assert told is not None and (told["seconds"], told["reached"]) == (1e-4, "")
    told = roofline_view(limit, [Outcome("ok", 8e-5, 9e-5, 5), Outcome("ok", 9e-5, 9e-5, 5)])
    assert told is not None and (told["seconds"], told["reached"]) == (8e-5, "a program on this board")
    assert roofline_view(None, []) is None


def test_a_bench_says_what_else_the_machine_did_and_what_set_its_limit(tmp_path: Path) -> None:
    from dojo_core.cli.benching import _report_table
    from dojo_core.cli.terminal import out

    report = settled(stored(8e-5)) | {
        "load": 0.6, "reference": "line", "rounds": 3, "samples": 10, "machine_summary": "AMD EPYC",
        "remarks": [],
    }  # fmt: skip
    report["limits"] |= {"way": "no prefetch", "gflops_one_thread": 5.0, "threads": 2}
    report["entries"] = [
        {**e, "median": 9e-5, "details": "", "message": "Not here."} for e in report["entries"]
    ]
    with out.capture() as captured:
        _report_table(report)
    told = " ".join(captured.get().split())
    assert "100%" in told
    assert "The limit is what ours: line (relu 8x64) took: it beat what was measured without it." in told
    assert "Machine: AMD EPYC; busy: other processes took 60% of the cores" in told


def test_the_command_line_tells_what_the_machine_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dojo_core.cli import terminal

    readings = [Reading(0.0, 0.0, 0.0, 2), Reading(1.0, 1.2, 0.0, 2)]
    watch = Watch(lambda: readings.pop(0), lambda seconds: None)
    monkeypatch.setattr(terminal, "machine_now", watch.now)
    with terminal.err.capture() as captured:
        terminal.tell_machine()
    assert captured.get().startswith("The machine busy") is False
    assert "The machine is busy: other processes took 60% of the cores." in captured.get()


def test_a_clock_that_tells_no_load_is_not_doubted_for_it() -> None:
    here, model = backend("cpu").clock().origin, backend("snitch").clock().origin
    assert here is not None and here.gauged
    assert model is not None and not model.gauged


def test_a_comparison_that_is_kept_shows_the_limit_that_the_board_shows(tmp_path: Path) -> None:
    here = this_machine().fingerprint
    program = kernels.get("relu").program((8, 64))
    kernel = Question(program, "relu", "8x64", 512.0)
    document = {
        "fingerprint": here, "reports": [stored(2e-4)],
        "spec": {"kernel": "relu", "shape": "8x64", "start": program.text},
    }  # fmt: skip
    with Catalogue(tmp_path / "r.sqlite") as catalogue:
        service = Service(RecordStore(catalogue), KernelLibrary(), Bench)
        library = Library(catalogue, service, Comparisons(tmp_path / "comparisons"))
        (report,) = library.settled(document)["reports"]
        assert report["limits"]["seconds"] == 1e-4 and report["entries"][0]["share"] == 0.5
        for name, seconds in ((kernel.stream, 5e-5), (PEAK, 1e-3)):
            catalogue.lower_limit(here, Limit(name, seconds, "measured"))
        (report,) = library.settled(document)["reports"]
        assert report["limits"]["seconds"] == 5e-5 and report["entries"][0]["share"] == pytest.approx(0.25)
        (report,) = library.settled({**document, "fingerprint": "another machine"})["reports"]
        assert report["limits"]["seconds"] == 1e-4
        service.close()
