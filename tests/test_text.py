# ruff: noqa: E501  (before and after stand side by side)
"""The text form: round trip, canonical printing, and errors that a person can act on."""

import json
import re
from pathlib import Path

import pytest
from lark.parsers.lalr_analysis import Shift

from dojo_core import TextError, apply, kernels, parse
from dojo_core.program.expressions import RESERVED
from dojo_core.program.functions import FUNCTIONS
from dojo_core.program.line_parser import STARTS, TABLE, built, line_parser, table
from dojo_core.program.tree import DTYPE_BYTES
from tests.fuzz import fuzz

SOFTMAX = """\
kernel softmax
in x
out y
x f32 [24576, 512] heap
y f32 [24576, 512] heap
m f32 [24576] heap
d f32 [24576, 512] heap
e f32 [24576, 512] heap
s f32 [24576] heap
24576 m[{0}] = -inf
| 512 m[{0}] max= x[{0},{1}]
24576 512 d[{0},{1}] = x[{0},{1}] - m[{0}]
24576 512 e[{0},{1}] = exp(d[{0},{1}])
24576 s[{0}] = 0
| 512 s[{0}] += e[{0},{1}]
24576 512 y[{0},{1}] = e[{0},{1}] / s[{0}]
"""


def with_line(line: str, buffers: str = "x f32 [4, 8] heap\ny f32 [4, 8] heap\nt f32 [4, 8] heap") -> str:
    return f"kernel k\nin x\nout y\n{buffers}\n{line}\n"


def test_the_table_that_ships_is_the_grammar_s():
    """Both automata step by step, as their states are numbered anew each time that a table is made."""
    again = "python -m dojo_core.program.line_parser writes it anew"
    fresh = built()
    assert json.loads(TABLE.read_text())["of"] == table(fresh)["of"], again
    ours, theirs = (parser.parser.parser._parse_table for parser in (line_parser(), fresh))
    seen: dict[int, int] = {}
    waiting = [(ours.start_states[start], theirs.start_states[start]) for start in STARTS]
    while waiting:
        mine, its = waiting.pop()
        if mine in seen:
            assert seen[mine] == its, again
            continue
        seen[mine] = its
        assert ours.states[mine].keys() == theirs.states[its].keys(), again
        for token, (action, argument) in ours.states[mine].items():
            same, expected = theirs.states[its][token]
            assert action is same, again
            if action is Shift:
                waiting.append((argument, expected))
            else:
                assert argument == expected, again
    assert len(seen) == len(ours.states) == len(theirs.states)
    assert ours.end_states.keys() == theirs.end_states.keys()
    assert all(seen[ours.end_states[start]] == theirs.end_states[start] for start in STARTS), again


def test_canonical_text_is_a_fixed_point():
    assert str(parse(SOFTMAX)) == SOFTMAX
    assert parse(str(parse(SOFTMAX))) == parse(SOFTMAX)


