"""Moments are right wherever an outlier stands, and a rewrite that is not does not pass: the worst inputs."""

import re
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from typer.testing import CliRunner

from agents.scale.wire import Answer, Request
from agents.scale.worker import MeasuringWorker
from dojo_core import apply, kernels, parse
from dojo_core.cli import app
from dojo_core.codegen.code import Parameter
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.patterns import PATTERNS
from dojo_core.measure.records import Records
from dojo_core.measure.slabs import kept_dimensions
from dojo_core.measure.worst import input_sets, worst_inputs
from dojo_core.measure.worst_pool import make_worst_pool, worst_tolerance
from dojo_core.moves import REGISTRY
from dojo_core.moves.reasons import conditions
from dojo_core.moves.reference import algebraic_page, promise
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.limits import cpu
from dojo_core.targets.cpu.measurer import Measurer
from dojo_core.targets.gpu.check import Checker
from dojo_core.targets.registry import backend
from dojo_core.targets.snitch.measurer import SnitchMeasurer
from dojo_core.targets.snitch.simulate import judge
from tests.compiled import load, run, run_program
from tests.goldens import ROOT
from tests.homes import with_objects
from tests.thorough import one_of


def deviation(rows: int, columns: int, moments: str = "", arrays: str = ""):
    """1 / the standard deviation of each row; ``moments``: what takes the place of the sum of squares."""
    squares = f"""{rows} {columns} d[{{0}},{{1}}] = x[{{0}},{{1}}] - u[{{0}}]
{rows} v[{{0}}] = 0
| {columns} v[{{0}}] += d[{{0}},{{1}}]*d[{{0}},{{1}}]"""
    return parse(
        f"""kernel deviation
in x
out y
x f32 [{rows}, {columns}] heap
u f32 [{rows}] heap
v f32 [{rows}] heap
{arrays or f"d f32 [{rows}, {columns}] heap"}
y f32 [{rows}] heap
{rows} u[{{0}}] = 0
| {columns} u[{{0}}] += x[{{0}},{{1}}]
| u[{{0}}] = u[{{0}}]*{1 / columns!r}
{moments or squares}
{rows} v[{{0}}] = v[{{0}}]*{1 / columns!r}
{rows} v[{{0}}] = v[{{0}}] + 0.00001
{rows} y[{{0}}] = rsqrt(v[{{0}}])
"""
    )


def about_the_first(rows: int, columns: int):
    """The same, from sums about each row's first element: what an outlier there spoils."""
    arrays = "\n".join(f"{name} f32 [{rows}] heap" for name in "oqtw")
    moments = f"""{rows} v[{{0}}] = 0
| o[{{0}}] = x[{{0}},0]
| q[{{0}}] = 0
| t[{{0}}] = 0
| {columns} e[{{0}},{{1}}] = x[{{0}},{{1}}] - o[{{0}}]
| | q[{{0}}] += e[{{0}},{{1}}]*e[{{0}},{{1}}]
| | t[{{0}}] += e[{{0}},{{1}}]
| w[{{0}}] = u[{{0}}] - o[{{0}}]
| t[{{0}}] = t[{{0}}]*(-2)
| q[{{0}}] += w[{{0}}]*t[{{0}}]
| w[{{0}}] = w[{{0}}]*w[{{0}}]
| q[{{0}}] += w[{{0}}]*{columns}
| v[{{0}}] += q[{{0}}]"""
    return deviation(rows, columns, moments, f"{arrays}\ne f32 [{rows}:N, {columns}:N] stack")


def played(start, *moves):
    for move in moves:
        start = apply(start, move, policy="algebraic")
    return start


WAYS = {
    "a row": ("expand_moment v#1@1 o",),
    "blocks": ("split_scope v#1@1 64", "expand_moment v#1@2 o"),
    "lanes": ("split_scope v#1@1 16", "interchange v#1@1", "expand_moment v#1@2 o"),
}


@pytest.fixture(scope="module")
def measurer(tmp_path_factory):
    with Measurer() as measurer:
        yield measurer


@pytest.mark.parametrize(("rows", "columns"), [(1, 4096), (4, 64), (64, 256)])
def test_sums_about_the_first_element_do_not_pass_and_sums_of_blocks_do(measurer, rows, columns):
    start = deviation(rows, columns)
    ways = [way for name, way in WAYS.items() if columns > 64 or name != "blocks"]
    programs = [about_the_first(rows, columns), start, *(played(start, *way) for way in ways)]
    first, *others = measurer.measure(Workload(start, None, "algebraic"), programs, Effort.QUICK)
    assert first.status == "wrong_result" and "on which algebraic moves are worst" in first.message
    assert [(o.status, o.message) for o in others] == [("ok", "")] * len(others)


