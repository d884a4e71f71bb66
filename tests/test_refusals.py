# ruff: noqa: E501  (program, move and refusal stand side by side)
"""Each numbered condition of each move refuses: a program, the move, the refusal, and what would enable it.

The numbers are those of the move's docstring (docs/moves.md); 0 stands for what every move asks: that the
places it names exist. ``tests/mutate.py`` switches every condition off in turn and looks here first.
"""

import inspect
import re
from dataclasses import replace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

from dojo_core import IllegalMove, Move, TextError, apply, blocked_moves, legal_moves, parse, why
from dojo_core.moves import REGISTRY
from dojo_core.moves.core import Edit, Parameter, Transformation
from dojo_core.moves.examples import WIDE
from dojo_core.moves.legality import all_candidates, context, is_legal
from dojo_core.moves.places import Place
from dojo_core.moves.reference import FAMILIES
from dojo_core.program.expressions import RESERVED
from dojo_core.program.functions import KERNEL_LIMITS
from dojo_core.program.marks import mark_fault
from dojo_core.program.target import Target
from dojo_core.program.tree import Access, Program
from tests.compiled import run_program

BARE = replace(WIDE, name="bare", vector_widths={"i32": (16, 8, 4)})  # which has no vectors of bool


class Case(NamedTuple):
    """``buffers`` whose names begin with x or w are inputs; y (and z, where there is one) are outputs."""

    condition: int
    move: str
    buffers: str
    body: str
    code: str
    enabler: str | None = None  # a legal move that the refusal tells
    policy: str = "reassoc"
    on: Target = WIDE


def heap(**shapes: str) -> str:
    """``heap(x="8", t="8:N stack")``: f32 buffers, on the heap where nothing else is said."""
    lines = []
    for name, shape in shapes.items():
        sizes, *where = shape.split(" ")
        lines.append(f"{name} f32 [{sizes.replace(',', ', ')}] {' '.join(where) or 'heap'}")
    return "\n".join(lines)


XY = heap(x="64", y="64")
XTY = heap(x="8", y="8", t="8")
XTUY = heap(x="8", y="8", t="8", u="8")
X2 = heap(x="8,16", y="8,16")
SUM = heap(x="8,64", y="8")
COPY = "64 y[{0}] = x[{0}]"
APART = "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]"
JOINED = "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]"
TWICE = "8 t[{0}] = x[{0}]*2\n8 y[{0}] = t[{0}]"
ROWS = "8 16 y[{0},{1}] = x[{0},{1}]"
ROWSUM = "8 y[{0}] = 0\n8 64 y[{0}] += x[{0},{1}]"
SQUARE = heap(x="5,5", y="5,5", t="5,5")
SKEWED = "5 5 t[{0},{1}] = x[{0},{1}]\n4 4 t[{0}+1,{1}] = t[{0},{1}+1]\n5 5 y[{0},{1}] = t[{0},{1}]"
TILE = heap(x="4,16", w="8", y="4,8,16", p="4:N,16 stack")
TILED = "4 16 p[{0},{1}] = x[{0},{1}]\n| 8 16 y[{0},{1},{2}] = p[{0},{2}]*w[{1}]"
PARTIALS = heap(x="8,64", s="8", y="8", p="8:N,16 stack")
START = "8 s[{0}] = 0\n"
PARTIAL = (
    START
    + "8 16 p[{0},{1}] = 0\n| 4 16 p[{0},{2}] += x[{0},{1}*16+{2}]\n| 16 s[{0}] += p[{0},{1}]\n8 y[{0}] = s[{0}]"
)
SUMS = heap(x="8,16", s="8", y="8", p="8:N,4:N stack")
SUM_OF_SUMS = (
    START
    + "8 4 p[{0},{1}] = 0\n| | 4 p[{0},{1}] += x[{0},{1}*4+{2}]\n| | s[{0}] += p[{0},{1}]\n8 y[{0}] = s[{0}]"
)
KEPT_SUMS = SUMS.replace("8:N, 4:N] stack", "8, 4] heap")
RATIO = heap(x="8,16", w="8", y="8,16")
RATIOS = "8 16 y[{0},{1}] = x[{0},{1}] / w[{0}]"
INVERSE = heap(x="8,16", w="8", y="8,16", r="8:N stack")
INVERTED = "8 r[{0}] = 1 / w[{0}]\n| 16 y[{0},{1}] = x[{0},{1}]*r[{0}]"
AGAIN = heap(x="8", y="8", t="8", r="8:N stack")
REMADE = "8 t[{0}] = exp(x[{0}])\n8 r[{0}] = exp(x[{0}])\n| y[{0}] = r[{0}]*2"
DOT = heap(x="8", w="8", y="", t="")
PRODUCT = "y[] = 0\n8 t[] = x[{0}]*w[{0}]\n| y[] += t[]"

