# ruff: noqa: E501  (program, move and refusal stand side by side)
"""Each condition of the moves of a Snitch core refuses, and each of V3 there (docs/legality.md)."""

from dataclasses import replace

import pytest

from dojo_core import apply, parse, why
from dojo_core.moves import REGISTRY, inverse
from dojo_core.moves.examples import WIDE
from tests.snitch import TINY
from tests.targets import SNITCH
from tests.test_refusals import Case, conditions_have_cases, program_of, refused


def f64(**shapes: str) -> str:
    """As ``heap`` of the refusals' tests, in f64."""
    lines = []
    for name, shape in shapes.items():
        sizes, *where = shape.split(" ")
        lines.append(f"{name} f64 [{sizes.replace(',', ', ')}] {' '.join(where) or 'heap'}")
    return "\n".join(lines)


XY = f64(x="64", y="64")
X2 = f64(x="8,16", y="8,16")
COPY = "64 y[{0}] = x[{0}]"
ROWS = "8 16 y[{0},{1}] = x[{0},{1}]"
FOUR = f64(x="64", w="64", w2="64", y="64")
SUM = f64(x="8,64", y="8")
ROWSUM = "8 y[{0}] = 0\n8 64 y[{0}] += x[{0},{1}]"
DEEP = f64(x="2,3,2,3,2", y="3,2,3,2,2")
TURNED = "2 3 2 3 2 y[{1},{0},{3},{2},{4}] = x[{0},{1},{2},{3},{4}]"
PARTIAL = f64(x="64", y="", c="4 register")
SUMS = "4:u c[{0}] = 0\n16 4 c[{1}] += x[{0}*4+{1}]\ny[] = 0\n4:u y[] += c[{0}]"

STREAMING = [
    Case(1, "ssr y@0", XY, "64:s y[{0}] = x[{0}]", "marked", "clear_mark y@0", on=SNITCH),
    Case(1, "ssr y@0", XY, COPY, "mark-unknown", on=WIDE),
    Case(2, "ssr y@1", X2, "8:s 16 y[{0},{1}] = x[{0},{1}]", "stream-nested", "clear_mark y@0", on=SNITCH),
    Case(2, "ssr t@2", f64(x="4", y="4", t="4:N register"), "1:s 2 2 t[{1}*2+{2}] = 3\n| 4 y[{1}] = x[{1}]", "stream-nested", on=SNITCH),
    Case(2, "ssr y@0", X2, "8 16:s y[{0},{1}] = x[{0},{1}]", "stream-nested", on=SNITCH),
    Case(3, "ssr y@0", FOUR, "64 y[{0}] = fma(x[{0}],w[{0}],w2[{0}])", "stream-count", on=SNITCH),
    Case(3, "ssr y@0", f64(x="64", w="64", y="64", z="64"), "64 y[{0}] = x[{0}]\n| z[{0}] = w[{0}]", "stream-count", "fission_scope y@0 z", on=SNITCH),
    Case(3, "ssr t@0", f64(x="1", y="1", t="1 register"), "4 t[0] = 1\ny[0] = x[0]*t[0]", "stream-count", on=SNITCH),
    Case(4, "ssr y@0", "x f32 [64] heap\ny f32 [64] heap", COPY, "stream-dtype", on=SNITCH),
    Case(5, "ssr y@0", f64(x="4", y="4") + "\ntable k i32 [4] = 2 0 3 1", "4 y[{0}] = x[k[{0}]]", "stream-index", on=SNITCH),
    Case(5, "ssr y@0", DEEP, TURNED, "stream-dims", "ssr y@1", on=SNITCH),
    Case(6, "ssr y@0", XY, "64 y[{0}] = x[{0}] if {0} < 64", "stream-guard", on=SNITCH),
    Case(7, "ssr y#1@1", SUM, ROWSUM, "stream-order", "stage_write y y#1@0 cy", on=SNITCH),
    Case(7, "ssr y@0", XY, "64 y[{0}] = 1\n| y[-{0}+63] = 2\n64 y[{0}] = x[{0}]", "stream-order", on=SNITCH),
    Case(1, "frep y@1", X2, "8:s 16:f y[{0},{1}] = x[{0},{1}]", "marked", "clear_mark y@1", on=SNITCH),
    Case(1, "frep y@0", XY, COPY, "mark-unknown", on=WIDE),
    Case(2, "frep y@0", X2, ROWS, "repeat-nest", on=SNITCH),
    Case(2, "frep y@1", f64(x="4,8,4", y="4,8,4"), "4:s 8 4 y[{0},{1},{2}] = x[{0},{1},{2}]", "repeat-nest", "unroll y@2", on=SNITCH),
    Case(3, "frep y@1", X2, "8:s 16 y[{0},{1}] = exp(x[{0},{1}])", "repeat-function", on=SNITCH),
    Case(3, "frep c@0", "x f32 [1] heap\ny f64 [1] heap\nc f64 [1] register\nd f32 [1] register", "d[0] = x[0]\n4 c[0] = d[0]\ny[0] = c[0]", "repeat-function", on=SNITCH),
    Case(3, "frep y@1", X2, "8:s 16 y[{0},{1}] = x[{0},{1}]*{1}", "repeat-integer", on=SNITCH),
    Case(3, "frep c#1@0", PARTIAL, "4:u c[{0}] = 0\n16 c[0] += 2 if {0} < 3\ny[] = 0\n4:u y[] += c[{0}]", "repeat-integer", on=SNITCH),
    Case(4, "frep y@0", XY, COPY, "repeat-memory", "wrap y@0 1", on=SNITCH),
    Case(4, "frep y@1", X2, ROWS, "repeat-memory", "ssr y@0", on=SNITCH),
    Case(5, "frep y@1", f64(x="8,34", y="8,34"), "8:s 2 17:u y[{0},{1}*17+{2}] = x[{0},{1}*17+{2}]", "repeat-size", on=SNITCH),
    Case(6, "frep y@1", f64(x="8,9", y="8,9"), "8:s 9 y[{0},{1}] = x[{0},{1}]", "repeat-count", on=TINY),
]  # fmt: skip

