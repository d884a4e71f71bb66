"""Tuning on several machines: the same run as on one, whichever of them dies; strangers are kept out."""

import importlib
import os
import socket
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from agents.agent import Budget, Event, Task, run
from agents.cli import app
from agents.players import AGENTS
from agents.scale import clusters, credentials
from agents.scale.commands import LANES
from agents.scale.pool import PoolLost, PoolTiming, WorkerPool
from agents.scale.wire import Answer, OtherVersion, Request
from agents.scale.worker import MeasuringWorker
from agents.timing import CountTiming
from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.measure.exchange import take_in
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.records import Records
from tests.cluster import Cluster, cluster
from tests.homes import with_objects

OURS, THEIRS = "a" * 16, "b" * 16
BUDGET = Budget(26)


@pytest.fixture
def machines(tmp_path, monkeypatch) -> Iterator[Cluster]:
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path / "home")))  # workers are introduced there
    monkeypatch.setattr("agents.scale.pool.POLL", 0.05)
    with cluster(tmp_path) as made:
        yield made


def task() -> Task:
    return Task(Game.new(kernels.get("relu").program((8, 32)), "relu", "8x32"))


def outcomes(events: list[Event]) -> list[tuple[object, ...]]:
    return [(e.evaluation, e.line, e.measurement.seconds, e.final) for e in events]


def alone() -> list[tuple[object, ...]]:
    return outcomes(list(run(task(), AGENTS["sampling-lines"], CountTiming(), BUDGET, lanes=LANES)))


def connected(machines: Cluster, workers: int) -> WorkerPool:
    pool = WorkerPool(machines.address, credentials.security(machines.key), patience=30)
    until(lambda: sum(pool.machines().values()) == workers)
    return pool


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_several_workers_play_the_run_of_one_and_other_machines_are_left_out(machines):
    machines.start_worker(machine=OURS)
    machines.start_worker(machine=OURS, pace=0.05)  # a slow one holds up little
    machines.start_worker(machine=THEIRS, factor=0.1)  # its times would win if they were mixed in
    with connected(machines, 3) as pool:
        assert pool.machines() == {OURS: 2, THEIRS: 1}
        assert pool.choose() == OURS  # most workers
        assert pool.choose("bb") == pool.choose(prefer=lambda f: f == THEIRS) == THEIRS
        with pytest.raises(PoolLost, match=f"No worker is on a machine c: there are {OURS}, {THEIRS}"):
            pool.choose("c")
        timing = PoolTiming(pool, OURS, "me")
        assert outcomes(list(run(task(), AGENTS["sampling-lines"], timing, BUDGET, lanes=LANES))) == alone()


@pytest.mark.thorough  # a run on several: above
def test_a_worker_and_the_scheduler_die_and_the_run_ends_as_if_they_had_not(machines):
    first = machines.start_worker(pace=0.1)  # a batch takes longer than until it dies
    heard: list[str] = []
    with WorkerPool(machines.address, credentials.security(machines.key), 30, heard.append) as pool:
        assert pool.choose() == OURS
        events: list[Event] = []
        for event in run(task(), AGENTS["sampling-lines"], PoolTiming(pool, OURS, "me"), BUDGET, lanes=LANES):
            events.append(event)
            if len(events) == 5:  # in the middle of the next batch
                threading.Timer(0.05, first.kill).start()
                threading.Timer(0.1, machines.start_worker, (0.02,)).start()
            if len(events) == 21:
                machines.scheduler.kill()
                machines.start_scheduler()
    assert not first.is_alive() and not machines.scheduler.is_alive()
    assert outcomes(events) == alone()


def test_a_stopped_run_asks_for_nothing_more(machines):
    with WorkerPool(machines.address, credentials.security(machines.key), 30) as pool:  # no worker at all
        stopped = threading.Event()
        threading.Timer(0.3, stopped.set).start()
        start = task().workload
        timing = PoolTiming(pool, OURS, "me")
        [measurement] = timing.measure(start, [start.start], {}, Effort.QUICK, stopped.is_set)
    assert measurement.status == "cancelled"


def test_who_has_another_key_stays_out(machines, tmp_path, monkeypatch):
    machines.start_worker()
    with connected(machines, 1):
        monkeypatch.setattr("agents.scale.pool.CONNECT", 0.5)  # how long it goes on asking
        stranger = credentials.security(credentials.made(tmp_path / "other.pem"))
        with pytest.raises(PoolLost, match="No scheduler answers at"):
            WorkerPool(machines.address, stranger)


