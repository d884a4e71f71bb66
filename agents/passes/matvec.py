"""A vector times a matrix in memory: whole runs of its rows, one after the other, added up in a near cache.

``c[j] += a[k]*b[k,j]`` shares nothing that registers could keep, and a tile of a few columns would take one
cache line of each row of a matrix that comes from memory. So the terms of the sum go outside the columns.
"""

from __future__ import annotations

from agents.passes.contractions import Contraction, find, initialisation, one_row
from agents.passes.nests import isolate, join_shared, leaf_at, order
from agents.passes.structure import depths_of, scope_of
from dojo_core.moves.places import NoSuchPlace
from dojo_core.program.tree import Provenance
from dojo_core.recipes import Sketch

RUN = 4096  # columns at most that are added up side by side: what the first-level cache holds beside the rows
SHORTEST = 256  # a run that memory delivers well


def run_along_rows(sketch: Sketch, operation: Provenance) -> None:
    """Order a sum for one row of results, where the matrix exceeds the cache; other sums stay as they are."""
    with sketch.attempt():
        contraction = find(sketch, operation)
        if not one_row(sketch, contraction):
            raise NoSuchPlace("Its rows share what they read, or it stays in the cache.")
        isolate(sketch, operation)
        first = initialisation(sketch, operation, contraction)
        if first is None:
            raise NoSuchPlace("Nothing sets the result to a number first.")
        isolate(sketch, first.sum)
        columns, threads = (
            scope_of(sketch.program, sketch.path(contraction.columns)).size,
            sketch.context.target.threads,
        )
        runs = [n for n in range(SHORTEST, RUN + 1) if columns % n == 0 and columns // n % threads == 0]
        if not runs:
            raise NoSuchPlace("No run divides the columns among threads.")
        join_shared(sketch, [_ordered(sketch, nest, runs[-1]) for nest in (first, contraction)])


def _ordered(sketch: Sketch, nest: Contraction, run: int) -> list[Provenance]:
    """Other scopes, runs, terms, columns of a run; gives the scopes outside the terms."""
    path = sketch.path(nest.columns)
    sketch.play("split_scope", sketch.place(path), run)
    runs, columns = sketch.provenance(path), sketch.provenance((*path, 0))
    leaf = leaf_at(sketch, nest.sum)
    spatial = depths_of(leaf.op.target)
    others = [
        s.provenance
        for d, s in enumerate(leaf.scopes)
        if d in spatial and s.provenance not in (runs, columns)
    ]
    terms = [s.provenance for d, s in enumerate(leaf.scopes) if d not in spatial]
    order(sketch, nest.sum, [*others, runs, *terms, columns])
    return [*others, runs]
