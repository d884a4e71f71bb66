"""Pipelines of rows: one row is stored while the next one's sums are taken.

Where rows are gone over two or three times, as in a softmax, a core reads memory, then computes, then writes.
With each time as a stage, and the stages in one loop over blocks, each a row ahead of the next, it does all
at once, and nothing waits for a sum of its own row. Rows come in runs, one of which a thread fills and drains
its pipeline for. Sources: Lam, "Software pipelining", PLDI 1988; the recorded lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.passes.structure import below, from_memory, instances, only, scope_of, unmarked_at, uses
from agents.passes.threads import BALANCED, balance, independent
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.storage import buffer_named
from dojo_core.program.affine import Affine
from dojo_core.program.tables import affine
from dojo_core.program.tree import Access, Node, Op, Path, Program, Provenance, Scope, walk
from dojo_core.recipes import RECIPES, Sketch

STAGES = (2, 3)
PART = 4  # of the longest loop over a row, what one that goes over all of it does at least
RUNS = (128, 64, 32, 16, 8, 6, 4)  # rows of a run, the first that divides them and fits
EACH = 4  # runs for each thread at least, so that all have as much to do
KEPT = 2  # of a core's first cache, the share for what the stages of a run leave to each other
ROWS = 2  # of a cache, the share that a row of each stage may take
LONG = 64 << 10  # bytes of a row, from which on the processor foresees all but its beginning
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
    if not from_memory(program, target) or not unmarked_at(program, path):
        raise NoSuchPlace("The caches hold what its rows read and write.")
    scope = scope_of(program, path)
    loops = _long_loops(program, path)
    if len(loops) not in STAGES or len({scope_of(program, (*path, n)).size for n in loops}) > 1:
        raise NoSuchPlace("Its rows are not gone over twice or three times alike.")
    if not _runs(sketch, scope.size) or not independent(sketch, path):
        raise NoSuchPlace("Threads cannot share its rows in runs.")
    first, last = (below(program, (*path, n)) for n in (loops[0], loops[-1]))
    read = {a.array for leaf in first for a in leaf.op.reads if uses(a, len(path) - 1)} & set(program.inputs)
    if not read or not {leaf.op.target.array for leaf in last} & set(program.outputs):
        raise NoSuchPlace("Its rows do not come from memory and go back there.")
    row = sum(program.buffer_of[array].bytes for array in read) // scope.size
    cache = target.cache_bytes if row <= target.cache_bytes else target.shared_cache_bytes // target.threads
    if row * len(loops) > cache // ROWS:
        raise NoSuchPlace("A row of each stage would not stay in the cache.")
    stages, end = list[Stage](), 0
    for loop in loops:
        begin = loop
        while begin > end and _sets(scope.body[begin - 1]):
            begin -= 1
        stages.append(Stage(begin if stages else 0, loop))
        end = loop + 1
    return stages


def _sets(node: Node) -> bool:
    """Does a node set arrays to numbers, and nothing else?"""
    ops = [each for each, _, _ in walk((node,)) if isinstance(each, Op)]
    return all(not op.accumulate and not any(isinstance(o, Access) for o in op.operands) for op in ops)


def _long_loops(program: Program, path: Path, beside: int = -1) -> list[int]:
    """The children of a scope over rows that go over all of a row: the others do less than a part of that.
    One, ``beside``, is left out."""
    done = {n: instances(program, (*path, n)) for n in _loops(program, path) if n != beside}
    return [n for n, count in done.items() if count * PART >= max(done.values())]


def _pipeline(sketch: Sketch, path: Path) -> None:
    """Raises where there are no stages, or a move is refused."""
    stages = stages_of(sketch, path)
    kept = _kept(sketch.program, path, stages)
    rows = _rows_of_a_run(sketch, path, kept)
    sketch.play("split_scope", sketch.place(path), rows)
    around, path = path, (*path, 0)
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
    for leaf in below(program, path):
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
    row = sum(buffer_named(sketch.program, name).bytes for name in kept)  # they keep nothing from row to row
    most = sketch.context.target.first_cache_bytes // KEPT
    return only(n for n in _runs(sketch, scope_of(sketch.program, path).size) if n * row <= most)


def _runs(sketch: Sketch, rows: int) -> list[int]:
    """The lengths of runs that divide rows, and these among threads."""
    threads = sketch.context.target.threads
    return [
        n
        for n in RUNS
        if rows % n == 0 and rows // n >= EACH * threads and balance(rows // n, threads) >= BALANCED
    ]


def _ask_ahead(sketch: Sketch, loop: Path) -> None:
    """Ask for the elements some way ahead of those that the first stage reads, where rows are short."""
    program = sketch.program
    runs, rows = (scope_of(program, loop[:n]).size for n in (1, 2))
    for leaf in below(program, loop):
        for access in leaf.op.reads:
            short = program.buffer_of[access.array].bytes <= LONG * runs * rows
            if access.array in program.inputs and short and access.index[-1].uses(len(loop) - 1):
                further = Access(access.array, (*access.index[:-1], affine(access.index[-1]) + AHEAD))
                sketch.may("prefetch", sketch.place(leaf.path), str(further))
                return


def _join_loops(sketch: Sketch, around: Path, stages: int) -> None:
    """Make one loop over blocks of those of the rows that are in the pipeline together: where it fills, in
    the scope that all stages share, where it drains."""
    program = sketch.program
    loops = _loops(program, around)
    shared = only(n for n in loops if len(_long_loops(program, (*around, n))) == stages)
    numbers = _long_loops(program, around, beside=shared)
    before, behind = [n for n in numbers if n < shared], [n for n in numbers if n > shared]
    groups = [[(*around, shared, n) for n in _long_loops(program, (*around, shared))]]
    for count in range(1, stages):
        groups += [[(*around, n) for n in before[:count]], [(*around, n) for n in behind[-count:]]]
        del before[:count], behind[-count:]
    for first, *others in [[sketch.provenance(path) for path in group] for group in groups]:
        for other in others:
            _join(sketch, first, other)


def _loops(program: Program, path: Path) -> list[int]:
    """The children of a scope that are loops."""
    children = enumerate(scope_of(program, path).body)
    return [n for n, child in children if isinstance(child, Scope) and not child.mark]


def _join(sketch: Sketch, first: Provenance, second: Provenance) -> None:
    """Join two loops, and in them the last of the first with the one of the second, where they are alike."""
    inner = [
        [sketch.provenance((*path, n)) for n in _loops(sketch.program, path)]
        for path in (sketch.path(first), sketch.path(second))
    ]
    RECIPES["fuse_with"].run(sketch, sketch.place(sketch.path(first)), sketch.place(sketch.path(second)))
    if inner[0] and len(inner[1]) == 1:
        last, one = inner[0][-1], inner[1][0]
        if (
            scope_of(sketch.program, sketch.path(last)).size
            == scope_of(sketch.program, sketch.path(one)).size
        ):
            _join(sketch, last, one)
