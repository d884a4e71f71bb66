"""Figure 6 of the paper, and the traps that once gave wrong results."""

from itertools import product

import pytest

from dojo_core import IllegalMove, apply, parse, why
from dojo_core.moves.examples import WIDE
from dojo_core.program.dependence import Witness
from dojo_core.program.marks import mark_fault
from dojo_core.program.validity import definition_fault, storage_fault
from tests import oracle
from tests.test_moves import kernel
from tests.thorough import one_of


def test_figure_6():
    """reuse_dims while two scopes use the dimension is refused: the write of t[1] clobbers t[0] before its
    read. join_scopes enables it; after that, fission is refused until materialise_dims."""
    apart = parse(
        kernel("8 t[{0}] = x[{0}]*2\n8 y[{0}] = t[{0}] + 1", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap")
    )
    refusal = why(apart, "reuse_dims t 0").refusal
    assert refusal.sentence == "The write of t[1] clobbers t[0] before its read."
    assert refusal.enablers == ("join_scopes t@0",)
    assert isinstance(refusal.witness, Witness)
    assert [values for _, values in refusal.witness.instances] == [(0,), (1,), (0,)]

    joined = apply(apart, "join_scopes t@0")
    assert why(joined, "fission_scope t@0 y").legal
    reused = apply(joined, "reuse_dims t 0")
    assert "t f32 [8:N] heap" in reused.text

    refusal = why(reused, "fission_scope t@0 y").refusal
    assert refusal.code == "clobber"
    assert refusal.enablers == ("materialise_dims t 0",)
    materialised = apply(reused, "materialise_dims t 0")
    assert apply(materialised, "fission_scope t@0 y") == apart


def test_an_enabler_is_told_where_it_opens_the_move():
    """Of the dimensions that could be materialised, the one in whose scope the fission is."""
    together = parse(
        kernel(
            "8 4 t[{0},{1}] = x[{0},{1}]\n| | y[{0},{1}] = t[{0},{1}]",
            "x f32 [8, 4] heap\ny f32 [8, 4] heap\nt f32 [8:N, 4:N] stack",
        )
    )
    assert why(together, "materialise_dims t 0").legal
    assert why(together, "fission_scope t@1 y").refusal.enablers[0] == "materialise_dims t 1"


def test_a_stack_buffer_lives_in_one_iteration_of_its_owner():
    program = parse(
        kernel(
            "4 2 t[{0}*2+{1}] = x[{0}*2+{1}]\n4 y[{0}] = t[{0}]",
            "x f32 [8] heap\ny f32 [4] heap\nt f32 [8] stack",
        )
    )
    assert why(program, "join_scopes t@0", WIDE).refusal.code == "lifetime"
    # On the heap the order alone decides: t[2] is written after y[2] would be... read before it.
    heap = parse(program.text.replace("stack", "heap"))
    assert why(heap, "join_scopes t@0", WIDE).legal


def test_padding_that_nothing_writes_may_be_read_where_its_value_is_lost():
    buffers = "x f32 [4, 8] heap\ny f32 [4, 8] heap\nt f32 [12] stack\nu f32 [4, 12] heap"
    nest = "4 8 t[{1}] = x[{0},{1}]\n| 12 u[{0},{1}] = t[{1}]\n"
    assert storage_fault(parse(kernel(nest + "4 8 y[{0},{1}] = u[{0},{1}]", buffers))) is None
    once = nest.replace("\n|", "\n| 12 t[{1}] = 0 if {0} < 1\n|")  # written in one iteration, read in others
    assert storage_fault(parse(kernel(once + "4 8 y[{0},{1}] = u[{0},{1}]", buffers))).code == "lifetime"


@pytest.mark.parametrize("location", ["stack", "heap"])
def test_contracted_storage_under_threads(location):
    apart = kernel(
        "4:p t[{0}] = x[{0}]\n4:p y[{0}] = t[{0}]",
        f"x f32 [4] heap\ny f32 [4] heap\nt f32 [4:N] {location}",
    )
    assert storage_fault(parse(apart)) is not None


def test_sharing_buffers_that_are_private_to_a_thread():
    program = parse(
        kernel(
            "8:p t[{0}] = x[{0}]\n| u[{0}] = t[{0}]\n| y[{0}] = u[{0}]",
            "x f32 [8] heap\ny f32 [8] heap\nt f32 [8:N] stack\nu f32 [8:N] stack",
        )
    )
    shared = apply(program, "share_buffer t u", WIDE)
    assert storage_fault(shared) is None
    assert why(program, "set_location t heap", WIDE).refusal.code == "race"
    assert why(shared, "set_location u heap", WIDE).refusal.code == "race"


def test_a_single_cell_per_thread_is_not_one_cell_for_all():
    program = parse(
        kernel(
            "8:p t[0] = x[{0}]\n| y[{0}] = t[0]",
            "x f32 [8] heap\ny f32 [8] heap\nt f32 [1] stack",
        )
    )
    assert storage_fault(program) is None
    assert why(program, "set_location t heap", WIDE).refusal.code == "race"


def test_overlapping_sums_race_though_the_target_uses_the_iterator():
    program = parse(kernel("10 y[{0}] = 0\n8 3 y[{0}+{1}] += x[{0}]", "x f32 [8] heap\ny f32 [10] heap"))
    refusal = why(program, "parallelize y#1@0", WIDE).refusal
    assert refusal.code == "race"
    assert "y[" in refusal.witness.cell
    assert why(program, "parallelize y#1@1", WIDE).legal  # within one {0} the cells differ


def test_in_place_is_allowed_only_at_the_last_use():
    buffers = "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap"
    last = parse(kernel("8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]*2", buffers))
    assert why(last, "share_buffer t y", WIDE).legal
    shifted = parse(kernel("8 t[{0}] = x[{0}]\n8 y[{0}] = t[-{0}+7]*2", buffers))
    assert why(shifted, "share_buffer t y", WIDE).refusal.code == "clobber"


def test_an_output_may_not_be_clobbered_after_its_last_write():
    program = parse(
        kernel(
            "8 y[{0}] = x[{0}]\n8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]",
            "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\nu f32 [8] heap",
        )
    )
    assert why(program, "share_buffer t y", WIDE).refusal.code == "clobber"


def test_tiles_that_cover_a_row_define_it():
    program = parse(
        kernel(
            "4 2 16 t[{0},{1}*16+{2}] = x[{0},{1}*16+{2}]\n| 32 y[{0},{1}] = t[{0},{1}]",
            "x f32 [4, 32] heap\ny f32 [4, 32] heap\nt f32 [4, 32] heap",
        )
    )
    assert why(program, "reuse_dims t 0", WIDE).legal
    partly = parse(
        program.text.replace("| 32 y[{0},{1}]", "| 31 y[{0},{1}+1]").replace("t[{0},{1}]", "t[{0},{1}+1]")
    )
    assert why(partly, "reuse_dims t 0", WIDE).legal


def test_two_writes_together_define_a_row():
    program = parse(
        kernel(
            "4 10 t[{0},{1}] = x[{0},{1}]\n| 6 t[{0},{1}+10] = x[{0},{1}+10]\n| 16 y[{0},{1}] = t[{0},{1}]",
            "x f32 [4, 16] heap\ny f32 [4, 16] heap\nt f32 [4, 16] heap",
        )
    )
    assert why(program, "reuse_dims t 0", WIDE).legal
    gap = parse(
        program.text.replace("| 6 t[{0},{1}+10] = x[{0},{1}+10]", "| 5 t[{0},{1}+10] = x[{0},{1}+10]")
    )
    assert definition_fault(gap).code == "undefined"


def test_reads_before_writes_and_holes_in_outputs_are_found():
    early = parse(
        kernel("8 y[{0}] = t[{0}]\n8 t[{0}] = x[{0}]", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap")
    )
    assert definition_fault(early).code == "undefined"
    hole = parse(kernel("7 y[{0}] = x[{0}]", "x f32 [8] heap\ny f32 [8] heap"))
    assert definition_fault(hole).code == "unwritten"
    assert definition_fault(parse(kernel("8 y[{0}] = x[{0}]", "x f32 [8] heap\ny f32 [8] heap"))) is None


def test_false_dependences_of_temporaries_do_not_block_reordering():
    """t is reused by two independent nests; with :N they may not be swapped, materialised they may."""
    body = "4 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]\n4 u[{0}] = x[{0}]\n| z[{0}] = u[{0}]\n4 y[{0}] += z[{0}]"
    buffers = "x f32 [4] heap\ny f32 [4] heap\nt f32 [4:N] heap -> t, u\nz f32 [4] heap"
    program = parse(kernel(body, buffers))
    assert storage_fault(program) is None
    assert why(program, "reorder t@0", WIDE).legal
    assert why(program, "join_scopes t@0", WIDE).legal


def test_unrolling_is_capped_and_the_stack_has_a_limit():
    big = parse(kernel("64 64 y[{0},{1}] = x[{0},{1}]", "x f32 [64, 64] heap\ny f32 [64, 64] heap"))
    once = apply(big, "unroll y@1", WIDE)
    assert why(once, "unroll y@0", WIDE).refusal.code == "unrolled-size"
    wide_row = parse(
        kernel(
            "2 400000 t[{0},{1}] = x[{0},{1}]\n| 400000 y[{0},{1}] = t[{0},{1}]",
            "x f32 [2, 400000] heap\ny f32 [2, 400000] heap\nt f32 [2:N, 400000] heap",
        )
    )
    assert why(wide_row, "set_location t stack", WIDE).refusal.code == "stack-size"
    assert mark_fault(wide_row, WIDE, "reassoc") is None


def test_dropping_a_split_never_unrolls_another_scope():
    from dojo_core.game import Game

    start = parse(kernel("16 8 y[{0},{1}] = x[{0},{1}]", "x f32 [16, 8] heap\ny f32 [16, 8] heap"))
    game = Game.new(start)
    split = game.play("split_scope y@0 4")
    game.play("unroll y@1")
    report = game.drop(split.id)
    assert [e.outcome for e in report.entries] == ["place changed"]
    assert game.current.program == start


def test_nothing_is_accepted_on_a_guess():
    with pytest.raises(IllegalMove):
        apply(
            parse(
                kernel(
                    "8 t[{0}] = x[{0}]\n8 y[{0}] = t[-{0}+7]",
                    "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap",
                )
            ),
            "join_scopes t@0",
        )


def stages(head: int, made: int, used: int, first: bool, mark: str, dim: str, step: int = 1) -> str:
    """A loop that writes cells of t in each iteration and reads one, maybe of an earlier iteration, behind
    a loop that writes the first ``head`` cells."""
    write = f"t[{{0}},{{1}}*{step}+{made}] = x[{{0}},{{1}}*{step}+{made}]"
    read = f"y[{{0}},{{1}}*{step}+{used}] = t[{{0}},{{1}}*{step}+{used}]"
    one, other = (write, read) if first else (read, write)
    filled = f"{head} t[{{0}},{{1}}] = x[{{0}},{{1}}]\n| " if head else ""
    body = f"2 12 y[{{0}},{{1}}] = 0\n2 {filled}4{mark} {one}\n| | {other}"
    buffers = f"x f32 [2, 12] heap\ny f32 [2, 12] heap\nt f32 [2:N, 12{dim}] stack"
    return kernel(body, buffers)


@pytest.mark.parametrize(("far", "least"), [(3, 10), pytest.param(4, 40, marks=pytest.mark.soak)])
def test_what_an_earlier_iteration_wrote_is_accepted_only_where_it_is_there(far, least):
    """All small pipelines of two stages, each accepted one run by the oracle."""
    accepted = 0
    grid = product(range(far), range(far), range(far), (True, False), ("", ":u", ":p"), ("", ":N"), (1, 2))
    for head, made, used, first, mark, dim, step in grid:
        text = stages(head, made, used, first, mark, dim, step)
        program = parse(text)
        if storage_fault(program) is None and definition_fault(program) is None:
            outcome = oracle.run(program)
            assert outcome.fault is None and outcome.defined, text
            accepted += made > used
    assert accepted > least


def test_a_pipeline_is_accepted_with_its_first_cell_and_refused_without():
    whole = parse(stages(head=1, made=1, used=0, first=True, mark="", dim=""))
    assert storage_fault(whole) is None and definition_fault(whole) is None
    without = storage_fault(parse(stages(head=0, made=1, used=0, first=True, mark="", dim="")))
    assert without.code == "lifetime" and without.witness is not None
    # In one place for all cells the next one would be there before this one is read; not if it is read first.
    assert storage_fault(parse(stages(1, 1, 0, True, "", ":N"))).code == "clobber"
    assert storage_fault(parse(stages(1, 1, 0, False, "", ":N"))) is None


def scan(step: int, width: int, lag: int, head: range, dim: str = "", apart: int = 1, guard: str = "") -> str:
    """``width`` cells of t in each of three iterations, ``apart`` from each other and ``step`` further each
    time, each cell from the one ``lag`` cells before; behind a loop that sets the cells of ``head``."""
    cell = f"{{1}}*{step}+{{2}}*{apart}+{4 + max(0, -step * 2)}"
    first = f"{len(head)} t[{{1}}+{head.start}] = x[{{1}}+{head.start}]\n| " if head else ""
    body = f"""20 y[{{0}}] = 0
2 {first}3 {width} t[{cell}] = t[{cell}{-lag:+}] + x[{cell}]{guard}
| | | y[{cell}] = t[{cell}]{guard}"""
    return kernel(body, f"x f32 [20] heap\ny f32 [20] heap\nt f32 [20{dim}] stack")


HEADS = (range(10, 14), range(3, 4), range(0), range(4), range(2, 5), range(12, 17))


@pytest.mark.parametrize("form", [{}, {"dim": ":N"}, {"apart": 2}, {"guard": " if {1} >= 1"}], ids=str)
@pytest.mark.parametrize(
    ("steps", "heads"),
    [
        *one_of(3, [((-2, 1), HEADS[:1]), ((-2, 1), HEADS[1:2]), ((0,), HEADS[:2])]),
        pytest.param(range(-3, 4), HEADS, marks=pytest.mark.soak),
    ],
)
def test_scans_up_and_down_and_in_steps_are_accepted_where_they_are_right(steps, heads, form):
    """All small ones, run by the oracle; of the plain ones none is refused that is right."""
    for step, width, lag in product(steps, (1, 2, 3), (-4, -3, -2, -1, 1, 2, 3, 4)):
        for head in heads:
            program = parse(scan(step, width, lag, head, **form))
            outcome = oracle.run(program)
            right = outcome.fault is None and outcome.defined
            accepted = storage_fault(program) is None and definition_fault(program) is None
            assert accepted <= right and (form or accepted == right), program.text


def test_a_scan_from_the_end_is_accepted_with_its_first_cell_and_refused_without():
    """As CumSum(reverse) is written; in parallel it is refused, and at one address where it needs two."""

    def told(size: int, first: int, mark: str = "", dim: str = "", read: str = "-{0}") -> str | None:
        body = (
            f"t[{first}] = 0\n{size}{mark} t[-{{0}}+{size - 1}] = t[{read}+{size}] + x[-{{0}}+{size - 1}]\n"
            f"| y[-{{0}}+{size - 1}] = t[-{{0}}+{size - 1}]"
        )
        program = parse(
            kernel(body, f"x f32 [{size}] heap\ny f32 [{size}] heap\nt f32 [{size + 1}{dim}] stack")
        )
        fault = definition_fault(program) or storage_fault(program)
        return fault and fault.code

    for size in (4, 2**25):  # beyond what is gone through cell by cell
        assert told(size, first=size) is None and told(size, first=size, dim=":N") is None
        assert told(size, first=0) in ("undefined", "undecided")
        assert told(size, first=size, mark=":p") in ("undefined", "undecided", "race")
    assert told(4, first=4, read="-{0}*0") is None
    assert told(4, first=4, read="-{0}*0", dim=":N") == "clobber"


def test_what_earlier_iterations_wrote_under_a_guard_is_not_counted_on():
    def told(guard: str) -> str | None:
        body = f"""t[4] = 0
4 t[{{0}}] = x[{{0}}]{guard}
| y[{{0}}] = t[{{0}}-1] if {{0}} >= 1
| y[{{0}}] = 0 if {{0}} < 1"""
        fault = storage_fault(parse(kernel(body, "x f32 [4] heap\ny f32 [4] heap\nt f32 [5] stack")))
        return fault and fault.code

    assert told("") is None and told(" if {0} < 1") == "undefined"


@pytest.mark.parametrize("place", ("heap", "stack"))
def test_no_iteration_before_the_first_has_set_the_cell_that_all_of_them_set(place):
    def told(before: str) -> str | None:
        body = f"{before}4 y[{{0}}] = t[1]\n| t[1] = x[{{0}}]"
        program = parse(kernel(body, f"x f32 [4] heap\ny f32 [4] heap\nt f32 [2] {place}"))
        fault = definition_fault(program) or storage_fault(program)
        return fault and fault.code

    assert told("t[1] = 0\n") is None and told("") == told("t[0] = 0\n") == "undefined"


def test_what_is_surely_unset_is_told_though_something_before_it_could_not_be_shown():
    buffers = "x f32 [268435456] heap\ny f32 [268435456] heap\nt f32 [268435456] heap"
    body = "268435456 t[{0}] = x[{0}] if {0} >= 3\n268435456 y[{0}] = t[{0}]\n3 y[{0}] = x[{0}]"
    assert definition_fault(parse(kernel(body, buffers))).code == "undecided"
    unset = kernel(body + "\n4 z[{0}] = u[{0}]", buffers + "\nz f32 [4] heap\nu f32 [4] heap")
    fault = definition_fault(parse(unset.replace("out y", "out y, z")))
    assert fault.code == "undefined" and fault.array == "u"
