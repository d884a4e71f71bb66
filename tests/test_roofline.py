"""The machine's limits: the best ever seen, one for all pages and benches, never exceeded in print."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dojo_core import kernels, parse
from dojo_core.bench import roofline
from dojo_core.bench.limits import Pattern, Phase
from dojo_core.bench.roofline import MEASURED, PEAK, Question, Roofline, beaten_by, doubtful, keep, known
from dojo_core.bench.summary import settled
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Limit, Records
from tests.test_records import RECORD, replace

RELU = Question(kernels.get("relu").program((64, 256)), "relu", "64x256", 64.0 * 256)
BYTES = 2 * 4 * 64 * 256


def answer(seconds: float, gflops: float = 100.0, load: float | None = 0.0) -> dict[str, object]:
    """As limits.py says it."""
    return {"samples": [1e9 * seconds, 3e9 * seconds], "all": [gflops, gflops / 2], "one": [gflops / 4],
            "load": load}  # fmt: skip


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "records.sqlite")


def test_a_limit_is_the_longer_of_its_memorys_and_its_operations_time() -> None:
    found = Roofline(1e-4, 2e-5, 512, 1e6, "1 read and 1 written", 5e10)
    assert (found.seconds, found.bound) == (1e-4, "memory")
    assert (found.gbytes_per_second, found.gflops) == (pytest.approx(512 / 1e-4 / 1e9), 50.0)
    assert replace(found, arithmetic_seconds=3e-4).bound == "arithmetic"


def test_what_beats_a_limit_becomes_it() -> None:
    found = Roofline(1e-4, 8e-5, 512, 8e6, "1 read and 1 written", 1e11)
    assert found.beaten(1e-4, "x") is found and found.beaten(None, "x") is found
    by_memory = found.beaten(9e-5, "ours")
    assert (by_memory.seconds, by_memory.arithmetic_seconds, by_memory.reached) == (9e-5, 8e-5, "ours")
    by_both = found.beaten(4e-5, "ours")
    assert by_both.seconds == by_both.memory_seconds == by_both.arithmetic_seconds == 4e-5
    assert by_both.gflops == pytest.approx(200.0)  # a point on the roof, not above it


def test_a_pattern_is_the_same_whichever_kernel_it_is_of() -> None:
    relu, silu = (Question(kernels.get(n).program((64, 256)), n, "64x256", 1.0) for n in ("relu", "silu"))
    wide = Question(kernels.get("relu").program((64, 512)), "relu", "64x512", 1.0)
    assert relu.stream == silu.stream != wide.stream
    twice = Pattern((Phase(((0, 8), (1, 4)), ()), Phase(((0, 8),), ((2, 4),))))
    assert twice.name(2) == "stream: read 4 8 write 0, then read 8 write 4; 2 sets"


def test_a_limit_is_the_best_ever_seen(records: Records) -> None:
    assert known(records, RELU) is None and doubtful(records, RELU)
    keep(records, RELU, [answer(2e-5, 80.0), answer(1e-5, 60.0)])
    keep(records, RELU, [answer(3e-5, 90.0)])
    found = known(records, RELU)
    assert found is not None
    assert found.memory_seconds == pytest.approx(1e-5) and found.gflops == pytest.approx(90.0)
    assert found.arithmetic_seconds == pytest.approx(64 * 256 / 90e9)
    assert (found.bytes, found.reached) == (BYTES, "")


def test_one_of_a_busy_machine_is_measured_again_and_confirmed_by_a_quiet_one(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roofline, "load_is_told", lambda: True)
    answers = [answer(5e-5, load=0.7), answer(6e-5, load=0.01)]
    monkeypatch.setattr(roofline, "_measured", lambda kernel, unwanted: answers.pop(0))
    first = roofline.roofline(records, RELU)
    assert first is not None and first.seconds == pytest.approx(5e-5) and doubtful(records, RELU)
    again = roofline.roofline(records, RELU)
    assert again == first and not doubtful(records, RELU)  # no shorter, and the machine was idle
    assert roofline.roofline(records, RELU) == first and answers == []  # kept


def test_a_limit_that_cannot_be_measured_is_none_and_what_is_known_stays(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(kernel: Question, unwanted: Callable[[], bool]) -> None:
        raise OSError("no compiler")

    monkeypatch.setattr(roofline, "_measured", fails)
    assert roofline.roofline(records, RELU) is None
    keep(records, RELU, [answer(5e-5, load=0.7)])
    assert roofline.roofline(records, RELU) == known(records, RELU) is not None


def test_a_verified_run_that_beats_it_lowers_it_for_every_kernel_of_the_pattern(records: Records) -> None:
    silu = Question(kernels.get("silu").program((64, 256)), "silu", "64x256", 1.0)
    keep(records, RELU, [answer(1e-5)])
    found = beaten_by(records, RELU, [("ours: line", 2e-5), ("PyTorch eager", 8e-6)])
    assert found is not None
    assert (found.seconds, found.reached) == (8e-6, "PyTorch eager (relu 64x256)")
    for kernel in (RELU, silu):
        again = known(records, kernel)
        assert again is not None and again.memory_seconds == 8e-6 and again.reached == found.reached


def test_a_record_that_beats_it_is_the_limit_at_once(records: Records) -> None:
    keep(records, RELU, [answer(1e-5)])
    here = this_machine().fingerprint
    made = replace(RECORD, start_hash=RELU.start.hash, fingerprint=here, time=1.0)
    records.add_all([
        replace(made, seconds=9e-6, load=0.5),  # noise only adds: what was reached beside others was reached
        replace(made, seconds=1e-6, verified=False, status="wrong_result", time=2.0),
        replace(made, seconds=2e-6, fingerprint="elsewhere", time=3.0),
    ])  # fmt: skip
    found = known(records, RELU)
    assert found is not None and (found.seconds, found.reached) == (
        9e-6,
        "a program of the Dojo (relu 64x256)",
    )


def test_one_that_computes_faster_than_the_peak_is_a_limit_of_its_own_kernel_alone(records: Records) -> None:
    product = Question(kernels.get("matmul").program((64, 64, 64)), "matmul", "64x64x64", 2.0 * 64**3)
    other = Question(product.start, "matmul", "64x64x64", 4.0 * 64**3)
    keep(records, product, [answer(1e-7, gflops=100.0)])
    found = beaten_by(records, product, [("ours: line", 4e-6)])  # 131 GFLOP/s
    assert found is not None and found.bound == "arithmetic" and found.seconds == 4e-6
    assert found.gflops == pytest.approx(2 * 64**3 / 4e-6 / 1e9)
    peak = records.limit(this_machine().fingerprint, PEAK)
    assert peak is not None and peak.source == MEASURED and peak.seconds == pytest.approx(1e-2)
    assert known(records, product) == found and other.own == product.own


def test_integers_have_no_peak() -> None:
    integers = parse("kernel t\nin x\nout y\nx i32 [8] heap\ny i32 [8] heap\n8 y[{0}] = x[{0}] * x[{0}]\n")
    assert Question(integers, None, "", 1e9).operations == 0.0
    assert RELU.operations == RELU.flops


def test_limits_outlive_their_process(tmp_path: Path) -> None:
    with Records(tmp_path / "r.sqlite") as records:
        records.lower_limit("here", Limit("a", 2.0, "measured", 0.3))
        assert records.lower_limit("here", Limit("a", 3.0, "slower", 0.0)).seconds == 2.0
        records.lower_limit("there", Limit("a", 1.0, "another machine"))
    with Records(tmp_path / "r.sqlite") as records:
        found = records.limit("here", "a")
        assert found is not None and (found.seconds, found.source, found.load) == (2.0, "measured", 0.0)
        assert records.limit("here", "b") is None


def stored(best: float, apart: bool = False, target: str = "cpu") -> dict[str, object]:
    entry = {"name": "ours: line", "entry": "line", "kind": "ours", "apart": apart, "status": "ok",
             "verified": True, "min": best, "share": 1e-4 / best}  # fmt: skip
    missing = {"name": "JAX", "entry": "jax", "kind": "baseline", "apart": False, "status": "missing"}
    limits = {"bound": "memory", "seconds": 1e-4, "memory_seconds": 1e-4, "arithmetic_seconds": 5e-5,
              "bytes": 512, "pattern": "1 read", "gbytes_per_second": 1.0, "gflops": 10.0}  # fmt: skip
    return {"kernel": "relu", "shape": "8x64", "target": target, "flops": 500_000, "limits": limits,
            "entries": [entry, missing]}  # fmt: skip


def test_a_stored_bench_never_prints_more_than_its_limit() -> None:
    under = settled(stored(2e-4))
    assert under["entries"][0]["share"] == 0.5 and under["limits"]["seconds"] == 1e-4
    over = settled(stored(8e-5))
    assert over["entries"][0]["share"] == 1.0 and over["limits"]["seconds"] == 8e-5
    assert over["limits"]["reached"] == "ours: line (relu 8x64)"
    assert "share" not in over["entries"][1]
    # by what is known of the machine now
    lower = Roofline(5e-5, 1e-5, 512, 1.0, "1 read", 1e10, "a program of the Dojo (relu 8x64)")
    now = settled(stored(8e-5), lower)
    assert now["entries"][0]["share"] == pytest.approx(0.625) and now["limits"]["reached"] == lower.reached
    # with tensor cores fewer bits are computed: no share, and no limit of the others
    fewer = settled(stored(8e-5, apart=True, target="cuda"))
    assert fewer["entries"][0]["share"] is None and fewer["limits"]["seconds"] == 1e-4
    assert settled({**stored(1.0), "limits": None})["limits"] is None


def test_the_limit_of_a_small_kernel_on_this_machine(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = roofline.roofline(records, RELU)
    assert found is not None and found.bytes == BYTES
    assert found.seconds == max(found.memory_seconds, found.arithmetic_seconds) > 0
    monkeypatch.setattr(roofline, "_measured", None)  # kept: not measured a second time
    monkeypatch.setattr(roofline, "doubtful", lambda *_: False)
    assert roofline.roofline(records, RELU) == found
