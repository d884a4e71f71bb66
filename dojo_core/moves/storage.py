"""Moves on buffers: which dimensions are materialised, where a buffer lives, and who shares it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from dojo_core.moves.core import (
    Arguments,
    Context,
    Move,
    Parameter,
    Refusal,
    Transformation,
    register,
    structural,
)
from dojo_core.moves.places import NoSuchPlace, place_of
from dojo_core.program.codes import Code
from dojo_core.program.reaching import accesses_of
from dojo_core.program.tree import (
    Access,
    Buffer,
    Dim,
    Node,
    Op,
    Operand,
    Path,
    Program,
    Scope,
)

PAIRED = 64  # with more buffers, not all pairs of them are offered: they would be most of the moves by far
NEAR = 8
UNROLLED_WHOLE = 32  # iterations: whose number is larger, nobody writes out for the sake of a register


def buffer_named(program: Program, name: str) -> Buffer:
    """The buffer of that name. Raises NoSuchPlace."""
    for buffer in program.buffers:
        if buffer.name == name:
            return buffer
    home = program.buffer_of.get(name)
    if home is not None:
        raise NoSuchPlace(f"The array {name} lives in the buffer {home.name}: name that.")
    raise NoSuchPlace(f"There is no buffer {name}.")


def temporaries(program: Program) -> Iterator[Buffer]:
    """Buffers that hold no input and no output."""
    for buffer in program.buffers:
        if program.interface.isdisjoint(buffer.arrays):
            yield buffer


def with_buffer(program: Program, old: Buffer, *new: Buffer) -> Program:
    """The program with one buffer replaced."""
    number = program.buffers.index(old)
    buffers = (*program.buffers[:number], *new, *program.buffers[number + 1 :])
    if [b.arrays for b in new] == [old.arrays]:  # the order stays
        return replace(program, buffers=buffers)
    return program.edit(buffers=buffers)


def roots_of(program: Program, buffer: Buffer) -> tuple[int, ...]:
    """The root's children that read or write a buffer."""
    return tuple({t.leaf.path[0] for array in buffer.arrays for t in accesses_of(program, array)})


def map_accesses(
    body: tuple[Node, ...], change: Callable[[Access], Access], arrays: tuple[str, ...]
) -> tuple[Node, ...]:
    """A body with every access to some arrays changed, prefetches included; the rest is shared."""
    return map_accesses_at(body, lambda access, above, op: change(access), arrays)


def map_accesses_at(
    body: tuple[Node, ...],
    change: Callable[[Access, tuple[Scope, ...], Op], Access],
    arrays: tuple[str, ...],
) -> tuple[Node, ...]:
    """The same where the change depends on the scopes around an access and on its operation."""

    def visit(node: Node, above: tuple[Scope, ...]) -> Node:
        if isinstance(node, Scope):
            if node.arrays.isdisjoint(arrays) and node.summary.prefetched.isdisjoint(arrays):
                return node
            children = tuple([visit(c, (*above, node)) for c in node.body])
            return Scope(node.size, children, node.mark, node.provenance)
        if not any(a.array in arrays for a in (node.target, *node.reads, *node.prefetches)):
            return node

        def one(access: Access) -> Access:
            return change(access, above, node) if access.array in arrays else access

        def placed(access: Access) -> Access:
            return one(access).reindexed(one)

        def operand(value: Operand) -> Operand:
            return placed(value) if isinstance(value, Access) else value

        return Op(
            placed(node.target),
            node.accumulate,
            node.function,
            tuple(map(operand, node.operands)),
            node.guard,
            tuple(map(one, node.prefetches)),
            node.stream,
            node.stream_load,
            node.provenance,
        )

    return tuple(visit(node, ()) for node in body)


def interface_refusal(program: Program, buffer: Buffer) -> Refusal | None:
    held = [a for a in buffer.arrays if a in program.interface]
    if held:
        kind = "an input" if held[0] in program.inputs else "an output"
        return structural(Code.INTERFACE, f"{held[0]} is {kind}: its layout is the kernel's interface.")
    return None


def _using(program: Program, name: str) -> set[Path]:
    """The operations that write or read a buffer."""
    arrays = buffer_named(program, name).arrays
    return {touch.leaf.path for array in arrays for touch in accesses_of(program, array)}


