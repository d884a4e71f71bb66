"""What mapping a nest to threads takes: scopes cut and ordered, one operation a nest, storage of a thread."""

from __future__ import annotations

from agents.passes.structure import scope_of
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.storage import buffer_named, temporaries
from dojo_core.program.tree import Op, Path, Provenance, Scope
from dojo_core.recipes import Sketch

UNROLLED = 64  # values of one thread that its registers hold well


def cut(sketch: Sketch, provenance: Provenance, factor: int) -> tuple[Provenance, Provenance]:
    """Split a scope; gives the outer and the inner one."""
    path = sketch.path(provenance)
    sketch.play("split_scope", sketch.place(path), factor)
    return sketch.provenance(path), sketch.provenance((*path, 0))


def lift(sketch: Sketch, provenance: Provenance, depth: int) -> None:
    """Interchange a scope with those around it until it stands at a depth."""
    while len(path := sketch.path(provenance)) - 1 > depth:
        sketch.play("interchange", sketch.place(path[:-1]))


def mark(sketch: Sketch, name: str, provenance: Provenance) -> None:
    """``map_grid``, ``map_block``, ``unroll``, …"""
    sketch.play(name, sketch.place(sketch.path(provenance)))


def vector_or_unrolled(sketch: Sketch, provenance: Provenance) -> None:
    """Lanes of one vector where the scope allows it, else copies of its operation."""
    place = sketch.place(sketch.path(provenance))
    if not sketch.may("vectorize", place):
        sketch.play("unroll", place)


def divisor(size: int, most: int) -> int:
    """The largest divisor of a size up to a limit."""
    return next(n for n in range(min(size, most), 0, -1) if size % n == 0)


def separate(sketch: Sketch, provenance: Provenance, top: int) -> list[Provenance]:
    """Nests of one operation each, out of one of several: its scopes down to depth ``top`` are taken apart.

    Gives the innermost ones. Raises where the operations are not all in one scope, or must stay together.
    """
    path = sketch.path(provenance)
    while any(isinstance(n, Scope) for n in scope_of(sketch.program, path).body):
        if len(scope_of(sketch.program, path).body) > 1:
            raise NoSuchPlace("The nest is not perfect.")
        path = (*path, 0)
    operations = [child.provenance for child in scope_of(sketch.program, path).body]
    for operation in operations[1:]:
        outer = sketch.path(operation)
        for depth in range(len(outer) - 1, top, -1):
            inner = sketch.path(operation)[: depth + 1]
            sketch.play("fission_scope", sketch.place(inner[:-1]), sketch.place(inner))
    return [sketch.provenance(sketch.path(o)[:-1]) for o in operations]


def own_arrays(sketch: Sketch, path: Path) -> list[str]:
    """Temporaries that only the nest at a path accesses."""
    inside: set[str] = set()
    outside: set[str] = set()
    for leaf in sketch.program.leaves:
        names = {sketch.program.buffer_of[a.array].name for a in (leaf.op.target, *leaf.op.reads)}
        (inside if leaf.path[: len(path)] == path else outside).update(names)
    return [b.name for b in temporaries(sketch.program) if b.name in inside - outside]


def to_heap(sketch: Sketch, name: str) -> None:
    """An element for each iteration, where all threads find it while scopes are being marked."""
    if buffer_named(sketch.program, name).location != "heap":
        sketch.play("set_location", name, "heap")
    gone = [k for k, dim in enumerate(buffer_named(sketch.program, name).dims) if not dim.materialised]
    if gone:
        sketch.play("materialise_dims", name, *gone)


def to_thread(sketch: Sketch, name: str, depth: int, location: str = "local") -> bool:
    """Keep a buffer in registers of a thread, or in memory shared by a block, for one iteration of the first
    ``depth`` scopes: dimensions that only these go along are used anew, all of them where an element is read
    in the iteration that writes it. Gives whether that is legal."""
    program, buffer = sketch.program, buffer_named(sketch.program, name)
    every = [k for k, dim in enumerate(buffer.dims) if dim.materialised]
    if location == "local" and every and sketch.may("reuse_dims", name, *every, location):
        return True
    inside = {
        k
        for leaf in program.leaves
        for access in (leaf.op.target, *leaf.op.reads)
        if program.buffer_of[access.array].name == name
        for k, form in enumerate(access.index)
        if any(d >= depth for d in form.depths)
    }
    reused = [k for k, dim in enumerate(buffer.dims) if dim.materialised and k not in inside]
    if reused:
        return sketch.may("reuse_dims", name, *reused, location)
    return sketch.may("set_location", name, location)


def operations(sketch: Sketch, path: Path) -> list[Op]:
    """The operations of the nest at a path, in order."""
    return [leaf.op for leaf in sketch.program.leaves if leaf.path[: len(path)] == path]
