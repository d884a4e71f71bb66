"""The promise that a legal move never changes what a program computes, tried on random programs and walks.

``python -m tests.prove SECONDS`` goes on for as long as asked; what it found stands below, each as a program
and the move that went wrong.
"""

import random
from collections.abc import Collection, Sequence
from functools import cache
from itertools import islice

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, given, settings

from dojo_core import apply, kernels, parse, why
from dojo_core.moves import inverse, parse_move
from dojo_core.moves.examples import example
from dojo_core.moves.legality import all_candidates, context, is_legal
from dojo_core.moves.legality import outcome as made
from dojo_core.program.dtypes import OF_REALS
from dojo_core.program.interpret import interpret
from dojo_core.program.physical import interpret_physical
from dojo_core.program.tree import Program
from dojo_core.program.validity import definition_fault, storage_fault
from dojo_core.targets.cpu.codegen import generate
from tests import compiled, oracle, sanitized
from tests.ends import End, differences, sanitizers_complaint
from tests.programs import SMALL, programs, storage_steps
from tests.temporaries import TAKING
from tests.thorough import one_of
from tests.walks import (
    KERNELS,
    ONE_PASS,
    Rules,
    Tally,
    judge,
    numbers_differ,
    off_the_grid,
    start,
    start_at_a_chain,
    start_at_an_example,
    start_at_temporaries,
    walk_from,
)


def sample(seeds: Sequence[int], few: int, but: Collection[int] = ()) -> list[ParameterSet]:
    """The first ``few`` seeds but some that take long, for make test; all others for make soak."""
    soak = pytest.mark.soak
    return [pytest.param(s, marks=() if s < few and s not in but else soak) for s in seeds]


