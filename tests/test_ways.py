"""The moves that a refusal tells to play first: tried out, so that they make the move legal."""

import pytest

from dojo_core import apply, blocked_moves, expand, kernels, parse, why
from dojo_core.moves.examples import WIDE
from dojo_core.moves.legality import context
from dojo_core.moves.ways import with_enablers
from tests.targets import GPU, SNITCH
from tests.test_moves import kernel
from tests.thorough import covering


@pytest.mark.parametrize(
    ("name", "shape", "move", "told"),
    [
        ("softmax", (64, 512), "vectorize y@1", "Try first: split_scope y@1 16, then vectorize y@2; or "),
        ("softmax", (64, 512), "parallelize s#1@1", "split_reduction s#1@1 ps, then parallelize ps#1@1."),
        ("softmax", (64, 512), "reuse_dims d 0", "Try first: join_scopes d@0."),
        ("softmax", (64, 512), "reuse_dims d 1", "Try first: join_scopes d@0, then join_scopes d@1."),
        ("matmul", (64, 64, 64), "vectorize c#1@1", "split_scope c#1@2 16, then vectorize c#1@3."),
        ("relu", (64, 64), "vectorize y@0", "Try instead: split_scope y@1 16, then vectorize y@2."),
        ("relu", (64, 60), "pad_scope y@1 64 free", "Try instead: pad_scope y@1 64 guard."),
        ("relu", (63, 63), "vectorize y@1", "cut_scope y@1 48, then split_scope y@1 16, then vectorize y@2."),
        ("relu", (64, 64), "merge_scopes y@0", "Try first: merge_dims y 0, then merge_dims x 0."),
        ("softmax", (64, 512), "join_scopes d@1", "Try first: join_scopes d@0."),
        ("softmax", (64, 512), "split_dim d 2 16", "Try instead: split_scope d@1 16, "),
    ],
)  # fmt: skip
def test_the_way_is_told_with_the_names_that_things_have_then(name, shape, move, told):
    assert told in str(why(kernels.get(name).program(shape), move, WIDE))


def test_threads_get_a_cell_each_once_all_that_uses_it_is_theirs():
    program = apply(kernels.get("reducemean").program((512, 64)), "parallelize s#1@0")
    for move, way in {
        "reuse_dims s 0": "Try instead: parallelize y@0, then join_scopes s@0, then reuse_dims s 0 stack.",
        "reuse_dims s 0 stack": "Try first: parallelize y@0, then join_scopes s@0.",
    }.items():
        assert way in str(why(program, move, WIDE))
    before = parse(kernel(
        "64 s[{0}] = 0\n64:p 16 s[{0}] += x[{0},{1}]\n64 y[{0}] = s[{0}]",
        "x f32 [64, 16] heap\ny f32 [64] heap\ns f32 [64] heap",
    ))  # fmt: skip
    (way,) = why(before, "reuse_dims s 0").refusal.ways
    line = (
        "parallelize s@0",
        "join_scopes s@0",
        "parallelize y@0",
        "join_scopes s@0",
        "reuse_dims s 0 stack",
    )
    assert way.moves == line and not way.then


def test_uses_of_a_cell_are_brought_together_loop_by_loop():
    rows = kernel(
        "8 4 s[{0},{1}] = 0\n8 4 16 s[{0},{1}] += x[{0},{1},{2}]\n8 4 y[{0},{1}] = s[{0},{1}]",
        "x f32 [8, 4, 16] heap\ny f32 [8, 4] heap\ns f32 [8, 4] heap",
    )
    (way,) = why(parse(rows), "reuse_dims s 1").refusal.ways
    assert way.moves == ("join_scopes s@0", "join_scopes s@1", "join_scopes s@0", "join_scopes s@1")


@pytest.mark.parametrize(
    ("outer", "told"),
    [(64, "The threads have the scope around it"), (4, "Try first: clear_mark y@0.")],
)
def test_threads_stay_with_the_outer_scope_where_it_has_enough_for_them(outer, told):
    rows = kernel(
        f"{outer}:p 32 y[{{0}},{{1}}] = x[{{0}},{{1}}]", f"x f32 [{outer}, 32] heap\ny f32 [{outer}, 32] heap"
    )
    assert told in str(why(parse(rows), "parallelize y@1"))