def _joins(context: Context, together: Collection[Path]) -> Iterator[Move]:
    """The scopes that keep operations apart: joining them may bring these together."""
    program = context.program
    paths = [leaf.path for leaf in program.leaves if leaf.path in together]
    for first in paths:
        for second in paths:
            common = 0
            while common < min(len(first), len(second)) and first[common] == second[common]:
                common += 1
            if first >= second or common + 1 > len(first) - 1 or common + 1 > len(second) - 1:
                continue
            if second[common] == first[common] + 1:
                yield Move("join_scopes", (place_of(program, first[: common + 1]),))
            else:
                yield Move("reorder", (place_of(program, first[: common + 1]),))
                yield Move("join_scopes", (place_of(program, (*second[:common], second[common] - 1)),))
                yield Move("join_scopes", (place_of(program, first[: common + 1]),))


class BufferMove(Transformation[Arguments]):
    family = "storage"

    def places(self, context: Context, arguments: Arguments) -> tuple[Path, ...]:
        """Buffers go by name; a renamed or missing one is refused by the move itself."""
        return ()


def _location(context: Context, arguments: tuple[str, *tuple[int | str, ...]]) -> str:
    """Where ``reuse_dims`` leaves a buffer."""
    named = arguments[-1] if len(arguments) > 2 else None
    return named if isinstance(named, str) else buffer_named(context.program, arguments[0]).location


@register
class ReuseDims(BufferMove[tuple[str, *tuple[int | str, ...]]]):
    """Stop materialising dimensions of a buffer: all their indices share one address.

    ``reuse_dims B K... [LOCATION]``: with a location the buffer moves there in the same move, which a
    heap buffer under a parallel scope needs.

    Before::

        t f32 [8] heap
        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    After ``reuse_dims t 0``::

        t f32 [8:N] heap
        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    Legal iff
      1. B holds no input or output;
      2. B has the dimensions K, materialised;
      3. every read still finds the value that was written for it (V2).

    Source: PerfDojo, SC '25, figures 5 and 6 (reuse_dims).
    """

    name = "reuse_dims"
    also = ("contract_array", "storage_folding")
    parameters = (
        Parameter("buffer", "buffer"),
        Parameter("dims", "numbers"),
        Parameter("location", "location", optional=True),
    )

    def candidates(self, context: Context) -> Iterator[tuple[str, *tuple[int | str, ...]]]:
        for buffer in temporaries(context.program):
            threads = buffer.location == "heap" and any(
                s.mark == "p"
                for leaf in context.program.leaves
                if leaf.op.target.array in buffer.arrays
                for s in leaf.scopes
            )
            for k, dim in enumerate(buffer.dims):
                if dim.materialised and dim.size > 1:
                    yield buffer.name, k
                    if threads:
                        yield buffer.name, k, "stack"

    def plan(self, context: Context, arguments: tuple[str, *tuple[int | str, ...]]) -> Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        refusal = interface_refusal(program, buffer)
        if refusal is not None:  # 1
            return refusal
        dims = [k for k in arguments[1:] if isinstance(k, int)]
        location = _location(context, arguments)
        for k in dims:  # 2
            if k >= len(buffer.dims):
                return structural(
                    Code.NO_SUCH_DIM, f"{buffer.name} has {len(buffer.dims)} dimensions, counted from 0."
                )
            if not buffer.dims[k].materialised:
                return structural(Code.NOT_MATERIALISED, f"Dimension {k} of {buffer.name} is :N already.")
        changed = tuple(
            Dim(d.size, d.materialised and k not in dims, d.provenance) for k, d in enumerate(buffer.dims)
        )
        return with_buffer(program, buffer, replace(buffer, dims=changed, location=location))

    def inverse(
        self, context: Context, arguments: tuple[str, *tuple[int | str, ...]], result: Program
    ) -> Move | None:
        if isinstance(arguments[-1], str):
            return None  # two edits at once: taken back by set_location and materialise_dims
        return Move("materialise_dims", arguments)

    def enablers(
        self, context: Context, arguments: tuple[str, *tuple[int | str, ...]], refusal: Refusal
    ) -> Iterator[Move]:
        """The scopes of a write and its read joined; where each thread has a cell of its own, all that use
        it, so that no thread reads what another one wrote."""
        if refusal.code in (Code.CLOBBER, Code.LIFETIME):
            yield from _joins(context, refusal.nodes)
        if refusal.code == Code.RACE and _location(context, arguments) != "heap":
            yield from _joins(context, _using(context.program, arguments[0]))

    def alternatives(
        self, context: Context, arguments: tuple[str, *tuple[int | str, ...]], refusal: Refusal
    ) -> Iterator[Move]:
        """One for each thread, where threads would share what is left; where values are needed at once, the
        dimensions before, whose scopes are farther out."""
        if refusal.code == Code.RACE and _location(context, arguments) == "heap":
            dims = (k for k in arguments[1:] if isinstance(k, int))
            yield Move("reuse_dims", (arguments[0], *dims, "stack"))
        if refusal.code in (Code.CLOBBER, Code.LIFETIME):
            buffer = buffer_named(context.program, arguments[0])
            for k in range(min(k for k in arguments[1:] if isinstance(k, int))):
                if buffer.dims[k].materialised and buffer.dims[k].size > 1:
                    yield Move("reuse_dims", (buffer.name, k))

    def needs(self, context: Context, arguments: tuple[str, *tuple[int | str, ...]], refusal: Refusal) -> str:
        if refusal.code == Code.RACE:
            return (
                "Threads would share the cell: each would need one of its own, whose values are written and "
                "read by it alone."
            )
        if refusal.code not in (Code.CLOBBER, Code.LIFETIME):
            return ""
        return (
            "Its values are needed at once. One cell would be enough only if each were read for the last "
            "time before the next is written: with the scope that runs through the dimension around both, "
            "and no loop between that comes back to it."
        )