def test_hash_depends_on_the_text_alone():
    shuffled = SOFTMAX.replace("m f32 [24576] heap\n", "").replace(
        "x f32 [24", "m f32 [24576]  heap\nx f32 [24"
    )
    assert parse(shuffled).hash == parse(SOFTMAX).hash
    assert parse(SOFTMAX.replace("512", "256")).hash != parse(SOFTMAX).hash


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("4 8 y[{0},{1}] = x[{0},{1}]*2.0", "4 8 y[{0},{1}] = x[{0},{1}]*2"),
        ("4 8 y[{0},{1}] = x[ {0} , {1} ]   +   1", "4 8 y[{0},{1}] = x[{0},{1}] + 1"),
        ("4 8 y[{0},{1}] -= x[{0},{1}]", "4 8 y[{0},{1}] += -x[{0},{1}]"),
        ("4 8 y[{0},{1}] = x[{0},{1}]*({0}*2+1)", "4 8 y[{0},{1}] = x[{0},{1}]*({0}*2+1)"),
        ("4 8 y[{0},{1}] = x[{0},{1}]*{0}", "4 8 y[{0},{1}] = x[{0},{1}]*{0}"),
        ("4 8 y[{0},{1}] = {1}*3", "4 8 y[{0},{1}] = {1}*3"),
        ("4 2 4 y[{0},{2}+{1}*4] = x[{0},4*{1}+{2}]", "4 2 4 y[{0},{1}*4+{2}] = x[{0},{1}*4+{2}]"),
        ("4 8 y[{0},{1}] = fma(x[{0},{1}],2,x[{0},{1}])", "4 8 y[{0},{1}] = fma(x[{0},{1}],2,x[{0},{1}])"),
        ("4 8 y[{0},{1}] = x[{0},{1}]*1e-5", "4 8 y[{0},{1}] = x[{0},{1}]*1e-05"),
        ("4 8 y[{0},{1}] = x[{0},{1}]*(-2)", "4 8 y[{0},{1}] = x[{0},{1}]*(-2)"),
        ("4 8 y[{0},{1}] = x[{0},{1}] if 7 >= {1}", "4 8 y[{0},{1}] = x[{0},{1}] if -{1} >= -7"),
        ("4:p 8:u y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}+1,{1}]) !stream", "4:p 8:u y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}+1,{1}]) !stream"),
        ("4 8 y[{0},{1}] = x[{0},{1}] if {0}*8+{1} < 30 and {1} >= 1", "4 8 y[{0},{1}] = x[{0},{1}] if {0}*8+{1} < 30 and {1} >= 1"),
    ],
)  # fmt: skip
def test_every_form_prints_canonically(written, canonical):
    program = parse(with_line(written))
    assert program.text.splitlines()[-1] == canonical
    assert parse(program.text) == program


def test_a_move_has_those_operations_printed_that_it_made(monkeypatch):
    from dojo_core.program import printing

    before, printed, real = kernels.get("softmax").program((8, 32)), [], printing._printed
    assert before.text
    monkeypatch.setattr(printing, "_printed", lambda op: printed.append(op) or real(op))
    after = apply(before, "split_scope d@1 8")
    assert after.text != before.text and len(after.leaves) == 7
    assert [op.target.array for op in printed] == ["d"]


def test_iterators_may_go_beyond_where_no_number_of_the_dtype_is_made_of_them():
    """In floating-point numbers they are rounded, a conversion wraps around, a comparison looks for a dtype."""
    head = "kernel k\nin x\nout y\nx i8 [4] heap\n"
    for line in ("y f32 [4] heap\n4 y[{0}] = {0}*3000000000", "y i8 [4] heap\n4 y[{0}] = i8({0}+120)"):
        assert parse(f"{head}{line}\n").text.endswith(f"{line}\n")
    compared = f"{head}y i8 [4] heap\n4 y[{{0}}] = x[{{0}}] < ({{0}}+300)\n"
    assert parse(compared).text == compared
    chosen = f"{head}y i8 [4] heap\n4 y[{{0}}] = select({{0}}+300,x[{{0}}],1)\n"
    assert parse(chosen).text == chosen


def test_rank_zero_and_shared_buffers_and_comments():
    text = """
    # a sum of squares
    kernel sumsq
    in x
    out y
    x f32 [8] heap
    y f32 [1] heap
    p f32 [8:N] stack -> p, q
    s f32 [] stack
    s[] = 0
    8 p[{0}] = x[{0}]*x[{0}]
    | q[{0}] = p[{0}]
    | s[] += q[{0}]
    y[0] = s[]
    """
    program = parse(text)
    assert [str(b) for b in program.buffers] == [
        "x f32 [8] heap",
        "y f32 [1] heap",
        "s f32 [] stack",
        "p f32 [8:N] stack -> p, q",
    ]
    assert parse(program.text) == program


NINES = "9" * 5000  # more digits than Python converts


