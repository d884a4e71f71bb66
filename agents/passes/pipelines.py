"""Pipelines of rows: one row is stored while the next one's sums are taken.

Where rows are gone over two or three times, as in a softmax, a core reads memory, then computes, then writes.
With each time as a stage, and the stages in one loop over blocks, each a row ahead of the next, it does all
at once, and nothing waits for a sum of its own row. Rows come in runs, one of which a thread fills and drains
its pipeline for. Sources: Lam, "Software pipelining", PLDI 1988; the recorded lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.passes.structure import only, scope_of, traffic, unmarked_at, uses
from agents.passes.threads import BALANCED, balance, independent
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Buffer, Leaf, Node, Op, Path, Program, Provenance, Scope, walk
from dojo_core.recipes import RECIPES, Sketch

STAGES = (2, 3)
RUNS = (128, 64, 32, 16, 8, 6, 4)  # rows of a run, the first that divides them and fits
KEPT = 2  # of a core's first cache, the share for what the stages of a run leave to each other
ROWS = 4  # of a core's cache, the share that a row of each stage may take
AHEAD = 1536  # elements between what the first stage reads and what is asked for


@dataclass(frozen=True)
class Stage:
    """Where a stage begins in its scope, and the loop over blocks that it has: children's numbers."""

    begin: int
    loop: int


def pipeline_rows(sketch: Sketch) -> None:
    """Make a pipeline of each nest whose rows are gone over more than once, where memory is what binds."""
    for provenance in [node.provenance for node in sketch.program.body if isinstance(node, Scope)]:
        with sketch.attempt():
            _pipeline(sketch, sketch.path(provenance))


def stages_of(sketch: Sketch, path: Path) -> list[Stage]:
    """The stages that the rows of a nest at the root go through.

    Raises NoSuchPlace where they are no pipeline: too few or too many, of different lengths, not of rows
    that come from memory and go back there, or not for threads to share.
    """
    program, target = sketch.program, sketch.context.target
    if traffic(program) <= target.shared_cache_bytes or not unmarked_at(program, path):
        raise NoSuchPlace("The caches hold what its rows read and write.")
    scope = scope_of(program, path)
    loops = [n for n, child in enumerate(scope.body) if isinstance(child, Scope) and not child.mark]
    sizes = {child.size for n in loops if isinstance(child := scope.body[n], Scope)}
    if len(loops) not in STAGES or len(sizes) != 1 or not independent(sketch, path):
        raise NoSuchPlace("Its rows are not gone over twice or three times alike.")
    first, last = ({a.array for leaf in _below(program, (*path, loops[n])) for a in _used(leaf)} for n in (0, -1))
    if not first & set(program.inputs) or not last & set(program.outputs):
        raise NoSuchPlace("Its rows do not come from memory and go back there.")
    rows = sum(_row_bytes(program, path, array) for array in first | last)
    if rows * len(loops) > target.cache_bytes // ROWS:
        raise NoSuchPlace("A row of each stage would not stay in the cache.")
    stages, end = [], 0
    for loop in loops:
        begin = loop
        while begin > end and _sets(scope.body[begin - 1]):
            begin -= 1
        stages.append(Stage(begin if stages else 0, loop))
        end = loop + 1
    return stages


def _used(leaf: Leaf) -> tuple[Access, ...]:
    return (leaf.op.target, *leaf.op.reads)


def _below(program: Program, path: Path) -> list[Leaf]:
    return [leaf for leaf in program.leaves if leaf.path[: len(path)] == path]


def _sets(node: Node) -> bool:
    """Does a node set arrays to numbers, and nothing else?"""
    ops = [each for each, _, _ in walk((node,)) if isinstance(each, Op)]
    return all(not op.accumulate and not any(isinstance(o, Access) for o in op.operands) for op in ops)


def _row_bytes(program: Program, path: Path, array: str) -> int:
    """Of an array's bytes, those that one iteration of the scope goes over; none of one for all of them."""
    accesses = [a for leaf in _below(program, path) for a in _used(leaf) if a.array == array]
    along = any(uses(a, len(path) - 1) for a in accesses)
    return program.buffer_of[array].bytes // scope_of(program, path).size if along else 0


