"""Which reads find a write: gone through in NumPy, against a plain execution in order."""

import random
from itertools import product

import pytest
from typer.testing import CliRunner

from agents.cli import app
from dojo_core import TextError, apply, parse
from dojo_core.faults import program_doubt, program_fault
from dojo_core.program import definedness
from dojo_core.program.definedness import first_unset
from dojo_core.program.dependence import accesses
from dojo_core.program.tree import Op, Program
from dojo_core.program.validity import _buffer_accesses, _exit_read, definition_fault
from tests import oracle
from tests.programs import _Writer
from tests.thorough import one_of


def executed(program: Program) -> dict[object, tuple[int, ...]]:
    """The first instance of each read (operation and its operand, or an output at exit) of an unset cell."""
    written: set[tuple[str, tuple[int, ...]]] = set()
    unset: dict[object, tuple[int, ...]] = {}

    def run(body, path, iterators):
        for number, node in enumerate(body):
            if not isinstance(node, Op):
                for n in range(node.size):
                    run(node.body, (*path, number), (*iterators, n))
                continue
            if not all(_holds(c, iterators) for c in node.guard):
                continue
            reads = [(k, a) for k, a in enumerate(node.operands) if hasattr(a, "array")]
            reads += [(-1, node.target)] if node.accumulate else []
            for k, access in reads:
                cell = access.array, tuple(form.value(iterators) for form in access.index)
                if cell not in written and access.array not in program.inputs:
                    unset.setdefault(((*path, number), k), iterators)
            written.add((node.target.array, tuple(form.value(iterators) for form in node.target.index)))

    run(program.body, (), ())
    for array in program.outputs:
        for cell in product(*(range(d.size) for d in program.buffer_of[array].dims)):
            if (array, cell) not in written:
                unset.setdefault(array, cell)
    return unset


def _holds(comparison, iterators) -> bool:
    value = comparison.form.value(iterators)
    return {
        "<": value < comparison.bound, ">=": value >= comparison.bound, "==": value == comparison.bound
    }[comparison.relation]  # fmt: skip


def gone_through(program: Program) -> dict[object, tuple[int, ...]]:
    unset: dict[object, tuple[int, ...]] = {}
    for buffer in program.buffers:
        found, sizes = _buffer_accesses(program, buffer), [d.size for d in buffer.dims]
        for leaf in program.leaves:
            operands = [k for k, o in enumerate(leaf.op.operands) if hasattr(o, "array")]
            for k, access in zip([*operands, -1], accesses(leaf), strict=True):
                if access.element.array in buffer.arrays and access.kind != "w":
                    values = first_unset(access, found, sizes)
                    if values is not None and access.element.array not in program.inputs:
                        unset[leaf.path, k] = values
        for array in buffer.arrays:
            values = (
                first_unset(_exit_read(array, buffer), found, sizes) if array in program.outputs else None
            )
            if values is not None:
                unset[array] = values
    return unset


@pytest.mark.parametrize(
    "seeds", [range(120), pytest.param(range(120, 400), marks=pytest.mark.soak)], ids=["120", "280 more"]
)
@pytest.mark.parametrize("few", one_of(2, [definedness._FEW, 0]), ids=["as they are", "cut"])
def test_it_agrees_with_an_execution(monkeypatch, few, seeds):
    """On random texts, of which many read what is not set."""
    monkeypatch.setattr(definedness, "_FEW", few)
    faulty = 0
    for seed in seeds:
        try:
            program = parse(_Writer(random.Random(f"definedness {seed}")).text())
        except TextError:
            continue
        if program.index_arrays:  # what they hold is not known: tests/test_indices.py
            continue
        unset = executed(program)
        assert gone_through(program) == unset, program.text
        if definition_fault(program) is None:  # what is not set may be read where no output depends on it
            assert not unset or oracle.run(program).defined, program.text
        else:
            assert unset, program.text
        faulty += bool(unset)
    assert faulty >= 20


def whole(size: int, *operations: str) -> Program:
    head = f"kernel k\nin x\nout y\nx f32 [{size}] heap\ny f32 [{size}] heap\nt f32 [{size}] heap\n"
    return parse(head + "\n".join(operations) + "\n")