@pytest.mark.parametrize(
    ("line", "message", "marked"),
    [
        ("4 8 y[{0},{1}] = z[{0},{1}]", "no buffer holds an array z", "z"),
        ("4 8 y[{0},{1}] = x[{0}]", "x has 2 dimensions, not 1", "x"),
        ("4 8 y[{0},{1}] = x[{0},{1}+1]", "index 1 of x runs from 1 to 8, outside 0 to 7", "{1}+1"),
        ("4 8 y[{0},{2}] = x[{0},{1}]", "no scope at depth 2 here", "{2}"),
        ("4 8 y[{0},{1}] = foo(x[{0},{1}])", "unknown function foo", "foo"),
        ("4 8 y[{0},{1}] = exp(x[{0},{1}]) + 1", "more than one function in an operation", "exp"),
        ("4 8 y[{0},{1}] = x[{0},max({0},{1})]", "not affine in the iterators", "max({0},{1})"),
        ("4 8 x[{0},{1}] = 1", "x is an input and may not be written", "x"),
        ("4:z 8 y[{0},{1}] = 1", "unknown mark :z", ":z"),
        ("0 8 y[{0},{1}] = 1", "a scope of 0 iterations", "0"),
        ("| 8 y[{0},0] = 1", "this bar has no open scope above it", "|"),
        ("4 8 y[{0},{1}] = ", "expected", None),
        ("4 8 y[{0},{1}] 3", "expected = or += *= max= min=", "3"),
        ("4 8 y[{0},{1}] = x[{0},{1}] !fetch", "expected prefetch or stream", "fetch"),
        ("4 8 y[{0},{1}] = fma(x[{0},{1}],2)", "fma takes 3 operands, not 2", "fma"),
        ("4 8 y[{0},{1}] = x[{0}-1,{1}] if {0} >= 0", "leaves 0 to 3 where the guard holds", None),
        ("4 8 y[{0},{1}] = x[{0},{1}]\u202e", "has no place in a program", "\u202e"),
        (f"4 8 y[{{0}},{{1}}] = x[{{0}},{{1}}+{NINES}]", "a number of 5000 digits", "99"),
        ("4 8 y[{0},{1}] = " + "{0}+" * 900 + "1", "an expression of too many parts", None),
        ("4 8 y[{0},{1}] = " + "-" * 900 + "1", "an expression of too many parts", None),
        ("4 8 y[{0},{1}] = " + "(" * 9000 + "1" + ")" * 9000, "characters", None),
        (f"{NINES} 8 y[{{0}},{{1}}] = 1", "a scope of 99999999... iterations", "99"),
        ("4 8 y[{0},{1}] = 1 !prefetch(x[{0}+1000000000000000000,{1}])", "beyond 64 bits of addresses", "x["),
        ("4 8 y[{0},{1}] = {0}*" + "*".join(["9" * 40] * 20), "a number beyond 64 bits", "{0}"),
    ],
)
def test_an_error_names_line_column_and_remedy(line, message, marked):
    with pytest.raises(TextError) as caught:
        parse(with_line(line))
    error = caught.value
    assert message in error.message
    assert error.line == 7
    assert error.remedy.endswith((".", "?")) or ":" in error.remedy or "such as" in error.remedy
    if marked is not None:
        assert error.source[error.column - 1 :].startswith(marked)
    lines = str(error).splitlines()
    assert lines[2].endswith("^")