FIXED = settings(
    max_examples=15, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


# ---------------------------------------------------------------------------- the oracle itself


XY = "x f32 [4] heap\ny f32 [4] heap"
XYT = XY + "\nt f32 [4:N] heap"


def outcome(body: str, buffers: str, policy: str = "reassoc") -> oracle.Outcome:
    names = [line.split()[0] for line in buffers.splitlines()]
    inputs = ", ".join(n for n in names if n[0] in "xw")
    return oracle.run(parse(f"kernel k\nin {inputs}\nout y\n{buffers}\n{body}\n"), policy)


@pytest.mark.parametrize(
    ("body", "buffers", "fault"),
    [
        ("4 t[{0}] = x[{0}]\n4 y[{0}] = t[{0}]", XYT, "clobber"),
        ("4 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", XYT, None),
        ("4:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", XYT, "race"),
        ("4:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", XYT.replace("N] heap", "N] stack"), None),
        ("4 t[{0}] = x[{0}]\n| y[{0}] = t[0]", XY + "\nt f32 [4] stack", "lifetime"),
        ("4 y[{0}] = x[{0}]\n| t[{0}] = x[{0}]", XY + " -> t, y", "clobber"),
        ("y[] = 0\n4:p y[] += x[{0}]", "x f32 [4] heap\ny f32 [] heap", "race"),
        ("4 y[{0}] = x[{0}]\n3:v y[{0}+1] = y[{0}]", XY, "clobber"),
        ("4 y[{0}] = x[{0}]\n3:v y[{0}] = y[{0}+1]", XY, None),
        ("4:v y[0] = x[{0}]", "x f32 [4] heap\ny f32 [1] heap", "lanes"),
    ],
)  # fmt: skip
def test_the_oracle_sees(body, buffers, fault):
    found = outcome(body, buffers).fault
    assert (found and found.split()[0]) == fault


def test_the_oracle_regroups_sums_where_the_policy_does():
    buffers = "x f32 [6] heap\ny f32 [] heap\np f32 [2] heap"
    texts = (
        "y[] = 0\n6 y[] += x[{0}]",
        "y[] = 0\n2 p[{0}] = 0\n3 2 p[{1}] += x[{0}*2+{1}]\n2 y[] += p[{0}]",
    )
    for policy, alike in (("reassoc", True), ("strict", False)):
        terms = oracle.Terms()
        first, second = (
            oracle.run(parse(f"kernel k\nin x\nout y\n{buffers}\n{t}\n"), policy, terms) for t in texts
        )
        assert (first.outputs == second.outputs) is alike


def test_what_is_undefined_shows_in_the_output():
    holes = outcome("3 y[{0}] = x[{0}]", "x f32 [4] heap\ny f32 [4] heap")
    assert not holes.defined
    assert outcome("4 y[{0}] = x[{0}]", "x f32 [4] heap\ny f32 [4] heap").defined


# ---------------------------------------------------------------------------- what the walks have found


def program_of(body: str, buffers: str) -> Program:
    names = [line.split()[0] for line in buffers.splitlines()]
    inputs = ", ".join(n for n in names if n[0] in "xw")
    return parse(f"kernel k\nin {inputs}\nout y\n{buffers}\n{body}\n")


FOUND = {
    "an index of both merged dimensions is divided again": (
        "merge_dims x 0",
        "2 y[{0}] = x[{0},{0}]",
        "x f32 [2, 2] heap\ny f32 [2] heap",
    ),
    "an index that only the guard keeps in bounds is divided again": (
        "merge_dims t 0",
        "2 3 t[{0},{1}] = x[{0}]\n2 4 y[{0},{1}] = 0\n2 4 y[{0},{1}] = t[{0},{1}] if {1} < 3",
        "x f32 [2] heap\ny f32 [2, 4] heap\nt f32 [2, 3] heap",
    ),
    "partial sums beside an accumulation that is alike": (
        "split_reduction y#2@1 p",
        "3 y[{0}] = 2\n3 3 y[{0}] += x[{0}]*x[{0}]\n| 2 y[{0}] += x[{0}]*x[{0}]",
        "x f32 [3] heap\ny f32 [3] heap",
    ),
    "a copy of a copy, moved along another iterator": (
        "stage_read w root p",
        "8 6 t[{0},{1}] = w[{0}]\n8 6 y[{0},{1}] = t[{0},{1}]",
        "w f64 [8] heap\ny f64 [8, 6] heap\nt f64 [8, 6] heap",
    ),
    "a dimension that only a guard keeps in bounds": (
        "pad_dim t 0 4",
        "6 t[{0}] = 2 if {0} < 3\n3 y[{0}] = t[{0}] + x[{0}]",
        "x f32 [3] heap\ny f32 [3] heap\nt f32 [3] heap",
    ),
}


@pytest.mark.parametrize("story", FOUND)
def test_the_inverse_restores(story):
    move, body, buffers = FOUND[story]
    program = program_of(body, buffers)
    back = inverse(program, move, SMALL)
    assert back is not None
    assert apply(apply(program, move, SMALL), back, SMALL) == program
    assert judge(program, parse_move(move), Rules("reassoc")) is None


def test_an_inverse_that_would_not_restore_the_program_is_not_told():
    twice = program_of(
        "4 4 y[{0},{1}] = x[{1}] !prefetch(x[{0}]) !prefetch(x[{1}])", "x f32 [4] heap\ny f32 [4, 4] heap"
    )
    assert inverse(twice, "clear_prefetch y x[{0}]", SMALL) is None
    assert str(inverse(twice, "clear_prefetch y x[{1}]", SMALL)) == "prefetch y x[{1}]"
    single = program_of("1 3 y[{0},{1}] = x[{0},{1}]", "x f32 [1, 3] heap\ny f32 [1, 3] heap")
    assert inverse(single, "stage_read x root p", SMALL) is None  # the copy has no dimension of size 1


def test_an_operation_that_overwrites_its_operand_is_not_computed_again():
    program = program_of(
        "4 t[{0}] = x[{0}]\n4 t[{0}] = t[{0}]*3\n4 y[{0}] = t[{0}]",
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [4] heap",
    )
    assert why(program, "recompute y t r", SMALL).refusal.code == "changed-between"
    assert why(program, "recompute t#1 t r", SMALL).legal
    product = program_of(
        "4 t[{0}] = x[{0}]\n4 y[{0}] = 0\n4 t[{0}] = t[{0}]*3\n4 y[{0}] += t[{0}]",
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [4] heap",
    )
    assert why(product, "contract y#1 t", SMALL).refusal.code == "changed-between"


def test_the_last_iteration_under_a_guard_is_not_the_last_of_the_scope():
    program = program_of(
        "4 3 t[{0}] = x[{1}] if {1} < 2\n4 y[{0}] = t[{0}]", "x f32 [3] heap\ny f32 [4] heap\nt f32 [4] heap"
    )
    assert not why(program, "forward y t", SMALL).legal
    assert not why(program, "recompute y t r", SMALL).legal


def test_an_iterator_expression_without_iterators_is_a_number():
    program = program_of("3 y[{0}] = {0}-{0}\n1 y[{0}+3] = {0}+3", "x f32 [4] heap\ny f32 [4] heap")
    assert parse(program.text) == program
    unwrapped = apply(program, "unwrap y#1@0", SMALL)
    assert unwrapped.text.endswith("y[3] = 3\n")
    assert parse(unwrapped.text) == unwrapped


def test_prefetches_of_an_array_leave_with_it():
    program = program_of(
        "4 t[{0}] = x[{0}]\n4 y[{0}] = x[{0}] !prefetch(t[{0}]) !prefetch(x[{0}+1])",
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [4] heap",
    )
    dropped = apply(program, "drop_dead t", SMALL)
    assert dropped.text.endswith("4 y[{0}] = x[{0}] !prefetch(x[{0}+1])\n")
    assert parse(dropped.text) == dropped


def test_a_guard_on_iterators_that_the_cell_does_not_use_need_only_hold_once():
    buffers = "x f32 [3, 5] heap\ny f32 [3, 5] heap\nt f32 [5] heap"
    body = "3 3 2 5 t[{3}] = x[{0},{3}] if {1}*2+{2} < 5\n| 5 y[{0},{1}] = t[{1}]"
    assert why(program_of(body, buffers), "set_location t stack", SMALL).legal
    never = program_of(body.replace("< 5", ">= 6"), buffers)
    assert not why(never, "set_location t stack", SMALL).legal


def test_a_guard_on_the_index_itself_bounds_what_is_covered():
    """As it stands after padding a scope and splitting it."""
    buffers = "x f32 [6] heap\ny f32 [6] heap\nt f32 [6] heap"
    body = "2 4 t[{0}*4+{1}] = x[{0}*4+{1}] if {0}*4+{1} < 6\n6 y[{0}] = t[{0}]"
    assert why(program_of(body, buffers), "set_location t stack", SMALL).legal
    assert definition_fault(program_of(body, buffers)) is None
    short = program_of(body.replace("< 6", "< 5"), buffers)
    assert definition_fault(short).code == "undefined"


def test_a_lane_may_read_what_a_later_lane_writes():
    buffers = "x f32 [5] heap\ny f32 [5] heap"
    assert why(program_of("5 y[{0}] = x[{0}]\n4 y[{0}] = y[{0}+1]", buffers), "vectorize y#1@0", SMALL).legal
    earlier = program_of("5 y[{0}] = x[{0}]\n4 y[{0}+1] = y[{0}]", buffers)
    assert why(earlier, "vectorize y#1@0", SMALL).refusal.code == "vector-flow"


def test_a_reciprocal_in_a_shared_buffer_is_not_taken_away():
    """Its buffer's line may carry its name and hold another array."""
    program = program_of(
        "4 q[{0}] = w[{0}]\n4 t[{0}] = q[{0}]\n4 r[{0}] = 1 / w[{0}]\n| 2 y[{0},{1}] = t[{0}]*r[{0}]",
        "w f32 [4] heap\ny f32 [4, 2] heap\nt f32 [4] heap\nr f32 [4] heap -> q, r",
    )
    assert why(program, "divide_again r", SMALL, "algebraic").refusal.code == "no-reciprocal"


def test_an_enabler_that_would_join_an_operation_is_left_out():
    program = program_of(
        "t[] = x[0]\n4 u[{0}] = t[]\nt[] = x[1]\n4 y[{0}] = u[{0}] + t[]",
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [] heap\nu f32 [4] heap",
    )
    assert why(program, "reuse_dims u 0", SMALL).refusal.code == "clobber"


# ---------------------------------------------------------------------------- traps of the design


def test_cutting_a_scope_of_private_storage_lifts_its_owner():
    """t would live at the root: then its two threads share it."""
    program = program_of(
        "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8:N] stack"
    )
    assert why(program, "parallelize t@0", SMALL).legal
    halves = apply(program, "cut_scope t@0 4", SMALL)
    assert why(halves, "parallelize t@0", SMALL).refusal.code == "race"
    threads = apply(program, "parallelize t@0", SMALL)
    assert why(threads, "cut_scope t@0 4", SMALL).refusal.code in ("marked", "race")


def test_staging_a_write_by_its_hull_would_overwrite_other_threads():
    program = program_of("4:p 4 y[{0}+{1}*4] = x[{0}]", "x f32 [4] heap\ny f32 [16] heap")
    assert why(program, "stage_write y y@0 t", SMALL).refusal.code == "not-dense"


def test_a_copy_whose_source_is_overwritten_stays():
    program = program_of(
        "8 a[{0}] = x[{0}]\n8 t[{0}] = a[{0}]\n8 a[{0}] = a[{0}]*2\n8 y[{0}] = t[{0}] + a[{0}]",
        "x f32 [8] heap\ny f32 [8] heap\na f32 [8] heap\nt f32 [8] heap",
    )
    assert not why(program, "elide_copy t", SMALL).legal
    assert why(program, "forward y t", SMALL).refusal.code == "changed-between"


def test_sharing_an_inputs_buffer_would_overwrite_the_callers_data():
    program = program_of(
        "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap"
    )
    for move in ("share_buffer t x", "share_buffer x t"):
        assert why(program, move, SMALL).refusal.code == "interface"


# ---------------------------------------------------------------------------- random programs


@FIXED
@given(programs())
def test_storage_that_is_allowed_keeps_the_meaning(program):
    """Every buffer contracted, shared or moved, every scope parallel: the judge never says yes where the
    oracle says no."""
    for step in storage_steps(program, random.Random(1)):
        if storage_fault(step) is None:
            assert oracle.run(step).fault is None, step.text


@FIXED
@given(programs())
def test_the_interpreters_agree_on_valid_programs(program):
    inputs = compiled.random_inputs(program)
    logical, physical = interpret(program, inputs), interpret_physical(program, inputs)
    for array in program.outputs:
        np.testing.assert_allclose(logical[array], physical[array], rtol=1e-9, atol=1e-9)


@FIXED
@given(programs())
def test_what_the_judge_calls_defined_is_defined(program):
    if definition_fault(program) is None:
        assert oracle.run(program).defined


# ---------------------------------------------------------------------------- random walks


def walked(seed: int, length: int, others: int, compared: int = 8) -> tuple[Program, str, Program]:
    rng = random.Random(f"walk {seed}")
    first, rules = start(rng)
    last, finding = walk_from(first, rules, rng, Tally(), length, others, compared=compared)
    assert finding is None, str(finding)
    return first, rules.policy, last


# Some of the walks lead to programs that take the oracle as long as all the others together.
@pytest.mark.parametrize("seed", one_of(3, sample(range(18), few=10, but=(1, 2, 3, 6, 7))))
def test_a_random_walk_keeps_the_meaning(seed):
    """Each move's outputs by the oracle, text, inverse; a sample of the other legal moves; the lists."""
    walked(seed, 10 + seed % 4 * 10, 3)


# The longer a walk, the longer the programs that the oracle runs: make soak goes on where make test ends.
@pytest.mark.parametrize(("length", "others"), [(5, 1), pytest.param(15, 3, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", one_of(6, KERNELS))
def test_a_walk_from_a_kernel_keeps_the_meaning(name, length, others):
    program = kernels.get(name).program(KERNELS[name])
    rng = random.Random(name)
    _, finding = walk_from(program, Rules("algebraic"), rng, Tally(), length, others, compared=4)
    assert finding is None, str(finding)


@pytest.mark.parametrize("seed", one_of(2, sample(range(8), few=4, but=(0, 3))))
def test_a_walk_from_an_example_of_a_move_keeps_the_meaning(seed):
    rng = random.Random(f"example {seed}")
    program, rules = start_at_an_example(rng)
    _, finding = walk_from(program, rules, rng, Tally(), 6, 2, compared=3)
    assert finding is None, str(finding)


def test_a_one_pass_rewrite_of_chains_that_write_over_their_arrays_keeps_the_meaning():
    tally = Tally()
    for seed in range(60):
        program, rules = start_at_a_chain(random.Random(f"chain {seed}"))
        here = context(program, rules.target, rules.policy)
        for move in all_candidates(here, ONE_PASS):
            if is_legal(here, move):
                finding = judge(program, move, rules, tally)
                assert finding is None, str(finding)
    assert all(tally.judged[name] > 4 for name in ("expand_moment", "online_rescale")), tally.judged


@pytest.mark.parametrize("seeds", one_of(2, [[*range(40), 83], range(40, 120)]), ids=["40", "80"])
def test_what_takes_a_temporary_away_keeps_the_meaning(seeds):
    """Where it is an output too, read elsewhere, or read by the operation that writes it."""
    tally = Tally()
    for seed in seeds:
        rng = random.Random(f"temporaries {seed}")
        program, rules = start_at_temporaries(rng)
        here = context(program, rules.target, rules.policy)
        wild = (m for m in off_the_grid(program, rules.target, rng) if m.name in TAKING)
        for move in [*all_candidates(here, TAKING), *islice(wild, 3)]:
            assert is_legal(here, move) == isinstance(made(here, move), Program)
            finding = judge(program, move, rules, tally)
            assert finding is None, str(finding)
    assert all(tally.judged[name] for name in TAKING if not name.startswith("sum_")), tally.judged


@pytest.mark.parametrize("name", ONE_PASS)
def test_a_one_pass_rewrite_is_judged_by_its_numbers(name):
    """The oracle's terms differ after these: what stands for them must tell a wrong result, and one that is
    no longer finite."""
    shown = example(name)
    result = apply(shown.program, shown.move, shown.target, shown.policy)
    assert numbers_differ(shown.program, result) == ""
    array = result.outputs[0]
    sizes = [d.size for d in result.buffer_of[array].dims]
    index = ",".join(f"{{{n}}}" for n in range(len(sizes)))
    for wrong, told in (("* 1.001", "is off by"), ("/ 0", "no longer finite")):
        line = f"{array}[{index}] = {array}[{index}] {wrong}"
        broken = parse(result.text + " ".join([*map(str, sizes), line]) + "\n")
        assert told in numbers_differ(shown.program, broken)


@cache
def end_of(seed: int) -> End:
    return End(*walked(seed, 14, 0, compared=14))


SHORT = [100, 102, 103, 104]  # another takes as long as these together
OTHERS = [seed for seed in range(100, 130) if seed not in SHORT]


@pytest.mark.thorough  # what was made of starts by a few moves: test_codegen.py; the walks themselves: above
@pytest.mark.parametrize("seeds", [[SHORT[0]], SHORT[1:], pytest.param(OTHERS, marks=pytest.mark.soak)])
def test_generated_code_agrees_after_walks(seeds):
    """One C file of first and last positions: run on normal inputs against the interpreter, on unkind ones
    against the first."""
    assert differences([end_of(seed) for seed in seeds], seed=1) == []


@pytest.mark.skipif(bool(sanitized.missing()), reason=f"needs {sanitized.missing()}")
@pytest.mark.thorough  # a function of each kind runs under them: below
@pytest.mark.parametrize("seeds", [[SHORT[0]], SHORT[1:]])
def test_generated_code_runs_under_sanitizers(seeds):
    assert sanitizers_complaint([end_of(seed) for seed in seeds], seed=1) == ""


@pytest.mark.skipif(bool(sanitized.missing()), reason=f"needs {sanitized.missing()}")
def test_functions_of_what_is_no_ordinary_number_run_under_sanitizers():
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, -1e-45, 3e38, -3e38], np.float32)
    calls = []
    for name in ("floor", "round", "ceil", "trunc", "sign", "isnan", "isinf", *OF_REALS):
        call = f"{name}(x[{{0}}],x[{{0}}])" if name == "pow" else f"{name}(x[{{0}}])"
        text = f"in x\nout y\nx f32 [8] heap\ny f32 [8] heap\n8 y[{{0}}] = {call}\n"
        calls.append((generate(parse(f"kernel of_{name}\n{text}")), {"x": x}))
    whole = np.array([-(2**31), -(2**31), -7, -1, 0, 31, 32, 2**31 - 1])
    for name in ("and", "or", "xor", "shl", "shr", "fmod"):
        text = "in x, w\nout y\nx i32 [8] heap\nw i32 [8] heap\ny i32 [8, 8] heap\n"
        text += f"8 8 y[{{0}},{{1}}] = {name}(x[{{0}}],w[{{1}}])\n"
        calls.append((generate(parse(f"kernel of_{name}\n{text}")), {"x": whole, "w": whole}))
    assert sanitized.complaint(calls) == ""