# ---------------------------------------------------------------------------- every judge


def in_dtype(program, dtype: str):
    """The same in another dtype; on a Snitch core, which has f64, without the root."""
    text = program.text.replace("f32", dtype)
    return parse(text.replace("rsqrt(v[{0}])", "v[{0}]") if dtype == "f64" else text)


def on_blocks(program):
    """A GPU's: a block for each row."""
    return parse(re.sub(r"(?m)^(\d+) ", r"\1:g ", program.text))


@pytest.mark.parametrize(("rows", "columns"), [(1, 512), (16, 256)])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_in_narrow_sums_another_order_passes_and_another_formula_does_not(measurer, dtype, rows, columns):
    start, wrong = (in_dtype(p, dtype) for p in (deviation(rows, columns), about_the_first(rows, columns)))
    ordered = played(start, "split_scope v#1@1 16", "split_reduction v#1@2 p", "split_scope u#1@1 8")
    trials = measurer.measure(Workload(start, None, "algebraic"), [start, ordered, wrong], Effort.QUICK)
    assert [trial.status for trial in trials] == ["ok", "ok", "wrong_result"]


@pytest.mark.parametrize("shape", [(1, 512), (4, 64), (16, 256)])
def test_the_model_of_snitch_judges_on_the_worst_inputs_too(shape):
    start, wrong = (in_dtype(program, "f64") for program in (deviation(*shape), about_the_first(*shape)))
    expanded = played(start, "expand_moment v#1@1 o")
    verdicts = [judge(program, start, "algebraic") for program in (start, expanded, wrong)]
    assert [v.status for v in verdicts] == ["ok", "ok", "wrong_result"]
    assert "on which algebraic moves are worst" in verdicts[-1].message
    found = SnitchMeasurer().measure(Workload(start, None, "algebraic", "snitch"), [expanded, wrong])
    assert [m.status for m in found] == ["ok", "wrong_result"] and found[0].verified


def test_an_overflow_that_another_order_has_accuses_nobody():
    """Of products beyond f64 a fused sum keeps the first infinity; partial sums may have both: NaN."""
    start = kernels.get("matmul").program((24, 16, 8))
    start = parse(start.text.replace("f32", "f64"))
    parts = played(start, "split_scope c#1@2 4", "split_reduction c#1@3 pc")
    for seed in range(6):
        assert [judge(p, start, "algebraic", seed).status for p in (start, parts)] == ["ok", "ok"], seed


@pytest.mark.parametrize(
    "target", ["cuda", pytest.param("hip", marks=pytest.mark.soak)]
)  # judged by the same
def test_the_emulator_judges_on_the_worst_inputs_too(target):
    start, wrong = deviation(4, 64), about_the_first(4, 64)
    with Checker(backend(target)) as checker:
        workload = Workload(start, None, "algebraic", target)
        same, other = (checker.check(workload, on_blocks(program)).verdict for program in (start, wrong))
    assert (same.status, other.status) == ("ok", "wrong_result")
    assert "on which algebraic moves are worst" in other.message


def test_a_measuring_worker_judges_on_the_worst_inputs_too():
    start, wrong = deviation(2, 512), about_the_first(2, 512)
    workload = Workload(start, None, "algebraic")
    request = Request(workload, (start, wrong), {}, Effort.QUICK)
    with closing(MeasuringWorker()) as worker:
        answer = Answer.read(worker.answer(Request.read(request.text())).text())
    assert [trial.status for trial in answer.results] == ["ok", "wrong_result"]