MANY = "".join(f"t{n} f32 [4] heap\n" for n in range(512))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no kernel"),
        ("kernel k\n", "has no output"),
        ("kernel k\nout y\ny f32 [4] heap\n", "has no operation"),
        ("kernel k\nout y\n4 y[{0}] = 1\n", "no buffer holds an array y"),
        ("kernel k\nout y\ny f32 [4:N] heap\n4 y[{0}] = 1\n", "must be on the heap"),
        ("kernel k\nin x\nout y\nx f32 [4] heap\ny f32 [4] heap -> y, x\n", "two buffers"),
        ("kernel k\nin x\nout y\ny f32 [4] heap -> y, x\n4 y[{0}] = 1\n", "holds other arrays"),
        ("kernel k\nout y\ny f31 [4] heap\n4 y[{0}] = 1\n", "unknown dtype f31"),
        ("kernel k\nout y\ny f32 [4] cloud\n4 y[{0}] = 1\n", "unknown location cloud"),
        ("kernel k\nout y\ny f32 [0] heap\n4 y[{0}] = 1\n", "0 is no size"),
        (f"kernel k\nout y\ny f32 [{NINES}] heap\n4 y[{{0}}] = 1\n", "99999999... is no size"),
        ("kernel k\nout y\ny f32 [1000000, 1000000] heap\n4 y[{0}] = 1\n", "more than"),
        ("kernel k\nout y\ny f32 [4] heap\ny f32 [4] heap\n", "a second buffer named y"),
        ("kernel k\nkernel j\n", "a second 'kernel' line"),
        ("kernel k\nin x, x\n", "named twice"),
        ("kernel k\nout y\ny f32 [4] heap\nt f32 [4] heap\n4 t[{0}] = 1\n", "never written"),
        ("kernel k\nout y\ny f32 [4] heap\n" + "4 " * 17 + "y[{0}] = 1\n", "nested scopes"),
        ("kernel k\nout y\ny f32 [4] heap\n" + "4 y[{0}] = 1\n" * 300, "more than 500 nodes"),
        ("x" * 70000, "longer than"),
        ("kernel k\nout y\ny f32 [4] heap\n" + MANY + "4 y[{0}] = 1\n", "more than 512 buffers"),
        ("kernel k\nout y\ny i8 [4] heap\n4 y[{0}] = {0}+300\n", "goes beyond i8"),
        ("kernel k\nout y\ny u8 [4] heap\n4 y[{0}] = {0}-3\n", "goes beyond u8"),
        ("kernel k\nout y\ny i32 [4] heap\n4 y[{0}] = i8({0}+300)\n", "goes beyond i8"),
        ("kernel k\nout y\ny i8 [4] heap\n4 y[{0}] = i8(300)\n", "no value of i8"),
        ("kernel k\nout y\ny f32 [4] heap\n4 y[{0}] = -1e300\n", "-1e+300 goes beyond f32"),
        (
            "kernel k\nin x\nout y\nx f32 [4] heap\ny bool [4] heap\n4 y[{0}] = x[{0}] < 1e39\n",
            "goes beyond f32",
        ),
        ("kernel k\nout y\ny f32 [4, 4] heap\n4 4 y[{0},{1}] = {0}*{1}\n", "no iterator expression"),
        ("kernel k\nout y\ny f32 [4] heap\n4 y[{0}] = 1\nt f32 [4] heap\n", "after the body"),
    ],
)
def test_limits_and_structure_at_the_door(text, message):
    with pytest.raises(TextError) as caught:
        parse(text)
    assert message in caught.value.message


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_word_of_the_text_form_names_no_array(word):
    # One among others in a buffer would read, until a move gives it a buffer of its own.
    with pytest.raises(TextError, match=f"an array named {word}"):
        parse(
            f"kernel k\nin x\nout y\nx f32 [8] heap\ny f32 [8] heap\nb f32 [8] heap -> {word}, t\n8 y[{{0}}] = x[{{0}}]\n"
        )


def test_a_terabyte_is_refused_without_taking_memory():
    with pytest.raises(TextError, match="more than"):
        parse("kernel k\nout y\ny f32 [1099511627775] heap\n4 y[{0}] = 1\n")


@pytest.mark.parametrize(
    "most",
    [40, pytest.param(300, marks=pytest.mark.thorough), pytest.param(10_000, marks=pytest.mark.soak)],
)
def test_damaged_texts_raise_nothing_but_what_is_documented(most):
    assert fuzz(seconds=300, seed=1, most=most) == []


def test_every_function_stands_in_the_docs_with_what_it_is_of():
    page = (Path(__file__).parent.parent / "docs" / "text.md").read_text()
    section = page.partition("## Functions")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (`.*?) \| (?:all|float|int)", section, re.MULTILINE)
    named = [word for row in table for word in re.findall(r"(\w+)(?:\([a-z,]*\))?(?= |`)", row)]
    written = [f.name for f in FUNCTIONS.values() if not f.infix and f.name not in (*DTYPE_BYTES, "neg")]
    assert sorted(named) == sorted(written)


def test_and_is_a_function_where_a_value_stands_and_a_word_between_conditions():
    text = with_line("4 8 y[{0},{1}] = and(x[{0},{1}],t[{0},{1}]) if {0} < 3 and {1} >= 2").replace(
        "f32", "i32"
    )
    assert (
        "and(x[{0},{1}],t[{0},{1}]) if {0} < 3 and {1} >= 2\n" in parse(text.replace("in x", "in x, t")).text
    )
