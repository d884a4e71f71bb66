"""Does an output depend on a cell that nothing has set? Against a plain execution, and in large."""

import random
from itertools import product

import pytest

from dojo_core import TextError, parse
from dojo_core.faults import program_fault
from dojo_core.program import unset
from dojo_core.program.definedness import TooMany
from dojo_core.program.tree import Op, Program
from dojo_core.program.unset import unset_origin
from dojo_core.program.validity import definition_fault, settled
from tests.programs import _Writer
from tests.test_definedness import _holds, executed
from tests.thorough import one_of


def origins(program: Program) -> dict[tuple[str, tuple[int, ...]], frozenset]:
    """Of each element of an output the unset cells that it depends on, instance by instance."""
    of: dict[tuple[str, tuple[int, ...]], frozenset] = {}

    def value(array, cell):
        return frozenset() if array in program.inputs else of.get((array, cell), frozenset({(array, cell)}))

    def run(body, iterators):
        for node in body:
            if not isinstance(node, Op):
                for n in range(node.size):
                    run(node.body, (*iterators, n))
            elif all(_holds(c, iterators) for c in node.guard):
                reads = [*node.reads, *([node.target] if node.accumulate else [])]
                at = [
                    (a.array, tuple(form.value(iterators) for form in a.index)) for a in (node.target, *reads)
                ]
                of[at[0]] = frozenset().union(*(value(*each) for each in at[1:]))

    run(program.body, ())
    cells = [
        (array, cell)
        for array in program.outputs
        for cell in product(*(range(d.size) for d in program.buffer_of[array].dims))
    ]
    return {cell: value(*cell) for cell in cells}


@pytest.mark.parametrize("seeds", one_of(2, [range(60), range(60, 140)]), ids=str)
def test_it_agrees_with_an_execution(monkeypatch, seeds):
    """On random texts, some with an operation left out; scaled down where that may be."""
    scaled = []

    def scaling(body, sizes, scale_down=unset._scaled_down):
        smaller = scale_down(body, sizes)
        scaled.append(smaller[0] != body)
        return smaller

    monkeypatch.setattr(unset, "_scaled_down", scaling)
    harmless = faulty = 0
    for seed in seeds:
        rng = random.Random(f"unset {seed}")
        rows = _Writer(rng).text().splitlines()
        operations = [n for n, row in enumerate(rows) if "=" in row and not row.startswith("table")]
        lost = rng.sample(operations, rng.choice((0, 1))) if len(operations) > 1 else []
        try:
            program = parse("\n".join(row for n, row in enumerate(rows) if n not in lost) + "\n")
        except TextError:
            continue
        if program.index_arrays:  # what they hold is not known: tests/test_indices.py
            continue
        depends = origins(program)
        for array in {a for b in program.buffers for a in b.arrays} - {*program.inputs}:
            origin = unset_origin(program, array)
            if origin is None:
                assert not any(a == array for each in depends.values() for a, _ in each), program.text
            else:
                output = origin.output.array, tuple(form.const for form in origin.output.index)
                assert (array, origin.cell) in depends[output], program.text
        sound = not any(depends.values())
        assert (definition_fault(program) is None) == sound, program.text
        faulty += not sound
        harmless += sound and bool(executed(program))
    assert faulty > 10 and harmless and sum(scaled) > 20


def staged(rows: int, columns: int, last: int) -> Program:
    """Sums in a staged copy, whose first columns nothing has set: copied, and added to. The outputs are made
    of the columns from ``last`` on."""
    return parse(
        f"""kernel k
in x
out y
x f32 [{rows}, {columns}] heap
y f32 [{rows}] heap
t f32 [{rows}, {columns + 2}] heap
tt f32 [{rows}, {columns + 2}] heap
{rows} {columns + 2} t[{{0}},{{1}}] = 0 if {{1}} >= 2
{rows} {columns + 2} tt[{{0}},{{1}}] = t[{{0}},{{1}}]
{rows} {columns} 3 tt[{{0}},{{1}}+{{2}}] += x[{{0}},{{1}}]
{rows} {columns + 2} t[{{0}},{{1}}] = tt[{{0}},{{1}}]
{rows} y[{{0}}] = 0
| {columns} y[{{0}}] += t[{{0}},{{1}}+{last}]
"""
    )


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (300, 300), (2**20, 64)])
def test_copies_of_what_nothing_has_set(rows: int, columns: int):
    """Far more instances than are gone through one by one; rows fare alike, and one stands for all."""
    assert program_fault(staged(rows, columns, 2)) is None
    fault = definition_fault(staged(rows, columns, 1))
    assert fault.code == "undefined"
    if rows < 2**20:
        assert fault.witness.instances[0][1] == (0, 1)
    else:
        assert fault.sentence == "The value of y[0] comes from t[0,1], which no earlier write has set."


