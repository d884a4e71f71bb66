"""The greedy pass: naive, then every move of the target's hardware wherever it applies.

It cuts innermost scopes by the widest vectors that divide them, vectorises them, moves temporaries as
close as they fit, unrolls what is small and gives the outermost scopes to threads.
Source: PerfDojo, SC '25, section 4.1.
"""

from __future__ import annotations

from agents.passes.naive import naive
from agents.passes.structure import innermost, scope_of
from agents.passes.threads import share_work
from dojo_core.moves.storage import temporaries
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

UNROLLED = 8  # iterations that are written out at most


def greedy(sketch: Sketch) -> None:
    """Naive, then vectors, locations, unrolling and threads."""
    naive(sketch)
    widths = sorted({w for each in sketch.context.target.vector_widths.values() for w in each}, reverse=True)
    for provenance in [sketch.provenance(path) for path in innermost(sketch.program)]:
        for width in widths:
            if _vectorised(sketch, provenance, width):
                break
    for name in [b.name for b in temporaries(sketch.program)]:
        _ = sketch.may("set_location", name, "register") or sketch.may("set_location", name, "stack")
    for provenance in [sketch.provenance(path) for path in innermost(sketch.program)]:
        path = sketch.path(provenance)
        if scope_of(sketch.program, path).size <= UNROLLED:
            sketch.may("unroll", sketch.place(path))
    share_work(sketch)


def _vectorised(sketch: Sketch, provenance: Provenance, width: int) -> bool:
    """Vectorise a scope, cut by the width where it is longer; nothing happens where that is not legal."""
    done = False
    with sketch.attempt():
        path = sketch.path(provenance)
        if scope_of(sketch.program, path).size != width:
            sketch.play("split_scope", sketch.place(path), width)
            path = (*path, 0)
        sketch.play("vectorize", sketch.place(path))
        if len(path) > 1 and scope_of(sketch.program, path[:-1]).size <= UNROLLED:
            sketch.may("unroll", sketch.place(path[:-1]))
        done = True
    return done
