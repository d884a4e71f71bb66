"""Which sets of inputs a program is verified on, and what stands in them."""

import numpy as np
import pytest

from dojo_core import kernels, parse
from dojo_core.measure.input_sets import InputSet
from dojo_core.measure.measurement import Effort, Workload
from dojo_core.measure.patterns import PATTERNS
from dojo_core.measure.pool import make_pool, to_double
from dojo_core.measure.slabs import kept_dimensions
from dojo_core.measure.worst import input_sets, worst_inputs
from dojo_core.measure.worst_pool import make_worst_pool
from dojo_core.targets.cpu.codegen import generate
from dojo_core.targets.cpu.measurer import Measurer

pytestmark = pytest.mark.usefixtures("kept_workers")


def drawn(program, seed=0):
    """The inputs of each set of worst ones."""
    parameters = generate(program).parameters
    dtypes = {p.name: p.dtype for p in parameters}
    pools = [make_worst_pool(program, parameters, seed, s) for s in input_sets(program, "algebraic")[1:]]
    return [{k: to_double(v, dtypes[k]) for k, v in pool.inputs.items()} for pool in pools]


def moment(array: str, rows: int, columns: int, dtype: str = "f32", wrong: bool = False) -> tuple[str, str]:
    """Buffers and operations of a sum of squares about each row's mean, into v and the array's name; wrong:
    the squares are about the first element, less what that makes of their sum."""
    v, u, d = f"v{array}", f"u{array}", f"d{array}"
    buffers = f"{d} {dtype} [{rows}, {columns}] heap\n{u} {dtype} [{rows}] heap\n{v} {dtype} [{rows}] heap\n"
    shift = f"{array}[{{0}},0]" if wrong else f"{u}[{{0}}]"
    body = f"""{rows} {u}[{{0}}] = 0
| {columns} {u}[{{0}}] += {array}[{{0}},{{1}}]
| {u}[{{0}}] = {u}[{{0}}]*{1 / columns!r}
{rows} {columns} {d}[{{0}},{{1}}] = {array}[{{0}},{{1}}] - {shift}
{rows} {v}[{{0}}] = 0
| {columns} {v}[{{0}}] += {d}[{{0}},{{1}}]*{d}[{{0}},{{1}}]
"""
    if wrong:
        body += f"""{rows} {u}[{{0}}] = {u}[{{0}}] - {array}[{{0}},0]
{rows} {u}[{{0}}] = {u}[{{0}}]*{u}[{{0}}]
{rows} {u}[{{0}}] = {u}[{{0}}]*{-columns}
{rows} {v}[{{0}}] = {v}[{{0}}] + {u}[{{0}}]
"""
    return buffers, body


def two(large: tuple[int, int], small: int, wrong: str = ""):
    """Moments of the rows of x, and of the one row of z."""
    rows, columns = large
    (bx, x), (bz, z) = moment("x", *large, wrong=wrong == "x"), moment("z", 1, small, wrong=wrong == "z")
    return parse(
        f"kernel two\nin x, z\nout a, b\nx f32 [{rows}, {columns}] heap\nz f32 [1, {small}] heap\n"
        f"a f32 [{rows}] heap\nb f32 [1] heap\n{bx}{bz}{x}{z}"
        f"{rows} a[{{0}}] = rsqrt(vx[{{0}}])\n1 b[{{0}}] = rsqrt(vz[{{0}}])\n"
    )


@pytest.fixture(scope="module")
def measurer():
    with Measurer() as measurer:
        yield measurer


@pytest.mark.parametrize("large", [(32, 64), (64, 4096)])
def test_a_second_input_of_one_slab_has_patterns_too(measurer, large):
    """Beside a large input it leads sets of its own; a wrong sum about its first element is seen."""
    start = two(large, 512)
    programs = [start, two(large, 512, "z"), two(large, 512, "x")]
    trials = measurer.measure(Workload(start, None, "algebraic"), programs, Effort.QUICK)
    assert [trial.status for trial in trials] == ["ok", "wrong_result", "wrong_result"]


def test_a_program_that_no_algebraic_move_touches_has_the_usual_inputs_alone():
    softmax, add = (kernels.get(n).program((4, 8)) for n in ("softmax", "add"))
    assert input_sets(softmax, "reassoc") == input_sets(add, "algebraic") == (InputSet(),)
    whole = parse("kernel k\nin x\nout y\nx i32 [8] heap\ny i32 [8] heap\n8 y[{0}] = x[{0}]*x[{0}]\n")
    assert input_sets(whole, "algebraic") == (InputSet(),)


