"""V3 on Snitch: what ``:s`` and ``:f`` scopes must meet, numbered as in the moves ``ssr`` and ``frep``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dojo_core.program.dependence import Touch, Witness, meeting
from dojo_core.program.flow import orders
from dojo_core.program.tree import Leaf, Op, Path, Program, Scope, walk
from dojo_core.program.validity import Fault
from dojo_core.targets.snitch.streams import (
    REPEATABLE,
    Stream,
    is_direct,
    is_plain,
    memory_slots,
    repeated_instructions,
    streams_of,
    touch_of,
)

if TYPE_CHECKING:
    from dojo_core.targets.snitch.limits import SnitchTarget


def snitch_fault(program: Program, target: SnitchTarget) -> Fault | None:
    """The first violation, or None."""
    return next(_faults(program, target), None)


def _faults(program: Program, target: SnitchTarget) -> Iterator[Fault]:
    for node, path, above in walk(program.body):
        if not isinstance(node, Scope):
            continue
        if node.mark == "s":
            yield from _region(program, node, path, above, target)
        elif node.mark == "f":
            yield from _loop(program, node, path, above, target)


def _fault(code: str, sentence: str, *nodes: Path, witness: Witness | None = None) -> Fault:
    return Fault(code, "", "", sentence, nodes, witness)


# ---------------------------------------------------------------------------- streams


def _region(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: SnitchTarget
) -> Iterator[Fault]:
    if any(s.mark in ("s", "f") for s in above):  # 2
        yield _fault("stream-nested", "A stream scope stands in another, or in a hardware loop.", path)
        return
    leaves = [leaf for leaf in program.leaves if leaf.path[: len(path)] == path]
    accesses = [(leaf, access) for leaf in leaves for _, access in memory_slots(program, leaf.op)]
    if not accesses or len(accesses) > target.streams:  # 3
        told = f"There are {len(accesses)} accesses to memory in it; a core has {target.streams} streams."
        yield _fault("stream-count", told if accesses else "No access in it touches memory.", path)
        return
    for leaf, access in accesses:
        dtype = program.buffer_of[access.array].dtype
        if dtype != "f64":  # 4
            yield _fault(
                "stream-dtype", f"{access} is {dtype}: a stream has elements of 8 bytes, f64.", leaf.path
            )
        if not is_direct(access):  # 5
            yield _fault(
                "stream-index", f"{access} goes through a table: a stream walks affine loops.", leaf.path
            )
            return
        if leaf.op.guard:  # 6
            told = f"{access} is used under a guard: a stream gives its elements in each iteration."
            yield _fault("stream-guard", told, leaf.path)
    found = streams_of(program, path, target.repeat)
    for one in found:
        if len(one.dims) > target.dims:  # 5
            told = f"{one.access} needs {len(one.dims)} loops; a stream walks {target.dims}."
            yield _fault("stream-dims", told, path)
    yield from _order(program, found, len(path) - 1)


def _order(program: Program, found: list[Stream], depth: int) -> Iterator[Fault]:
    """7: streams run ahead of the core and behind it, each by itself."""
    for write in found:
        for other in found:
            home = program.buffer_of[other.access.array]
            if not write.write or other is write or program.buffer_of[write.access.array] is not home:
                continue
            dims = [k for k, d in enumerate(home.dims) if d.materialised]
            witness = _before(touch_of(write), touch_of(other), depth, dims)
            if witness is not None:
                does = "written by another stream" if other.write else "read ahead"
                told = (
                    f"{other.access} is {does}, and {write.access} may be written later than the text says."
                )
                yield _fault("stream-order", told, write.leaf.path, other.leaf.path, witness=witness)


def _before(write: Touch, other: Touch, depth: int, dims: list[int]) -> Witness | None:
    """An instance of the write before one of the other access, in one run of the region, on one cell."""
    for order in orders(write, other, depth):
        witness = meeting(write, other, depth, order, dims)
        if witness is not None:
            return witness
    return None


# ---------------------------------------------------------------------------- hardware loops


def _loop(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: SnitchTarget
) -> Iterator[Fault]:
    inside = [n for n, _, _ in walk(scope.body) if isinstance(n, Scope) and n.mark != "u"]
    if inside:  # 2
        yield _fault("repeat-nest", "A hardware loop holds operations and unrolled scopes only.", path)
        return
    streamed = any(s.mark == "s" for s in above)
    for leaf in program.leaves:
        if leaf.path[: len(path)] != path:
            continue
        reason = _unrepeatable(program, leaf, streamed)
        if reason is not None:
            yield _fault(*reason, leaf.path)
    count = repeated_instructions(program, scope, streamed)
    if count > target.body:  # 5
        told = f"Its body takes {count} instructions; the sequencer holds {target.body}."
        yield _fault("repeat-size", told, path)
    if scope.size > target.repeats:  # 6
        yield _fault("repeat-count", f"A hardware loop runs {target.repeats} times at most.", path)


def _unrepeatable(program: Program, leaf: Leaf, streamed: bool) -> tuple[str, str] | None:
    """Why the FPU cannot repeat an operation by itself."""
    op: Op = leaf.op
    arrays = (op.target.array, *(a.array for a in op.reads))
    if op.function not in REPEATABLE or len({program.buffer_of[a].dtype for a in arrays}) > 1:  # 3
        return "repeat-function", f"{op.function or 'A conversion'} is no instruction that the FPU repeats."
    if not is_plain(op):  # 3
        return "repeat-integer", "A guard or an iterator as a value needs the integer core in each iteration."
    access = next((a for _, a in memory_slots(program, op)), None)
    if access is not None and not streamed:  # 4
        return "repeat-memory", f"{access} is in memory: in a hardware loop only a stream reaches it."
    return None