@register
class MaterialiseDims(BufferMove[tuple[str, *tuple[int, ...]]]):
    """Give dimensions of a buffer their own addresses again: the inverse of reuse_dims.

    ``materialise_dims B K...``

    Before::

        t f32 [8:N] heap
        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    After ``materialise_dims t 0``::

        t f32 [8] heap
        8 t[{0}] = x[{0}]
        | y[{0}] = t[{0}]

    Legal iff
      1. B has the dimensions K, not materialised;
      2. V2 and V3 hold (a register's index must be constant).
    """

    name = "materialise_dims"
    parameters = (Parameter("buffer", "buffer"), Parameter("dims", "numbers"))

    def candidates(self, context: Context) -> Iterator[tuple[str, *tuple[int, ...]]]:
        for buffer in context.program.buffers:
            for k, dim in enumerate(buffer.dims):
                if not dim.materialised:
                    yield buffer.name, k

    def plan(self, context: Context, arguments: tuple[str, *tuple[int, ...]]) -> Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        dims = arguments[1:]
        for k in dims:  # 1
            if k >= len(buffer.dims) or buffer.dims[k].materialised:
                return structural(Code.NOT_REUSED, f"{buffer.name} has no dimension {k} that is :N.")
        changed = tuple(
            Dim(d.size, d.materialised or k in dims, d.provenance) for k, d in enumerate(buffer.dims)
        )
        return with_buffer(program, buffer, replace(buffer, dims=changed))

    def alternatives(
        self, context: Context, arguments: tuple[str, *tuple[int, ...]], refusal: Refusal
    ) -> Iterator[Move]:
        """The dimensions that have no addresses."""
        if refusal.code == Code.NOT_REUSED:
            buffer = buffer_named(context.program, arguments[0])
            hidden = [k for k, dim in enumerate(buffer.dims) if not dim.materialised]
            yield from (Move("materialise_dims", (buffer.name, k)) for k in hidden)

    def inverse(self, context: Context, arguments: tuple[str, *tuple[int, ...]], result: Program) -> Move:
        return Move("reuse_dims", arguments)