@pytest.mark.parametrize("shape", ["1x64", "3x64", "40x64"])
def test_a_small_program_meets_each_pattern_and_a_large_one_a_set(shape):
    kernel = kernels.get("layernorm")
    sets = input_sets(kernel.program(kernel.shape(shape)), "algebraic")[1:]
    patterns = worst_inputs(kernel.program(kernel.shape(shape)), "algebraic")
    rows = int(shape.split("x")[0])
    met = [p for chosen in sets for p in chosen.patterns[:rows]]
    assert set(met) == set(patterns) == set(sets[0].patterns) and len(sets) == -(-len(patterns) // rows)
    assert {lead for chosen in sets for lead, _ in chosen.leads} == {"x"}, "gains are in no square"
    large = kernel.program(kernel.shape("4096x1024"))
    assert [chosen.leads for chosen in input_sets(large, "algebraic")] == [(), (("x", (0,)),)]


def test_sums_of_rows_and_of_columns_each_have_slabs_of_theirs():
    rows, _ = moment("x", 16, 64)
    columns = "16 64 w[{1}] += e[{0},{1}]*e[{0},{1}]\n64 c[{0}] = w[{0}]\n"
    program = parse(
        "kernel k\nin x\nout r, c\nx f32 [16, 64] heap\nr f32 [16] heap\nc f32 [64] heap\n"
        f"{rows}e f32 [16, 64] heap\nm f32 [64] heap\nw f32 [64] heap\n{moment('x', 16, 64)[1]}"
        "16 r[{0}] = vx[{0}]\n64 m[{0}] = 0\n16 64 m[{1}] += x[{0},{1}]\n64 m[{0}] = m[{0}]*0.0625\n"
        f"16 64 e[{{0}},{{1}}] = x[{{0}},{{1}}] - m[{{1}}]\n64 w[{{0}}] = 0\n{columns}"
    )
    assert kept_dimensions(program) == {"x": ((0,), (1,))}
    by_row, by_column = (inputs["x"] for inputs in drawn(program)[:2])
    assert abs(by_row[0, 0]) >= 100 and np.abs(by_row[0, 1:]).max() < 10
    assert abs(by_column[0, 0]) >= 100 and np.abs(by_column[1:, 0]).max() < 10


def test_tiles_are_of_one_sum_and_what_pads_an_input_is_of_none():
    program = parse(
        """kernel k
in x
out y
x f32 [4, 70] heap
y f32 [4] heap
t f32 [4, 4] heap
4 4 t[{0},{1}] = 0
4 4 16 t[{0},{1}] += x[{0},{1}*16+{2}+3]*x[{0},{1}*16+{2}+3]
4 y[{0}] = 0
4 4 y[{0}] += t[{0},{1}]
"""
    )
    assert kept_dimensions(program) == {"x": ((0,),)}
    x = drawn(program)[0]["x"]
    assert abs(x[0, 3]) >= 100 and np.abs(x[0, 4:]).max() < 10, "the first that is read"
    assert abs(x[2, 66]) >= 100 and np.abs(x[2, :66]).max() < 10, "the last that is read"


def test_integers_and_inputs_with_a_domain_have_the_nearest_values():
    """An image of bytes, whose squares are summed as numbers; a divisor within bounds, a number alone."""
    buffers, body = moment("f", 2, 64)
    program = parse(
        "kernel k\nin x, w, c\nout y\ndomain w 0.5 40\nx u8 [2, 64] heap\nw f32 [2] heap\nc f32 [] heap\n"
        f"y f32 [2] heap\nf f32 [2, 64] heap\n{buffers}2 64 f[{{0}},{{1}}] = f32(x[{{0}},{{1}}])\n{body}"
        "2 y[{0}] = vf[{0}] / w[{0}]\n| y[{0}] = y[{0}] / c[]\n"
    )
    sets = drawn(program)
    rows = np.concatenate([inputs["x"] for inputs in sets])
    assert ((rows[:, 0] == 0) & (rows[:, 1:].min(axis=1) > 250)).any(), "a zero before a large mean"
    widths = np.concatenate([inputs["w"] for inputs in sets])
    assert widths.min() == 0.5 and widths.max() == 40
    assert {0.0} < {float(np.abs(inputs["c"])) for inputs in sets} and any(
        0 < abs(float(inputs["c"])) < 1e-20 for inputs in sets
    )


def test_patterns_of_f16_overflow_in_no_order_of_a_sum_but_their_squares_do():
    rng = np.random.default_rng(0)
    for count in (64, 1024, 4096):
        x = PATTERNS["overflow of squares"].fill(count, "f16", rng)
        ordered = np.sort(x)
        assert max(abs(ordered[ordered > 0].sum() * 0 + np.abs(x.cumsum()).max()), 1) < 65504
        assert (x**2).sum() > 65504


def test_an_output_whose_buffer_has_another_name_is_judged(measurer):
    """As in the text of a position whose output shares memory with a temporary."""
    start = parse(
        "kernel k\nin x\nout y\nb f32 [64, 8] heap -> t, y\na f32 [64, 8] heap -> x\n"
        "64 8 t[{0},{1}] = x[{0},{1}] + 1\n64 8 y[{0},{1}] = t[{0},{1}]*t[{0},{1}]\n"
    )
    wrong = parse(start.text.replace("+ 1", "+ 1.5"))
    pool = make_pool(start, generate(start).parameters, 0)
    assert set(pool.references) == {"b"} and set(pool.inputs) == {"a"}
    for policy in ("reassoc", "algebraic"):
        trials = measurer.measure(Workload(start, None, policy), [start, wrong], Effort.QUICK)
        assert [trial.status for trial in trials] == ["ok", "wrong_result"]
