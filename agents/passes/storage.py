"""Storage: temporaries shrink to what is alive at once and move to registers, or to a row on the stack."""

from __future__ import annotations

from agents.passes.threads import independent
from dojo_core.moves.places import NoSuchPlace
from dojo_core.moves.storage import buffer_named, temporaries
from dojo_core.program.affine import Affine
from dojo_core.program.tree import Buffer, Program, Scope
from dojo_core.recipes import Sketch


def place_temporaries(sketch: Sketch) -> None:
    """Each temporary as small and as close as it may be."""
    for name in [b.name for b in temporaries(sketch.program)]:
        for width in _lane_widths(sketch.program, buffer_named(sketch.program, name)):
            with sketch.attempt():
                _keep_lanes(sketch, name, width)
        with sketch.attempt():
            _reuse(sketch, name)
        buffer = buffer_named(sketch.program, name)
        if buffer.location == "register" or sketch.may("set_location", name, "register"):
            continue
        close = buffer.bytes <= sketch.context.target.cache_bytes // 2 and not all(
            d.materialised for d in buffer.dims
        )
        if close and buffer.location == "heap" and not sketch.may("set_location", name, "stack"):
            _share(sketch, name)


def _share(sketch: Sketch, name: str) -> None:
    """Let an array for which the stack has no room have the memory of one like it that is there."""
    buffer = buffer_named(sketch.program, name)
    alike = [
        other.name
        for other in temporaries(sketch.program)
        if (other.dtype, other.dims, other.location) == (buffer.dtype, buffer.dims, "stack")
    ]
    for other in alike:
        with sketch.attempt():
            sketch.play("set_location", other, "heap")
            sketch.play("share_buffer", name, other)
            sketch.play("set_location", other, "stack")
            return


def _reuse(sketch: Sketch, name: str) -> None:
    """Keep only what is alive at once. Raises where the rest would be too large for the stack, and one on the
    heap for all would tie iterations together that could go to threads."""
    program = sketch.program
    free = [n for n in range(len(program.body)) if _free(sketch, n)]
    for k, dim in enumerate(buffer_named(program, name).dims):
        if dim.materialised:
            sketch.may("reuse_dims", name, k)
    buffer = buffer_named(sketch.program, name)
    if buffer.bytes > sketch.context.target.cache_bytes // 2 and not all(_free(sketch, n) for n in free):
        raise NoSuchPlace("Threads would share what is reused.")


def _free(sketch: Sketch, number: int) -> bool:
    return isinstance(sketch.program.body[number], Scope) and independent(sketch, (number,))


def _lane_widths(program: Program, buffer: Buffer) -> list[int]:
    """The vectors that use a buffer's last dimension as lanes, widest first."""
    widths: set[int] = set()
    for leaf in program.leaves:
        for access in (leaf.op.target, *leaf.op.reads):
            if access.array not in buffer.arrays or not access.index or not leaf.scopes:
                continue
            lanes = leaf.scopes[-1]
            last = access.index[-1]
            if lanes.mark == "v" and isinstance(last, Affine) and last.coefficient(len(leaf.scopes) - 1) == 1:
                widths.add(lanes.size)
    return sorted(widths, reverse=True)


def _keep_lanes(sketch: Sketch, name: str, width: int) -> None:
    """Of the last dimension keep one vector. Raises where more of it is alive at once."""
    dims = buffer_named(sketch.program, name).dims
    last = len(dims) - 1
    if not dims[last].materialised or dims[last].size <= width:
        raise NoSuchPlace("Nothing to shrink.")
    if dims[last].size % width:
        sketch.play("pad_dim", name, last, -(-dims[last].size // width) * width)
    sketch.play("split_dim", name, last, width)
    sketch.play("reuse_dims", name, last)