@register
class SetLocation(BufferMove[tuple[str, str]]):
    """Move a buffer to the heap, the stack or registers.

    ``set_location B LOCATION``

    Before::

        m f32 [8:N] heap
        8 m[{0}] = 0
        | 64 m[{0}] max= x[{0},{1}]
        | y[{0}] = m[{0}]

    After ``set_location m register``::

        m f32 [8:N] register
        8 m[{0}] = 0
        | 64 m[{0}] max= x[{0},{1}]
        | y[{0}] = m[{0}]

    Legal iff
      1. B holds no input or output;
      2. the target has the location, and B is not there already;
      3. B fits: registers have constant indices, the stack a limit (V3);
      4. every read finds its value though each iteration of B's owner has a buffer of its own, or all
         threads share one on the heap (V2).
    """

    name = "set_location"
    parameters = (Parameter("buffer", "buffer"), Parameter("location", "location"))

    def candidates(self, context: Context) -> Iterator[tuple[str, str]]:
        for buffer in temporaries(context.program):
            for location in context.target.locations:
                if location != buffer.location:
                    yield buffer.name, location

    def plan(self, context: Context, arguments: tuple[str, str]) -> Program | Refusal:
        program = context.program
        buffer = buffer_named(program, arguments[0])
        location = arguments[1]
        refusal = interface_refusal(program, buffer)
        if refusal is not None:  # 1
            return refusal
        # implied: V3 asks too; here the sentence can tell which there are
        if location not in context.target.locations:  # 2
            known = ", ".join(context.target.locations)
            return structural(
                Code.LOCATION_UNKNOWN, f"{context.target.name} has no location {location}; it has {known}."
            )
        if location == buffer.location:
            return structural(Code.SAME_LOCATION, f"{buffer.name} is on the {location} already.")
        return with_buffer(program, buffer, replace(buffer, location=location))

    def needs(self, context: Context, arguments: tuple[str, str], refusal: Refusal) -> str:
        if refusal.code not in (Code.REGISTER_SIZE, Code.LOCAL_SIZE, Code.STACK_SIZE):
            return ""
        return (
            "All its cells are needed at once, and there is no more room: it would fit once its writes and "
            "reads stand in one scope (join_scopes), so that dimensions are reused (reuse_dims)."
        )

    def inverse(self, context: Context, arguments: tuple[str, str], result: Program) -> Move:
        return Move("set_location", (arguments[0], buffer_named(context.program, arguments[0]).location))

    def enablers(self, context: Context, arguments: tuple[str, str], refusal: Refusal) -> Iterator[Move]:
        program = context.program
        if refusal.code in (Code.CLOBBER, Code.LIFETIME):
            yield from _joins(context, refusal.nodes)
        if refusal.code in (Code.REGISTER_INDEX, Code.LOCAL_INDEX):
            for path in refusal.nodes:
                above = program.scopes_above(path)
                for depth in _addressing(program, buffer_named(program, arguments[0]), path):
                    if not above[depth].mark and above[depth].size <= UNROLLED_WHOLE:
                        yield Move("unroll", (place_of(program, path[: depth + 1]),))
        if refusal.code in (
            Code.REGISTER_SIZE,
            Code.LOCAL_SIZE,
            Code.STACK_SIZE,
            Code.REGISTER_INDEX,
            Code.LOCAL_INDEX,
        ):
            buffer = buffer_named(program, arguments[0])
            addressed = [k for k, dim in enumerate(buffer.dims) if dim.materialised]
            for k in addressed:
                yield Move("reuse_dims", (buffer.name, k))
            if len(addressed) > 1:
                yield Move("reuse_dims", (buffer.name, *addressed))
            # Which joining may make possible.
            yield from _joins(context, _using(program, buffer.name))


def _addressing(program: Program, buffer: Buffer, path: Path) -> list[int]:
    """The depths of the scopes whose iterators choose an address in a buffer, at an operation."""
    op = program.node(path)
    assert isinstance(op, Op)
    elements = [access for access in op.elements if access.array in buffer.arrays]
    forms = (
        form
        for access in elements
        for form, dim in zip(access.index, buffer.dims, strict=True)
        if dim.materialised
    )
    return sorted({depth for form in forms for depth in form.depths}, reverse=True)