# Conditions that other moves run into.
OTHERS = [
    Case(0, "unroll y@2", f64(x="4,2,17", y="4,2,17"), "4:s 2:f 17:u y[{0},{1},{2}] = x[{0},{1},{2}]", "marked", on=SNITCH),
    Case(0, "clear_mark y@2", f64(x="4,2,8", y="4,2,8"), "4:s 2:f 8:u y[{0},{1},{2}] = x[{0},{1},{2}]", "repeat-nest", on=SNITCH),
    Case(0, "clear_mark y@0", f64(x="4,8", y="4,8"), "4:s 8:f y[{0},{1}] = x[{0},{1}]", "repeat-memory", on=SNITCH),
    Case(0, "set_location t heap", f64(x="64", w="64", y="64", t="64:N register"), "64:s t[{0}] = x[{0}]*w[{0}]\n| y[{0}] = t[{0}] + 1", "stream-count", on=SNITCH),
]  # fmt: skip

IDS = [f"{c.move}-{c.code}" for c in (*STREAMING, *OTHERS)]


@pytest.mark.parametrize("case", [*STREAMING, *OTHERS], ids=IDS)
def test_each_condition_refuses(case):
    refused(case)


@pytest.mark.parametrize("name", [n for n, t in REGISTRY.items() if t.family == "streaming"])
def test_every_numbered_condition_has_a_case(name):
    conditions_have_cases(name, STREAMING)


@pytest.mark.parametrize(
    ("move", "buffers", "body", "on"),
    [
        ("ssr y@0", f64(x="64", w="64", y="64"), "64 y[{0}] = x[{0}]*w[{0}]", SNITCH),
        ("ssr y@1", DEEP, TURNED, SNITCH),
        ("frep y@1", f64(x="8,32", y="8,32"), "8:s 2 16:u y[{0},{1}*16+{2}] = x[{0},{1}*16+{2}]", SNITCH),
        ("frep c#1@0", f64(x="4", y="", c="1 register"), "c[0] = 1\n4 c[0] *= 2\ny[] = c[0]", SNITCH),
        ("frep y@1", f64(x="8,8", y="8,8"), "8:s 8 y[{0},{1}] = x[{0},{1}]", TINY),
    ],
)
def test_one_less_is_legal(move, buffers, body, on):
    """Three streams, four loops, sixteen instructions, as many iterations as there may be; no memory."""
    assert why(program_of(body, buffers), move, on).legal


def test_a_function_in_software_leaves_a_hardware_loop_to_what_is_beside_it():
    body = "c[0] = 0\n1:s 64 y[{1}] = exp(x[{1}])\n| | c[0] += w[{1}]\nz[] = c[0]"
    program = program_of(body, f64(x="64", w="64", y="64", z="", c="1 register"))
    refusal = why(program, "frep c#1@1", SNITCH).refusal
    assert "'exp' is a sequence of instructions here, some of them of the integer core" in refusal.sentence
    apart = apply(program, "fission_scope y@1 c#1", SNITCH)
    assert (
        why(apart, "frep c#1@1", SNITCH).legal
        and "64:f c[0] += w[{1}]" in apply(apart, "frep c#1@1", SNITCH).text
    )


def test_in_place_is_read_before_it_is_written():
    """Each element once, first read: a stream that runs ahead reads what it should."""
    body = "64 t[{0}] = x[{0}]\n64 t[{0}] = t[{0}]*2\n64 y[{0}] = t[{0}]"
    program = program_of(body, f64(x="64", y="64", t="64"))
    after = apply(program, "ssr t#1@0", SNITCH)
    assert "64:s t[{0}] = t[{0}]*2" in after.text
    assert str(inverse(program, "ssr t#1@0", SNITCH)) == "clear_mark t#1@0"
    shifted = parse(program.text.replace("64 t[{0}] = t[{0}]*2", "63 t[{0}+1] = t[{0}]*2"))
    verdict = why(shifted, "ssr t#1@0", SNITCH)
    assert not verdict.legal and verdict.refusal.code == "stream-order"
    assert "both touch t[" in str(verdict.refusal.witness)


@pytest.mark.parametrize(("uses", "dims"), [(16, 3), (17, 4)])
def test_an_element_read_often_takes_no_loop(uses, dims):
    """16 uses of one element in a row are the stream's repeat; 17 are a loop of stride 0."""
    buffers = f64(x="3,5,7", y="", c="1 register")
    body = f"c[0] = 0\n7 5 3 {uses} c[0] += x[{{2}},{{1}},{{0}}]\ny[] = c[0]"
    program = program_of(body, buffers)
    assert why(program, "ssr c#1@0", replace(SNITCH, dims=dims)).legal
    assert why(program, "ssr c#1@0", replace(SNITCH, dims=dims - 1)).refusal.code == "stream-dims"