def test_a_worker_measures_for_real_and_sends_its_records(tmp_path):
    start = kernels.get("relu").program((64, 64))
    request = Request(Workload(start, "relu"), (start,), {start.hash: ""}, Effort.QUICK, "me", best=1e-9)
    worker = MeasuringWorker()
    try:
        answer = Answer.read(worker.answer(Request.read(request.text())).text())
        again = worker.answer(request)
    finally:
        worker.close()
    assert answer.results[0].verified and answer.results[0].seconds
    assert again.results[0].known and not again.records  # each is sent once
    with Records(tmp_path / "records.sqlite") as records:
        assert take_in(records, answer.records).new == 1
        record = records.best(start.hash, "cpu", answer.fingerprint)
    assert record is not None and record.player == "me"
    with pytest.raises(OtherVersion, match="of different versions"):
        Request.read(answer.text())


def test_a_key_that_others_can_read_is_refused(tmp_path):
    key = credentials.made(tmp_path / "cluster.pem")
    assert key.stat().st_mode & 0o777 == 0o600
    content = key.read_text()
    assert credentials.made(key).read_text() == content  # made once
    os.chmod(key, 0o644)
    with pytest.raises(credentials.NoCredentials, match="chmod 600"):
        credentials.security(key)


@pytest.mark.parametrize("address", ["127.0.0.1:8786", "tls://127.0.0.1:8786"])
def test_an_address_is_encrypted_unless_told_otherwise(address):
    assert clusters.checked(address, insecure=False) == "tls://127.0.0.1:8786"
    assert clusters.checked("tcp://10.0.0.1:8786", insecure=True) == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tune", "relu", "--scheduler", "tcp://10.0.0.1:8786"), "neither encrypted nor asks who you are"),
        (("worker", "tcp://10.0.0.1:8786"), "neither encrypted nor asks who you are"),
        (("worker", "host"), "tls://host is no address of a scheduler"),
        (("worker", "http://host:1"), "http://host:1 is no address of a scheduler: it begins with tls://"),
        (("worker", "host:1"), "There is no key file"),
        (
            ("tune", "relu", "--workers", "2", "--slurm", "3"),
            "Give one of --scheduler, --workers and --slurm",
        ),
        (("tune", "relu", "--slurm", "3"), "jobs of Slurm needs dask-jobqueue, which is not installed"),
        (
            ("tune", "relu", "--machine", "ab"),
            "--machine and --lanes are for --scheduler, --workers or --slurm",
        ),
    ],
)
def test_what_is_refused_says_what_to_do(words, sentence, tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 1
    assert sentence in " ".join(result.output.split())


def test_a_port_in_use_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["scheduler", "--port", port])
    assert result.exit_code == 1
    assert f"No scheduler can listen at 127.0.0.1:{port}: Address already in use" in result.output


def test_slurm_is_asked_for_workers_that_are_ours_and_encrypted(tmp_path, monkeypatch):
    """No Slurm here: what dask-jobqueue is asked for is what counts."""
    asked = {}

    class SLURMCluster:
        scheduler_address = "tls://10.0.0.7:8786"

        def __init__(self, **arguments):
            asked.update(arguments)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            asked["closed"] = True

        def scale(self, jobs):
            asked["jobs"] = jobs

    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", types.SimpleNamespace(SLURMCluster=SLURMCluster))
    with clusters.slurm_cluster(3) as (address, security):
        assert address == "tls://10.0.0.7:8786" and asked["jobs"] == 3 and "closed" not in asked
        assert security is asked["security"] and security.require_encryption
    assert asked["protocol"] == "tls://" and asked["closed"]
    preload = asked["worker_extra_args"]
    assert importlib.import_module(preload[preload.index("--preload") + 1])

    def incomplete(**_):
        raise ValueError("You must specify how many cores to use per job")

    monkeypatch.setitem(sys.modules, "dask_jobqueue", types.SimpleNamespace(SLURMCluster=incomplete))
    with pytest.raises(clusters.Refused, match=r"how many cores .*docs/scale\.md"), clusters.slurm_cluster(1):
        pass
