"""The heuristic pass for Snitch: as many sums as hide the FPU's latency, then streams, then hardware loops.

It knows no kernel by name. A reduction whose results lie in a scope around it computes several of them at
once, that scope cut and its block brought innermost and unrolled; one that has a single result gets partial
sums. Source: PerfDojo, SC '25, section 4.1 ("tile the outermost scopes by 4, move that scope innermost,
unroll it").
"""

from __future__ import annotations

from agents.passes.fusion import use_reciprocals
from agents.passes.naive import naive
from agents.passes.structure import leaf_of, only, scope_of
from dojo_core.moves.places import NoSuchPlace, Place, fresh_name
from dojo_core.moves.storage import temporaries
from dojo_core.program.affine import Affine
from dojo_core.program.dependence import is_reduction
from dojo_core.program.tree import Leaf, Op, Path, Provenance, Scope, walk
from dojo_core.recipes import Sketch
from dojo_core.targets.snitch.limits import SnitchTarget
from dojo_core.targets.snitch.streams import memory_slots

COPIES = (8, 4, 5, 6, 7, 3, 2)  # an addition takes four cycles; a body has at most sixteen instructions
PARTIAL_SUMS = (4, 5, 6, 7, 8)


def heuristic_on_snitch(sketch: Sketch) -> None:
    """Play the whole pass; moves that are refused are left out."""
    use_reciprocals(sketch)  # a division is some eighty instructions here
    for provenance in [leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.accumulate]:
        leaf = leaf_of(sketch.program, provenance)
        if leaf is None or not leaf.scopes or not is_reduction(leaf, len(leaf.scopes) - 1):
            continue
        around = [d for d in range(len(leaf.scopes)) if not is_reduction(leaf, d)]
        done = len(sketch.moves)
        for copies in COPIES if around else PARTIAL_SUMS:
            with sketch.attempt():
                if around:
                    _several_results(sketch, provenance, around[-1], copies)
                else:
                    _partial_sums(sketch, provenance, copies)
            if len(sketch.moves) > done:
                break
    with sketch.attempt():
        naive(sketch)
        for buffer in list(temporaries(sketch.program)):
            sketch.may("set_location", buffer.name, "register")
        _hold_scalars(sketch)
        _within_streams(sketch)
    for provenance in [n.provenance for n in sketch.program.body if isinstance(n, Scope)]:
        _streamed(sketch, provenance)
    for provenance in [
        n.provenance for n, _, _ in walk(sketch.program.body) if isinstance(n, Scope) and not n.mark
    ]:
        path = sketch.path(provenance)
        if any(s.mark == "s" for s in sketch.program.scopes_above(path)):
            sketch.may("frep", sketch.place(path))


def _leaf(sketch: Sketch, provenance: Provenance) -> Leaf:
    return only(leaf for leaf in sketch.program.leaves if leaf.op.provenance == provenance)


def _several_results(sketch: Sketch, provenance: Provenance, depth: int, copies: int) -> None:
    """Block the scope of the results, the block innermost, its sums in registers, stored once."""
    array = _leaf(sketch, provenance).op.target.array
    first = only(leaf.op.provenance for leaf in sketch.program.leaves if leaf.op.target.array == array)
    shared = _leaf(sketch, provenance).path[: depth + 1]
    if first != provenance and _leaf(sketch, first).path[: depth + 1] == shared:
        below = _leaf(sketch, provenance).path[: depth + 2]
        sketch.play("fission_scope", sketch.place(shared), sketch.place(below))
    whole = _leaf(sketch, provenance).scopes[depth].size == copies  # then the scope itself is the block
    for each in dict.fromkeys((provenance, first)):  # what sets the sums to 0 is blocked alike
        _block(sketch, each, depth, copies)
    around = depth if whole else depth + 1  # scopes around the block
    if first != provenance:
        for level in range(around):
            start, sum_path = _leaf(sketch, first).path, _leaf(sketch, provenance).path
            if start[: level + 1] != sum_path[: level + 1]:
                sketch.play("join_scopes", sketch.place(start[: level + 1]))
    name = fresh_name(sketch.program, f"r{array}")
    held = _leaf(sketch, provenance).path[:around]
    sketch.play("stage_write", array, sketch.place(held) if held else "root", name)
    _in_registers(sketch, name, copies)


