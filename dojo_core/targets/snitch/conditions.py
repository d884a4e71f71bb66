"""V3 on Snitch: what ``:s`` and ``:f`` scopes must meet, numbered as in the moves ``ssr`` and ``frep``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dojo_core.program.affine import Affine
from dojo_core.program.codes import Code
from dojo_core.program.dependence import MemoryAccess, Witness, meeting
from dojo_core.program.reaching import orders
from dojo_core.program.tree import Leaf, Op, Path, Program, Scope, walk
from dojo_core.program.validity import Fault
from dojo_core.targets.snitch.elementary import SOFTWARE
from dojo_core.targets.snitch.streams import (
    REPEATABLE,
    Stream,
    memory_access,
    memory_slots,
    repeated_instructions,
    streams_of,
)

if TYPE_CHECKING:
    from dojo_core.targets.snitch.limits import SnitchTarget


def snitch_fault(program: Program, target: SnitchTarget) -> Fault | None:
    """The first violation, or None."""
    for node, path, above in walk(program.body):
        if isinstance(node, Scope) and node.mark in _JUDGES:
            fault = _JUDGES[node.mark](program, node, path, above, target)
            if fault is not None:
                return fault
    return None


def _fault(code: str, sentence: str, *nodes: Path, witness: Witness | None = None) -> Fault:
    return Fault(code, "", "", sentence, nodes, witness)


# ---------------------------------------------------------------------------- streams


def _region(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: SnitchTarget
) -> Fault | None:
    if any(s.mark in ("s", "f") for s in above):  # 2
        return _fault(Code.STREAM_NESTED, "A stream scope stands in another, or in a hardware loop.", path)
    leaves = [leaf for leaf in program.leaves if leaf.path[: len(path)] == path]
    accesses = [(leaf, access) for leaf in leaves for _, access in memory_slots(program, leaf.op)]
    if not accesses:  # 3
        return _fault(Code.STREAM_COUNT, "No access in it touches memory.", path)
    if len(accesses) > target.streams:  # 3
        message = f"There are {len(accesses)} accesses to memory in it; a core has {target.streams} streams."
        return _fault(Code.STREAM_COUNT, message, path)
    for leaf, access in accesses:
        dtype = program.buffer_of[access.array].dtype
        if dtype != "f64":  # 4
            message = f"{access} is {dtype}: a stream has elements of 8 bytes, f64."
            return _fault(Code.STREAM_DTYPE, message, leaf.path)
        if access.indirect:  # 5
            message = f"{access} is indirect: a stream walks affine loops."
            return _fault(Code.STREAM_INDEX, message, leaf.path)
        if leaf.op.guard:  # 6
            message = f"{access} is used under a guard: a stream gives its elements in each iteration."
            return _fault(Code.STREAM_GUARD, message, leaf.path)
    streams = streams_of(program, path, target.repeat)
    for one in streams:
        if len(one.dims) > target.dims:  # 5
            message = f"{one.access} needs {len(one.dims)} loops; a stream walks {target.dims}."
            return _fault(Code.STREAM_DIMS, message, path)
    return _order(program, streams, len(path) - 1)


def _order(program: Program, streams: list[Stream], depth: int) -> Fault | None:
    """7: streams run ahead of the core and behind it, each by itself."""
    for write in (s for s in streams if s.write):
        for other in (s for s in streams if s is not write):
            home = program.buffer_of[other.access.array]
            if program.buffer_of[write.access.array] is not home:
                continue
            dims = [k for k, d in enumerate(home.dims) if d.materialised]
            witness = _before(memory_access(write), memory_access(other), depth, dims)
            if witness is not None:
                does = "written by another stream" if other.write else "read ahead"
                message = (
                    f"{other.access} is {does}, and {write.access} may be written later than the text says."
                )
                return _fault(Code.STREAM_ORDER, message, write.leaf.path, other.leaf.path, witness=witness)
    return None


def _before(write: MemoryAccess, other: MemoryAccess, depth: int, dims: list[int]) -> Witness | None:
    """An instance of the write before one of the other access, in one run of the region, on one cell."""
    for order in orders(write, other, depth):
        witness = meeting(write, other, depth, order, dims)
        if witness is not None:
            return witness
    return None


# ---------------------------------------------------------------------------- hardware loops


def _loop(
    program: Program, scope: Scope, path: Path, above: tuple[Scope, ...], target: SnitchTarget
) -> Fault | None:
    if any(isinstance(n, Scope) and n.mark != "u" for n, _, _ in walk(scope.body)):  # 2
        return _fault(Code.REPEAT_NEST, "A hardware loop holds operations and unrolled scopes only.", path)
    streamed = any(s.mark == "s" for s in above)
    for leaf in (leaf for leaf in program.leaves if leaf.path[: len(path)] == path):
        fault = _unrepeatable(program, leaf, streamed)
        if fault is not None:
            return fault
    count = repeated_instructions(program, scope, streamed)
    if count > target.body:  # 5
        message = f"Its body takes {count} instructions; the sequencer holds {target.body}."
        return _fault(Code.REPEAT_SIZE, message, path)
    if scope.size > target.repeats:  # 6
        return _fault(Code.REPEAT_COUNT, f"A hardware loop runs {target.repeats} times at most.", path)
    return None


def _unrepeatable(program: Program, leaf: Leaf, streamed: bool) -> Fault | None:
    """Why the FPU cannot repeat an operation by itself."""
    op: Op = leaf.op
    if op.function not in REPEATABLE:  # 3
        message = f"{op.function} is no instruction that the FPU repeats."
        if op.function in SOFTWARE:
            message = (
                f"'{op.function}' is a sequence of instructions here, some of them of the integer core: "
                "a hardware loop cannot hold it. What is beside it may be fissioned off (fission_scope)."
            )
        return _fault(Code.REPEAT_FUNCTION, message, leaf.path)
    if len({program.buffer_of[a.array].dtype for a in (op.target, *op.reads)}) > 1:  # 3
        return _fault(Code.REPEAT_FUNCTION, "A conversion is no instruction that the FPU repeats.", leaf.path)
    if op.guard:  # 3
        return _fault(Code.REPEAT_INTEGER, "A guard needs the integer core in each iteration.", leaf.path)
    if any(isinstance(o, Affine) for o in op.operands):  # 3
        message = "An iterator as a value needs the integer core in each iteration."
        return _fault(Code.REPEAT_INTEGER, message, leaf.path)
    access = next((a for _, a in memory_slots(program, op)), None)
    if access is not None and not streamed:  # 4
        message = f"{access} is in memory: in a hardware loop only a stream reaches it."
        return _fault(Code.REPEAT_MEMORY, message, leaf.path)
    return None


_JUDGES = {"s": _region, "f": _loop}