def _pipeline(sketch: Sketch, path: Path) -> None:
    """Raises where there are no stages, or a move is refused."""
    stages = stages_of(sketch, path)
    kept = _kept(sketch.program, path, stages)
    rows = _rows_of_a_run(sketch, path, kept)
    sketch.play("split_scope", sketch.place(path), rows)
    around, path = sketch.provenance(path), (*path, 0)
    for name, dim in kept.items():
        sketch.play("split_dim", name, dim, rows)
        if buffer_named(sketch.program, name).location == "register":
            sketch.play("set_location", name, "stack")
        sketch.play("materialise_dims", name, dim + 1)
    _ask_ahead(sketch, (*path, stages[0].loop))
    for stage in reversed(stages[1:]):
        sketch.play("fission_scope", sketch.place(path), sketch.place((*path, stage.begin)))
    RECIPES["pipeline"].run(sketch, sketch.place(path), len(stages))
    _join_loops(sketch, around, len(stages))


def _kept(program: Program, path: Path, stages: Sequence[Stage]) -> dict[str, int]:
    """Buffers that one stage leaves to a later one, each with its dimension along the rows.

    Raises NoSuchPlace where one has no such dimension, so that the rows would share it.
    """
    depth, found = len(path) - 1, dict[str, int]()
    written: dict[str, int] = {}
    for leaf in _below(program, path):
        stage = max(n for n, each in enumerate(stages) if each.begin <= leaf.path[len(path)])
        for access in leaf.op.reads:
            buffer = program.buffer_of[access.array]
            if written.get(buffer.name, stage) < stage:
                found[buffer.name] = only(
                    k for k, form in enumerate(access.index) if form == Affine.iterator(depth)
                )
        written.setdefault(program.buffer_of[leaf.op.target.array].name, stage)
    return found


def _rows_of_a_run(sketch: Sketch, path: Path, kept: dict[str, int]) -> int:
    program, target = sketch.program, sketch.context.target
    size = scope_of(program, path).size
    row = sum(_held(buffer_named(program, name)) for name in kept)
    fitting = (
        rows
        for rows in RUNS
        if size % rows == 0
        and rows * row <= target.first_cache_bytes // KEPT
        and balance(size // rows, target.threads) >= BALANCED
    )
    return only(fitting)


def _held(buffer: Buffer) -> int:
    """Bytes that a buffer which keeps nothing from row to row takes."""
    return buffer.bytes


def _ask_ahead(sketch: Sketch, loop: Path) -> None:
    """Ask for the elements some way ahead of those that the first stage reads."""
    program = sketch.program
    for leaf in _below(program, loop):
        for access in leaf.op.reads:
            last = affine(access.index[-1]) if access.index and not access.indirect else None
            if access.array in program.inputs and last is not None and last.uses(len(loop) - 1):
                further = Access(access.array, (*access.index[:-1], last + AHEAD))
                sketch.may("prefetch", sketch.place(leaf.path), str(further))
                return


def _join_loops(sketch: Sketch, around: Provenance, count: int) -> None:
    """Make one loop over blocks of those of the rows that are in the pipeline together: where it fills, in
    the scope that all stages share, where it drains."""
    path = sketch.path(around)
    loops = [
        sketch.provenance((*path, n))
        for n, child in enumerate(scope_of(sketch.program, path).body)
        if isinstance(child, Scope) and not child.mark
    ]
    filling = count * (count - 1) // 2
    shared = sketch.path(loops.pop(filling))
    within = [
        sketch.provenance((*shared, n))
        for n, child in enumerate(scope_of(sketch.program, shared).body)
        if isinstance(child, Scope) and not child.mark
    ]
    for together in (*range(1, count), *reversed(range(1, count))):
        _join(sketch, loops[:together])
        del loops[:together]
    _join(sketch, within)


def _join(sketch: Sketch, loops: Sequence[Provenance]) -> None:
    for other in loops[1:]:
        first = sketch.place(sketch.path(loops[0]))
        RECIPES["fuse_with"].run(sketch, first, sketch.place(sketch.path(other)))