def _block(sketch: Sketch, provenance: Provenance, depth: int, copies: int) -> None:
    """Cut the scope at a depth around an operation, and bring its block innermost."""
    leaf = _leaf(sketch, provenance)
    if leaf.scopes[depth].size == copies:
        return _inwards(sketch, provenance, depth)
    sketch.play("split_scope", sketch.place(leaf.path[: depth + 1]), copies)
    _inwards(sketch, provenance, depth + 1)


def _inwards(sketch: Sketch, provenance: Provenance, depth: int) -> None:
    for level in range(depth, len(_leaf(sketch, provenance).scopes) - 1):
        sketch.play("interchange", sketch.place(_leaf(sketch, provenance).path[: level + 1]))


def _partial_sums(sketch: Sketch, provenance: Provenance, copies: int) -> None:
    """Partial sums along the innermost scope, and the total, in registers."""
    leaf = _leaf(sketch, provenance)
    array, depth = leaf.op.target.array, len(leaf.scopes) - 1
    sketch.play("split_scope", sketch.place(leaf.path[:-1]), copies)
    place = sketch.place(_leaf(sketch, provenance).path)
    name = fresh_name(sketch.program, f"p{array}")
    sketch.play("split_reduction", Place(place.array, place.number, depth + 1), name)
    _in_registers(sketch, name, copies)
    total = fresh_name(sketch.program, f"r{array}")
    sketch.play("stage_write", array, "root", total)
    sketch.play("set_location", total, "register")


def _in_registers(sketch: Sketch, name: str, copies: int) -> None:
    """Unroll the loops over an array's cells, then keep them in registers."""
    provenances = [
        leaf.scopes[-1].provenance
        for leaf in sketch.program.leaves
        if leaf.scopes and name in (leaf.op.target.array, *(a.array for a in leaf.op.reads))
    ]
    for provenance in dict.fromkeys(provenances):
        path = sketch.path(provenance)
        scope = scope_of(sketch.program, path)
        if scope.size == copies and not scope.mark:
            sketch.play("unroll", sketch.place(path))
    sketch.play("set_location", name, "register")


def _hold_scalars(sketch: Sketch) -> None:
    """What a nest reads again and again from one cell, in a register: a stream less."""
    for leaf in sketch.program.leaves:
        for access in leaf.op.reads:
            fixed = leaf.scopes and all(isinstance(i, Affine) and i.is_constant for i in access.index)
            buffer = sketch.program.buffer_of.get(access.array)
            if fixed and buffer is not None and buffer.location != "register":
                with sketch.attempt():
                    name = fresh_name(sketch.program, f"r{access.array}")
                    sketch.play("stage_read", access.array, "root", name)
                    sketch.play("set_location", name, "register")


def _within_streams(sketch: Sketch) -> None:
    """Raises NoSuchPlace where a nest reaches memory more often than there are streams."""
    target = sketch.context.target
    assert isinstance(target, SnitchTarget)
    for number, node in enumerate(sketch.program.body):
        inside = [leaf.op for leaf in sketch.program.leaves if leaf.path[0] == number]
        count = sum(len(list(memory_slots(sketch.program, op))) for op in inside)
        if isinstance(node, Scope) and count > target.streams:
            raise NoSuchPlace("Joined, the nests reach memory more often than there are streams.")


def _streamed(sketch: Sketch, provenance: Provenance) -> None:
    """Stream a nest, or what is in it; a single loop stands in a scope of one iteration, to be repeated."""
    path = sketch.path(provenance)
    scope = scope_of(sketch.program, path)
    if _single(scope) and not scope.mark:
        count = len(sketch.moves)
        with sketch.attempt():
            sketch.play("wrap", sketch.place(path), 1)
            sketch.play("ssr", sketch.place(path))
        if len(sketch.moves) > count:
            return
    if scope.mark or sketch.may("ssr", sketch.place(path)):
        return
    inner: list[Path] = [(*path, n) for n, child in enumerate(scope.body) if isinstance(child, Scope)]
    for below in [sketch.provenance(p) for p in inner]:
        _streamed(sketch, below)


def _single(scope: Scope) -> bool:
    """Does a scope hold operations and unrolled scopes only?"""
    return all(isinstance(c, Op) or c.mark == "u" for c in scope.body)
