# ruff: noqa: E501  (program, move and refusal stand side by side)
"""Each condition of the moves that map to a GPU refuses, and each of V3 on a GPU (docs/legality.md)."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dojo_core.moves import REGISTRY
from dojo_core.moves.examples import WIDE
from dojo_core.program.gpu import is_warp_reduction
from dojo_core.program.validity import storage_fault
from dojo_core.targets.gpu import conditions
from tests import oracle
from tests.gpu import TINY
from tests.targets import GPU
from tests.test_refusals import COPY, SUM, X2, XY, Case, conditions_have_cases, heap, program_of, refused

ROWS = "8:g 16 y[{0},{1}] = x[{0},{1}]"
PHASE = "8:g 16:b y[{0},{1}] = x[{0},{1}]"
X3 = heap(x="4,8,32", y="4,8,32")
LANES = "4:g 8:b 32 y[{0},{1},{2}] = x[{0},{1},{2}]"
ROWSUM = "8 y[{0}] = 0\n8:g 64 y[{0}] += x[{0},{1}]"
KEPT = heap(x="8,16", y="8,16", t="8:N,16 {}")
TWO = "8:g 16:b t[{0},{1}] = x[{0},{1}]\n| 16:b y[{0},{1}] = t[{0},{1}]"
CROSSED = "8:g 16:b t[{0},{1}] = x[{0},{1}]\n| 16:b y[{0},{1}] = t[{0},-{1}+15]"
ALONE = "8:g s[{0}] = x[{0},3]\n| 16:b y[{0},{1}] = s[{0}]"

MAPPING = [
    Case(1, "map_grid y@0", XY, "64:g y[{0}] = x[{0}]", "marked", "clear_mark y@0", on=GPU),
    Case(1, "map_grid y@0", XY, COPY, "mark-unknown", on=WIDE),
    Case(2, "map_grid y@1", X2, "8:u 16 y[{0},{1}] = x[{0},{1}]", "grid-place", on=GPU),
    Case(2, "map_grid y@2", X3, LANES, "grid-place", on=GPU),
    Case(2, "map_grid t@1", heap(x="8", y="8", t="8"), "8:g 1 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "grid-nest", on=GPU),
    Case(3, "map_grid y#1@1", SUM, "8 y[{0}] = 0\n8 64 y[{0}] += x[{0},{1}]", "race", "split_reduction y#1@1 py", on=GPU),
    Case(3, "map_grid t@0", heap(x="8", y="8", t="8:N"), "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "race", "set_location t local", on=GPU),
    Case(4, "map_grid t@1", heap(x="8,16", y="8,16", t="8:N,16 stack"), "8 16 t[{0},{1}] = x[{0},{1}]\n| 16 y[{0},{1}] = t[{0},{1}]", "kernel-buffer", "set_location t heap", on=GPU),
    Case(5, "map_grid y@1", heap(x="2000,4", y="2000,4"), "2000 4 y[{0},{1}] = x[{0},{1}]", "launches", on=GPU),
    Case(5, "map_grid y@0", heap(x="4096", y="4096"), "4096 y[{0}] = x[{0}]", "grid-size", on=replace(GPU, grid_blocks=4095)),
    Case(1, "map_block y@1", X2, PHASE, "marked", "clear_mark y@1", on=GPU),
    Case(2, "map_block y@0", XY, COPY, "block-place", on=GPU),
    Case(2, "map_block y@1", X2, "8 16 y[{0},{1}] = x[{0},{1}]", "block-place", "map_grid y@0", on=GPU),
    Case(2, "map_block y@3", heap(x="4,32,2", y="4,32,2"), "4:g 1:b 32:w 2 y[{0},{2},{3}] = x[{0},{2},{3}]", "block-place", on=GPU),
    Case(2, "map_block y@3", heap(x="4,8,2,4", y="4,8,2,4"), "4:g 8:b 2 4 y[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]", "block-nest", on=GPU),
    Case(3, "map_block y#1@1", SUM, ROWSUM, "race", "split_reduction y#1@1 py", on=GPU),
    Case(4, "map_block y@1", heap(x="2,2048", y="2,2048"), "2:g 2048 y[{0},{1}] = x[{0},{1}]", "block-threads", "split_scope y@1 128", on=GPU),
    Case(5, "map_block t@1", KEPT.format("stack"), TWO.replace(":b", ""), "thread-dims", "set_location t shared", on=GPU),
    Case(5, "map_block t@1", heap(x="8,4", y="8,4", t="8:N,4 stack"), "8:g 1 4:b t[{0},{2}] = x[{0},{2}]\n| 4:b y[{0},{1}] = t[{0},{1}]", "thread-number", on=GPU),
    Case(5, "map_block s@1", heap(x="8,16", y="8,16", s="8:N stack"), "8:g 1 s[{0}] = x[{0},3]\n| 16:b y[{0},{1}] = s[{0}]", "thread-write", "set_location s shared", on=GPU),
    Case(1, "map_warp y@2", X3, "4:g 8:b 32:u y[{0},{1},{2}] = x[{0},{1},{2}]", "marked", "clear_mark y@2", on=GPU),
    Case(2, "map_warp y@2", X3, "4:g 8 32 y[{0},{1},{2}] = x[{0},{1},{2}]", "warp-place", "map_block y@1", on=GPU),
    Case(2, "map_warp y@3", heap(x="4,8,4,4", y="4,8,4,4"), "4:g 8:b 4:w 4 y[{0},{1},{2},{3}] = x[{0},{1},{2},{3}]", "warp-place", on=GPU),
    Case(3, "map_warp y@2", heap(x="4,8,12", y="4,8,12"), "4:g 8:b 12 y[{0},{1},{2}] = x[{0},{1},{2}]", "warp-size", on=GPU),
    Case(3, "map_warp y@2", heap(x="4,8,64", y="4,8,64"), "4:g 8:b 64 y[{0},{1},{2}] = x[{0},{1},{2}]", "warp-size", "split_scope y@2 32", on=GPU),
    Case(3, "map_warp y#1@2", X3, "4:g 8:b 32:w y[{0},{1},{2}] = x[{0},{1},{2}]\n| | 16 y[{0},{1},{2}] = x[{0},{1},{2}]", "warp-sizes", on=GPU),
    Case(3, "map_warp y@2", heap(x="4,5,4", y="4,5,4"), "4:g 5:b 4 y[{0},{1},{2}] = x[{0},{1},{2}]", "warp-whole", on=GPU),
    Case(4, "map_warp y@2", heap(x="4,8,32", y="4,8"), "4:g 8:b 32 y[{0},{1}] = x[{0},{1},{2}]", "race", on=GPU),
    Case(4, "map_warp y#1@2", heap(x="4,8", y="4,8"), "4:g 8:b y[{0},{1}] = x[{0},{1}]\n| | 32 y[{0},{1}] += y[{0},{1}]", "race", on=GPU),
    Case(4, "map_warp t@2", heap(x="4,8,32", y="4,8", t="4,8,32"), "4:g 8:b y[{0},{1}] = 0\n| | 32 t[{0},{1},{2}] = x[{0},{1},{2}]\n| | | y[{0},{1}] += t[{0},{1},{2}]", "race", on=GPU),
    Case(4, "map_warp y#1@2", heap(x="4,8,32,4", y="4,8"), "4:g 8:b y[{0},{1}] = 0\n| | 32 4 y[{0},{1}] += x[{0},{1},{2},{3}]", "race", "interchange y#1@2", on=GPU),
    Case(4, "map_warp t@2", heap(x="4,8,32", y="4,8,32", t="4,8,32:N"), "4:g 8:b 32 t[{0},{1},{2}] += x[{0},{1},{2}]\n| | 32 y[{0},{1},{2}] = 0", "race", on=GPU),
    Case(4, "map_warp y#1@2", heap(x="4,8,32", y="4,8"), "4:g 8:b y[{0},{1}] = 0\n| | 32 y[{0},{1}] += x[{0},{1},{2}]", "warp-regroup", None, "strict", GPU),
    Case(5, "map_warp t@2", heap(x="4,8,32", y="4,8,32", t="4:N,8:N,32 stack"), "4:g 8:b 32 t[{0},{1},{2}] = x[{0},{1},{2}]\n| | 32 y[{0},{1},{2}] = t[{0},{1},{2}]", "thread-dims", on=GPU),
    Case(5, "map_warp s@2", heap(x="4,8,32", y="4,8,32", s="4:N,8:N stack"), "4:g 8:b 32 s[{0},{1}] = x[{0},{1},0]\n| | 32:w y[{0},{1},{2}] = s[{0},{1}]", "race", on=GPU),
]  # fmt: skip

# Conditions that other moves run into.
ROW = heap(x="4,256", y="4,256", t="4:N,256 shared")
FIRST_LANE = "4:g 8:b 32:w t[{0},{1}*32+{2}] = x[{0},{1}*32+{2}]\n| | t[{0},{1}*32] = 0\n| | 32:w y[{0},{1}*32+{2}] = t[{0},{1}*32+{2}]"
ONE_LANE = "4:g 8:b 32:w s[{0},{1}] = x[{0},{1},{2}] if {2} < 1\n| | 32:w y[{0},{1},{2}] = s[{0},{1}]"
ONE_LANE_SUM = "4:g 8:b s[{0},{1}] = 0\n| | 32:w 4 s[{0},{1}] += x[{0},{1},{2},{3}] if {2} < 1\n| | 32:w y[{0},{1},{2}] = s[{0},{1}]"
ONE_LANE_OF_TWO = "4:g 8:b s[{0},{1}] = 0\n| | 32:w s[{0},{1}] += x[{0},{1},{2}] if {2} < 1\n| | | t[{0},{1},{2}] = x[{0},{1},{2}]\n| | 32:w y[{0},{1},{2}] = s[{0},{1}]*t[{0},{1},{2}]"
ONE_WARP = "4:g s[{0}] = 0\n| 1:b 32:w s[{0}] += x[{0},{2}]\n| 8:b y[{0},{1}] = s[{0}]"
BOTH = "8:g 16384 t[{0},{1}] = x[{0},{1}]\n| 4 u[{0},{1}] = x[{0},{1}]\n| 4 y[{0},{1}] = u[{0},{1}]\n| 16384 y[{0},{1}] = t[{0},{1}]"
OTHERS = [
    Case(0, "map_grid y@2", X3, "4:g 8 32 y[{0},{1},{2}] = x[{0},{1},{2}]", "grid-place", on=GPU),
    Case(0, "set_location t local", ROW, FIRST_LANE, "thread-number", on=GPU),
    Case(0, "reuse_dims s 0 1 local", heap(x="4,8,32", y="4,8,32", s="4,8"), ONE_LANE, "thread-write", on=GPU),
    Case(0, "reuse_dims s 0 1 local", heap(x="4,8,32,4", y="4,8,32", s="4,8"), ONE_LANE_SUM, "thread-write", on=GPU),
    Case(0, "reuse_dims s 0 1 local", heap(x="4,8,32", y="4,8,32", s="4,8", t="4,8,32"), ONE_LANE_OF_TWO, "thread-write", on=GPU),
    Case(0, "set_location s local", heap(x="4,32", y="4,8", s="4:N shared"), ONE_WARP, "thread-write", on=GPU),
    Case(0, "set_location t shared", heap(x="8,16", y="8,16", t="8,16"), "8 16 t[{0},{1}] = x[{0},{1}]\n8:g 16 y[{0},{1}] = t[{0},{1}]", "kernel-buffer", on=GPU),
    Case(0, "set_location t shared", heap(x="8", y="8", t="1"), "t[0] = x[0]\n8:g y[{0}] = t[0]", "kernel-buffer", on=GPU),
    Case(0, "set_location t shared", heap(x="8,16", y="8,16", t="8:N,16 stack"), "8 16 t[{0},{1}] = x[{0},{1}]\n| 16 y[{0},{1}] = t[{0},{1}]", "shared-place", on=GPU),
    Case(0, "set_location t shared", heap(x="8,16384", y="8,16384", t="8,16384"), "8:g 16384 t[{0},{1}] = x[{0},{1}]\n| 16384 y[{0},{1}] = t[{0},{1}]", "shared-size", on=GPU),
    Case(0, "set_location t local", heap(x="8,16,4", y="8,16,4", t="8:N,16:N,4 stack"), "8:g 16:b 4 t[{0},{1},{2}] = x[{0},{1},{2}]\n| | 4 y[{0},{1},{2}] = t[{0},{1},{2}]", "local-index", "unroll t@2", on=GPU),
    Case(0, "set_location t local", heap(x="8,300", y="8,300", t="8:N,300 stack"), "8:g 300:u t[{0},{1}] = x[{0},{1}]\n| 300:u y[{0},{1}] = t[{0},{1}]", "local-size", on=GPU),
    Case(0, "set_location t stack", heap(x="8,16385", y="8,16385", t="8:N,16385 shared"), "8:g 16385 t[{0},{1}] = x[{0},{1}]\n| 16385 y[{0},{1}] = t[{0},{1}]", "stack-size", on=GPU),
    Case(0, "set_location t stack", heap(x="8,16384", y="8,16384", t="8:N,16384 shared", u="8:N,4 stack"), BOTH, "stack-size", on=GPU),
    Case(0, "set_location t local", KEPT.format("shared"), CROSSED, "thread-number", on=GPU),
    Case(0, "set_location s local", heap(x="8,16", y="8,16", s="8:N shared"), "8:g 1:b s[{0}] = x[{0},3]\n| 16:b y[{0},{1}] = s[{0}]", "thread-write", on=GPU),
    Case(0, "vectorize y@1", heap(x="8,6", y="8,6"), "8:g 4 y[{0},{1}] = x[{0},{1}]", "vector-alignment", on=GPU),
    Case(0, "vectorize y@1", heap(x="8,16", y="8,16"), "8:g 4 y[{0},{1}] = x[{0},{1}+2]", "vector-alignment", on=GPU),
    Case(0, "set_location t register", KEPT.format("shared"), TWO, "location-unknown", on=GPU),
    Case(0, "parallelize y@1", X2, ROWS, "mark-unknown", on=GPU),
    Case(0, "join_scopes t@1", heap(x="8,16", y="8,16", t="8,16"), "8:g 16:b t[{0},{1}] = x[{0},{1}]\n| 16:b y[{0},{1}] = t[{0},-{1}+15]", "order", on=GPU),
]  # fmt: skip


@pytest.mark.parametrize("case", MAPPING + OTHERS, ids=[f"{c.move}: {c.code}" for c in MAPPING + OTHERS])
def test_each_condition_refuses(case):
    refused(case)


@pytest.mark.parametrize("name", [n for n, t in REGISTRY.items() if t.family == "mapping"])
def test_every_condition_of_a_move_has_a_case(name):
    conditions_have_cases(name, MAPPING)


def test_every_condition_of_v3_on_a_gpu_has_a_case_and_a_line_in_the_docs():
    codes = set(re.findall(r'_fault\(\s*"([a-z-]+)"', Path(conditions.__file__).read_text()))
    assert codes == codes & {c.code for c in MAPPING + OTHERS}
    table = (Path(__file__).parent.parent / "docs" / "legality.md").read_text()
    assert codes == {code for code in codes if f"`{code}`" in table}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("4:g 8:b 32:w y[{0},{1}] += x[{0},{1},{2}]", True),
        ("4:g 8:b 32 y[{0},{1}] += x[{0},{1},{2}]", False),
        ("4:g 8:b 32:w y[{0},{1}] = x[{0},{1},{2}]", False),
        ("4:g 8:b 32:w y[{0},{2}] += x[{0},{1},{2}]", False),
        ("4:g 8:b 32:w y[{0},{1}] += x[{0},{1},{2}]\n| | | t[{0},{2}] = x[{0},{1},{2}]", False),
        ("y[0,0] += x[0,0,0]", False),
    ],
)
def test_what_a_warp_reduction_is(body, answer):
    program = program_of(body, heap(x="4,8,32", y="4,32", t="4,32"))
    assert is_warp_reduction(program.leaves[0]) is answer


# The traps of the design: V2 or V3 refuses each, and the oracle, which runs threads, says why.
TRAPS = {
    "a value set in one thread of a block": (
        "4:g 1:b s[{0}] = x[{0},3]\n| 8:b y[{0},{1}] = s[{0}]",
        heap(x="4,8", y="4,8", s="4:N local"),
        "lifetime",
    ),
    "a value set where a guard chooses the thread": (
        "4:g 8:b s[{0}] = x[{0},3] if {1} < 1\n| 8:b y[{0},{1}] = s[{0}]",
        heap(x="4,8", y="4,8", s="4:N local"),
        "lifetime",
    ),
    "another thread's register": (
        "2:g 4:b 4:b l[{0},{1},{2}] = x[{1},{2}]\n| 4:b 4:b y[{0},{1},{2}] = l[{0},{2},{1}]",
        heap(x="4,4", y="2,4,4", l="2:N,4,4 local"),
        "clobber",
    ),
    "one shared row for all warps": (
        "2:g 4:b 4:w t[{0},{1},{2}] = x[{1},{2}]\n| | 4:w y[{0},{1},{2}] = t[{0},{1},{2}]",
        heap(x="4,4", y="2,4,4", t="2:N,4:N,4 shared"),
        "race",
    ),
    "threads that add to one cell": ("4:g 8:b y[{0}] += x[{0},{1}]", heap(x="4,8", y="4"), "race"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_of_the_design(trap):
    body, buffers, fault = TRAPS[trap]
    program = program_of(body, buffers)
    assert conditions.gpu_fault(program, TINY, "reassoc") or storage_fault(program)
    assert oracle.run(program).fault.split()[0] == fault