@register
class ShareBuffer(BufferMove[tuple[str, str]]):
    """Let two buffers use the same memory.

    ``share_buffer A B``: the arrays of A and B live in one buffer. The line of an interface buffer
    survives, else B's.

    Before::

        e f32 [8] heap
        y f32 [8] heap
        8 e[{0}] = exp(x[{0}])
        8 y[{0}] = e[{0}] + 1

    After ``share_buffer e y``::

        y f32 [8] heap -> e, y
        8 e[{0}] = exp(x[{0}])
        8 y[{0}] = e[{0}] + 1

    Legal iff
      1. A and B are two buffers with the same dtype, dimensions and location;
      2. at most one of them holds an interface array, and that is no input;
      3. no write of one array clobbers a value of another that is still read (V2).

    Candidates: all such pairs; of more than 64 buffers each with the eight that come next in the program.
    """

    name = "share_buffer"
    parameters = (Parameter("buffer", "buffer"), Parameter("with", "buffer"))

    def candidates(self, context: Context) -> Iterator[tuple[str, str]]:
        program = context.program
        usable = [b for b in program.buffers if not any(a in program.inputs for a in b.arrays)]
        few = len(program.buffers) <= PAIRED
        for number, a in enumerate(usable):
            for b in usable[number + 1 : None if few else number + 1 + NEAR]:
                if (a.dtype, a.dims, a.location) == (b.dtype, b.dims, b.location):
                    if program.interface.isdisjoint(a.arrays):
                        yield a.name, b.name
                    elif program.interface.isdisjoint(b.arrays):
                        yield b.name, a.name

    def plan(self, context: Context, arguments: tuple[str, str]) -> Program | Refusal:
        program = context.program
        a, b = buffer_named(program, arguments[0]), buffer_named(program, arguments[1])
        if a is b or (a.dtype, a.dims, a.location) != (b.dtype, b.dims, b.location):  # 1
            return structural(
                Code.UNLIKE_BUFFERS,
                f"{a.name} and {b.name} must be two buffers of one dtype, shape and location.",
            )
        owned = [x for x in (a, b) if not program.interface.isdisjoint(x.arrays)]
        if len(owned) > 1 or any(x in program.inputs for x in (*a.arrays, *b.arrays)):  # 2
            return structural(Code.INTERFACE, "An input, or two interface arrays, may not share a buffer.")
        survivor = owned[0] if owned else b
        gone = a if survivor is b else b
        shared = replace(survivor, arrays=a.arrays + b.arrays)
        return program.edit(
            buffers=tuple(
                [shared if x is survivor else x for x in program.buffers if x is survivor or x is not gone]
            )
        )

    def inverse(self, context: Context, arguments: tuple[str, str], result: Program) -> Move | None:
        a, b = (buffer_named(context.program, x) for x in arguments)
        gone = a if any(x.name == b.name for x in result.buffers) else b
        return Move("unshare_buffer", (gone.name,)) if gone.arrays == (gone.name,) else None


@register
class UnshareBuffer(BufferMove[tuple[str]]):
    """Give an array a buffer of its own again: the inverse of share_buffer.

    ``unshare_buffer ARRAY``

    Before::

        y f32 [8] heap -> e, y
        8 e[{0}] = exp(x[{0}])
        8 y[{0}] = e[{0}] + 1

    After ``unshare_buffer e``::

        e f32 [8] heap
        y f32 [8] heap
        8 e[{0}] = exp(x[{0}])
        8 y[{0}] = e[{0}] + 1

    Legal iff
      1. ARRAY shares its buffer with others and is no input or output;
      2. no other buffer has its name;
      3. V2 and V3 hold.
    """

    name = "unshare_buffer"
    parameters = (Parameter("array", "buffer"),)

    def candidates(self, context: Context) -> Iterator[tuple[str]]:
        program = context.program
        for buffer in program.buffers:
            if len(buffer.arrays) > 1:
                for array in buffer.arrays:
                    if array not in program.interface and array != buffer.name:
                        yield (array,)

    def plan(self, context: Context, arguments: tuple[str]) -> Program | Refusal:
        program = context.program
        array = arguments[0]
        buffer = program.buffer_of.get(array)
        if buffer is None or len(buffer.arrays) < 2 or array in program.interface:  # 1
            return structural(Code.NOT_SHARED, f"{array} is no temporary that shares its buffer.")
        if any(b.name == array for b in program.buffers):  # 2
            return structural(
                Code.NAME_TAKEN, f"A buffer is named {array}: another array of it must leave instead."
            )
        dims = tuple(replace(d, provenance=context.provenance(1 + k)) for k, d in enumerate(buffer.dims))
        fresh = replace(buffer, name=array, arrays=(array,), dims=dims, provenance=context.provenance(0))
        rest = replace(buffer, arrays=tuple(a for a in buffer.arrays if a != array))
        return with_buffer(program, buffer, rest, fresh)

    def inverse(self, context: Context, arguments: tuple[str], result: Program) -> Move | None:
        (array,) = arguments
        shared = context.program.buffer_of[array]
        return Move("share_buffer", (array, shared.name)) if shared.arrays[0] == array else None