@pytest.mark.parametrize("size", [8, 2**16, 2**30])
def test_writes_that_leave_gaps_for_each_other(size):
    """Of any size, since every tile fares alike."""
    tiles, last = f"{size // 4} 2 y[{{0}}*4+{{1}}] = x[{{0}}*4+{{1}}]", "| 1 y[{0}*4+3] = 0"
    sound = whole(size, tiles, "| 1 y[{0}*4+2] = x[{0}*4]", last)
    assert definition_fault(sound) is None
    hole = whole(size, tiles, last)
    assert definition_fault(hole).code == "unwritten"
    assert definition_fault(hole).sentence.startswith("y[2] of the output y is never written.")
    temporary = [line.replace("y[", "t[") for line in (tiles, "| 1 y[{0}*4+2] = x[{0}*4]", last)]
    assert definition_fault(whole(size, *temporary, f"{size} y[{{0}}] = t[{{0}}]")) is None
    early = definition_fault(whole(size, f"{size} y[{{0}}] = t[{{0}}]", *temporary))
    assert early.code == "undefined" and "t[0]" in str(early.witness)


def test_the_last_element_of_very_many():
    fault = definition_fault(whole(2**30, f"{2**30 - 1} y[{{0}}] = x[{{0}}]"))
    assert fault.sentence.startswith(f"y[{2**30 - 1}] of the output y is never written.")


def test_what_could_not_be_shown_is_let_in_and_told(tmp_path):
    def guarded(size: int) -> Program:
        half = f"{size // 2} y[{{0}}*2"
        return whole(size, f"{half}] = x[{{0}}]", f"{half}+1] = x[{{0}}] if {{0}} >= 1", "y[1] = x[1]")

    assert definition_fault(guarded(2**10)) is None and program_doubt(guarded(2**10)) is None
    large = guarded(2**30)
    assert program_fault(large) is None
    told = (
        "It could not be shown that all of y is written: there is too much of it to go through. "
        "It is checked before it is measured."
    )
    assert program_doubt(large) == told
    file = tmp_path / "large.txt"
    file.write_text(large.text)
    said = CliRunner().invoke(app, ["check", str(file)])
    assert said.exit_code == 0 and "valid" in said.output and told in said.output


def test_a_read_through_a_table_finds_what_was_written():
    text = (
        "kernel k\nin x\nout y\ntable k u8 [4] = 0 2 4 6\nx f32 [8] heap\ny f32 [4] heap\nt f32 [8] heap\n"
        "4 t[{0}*2] = x[{0}]\n4 y[{0}] = t[k[{0}]]\n"
    )
    assert definition_fault(parse(text)) is None
    odd = definition_fault(parse(text.replace("0 2 4 6", "0 2 5 6")))
    assert odd.code == "undefined" and odd.witness.instances[0][1] == (2,)


PADDED = (
    "kernel k\nin x\nout y\nx f32 [54] heap\ny f32 [54] heap\nt f32 [56] heap\nu f32 [56] heap\n"
    "54 t[{0}] = x[{0}]\n56 u[{0}] = t[{0}]\n54 y[{0}] = u[{0}]\n"
)


def test_padding_may_be_read_where_no_output_depends_on_it():
    """As free iterations leave it, whose values nobody reads but such iterations."""
    start = parse(PADDED.replace("56", "54"))
    for move in ("pad_dim t 0 56", "pad_dim u 0 56", "pad_scope u@0 56 free"):
        start = apply(start, move, "cpu")
    assert start.text == PADDED
    assert program_fault(parse(PADDED)) is None
    summed = PADDED.replace("54 y[{0}] = u[{0}]", "54 y[{0}] = 0\n| 56 y[{0}] += u[{1}]")
    fault = definition_fault(parse(summed))
    assert fault.code == "undefined" and fault.witness.instances[0][1] == (54,)


def test_what_is_not_set_may_be_copied_where_the_copy_is_written_over():
    text = """kernel k
in x
out y
x f32 [4] heap
y f32 [] heap
t f32 [2, 6] heap
2 6 t[{0},{1}] = 0 if {1} >= 2
| 4 3 t[{0},{1}+{2}] += x[{1}]
y[] = t[1,2]
"""
    staged = apply(parse(text), "stage_write t t@0 tt")
    assert "2 6 tt[{0},{1}] = t[{0},{1}]" in staged.text
    assert definition_fault(staged) is None
    lost = parse(staged.text.replace("y[] = t[1,2]", "y[] = t[1,1]"))
    assert definition_fault(lost).code == "undefined"