SCOPES = [
    Case(1, "split_scope y@0 5", XY, COPY, "split-factor"),
    Case(1, "split_scope y@0 64", XY, COPY, "split-factor"),
    Case(1, "split_scope y@0 1", XY, COPY, "split-factor"),
    Case(2, "split_scope y@0 4", XY, "64:p y[{0}] = x[{0}]", "marked", "clear_mark y@0"),
    Case(0, "split_scope y@3 4", XY, COPY, "no-such-place"),
    Case(0, "split_scope q@0 4", XY, COPY, "no-such-place"),
    Case(0, "split_scope y#1@0 4", XY, COPY, "no-such-place"),
    Case(1, "merge_scopes y@0", XY, COPY, "not-perfect"),
    Case(1, "merge_scopes y@0", heap(x="2,4", y="2,4", z="2,4"), "2 4 y[{0},{1}] = x[{0},{1}]\n| 4 z[{0},{1}] = x[{0},{1}]", "not-perfect"),
    Case(2, "merge_scopes y@0", XY, "4:p 16 y[{0}*16+{1}] = x[{0}*16+{1}]", "marked", "clear_mark y@0"),
    Case(2, "merge_scopes y@0", XY, "4 16:v y[{0}*16+{1}] = x[{0}*16+{1}]", "marked", "clear_mark y@1"),
    Case(3, "merge_scopes y@0", X2, ROWS, "not-flat"),
    Case(3, "merge_scopes y@0", heap(x="8", y="8"), "2 4 y[{0}*4+{1}] = x[{0}*4+{1}]*{1}", "not-flat"),
    Case(3, "merge_scopes y@0", heap(x="8", y="8"), "2 4 y[{0}*4+{1}] = x[{0}+{1}]", "not-flat"),
    Case(3, "merge_scopes y@0", heap(x="8", y="8"), "2 4 y[{0}*4+{1}] = x[{0}*4+{1}] if {1} < 3", "not-flat"),
    Case(3, "merge_scopes y@0", heap(x="8", y="8"), "2 4 y[{0}*4+{1}] = x[{0}*4+{1}] !prefetch(x[{0}])", "not-flat"),
    Case(1, "join_scopes y@0", XY, COPY, "no-partner"),
    Case(1, "join_scopes y@0", heap(x="8", y="8", z=""), "8 y[{0}] = x[{0}]\nz[] = x[0]", "no-partner"),
    Case(2, "join_scopes t@0", XTY, "8 t[{0}] = x[{0}]\n2 4 y[{0}*4+{1}] = t[{0}*4+{1}]", "unlike-partner", "split_scope t@0 4"),
    Case(2, "join_scopes t@0", XTY, "8:p t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "unlike-partner", "clear_mark t@0"),
    Case(3, "join_scopes t@0", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[-{0}+7]", "order"),
    Case(3, "join_scopes t@0", XTY, "8:p t[{0}] = x[{0}]\n8:p y[{0}] = t[0]", "order"),
    Case(1, "fission_scope t@0 t", XTY, JOINED, "not-a-later-child"),
    Case(1, "fission_scope t@0 y", XTY, APART, "not-a-later-child"),
    Case(1, "fission_scope t@0 y", XTUY, "8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n| y[{0}] = u[{0}]", "not-a-later-child"),
    Case(2, "fission_scope t#1@0 y", XTY, "8 t[{0}] = x[{0}]\n7 t[{0}] = x[{0}]*2\n| y[{0}] = t[{0}+1]\n1 y[{0}+7] = t[7]", "order"),
    Case(2, "fission_scope t@0 y", heap(x="8", y="8", t="8:N"), JOINED, "clobber", "materialise_dims t 0"),
    Case(2, "fission_scope t@0 y", heap(x="8", y="8", t="8:N stack"), JOINED, "clobber", "materialise_dims t 0"),
    Case(1, "interchange y@0", XY, COPY, "not-perfect"),
    Case(1, "interchange y@0", heap(x="2,4", y="2,4", z="2,4"), "2 4 y[{0},{1}] = x[{0},{1}]\n| 4 z[{0},{1}] = x[{0},{1}]", "not-perfect", "fission_scope y@0 z@1"),
    Case(2, "interchange t#1@0", SQUARE, SKEWED, "order"),
    Case(2, "interchange y#1@0", heap(x="8,4", y=""), "y[] = 0\n8 4 y[] += x[{0},{1}]", "order", policy="strict"),
    Case(3, "interchange y@0", X2, "8:p 16:u y[{0},{1}] = x[{0},{1}]", "parallel-unrolled"),
    Case(3, "interchange y@0", X2, "8 16:v y[{0},{1}] = x[{0},{1}]", "vector-body"),
    Case(1, "reorder y@0", XY, COPY, "no-next"),
    Case(2, "reorder t@0", XTY, APART, "order"),
    Case(2, "reorder y@0", heap(x="8", y="8", z="8", t="8"), "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]\n8 t[{0}] = 2\n8 z[{0}] = t[{0}]", "order"),
    Case(2, "reorder t", XTY, JOINED, "order"),
    Case(2, "reorder y#1", heap(x="8", y=""), "y[] = 0\n8 y[] += x[{0}]\n| y[] *= 2", "order"),
    Case(2, "reorder y#1", heap(x="8", y=""), "y[] = 0\n8 y[] += x[{0}]\n| y[] += 2", "order", policy="strict"),
]  # fmt: skip

EXTENT = [
    Case(1, "cut_scope y@0 64", XY, COPY, "cut-point"),
    Case(1, "cut_scope y@0 0", XY, COPY, "cut-point"),
    Case(2, "cut_scope y@0 32", XY, "64:u y[{0}] = x[{0}]", "marked", "clear_mark y@0"),
    Case(3, "cut_scope t@0 2", heap(x="4,8", y="4,8", t=" stack"), "4 8:p t[] = x[{0},{1}]\n| | y[{0},{1}] = t[]", "race"),
    Case(1, "uncut_scope y@0", XY, COPY, "no-partner"),
    Case(1, "uncut_scope y@0", heap(x="8", y="8"), "7 y[{0}] = x[{0}]\ny[7] = x[7]", "no-partner"),
    Case(1, "uncut_scope y@0", XY, "48:p y[{0}] = x[{0}]\n16 y[{0}+48] = x[{0}+48]", "marked", "clear_mark y@0"),
    Case(1, "uncut_scope y@0", XY, "48 y[{0}] = x[{0}]\n16:p y[{0}+48] = x[{0}+48]", "marked", "clear_mark y#1@0"),
    Case(2, "uncut_scope y@0", XY, "48 y[{0}] = x[{0}]\n16 y[{0}+48] = x[{0}]", "not-continued"),
    Case(2, "uncut_scope y@0", heap(x="8", y="8", z="8"), "4 y[{0}] = x[{0}]\n| z[{0}] = x[{0}]\n4 y[{0}+4] = x[{0}+4]\n4 z[{0}+4] = x[{0}+4]", "not-continued"),
    Case(1, "wrap y 0", heap(x="", y=""), "y[] = x[]", "wrap-size"),
    Case(1, "wrap y 2147483648", heap(x="", y=""), "y[] = x[]", "wrap-size"),
    Case(2, "wrap y#1 2", heap(x="", y=""), "y[] = 0\ny[] += x[]", "not-repeatable"),
    Case(2, "wrap y#1 2", heap(x="", y=""), "y[] = x[]\ny[] = y[]*2", "not-repeatable"),
    Case(2, "wrap t#1@0 2", XTY, "8 t[{0}] = x[{0}]\n7 t[{0}+1] = t[{0}]*2\n8 y[{0}] = t[{0}]", "not-repeatable"),
    Case(1, "unwrap y@0", X2, "1:u 16 y[{0},{1}] = x[{0},{1}]", "marked", "clear_mark y@0"),
    Case(2, "unwrap y@0", XY, COPY, "iterator-used"),
    Case(2, "unwrap y@0", heap(x="", y=""), "4 y[] = x[]*{0}", "iterator-used"),
    Case(2, "unwrap y@0", heap(x="", y=""), "4 y[] = x[] if {0} < 2", "iterator-used"),
    Case(2, "unwrap y#1@0", heap(x="", y=""), "y[] = 0\n4 y[] += x[]", "not-repeatable"),
    Case(1, "pad_scope y@0 64 guard", XY, COPY, "pad-size"),
    Case(1, "pad_scope y@0 2147483648 guard", XY, COPY, "pad-size"),
    Case(2, "pad_scope y@0 128 guard", XY, "64:u y[{0}] = x[{0}]", "marked", "clear_mark y@0"),
    Case(3, "pad_scope t@0 12 free", heap(x="12", y="8", t="8"), APART, "pad-bounds", "pad_dim t 0 12"),
    Case(3, "pad_scope t@0 12 free", heap(x="8", y="8", t="12"), APART, "pad-bounds"),
    Case(3, "pad_scope t@0 12 free", heap(x="8", y="8", t="12"), "8 t[{0}] = x[-{0}+7]\n8 y[{0}] = t[{0}]", "pad-bounds"),
    Case(4, "pad_scope y@0 12 free", heap(x="12", y="12"), "8 y[{0}] = x[{0}]", "pad-output"),
    Case(4, "pad_scope t#1@0 12 free", heap(x="12", y="12", t="12"), "12 t[{0}] = 0\n8 t[{0}] = x[{0}]\n12 y[{0}] = t[{0}]", "pad-touches"),
    Case(4, "pad_scope t#1@0 12 free", heap(x="12", y="8", t="8"), "8 t[{0}] = 0\n8 t[0] += x[{0}]\n8 y[{0}] = t[{0}]", "pad-touches"),
    Case(4, "pad_scope t#1@0 6 free", heap(x="8", y="8", t="8", u="8"), "8 t[{0}] = x[{0}]\n4 t[{0}] = 3\n| u[{0}] = t[{0}+2]\n4 y[{0}] = u[{0}]", "pad-touches"),
    Case(1, "unpad_scope y@0 64", XY, COPY, "pad-size"),
    Case(1, "unpad_scope y@0 0", XY, COPY, "pad-size"),
    Case(2, "unpad_scope y@0 32", XY, "64:u y[{0}] = x[{0}] if {0} < 32", "marked", "clear_mark y@0"),
    Case(3, "unpad_scope y@0 32", XY, COPY, "pad-output"),
    Case(3, "unpad_scope t@0 4", XTY, APART, "pad-touches"),
    Case(1, "drop_guard y", XY, COPY, "no-guard"),
    Case(2, "drop_guard y", XY, "64 y[{0}] = x[{0}] if {0} < 48", "guard-holds-not", "cut_scope y@0 48"),
    Case(2, "drop_guard y", XY, "64 y[{0}] = x[{0}] if {0} >= 48", "guard-holds-not"),
    Case(2, "drop_guard y", XY, "64 y[{0}] = x[{0}] if {0} == 0", "guard-holds-not"),
    Case(2, "drop_guard y", XY, "64 y[{0}] = x[{0}] if {0} < 64 and {0} < 48", "guard-holds-not"),
]  # fmt: skip

SHARED = "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap -> t, u"
CHAIN = "8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n8 y[{0}] = u[{0}]"
STORAGE = [
    Case(1, "reuse_dims y 0", XTY, APART, "interface"),
    Case(1, "reuse_dims x 0", XTY, APART, "interface"),
    Case(2, "reuse_dims t 3", XTY, APART, "no-such-dim"),
    Case(2, "reuse_dims t 0", heap(x="8", y="8", t="8:N"), JOINED, "not-materialised"),
    Case(3, "reuse_dims t 0", XTY, APART, "clobber", "join_scopes t@0"),
    Case(3, "reuse_dims t 0", heap(x="8", y="8", t="8 stack"), APART, "clobber", "join_scopes t@0"),
    Case(3, "reuse_dims t 0", XTY, "8:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "race", "reuse_dims t 0 stack"),
    Case(3, "reuse_dims t 0", heap(x="8", y="8", t="2"), "8 t[0] = x[{0}]\n| t[1] = x[{0}]*2\n| y[{0}] = t[0]", "clobber"),
    Case(3, "reuse_dims t 0 stack", XTY, "8 t[{0}] = x[{0}]\n| 8 y[{1}] = t[{1}]", "lifetime"),
    Case(3, "reuse_dims t 0", heap(x="8", y="8", t="8", u="8"), "8 t[{0}] = x[{0}] if {0} >= 4\n| y[{0}] = t[{0}]*2 if {0} >= 3\n| t[{0}] = x[{0}]", "undefined"),
    Case(0, "reuse_dims q 0", XTY, APART, "no-such-place"),
    Case(0, "reuse_dims u 0", SHARED, CHAIN, "no-such-place"),
    Case(1, "materialise_dims t 0", XTY, APART, "not-reused"),
    Case(1, "materialise_dims t 1", XTY, APART, "not-reused"),
    Case(2, "materialise_dims t 0", heap(x="8", y="8", t="8:N register"), JOINED, "register-index"),
    Case(2, "materialise_dims t 0", heap(x="600000", y="600000", t="600000:N stack"), "600000 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "stack-size"),
    Case(1, "set_location y stack", XTY, APART, "interface"),
    Case(2, "set_location t heap", XTY, APART, "same-location"),
    Case(2, "set_location t shared", XTY, APART, "location-unknown"),
    Case(3, "set_location t register", XTY, JOINED, "register-index", "unroll t@0"),
    Case(3, "set_location t register", XTY, JOINED, "register-index", "reuse_dims t 0"),
    Case(3, "set_location t register", heap(x="2048", y="2048", t="2048"), "2048 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "register-size", "reuse_dims t 0"),
    Case(3, "set_location t register", heap(x="8", y="8", t="8,1"), "8:v t[{0},0] = x[{0}]\n8:v y[{0}] = t[{0},0]", "register-index"),
    Case(3, "set_location t stack", heap(x="300000", y="300000", t="300000"), "300000 t[{0}] = x[{0}]\n300000 y[{0}] = t[{0}]", "stack-size"),
    Case(4, "set_location t stack", XTY, "8 t[{0}] = x[{0}]\n| y[{0}] = t[0]", "lifetime"),
    # What is not surely set before it is read, and is written afterwards.
    Case(4, "set_location t stack", heap(x="4", y="4", t="4"), "4 3 t[{0}] = x[{0}] if {1} >= 3\n4 y[{0}] = t[{0}]\n4 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="4", y="4,4", t="4,4"), "4 t[{0},{0}] = x[{0}]\n4 4 y[{0},{1}] = t[{0},{1}]\n4 4 t[{0},{1}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="4", y="4", t="8"), "4 t[{0}*2] = x[{0}]\n4 y[{0}] = t[{0}*2+1]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="4", y="4", t="8"), "3 t[{0}*2] = x[{0}]\n4 y[{0}] = t[{0}*2]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="3", y="3", t="11"), "3 2 t[{0}*3+{1}*4] = x[{0}]\n3 y[{0}] = t[{0}*3]\n11 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="4", y="3,2", t="12"), "3 t[{0}*3] = x[{0}]\n3 2 y[{0},{1}] = t[{0}*3+{1}*3]\n12 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8", y="8", t="8"), "4 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8", y="8", t="8"), "4 t[{0}+4] = x[{0}]\n8 y[{0}] = t[{0}]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8", y="8", t="8"), "8 t[{0}] = x[{0}] if {0} == 3\n8 y[{0}] = t[{0}]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8", y="8", t="8"), "8 2 t[{0}] = x[{0}] if {0}+{1} < 8\n8 y[{0}] = t[{0}]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8,8", y="8", t="8"), "8 8 t[{1}] = x[{0},{1}] if {0}+{1} == 20\n8 y[{0}] = t[{0}]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8", y="8", t="8"), "8 t[{0}] = x[{0}]\n| y[{0}] = t[-{0}+7]\n8 t[{0}] = 2", "undefined"),
    Case(4, "set_location t stack", heap(x="8", y="8", t="8"), "8 y[{0}] = t[{0}]\n8 t[{0}] = x[{0}]", "undefined"),
    Case(4, "set_location t heap", heap(x="8", y="8", t="8:N stack"), "8:p t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "race"),
    Case(1, "share_buffer t t", XTY, APART, "unlike-buffers"),
    Case(1, "share_buffer t u", XTY + "\nu f32 [8] stack", CHAIN, "unlike-buffers"),
    Case(1, "share_buffer t u", XTY.replace("y f32", "y f64") + "\nu f64 [8] heap", CHAIN, "unlike-buffers"),
    Case(1, "share_buffer t u", XTY + "\nu f32 [9] heap", CHAIN, "unlike-buffers"),
    Case(2, "share_buffer t x", XTY, APART, "interface"),
    Case(2, "share_buffer y x", XTY, APART, "interface"),
    Case(2, "share_buffer y z", heap(x="8", y="8", z="8"), "8 y[{0}] = x[{0}]\n8 z[{0}] = y[{0}]", "interface"),
    Case(3, "share_buffer t u", heap(x="8", w="8", y="8", t="8", u="8"), "8 t[{0}] = x[{0}]\n8 u[{0}] = w[{0}]\n8 y[{0}] = t[{0}] + u[{0}]", "clobber"),
    Case(3, "share_buffer t y", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[-{0}+7]", "clobber"),
    Case(3, "share_buffer t y", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = x[{0}]\n8 y[{0}] += t[{0}]", "clobber"),
    Case(1, "unshare_buffer t", XTY, APART, "not-shared"),
    Case(1, "unshare_buffer y", "x f32 [8] heap\ny f32 [8] heap -> t, y", APART, "not-shared"),
    Case(1, "unshare_buffer q", XTY, APART, "not-shared"),
    Case(2, "unshare_buffer t", SHARED, CHAIN, "name-taken"),
    Case(3, "unshare_buffer u", "x f32 [200000] heap\ny f32 [200000] heap\nt f32 [200000] stack -> t, u", CHAIN.replace("8", "200000"), "stack-size"),
    Case(0, "split_dim t 1 4", XTY, APART, "no-such-dim"),
    Case(1, "split_dim t 0 3", XTY, APART, "split-factor"),
    Case(1, "split_dim t 0 1", XTY, APART, "split-factor"),
    Case(1, "split_dim t 0 8", XTY, APART, "split-factor"),
    Case(2, "split_dim t 0 4", XTY, APART, "not-decomposed"),
    Case(2, "split_dim x 0 4", heap(x="16", y="2,4"), "2 4 y[{0},{1}] = x[{0}*4+{1}+2]", "not-decomposed"),
    Case(2, "split_dim x 0 4", heap(x="16", y="2,4"), "2 4 y[{0},{1}] = x[{0}*4-{1}+4]", "not-decomposed"),
    Case(2, "split_dim x 0 8", heap(x="16", y="16"), "16 y[{0}] = 0\n12 y[{0}] = x[{0}] if {0} < 10", "not-decomposed"),
    Case(1, "merge_dims t 0", XTY, APART, "no-such-dim"),
    Case(2, "merge_dims t 0", heap(x="8,16", y="8,16", t="8:N,16"), "8 16 t[{0},{1}] = x[{0},{1}]\n| 16 y[{0},{1}] = t[{0},{1}]", "unlike-dims"),
]  # fmt: skip

XTY2 = heap(x="8,16", y="8,16", t="8,16")
APART2 = "8 16 t[{0},{1}] = x[{0},{1}]\n8 16 y[{0},{1}] = t[{0},{1}]"
LAYOUT = [
    Case(0, "zero_fill q", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "no-such-place"),
    Case(1, "zero_fill y", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "interface"),
    Case(1, "zero_fill t", heap(x="8", y="8") + "\nt f32 [8] heap -> t, u", "8 t[{0}] = x[{0}]\n8 u[{0}] = t[{0}]\n8 y[{0}] = u[{0}]", "not-shared"),
    Case(2, "zero_fill t", heap(x="8", y="8", t="8 stack"), "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "not-materialised"),
    Case(2, "zero_fill t", heap(x="8", y="8", t="8:N heap"), "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]", "not-materialised"),
    Case(1, "swap_dims x 0 1", XTY2, APART2, "interface"),
    Case(2, "swap_dims t 2 1", XTY2, APART2, "no-such-dim"),
    Case(2, "swap_dims t 0 2", XTY2, APART2, "no-such-dim"),
    Case(2, "swap_dims t 0 1", heap(x="8", y="8", t=""), "8 t[] = x[{0}]\n| y[{0}] = t[]", "no-such-dim"),
    Case(2, "swap_dims t 1 1", XTY2, APART2, "same-dim"),
    Case(3, "swap_dims t 0 1", XTY2, APART2.replace("16 t[", "16:v t["), "vector-stride"),
    Case(3, "swap_dims t 0 1", heap(x="2,16", y="2,16", t="2,16 register"), "2:u 16:v t[{0},{1}] = x[{0},{1}]\n| 16:v y[{0},{1}] = t[{0},{1}]", "vector-stride"),
    Case(1, "pad_dim y 0 9", XTY, APART, "interface"),
    Case(2, "pad_dim t 1 9", XTY, APART, "no-such-dim"),
    Case(2, "pad_dim t 0 8", XTY, APART, "pad-size"),
    Case(2, "pad_dim t 0 2147483648", XTY, APART, "pad-size"),
    Case(3, "pad_dim t 0 300000", heap(x="8", y="8", t="8 stack"), APART, "stack-size"),
    Case(3, "pad_dim t 0 2000", heap(x="8", y="8", t="8 register"), APART.replace("8 t", "8:u t").replace("8 y", "8:u y"), "register-size"),
    Case(1, "unpad_dim x 0 8", heap(x="9", y="8"), "8 y[{0}] = x[{0}]", "interface"),
    Case(2, "unpad_dim t 1 7", XTY, APART, "no-such-dim"),
    Case(2, "unpad_dim t 0 8", XTY, APART, "pad-size"),
    Case(2, "unpad_dim t 0 0", XTY, APART, "pad-size"),
    Case(3, "unpad_dim t 0 7", XTY, APART, "dim-used"),
    Case(3, "unpad_dim t 0 7", XTY, "8 t[{0}] = x[{0}] if {0} < 7\n8 y[{0}] = t[{0}]", "dim-used"),
    Case(1, "expand_dim y y@0", XTY, APART, "interface"),
    Case(2, "expand_dim t t@0", XTY, APART, "used-outside"),
    Case(3, "expand_dim t t@0", heap(x="8", y="8", t="9"), "8 t[{0}+1] = x[{0}]\n| y[{0}] = t[1]", "carried"),
    Case(3, "expand_dim t t@0", heap(x="8", y="8", t=""), "8 t[] = x[{0}] if {0} < 1\n| y[{0}] = t[]", "carried"),
    Case(0, "expand_dim t q@0", XTY, APART, "no-such-place"),
    Case(1, "drop_dim x 0", heap(x="1,8", y="8"), "8 y[{0}] = x[0,{0}]", "interface"),
    Case(2, "drop_dim t 1", XTY, APART, "no-such-dim"),
    Case(2, "drop_dim t 0", XTY, JOINED, "dim-materialised", "reuse_dims t 0"),
]  # fmt: skip

STAGED = heap(x="8", y="4,8", t="8")
COPIES = [
    Case(1, "stage_read x y@0 w", RATIO, RATIOS, "name-taken"),
    Case(1, "stage_read x y@0 b", "x f32 [8] heap\ny f32 [8] heap\nb f32 [8] heap -> t, u", CHAIN, "name-taken"),
    Case(1, "stage_read x t@0 u", SHARED, CHAIN, "name-taken"),
    *[Case(1, f"stage_read x y@0 {word}", RATIO, RATIOS, "name-taken") for word in sorted(RESERVED)],
    Case(0, "stage_read q y@0 p", XTY, APART, "no-such-place"),
    Case(0, "stage_read x q@0 p", XTY, APART, "no-such-place"),
    Case(2, "stage_read x y@0 p", XTY, APART, "not-read"),
    Case(3, "stage_read x y@0 p", heap(x="8,8", y="8,8"), "8 8 y[{0},{1}] = x[{0},{1}] + x[{1},{0}]", "unlike-accesses"),
    Case(4, "stage_read x y@0 p", heap(x="8", y="4,8"), "4 8 y[{0},{1}] = x[{0}*4+{1}] if {0} < 1", "hull-bounds"),
    Case(4, "stage_read x y@0 p", heap(x="8", y="4,8"), "4 8 y[{0},{1}] = x[{0}*4+{1}-12] if {0} >= 3", "hull-bounds"),
    Case(5, "stage_read t y@0 p", STAGED, "8 t[{0}] = x[{0}]\n4 t[{0}] = 2\n| 8 y[{0},{1}] = t[{1}]", "stale"),
    Case(5, "stage_read t t#1@0 p", XTY, "8 t[{0}] = x[{0}]\n1 7 t[{1}+1] = t[{1}]\n8 y[{0}] = t[{0}]", "stale"),
    Case(1, "stage_write y y@0 x", SUM, ROWSUM, "name-taken"),
    Case(1, "stage_write x y@0 t", SUM, ROWSUM, "interface"),
    Case(0, "stage_write q y@0 t", SUM, ROWSUM, "no-such-place"),
    Case(2, "stage_write t y@0 u", XTY, APART, "not-written"),
    Case(3, "stage_read x y@0 p", heap(x="15", y="8,8"), "8 8 y[{0},{1}] = x[{1}] + x[{0}+{1}]", "unlike-accesses"),
    Case(3, "stage_read x y@0 p", heap(x="32", y="8,4"), "8 4 y[{0},{1}] = x[{0}*4+{1}]*x[{0}*2+{1}]", "unlike-accesses"),
    Case(3, "stage_write t t#1@0 u", heap(x="4,4", y="4,4", t="4,4"), "4 4 t[{0},{1}] = x[{0},{1}]\n4 4 t[{0},{1}] = t[{1},{0}]\n4 4 y[{0},{1}] = t[{0},{1}]", "unlike-accesses"),
    Case(4, "stage_write y y@0 t", heap(x="4", y="16"), "4 4 y[{0}+{1}*4] = x[{0}]", "not-dense"),
    Case(4, "stage_write y y#1@0 t", heap(x="8,8", y="8,8"), "8 8 y[{0},{1}] = x[{0},{1}]\n8 8 y[{0},{1}] = 0 if {1} < {0}", "not-dense"),
    Case(4, "stage_write y y#1@0 t", heap(x="8,8", y="8,8"), "8 8 y[{0},{1}] = x[{0},{1}]\n8 4 y[{0},{1}] = y[{0},{1}+4]", "not-dense"),
    Case(4, "stage_write y y#1@0 t", heap(x="4,4,4", y="4,4,4"), "4 4 4 y[{0},{1},{2}] = x[{0},{1},{2}]\n4 4 y[{0},{1},{1}] = 0", "not-dense"),
    Case(0, "elide_copy q", TILE, TILED, "no-such-place"),
    Case(1, "elide_copy y", TILE, TILED, "no-copy"),
    Case(1, "elide_copy y", XTY, APART, "no-copy"),
    Case(1, "elide_copy t", XTY, TWICE + "*2", "no-copy"),
    Case(1, "elide_copy t", SHARED, CHAIN, "no-copy"),
    Case(1, "elide_copy t", XTY, "8 t[{0}] = 0\n8 y[{0}] = t[{0}]*x[{0}]", "no-copy"),
    Case(1, "elide_copy t", XTY, "8 t[{0}] = 0\n| t[{0}] += x[{0}]\n8 y[{0}] = t[{0}]*2", "no-copy"),
    Case(1, "elide_copy t", XTY, "8 t[{0}] = x[{0}] if {0} < 8\n8 y[{0}] = t[{0}]*2", "no-copy"),
    Case(2, "elide_copy p", TILE, "4 16 p[{0},{1}] = x[{0},{1}]\n| 16 p[{0},{1}] = p[{0},{1}]*2\n| 8 16 y[{0},{1},{2}] = p[{0},{2}]*w[{1}]", "changed-since"),
    Case(2, "elide_copy p", TILE, "4 8 p[{0},{1}] = x[{0},{1}]\n| 8 p[{0},{1}+8] = x[{0},{1}+8]\n| 8 16 y[{0},{1},{2}] = p[{0},{2}]*w[{1}]", "changed-since"),
    Case(2, "elide_copy t", heap(x="8", y="8", t="1"), "t[0] = x[0]\n8 y[{0}] = t[0]*x[{0}]", "changed-since"),
    Case(2, "elide_copy p", heap(x="8", y="", p="8:N"), "8 p[{0}] = x[{0}]\ny[] = p[7]", "changed-since"),
    Case(2, "elide_copy t", XTUY, "8 u[{0}] = x[{0}]\n8 t[{0}] = u[{0}]\n8 u[{0}] = x[{0}]*2\n8 y[{0}] = t[{0}] + u[{0}]", "changed-since"),
    Case(2, "elide_copy t", heap(x="8", y="8", t="8:N"), "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}] + x[{0}]", "changed-since"),
    Case(2, "elide_copy t", XTY, "8 t[-{0}+7] = x[{0}]\n8 y[{0}] = t[{0}]*2", "changed-since"),
    Case(2, "elide_copy t", heap(x="8", y="8", t="8"), "2 4 t[{0}*4+{1}] = x[{0}*4+{1}]\n8 y[{0}] = t[{0}]*2", "changed-since"),
    Case(2, "elide_copy t", heap(x="8", y="8", t="9"), APART, "changed-since"),
]  # fmt: skip

VALUES = [
    Case(1, "forward y t", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = x[{0}]", "not-read"),
    Case(1, "forward y t", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}] + t[0]", "not-read"),
    Case(2, "forward y t", heap(x="2,8", y="12", t="12"), "2 8 t[{0}*4+{1}] = x[{0},{1}]\n3 4 y[{0}*4+{1}] = t[{0}*4+{1}]*2", "not-one-definition"),
    Case(2, "forward y t", heap(x="12,1", y="3", t="12"), "1 12 t[{0}*4+{1}] = x[{1},{0}]\n3 y[{0}] = t[{0}*4]*2", "not-one-definition"),
    Case(2, "forward y t", heap(x="3,8", y="3", t="16"), "3 8 t[{0}*4+{1}] = x[{0},{1}] if {1} >= 4\n2 y[{0}] = t[{0}*4+4]*2\ny[2] = 1", "not-one-definition"),
    Case(4, "forward y t", heap(x="8", y="8", t="8"), "8 t[{0}] = 2\n8 y[{0}] = {0}*t[{0}]\n8 y[{0}] += x[{0}]", "no-array"),
    Case(2, "forward y t", XTY, "4 t[{0}] = x[{0}]\n4 t[{0}+4] = x[{0}]\n8 y[{0}] = t[{0}]", "not-one-definition"),
    Case(2, "forward y t", heap(x="2,4", y="4", t="8"), "2 4 t[{0}*4+{1}] = x[{0},{1}]\n4 y[{0}] = t[{0}*2]", "not-one-definition"),
    Case(2, "forward y t", heap(x="2,4", y="4", t="8"), "2 4 t[{0}*4+{1}] = x[{0},{1}]\n4 y[{0}] = t[-{0}+4]", "not-one-definition"),
    Case(2, "forward y t", XTY, TWICE, "not-a-copy"),
    Case(2, "forward y t", XTY, "8 t[{0}] = {0}\n8 y[{0}] = t[{0}]*x[{0}]", "not-a-copy"),
    Case(2, "forward y t", XTY, "8 t[{0}] = 0\n8 t[{0}] += x[{0}]\n8 y[{0}] = t[{0}]", "not-a-copy"),
    Case(2, "forward y t", "x f32 [8] heap\ny f64 [8] heap\nt f64 [8] heap", APART, "other-dtype"),
    Case(2, "forward y t", "x i8 [8] heap\ny f32 [8] heap\nt i8 [8] heap", "8 t[{0}] = 1\n8 y[{0}] = t[{0}]", "inexact"),
    Case(2, "forward y t", heap(x="8", y="8", t="8").replace("f32", "bf16"), "8 t[{0}] = 0.1\n8 y[{0}] = t[{0}]*x[{0}]", "inexact"),
    Case(2, "forward y t", "x f64 [8] heap\ny f32 [8] heap\nt f32 [8] heap", "8 t[{0}] = 0.1\n8 y[{0}] = t[{0}] < x[{0}]", "inexact"),
    Case(2, "forward y t", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap", "8 t[{0}] = 300\n8 y[{0}] = i8(t[{0}])", "inexact"),
    Case(2, "forward y t", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap", "8 t[{0}] = nan\n8 y[{0}] = isnan(t[{0}])", "inexact"),
    Case(2, "forward y t", "x bool [8] heap\ny bool [8] heap\nt bool [8] heap", "8 t[{0}] = 2\n8 y[{0}] = t[{0}] - x[{0}]", "inexact"),
    Case(2, "forward y t", heap(x="8", y="8", t="8"), "8 t[{0}] = 1e-50\n8 y[{0}] = select(t[{0}],x[{0}],2)", "inexact"),
    Case(3, "forward y t", XTUY, "8 u[{0}] = x[{0}]\n8 t[{0}] = u[{0}]\n8 u[{0}] = 2\n8 y[{0}] = t[{0}] + u[{0}]", "changed-between"),
    Case(5, "forward y t", "x f32 [8] heap\ny f32 [8] heap\nt i32 [8] heap", "8 t[{0}] = 2\n8 y[{0}] = x[t[{0}]]", "index-form"),
    Case(5, "forward y t", "x f32 [8] heap\nw u8 [256] heap\ny f32 [8] heap\nt u8 [8] heap\nu u8 [8] heap", "8 u[{0}] = {0}\n8 t[{0}] = w[u[{0}]]\n8 y[{0}] = w[t[{0}]]", "index-form"),
    Case(0, "forward q t", XTY, APART, "no-such-place"),
    Case(1, "recompute y t x", XTY, APART, "name-taken"),
    Case(1, "recompute y t r", XTY, "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}] + t[0]", "not-read"),
    Case(2, "recompute y t r", XTY, "4 t[{0}] = x[{0}]\n4 t[{0}+4] = x[{0}]\n8 y[{0}] = t[{0}]", "not-one-definition"),
    Case(2, "recompute y t r", XTY, "8 t[{0}] = x[{0}]\n8 t[{0}] += x[{0}]\n8 t[{0}] += 2\n8 y[{0}] = t[{0}]", "not-one-reduction"),
    Case(2, "recompute y t r", XTY, "4 t[{0}] = 0\n4 t[{0}+4] = 0\n8 t[{0}] += x[{0}]\n8 y[{0}] = t[{0}]", "not-one-reduction"),
    Case(2, "recompute y t r", XTY, "t[0] = 0\n8 t[0] += x[{0}]\n| y[{0}] = t[0]", "not-one-reduction"),
    Case(2, "recompute y t r", XTY, "t[0] = 0\n8 t[0] += x[{0}] if {0} >= 5\n8 y[{0}] = t[0]", "not-one-reduction"),
    Case(2, "recompute y t r", XTY, "8 t[0] = 0\n| t[0] += x[{0}]\n8 y[{0}] = t[0]", "not-one-reduction"),
    Case(2, "recompute y t r", heap(x="12", y="8", t="9"), "9 t[{0}] = 0\n4 3 t[{0}*2+{1}] += x[{0}*3+{1}]\n4 2 y[{0}*2+{1}] = t[{0}*2+{1}]", "not-one-reduction"),
    Case(2, "recompute y t r", heap(x="2,2,2", y="2", t="9"), "9 t[{0}] = 0\n2 2 2 t[{0}*4+{1}*3+{2}] += x[{0},{1},{2}]\n2 y[{0}] = t[{0}*4]*2", "not-one-definition"),
    Case(2, "recompute y t r", heap(x="1,3", y="3", t="12"), "12 t[{0}] = 0\n1 3 t[{0}*4+{1}*4] += x[{0},{1}]\n3 y[{0}] = t[{0}*4]*2", "not-one-definition"),
    Case(2, "recompute y t r", heap(x="3", y="2", t="2"), "1 2 t[{0}+{1}] = exp(x[{0}+1])\n2 y[{0}] = t[{0}]*2", "not-one-definition"),
    Case(3, "recompute y t r", XTY, "8 t[{0}] = x[{0}]\n8 t[{0}] = t[{0}]*3\n8 y[{0}] = t[{0}]", "changed-between"),
    Case(3, "recompute y t r", heap(x="9", y="8", t="9"), "9 t[{0}] = x[{0}]\n8 t[{0}] = t[{0}+1]*2\n8 y[{0}] = t[{0}]", "changed-between"),
    Case(3, "recompute y t r", XTUY, "8 u[{0}] = x[{0}]\n8 t[{0}] = exp(u[{0}])\n8 u[{0}] = 2\n8 y[{0}] = t[{0}] + u[{0}]", "changed-between"),
    Case(3, "recompute y t r", XTUY, "8 t[{0}] = 0\n| 8 t[{0}] += u[{1}]\n8 u[{0}] = 2\n8 y[{0}] = t[{0}] + u[{0}]", "changed-between"),
    Case(3, "recompute y t r", XTUY, "8 u[{0}] = x[{0}]\n8 t[{0}] = 0\n| 7 t[{0}] += u[{1}]\n| u[0] = 3\n8 y[{0}] = t[{0}] + u[{0}]", "changed-between"),
    Case(4, "recompute y t r", XTY, "8 t[{0}] = x[{0}]*2\n8:v y[{0}] = t[{0}]", "marked"),
    Case(0, "use_kept r q", AGAIN, REMADE, "no-such-place"),
    Case(0, "use_kept q t", AGAIN, REMADE, "no-such-place"),
    Case(1, "use_kept r t", AGAIN, "8 t[{0}] = exp(x[{0}])\n8 r[{0}] = exp(x[{0}])\n| t[{0}] = x[{0}]\n| y[{0}] = r[{0}]*2", "not-recomputed"),
    Case(1, "use_kept t x", XTY, "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]\n8 y[{0}] += t[{0}]", "not-recomputed"),
    Case(1, "use_kept y t", heap(x="8", y="8", z="8", t="8"), "8 t[{0}] = exp(x[{0}])\n8 y[{0}] = exp(x[{0}])\n| z[{0}] = y[{0}] + t[{0}]", "not-recomputed"),
    Case(1, "use_kept r t", heap(x="8", y="8", t="8", r="8:N stack"), "8 t[{0}] = exp(x[{0}])\n8 r[{0}] += exp(x[{0}])\n| y[{0}] = r[{0}]*2", "not-recomputed"),
    Case(1, "use_kept r t", AGAIN, "8 t[{0}] = exp(x[{0}])\n8 r[{0}] = exp(x[{0}])\n| y[{0}] = r[{0}] + r[0]", "not-recomputed"),
    Case(1, "use_kept r t", "x f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap\nr f32 [8] heap -> q, r", "8 q[{0}] = x[{0}]\n8 t[{0}] = exp(q[{0}])\n8 r[{0}] = exp(x[{0}])\n| y[{0}] = r[{0}]*2", "not-recomputed"),
    Case(1, "use_kept r x", heap(x="8", y="8", z="8", r="8"), "8 y[{0}] = r[{0}]\n| z[{0}] = r[{0}] + x[{0}]", "not-recomputed"),
    Case(1, "use_kept r t", AGAIN, "8 t[{0}] = exp(x[{0}])\n8 r[{0}] = exp(x[{0}])\n| r[{0}] = r[{0}]*2\n8 y[{0}] = t[{0}]", "not-recomputed"),
    Case(2, "use_kept r t", heap(x="8", y="8", t="8", r="8 stack"), REMADE, "not-the-same"),
    Case(2, "use_kept r x", AGAIN, REMADE, "not-the-same"),
    Case(2, "use_kept r t", AGAIN, REMADE.replace("exp", "tanh", 1), "not-the-same"),
    Case(2, "use_kept r t", AGAIN, REMADE.replace("exp(x[{0}])", "exp(x[-{0}+7])", 1).replace("t[{0}] = exp(x[-{0}+7])", "t[-{0}+7] = exp(x[-{0}+7])"), "not-the-same"),
    Case(2, "use_kept r t", heap(x="8", y="8", t="8", r="8:N stack"), "7 t[{0}] = exp(x[{0}])\n8 r[{0}] = exp(x[{0}])\n| y[{0}] = r[{0}]", "not-the-same"),
    Case(2, "use_kept r t", AGAIN, "8 t[{0}] = exp(x[{0}])\n8 t[{0}] = 2\n8 r[{0}] = exp(x[{0}])\n| y[{0}] = r[{0}]*2", "not-the-same"),
    Case(1, "contract y#1 t", DOT, PRODUCT.replace("+=", "max="), "not-a-sum"),
    Case(1, "contract y#1 t", DOT, PRODUCT.replace("+= t[]", "+= t[]*2"), "not-a-sum"),
    Case(1, "contract y#1 t", DOT, PRODUCT.replace("+= t[]", "+= x[{0}]"), "not-a-sum"),
    Case(1, "contract y t", XTY, TWICE + " + t[{0}]", "not-a-sum"),
    Case(1, "contract y t", XTY, TWICE + " - 1", "not-a-sum"),
    Case(1, "contract y t", XTY.replace("f32", "i32"), TWICE + " + 1", "not-a-sum"),
    Case(1, "contract y t", XTY, TWICE + " + 1", "policy", policy="strict"),
    Case(1, "contract y#1 t", DOT, PRODUCT, "policy", policy="strict"),
    Case(2, "contract y#1 t", heap(x="8", w="8", y="", t="8"), "y[] = 0\n4 t[{0}] = x[{0}]*w[{0}]\n4 t[{0}+4] = x[{0}]*w[{0}]\n8 y[] += t[{0}]", "not-one-definition"),
    Case(2, "contract y t", heap(x="3", y="2", t="2"), "1 2 t[{0}+{1}] = x[{0}+1]*2\n2 y[{0}] = t[{0}] + x[{0}]", "not-one-definition"),
    Case(2, "contract y#1 t", DOT, PRODUCT.replace("*w", " + w"), "not-a-product"),
    Case(2, "contract y#1 t", DOT, "y[] = 0\nt[] = 1\n8 t[] *= x[{0}]*w[{0}]\n| y[] += t[]", "not-a-product"),
    Case(2, "contract y#1 z", heap(x="8", w="8", y="", z=""), PRODUCT.replace("t[", "z["), "not-a-product"),
    Case(2, "contract y#1 t", DOT.replace("y f32", "y f64"), PRODUCT, "other-dtype"),
    Case(3, "contract y#1 t", heap(x="4", y="4", t="4"), "4 t[{0}] = x[{0}]\n4 y[{0}] = 0\n4 t[{0}] = t[{0}]*3\n4 y[{0}] += t[{0}]", "changed-between"),
    Case(3, "contract y#1 t", heap(x="8", w="8", y="8", t="8", u="8"), "8 u[{0}] = x[{0}]\n8 y[{0}] = 0\n8 t[{0}] = u[{0}]*w[{0}]\n8 u[{0}] = 2\n8 y[{0}] += t[{0}]\n8 y[{0}] += u[{0}]", "changed-between"),
    Case(4, "contract y#1 t", heap(x="8", w="8", y="", t="", z="8"), PRODUCT + "\n| z[{0}] = t[]", "used-elsewhere"),
    Case(4, "contract t#1 t", XTY, TWICE.replace("8 y[{0}] =", "8 t[{0}] = x[{0}] +") + "\n8 y[{0}] = x[{0}]", "used-elsewhere"),
    Case(4, "contract y#1 t", "x f32 [8] heap\nw f32 [8] heap\ny f32 [8] heap\nt f32 [8] heap -> t, u", "8 u[{0}] = x[{0}]\n8 y[{0}] = u[{0}]\n8 t[{0}] = x[{0}]*w[{0}]\n8 y[{0}] += t[{0}]", "used-elsewhere"),
    Case(1, "expand y#1 t", SUM, ROWSUM, "not-a-product"),
    Case(1, "expand y#1 t", heap(x="8", w="8", y=""), "y[] = 0\n8 y[] max= x[{0}]*w[{0}]", "not-a-product"),
    Case(1, "expand y#1 t", heap(x="8", w="8", y=""), "y[] = 0\n8 y[] += x[{0}]*w[{0}]", "policy", policy="strict"),
    Case(1, "expand y t", XY, "64 y[{0}] = x[{0}]*3", "not-a-product"),
    Case(1, "expand y t", XY, "64 y[{0}] = fma({0},2,x[{0}])", "not-a-product"),
    Case(1, "expand y t", XY.replace("f32", "i32"), "64 y[{0}] = fma(x[{0}],2,1)", "not-a-product"),
    Case(1, "expand y t", XY, "64 y[{0}] = fma(x[{0}],2,1)", "policy", policy="strict"),
    Case(2, "expand y#1 x", heap(x="8", w="8", y=""), "y[] = 0\n8 y[] += x[{0}]*w[{0}]", "name-taken"),
    Case(3, "expand y#1 t", heap(x="8", w="8", y=""), "y[] = 0\n8:v y[] += x[{0}]*w[{0}]", "marked"),
    Case(1, "drop_dead y", XY, COPY, "last-operation"),
    Case(2, "drop_dead t", XTY, APART, "seen"),
    Case(2, "drop_dead y", XTY, APART, "seen"),
    Case(2, "drop_dead t", XTY, "8 t[{0}] = x[{0}]\n4 t[{0}] = 2\n8 y[{0}] = t[{0}]", "seen"),
    Case(2, "drop_dead t#1", XTY, "8 t[{0}] = x[{0}]\n8 t[{0}] = 2\n8 y[{0}] = t[{0}]", "seen"),
    Case(2, "drop_dead t", heap(x="8", y="7", t="9"), "8 t[{0}] = x[{0}]\n| t[{0}+1] = x[{0}]*2\n7 y[{0}] = t[{0}+1]", "seen"),
    Case(2, "drop_dead t", XTY, "8 t[{0}] = x[{0}]\n8 t[{0}] += 2\n8 y[{0}] = t[{0}]", "seen"),
]  # fmt: skip

REDUCTIONS = [
    Case(1, "split_reduction y@0 p", XY, COPY, "no-reduction"),
    Case(1, "split_reduction y#1@1 p", SUM, ROWSUM, "policy", policy="strict"),
    Case(2, "split_reduction y#1@0 p", SUM, ROWSUM, "target-uses"),
    Case(3, "split_reduction y#1@1 p", heap(x="8,64", y="8"), "8 64 y[{0}] += x[{0},{1}]\n| | y[{0}] += x[{0},{1}]", "touched"),
    Case(3, "split_reduction y#1@0 p", heap(x="8", y="", z="8"), "y[] = 0\n8 y[] += x[{0}]\n| z[{0}] = y[]", "touched"),
    Case(3, "split_reduction y#1@0 p", heap(x="8", y="", z=""), "y[] = 0\n8 y[] += x[{0}]\n| z[] = y[]", "touched"),
    Case(4, "split_reduction y#1@1 p", heap(x="8,4,16", y="8"), "8 y[{0}] = 0\n8 4 16 y[{0}] += x[{0},{1},{2}] if {2} < 5", "guard"),
    Case(5, "split_reduction y#1@1 x", SUM, ROWSUM, "name-taken"),
    Case(0, "split_reduction y#1@2 p", SUM, ROWSUM, "no-such-place"),
    Case(0, "merge_reduction q", PARTIALS, PARTIAL, "no-such-place"),
    Case(1, "merge_reduction t", XTY, APART, "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("p[{0},{1}] = 0", "p[{0},{1}] = 1"), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("p[{0},{1}] = 0", "p[{0},{1}] = exp(0)"), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("s[{0}] += p", "s[{0}] max= p"), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("s[{0}] += p[{0},{1}]", "s[{0}] += p[{0},{1}]*2"), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("p[{0},{2}] += x", "p[{0},{2}] = x"), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS.replace("stack", "stack -> p, q"), "8 16 q[{0},{1}] = 2\n| 16 p[{0},{1}] = 0\n" + PARTIAL.split("\n", 2)[2] + "\n", "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("| 4 16 p", "| | y[{0}] = 2\n| 4 16 p"), "changed-since"),
    Case(2, "merge_reduction p", PARTIALS, PARTIAL.replace("4 16 p[{0},{2}]", "4 16 p[{0},-{2}+15]"), "changed-since"),
    Case(2, "merge_reduction p", PARTIALS, PARTIAL.replace("| 16 s[{0}] += p[{0},{1}]", "| 15 s[{0}] += p[{0},{1}]"), "changed-since"),
    Case(2, "merge_reduction p", PARTIALS.replace("8:N,", "8,").replace("8:N", "8"), PARTIAL, "changed-since"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("+=", "="), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("s[{0}] += p[{0},{1}]", "p[{0},{1}] += p[{0},{1}]"), "no-partials"),
    Case(1, "merge_reduction p", PARTIALS, PARTIAL.replace("p[{0},{2}] += x[{0},{1}*16+{2}]", "y[{0}] += p[{0},{2}]"), "no-partials"),
    Case(1, "merge_reduction z", heap(x="8,64", s="", y="", z="8"), "s[] = 0\n8 z[{0}] = 0\n| 64 z[{0}] += x[{0},{1}]\n| s[] += z[{0}]\ny[] = s[]", "no-partials"),
    Case(1, "merge_reduction p", heap(x="8,64", s="", y="", p="8"), "s[] = 0\n8 p[{0}] = 0\n| 64 p[{0}] += x[{0},{1}] - p[{0}]\n| s[] += p[{0}]\ny[] = s[]", "no-partials"),
    Case(1, "merge_reduction p", heap(x="8,64", y="", p="8"), "y[] = 0\n8 p[{0}] = 0\n| 64 p[{0}] += p[{0}]\n| y[] += p[{0}]", "no-partials"),
    Case(2, "merge_reduction p", PARTIALS, PARTIAL, "changed-since", policy="strict"),
    Case(2, "merge_reduction p", SUMS, SUM_OF_SUMS.replace("{1}*4+{2}]", "{1}*4+{2}] if {1}+{2} < 5"), "changed-since"),
    Case(2, "merge_reduction p", SUMS, SUM_OF_SUMS.replace("| | s[{0}] +=", "| | 3 s[{0}] +="), "changed-since"),
    Case(2, "merge_reduction p", KEPT_SUMS, SUM_OF_SUMS.replace("4 p[{0},{1}] +=", "4 p[{0},0] +="), "changed-since"),
    Case(2, "merge_reduction p", KEPT_SUMS, SUM_OF_SUMS.replace("s[{0}] += p[{0},{1}]", "s[{0}] += p[{0},0]"), "changed-since"),
    Case(3, "merge_reduction p", SUMS, SUM_OF_SUMS, "policy", policy="strict"),
    Case(3, "merge_reduction p", SUMS.replace("p f32", "p f16").replace("x f32", "x f16"), SUM_OF_SUMS, "dtype"),
    Case(3, "merge_reduction p", SUMS, SUM_OF_SUMS.replace("| | s[{0}] +=", "| | s[{0}] += 1\n| | s[{0}] +="), "touched"),
    Case(3, "merge_reduction p", SUMS, SUM_OF_SUMS.replace("{2}]\n", "{2}]*s[{0}]\n"), "touched"),
]  # fmt: skip

WINDOW = heap(x="18", w="3", y="16")
TAPS = "16 y[{0}] = 0\n8 2 3 y[{0}*2+{1}] += x[{0}*2+{1}+{2}]*w[{2}]"
VOLUME = heap(x="6,6,6", w="3,3,3", y="4,4,4")
TAPS_OF_VOLUME = (
    "4 4 4 y[{0},{1},{2}] = 0\n4 4 4 3 3 3 y[{0},{1},{2}] += x[{0}+{3},{1}+{4},{2}+{5}]*w[{3},{4},{5}]"
)

ALGEBRA = [
    Case(1, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS, "policy"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("*w", " + w"), "other-form", policy="algebraic"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("+=", "max="), "other-form", policy="algebraic"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("w[{2}]", "x[{2}]"), "other-form", policy="algebraic"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("w[{2}]", "2"), "other-form", policy="algebraic"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS + " if {0} < 5", "other-form", policy="algebraic"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW.replace("f32", "i32"), TAPS, "other-form", policy="algebraic"),
    Case(2, "bilinear y#1@1 winograd_2_3 u", WINDOW + "\ntable idx u8 [3] = 0 2 1", TAPS.replace("w[{2}]", "w[idx[{2}]]"), "other-form", policy="algebraic"),
    Case(3, "bilinear y#1@1 winograd_2_3 u", WINDOW, "8 2 y[{0}*2+{1}] = 0\n| | 3 y[{0}*2+{1}] += x[{0}*2+{1}+{2}]*w[{2}]", "not-alone", policy="algebraic"),
    Case(3, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("8 2 3", "8 2 3:u"), "not-alone", policy="algebraic"),
    Case(3, "bilinear y#1@0 winograd_2_3 u", heap(x="4096", w="3", y="2048"), "2048 y[{0}] = 0\n1024 2 3 y[{0}*2+{1}] += x[{0}*2+{1}+{2}]*w[{2}]", "too-large", policy="algebraic"),
    Case(4, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("8 2 3 y[{0}*2+{1}]", "4 2 3 y[{0}*2+{1}*4+{2}]"), "other-form", policy="algebraic"),
    Case(4, "bilinear y#1@0 winograd_2_3 u", heap(x="8", w="3", y="8,8"), "8 8 y[{0},{1}] = 0\n2 3 y[{0},{0}] += x[{0}+{1}]*w[{1}]", "other-form", policy="algebraic"),
    Case(5, "bilinear y#1@1 winograd_9_9 u", WINDOW, TAPS, "no-algorithm", policy="algebraic"),
    Case(5, "bilinear y#1@1 winograd_4_3 u", WINDOW, TAPS, "other-shape", policy="algebraic"),
    Case(6, "bilinear y#1@1 winograd_2_3 u", WINDOW, TAPS.replace("+{2}]*", "-{2}+2]*"), "not-the-same", policy="algebraic"),
    Case(7, "bilinear y#1@0 winograd_4_3_usual u", VOLUME, TAPS_OF_VOLUME, "unstable", policy="algebraic"),
    Case(8, "bilinear y#1@2 winograd_2_3 u", heap(x="18", y="16", t="3"), "16 y[{0}] = 0\n4 3 t[{1}] = x[{1}]\n| 2 2 3 y[{0}*4+{1}*2+{2}] += x[{0}*4+{1}*2+{2}+{3}]*t[{3}]", "written-inside", policy="algebraic"),
    Case(9, "bilinear y#1@1 winograd_2_3 u", WINDOW + "\num f32 [] heap", "um[] = 1\n" + TAPS + "\ny[0] = um[]", "name-taken", policy="algebraic"),
    Case(1, "use_reciprocal y@1 r", RATIO, RATIOS, "policy"),
    Case(1, "use_reciprocal y@1 r", RATIO, RATIOS, "policy", policy="strict"),
    Case(2, "use_reciprocal y@1 r", RATIO, RATIOS.replace(" / ", "*"), "no-division", policy="algebraic"),
    Case(2, "use_reciprocal y@1 r", RATIO, RATIOS + " if {1} < 5", "no-division", policy="algebraic"),
    Case(2, "use_reciprocal y@1 r", RATIO, RATIOS.replace("w[{0}]", "2"), "no-division", policy="algebraic"),
    Case(2, "use_reciprocal y#1@1 r", RATIO, "8 16 y[{0},{1}] = 0\n" + RATIOS.replace(" = ", " += "), "no-division", policy="algebraic"),
    Case(2, "use_reciprocal y@1 r", RATIO.replace("f32", "i32"), RATIOS, "no-division", policy="algebraic"),
    Case(3, "use_reciprocal y@0 r", RATIO, RATIOS, "not-invariant", policy="algebraic"),
    Case(4, "use_reciprocal y@1 r", heap(x="8,16", y="8,16", s="8"), "8 s[{0}] = 3\n8 16 y[{0},{1}] = x[{0},{1}] / s[{0}]\n| | s[{0}] = x[{0},{1}]", "written-inside", policy="algebraic"),
    Case(5, "use_reciprocal y@1 x", RATIO, RATIOS, "name-taken", policy="algebraic"),
    Case(0, "use_reciprocal y@2 r", RATIO, RATIOS, "no-such-place", policy="algebraic"),
    Case(1, "divide_again q", INVERSE, INVERTED, "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED.replace("1 / w", "2 / w"), "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED.replace("]*r", "] + r"), "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED.replace("1 / w[{0}]", "1*w[{0}]"), "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED.replace("x[{0},{1}]*r[{0}]", "r[{0}]*x[{0},{1}]"), "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED + "\n| 16 y[{0},{1}] += r[{0}]", "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE.replace("stack", "stack -> q, r"), "8 q[{0}] = w[{0}]\n| r[{0}] = 1 / q[{0}]\n| 16 y[{0},{1}] = x[{0},{1}]*r[{0}]", "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again w", heap(x="8,16", w="8", y="8,16", z="8"), "8 z[{0}] = 1 / w[{0}]\n| 16 y[{0},{1}] = x[{0},{1}]*w[{0}]", "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED.replace("x[{0},{1}]*r[{0}]", "r[{0}]*2"), "no-reciprocal", policy="algebraic"),
    Case(2, "divide_again r", INVERSE, "8 r[{0}] = 1 / w[-{0}+7] if {0} < 4\n| 16 y[{0},{1}] = x[{0},{1}]*r[{0}]", "changed-since", policy="algebraic"),
    Case(1, "divide_again z", INVERSE.replace("r f32 [8:N] stack", "z f32 [8] heap"), INVERTED.replace("r[", "z["), "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, INVERTED.replace("x[{0},{1}]*r[{0}]", "r[{0}]*r[{0}]"), "no-reciprocal", policy="algebraic"),
    Case(1, "divide_again r", INVERSE, "8 r[{0}] = 1 / w[{0}]\n| r[{0}] = x[{0},1]*r[{0}]\n8 16 y[{0},{1}] = x[{0},{1}]", "no-reciprocal", policy="algebraic"),
    Case(2, "divide_again r", INVERSE.replace("r f32 [8:N] stack", "q f32 [8] heap -> r\nr f32 [8] heap -> a"), "8 a[{0}] = w[{0}]\n" + INVERTED + "\n8 y[{0},1] = a[{0}]", "changed-since", policy="algebraic"),
    Case(2, "divide_again r", INVERSE, INVERTED, "changed-since"),
    Case(2, "divide_again r", INVERSE.replace("8:N stack", "8 heap"), "8 r[{0}] = 1 / w[{0}]\n8 16 y[{0},{1}] = x[{0},{1}]*r[{0}]", "changed-since", policy="algebraic"),
]  # fmt: skip

MOMENT = heap(x="8,64", w="8", y="8", d="8,64", v="8")
DIFFERENCE = "8 64 d[{0},{1}] = x[{0},{1}] - w[{0}]\n"
SHIFTED = "8 64 d[{0},{1}] = x[{0},{1}]\n8 64 d[{0},{1}] = d[{0},{1}] - w[{0}]\n"
SQUARES = "8 v[{0}] = 0\n| 64 v[{0}] += d[{0},{1}]*d[{0},{1}]\n8 y[{0}] = v[{0}]"
MOMENTS = DIFFERENCE + SQUARES
SOFT = heap(x="8,64", w="8", y="8", d="8,64", e="8,64", s="8")
EXPONENTIAL = "8 64 e[{0},{1}] = exp(d[{0},{1}])\n"
RISEN = "8 s[{0}] = 0\n| 64 s[{0}] += e[{0},{1}]\n8 y[{0}] = s[{0}]"
SOFTS = DIFFERENCE + EXPONENTIAL + RISEN
HELD = heap(x="8,64", w="8", y="8", d="8,64", e="8,64", s="8", h="8,64")
HOLD = "8 64 h[{0},{1}] = x[{0},{1}]\n" + DIFFERENCE.replace("x[", "h[")
AFTER = "8 64 h[{0},{1}] = 2\n"
USED = "\n8 y[{0}] += h[{0},0]"
ALGEBRA += [
    Case(1, "expand_moment v#1@1 o", MOMENT, MOMENTS, "policy"),
    Case(2, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("*d[{0},{1}]", "*x[{0},{1}]"), "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("v[{0}] += d", "v[{0}] max= d"), "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("]*d", "] + d"), "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("*d[{0},{1}]", "*d[{0},{1}] if {1} < 5"), "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT.replace("f32", "i32"), MOMENTS, "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT.replace("v f32", "v f64").replace("y f32", "y f64"), MOMENTS, "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT.replace("f32", "f64").replace("x f64", "x f32").replace("w f64", "w f32"), MOMENTS, "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT.replace("f32", "f64").replace("x f64", "x f32"), MOMENTS, "other-form", policy="algebraic"),
    Case(2, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("d[{0},{1}]*d[{0},{1}]", "2*2").replace("= v[{0}]", "= v[{0}] + d[{0},0]"), "other-form", policy="algebraic"),
    Case(3, "expand_moment v#1@0 o", MOMENT, MOMENTS, "not-alone", policy="algebraic"),
    Case(3, "expand_moment v#1@0 o", MOMENT, MOMENTS.replace("8 v[{0}] = 0\n| 64 v", "8 v[{0}] = 0\n8 64 v"), "not-alone", policy="algebraic"),
    Case(3, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("| 64 v", "| 64:u v"), "not-alone", policy="algebraic"),
    Case(3, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("\n8 y[{0}] =", "\n| | y[{0}] ="), "not-alone", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, DIFFERENCE.replace("64", "60") + "8 4 d[{0},{1}+60] = x[{0},{1}] - w[{0}]\n" + SQUARES, "not-one-definition", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace(" - ", " + "), "other-form", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace(" - w[{0}]", " - 2"), "other-form", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("x[{0},{1}] -", "2 -"), "other-form", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, "8 64 d[{0},{1}] = 0\n" + MOMENTS.replace("} = x", "} += x").replace("] = x", "] += x"), "other-form", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, MOMENTS.replace("w[{0}]\n", "w[{0}] if {0} >= 0\n"), "other-form", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", HELD.replace("s f32", "v f32"), HOLD + AFTER + SQUARES + USED, "changed-between", policy="algebraic"),
    Case(4, "expand_moment v#1@1 o", MOMENT, SHIFTED + SQUARES, "changed-between", policy="algebraic"),
    Case(4, "expand_moment v#1@0 o", heap(x="", w="", y="", d="", m="", v=""), "m[] = w[]\nm[] = x[] - m[]\nv[] = 0\n1 v[] += m[]*m[]\ny[] = v[]", "changed-between", policy="algebraic"),
    Case(5, "expand_moment v#1@1 o", MOMENT.replace("w f32 [8]", "w f32 [64]"), MOMENTS.replace("w[{0}]", "w[{1}]"), "not-invariant", policy="algebraic"),
    Case(6, "expand_moment v#1@1 x", MOMENT, MOMENTS, "name-taken", policy="algebraic"),
    Case(6, "expand_moment v#1@1 o", MOMENT + "\now f32 [8] heap", "8 ow[{0}] = 0\n" + MOMENTS + "\n8 y[{0}] += ow[{0}]", "name-taken", policy="algebraic"),
    Case(1, "online_rescale s#1@1 o", SOFT, SOFTS, "policy"),
    Case(2, "online_rescale s#1@1 o", SOFT, SOFTS.replace("s[{0}] += e", "s[{0}] max= e"), "other-form", policy="algebraic"),
    Case(2, "online_rescale s#1@1 o", SOFT, SOFTS.replace("+= e[{0},{1}]", "+= e[{0},{1}]*2"), "other-form", policy="algebraic"),
    Case(2, "online_rescale s#1@1 o", SOFT, SOFTS.replace("+= e[{0},{1}]", "+= 2").replace("= s[{0}]", "= s[{0}] + e[{0},0]"), "other-form", policy="algebraic"),
    Case(3, "online_rescale s#1@0 o", SOFT, SOFTS, "not-alone", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, SOFTS.replace("exp", "tanh"), "other-form", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, SOFTS.replace(" - ", " + "), "other-form", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, SOFTS.replace("exp(d[{0},{1}])", "exp(2)").replace("= s[{0}]", "= s[{0}] + d[{0},0]"), "other-form", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, SOFTS.replace(" - w[{0}]", " - 2"), "other-form", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, DIFFERENCE + EXPONENTIAL.replace("64", "60") + "8 4 e[{0},{1}+60] = exp(d[{0},{1}])\n" + RISEN, "not-one-definition", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, DIFFERENCE.replace("64", "60") + "8 4 d[{0},{1}+60] = x[{0},{1}] - w[{0}]\n" + EXPONENTIAL + RISEN, "not-one-definition", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", HELD, HOLD + AFTER + EXPONENTIAL + RISEN + USED, "changed-between", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", HELD, HOLD + EXPONENTIAL + AFTER + RISEN + USED, "changed-between", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, SHIFTED + EXPONENTIAL + RISEN, "changed-between", policy="algebraic"),
    Case(4, "online_rescale s#1@1 o", SOFT, "8 64 e[{0},{1}] = x[{0},{1}]\n" + DIFFERENCE.replace("x[", "e[") + EXPONENTIAL + RISEN, "changed-between", policy="algebraic"),
    Case(5, "online_rescale s#1@1 o", SOFT.replace("w f32 [8]", "w f32 [64]"), SOFTS.replace("w[{0}]", "w[{1}]"), "not-invariant", policy="algebraic"),
    Case(6, "online_rescale s#1@1 x", SOFT, SOFTS, "name-taken", policy="algebraic"),
]  # fmt: skip

ONE = heap(o="8:N stack", ot="8:N stack", ow="8:N stack", oe="8:N,64:N stack")
EXPANDED = f"{MOMENT}\n{ONE}"
EXPANSION = (
    DIFFERENCE
    + """8 v[{0}] = 0
| o[{0}] = 0
| 64 o[{0}] += x[{0},{1}]*0.015625
| ot[{0}] = 0
| 64 oe[{0},{1}] = x[{0},{1}] - o[{0}]
| | ot[{0}] += oe[{0},{1}]*0.015625
| | v[{0}] += oe[{0},{1}]*oe[{0},{1}]
| ow[{0}] = o[{0}] - w[{0}]
| ot[{0}] += ow[{0}]*0.5
| ow[{0}] = ow[{0}]*ot[{0}]
| ow[{0}] = ow[{0}]*128
| v[{0}] += max(ow[{0}],-3.4028234663852886e+38)
8 y[{0}] = v[{0}]"""
)
ONLINE = heap(o="8:N stack", os="8:N stack", on="8:N,64:N stack", of="8:N,64:N stack")
RESCALED = f"{SOFT}\n{ONLINE}"
RESCALING = (
    DIFFERENCE
    + EXPONENTIAL
    + """8 s[{0}] = 0
| o[{0}] = x[{0},0]
| os[{0}] = 0
| 64 on[{0},{1}] = max(o[{0}],x[{0},{1}])
| | of[{0},{1}] = o[{0}] - on[{0},{1}]
| | of[{0},{1}] = exp(of[{0},{1}])
| | os[{0}] = os[{0}]*of[{0},{1}]
| | of[{0},{1}] = x[{0},{1}] - on[{0},{1}]
| | of[{0},{1}] = exp(of[{0},{1}])
| | os[{0}] = os[{0}] + of[{0},{1}]
| | o[{0}] = on[{0},{1}]
| o[{0}] = o[{0}] - w[{0}]
| o[{0}] = exp(o[{0}])
| s[{0}] += os[{0}]*o[{0}]
8 y[{0}] = s[{0}]"""
)
ALGEBRA += [
    Case(1, "sum_squares_again o d", EXPANDED, EXPANSION, "policy"),
    Case(2, "sum_squares_again x d", EXPANDED, EXPANSION, "other-form", policy="algebraic"),
    Case(2, "sum_squares_again v d", EXPANDED, EXPANSION, "other-form", policy="algebraic"),
    Case(2, "sum_squares_again o d", EXPANDED, EXPANSION.replace("x[{0},{1}] - o", "2 - o"), "other-form", policy="algebraic"),
    Case(2, "sum_squares_again o d", EXPANDED, EXPANSION.replace("o[{0}] - w[{0}]", "o[{0}] - 2"), "other-form", policy="algebraic"),
    Case(2, "sum_squares_again o d", EXPANDED.replace(":N", ""), EXPANSION + " + ot[{0}]", "used-elsewhere", policy="algebraic"),
    Case(4, "sum_squares_again o d", EXPANDED.replace("ot f32 [8:N] stack", "ot f32 [8] heap -> ot, h"), "8 h[{0}] = w[{0}]\n8 y[{0}] = h[{0}]\n" + EXPANSION, "changed-since", policy="algebraic"),
    Case(2, "sum_squares_again z d", EXPANDED.replace("\no", "\nz").replace("z f32 [8:N] stack", "z f32 [8] heap"), EXPANSION.replace(" o", " z").replace("*o", "*z").replace("(o", "(z"), "used-elsewhere", policy="algebraic"),
    Case(3, "sum_squares_again o w", EXPANDED, EXPANSION, "not-the-same", policy="algebraic"),
    Case(3, "sum_squares_again o d", EXPANDED, EXPANSION.replace("x[{0},{1}] - w", "x[{0},{1}] + w"), "not-the-same", policy="algebraic"),
    Case(3, "sum_squares_again o d", EXPANDED.replace("d f32 [8, 64]", "d f32 [8, 64, 2]"), EXPANSION.replace("8 64 d[{0},{1}]", "8 64 2 d[{0},{1},{2}]"), "not-the-same", policy="algebraic"),
    Case(4, "sum_squares_again o d", EXPANDED, EXPANSION.replace("*128", "*126"), "changed-since", policy="algebraic"),
    Case(4, "sum_squares_again o d", EXPANDED, EXPANSION.replace("64 oe", "64:u oe"), "changed-since", policy="algebraic"),
    Case(4, "sum_squares_again o d", EXPANDED.replace("ot f32 [8:N]", "ot f32 [8]"), EXPANSION, "changed-since", policy="algebraic"),
    Case(4, "sum_squares_again o d", EXPANDED, EXPANSION.replace("8 v[{0}] = 0", "8 64 d[{0},{1}] = 0\n8 v[{0}] = 0"), "changed-since", policy="algebraic"),
    Case(1, "sum_exp_again o e", RESCALED, RESCALING, "policy"),
    Case(2, "sum_exp_again s e", RESCALED, RESCALING, "other-form", policy="algebraic"),
    Case(2, "sum_exp_again o e", RESCALED.replace(":N", ""), RESCALING + " + os[{0}]", "used-elsewhere", policy="algebraic"),
    Case(3, "sum_exp_again o d", RESCALED, RESCALING, "not-the-same", policy="algebraic"),
    Case(3, "sum_exp_again o e", RESCALED, RESCALING.replace("exp(d", "tanh(d"), "not-the-same", policy="algebraic"),
    Case(3, "sum_exp_again o e", RESCALED, RESCALING.replace("exp(d[{0},{1}])", "exp(x[{0},{1}])"), "not-the-same", policy="algebraic"),
    Case(4, "sum_exp_again o e", RESCALED, RESCALING.replace("max(o", "min(o"), "changed-since", policy="algebraic"),
    Case(4, "sum_exp_again o e", RESCALED, RESCALING.replace("8 s[{0}] = 0", "8 64 e[{0},{1}] = 0\n8 s[{0}] = 0"), "changed-since", policy="algebraic"),
]  # fmt: skip

LONG = heap(x="64,64", y="64,64")
MARKS = [
    Case(1, "unroll y@0", XY, "64:p y[{0}] = x[{0}]", "marked", "clear_mark y@0"),
    Case(2, "unroll y@0", LONG, "64 64:u y[{0},{1}] = x[{0},{1}]", "unrolled-size"),
    Case(1, "parallelize y@0", XY, "64:p y[{0}] = x[{0}]", "marked", "clear_mark y@0"),
    Case(2, "parallelize y#1@1", SUM, ROWSUM, "race", "split_reduction y#1@1 py"),
    Case(2, "parallelize y@0", heap(x="8", y=""), "8 y[] = x[{0}]", "race"),
    Case(2, "parallelize t@0", heap(x="8", y="8", t="8:N"), JOINED, "race", "materialise_dims t 0"),
    Case(2, "parallelize t@0", heap(x="8", y="8", t="8:N"), JOINED, "race", "set_location t stack"),
    Case(2, "parallelize t#1@0", XTY, "8 t[{0}] = x[{0}]\n7 t[{0}+1] = t[{0}]\n8 y[{0}] = t[{0}]", "race"),
    Case(2, "parallelize t#1@0", XTY, "8 t[{0}] = 0\n8 t[{0}] = x[{0}]\n| y[{0}] = t[0]", "race"),
    Case(2, "parallelize y#1@0", heap(x="8", y="10"), "10 y[{0}] = 0\n8 3 y[{0}+{1}] += x[{0}]", "race"),
    Case(3, "parallelize y@1", X2, "8:p 16 y[{0},{1}] = x[{0},{1}]", "parallel-nested"),
    Case(3, "parallelize y@0", X2, "8 16:p y[{0},{1}] = x[{0},{1}]", "parallel-nested"),
    Case(3, "parallelize y@1", X2, "8:u 16 y[{0},{1}] = x[{0},{1}]", "parallel-unrolled"),
    Case(1, "vectorize y@1", X2, "8 16:u y[{0},{1}] = x[{0},{1}]", "marked", "clear_mark y@1"),
    Case(1, "vectorize y@0", X2, ROWS, "vector-body"),
    Case(1, "vectorize t@0", XTY, JOINED, "vector-body", "fission_scope t@0 y"),
    Case(1, "vectorize y@0", "x bool [8] heap\ny i32 [8] heap", "8 y[{0}] = x[{0}]", "vector-dtype", on=BARE),
    Case(7, "vectorize y@0", "x bool [64] heap\ny bool [64] heap", "64 y[{0}] = x[{0}]*x[{0}]", "vector-form"),
    Case(2, "vectorize y@0", "x f32 [16] heap\ny f64 [16] heap", "16 y[{0}] = x[{0}]", "vector-width", "split_scope y@0 8"),
    Case(7, "vectorize y@0", "x i32 [8] heap\ny i32 [8] heap", "8 y[{0}] = x[{0}] / 3", "vector-form"),
    Case(7, "vectorize y@0", "x i32 [8] heap\ny i32 [8] heap", "8 y[{0}] = fmod(x[{0}],3)", "vector-form"),
    Case(2, "vectorize y@0", XY, COPY, "vector-width", "split_scope y@0 16"),
    Case(2, "vectorize y@0", heap(x="5", y="5"), "5 y[{0}] = x[{0}]", "vector-width"),
    Case(3, "vectorize y@0", X2, "16 8 y[{1},{0}] = x[{1},{0}]", "vector-body", "interchange y@0"),
    Case(3, "vectorize y@1", X2, "16 8 y[{1},{0}] = x[{1},{0}]", "vector-stride"),
    Case(3, "vectorize y@1", heap(x="16,8", y="8,16"), "8 16 y[{0},{1}] = x[{1},{0}]", "vector-stride"),
    Case(3, "vectorize y@0", heap(x="40", y="8"), "8 y[{0}] = x[{0}*5]", "vector-stride"),
    Case(3, "vectorize y@0", heap(x="16", y="8", t="16 register"), "16:v t[{0}] = x[{0}]\n8 y[{0}] = t[{0}*2]", "vector-stride"),
    Case(3, "vectorize y#1@0", heap(x="8", y="16"), "16 y[{0}] = 0\n8 y[{0}*2] = x[{0}]", "vector-stride"),
    Case(3, "vectorize y@0", heap(x="8", y="8"), "8 y[{0}] = x[-{0}+7]", "vector-stride"),
    Case(3, "vectorize y@0", heap(x="8", y=""), "8 y[] = x[{0}]", "vector-stride"),
    Case(4, "vectorize y#1@0", heap(x="8", y=""), "y[] = 0\n8 y[] += x[{0}]", "vector-regroup", policy="strict"),
    Case(5, "vectorize y#1@0", heap(x="9", y="9"), "9 y[{0}] = x[{0}]\n8 y[{0}+1] = y[{0}]", "vector-flow"),
    Case(6, "vectorize y@0", heap(x="8", y="8"), "8 y[{0}] = x[{0}] if {0} < 5", "vector-guard"),
    Case(7, "vectorize y@0", heap(x="8", y="8"), "8 y[{0}] = pow(x[{0}],2)", "vector-form"),
    Case(7, "vectorize y@0", heap(x="8", y="8"), "8 y[{0}] = select({0},x[{0}],2)", "vector-form"),
    Case(1, "clear_mark y@0", XY, COPY, "unmarked"),
    Case(2, "clear_mark t@0", heap(x="8", y="8", t="8 register"), "8:u t[{0}] = x[{0}]\n8:u y[{0}] = t[{0}]", "register-index", "set_location t stack"),
    Case(2, "clear_mark t@0", heap(x="8", y="8", t="8 register"), "8:v t[{0}] = x[{0}]\n8:v y[{0}] = t[{0}]", "register-index", "set_location t heap"),
    Case(1, "prefetch y x[{2}]", XY, COPY, "bad-access"),
    Case(1, "prefetch y x[{0},{0}]", XY, COPY, "bad-access"),
    Case(1, "prefetch y q[{0}]", XY, COPY, "bad-access"),
    Case(2, "prefetch y x[{0}+1]", XY, COPY + " !prefetch(x[{0}+1])", "prefetched"),
    Case(0, "prefetch q x[{0}+1]", XY, COPY, "no-such-place"),
    Case(0, "clear_prefetch y x[{2}]", XY, COPY, "bad-access"),
    Case(1, "clear_prefetch y x[{0}+1]", XY, COPY, "not-prefetched"),
    Case(1, "clear_prefetch y x[{0}+1]", XY, COPY + " !prefetch(x[{0}+2])", "not-prefetched"),
    Case(1, "stream_store y#1", SUM, ROWSUM, "no-stream"),
    Case(1, "stream_store y", XY, COPY + " !stream", "no-stream"),
    Case(2, "stream_store t", heap(x="8", y="8", t="8 stack"), APART, "no-stream", None),
    Case(1, "clear_stream y", XY, COPY, "no-stream"),
    Case(1, "stream_load y", XY, COPY + " !stream_load", "no-stream"),
    Case(2, "stream_load y", heap(x="8", y="8", t="8 stack"), APART, "no-stream", None),
    Case(1, "clear_stream_load y", XY, COPY, "no-stream"),
]  # fmt: skip

BYTES = "x u8 [8] heap\nw i8 [2, 16, 4] heap\ny i32 [16] heap"
DOTS = "2 16 4 y[{1}] += x[{0}*4+{2}]*w[{0},{1},{2}]"
USE = "use_instruction y@1 vpdpbusd"

INSTRUCTION = [
    Case(1, USE, BYTES, DOTS.replace("16 4", "16:u 4"), "marked", "clear_mark y@1"),
    Case(1, USE, BYTES, DOTS.replace("16 4", "16:vpdpbusd 4"), "marked", "clear_mark y@1"),
    Case(2, "use_instruction y@1 fma4", BYTES, DOTS, "instruction-missing"),
    Case(2, USE, BYTES.replace("16", "4"), DOTS.replace("16", "4"), "instruction-missing"),
    Case(3, "use_instruction y@0 vpdpbusd", BYTES, DOTS, "instruction-shape"),
    Case(3, USE, BYTES, DOTS.replace("16 4", "16 4:u"), "instruction-shape", "clear_mark y@2"),
    Case(3, USE, BYTES.replace("2, 16, 4", "2, 2, 16, 4").replace("x u8 [8]", "x u8 [16]"), "2 16 2 4 y[{1}] += x[{0}*8+{2}*4+{3}]*w[{0},{2},{1},{3}]", "instruction-shape", "interchange y@1"),
    Case(3, USE, BYTES + "\nz i32 [16] heap", DOTS + "\n| | z[{1}] = y[{1}]", "instruction-shape", "fission_scope y@1 z"),
    Case(3, "use_instruction y@2 vpdpbusd", BYTES, DOTS.replace("16 4", "4 16").replace("{1}", "{3}").replace("{2}", "{1}").replace("{3}", "{2}"), "instruction-shape", "interchange y@1"),
    Case(4, USE, BYTES.replace("16", "32"), DOTS.replace("16", "32"), "instruction-size", "split_scope y@1 16"),
    Case(4, USE, BYTES.replace("16, 4", "16, 8").replace("[8]", "[16]"), DOTS.replace("16 4", "16 8").replace("*4", "*8"), "instruction-size"),
    Case(5, USE, BYTES, DOTS.replace("+=", "*="), "instruction-operation"),
    Case(5, USE, BYTES, DOTS.replace("]*w", "] + w"), "instruction-operation"),
    Case(5, USE, BYTES, DOTS + " if {2} < 3", "instruction-operation"),
    Case(5, USE, BYTES, DOTS.replace("x[{0}*4+{2}]", "2"), "instruction-operation"),
    Case(6, USE, BYTES.replace("u8", "i8"), DOTS, "instruction-dtype"),
    Case(6, USE, BYTES.replace("i32", "i64"), DOTS, "instruction-dtype"),
    Case(7, USE, BYTES.replace("2, 16, 4", "2, 4, 16"), DOTS.replace("w[{0},{1},{2}]", "w[{0},{2},{1}]"), "instruction-access", "stage_read w y@0 pw"),
    Case(7, USE, BYTES.replace("y i32 [16]", "y i32 [16, 2]"), DOTS.replace("y[{1}]", "y[{1},0]"), "instruction-access"),
    Case(7, USE, BYTES.replace("y i32 [16]", "y i32 [1]"), DOTS.replace("y[{1}]", "y[0]"), "instruction-access"),
    Case(7, USE, BYTES.replace("x u8 [8]", "x u8 [16]"), DOTS.replace("x[{0}*4+{2}]", "x[{0}*4+{2}*2]"), "instruction-access"),
    Case(7, USE, BYTES.replace("x u8 [8]", "x u8 [32]"), DOTS.replace("x[{0}*4+{2}]", "x[{0}+{1}+{2}]"), "instruction-access"),
]  # fmt: skip

CASES = {
    "scopes": SCOPES, "extent": EXTENT, "storage": STORAGE, "layout": LAYOUT, "copies": COPIES,
    "values": VALUES, "reductions": REDUCTIONS, "algebra": ALGEBRA, "marks": MARKS,
    "instructions": INSTRUCTION,
}  # fmt: skip
EVERY = [case for cases in CASES.values() for case in cases]
# What these refusals rest on is two instances that meet, so they show them.
WITNESSED = {
    "order", "clobber", "race", "stale", "changed-between", "pad-touches", "vector-flow",
    "lifetime", "undefined", "not-repeatable", "carried",
}  # fmt: skip


def program_of(body: str, buffers: str):
    names = [line.split()[0] for line in buffers.splitlines() if not line.startswith("domain ")]
    held = [
        a.strip() for line in buffers.splitlines() for a in line.partition("->")[2].split(",") if a.strip()
    ]
    outputs = [n for n in "yz" if n in names + held]
    head = f"kernel k\nin {', '.join(n for n in names if n[0] in 'xw')}\nout {', '.join(outputs)}"
    return parse(f"{head}\n{buffers}\n{body.strip()}\n")


def shown_cell(witness) -> list[set[str]]:
    """For each instance of a witness, the cells it touches; its iterators must be within their scopes."""
    found = []
    for leaf, values in witness.instances:
        assert len(values) == len(leaf.scopes)
        assert all(0 <= v < s.size for v, s in zip(values, leaf.scopes, strict=True))
        cells = set()
        for access in (leaf.op.target, *leaf.op.reads):
            cells.add(f"{access.array}[{','.join(str(f.value(values)) for f in access.index)}]")
        found.append(cells)
    return found


def refused(case: Case) -> None:
    """The move is refused for the reason that the case says, and the enabler it tells is legal."""
    program = program_of(case.body, case.buffers)
    verdict = why(program, case.move, case.on, case.policy)
    assert not verdict.legal, "it is legal"
    refusal = verdict.refusal
    assert refusal.code == case.code
    assert verdict.sentence.endswith(".") or case.code == "bad-access"  # that shows a line to add
    if case.enabler is not None:
        assert case.enabler in refusal.enablers
    for way in refusal.ways:  # each was tried out
        after = program
        for move in way.moves:
            after = apply(after, move, case.on, case.policy)
        if way.then:
            apply(after, way.then, case.on, case.policy)
    for path in refusal.nodes:
        program.node(path)
    if not refusal.structural:
        assert refusal.nodes
    if case.code in WITNESSED:
        cells = shown_cell(refusal.witness)
        assert refusal.witness.cell in cells[0]
        if case.code in (
            "order",
            "stale",
            "pad-touches",
            "vector-flow",
        ):  # the others meet at an address, or in an operand
            assert refusal.witness.cell in cells[-1]
        assert refusal.witness.cell in str(refusal.witness)
    try:
        apply(program, case.move, case.on, case.policy)
    except IllegalMove as error:
        assert error.refusal.code == case.code
    else:
        raise AssertionError("why refuses it, apply does not")


@pytest.mark.parametrize("case", EVERY, ids=[f"{c.move}: {c.code}" for c in EVERY])
def test_each_condition_refuses(case):
    refused(case)


def conditions_have_cases(name: str, known: list[Case]) -> None:
    doc = inspect.cleandoc(type(REGISTRY[name]).__doc__ or "")
    numbered = {int(n) for n in re.findall(r"^  (\d)\. ", doc.split("Legal iff")[1], re.MULTILINE)}
    cases = [c for c in known if c.move.split()[0] == name]
    assert {c.condition for c in cases} - {0} == numbered


@pytest.mark.parametrize("name", [n for n, t in REGISTRY.items() if t.family in CASES])
def test_every_condition_of_a_move_has_a_case(name):
    conditions_have_cases(name, CASES[REGISTRY[name].family])
    assert {*CASES, "mapping", "tensor cores", "streaming"} == set(FAMILIES)  # each has a file of its own


# ---------------------------------------------------------------------------- what a target does not have


def test_a_target_without_a_mark_refuses_it():
    plain = replace(WIDE, name="plain", marks=frozenset("uv"))
    assert why(program_of(COPY, XY), "parallelize y@0", plain).refusal.code == "mark-unknown"


def test_a_target_without_a_location_refuses_it():
    plain = replace(WIDE, name="plain", locations=("heap",))
    assert why(program_of(JOINED, XTY), "set_location t stack", plain).refusal.code == "location-unknown"
    assert why(program_of(JOINED, XTY), "reuse_dims t 0 stack", plain).refusal.code == "location-unknown"
    start = program_of("4 8 16 y[{0},{1},{2}] = x[{0},{2}]*w[{1}]", heap(x="4,16", w="8", y="4,8,16"))
    copy = apply(start, "stage_read x y@0 p", plain)
    assert "p f32 [4:N, 16] heap" in copy.text


@pytest.mark.parametrize(
    ("first", "second", "size", "alright"),
    [
        ("16:v t[{0},{1}]", "16:v y[{0},{1}] = t[{0},{1}]", 16, True),
        ("8:v t[{0},{1}]", "8:v y[{0},{1}] = t[{0},{1}+8]", 16, True),
        ("8:v t[{0},{1}]", "16:v y[{0},{1}] = t[{0},{1}]", 16, False),  # of different widths
        ("8:v t[{0},{1}]", "8:v y[{0},{1}] = t[{0},{1}+4]", 16, False),  # of two registers
        ("8:v t[{0},{1}]", "8:v y[{0},{1}] = t[{0},{0}*4+{1}]", 40, False),
        ("8:v t[{0},{1}]", "8:v y[{0},{1}] = t[{0},{1}]", 20, False),  # a register and a half
        ("8:v t[{1},{0}]", "8:v y[{1},{0}] = t[{1},{0}]", 16, False),
    ],
)
def test_a_register_is_one_vector(first, second, size, alright):
    buffers = heap(x="8,16", y="8,16", t=f"8,{size} register")
    program = program_of(f"8:u {first} = x[{{0}},{{1}}]\n8:u {second}", buffers)
    fault = mark_fault(program, replace(WIDE, vector_widths={"f32": (16, 8)}), "reassoc")
    assert (fault is None) == alright
    assert alright or fault.code in ("register-index", "vector-stride")


def test_a_program_grows_only_to_the_limits_of_a_text():
    many = "\n".join(f"1 y[{n}] = x[{n}]" for n in range(250))  # 500 nodes
    full = program_of(many, heap(x="250", y="250"))
    assert why(full, "wrap y 2", WIDE).refusal.code == "too-large"
    deep = program_of("1 " * 16 + "y[] = x[]", heap(x="", y=""))
    assert why(deep, "wrap y 2", WIDE).refusal.code == "too-large"
    names = [f"x{n}" for n in range(KERNEL_LIMITS["buffers"] - 1)]
    crowded = program_of("64 y[{0}] = x0[{0}]", heap(y="64", **dict.fromkeys(names, "64")))
    assert why(crowded, "stage_read x0 root p", WIDE).refusal.code == "too-large"


def test_sizes_and_bytes_stay_within_what_a_text_may_have():
    small = program_of("8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", heap(x="8", y="8", t="8"))
    assert why(small, "pad_dim t 0 2000000000", WIDE).legal
    wide = program_of("8 8 t[{0},{1}] = x[{0}]\n8 y[{0}] = t[{0},0]", heap(x="8", y="8", t="8,8"))
    told = why(wide, "pad_dim t 0 2000000000", WIDE).refusal
    assert told.code == "too-large" and "17,179,869,184 bytes" in told.sentence
    large = program_of("8 t[{0},0] = x[{0}]\n8 y[{0}] = t[{0},0]", heap(x="8", y="8", t="10,268435456"))
    assert why(large, "pad_dim t 0 16", WIDE).refusal.code == "too-large"
    assert "pad_dim t 0 16" not in map(str, legal_moves(large, WIDE))
    assert why(small, "wrap y@0 2000000000", WIDE).legal
    once = apply(small, "wrap y@0 2000000000", WIDE)
    assert why(apply(once, "wrap y@0 400", WIDE), "merge_scopes y@0", WIDE).legal
    twice = apply(once, "wrap y@0 2000000000", WIDE)
    assert why(twice, "merge_scopes y@0", WIDE).refusal.code == "too-large"
    assert "merge_scopes y@0" not in map(str, legal_moves(twice, WIDE))


def test_a_text_stays_as_long_as_is_read():
    for letters, fits in ((8_150, True), (8_175, False)):
        name = "t" * letters
        long = program_of(
            f"8 {name}[{{0}}] = x[{{0}}]\n8 y[{{0}}] = {name}[{{0}}]+{name}[{{0}}]",
            heap(x="8", y="8", **{name: "8"}),
        )
        verdict = why(long, "split_scope y@0 2", WIDE)
        assert verdict.legal == fits and (fits or verdict.refusal.code == "too-large")
        assert ("split_scope y@0 2" in map(str, legal_moves(long, WIDE))) == fits


def test_a_text_of_many_lines_stays_as_long_as_is_read():
    """200 lines of some 325 characters: a split writes its two iterators in the place of each."""
    name = "t" * 305
    lines = "".join(f"\n| y[{n}] = {name}[{{0}}]" for n in range(200))
    long = program_of(f"8 {name}[{{0}}] = x[{{0}}]{lines}", heap(x="8", y="200", **{name: "8"}))
    assert len(long.text) < KERNEL_LIMITS["text bytes"]
    told = why(long, "split_scope y@0 2", WIDE).refusal
    assert told.code == "too-large" and "65,536 bytes of text" in told.sentence
    assert why(long, "clear_mark y@0", WIDE).refusal.code != "too-large"


def test_an_iterator_stays_within_the_integers_it_is_computed_in():
    """Iterations that are added would count further than an i8 does; where a guard keeps them idle they do not."""
    buffers = "x i8 [200] heap\ny i8 [100] heap\nt i8 [200] heap"
    program = program_of("100 t[{0}] = x[{0}] + {0}\n100 y[{0}] = t[{0}]", buffers)
    assert why(program, "pad_scope t@0 128 free", WIDE).legal
    assert why(program, "pad_scope t@0 129 free", WIDE).refusal.code == "beyond-dtype"
    assert why(program, "pad_scope t@0 129 guard", WIDE).legal
    listed = [str(m) for m in legal_moves(program, WIDE) if m.name == "pad_scope"]
    assert {"pad_scope t@0 128 free", "pad_scope t@0 200 guard"} <= {*listed}
    assert "pad_scope t@0 200 free" not in listed


def test_iterators_stay_within_64_bits():
    buffers = "x f32 [8] heap\ny f32 [9] heap\nt f32 [9] heap"
    program = program_of("8 t[{0}] = {0}*1000000000000000000\n8 y[{0}] = t[{0}]", buffers)
    assert why(program, "pad_scope t@0 9 free", WIDE).legal
    buffers = buffers.replace("9", "12")
    program = program_of("8 t[{0}] = {0}*1000000000000000000\n8 y[{0}] = t[{0}]", buffers)
    assert why(program, "pad_scope t@0 12 free", WIDE).refusal.code == "beyond-dtype"
    with pytest.raises(TextError, match="64 bits"):
        program_of("8 y[{0}] = {0}*9000000000000000000", heap(x="8", y="8"))
    with pytest.raises(TextError, match="64 bits"):
        program_of("8 y[{0}] = x[{0}] if {0}*9000000000000000000 >= 0", heap(x="8", y="8"))


def test_iterations_that_a_guard_keeps_out_of_a_table():
    text = "kernel k\nin x\nout y\ntable k u8 [3] = 2 0 1\nx f32 [4] heap\ny f32 [3] heap\n3 y[{0}] = x[k[{0}]]\n"
    padded = apply(parse(text), "pad_scope y@0 4 guard", WIDE)
    cut = apply(padded, "cut_scope y@0 3", WIDE)
    assert "unwrap y#1@0" in map(str, legal_moves(cut, WIDE))
    for program in (cut, apply(cut, "unwrap y#1@0", WIDE), apply(padded, "unroll y@0", WIDE)):
        assert parse(program.text) == program
        x = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(run_program(program, {"x": x})["y"], x[[2, 0, 1]])


def test_a_read_through_a_table_is_not_taken_apart():
    text = (
        "kernel k\nin x\nout y\ntable k i32 [16] = 2 0 3 1 2 0 3 1 2 0 3 1 2 0 3 1\n"
        "x f32 [8] heap\ny f32 [16] heap\nt f32 [8] heap\n"
    )
    program = parse(text + "4 2 t[{0}*2+{1}] = exp(x[{0}*2+{1}])\n16 y[{0}] = t[k[{0}]]\n")
    assert why(program, "recompute y t r", WIDE).refusal.code == "not-one-definition"
    assert why(program, "split_dim t 0 2", WIDE).refusal.code == "not-decomposed"
    assert why(program, "vectorize y@0", WIDE).refusal.code == "vector-stride"
    assert why(program, "stage_read x t@0 k", WIDE).refusal.code == "name-taken"
    copied = parse(text.replace("t f32 [8]", "t f32 [16]") + "16 t[{0}] = x[k[{0}]]\n16 y[{0}] = t[{0}]*2\n")
    assert why(copied, "elide_copy t", WIDE).refusal.code == "changed-since"


def test_an_instruction_takes_no_operand_through_a_table():
    buffers = BYTES.replace("w i8 [2, 16, 4]", "w i8 [2, 32, 4]") + "\ntable k i32 [2] = 1 0"
    lines = buffers.splitlines()
    text = "\n".join(["kernel k", "in x, w", "out y", lines[-1], *lines[:-1]])
    program = parse(f"{text}\n{DOTS.replace('w[{0}', 'w[k[{0}]')}\n")
    assert why(program, USE, WIDE).refusal.code == "instruction-access"


def legal_of(program, name, target):
    """The legal moves of a family: listing those of all takes a second where a program is large."""
    here = context(program, target, "reassoc")
    return [str(m) for m in all_candidates(here, [name]) if is_legal(here, m)]


def test_a_rearrangement_is_listed_only_where_there_is_room():
    doubled = program_of("8 2:u y[{0},{1}] = x[{0},{1}]", heap(x="8,2", y="8,2"))
    assert "cut_scope y@0 1" in legal_of(doubled, "cut_scope", WIDE)
    small = replace(WIDE, unrolled_ops=3)
    assert why(doubled, "cut_scope y@0 1", small).refusal.code == "unrolled-size"
    assert "cut_scope y@0 1" not in legal_of(doubled, "cut_scope", small)
    assert why(doubled, "split_scope y@0 2", small).legal
    plain = program_of("8 2 y[{0},{1}] = exp(x[{0},{1}])", heap(x="8,2", y="8,2"))
    assert why(plain, "cut_scope y@0 1", small).legal, "what is not unrolled is as long as it is"
    assert why(plain, "unroll y@1", small).refusal.code == "unrolled-size", "an exp is long"
    beside = program_of("8 t[{0}] = x[{0}]\n2:u y[{0}] = t[{0}]", heap(x="8", y="2", t="8"))
    assert "cut_scope t@0 1" in legal_of(beside, "cut_scope", WIDE)
    assert why(beside, "cut_scope t@0 1", small).refusal.code == "unrolled-size"
    assert "cut_scope t@0 1" not in legal_of(beside, "cut_scope", small)
    deep = program_of("2 " * 15 + "4 y[] = x[]", heap(x="", y=""))
    assert why(deep, "split_scope y@15 2", WIDE).refusal.code == "too-large"
    assert not legal_of(deep, "split_scope", WIDE)
    full = program_of("\n".join(f"2 y[{n}] = x[{n}]" for n in range(250)), heap(x="250", y="250"))
    assert why(full, "cut_scope y@0 1", WIDE).refusal.code == "too-large"
    assert not legal_of(full, "cut_scope", WIDE)
    names = [f"x{n}" for n in range(KERNEL_LIMITS["buffers"] - 1)]
    many = program_of("8 8 y[{0},{1}] = x0[{0}]", heap(y="8,8", **dict.fromkeys(names, "8")))
    assert why(many, "stage_read x0 y@0 x0p", WIDE).refusal.code == "too-large"
    assert not legal_of(many, "stage_read", WIDE)


class Forgets(Transformation):
    """A move with a fault in it: it leaves a buffer out, and may leave what used it."""

    name, family, parameters = "forget", "storage", (Parameter("buffer", "buffer"),)

    def __init__(self, later: bool) -> None:
        self.later = later

    def candidates(self, context):
        return ((buffer.name,) for buffer in context.program.buffers)

    def plan(self, context, arguments):
        program = context.program
        result = replace(program, buffers=tuple(b for b in program.buffers if b.name != arguments[0]))
        return Edit(lambda: result, [0]) if self.later else result


@pytest.mark.parametrize("later", [False, True])
def test_no_move_leaves_an_array_without_a_buffer(later):
    with patch.dict(REGISTRY, {"forget": Forgets(later)}):
        program = program_of(
            "8:v t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]\n| z[{0}] = 0", heap(x="8", y="8", z="8", t="8")
        )
        for buffer, kind in {
            "x": "an input",
            "y": "an output",
            "z": "an output",
            "t": "still in use",
        }.items():
            verdict = why(program, Move("forget", (buffer,)), WIDE)
            assert verdict.refusal.code == "no-buffer" and verdict.refusal.structural
            assert verdict.refusal.sentence == f"{buffer} would have no buffer, and it is {kind}."
        assert not [m for m in legal_moves(program, WIDE) if m.name == "forget"]
        assert len([m for m, _ in blocked_moves(program, WIDE) if m.name == "forget"]) == 4


class Silences(Forgets):
    """A third: it leaves out all that writes an array."""

    def plan(self, context, arguments):
        body = tuple(n for n in context.program.body if arguments[0] not in n.arrays)
        return context.program.edit(body=body)


def test_no_move_leaves_an_output_without_a_write():
    with patch.dict(REGISTRY, {"forget": Silences(False)}):
        program = program_of(
            "8 y[{0}] = x[{0}]\n8 t[{0}] = 0\n8 z[{0}] = x[{0}]", heap(x="8", y="8", z="8", t="8")
        )
        assert why(program, Move("forget", ("t",)), WIDE).legal
        verdict = why(program, Move("forget", ("z",)), WIDE)
        assert verdict.refusal.code == "never-written"
        assert verdict.refusal.sentence == "z is an output, and nothing would write it."
        assert [str(m) for m in legal_moves(program, WIDE) if m.name == "forget"] == ["forget t"]


class Invents(Forgets):
    """Another one: it names an array that there is not."""

    def plan(self, context, arguments):
        op = replace(context.program.leaves[0].op, operands=(Access("q", ()),))
        return context.program.splice((0, 0), 1, (op,))


def test_no_move_brings_an_array_without_a_buffer():
    with patch.dict(REGISTRY, {"forget": Invents(False)}):
        program = program_of(COPY, XY)
        verdict = why(program, Move("forget", ("y",)), WIDE)
        assert verdict.sentence.startswith(
            "forget y is not legal. q would have no buffer, and it is still in use."
        )
        assert not [m for m in legal_moves(program, WIDE) if m.name == "forget"]


def test_a_name_that_is_no_move():
    verdict = why(program_of(COPY, XY), Move("fly"), WIDE)
    assert verdict.refusal.code == "unknown-move" and verdict.refusal.structural


def test_an_operation_is_no_scope():
    assert why(program_of(COPY, XY), Move("unroll", (Place("y"),)), WIDE).refusal.code == "no-such-place"


@pytest.mark.parametrize(
    ("move", "buffers", "body", "told"),
    [
        ("unroll q@0", XY, COPY, "No operation writes q. Those written: y."),
        ("reuse_dims u 0", SHARED, CHAIN, "The array u lives in the buffer t: name that."),
        ("vectorize y@0", heap(x="8", y=""), "8 y[] = x[{0}]", "All lanes would write the same cell y[]."),
    ],
)
def test_the_sentence_says_which(move, buffers, body, told):
    assert told in why(program_of(body, buffers), move, WIDE).sentence


def test_marks_are_judged_anew_where_only_a_buffer_differs():
    program = program_of("8:v t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", XTY)
    assert mark_fault(program, WIDE, "reassoc") is None
    (dim,) = program.buffer_of["t"].dims
    contracted = replace(program.buffer_of["t"], dims=(replace(dim, materialised=False),))
    edited = program.edit(buffers=tuple(contracted if b.name == "t" else b for b in program.buffers))
    assert all(a is b for a, b in zip(edited.body, program.body, strict=True)), "the scopes are the same"
    fault = mark_fault(edited, WIDE, "reassoc")
    assert fault is not None and fault.code == "vector-stride"


def test_a_pad_beyond_the_limit_is_not_said_to_add_nothing():
    program = program_of(APART, XTY)
    for move in ("pad_scope t@0 999999999999 guard", "pad_dim t 0 2147483648"):
        sentence = why(program, move).sentence
        assert "is beyond the limit of 2147483647" in sentence and "adds none" not in sentence


def test_of_many_buffers_each_is_offered_to_the_next_ones_alone():
    """Of 64 all pairs are listed; beyond, what is not listed may be played."""

    def chained(last: int) -> tuple[Program, set[str]]:
        body = [f"8 t{n}[{{0}}] = {f't{n - 1}' if n else 'x'}[{{0}}]*2" for n in range(last)]
        names = {f"t{n}": "8" for n in range(last)}
        program = program_of(
            "\n".join([*body, f"8 y[{{0}}] = t{last - 1}[{{0}}]"]), heap(x="8", y="8", **names)
        )
        return program, {*map(str, all_candidates(context(program, WIDE, "reassoc"), ["share_buffer"]))}

    few, offered = chained(62)
    assert len(few.buffers) == 64 and "share_buffer t0 t61" in offered
    many, offered = chained(200)
    assert {"share_buffer t0 t8", "share_buffer t8 t9"} <= offered and "share_buffer t0 t9" not in offered
    assert why(many, "share_buffer t0 t9", WIDE).legal
    assert len(offered) < 8 * len(many.buffers)