def over(size: int, until: int) -> Program:
    """An output into which something unset is copied, and then written over."""
    return parse(
        f"""kernel k
in x
out y
x f32 [{size}] heap
y f32 [{size}] heap
t f32 [{size}] heap
{size} t[{{0}}] = x[{{0}}] if {{0}} >= 3
{size} y[{{0}}] = t[{{0}}]
{until} y[{{0}}] = x[{{0}}]
"""
    )


@pytest.mark.parametrize("size", [8, 2**18])
def test_an_output_may_be_written_over(size: int):
    assert program_fault(over(size, 3)) is None
    fault = definition_fault(over(size, 2))
    assert fault.code == "undefined" and str(fault.witness).endswith("reads t[2]")


def test_what_takes_too_long_is_not_said_to_be_wrong():
    """Neither the sound program is refused, nor the other one."""
    for until in (3, 2):
        program = over(2**28, until)
        with pytest.raises(TooMany):
            unset_origin(program, "t")
        assert definition_fault(program).code == "undecided" and program_fault(program) is None


def chain(size: int, taken: int) -> Program:
    """A recurrence in both directions from t[2]; a write of t[0] is missing."""
    return parse(
        f"kernel k\nin x\nout y\nx f32 [] heap\ny f32 [] heap\nt f32 [{size}] heap\n"
        f"t[2] = x[]\n{size - 3} t[{{0}}+3] = t[{{0}}+2]\n2 t[{{0}}+1] = t[{{0}}]\ny[] = t[{taken}]\n"
    )


def test_each_iteration_in_turn_where_one_needs_the_other():
    """A recurrence takes as many steps as it has iterations: few enough are gone through."""

    assert definition_fault(chain(1_000, 999)) is None
    assert definition_fault(chain(1_000, 2)).code == "undefined"
    assert definition_fault(chain(10**6, 2)).code == "undecided"


def test_who_measures_settles_what_was_left_undecided():
    """However long it takes: here as many steps as a recurrence has."""

    assert settled(chain(1_000, 999)) is None and settled(chain(1_000, 2)) is None  # decided already
    with pytest.MonkeyPatch.context() as patch:  # no fixture: make mutate calls it
        patch.setattr(unset, "POINTS", 2**20)  # instead of a recurrence that takes seconds
        right, wrong = chain(2_000, 1_999), chain(2_000, 2)
        assert definition_fault(right).code == definition_fault(wrong).code == "undecided"
        assert settled(right) is None
        assert settled(wrong) == "The value of y[] comes from t[0], which no earlier write has set."


def test_too_much_to_go_through_is_said_to_be_wrong_only_where_it_surely_is():
    """What is read is not set: it becomes an output; is not used; is written over; not even that is known."""
    start = "kernel k\nin x\nout y\nx f32 [] heap\ny f32 [] heap\nu f32 [] heap\nt f32 [20000] heap\n"
    start += "t[2] = x[]\n19997 t[{0}+3] = t[{0}+2]\n"
    assert definition_fault(chain(20_000, 0)).code == "undefined"
    assert definition_fault(parse(f"{start}u[] = t[0]\ny[] = t[19999]\n")).code == "undecided"
    assert definition_fault(parse(f"{start}u[] = 0\n2 y[] = t[{{0}}+1]\n")).code == "undecided"
    square = "f32 [16384, 16384] heap\n"
    ways = parse(
        f"kernel k\nin x\nout y\nx {square}y {square}t {square}"
        "16384 16384 t[{0},{1}] = x[{0},{1}] if {0} < 8192\n"
        "16384 16384 t[-{0}+16383,{1}] = x[{0},{1}] if {0}+{1} < 24576\n"
        "16384 16384 y[{0},{1}] = t[{0},{1}]\n"
    )
    assert definition_fault(ways).code == "undecided"