def test_one_way_makes_all_private_that_threads_would_share():
    rows = kernel(
        "8 m[{0}] = x[{0},0]\n| s[{0}] = x[{0},1]\n| t[{0}] = m[{0}]+s[{0}]\n| y[{0}] = t[{0}]",
        "x f32 [8, 2] heap\ny f32 [8] heap\nm f32 [8:N] heap\ns f32 [8:N] heap\nt f32 [8:N] heap",
    )
    verdict = why(parse(rows), "parallelize m@0")
    assert "touch m[0] at the same time. The same holds of s and t." in verdict.sentence
    (way,) = verdict.refusal.ways
    assert way.moves == ("set_location m stack", "set_location s stack", "set_location t stack")
    assert [str(m) for m in expand(parse(rows), "parallel_for m@0")] == [*way.moves, "parallelize m@0"]


def test_moves_in_the_way_of_others_come_before_them():
    """A register has no address for each iteration: the heap has, and then each value a cell of its own."""
    rows = kernel(
        "8 m[{0}] = x[{0}]\n| y[{0}] = m[{0}]",
        "x f32 [8] heap\ny f32 [8] heap\nm f32 [8:N] register",
    )
    (way,) = why(parse(rows), "fission_scope m@0 y").refusal.ways
    assert (way.moves, way.then) == (("set_location m stack", "materialise_dims m 0"), "fission_scope m@0 y")


@pytest.mark.parametrize(
    ("move", "needs"),
    [
        ("reorder m@0", "Either could go first only if they had no cell in common."),
        ("drop_dead m", "It is dead only once nothing reads it"),
        ("use_instruction m#1@0 vpdpbusd", "Nothing in m#1@0 computes what vpdpbusd does"),
    ],
)
def test_where_nothing_helps_what_would_have_to_be_different_is_told(move, needs):
    verdict = why(kernels.get("softmax").program((64, 512)), move, WIDE)
    assert verdict.refusal.ways == () and "Try" not in verdict.sentence
    assert needs in verdict.refusal.needs and verdict.sentence.endswith(verdict.refusal.needs)


def test_a_refusal_behind_the_first_is_told_where_that_is_one_of_principle():
    """Unmarked or not, two scopes that number rows and columns of an input and of a sum are not one."""
    text = kernel("8 4:u y[{0}] += x[{0},{1}]", "x f32 [8, 4] heap\ny f32 [8] heap")
    needs = why(parse(text), "merge_scopes y@0").refusal.needs
    assert needs.startswith("After clear_mark y@1 it is refused still: {0} does not use the two iterators")


def test_another_move_of_the_kind_is_told_as_such():
    text = kernel("8:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap")
    verdict = why(parse(text), "reuse_dims t 0")
    assert verdict.sentence.endswith("Try instead: reuse_dims t 0 stack.")


# The longest of them goes through every move on one target; make soak tries it on all.
TRIED = [
    pytest.param(
        name,
        target,
        id=f"{name}-{target.name}",
        marks=pytest.mark.soak if left_out else pytest.mark.thorough if name == "batchnorm" else (),
    )
    for name in ("softmax", "layernorm", "batchnorm", "swiglu")
    for target in (WIDE, GPU, SNITCH)
    for left_out in [name == "batchnorm" and target is not SNITCH]
]


FACETS = (lambda tried: tried[0], lambda tried: tried[1].name)


@pytest.mark.parametrize(("name", "target"), covering(TRIED, *FACETS))
def test_every_way_makes_its_move_legal(name, target):
    found = kernels.get(name)
    program = found.program(found.shapes[0])
    here, ways = context(program, target), 0
    for move, refusal in blocked_moves(program, target):
        for way in with_enablers(here, move, refusal).ways:
            after = program
            for first in way.moves:
                after = apply(after, first, target)
            if way.then:
                apply(after, way.then, target)
            ways += 1
    assert ways
