"""Computing again: a value is made where it is used, rather than kept where no cache has room for it."""

from __future__ import annotations

from collections.abc import Sequence

from agents.passes.pipelines import stages_of
from agents.passes.structure import only, uses
from dojo_core.moves.places import NoSuchPlace, fresh_name
from dojo_core.moves.storage import temporaries
from dojo_core.program.tree import Leaf, Path, Program
from dojo_core.recipes import Sketch

CHEAP = ("", "+", "-", "*")  # to compute again where a value is at hand too


def recompute_far(sketch: Sketch) -> bool:
    """Compute again, where it is used, what one operation makes and no cache would keep until then; was there
    anything?

    The last first: what it is made of is needed where it is used, then.
    """
    count = len(sketch.moves)
    limit = sketch.context.target.cache_bytes
    for buffer in reversed(list(temporaries(sketch.program))):
        if buffer.bytes > limit and len(buffer.arrays) == 1:
            with sketch.attempt():
                _recompute(sketch, buffer.name)
    return len(sketch.moves) > count


def _recompute(sketch: Sketch, array: str) -> None:
    program = sketch.program
    writers = [leaf for leaf in program.leaves if leaf.op.target.array == array]
    readers = [leaf for leaf in program.leaves if any(a.array == array for a in leaf.op.reads)]
    if len(writers) != 1 or not readers:
        return
    limit = sketch.context.target.cache_bytes
    far = [_alive(program, writers[0], reader) > limit for reader in readers]
    if not any(far) or not (all(far) or writers[0].op.function in CHEAP):
        return
    _compute_again(sketch, array, readers)
    writer = only(leaf for leaf in sketch.program.leaves if leaf.op.target.array == array)
    sketch.play("drop_dead", sketch.place(writer.path))


def _alive(program: Program, writer: Leaf, reader: Leaf) -> int:
    """Bytes of what is written between a value's write and its read: all but what the scopes share."""
    held = program.buffer_of[writer.op.target.array].bytes
    for depth, scope in enumerate(writer.scopes):
        if writer.path[: depth + 1] != reader.path[: depth + 1]:
            break
        if uses(writer.op.target, depth):
            held //= scope.size
    return held


def recompute_near(sketch: Sketch) -> None:
    """Compute again what differs from an input by little, where a row of it and all that goes along with it
    outgrow the first-level cache, or where the rows go through a pipeline, which would keep one for each
    stage: the input's row is there in any case."""
    limit = sketch.context.target.first_cache_bytes
    for buffer in list(temporaries(sketch.program)):
        writers = [leaf for leaf in sketch.program.leaves if leaf.op.target.array in buffer.arrays]
        readers = [leaf for leaf in sketch.program.leaves if _reads(leaf, buffer.arrays)]
        if len(writers) != 1 or not _differs_little(sketch.program, writers[0]):
            continue
        writer = writers[0]
        far = [leaf for leaf in readers if leaf.path[:-1] != writer.path[:-1]]
        large = any(_footprint(sketch.program, _common(writer.path, leaf.path)) > limit for leaf in far)
        if not large and not (far and _in_stages(sketch, writer.path[:1])):
            continue
        with sketch.attempt():
            _compute_again(sketch, writer.op.target.array, far)


def _in_stages(sketch: Sketch, path: Path) -> bool:
    try:
        return bool(stages_of(sketch, path))
    except NoSuchPlace:
        return False


def _compute_again(sketch: Sketch, array: str, readers: Sequence[Leaf]) -> None:
    """Give each reader a value of its own, made where it is read. Raises IllegalMove."""
    for provenance in [leaf.op.provenance for leaf in readers]:
        leaf = only(leaf for leaf in sketch.program.leaves if leaf.op.provenance == provenance)
        sketch.play("recompute", sketch.place(leaf.path), array, fresh_name(sketch.program, array + "r"))


def _reads(leaf: Leaf, arrays: Sequence[str]) -> bool:
    return any(a.array in arrays for a in leaf.op.reads)


def _differs_little(program: Program, writer: Leaf) -> bool:
    """Is a value made by one quick operation from an input's element, and from that alone but for scalars?"""
    whole = [a for a in writer.op.reads if program.buffer_of[a.array].bytes >= _bytes_of(program, writer)]
    return (
        writer.op.function in CHEAP
        and not writer.op.accumulate
        and len(whole) == 1
        and whole[0].array in program.inputs
    )


def _bytes_of(program: Program, writer: Leaf) -> int:
    return program.buffer_of[writer.op.target.array].bytes


def _common(one: Path, other: Path) -> Path:
    """The path of the innermost scope that holds both; empty where none does."""
    count = 0
    while count < min(len(one), len(other)) - 1 and one[count] == other[count]:
        count += 1
    return one[:count]


def _footprint(program: Program, path: Path) -> int:
    """Bytes of all elements of arrays that one iteration of the scopes along a path goes over."""
    touched: dict[str, int] = {}
    for leaf in program.leaves:
        if leaf.path[: len(path)] != path or not path:
            continue
        for access in (leaf.op.target, *leaf.op.reads):
            buffer = program.buffer_of[access.array]
            share = buffer.bytes
            for depth in range(len(path)):
                if uses(access, depth):
                    share //= leaf.scopes[depth].size
            touched[buffer.name] = max(share, touched.get(buffer.name, 0))
    return sum(touched.values())