@pytest.mark.usefixtures("kept_workers")
def test_what_is_wrong_on_the_worst_inputs_alone_is_reproduced(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    with Records() as records, Measurer(records) as measurer:
        measurer.measure(Workload(deviation(2, 512), None, "algebraic"), [about_the_first(2, 512)])
    (file,) = (tmp_path / "wrong").glob("*.json")
    told = CliRunner().invoke(app, ["reproduce", str(file)])
    assert told.exit_code == 1 and told.stdout.count("on which algebraic moves are worst") == 2


def test_what_was_verified_under_one_policy_is_verified_anew_under_another(measurer):
    start, candidate = deviation(2, 512), about_the_first(2, 512)
    found = [
        measurer.measure(Workload(start, None, p), [candidate])[0].status for p in ("reassoc", "algebraic")
    ]
    assert found == ["ok", "wrong_result"], "the usual inputs have no such element in so few rows"


# ---------------------------------------------------------------------------- against float64

N = 3000  # no power of two


def slab(
    place: int | None = None, value: float = 0.0, mean: float = 0.0, size: float = 1.0, step: float = 0.0
) -> np.ndarray:
    """Normal numbers, the second half of them ``step`` higher, with ``value`` at ``place``."""
    x = np.random.default_rng(1).standard_normal(N) * size + mean
    x[N // 2 :] += step
    if place is not None:
        x[place] = value
    return x.astype(np.float32)


HARD = {
    **{
        f"{value:g} at {place}": slab(place, value)
        for place in (0, 60, N // 2, N - 1)
        for value in (1e2, 1e4, 1e18)
    },
    "100000 first": slab(0, 1e5),
    "zero before 255": slab(0, 0.0, 255, 0.5),
    "255": slab(mean=255, size=0.5),
    "80000": slab(mean=80000),
    **{
        f"halves about {mean:g}, {step} apart": slab(mean=mean, size=0.5, step=step)
        for mean in (255, 1e4, 1e5)
        for step in (1, 100)
    },
    "1e15": slab(size=1e15),
    "1e20 first, whose square is infinite": slab(0, 1e20),
    "1e20": slab(size=1e20),
    "1e30, where squares of roundings are infinite": slab(size=1e30),
    "3e38, whose sum is infinite": np.full(N, 3e38, np.float32),
    "a constant": np.full(N, 1234.567, np.float32),
    "a large constant": np.full(N, 1e9, np.float32),
    "zeros": np.zeros(N, np.float32),
    "denormals": slab(size=1e-39),
    "minus infinity": slab(7, -np.inf),
    "nan": slab(7, np.nan),
}


def squares(rows: int, columns: int):
    """The sum of each row's squares about a number that is given, and not taken from the row."""
    return parse(
        f"""kernel squares
in x, u
out v
x f32 [{rows}, {columns}] heap
u f32 [{rows}] heap
d f32 [{rows}, {columns}] heap
v f32 [{rows}] heap
{rows} {columns} d[{{0}},{{1}}] = x[{{0}},{{1}}] - u[{{0}}]
{rows} v[{{0}}] = 0
| {columns} v[{{0}}] += d[{{0}},{{1}}]*d[{{0}},{{1}}]
"""
    )


BLOCKS = [("expand_moment v#1@1 o",), ("split_scope v#1@1 60", "expand_moment v#1@2 o")]


@pytest.mark.parametrize("way", BLOCKS)
@pytest.mark.parametrize("distance", [0, 3, -1e3])
def test_squares_are_right_about_any_number(way, distance):
    """However far from a row's mean, in its deviations, and however large both are against these."""
    rows = {name: row for name, row in HARD.items() if np.isfinite(row).all() and np.ptp(row) > 0}
    x = np.stack(list(rows.values()))
    exact = x.astype(np.float64)
    u = (exact.mean(axis=1) + distance * exact.std(axis=1)).astype(np.float32)
    wanted = ((exact - u[:, None]) ** 2).sum(axis=1)
    start = squares(len(x), N)
    before, after = (
        run_program(program, {"x": x, "u": u}, "algebraic")["v"] for program in (start, played(start, *way))
    )
    for name, a, b, value in zip(rows, before, after, wanted, strict=True):
        if value > 3e38:
            assert a == b == np.inf, name
        elif value > 1e-30:  # else squares of denormals; small terms that follow a large one lose 3e-5
            assert abs(b - value) <= max(4 * abs(a - value), 3e-5 * value), name


@pytest.mark.parametrize("way", BLOCKS)
def test_moments_are_those_of_the_start_wherever_an_outlier_stands(way):
    start = deviation(len(HARD), N)
    inputs = {"x": np.stack(list(HARD.values()))}
    before = run_program(start, inputs, "algebraic")["y"]
    after = run_program(played(start, *way), inputs, "algebraic")["y"]
    with np.errstate(all="ignore"):
        exact = 1 / np.sqrt(inputs["x"].astype(np.float64).var(axis=1) + 1e-5)
    for name, a, b, wanted in zip(HARD, before, after, exact, strict=True):
        assert np.isnan(a) == np.isnan(b), name
        if np.isfinite(wanted) and wanted > 1e-19:  # else the start's own squares are infinite
            assert abs(b - a) <= 2e-3 * a or abs(b - wanted) <= abs(a - wanted) + 1e-5 * wanted, name
        elif not np.isnan(a):
            assert a == b == 0, name


LINES = [
    ("batchnorm", "8x4x64x128"),
    ("batchnorm_channels", "2x4x4x300"),
    ("batchnorm_channels", "2x4x300x300"),
    ("batchnorm_pipelined", "8x4x60x80"),
]
VECTORS = 4 * cpu().vector_widths["f32"][0]  # bytes


def images(shape: tuple[int, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Where moments are hard: a large mean, the half of each image or of them all higher, an outlier."""
    noise = np.random.default_rng(0).standard_normal(shape)
    half, middle = shape[0] // 2, shape[2] // 2
    yield "normal numbers", noise
    for mean in (255, 1e4, 1e5):
        x = 0.5 * noise + mean
        yield f"about {mean:g}", x
        for step in (1, 100):
            higher = x.copy()
            higher[:, :, middle:] += step
            yield f"halves of images about {mean:g}, {step} apart", higher
            higher = x.copy()
            higher[half:] += step
            yield f"halves of the images about {mean:g}, {step} apart", higher
    first, last = (0, slice(None), 0, 0), (-1, slice(None), -1, -1)
    black = 0.5 * noise + 255
    black[:, :, 0, 0] = 0
    yield "zeros before 255", black
    for value in (1e2, 1e3, 1e4, 1e5):
        for where, place in (("first", first), ("last", last), ("middle", (half, slice(None), middle, 7))):
            x = noise.copy()
            x[place] = value
            yield f"{value:g} {where}", x


@pytest.mark.parametrize(
    ("name", "shape"),
    one_of(4, (each for each in LINES if (recorded_lines()[each[0]].vectors or 0) <= VECTORS)),
)
def test_lines_of_batch_norm_are_as_exact_as_their_start(name, shape):
    kernel = kernels.get("batchnorm")
    sizes = kernel.shape(shape)
    game = Game.new(kernel.program(sizes), "batchnorm", shape, policy="algebraic")
    assert all(entry.applies for entry in recorded_lines()[name].play(game).entries)
    codes = [generate(program, "algebraic") for program in (kernel.program(sizes), game.current.program)]
    libraries = [load(code.text) for code in codes]
    gain, offset = np.ones(4, np.float32), np.zeros(4, np.float32)
    for case, drawn in images(sizes):
        x = drawn.astype(np.float32)
        away = x - x.mean(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
        wanted = away / np.sqrt((away**2).mean(axis=(0, 2, 3), keepdims=True) + 1e-5)
        before, after = (
            np.abs(run(code, {"x": x, "g": gain, "b": offset}, library)["y"].reshape(sizes) - wanted).max()
            for code, library in zip(codes, libraries, strict=True)
        )
        assert after <= max(4 * before, 1e-6 * np.abs(wanted).max()), case


# ---------------------------------------------------------------------------- what is drawn


@pytest.mark.parametrize(
    ("kernel", "shape", "kept"),
    [
        ("layernorm", "6x8", {"x": [(0,)], "g": [()], "h": [()]}),
        ("batchnorm", "2x3x4x8", {"x": [(1,)], "g": [()], "b": [()]}),
        ("groupnorm", "2x2x3x4x8", {"x": [(0, 1)], "g": [(0,)], "b": [(0,)]}),
        ("matmul", "4x6x8", {"a": [(0,)], "b": [(1,)]}),
        ("sum", "24", {"x": [()]}),
        ("relu", "6x8", {"x": [(0,)]}),
    ],
)
def test_a_slab_is_what_a_programs_sums_bring_together(kernel, shape, kept):
    found = kernels.get(kernel)
    drawn = kept_dimensions(found.program(found.shape(shape)))
    assert {name: list(dims) for name, dims in drawn.items()} == kept


def test_each_slab_has_a_pattern_and_other_seeds_begin_with_others():
    kernel = kernels.get("batchnorm")
    program = kernel.program((2, 3, 4, 16))
    _, chosen, *_ = input_sets(program, "algebraic")
    patterns = chosen.patterns
    parameters = generate(program).parameters
    pools = [make_worst_pool(program, parameters, seed, chosen) for seed in range(2)]
    first, second = (pool.inputs["x"].transpose(1, 0, 2, 3).reshape(3, -1) for pool in pools)
    assert patterns[:3] == ("outlier first", "zero before a large mean", "outlier last")
    assert abs(first[0, 0]) >= 100 and np.abs(first[0, 1:]).max() < 10
    assert first[1, 0] == 0 and first[1, 1:].mean() == pytest.approx(255, abs=1) and abs(first[2, -1]) >= 100
    assert second[0, 0] == 0 and abs(second[1, -1]) >= 100, "one further"
    again = make_worst_pool(program, parameters, 1, chosen).inputs["x"]
    assert again.tobytes() == pools[1].inputs["x"].tobytes()


def scaled(program, order: str, shape: str, index: str):
    """The results times an input ``g``."""
    rows = program.buffer_of["y"].dims[0].size
    text = program.text.replace("in x\n", f"in {order}\n").replace(
        "\nu f32", f"\ng f32 [{shape}] heap\nu f32"
    )
    return parse(f"{text}{rows} y[{{0}}] = y[{{0}}]*g[{index}]\n")


@pytest.mark.parametrize(
    ("order", "shape", "index"), [("g, x", "1", "0"), ("g, x", "", ""), ("x, g", "", "")]
)
def test_one_row_has_a_pattern_whatever_inputs_stand_before_it(measurer, order, shape, index):
    start, wrong = (
        scaled(program, order, shape, index) for program in (deviation(1, 512), about_the_first(1, 512))
    )
    trials = measurer.measure(Workload(start, None, "algebraic"), [start, wrong], Effort.QUICK)
    assert [trial.status for trial in trials] == ["ok", "wrong_result"]


def test_patterns_are_those_of_moves_that_the_start_has_operations_for():
    softmax, add = (kernels.get(n).program((4, 8)) for n in ("softmax", "add"))
    assert "rising" in worst_inputs(softmax, "algebraic") and worst_inputs(softmax, "reassoc") == ()
    assert worst_inputs(add, "algebraic") == ()
    for name, pattern in PATTERNS.items():
        for count in (1, 2, 100):
            for dtype in ("f16", "bf16", "f32", "f64"):
                drawn = pattern.fill(count, dtype, np.random.default_rng(0))
                assert drawn.shape == (count,) and not np.isnan(drawn).any(), name


def test_large_means_may_be_off_by_what_a_sum_in_any_order_is():
    p = Parameter("y", "f32", (2,), "out")
    own, scale = np.array([1e-9, np.inf]), np.array([1.0, 1.0])
    allowed = worst_tolerance(p, own, scale, np.array([1e-3, 0.0]), False)
    assert allowed[0] == pytest.approx(16e-3) and allowed[1] == np.inf
    kernel = kernels.get("layernorm")
    program = kernel.program((16, 256))
    chosen = InputSet(("outlier first", "large mean"), (("x", (0,)),))
    pool = make_worst_pool(program, generate(program).parameters, 0, chosen)
    lone, many = pool.sensitivity["y"][0::2], pool.sensitivity["y"][1::2]
    assert lone.max() < 1e-4 < many.min(), "of an outlier little, of a large mean much"


def test_every_algebraic_move_says_what_it_promises_and_where_it_is_worst(golden):
    algebraic = {
        name
        for name, move in REGISTRY.items()
        if any("policy is algebraic" in told for told in conditions(name)) or move.worst_inputs
    }
    assert {"use_reciprocal", "divide_again", "expand_moment", "sum_squares_again"} <= algebraic
    for name in algebraic:
        move = REGISTRY[name]
        assert move.rewrites and move.worst_inputs and set(move.worst_inputs) <= set(PATTERNS), name
        assert promise(name), f"{name}: a paragraph of its docstring begins with Promises"
    assert set(PATTERNS) == {each for name in algebraic for each in REGISTRY[name].worst_inputs}
    golden(ROOT / "docs" / "algebraic.md", algebraic_page())


def test_indices_that_are_distinct_stay_so():
    """Whatever leads: patterns would fill them alike."""
    program = parse(
        "kernel p\nin x, i\nout y\ndomain i 0 8 distinct\nx f32 [8] heap\ni i32 [8] heap\ny f32 [9] heap\n"
        "9 y[{0}] = 0\n8 y[i[{0}]] = x[{0}]\n"
    )
    chosen = InputSet(("large mean",), (("i", ()),))
    pool = make_worst_pool(program, generate(program).parameters, 0, chosen)
    assert len({*pool.inputs["i"].tolist()}) == 8
